"""What one posterior sample N(theta*, (gamma H)^-1) of a ridge regression leaks. Proofs: posterior.proof.md.

H = X'X + ridge I and theta* = H^-1 X'y; neighbours differ by one row (x, y), |x| <= B. The leak depends on the row's
leverage x'H^-1 x and on rho = sqrt(gamma) (y - x'theta*). The data set held comes first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from flint import arb

from snugdp.accounting.gaussian import nonnegative, positive
from snugdp.accounting.pairs import gaussian_pair
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational

Direction: TypeAlias = Literal["add", "remove"]
_BITS = 64  # of a mean, whose square is exact: rounded up


@dataclass(frozen=True)
class Pair:
    """N(0, 1) against N(mean, variance); the square of the mean is exact."""

    mean_squared: Fraction
    variance: Fraction

    @property
    def mean(self) -> Fraction:
        """The mean, rounded up."""
        return balls.rational_above(lambda: balls.ball(self.mean_squared).sqrt(), _BITS)

    def delta(self, epsilon: Real) -> float:
        """The hockey stick at any real epsilon, rounded up: it grows with the mean (Lemma 2)."""
        return gaussian_pair(self.mean, self.variance, epsilon)


def leverages(x_squared: Real, ridge: Real, curvature: Real) -> tuple[Fraction, Fraction]:
    """Bounds on the leverage of a row that is added, and of one that is removed, where lambda_min(X'X) >= curvature.

    >>> leverages(1, 100, 0)
    (Fraction(1, 100), Fraction(1, 101))
    """
    square, weight = positive(x_squared, "x_squared"), positive(ridge, "ridge")
    added = square / (weight + nonnegative(curvature, "curvature"))
    return added, min(added, square / (weight + square))


def pair(direction: Direction, leverage: Real, rho_squared: Real) -> Pair:
    """The pair that the sample on a data set and on its neighbour is equivalent to (Lemma 1).

    >>> pair("add", "0.5", 1).variance
    Fraction(2, 3)
    """
    mu, square = _leverage(direction, leverage), nonnegative(rho_squared, "rho_squared")
    change = 1 + mu if direction == "add" else 1 - mu
    return Pair(mu * square / change**2, 1 / change)


def corner(direction: Direction, leverage: Real, rho_squared: Real) -> Pair:
    """A pair that leaks at least as much, at every epsilon, as all with leverage and rho up to these (Lemma 3).

    >>> corner("remove", "0.5", 1) == pair("remove", "0.5", 1)
    True
    """
    if direction == "remove":
        return pair(direction, leverage, rho_squared)
    mu, square = _leverage(direction, leverage), nonnegative(rho_squared, "rho_squared")
    return Pair(mu * square / (1 + mu), 1 / (1 + mu))


def renyi(direction: Direction, alpha: Real, leverage: Real, rho: Real) -> float:
    """The Renyi divergence of the pair at order alpha > 1, rounded up; infinite where there is none.

    It grows with the leverage and with the size of rho (Lemma 4), so bounds on them give a bound.

    >>> round(renyi("add", 8, "0.01", 2), 9)
    0.17054807
    """
    order, square = rational(alpha, "alpha"), rational(rho, "rho") ** 2
    if order <= 1:
        raise ValueError("alpha must be above 1")
    mu = _leverage(direction, leverage) * (1 if direction == "add" else -1)
    change, room = 1 + mu, 1 - (order - 1) * mu
    if room <= 0:
        return math.inf
    mean = order * abs(mu) * square / (2 * change * room)
    return balls.above(
        lambda: balls.ball(mean) - balls.ball(change).log() / 2 - balls.ball(room).log() / (2 * balls.ball(order - 1))
    )


def closed_form(
    direction: Direction,
    *,
    gamma: Real,
    ridge: Real,
    curvature: Real,
    residual: Real,
    x_bound: Real,
    delta: Real,
) -> float:
    """An epsilon in closed form for one sample alone, rounded up (Lemma 5). ``rho_max`` is sharper.

    >>> closed_form("add", gamma=0.5, ridge=10, curvature=90, residual=2, x_bound=1, delta=1e-6)  # doctest: +ELLIPSIS
    0.88646...
    """
    scale, size, square = positive(gamma, "gamma"), nonnegative(residual, "residual"), positive(x_bound, "x_bound") ** 2
    tail = positive(delta, "delta")
    if not balls.at_most(lambda: balls.ball(tail).log(), Fraction(-1, 2)):
        raise ValueError("delta must be at most exp(-1/2)")
    added, removed = leverages(square, ridge, curvature)
    mu = added if direction == "add" else removed
    strength = scale * mu * size**2

    def epsilon() -> arb:
        log = -balls.ball(tail).log()
        linear = (2 * balls.ball(strength) * log).sqrt()
        if direction == "add":
            change = balls.ball(1 + mu)
            return linear + balls.ball(strength) / (2 * change) + balls.ball(mu) * log - change.log() / 2
        change = balls.ball(1 - mu)
        return linear + balls.ball(strength) / (2 * change) - change.log() / 2

    return balls.above(epsilon)


def log_lipschitz_sensitivity(x_squared: Real, ridge: Real, curvature: Real, *, removal: bool = True) -> Fraction:
    """How far log(B_y + B |theta*|) can move between neighbours, rounded up (Lemma 6).

    ``curvature`` is a lower bound on lambda_min(X'X) of the data set held. Without ``removal``, for an added row alone.

    >>> round(float(log_lipschitz_sensitivity(1, 1, 3)), 12)
    0.287682072452
    """
    square, weight = positive(x_squared, "x_squared"), positive(ridge, "ridge")
    least = nonnegative(curvature, "curvature")
    ratio = square / (weight + (max(least - square, Fraction(0)) if removal else least))
    return balls.rational_above(lambda: balls.ball(ratio).log1p(), _BITS)


def output_sensitivity(x_bound: Real, ridge: Real, curvature: Real, residual: Real) -> Fraction:
    """How far theta* itself can move: B residual / (ridge + max(curvature - B^2, 0)), exactly (Lemma 7).

    >>> output_sensitivity(1, 100, 0, 2)
    Fraction(1, 50)
    """
    bound, weight = positive(x_bound, "x_bound"), positive(ridge, "ridge")
    rest = max(nonnegative(curvature, "curvature") - bound**2, Fraction(0))
    return bound * nonnegative(residual, "residual") / (weight + rest)


def _leverage(direction: Direction, leverage: Real) -> Fraction:
    if direction not in ("add", "remove"):
        raise ValueError('direction must be "add" or "remove"')
    mu = nonnegative(leverage, "leverage")
    if direction == "remove" and mu >= 1:
        raise ValueError("the leverage of a row that is in the data is below 1")
    return mu
