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
    return _delta(lambda: _gaussian_pair(centre, spread, level))


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


def objective_add(m: Real, epsilon: Real) -> float:
    """Objective perturbation, the data set against itself with one row more (any admissible loss).

    >>> round(objective_add("0.25", 1), 14)
    5.84854421e-06
    """
    size, level = nonnegative(m, "m"), rational(epsilon, "epsilon")
    if level >= size**2 / 2:
        return _delta(lambda: 2 * delta_ball(size**2, level))
    return _delta(lambda: 1 - 2 * balls.exp(balls.ball(level)) * cdf(-balls.ball(size)))


def objective_remove(m: Real, e_c: Real, epsilon: Real) -> float:
    """Objective perturbation, the data set against itself with one row less (loss of class T).

    >>> round(objective_remove("0.25", "0.96875", 1), 14)
    2.9242721e-06
    """
    size, limit = nonnegative(m, "m") ** 2, nonnegative(e_c, "e_c")
    return _floored(size, limit, Fraction(0), rational(epsilon, "epsilon"))


def objective_remove_general(m: Real, beta: Real, epsilon: Real) -> float:
    """Objective perturbation, the data set against itself with one row less (any admissible loss).

    >>> objective_remove_general("0.25", 0, 1) == objective_remove("0.25", 0, 1)
    True
    """
    size, shift = nonnegative(m, "m") ** 2, nonnegative(beta, "beta")
    return _floored(size, Fraction(0), shift, rational(epsilon, "epsilon"))


def objective_limit(m: Real, kappa: Real) -> Fraction:
    """e_c = max(kappa, 2 kappa - m^2/2), with kappa = B^2/lambda: exact.

    >>> objective_limit("0.25", "0.5")
    Fraction(31, 32)
    """
    size, ratio = nonnegative(m, "m") ** 2, nonnegative(kappa, "kappa")
    return max(ratio, 2 * ratio - size / 2)


def objective_beta(kappa: Real) -> float:
    """Beta = log(1 + kappa), with kappa = B^2/lambda: rounded up."""
    ratio = nonnegative(kappa, "kappa")
    return balls.above(lambda: balls.ball(ratio).log1p())


def _floored(size: Fraction, floor: Fraction, shift: Fraction, epsilon: Fraction) -> float:
    """The loss shift + max(Gaussian loss, floor)."""
    level = epsilon - shift
    if level >= floor:
        return _delta(lambda: delta_ball(size, level))
    return _delta(lambda: 1 - balls.exp(balls.ball(level - floor)) * (1 - delta_ball(size, floor)))


def _gaussian_pair(centre: Fraction, spread: Fraction, epsilon: Fraction) -> arb:
    """N(0, 1) against N(m, s^2), m^2 = centre and s^2 = spread: the loss is a parabola in the outcome."""
    if spread == 1:
        return delta_ball(centre, epsilon)
    m, s = balls.ball(centre).sqrt(), balls.ball(spread).sqrt()
    weight = balls.exp(balls.ball(epsilon))
    a, c = balls.ball((1 / spread - 1) / 2), balls.ball(centre / (2 * spread) - epsilon) + s.log()
    discriminant = balls.ball(centre / spread**2) - 4 * a * c
    nowhere = arb(0) if spread > 1 else 1 - weight  # the loss is below epsilon everywhere, or above it
    if discriminant < 0:
        return nowhere
    if not discriminant > 0:
        return arb(0.5, 0.5)
    q = (m / balls.ball(spread) + discriminant.sqrt()) / 2
    low, high = (c / q, q / a) if spread < 1 else (q / a, c / q)
    low_q, high_q = (low - m) / s, (high - m) / s
    if spread < 1:
        value = cdf(low) + cdf(-high) - weight * (cdf(low_q) + cdf(-high_q))
    else:
        value = _between(low, high) - weight * _between(low_q, high_q)
    return value.max(arb(0)).max(1 - weight)


def _between(low: arb, high: arb) -> arb:
    """P[low < Z < high], computed on the side where the two ends are small."""
    return cdf(-low) - cdf(-high) if low > 0 else cdf(high) - cdf(low)


def _delta(function: balls.Function) -> float:
    return min(1.0, max(0.0, balls.above(function)))
