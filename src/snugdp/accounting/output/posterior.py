"""What one posterior sample N(theta*, (gamma H)^-1) of a ridge regression leaks. Proofs: posterior.proof.md.

H = X'X + ridge I and theta* = H^-1 X'y; neighbours differ by one row (x, y), |x| <= B. The leak depends on the row's
leverage x'H^-1 x and on rho = sqrt(gamma) (y - x'theta*). The data set held comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from snugdp.accounting.gaussian import nonnegative, positive
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real

Direction: TypeAlias = Literal["add", "remove"]
_BITS = 64  # of a logarithm, rounded up


@dataclass(frozen=True)
class Pair:
    """N(0, 1) against N(mean, variance); the square of the mean is exact."""

    mean_squared: Fraction
    variance: Fraction


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


def log_lipschitz_sensitivity(x_squared: Real, ridge: Real, curvature: Real, *, removal: bool = True) -> Fraction:
    """How far log(B_y + B |theta*|) can move between neighbours, rounded up (Lemma 4).

    ``curvature`` is a lower bound on lambda_min(X'X) of the data set held. Without ``removal``, for an added row alone.

    >>> round(float(log_lipschitz_sensitivity(1, 1, 3)), 12)
    0.287682072452
    """
    square, weight = positive(x_squared, "x_squared"), positive(ridge, "ridge")
    least = nonnegative(curvature, "curvature")
    ratio = square / (weight + (max(least - square, Fraction(0)) if removal else least))
    return balls.rational_above(lambda: balls.ball(ratio).log1p(), _BITS)


def output_sensitivity(x_bound: Real, ridge: Real, curvature: Real, residual: Real) -> Fraction:
    """How far theta* itself can move: B residual / (ridge + max(curvature - B^2, 0)), exactly (Lemma 5).

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
