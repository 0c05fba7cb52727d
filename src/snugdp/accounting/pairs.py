"""Hockey sticks: how far a pair of distributions is from (epsilon, 0)-indistinguishable.

For a pair (P, Q) every function returns, rounded up, sup over events S of P(S) - exp(epsilon) Q(S), for any
real epsilon, negative ones included: that is what adaptive composition needs. Proofs: pairs.proof.md.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from snugdp.accounting import discrete
from snugdp.accounting.gaussian import cdf, delta_ball, nonnegative
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational


def gaussian_pair(mean: Real, variance: Real, epsilon: Real, *, swapped: bool = False) -> float:
    """N(0, 1) against N(mean, variance); with ``swapped``, N(mean, variance) against N(0, 1).

    >>> round(gaussian_pair(1, "0.5", "0.5"), 9)
    0.372603773
    """
    centre, spread = rational(mean, "mean") ** 2, rational(variance, "variance")
    level = rational(epsilon, "epsilon")
    if spread <= 0:
        raise ValueError("variance must be above 0")
    if swapped:
        centre, spread = centre / spread, 1 / spread
    if spread == 1:
        return _delta(lambda: delta_ball(centre, level))
    return _delta(lambda: GaussianProfile(centre, spread).at(level))


class GaussianProfile:
    """N(0, 1) against N(m, s^2) with s != 1, in balls at the present precision: the loss is a parabola in the outcome.

    ``mean_squared`` is m^2 and ``variance`` is s^2 (pairs.proof.md, 1).
    """

    def __init__(self, mean_squared: Fraction, variance: Fraction) -> None:
        self.narrow = variance < 1
        self.m, self.s = balls.ball(mean_squared).sqrt(), balls.ball(variance).sqrt()
        self.a = balls.ball((1 / variance - 1) / 2)
        self.b = self.m / balls.ball(variance)
        self.c = balls.ball(mean_squared / (2 * variance)) + self.s.log()

    def at(self, epsilon: Fraction) -> arb:
        """The hockey stick; everything between 0 and 1 while the sign of the discriminant is open."""
        level = balls.ball(epsilon)
        weight, c = balls.exp(level), self.c - level
        floor = (1 - weight).max(arb(0))
        discriminant = self.b * self.b - 4 * self.a * c
        if discriminant < 0:  # the loss is below epsilon everywhere, or above it
            return floor
        if not discriminant > 0:
            return arb(0.5, 0.5)
        q = (self.b + discriminant.sqrt()) / 2
        near, far = c / q, q / self.a
        near_q, far_q = (near - self.m) / self.s, (far - self.m) / self.s
        if self.narrow:
            value = cdf(near) + cdf(-far) - weight * (cdf(near_q) + cdf(-far_q))
        else:
            value = cdf(near) - cdf(far) - weight * (cdf(near_q) - cdf(far_q))
        return value.max(floor)


def two_outcomes(first: Real, second: Real, epsilon: Real) -> float:
    """A coin that shows heads with probability ``first`` against one with probability ``second``.

    >>> two_outcomes("0.75", "0.25", 0)
    0.5
    """
    p, q, level = rational(first, "first"), rational(second, "second"), rational(epsilon, "epsilon")
    if not (0 <= p <= 1 and 0 <= q <= 1):
        raise ValueError("both probabilities must be at least 0 and at most 1")

    def hockey_stick() -> arb:
        weight = balls.exp(balls.ball(level))
        heads, tails = balls.ball(p) - weight * balls.ball(q), balls.ball(1 - p) - weight * balls.ball(1 - q)
        return heads.max(arb(0)) + tails.max(arb(0))

    return _delta(hockey_stick)


def laplace(loss: Real, epsilon: Real) -> float:
    """Laplace noise against the same noise moved by ``loss`` times its scale.

    >>> laplace(1, 1)
    0.0
    """
    bound, level = nonnegative(loss, "loss"), rational(epsilon, "epsilon")
    if level >= bound:
        return 0.0
    exponent = level if level <= -bound else (level - bound) / 2
    return _delta(lambda: -balls.ball(exponent).expm1())


def discrete_gaussian(variance: Real, sensitivity: int, epsilon: Real) -> float:
    """Discrete Gaussian noise against the same noise moved by an integer.

    Guarantee: never below the exact value, and within a float's accuracy of it while the variance parameter
    is at most ``discrete.EXACT_VARIANCE``; above that, the Gaussian bound of discrete.proof.md, Theorem 1.

    >>> round(discrete_gaussian(4, 1, 1), 12)
    0.007248776846
    """
    spread, level = rational(variance, "variance"), rational(epsilon, "epsilon")
    if spread <= 0:
        raise ValueError("variance must be above 0")
    distance = abs(int(sensitivity))
    if distance == 0:
        return _delta(lambda: delta_ball(Fraction(0), level))
    if spread > discrete.EXACT_VARIANCE:
        mu = balls.rational_above(lambda: discrete.mu_ball(spread, distance))
        return _delta(lambda: delta_ball(mu**2, level))
    middle = level * spread / distance
    first = (middle - Fraction(distance, 2)).__floor__() + 1
    return _delta(
        lambda: discrete.tail(spread, first) - balls.exp(balls.ball(level)) * discrete.tail(spread, first + distance)
    )


def _delta(function: balls.Function) -> float:
    return min(1.0, max(0.0, balls.above(function)))
