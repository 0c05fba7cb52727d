"""Gaussian differential privacy: what N(mu, 1) against N(0, 1) leaks.

``delta`` and ``epsilon`` are rounded up and ``mu`` is rounded down, so each can be relied on as it stands.
Every number given is read exactly as typed. Statements and proofs: gaussian.proof.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb, fmpq

from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, rational

_FAR = arb(1 << 10)  # beyond this the tail is taken from its expansion: 12 terms give 190 bits
_TERMS = 12
_KEPT = 1024  # answers that are kept: plans ask for the same few budgets again and again


def delta(mu: Real, epsilon: Real) -> float:
    """The smallest delta such that mu-Gaussian DP implies (epsilon, delta)-DP; any real epsilon.

    Guarantee: not below Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu), and above it by less
    than one part in 10^14 (gaussian.proof.md, Proposition 1).

    >>> round(delta(1, 1), 12)
    0.126936737507
    >>> delta(0, -1) >= 1 - math.exp(-1)
    True
    """
    size, level = nonnegative(mu, "mu"), rational(epsilon, "epsilon")
    return min(1.0, balls.above(lambda: delta_ball(size**2, level)))


def epsilon(mu: Real, delta: Real) -> float:
    """The smallest epsilon >= 0 such that mu-Gaussian DP implies (epsilon, delta)-DP.

    Guarantee: mu-Gaussian DP implies (epsilon, delta)-DP with the float returned, read in binary or as it
    prints. Infinite when delta = 0 and mu > 0: no finite epsilon exists.

    >>> round(epsilon("0.5", "1e-6"), 6)
    2.254085
    """
    return _smallest_epsilon(nonnegative(mu, "mu"), probability(delta, "delta"))


@lru_cache(maxsize=_KEPT)
def _smallest_epsilon(size: Fraction, goal: Fraction) -> float:
    if balls.at_most(lambda: delta_ball(size**2, Fraction(0)), goal):
        return 0.0
    if goal == 0:
        return math.inf
    high = balls.above(lambda: epsilon_ball(size**2, goal))
    return roots.smallest(lambda x: delta_ball(size**2, x), goal, 0.0, high)


def mu(epsilon: Real, delta: Real) -> float:
    """The largest mu such that mu-Gaussian DP implies (epsilon, delta)-DP: what the budget affords.

    Guarantee: mu-Gaussian DP implies (epsilon, delta)-DP with the float returned, read in binary or as it
    prints. Zero when delta = 0.

    >>> round(mu(1, "1e-6"), 9)
    0.236704381
    """
    return _largest_mu(nonnegative(epsilon, "epsilon"), probability(delta, "delta"))


@lru_cache(maxsize=_KEPT)
def _largest_mu(level: Fraction, goal: Fraction) -> float:
    if goal == 0:
        return 0.0
    low = balls.below(lambda: mu_ball(level, goal))
    return roots.largest(lambda x: delta_ball(x**2, level), goal, low)


def threshold(sigma: Real, delta: Real) -> float:
    """The point that a centred Gaussian of deviation ``sigma`` passes with probability delta, rounded up.

    Guarantee: P[sigma Z > threshold] <= delta for a standard normal Z. Infinite when delta = 0.

    >>> round(threshold(1, "0.025"), 6)
    1.959964
    """
    scale, tail = nonnegative(sigma, "sigma"), probability(delta, "delta")
    if tail == 0:
        return math.inf if scale else 0.0
    return balls.above(lambda: balls.ball(scale) * tail_quantile(tail))


def delta_ball(mu_squared: Fraction, epsilon: Fraction) -> arb:
    """delta_G(mu; epsilon) as a ball at the present precision: exact arguments, any real epsilon."""
    if mu_squared == 0:
        return arb(0) if epsilon >= 0 else 1 - balls.exp(balls.ball(epsilon))
    square, level = (fmpq(value.numerator, value.denominator) for value in (mu_squared, epsilon))
    mu, exponent = arb(square).sqrt(), arb(level)
    a, b = arb(square / 2 - level) / mu, arb(-square / 2 - level) / mu
    value = cdf(a) - _weighted_tail(a, b, exponent)
    floor = arb(0) if level >= 0 else 1 - balls.exp(exponent)
    return value.max(floor)


def _weighted_tail(a: arb, b: arb, epsilon: arb) -> arb:
    """exp(epsilon) Phi(b), written phi(a) Phi(b)/phi(b) where the first factor could overflow."""
    if b < -_FAR:
        return density(a) * _mills(-b)
    return balls.exp(epsilon) * cdf(b)


def cdf(x: arb) -> arb:
    """The standard normal distribution function."""
    if x < -_FAR:
        return density(x) * _mills(-x)
    if x > _FAR:
        return 1 - density(x) * _mills(x)
    return (-x / arb(2).sqrt()).erfc() / 2


def _mills(x: arb) -> arb:
    """(1 - Phi(x))/phi(x) for large x: between two partial sums of its alternating expansion."""
    square, term, total = 1 / (x * x), arb(1), arb(0)
    for order in range(_TERMS):
        total += term
        term *= -(2 * order + 1) * square
    return total.union(total + term) / x


def density(x: arb) -> arb:
    """The standard normal density."""
    return balls.exp(-(x * x) / 2) / (2 * arb.pi()).sqrt()


def tail_quantile(tail: Fraction) -> arb:
    """The z with P[Z > z] = tail, for 0 < tail < 1 and a standard normal Z."""
    return arb(2).sqrt() * balls.ball(2 * tail).erfcinv()


def epsilon_ball(mu_squared: Fraction, delta: Fraction) -> arb:
    """An epsilon that is always enough: delta_G(mu; epsilon) <= Phi(mu/2 - epsilon/mu) = delta."""
    mu = balls.ball(mu_squared).sqrt()
    return mu * (mu / 2 + tail_quantile(delta))


def mu_ball(epsilon: Fraction, delta: Fraction) -> arb:
    """A mu that is always affordable: the larger of the two that gaussian.proof.md, Proposition 3, gives."""
    z, level = tail_quantile(delta), balls.ball(epsilon)
    root = (z * z + 2 * level).sqrt()
    crude = 2 * level / (root + z) if delta < Fraction(1, 2) else root - z
    return crude.max(2 * tail_quantile((1 - delta) / 2))


def coin(epsilon: Fraction) -> arb:
    """The mu^2 of the Gaussian pair that dominates a coin of this epsilon, and with it every pure release.

    Statement and proof: gaussian.proof.md, Proposition 4. mu = 2 z with P[Z > z] = 1/(1 + e^epsilon).
    """
    return 8 * (balls.ball(epsilon) / 2).tanh().erfinv() ** 2


def positive(value: Real, name: str) -> Fraction:
    """The number as typed, refused when it is not above zero."""
    number = rational(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be above 0")
    return number


def nonnegative(value: Real, name: str) -> Fraction:
    """The number as typed, refused when it is negative."""
    number = rational(value, name)
    if number < 0:
        raise ValueError(f"{name} must be at least 0")
    return number


def probability(value: Real, name: str) -> Fraction:
    """The number as typed, refused when it is outside [0, 1)."""
    number = rational(value, name)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be at least 0 and below 1")
    return number
