"""What one posterior sample N(theta*, (gamma H)^-1) of a ridge regression leaks. Proofs: posterior.proof.md.

H = X'X + ridge I and theta* = H^-1 X'y; neighbours differ by one row (x, y), |x| <= B. The leak depends on the row's
leverage x'H^-1 x and on rho = sqrt(gamma) (y - x'theta*). The data set held comes first. The strongest sample within a
Gaussian profile and a slack is searched for at all epsilons at once: floats find the place, balls decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.accounting.gaussian import cdf, nonnegative, positive
from snugdp.accounting.pairs import GaussianProfile
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real

Direction: TypeAlias = Literal["add", "remove"]
_LOG_BITS = 64  # of a logarithm, rounded up


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
    ``x_squared``: B squared; k B squared for k rows that come or go together.

    >>> round(float(log_lipschitz_sensitivity(1, 1, 3)), 12)
    0.287682072452
    """
    square, weight = positive(x_squared, "x_squared"), positive(ridge, "ridge")
    least = nonnegative(curvature, "curvature")
    ratio = square / (weight + (max(least - square, Fraction(0)) if removal else least))
    return balls.rational_above(lambda: balls.ball(ratio).log1p(), _LOG_BITS)


def output_sensitivity(x_bound: Real, ridge: Real, curvature: Real, residual: Real, rows: int = 1) -> Fraction:
    """How far theta* itself can move: B residual / (ridge + max(curvature - B^2, 0)), exactly (Lemma 5).

    ``rows``: that come or go together; with k of them it is k B residual / (ridge + max(curvature - k B^2, 0)).

    >>> output_sensitivity(1, 100, 0, 2), output_sensitivity(1, 100, 10, 2, rows=3)
    (Fraction(1, 50), Fraction(6, 107))
    """
    bound, weight = positive(x_bound, "x_bound"), positive(ridge, "ridge")
    rest = max(nonnegative(curvature, "curvature") - rows * bound**2, Fraction(0))
    return rows * bound * nonnegative(residual, "residual") / (weight + rest)


def _leverage(direction: Direction, leverage: Real) -> Fraction:
    if direction not in ("add", "remove"):
        raise ValueError('direction must be "add" or "remove"')
    mu = nonnegative(leverage, "leverage")
    if direction == "remove" and mu >= 1:
        raise ValueError("the leverage of a row that is in the data is below 1")
    return mu


# --- the strongest sample; the line numbers are those of Theorem 1 ---


_CELLS = 64  # to begin with
_MAX_CELLS = 6400  # cells looked at before a strength is given up: that is on the safe side
_BITS = 96  # of the balls, beyond what small leverages take away
_STEPS = 40  # halvings of the bracket in floats
_PARTS = (2.0**-16, 2.0**-10, 2.0**-4, 0.5, 0.75)  # of what floats found, to be given away if less will not do
_MAX_EPSILON = 600.0  # epsilons whose exponential is a float
_FLAT = 2.0**-42  # variances so close to 1 count as 1, in the guess
_MIN_STRENGTH = 2.0**-40  # a strength so far below the largest thinkable one counts as none


class _Point(NamedTuple):
    """One epsilon: its exponential, the two profiles there, and the slope of the Gaussian one in the exponential."""

    epsilon: Fraction
    pair: arb
    weight: arb
    gauss: arb
    slope: arb


@lru_cache(maxsize=1024)
def rho_max(added: Fraction, removed: Fraction, mu_squared: Fraction, slack: Fraction, digits: int = 21) -> Fraction:
    """The largest rho, nearly, whose corners at these leverages have H_e <= G_mu(e) + slack for every real e.

    ``digits``: how many binary digits of it are wanted. Few are found much sooner: the proof needs room.

    Guarantee: both inequalities are proved for the rho returned, at every real e. Zero where no rho > 0 was found.

    >>> round(float(rho_max(Fraction(1, 100), Fraction(1, 101), Fraction(1, 25), Fraction(1, 10**7))), 4)
    1.8067
    """
    if not (added > 0 and 0 < removed < 1 and mu_squared > 0 and 0 < slack < 1):
        raise ValueError(
            "leverages, mu and the slack must be above 0, the removed row's leverage and the slack below 1"
        )
    mu = math.sqrt(mu_squared)
    guess = rho_guess(float(added), float(removed), mu, float(slack)) or mu / math.sqrt(added)
    gauss = _Gauss(mu_squared)
    for given in (2.0**-digits, *(part for part in _PARTS if part > 2.0**-digits)):  # 5.
        rho = Fraction(guess * (1 - given))
        sides = (corner("add", added, rho**2), corner("remove", removed, rho**2))
        if all(_certified(side, gauss, slack) for side in sides):
            return rho
    return Fraction(0)


def certified(pair: Pair, mu_squared: Fraction, slack: Fraction) -> bool:
    """Whether H_e(pair) <= G_mu(e) + slack is proved for every real e; what stays open counts as no."""
    return _certified(pair, _Gauss(mu_squared), slack)


def _certified(pair: Pair, gauss: _Gauss, slack: Fraction) -> bool:
    small = abs(pair.variance - 1)
    bits = _BITS + 2 * max(0, small.denominator.bit_length() - small.numerator.bit_length())
    with balls.precision(bits):
        curve, limit = GaussianProfile(pair.mean_squared, pair.variance), balls.ball(slack)
        ends = _ends(curve, _reach(gauss.mu_squared, slack), limit)  # 1.
        if ends is None:
            return False

        def point(epsilon: Fraction) -> _Point:
            return _Point(epsilon, curve.at(epsilon), *gauss.at(epsilon))

        cells = list(pairwise([point(epsilon) for epsilon in _spread(*ends)]))  # 2.
        for _ in range(_MAX_CELLS):
            if not cells:
                return True
            left, right = cells.pop()
            if not (left.pair - left.gauss <= limit and right.pair - right.gauss <= limit):  # 3.
                return False
            if not _within(left, right, limit):  # 4.
                middle = point((left.epsilon + right.epsilon) / 2)
                cells += [(left, middle), (middle, right)]
        return False


def _reach(mu_squared: Fraction, slack: Fraction) -> Fraction:
    """Beyond this the Gaussian profile is nearly its floor."""
    mu = math.sqrt(mu_squared)
    return _coarse(mu * math.sqrt(2 * math.log(4 / max(float(slack), 1e-300))) + mu * mu)


def _coarse(number: float) -> Fraction:
    """About the same number in few bits, which is quicker to work with."""
    mantissa, exponent = math.frexp(number)
    return Fraction(math.ceil(mantissa * 256)) * Fraction(2) ** (exponent - 8)


def _ends(curve: GaussianProfile, reach: Fraction, limit: arb) -> tuple[Fraction, Fraction] | None:
    """Two epsilons beyond which there is nothing to prove: the pair's profile is within the slack of its floor."""
    low = high = None
    for _ in range(64):
        if high is None and curve.at(reach) <= limit:
            high = reach
        if low is None and curve.at(-reach) - (1 - balls.exp(balls.ball(-reach))) <= limit:
            low = -reach
        if high is not None and low is not None:
            return low, high
        reach = _coarse(float(reach * 5 / 4))
    return None


def _spread(low: Fraction, high: Fraction) -> list[Fraction]:
    width = high - low
    return [low + width * i / _CELLS for i in range(_CELLS + 1)]


def _within(left: _Point, right: _Point, limit: arb) -> bool:
    """Whether the chord of the one curve lies within the limit of both tangents of the other, where these meet."""
    width = right.weight - left.weight
    meet = _meeting(left, right, width)
    chord = (1 - meet) * left.pair + meet * right.pair
    first = left.gauss + left.slope * meet * width
    second = right.gauss - right.slope * (1 - meet) * width
    return bool(chord - first <= limit and chord - second <= limit)


def _meeting(left: _Point, right: _Point, width: arb) -> arb:
    """Where the tangents meet, as a part of the cell: any part will do, this one is best."""
    bend = (right.slope - left.slope) * width
    part = float(((left.gauss - right.gauss + right.slope * width) / bend).mid()) if bend > 0 else 0.5
    return arb(min(max(part, 0.0), 1.0) if math.isfinite(part) else 0.5)


class _Gauss:
    """The profile of Gaussian DP and its slope in exp(epsilon), in balls; what was computed is kept."""

    def __init__(self, mu_squared: Fraction) -> None:
        self.mu_squared = mu_squared
        self._known: dict[Fraction, tuple[arb, arb, arb]] = {}

    def at(self, epsilon: Fraction) -> tuple[arb, arb, arb]:
        """exp(epsilon), the profile and its slope: gaussian.proof.md, Proposition 1."""
        if epsilon not in self._known:
            mu, level = balls.ball(self.mu_squared).sqrt(), balls.ball(epsilon)
            weight, tail = balls.exp(level), cdf(-level / mu - mu / 2)
            value = cdf(mu / 2 - level / mu) - weight * tail
            self._known[epsilon] = (weight, value.max(arb(0)).max(1 - weight), -tail)
        return self._known[epsilon]


@lru_cache(maxsize=4096)
def rho_guess(added: float, removed: float, mu: float, slack: float, steps: int = _STEPS) -> float:
    """About the largest rho, in floats: a guess for ``rho_max`` and for forecasts, and nothing is proved of it.

    ``steps``: of the halving, from forty octaves; with few of them, less care is taken of each as well.
    """
    if not (removed < 1 and slack > 0):  # too close for floats to tell
        return 0.0
    looks = (257, 33, 33) if steps >= _STEPS else (65, 17)

    def fits(rho: float) -> bool:
        narrow = (rho * math.sqrt(added / (1 + added)), 1 / (1 + added))
        wide = (rho * math.sqrt(removed) / (1 - removed), 1 / (1 - removed))
        return all(_gap(mean, variance, mu, slack, looks) <= slack for mean, variance in (narrow, wide))

    high = mu / math.sqrt(added)
    while fits(high):
        high *= 2
    low = high * _MIN_STRENGTH
    if not fits(low):
        return 0.0
    return roots.bisect(fits, low, high, steps, middle=_octaves_first)[0]


def _octaves_first(low: float, high: float) -> float:
    return math.sqrt(low * high) if high > 2 * low else (low + high) / 2


def _gap(mean: float, variance: float, mu: float, slack: float, looks: tuple[int, ...]) -> float:
    """The largest difference of the two profiles, looking ever closer where it is largest."""
    log = math.log(4) - math.log(slack)
    reach = min(mu * math.sqrt(2 * log) + mu * mu + 4 * log * abs(1 - variance), _MAX_EPSILON)
    low, high = -reach, reach
    for points in looks:
        at = np.linspace(low, high, points)
        gap = _profile(mean, variance, at) - _gauss(mu, at)
        best = int(np.argmax(gap))
        low, high = at[max(best - 1, 0)], at[min(best + 1, points - 1)]
    return float(gap[best])


def _gauss(mu: float, epsilon: NDArray[np.float64]) -> Any:
    from scipy.special import ndtr

    value = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    return np.maximum(value, np.maximum(0.0, -np.expm1(epsilon)))


def _profile(mean: float, variance: float, epsilon: NDArray[np.float64]) -> Any:
    from scipy.special import ndtr

    if abs(variance - 1) < _FLAT:
        return _gauss(mean, epsilon)
    s, a, b = math.sqrt(variance), (1 / variance - 1) / 2, mean / variance
    c = mean * b / 2 + math.log(s) - epsilon
    discriminant = b * b - 4 * a * c
    q = (b + np.sqrt(np.maximum(discriminant, 1e-300))) / 2
    near, far = c / q, q / a
    parts = [ndtr(near), ndtr((near - mean) / s), ndtr(far), ndtr((far - mean) / s)]
    if variance < 1:
        parts[2:] = [-ndtr(-far), -ndtr(-(far - mean) / s)]
    value = parts[0] - parts[2] - np.exp(epsilon) * (parts[1] - parts[3])
    floor = np.maximum(0.0, -np.expm1(epsilon))
    return np.where(discriminant > 0, np.maximum(value, floor), floor)
