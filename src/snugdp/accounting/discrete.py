"""Integer noise: thresholds that an integer distance passes rarely, and the Gaussian DP of discrete noise.

The rule is: pass if D + Z >= tau. A threshold is good for ``delta`` if P[Z >= tau] <= delta: that is the
probability of passing at D = 0. Statements and proofs: discrete.proof.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple, TypeAlias

from flint import arb, ctx

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import positive
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational

EXACT_VARIANCE = 10**6  # up to here the mass of a discrete Gaussian is summed term by term
EXACT_SENSITIVITY = 10**4

_Passing: TypeAlias = Callable[[int], arb]


class Threshold(NamedTuple):
    """The smallest threshold found, and the probability of passing it at distance zero (rounded up)."""

    tau: int
    passing: float


def laplace_threshold(epsilon: Real, delta: Real) -> float:
    """The tau >= 0 with P[Z > tau] <= delta for Laplace noise of scale 1/epsilon; rounded up.

    >>> round(laplace_threshold(1, "1e-6"), 6)
    13.122363
    """
    rate, tail_mass = positive(epsilon, "epsilon"), _tail_probability(delta)
    if tail_mass >= Fraction(1, 2):
        return 0.0
    return balls.above(lambda: -balls.ball(2 * tail_mass).log() / balls.ball(rate))


def discrete_laplace_threshold(epsilon: Real, delta: Real) -> Threshold:
    """The smallest tau >= 0 with P[Z >= tau] <= delta, where P[Z = z] is proportional to exp(-epsilon |z|).

    >>> discrete_laplace_threshold("0.092", "1e-9").tau
    219
    """
    rate, goal = positive(epsilon, "epsilon"), _tail_probability(delta)

    def passing(tau: int) -> arb:
        return balls.exp(balls.ball(-rate * tau)) / (1 + balls.exp(balls.ball(-rate)))

    start = balls.integer_above(lambda: (passing(0) / balls.ball(goal)).log() / balls.ball(rate))
    return _smallest(passing, goal, start)


def discrete_gaussian_threshold(sigma: Real, delta: Real) -> Threshold:
    """The smallest tau >= 0 with P[Z >= tau] <= delta, for P[Z = z] proportional to exp(-z^2/(2 sigma^2)).

    Guarantee: P[Z >= tau] <= passing <= delta. Above ``EXACT_VARIANCE`` the tail is bounded by the continuous
    one at tau - 1/2 (discrete.proof.md, Corollary 3), and tau may be larger than the smallest by one.

    >>> discrete_gaussian_threshold("9.62", "1e-10").tau
    62
    """
    scale, goal = positive(sigma, "sigma"), _tail_probability(delta)

    def passing(tau: int) -> arb:
        if scale**2 <= EXACT_VARIANCE or tau <= 0:
            return tail(scale**2, tau)
        return gaussian.cdf(-balls.ball((tau - Fraction(1, 2)) / scale))

    start = balls.integer_above(lambda: balls.ball(scale) * gaussian.tail_quantile(goal) + arb(0.5))
    return _smallest(passing, goal, start)


def discrete_gaussian_mu(sigma: Real, sensitivity: int = 1) -> float:
    """The smallest mu such that discrete Gaussian noise on an integer of this sensitivity is mu-Gaussian DP.

    Guarantee: the noise is mu-Gaussian DP (discrete.proof.md, Theorem 1). It is *not* (1/sigma)-Gaussian DP.

    >>> round(discrete_gaussian_mu(1), 6), round(discrete_gaussian_mu(8), 6)
    (1.04576, 0.125081)
    """
    scale = positive(sigma, "sigma")
    return balls.above(lambda: mu_ball(scale**2, abs(int(sensitivity))))


def mu_ball(variance: Fraction, sensitivity: int) -> arb:
    """The Gaussian DP parameter as a ball: the two normal quantiles on either side of the centre."""
    if sensitivity == 0:
        return arb(0)
    if variance > EXACT_VARIANCE and sensitivity > EXACT_SENSITIVITY:
        return sensitivity * mu_ball(variance, 1)
    return _quantile(variance, sensitivity // 2 + 1) + _quantile(variance, (sensitivity + 1) // 2)


def tail(variance: Fraction, start: int) -> arb:
    """P[Z >= start] of the discrete Gaussian."""
    if start <= 0:
        return 1 - tail(variance, 1 - start)
    if variance > EXACT_VARIANCE or start == 1:  # few terms next to the centre, or a tail of too many
        inside = _power_sum(variance, 1, start - 1) if start > 1 else arb(0)
        return (1 - (1 + 2 * inside) / mass(variance)) / 2
    return _power_sum(variance, start, None) / mass(variance)


def mass(variance: Fraction) -> arb:
    """The sum of exp(-z^2/(2 variance)) over all integers, by whichever of its two expansions is fast."""
    if variance < 1:
        return 1 + 2 * _power_sum(variance, 1, None)
    dual = 2 * arb.pi() ** 2 * balls.ball(variance)  # Poisson summation
    return (2 * arb.pi() * balls.ball(variance)).sqrt() * (1 + 2 * _squares((-dual).exp(), 1, None))


def _power_sum(variance: Fraction, first: int, last: int | None) -> arb:
    return _squares(balls.exp(balls.ball(-1 / (2 * variance))), first, last)


def _squares(x: arb, first: int, last: int | None) -> arb:
    """The sum of x^(j^2) over first <= j <= last, for 0 < x < 1; to infinity if last is None.

    The rest after j terms is at most x^(j^2)/(1 - x^(2j+1)): each further ratio is smaller.
    """
    term, ratio, square = x ** (first**2), x ** (2 * first + 1), x**2
    total, j = arb(0), first
    small = arb((1, -ctx.prec))
    while last is None or j <= last:
        rest = term / (1 - ratio)
        if last is None and (rest < total * small or not rest.is_finite()):
            return total + rest.union(arb(0))
        total += term
        term, ratio, j = term * ratio, ratio * square, j + 1
    return total


def _quantile(variance: Fraction, start: int) -> arb:
    """The normal quantile z whose tail P[N > z] is P[Z >= start]."""
    return arb(2).sqrt() * (2 * tail(variance, start)).erfcinv()


def _smallest(passing: _Passing, goal: Fraction, start: int) -> Threshold:
    """The smallest tau >= 0 that passes with probability at most ``goal``, searched from ``start``."""
    tau = max(0, start)
    while not balls.at_most(partial(passing, tau), goal):
        tau += 1
    while tau > 0 and balls.at_most(partial(passing, tau - 1), goal):
        tau -= 1
    return Threshold(tau, balls.above(partial(passing, tau)))


def _tail_probability(value: Real) -> Fraction:
    number = rational(value, "delta")
    if not 0 < number < 1:
        raise ValueError("delta must be above 0 and below 1: no finite threshold is never passed")
    return number
