"""The noise laws by name, and the probabilities that they declare.

A law is public and exact: its parameter is the rational that was typed. The probabilities are computed in
balls until they are known to more digits than a float holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import TypeAlias

from flint import arb

from snugdp.noise.exact.refine import exactly, refine
from snugdp.numerics.rationals import Real, rational

_ACCURATE = 60  # bits: a float has 53
_VANISHING = 1200  # below 2**-1200 a float can only say zero


def _positive(value: Real, name: str) -> Fraction:
    number = rational(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be above zero: a law without spread is not noise")
    return number


@dataclass(frozen=True, init=False)
class Laplace:
    """The real law with density exp(-|z| / scale) / (2 scale).

    >>> Laplace(0.1).scale
    Fraction(1, 10)
    """

    scale: Fraction

    def __init__(self, scale: Real) -> None:
        object.__setattr__(self, "scale", _positive(scale, "scale"))


@dataclass(frozen=True, init=False)
class Gaussian:
    """The normal law with mean zero and standard deviation ``sigma``."""

    sigma: Fraction

    def __init__(self, sigma: Real) -> None:
        object.__setattr__(self, "sigma", _positive(sigma, "sigma"))


@dataclass(frozen=True, init=False)
class Gumbel:
    """The real law with distribution function exp(-exp(-z / scale)). It is not symmetric."""

    scale: Fraction

    def __init__(self, scale: Real) -> None:
        object.__setattr__(self, "scale", _positive(scale, "scale"))


@dataclass(frozen=True, init=False)
class DiscreteLaplace:
    """The law on whole numbers with P(x) proportional to exp(-|x| / scale)."""

    scale: Fraction

    def __init__(self, scale: Real) -> None:
        object.__setattr__(self, "scale", _positive(scale, "scale"))


@dataclass(frozen=True, init=False)
class DiscreteGaussian:
    """The law on whole numbers with P(x) proportional to exp(-x**2 / (2 variance))."""

    variance: Fraction

    def __init__(self, variance: Real) -> None:
        object.__setattr__(self, "variance", _positive(variance, "variance"))


Continuous: TypeAlias = Laplace | Gaussian | Gumbel
Discrete: TypeAlias = DiscreteLaplace | DiscreteGaussian
Law: TypeAlias = Continuous | Discrete


def pmf(law: Discrete, x: int) -> float:
    """P[Z = x] for a law on whole numbers, to the last bits of a float.

    >>> round(pmf(DiscreteLaplace("1/2"), 1), 12)
    0.103070560808
    """
    at = Fraction(int(x))
    if isinstance(law, DiscreteLaplace):
        rate = 1 / law.scale
        return _number(lambda _: exactly(rate / 2).tanh() * exactly(-abs(at) * rate).exp())
    exponent = -at * at / (2 * law.variance)
    return _number(lambda p: exactly(exponent).exp() / _theta(law.variance, p))


def rounded_pmf(law: Continuous, m: int) -> float:
    """P[floor(Z + 1/2) = m] for a real law, to the last bits of a float.

    >>> round(rounded_pmf(Gaussian("0.3"), 1), 12)
    0.047790065621
    """
    low, high = Fraction(2 * m - 1, 2), Fraction(2 * m + 1, 2)
    if m > 0:
        return _number(lambda p: _tail(law, low, p) - _tail(law, high, p))
    return _number(lambda p: _cdf(law, high, p) - _cdf(law, low, p))


def cdf(law: Law, x: Real) -> float:
    """P[Z <= x], accurate in the far tail as well."""
    at = rational(x, "x")
    return _number(lambda p: _cdf(law, at, p))


def tail(law: Law, x: Real) -> float:
    """P[Z >= x], accurate in the far tail as well. For a discrete Gaussian the time grows with its spread.

    >>> tail(Gaussian(1), 30)
    4.906713927148187e-198
    >>> tail(DiscreteLaplace(1), 0) > tail(Laplace(1), 0)
    True
    """
    at = rational(x, "x")
    return _number(lambda p: _tail(law, at, p))


def _number(value: Callable[[int], arb]) -> float:
    """The float nearest to a positive real, from balls of rising precision."""

    def decide(ball: arb) -> float | None:
        if ball.rel_accuracy_bits() >= _ACCURATE:
            return float(ball.mid())
        return 0.0 if abs(ball) < arb((1, -_VANISHING)) else None

    return refine(value, decide, 128)


def _cdf(law: Law, x: Fraction, accuracy: int) -> arb:
    if isinstance(law, Gumbel):
        return (-exactly(-x / law.scale).exp()).exp()
    return _tail(law, -x, accuracy)


def _tail(law: Law, x: Fraction, accuracy: int) -> arb:
    if isinstance(law, Gumbel):
        return -(-exactly(-x / law.scale).exp()).expm1()
    if isinstance(law, Gaussian):
        return (exactly(x / law.sigma) / arb(2).sqrt()).erfc() / 2
    if isinstance(law, Laplace):
        half = exactly(-abs(x) / law.scale).exp() / 2
        return half if x >= 0 else 1 - half
    first = ceil(x)
    if first <= 0:
        return 1 - _tail(law, Fraction(1 - first), accuracy)
    if isinstance(law, DiscreteLaplace):
        rate = exactly(-1 / law.scale).exp()
        return exactly(-first / law.scale).exp() / (1 + rate)
    return _gaussian_sum(law.variance, first, accuracy) / _theta(law.variance, accuracy)


def _gaussian_sum(variance: Fraction, first: int, accuracy: int) -> arb:
    """The sum of exp(-z**2 / (2 variance)) over z >= first > 0."""
    term = exactly(-first * first / (2 * variance)).exp()
    ratio = exactly(-(2 * first + 1) / (2 * variance)).exp()
    shrink = exactly(-1 / variance).exp()
    small = term * arb((1, -accuracy))
    total = arb(0)
    while not (term < small and ratio < 1):
        total += term
        term *= ratio
        ratio *= shrink
    rest = term / (1 - ratio)  # the ratios only fall, so a geometric series is an upper bound
    return total + arb(rest / 2, rest / 2)


def _theta(variance: Fraction, accuracy: int) -> arb:
    """The sum of exp(-z**2 / (2 variance)) over all whole numbers z, by Poisson summation when it is wide."""
    if variance * 6 < 1:
        return 1 + 2 * _gaussian_sum(variance, 1, accuracy)
    rate = 2 * arb.pi() ** 2 * exactly(variance)
    count = isqrt(floor(accuracy / (3 * variance))) + 2
    terms = [(-rate * j * j).exp() for j in range(1, count + 1)]
    rest = terms[-1]  # what follows is at most this: the ratio is below 1/2
    return (2 * arb.pi() * exactly(variance)).sqrt() * (1 + 2 * sum(terms, arb(0)) + arb(rest, rest) * 2)
