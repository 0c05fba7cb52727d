"""The noise laws by name, and the probabilities that they declare.

A law is public and exact: its parameter is the rational that was typed. The probabilities are computed in
balls until they are known to more digits than a float holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TypeAlias

from flint import arb

from snugdp.accounting import discrete
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
class _Scaled:
    """A law of this scale."""

    scale: Fraction

    def __init__(self, scale: Real) -> None:
        object.__setattr__(self, "scale", _positive(scale, "scale"))


class Laplace(_Scaled):
    """The real law with density exp(-|z| / scale) / (2 scale).

    >>> Laplace(0.1).scale
    Fraction(1, 10)
    """


@dataclass(frozen=True, init=False)
class Gaussian:
    """The normal law with mean zero and standard deviation ``sigma``."""

    sigma: Fraction

    def __init__(self, sigma: Real) -> None:
        object.__setattr__(self, "sigma", _positive(sigma, "sigma"))


class Gumbel(_Scaled):
    """The real law with distribution function exp(-exp(-z / scale)). It is not symmetric."""


class DiscreteLaplace(_Scaled):
    """The law on whole numbers with P(x) proportional to exp(-|x| / scale)."""


@dataclass(frozen=True, init=False)
class DiscreteGaussian:
    """The law on whole numbers with P(x) proportional to exp(-x**2 / (2 variance))."""

    variance: Fraction

    def __init__(self, variance: Real) -> None:
        object.__setattr__(self, "variance", _positive(variance, "variance"))


@dataclass(frozen=True)
class Finite:
    """A law on the whole numbers ``lowest``, ``lowest + 1``, ...: each as likely as its weight, a whole number, says.

    >>> law = Finite(-1, (1, 2, 1))
    >>> law.mean, law.chance(0), law.at_least(0), law.at_least(2)
    (Fraction(0, 1), Fraction(1, 2), Fraction(3, 4), Fraction(0, 1))
    """

    lowest: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 0 or not self.weights[0] or not self.weights[-1]:
            raise ValueError("the weights of a law must be at least 0, and those of its ends above 0")

    @property
    def highest(self) -> int:
        """The largest number."""
        return self.lowest + len(self.weights) - 1

    @cached_property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(self.weights)

    @cached_property
    def mean(self) -> Fraction:
        """The mean."""
        return self.lowest + Fraction(sum(i * weight for i, weight in enumerate(self.weights)), self.total)

    def chance(self, x: int) -> Fraction:
        """P[Z = x]."""
        place = x - self.lowest
        return Fraction(self.weights[place] if 0 <= place < len(self.weights) else 0, self.total)

    def at_least(self, x: int) -> Fraction:
        """P[Z >= x]."""
        return Fraction(sum(self.weights[max(x - self.lowest, 0) :]), self.total)


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
        return _number(lambda: exactly(rate / 2).tanh() * exactly(-abs(at) * rate).exp())
    exponent = -at * at / (2 * law.variance)
    return _number(lambda: exactly(exponent).exp() / discrete.mass(law.variance))


def rounded_pmf(law: Continuous, m: int) -> float:
    """P[floor(Z + 1/2) = m] for a real law, to the last bits of a float.

    >>> round(rounded_pmf(Gaussian("0.3"), 1), 12)
    0.047790065621
    """
    low, high = Fraction(2 * m - 1, 2), Fraction(2 * m + 1, 2)
    if m > 0:
        return _number(lambda: _tail(law, low) - _tail(law, high))
    return _number(lambda: _cdf(law, high) - _cdf(law, low))


def cdf(law: Law, x: Real) -> float:
    """P[Z <= x], accurate in the far tail as well."""
    at = rational(x, "x")
    return _number(lambda: _cdf(law, at))


def tail(law: Law, x: Real) -> float:
    """P[Z >= x], accurate in the far tail as well. For a discrete Gaussian the time grows with its spread.

    >>> tail(Gaussian(1), 30)
    4.906713927148187e-198
    >>> tail(DiscreteLaplace(1), 0) > tail(Laplace(1), 0)
    True
    """
    at = rational(x, "x")
    return _number(lambda: _tail(law, at))


def _number(value: Callable[[], arb]) -> float:
    """The float nearest to a positive real, from balls of rising precision."""

    def decide(ball: arb) -> float | None:
        if ball.rel_accuracy_bits() >= _ACCURATE:
            return float(ball.mid())
        return 0.0 if abs(ball) < arb((1, -_VANISHING)) else None

    return refine(lambda _: value(), decide, 128)


def _cdf(law: Law, x: Fraction) -> arb:
    if isinstance(law, Gumbel):
        return (-exactly(-x / law.scale).exp()).exp()
    return _tail(law, -x)


def _tail(law: Law, x: Fraction) -> arb:
    if isinstance(law, Gumbel):
        return -(-exactly(-x / law.scale).exp()).expm1()
    if isinstance(law, Gaussian):
        return (exactly(x / law.sigma) / arb(2).sqrt()).erfc() / 2
    if isinstance(law, Laplace):
        half = exactly(-abs(x) / law.scale).exp() / 2
        return half if x >= 0 else 1 - half
    first = ceil(x)
    if first <= 0:
        return 1 - _tail(law, Fraction(1 - first))
    if isinstance(law, DiscreteLaplace):
        rate = exactly(-1 / law.scale).exp()
        return exactly(-first / law.scale).exp() / (1 + rate)
    return discrete.tail(law.variance, first)
