"""What the last draw of a walk shows, exactly, against what the last step of its plan pays for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.density.parts import part
from snugdp.audit.density.sites import log_probability
from snugdp.audit.density.tail import system
from snugdp.audit.finding import at_least, at_most
from snugdp.audit.replay import Path
from snugdp.core.guarantee import Cost
from snugdp.noise.recording import Site, private_inputs

Floats = NDArray[np.float64]
_LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)
_ROUND = 1e-6  # of floats


def shown(run: Path) -> str:
    """What a run at the boundary shows that its neighbour lacks, or more of a posterior than the last step pays for."""
    if run.reason:
        return run.reason
    if any(one.method == "reveal" and part(one, two).epsilon for one, two in run.pairs):
        return "a value was shown that a neighbour does not have"
    if not run.pairs or run.pairs[-1][0].method != "posterior" or not run.here.plans:
        return ""
    ends = along_the_shift(*run.pairs[-1])
    return _compared(run, _LEVELS, lambda epsilon: normal_delta(*ends, epsilon))


def elected(run: Path) -> str:
    """Whether the last step pays for a winner, who is all that it draws: every candidate has a known chance."""
    if run.refused or run.reason or not run.here.plans or not run.pairs or run.pairs[-1][0].method != "argmax":
        return ""
    here, there = run.pairs[-1]
    candidates = range(len(private_inputs(here)[0]))
    chances = [[math.exp(log_probability(replace(site, answer=k))) for k in candidates] for site in (here, there)]

    def found(epsilon: float) -> float:
        return math.fsum(max(one - math.exp(epsilon) * two, 0.0) for one, two in zip(*chances, strict=True))

    return _compared(run, (float(_paid(run).epsilon),), found)


def _compared(run: Path, levels: Iterable[float], found: Callable[[float], float]) -> str:
    """The delta of the last draw against what its step pays for, at every one of these epsilons."""
    cost = _paid(run)
    for epsilon in levels:
        seen, paid = found(epsilon), cost.delta_at(epsilon)
        if seen > paid * (1 + _ROUND):
            return f"the last draw has delta({epsilon}) >= {at_least(seen)}, paid are {at_most(paid)}"
    return ""


def _paid(run: Path) -> Cost:
    """The cost of the last step; where that is free, of the whole plan, which pays for it."""
    *before, last = run.here.plans[-1].costs.values()
    free = last == Cost(neighbours=last.neighbours)
    return sum(before, last) if free else last


def normal_delta(one: tuple[float, float], two: tuple[float, float], epsilon: float) -> float:
    """The hockey stick of N(mean, deviation squared) against another, in closed form.

    >>> round(normal_delta((0, 1), (1, 1), 1.0), 6), round(normal_delta((0, 1), (0, 2), 0.0), 6)
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
