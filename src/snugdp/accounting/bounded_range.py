"""Draws whose privacy losses lie in a short interval: what its length costs as a Gaussian part, and back.

A draw from a set with probabilities proportional to exp(-t V) is such a draw: between neighbours the logarithm of its
probabilities changes by a number that lies in an interval of length ``range``. Both functions round against whoever
asks. Proof: ``bounded_range.proof.md``.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from snugdp.accounting import gaussian
from snugdp.numerics import balls


def mu_squared(loss_range: Fraction) -> Fraction:
    """The square of the Gaussian part that a draw of this range costs: (2 Phi^-1(sigma(range/2)))², rounded up.

    Guarantee: such a draw is dominated by the Gaussian pair of this mu squared (``bounded_range.proof.md``, Theorem 1).

    >>> round(float(mu_squared(Fraction(1))) ** 0.5, 6)
    0.623893
    """
    if loss_range <= 0:
        raise ValueError("the range of a draw must be greater than 0")

    def square() -> arb:
        rare = 2 / (1 + (balls.ball(loss_range) / 2).exp())  # 2 sigma(-range/2)
        return 8 * rare.erfcinv() ** 2

    return balls.rational_above(square)


def range_at(mu_squared: Fraction) -> Fraction:
    """The range of a draw that a Gaussian part of this square pays for: 2 log(Phi(mu/2)/Phi(-mu/2)), rounded down.

    Guarantee: a draw of this range is dominated by the Gaussian pair (``bounded_range.proof.md``, Theorem 1).

    >>> round(float(range_at(Fraction(1))), 6)
    1.613931
    """
    if mu_squared <= 0:
        raise ValueError("the Gaussian part of a draw must be greater than 0")

    def half() -> arb:
        middle = balls.ball(mu_squared / 4).sqrt()
        return (gaussian.cdf(middle) / gaussian.cdf(-middle)).log()

    return 2 * Fraction(balls.below(half))
