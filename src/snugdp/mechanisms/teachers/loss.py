"""The Renyi loss of one noisy argmax, from the log-probability that it misses the plurality. Proof: ``loss.proof.md``.

Every function takes log q and the order as arrays that broadcast, and returns the divergence in nats. Nothing is ever
exponentiated alone: where teachers agree, q and the loss are far below the smallest float.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def ceiling(sigma: float, order: ArrayLike) -> Floats:
    """The loss on the worst data: order / sigma**2, for every histogram."""
    most: Floats = np.asarray(order, dtype=np.float64) / sigma**2
    return most


def log_peak(sigma: float, order: ArrayLike) -> Floats:
    """Log of q*, where the first term of the closed form is largest: bisection on a monotone ratio (Lemma 3)."""
    from scipy.special import log_ndtr

    order = np.asarray(order, dtype=np.float64)
    m = math.sqrt(2.0) / sigma
    goal = -np.log1p(-1 / order)
    low, high = -order * m, goal / m + m
    for _ in range(60):
        middle = (low + high) / 2
        rises = _log_mills(middle) - _log_mills(middle - m) < goal
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    peak: Floats = log_ndtr(-(low + high) / 2)
    return peak


def closed(log_q: ArrayLike, sigma: float, order: ArrayLike) -> Floats:
    """The closed form: one cell, made monotone by q*.

    Guarantee: up to rounding it is at least the divergence from every neighbour, and does not fall as q grows
    (``loss.proof.md``, Theorems 1 and 3).

    >>> closed(-1e-9, 10.0, 5.0).round(6)
    np.float64(0.05)
    """
    from scipy.special import log_ndtr, ndtri_exp

    logs, order = np.asarray(log_q, dtype=np.float64), np.asarray(order, dtype=np.float64)
    m = math.sqrt(2.0) / sigma
    peak, z = log_peak(sigma, order), ndtri_exp(logs)
    x = order * log1mexp(np.minimum(logs, peak)) + (1 - order) * log_ndtr(-(np.minimum(z, ndtri_exp(peak)) + m))
    y = (order * (order - 1) * m**2 / 2) + log_ndtr(z + (order - 1) * m)
    bounded: Floats = np.clip(log_sum(x, y) / (order - 1), 0.0, ceiling(sigma, order))
    return bounded


def sides(log_q: Floats, log_share: Floats) -> tuple[Floats, Floats]:
    """The normal quantiles of a = share q and of q - a."""
    from scipy.special import ndtri_exp

    with np.errstate(divide="ignore"):
        mirrored = log1mexp(log_share)
    return ndtri_exp(log_q + log_share), ndtri_exp(log_q + mirrored)


def log_rest(x1: Floats, z2: Floats, m: float) -> Floats:
    """The logarithm of 1 - s, s = Phi(x1 - m) + Phi(z2 + m): the neighbour's chance of the plurality."""
    from scipy.special import log_ndtr

    upper, lower = log_ndtr(-z2 - m), log_ndtr(x1 - m)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        small = np.log1p(-(np.exp(np.minimum(lower, 0.0)) + np.exp(log_ndtr(z2 + m))))
        rest: Floats = np.where(upper > -0.5, small, upper + log1mexp(np.minimum(lower - upper, 0.0)))
    return rest


def log_moment(x1: Floats, z2: Floats, m: float, order: Floats | float) -> Floats:
    """The logarithm of W(a): the moment of the two tails."""
    from scipy.special import log_ndtr

    tails = np.logaddexp(log_ndtr(x1 + (order - 1) * m), log_ndtr(z2 - (order - 1) * m))
    moment: Floats = order * (order - 1) * m**2 / 2 + tails
    return moment


def log1mexp(x: ArrayLike) -> Floats:
    """The logarithm of 1 - e^x for x <= 0, without loss at either end."""
    values = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore"):
        found: Floats = np.where(values > -0.6931, np.log(-np.expm1(values)), np.log1p(-np.exp(values)))
    return found


def log_sum(x: Floats, y: Floats) -> Floats:
    """The logarithm of e^x + e^y when e^x is close to 1 and e^y may be tiny."""
    with np.errstate(over="ignore"):
        near = np.log1p(np.expm1(np.minimum(x, 30.0)) + np.exp(np.minimum(y, 30.0)))
    large = (x > 30) | (y > 30)
    total: Floats = np.where(large, np.logaddexp(x, y), near) if large.any() else near
    return total


def _log_mills(x: Floats) -> Floats:
    """The logarithm of Phi(x) / phi(x) less the constant log(2 pi) / 2."""
    from scipy.special import erfcx, log_ndtr

    below, beyond = np.minimum(x, 0.0), np.maximum(x, 0.0)
    small, large = np.log(erfcx(-below / math.sqrt(2.0)) / 2), log_ndtr(beyond) + beyond**2 / 2
    found: Floats = np.where(x < 0, small, large)
    return found
