"""Two samples of posteriors, along the line that joins their means: a delta in closed form, and never too large."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.density.tail import system
from snugdp.noise.recording import Site

Floats = NDArray[np.float64]


def delta(one: tuple[float, float], two: tuple[float, float], epsilon: float) -> float:
    """The hockey stick of N(mean, deviation squared) against another, in closed form.

    >>> round(delta((0, 1), (1, 1), 1.0), 6), round(delta((0, 1), (0, 2), 0.0), 6)
    (0.126937, 0.322675)
    """
    (a, s), (b, t) = one, two
    # log p - log q - epsilon = u x^2 + v x + w
    u = (1 / t**2 - 1 / s**2) / 2
    v = a / s**2 - b / t**2
    w = (b / t) ** 2 / 2 - (a / s) ** 2 / 2 + math.log(t / s) - epsilon
    if abs(u) < 1e-14 * (1 / s**2 + 1 / t**2):
        if v == 0:
            return max(0.0, -math.expm1(epsilon)) if w > 0 else 0.0
        inside = [(-w / v, math.inf) if v > 0 else (-math.inf, -w / v)]
    else:
        square = v * v - 4 * u * w
        if square <= 0:
            return max(0.0, -math.expm1(epsilon)) if u > 0 else 0.0
        low, high = sorted(((-v - math.sqrt(square)) / (2 * u), (-v + math.sqrt(square)) / (2 * u)))
        inside = [(low, high)] if u < 0 else [(-math.inf, low), (high, math.inf)]
    return max(0.0, sum(_mass(a, s, *ends) - math.exp(epsilon) * _mass(b, t, *ends) for ends in inside))


def along_the_shift(here: Site, there: Site) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and deviation of both posteriors in the direction in which their means differ most, by their precision."""
    laws = [_law(here), _law(there)]
    (first, one), (second, two) = laws
    towards = (one + two) @ (first - second)
    if not np.linalg.norm(towards) > 0:
        towards = np.linalg.eigh(one - two)[1][:, -1]
    ends = [
        (float(towards @ mean), math.sqrt(float(towards @ np.linalg.solve(precision, towards))))
        for mean, precision in laws
    ]
    return ends[0], ends[1]


def _law(site: Site) -> tuple[Floats, Floats]:
    """The mean and the precision of a posterior."""
    curvature, right = system(site)
    mean = np.asarray(np.linalg.solve(curvature, right), dtype=np.float64)
    return mean, float(site.number("precision")) * curvature


def _mass(mean: float, deviation: float, low: float, high: float) -> float:
    from scipy.special import ndtr

    ends = [(end - mean) / deviation for end in (low, high)]
    if ends[0] > 0:  # the far tail, without losing digits
        return float(ndtr(-ends[0]) - ndtr(-ends[1]))
    return float(ndtr(ends[1]) - ndtr(ends[0]))
