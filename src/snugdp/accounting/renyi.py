"""Renyi differential privacy: curves, their sum, and one sharp conversion at the end.

A curve gives, for an order alpha > 1, an upper end of the Renyi divergence. Compose first and convert once:
converting each part and adding the results is valid but loose. Proofs: renyi.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from snugdp.accounting.gaussian import nonnegative, probability
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational, typed_up

Curve: TypeAlias = Callable[[Fraction], float]

ORDERS = (
    *(1 + Fraction(n, 100) for n in range(5, 100, 5)),
    *(Fraction(n, 4) for n in range(8, 65)),
    *(Fraction(n) for n in range(17, 65)),
    *(Fraction(2**n) for n in range(7, 21)),
)


def gaussian(alpha: Real, mu: Real) -> float:
    """The divergence alpha mu^2/2 of the Gaussian mechanism: exact, rounded up.

    >>> gaussian(2, 1)
    1.0
    """
    return typed_up(_order(alpha) * nonnegative(mu, "mu") ** 2 / 2)


def laplace(alpha: Real, loss: Real) -> float:
    """The divergence of Laplace noise moved by ``loss`` times its scale: exact, rounded up."""
    order, bound = _order(alpha), nonnegative(loss, "loss")
    weight = order / (2 * order - 1)

    def divergence() -> arb:
        away = balls.ball(weight) + balls.ball(1 - weight) * balls.exp(balls.ball((1 - 2 * order) * bound))
        return balls.ball(bound) + away.log() / balls.ball(order - 1)

    return balls.above(divergence)


def pure(alpha: Real, epsilon: Real) -> float:
    """The largest divergence of any epsilon-DP mechanism, reached by randomised response; rounded up.

    >>> pure(2, 1) < 0.75 < gaussian(2, 1)
    True
    """
    order, bound = _order(alpha), nonnegative(epsilon, "epsilon")

    def divergence() -> arb:
        away = (1 + balls.exp(balls.ball((1 - 2 * order) * bound))) / (1 + balls.exp(-balls.ball(bound)))
        return balls.ball(bound) + away.log() / balls.ball(order - 1)

    return balls.above(divergence)


def smooth_gaussian(alpha: Real, beta: Real, sigma: Real) -> float:
    """Gaussian noise of deviation sigma times a beta-smooth sensitivity: rho(alpha), rounded up.

    Infinite unless alpha (1 - exp(-2 beta)) < 1.

    >>> round(smooth_gaussian("13.8", "0.0108", "8.8"), 9)
    0.125668115
    """
    order, smooth = _order(alpha), nonnegative(beta, "beta")
    scale = rational(sigma, "sigma")
    if scale <= 0:
        raise ValueError("sigma must be above 0")

    def room() -> arb:
        return balls.ball(order) * balls.ball(-2 * smooth).exp() - balls.ball(order - 1)

    def divergence() -> arb:
        moved = balls.ball(order / (2 * scale**2)) * balls.ball(-2 * smooth).exp() / room()
        return moved + (room().log() + balls.ball(2 * order * smooth)) / balls.ball(2 * (1 - order))

    return math.inf if balls.at_most(room, Fraction(0)) else balls.above(divergence)


def compose(*curves: Curve) -> Curve:
    """The curve of adaptive composition: the sum, rounded up.

    >>> compose(lambda a: gaussian(a, 1), lambda a: gaussian(a, 1))(Fraction(2))
    2.0
    """

    def total(alpha: Fraction) -> float:
        parts = [curve(alpha) for curve in curves]
        return math.inf if math.inf in parts else typed_up(sum((rational(p, "rho") for p in parts), Fraction()))

    return total


def delta(alpha: Real, rho: Real, epsilon: Real) -> float:
    """The delta at ``epsilon`` of a mechanism of divergence at most rho at order alpha; rounded up.

    Guarantee: holds for sub-probabilities as well (renyi.proof.md, Lemma 1).

    >>> delta(2, "0.5", 3) < 0.021
    True
    """
    order, bound, level = _order(alpha), nonnegative(rho, "rho"), rational(epsilon, "epsilon")
    return min(1.0, balls.above(lambda: _delta(order, bound, level)))


def epsilon(alpha: Real, rho: Real, delta: Real) -> float:
    """The epsilon >= 0 at ``delta`` of a mechanism of divergence at most rho at order alpha; rounded up.

    >>> round(epsilon("53.78", "0.808", "1e-3"), 9)
    0.844608733
    """
    order, bound, goal = _order(alpha), nonnegative(rho, "rho"), probability(delta, "delta")
    if goal == 0:
        return math.inf

    def converted() -> arb:
        logs = -balls.ball(goal).log() - balls.ball(order).log()
        return balls.ball(bound) + logs / balls.ball(order - 1) + balls.ball(1 - 1 / order).log()

    return max(0.0, balls.above(converted))


def best_delta(curve: Curve, epsilon: Real, orders: Iterable[Fraction] = ORDERS) -> float:
    """The smallest delta over the orders; each is valid, so the least is."""
    found = (delta(order, rho, epsilon) for order in orders if math.isfinite(rho := curve(order)))
    return min(found, default=1.0)


def best_epsilon(curve: Curve, delta: Real, orders: Iterable[Fraction] = ORDERS) -> float:
    """The smallest epsilon over the orders; each is valid, so the least is.

    >>> best_epsilon(lambda a: gaussian(a, 1), "1e-5") < 4.8
    True
    """
    found = (epsilon(order, rho, delta) for order in orders if math.isfinite(rho := curve(order)))
    return min(found, default=math.inf)


def tested_delta(alpha: Real, limit: Real, release: Real, failure: Real, epsilon: Real) -> float:
    """The delta of a release that runs only if a test says its divergence is at most ``limit``.

    ``release`` is the divergence of the test's own release at this order; ``failure`` bounds the
    probability that it passes a data set whose divergence is above the limit (renyi.proof.md, Theorem 3).
    """
    order, level = _order(alpha), rational(epsilon, "epsilon")
    total = nonnegative(limit, "limit") + nonnegative(release, "release")
    lost = probability(failure, "failure")
    return min(1.0, balls.above(lambda: balls.ball(lost) + _delta(order, total, level)))


def _delta(order: Fraction, rho: Fraction, epsilon: Fraction) -> arb:
    shrink = balls.ball(1 - 1 / order).log() + balls.ball(rho - epsilon)
    return balls.exp(balls.ball(order - 1) * shrink) / balls.ball(order)


def _order(alpha: Real) -> Fraction:
    order = rational(alpha, "alpha")
    if order <= 1:
        raise ValueError("alpha, the order of a Renyi divergence, must be above 1")
    return order
