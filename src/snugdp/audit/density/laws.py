"""Logarithms of probabilities of the noise laws, far into the tails: of cells, of decisions, of contests.

Floats, with errors of about 1e-12: they judge, and nothing private depends on them. What was subtracted before was
subtracted exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import Continuous, Discrete, DiscreteGaussian, DiscreteLaplace, Gaussian, Gumbel, Laplace, Law, pmf

Floats = NDArray[np.float64]
_NARROW = 2.0**-10  # of a deviation: cells that a series describes to twelve digits
_LOG_2 = math.log(2)
_ROOT_2_PI = math.log(2 * math.pi) / 2
_REACH = 45.0  # scales of noise beyond which less than 1e-19 is left
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def scale_of(law: Law) -> Fraction:
    """The deviation of a normal law, the scale of another. Of a discrete Gaussian: about its deviation."""
    if isinstance(law, Gaussian):
        return law.sigma
    if isinstance(law, DiscreteGaussian):
        return Fraction(math.sqrt(law.variance))
    return law.scale


def whole_mass(law: Discrete, x: int) -> float:
    """The logarithm of P[Z = x]."""
    if isinstance(law, DiscreteLaplace):
        return math.log(math.tanh(float(1 / (2 * law.scale)))) - float(abs(x) / law.scale)
    return _at_zero(law) - float(x * x / (2 * law.variance))


def cell_mass(law: Continuous, middle: Fraction, width: Fraction) -> float:
    """The logarithm of P[Z within half a width of the middle]."""
    scale = scale_of(law)
    at, (w, half) = middle / scale, _in_scales(width, scale)
    m, low, high = float(at), float(at - half), float(at + half)
    if isinstance(law, Gumbel):
        return -_exp(-high) + _log(-math.expm1(-_exp(-high) * math.expm1(w))) if w < 700 else -math.inf
    m, low, high = (m, low, high) if m >= 0 else (-m, -high, -low)
    if isinstance(law, Laplace):
        if low < 0:
            return math.log(-(math.expm1(-high) + math.expm1(low)) / 2)
        return -low + math.log(-math.expm1(-w)) - _LOG_2
    if w < _NARROW:
        return -m * m / 2 - _ROOT_2_PI + math.log(w) + math.log1p(w * w * (m * m - 1) / 24)
    above, beyond = log_normal(-low), log_normal(-high)
    return above + _log(-math.expm1(beyond - above))


@lru_cache(maxsize=256)
def _in_scales(width: Fraction, scale: Fraction) -> tuple[float, Fraction]:
    """A width as a float, and half of it exactly."""
    return float(width / scale), width / (2 * scale)


def reaching(law: Law, need: Fraction, reached: bool) -> float:
    """The logarithm of P[Z >= need], or of P[Z < need]."""
    if isinstance(law, DiscreteLaplace | DiscreteGaussian):
        first = math.ceil(need)
        return _discrete_tail(law, first) if reached else _discrete_tail(law, 1 - first)
    x = float(need / scale_of(law))
    if isinstance(law, Gumbel):
        return _log(-math.expm1(-_exp(-x))) if reached else -_exp(-x)
    x = x if reached else -x
    if isinstance(law, Gaussian):
        return log_normal(-x)
    return -x - _LOG_2 if x >= 0 else math.log1p(-math.exp(x) / 2)


def winning(scores: Sequence[int | Fraction], law: Continuous, place: int) -> float:
    """The logarithm of P[this place is the largest after every score has got noise of its own]."""
    return _chances(tuple(scores), law)[place]


@lru_cache(maxsize=4096)
def _chances(scores: tuple[int | Fraction, ...], law: Continuous) -> tuple[float, ...]:
    top, scale = max(scores), scale_of(law)
    return contest(tuple(float((score - top) / scale) for score in scores), type(law).__name__)


@lru_cache(maxsize=4096)
def contest(scores: tuple[float, ...], kind: str) -> tuple[float, ...]:
    """The logarithms of the chances of all places; scores are in scales, the largest is 0.

    >>> [round(math.exp(chance), 9) for chance in contest((0.0, 0.0), "Gaussian")]
    [0.5, 0.5]
    """
    levels = np.array(scores)
    if kind == "Gumbel":
        gumbel: list[float] = (levels - np.logaddexp.reduce(levels)).tolist()
        return tuple(gumbel)
    found = [_first(levels, place, kind) for place in range(len(scores))]
    best = int(np.argmax(levels))
    others = [chance for place, chance in enumerate(found) if place != best]
    rest = float(np.exp(others).sum())
    if rest < 0.5:  # otherwise a tiny rest would be rounding
        found[best] = math.log1p(-rest)
    return tuple(found)


def _first(levels: Floats, place: int, kind: str) -> float:
    """The logarithm of the integral over the noise of this place of the chance that all others stay below."""
    ahead = levels[place] - np.delete(levels, place)
    ends = np.arange(-_REACH, _REACH - float(ahead.min(initial=0.0)) + 1.0)
    kinks = np.append(-ahead, 0.0)
    ends = np.union1d(ends, kinks[(kinks > ends[0]) & (kinks < ends[-1])])
    half = np.diff(ends) / 2
    z = ((ends[1:] + ends[:-1]) / 2)[:, None] + half[:, None] * _NODES
    logs = _density(z, kind) + sum((_below(z + gap, kind) for gap in ahead), np.zeros_like(z))
    logs = logs + np.log(half)[:, None] + np.log(_WEIGHTS)
    return float(np.logaddexp.reduce(logs.ravel()))


def _density(z: Floats, kind: str) -> Floats:
    found: Floats = -z * z / 2 - _ROOT_2_PI if kind == "Gaussian" else -np.abs(z) - _LOG_2
    return found


def _below(z: Floats, kind: str) -> Floats:
    from scipy.special import log_ndtr

    if kind == "Gaussian":
        normal: Floats = log_ndtr(z)
        return normal
    found: Floats = np.where(z > 0, np.log1p(-np.exp(-np.abs(z)) / 2), np.minimum(z, 0.0) - _LOG_2)
    return found


def log_normal(x: float) -> float:
    """The logarithm of P[N(0, 1) <= x]."""
    from scipy.special import log_ndtr

    return float(log_ndtr(x))


@lru_cache(maxsize=256)
def _at_zero(law: DiscreteGaussian) -> float:
    return math.log(pmf(law, 0))


@lru_cache(maxsize=4096)
def _discrete_tail(law: Discrete, first: int) -> float:
    """The logarithm of P[Z >= first]; both laws are symmetric."""
    if first <= 0:
        return math.log1p(-math.exp(_discrete_tail(law, 1 - first)))
    if isinstance(law, DiscreteLaplace):
        rate = float(1 / law.scale)
        return -first * rate - math.log1p(math.exp(-rate))
    reach = math.ceil(12 * math.sqrt(law.variance)) + 1
    step = max(1, reach // 100_000)
    z = np.arange(0, reach, step, dtype=np.float64)
    exponents = -z * (2 * float(first) + z) / float(2 * law.variance)
    return whole_mass(law, first) + float(np.logaddexp.reduce(exponents)) + math.log(step)


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
