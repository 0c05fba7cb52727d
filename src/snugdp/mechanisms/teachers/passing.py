"""The best private bit about a distance: how likely to pass at every distance. Proof: ``distance_test.proof.md``.

A pass is followed by labels, so the bit and the labels share one budget. Given what the labels may give away, each
probability is as large as the one before it allows: from delta at distance 0 up to certainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np

from snugdp.mechanisms.teachers.ball import Floats
from snugdp.numerics.rationals import float_down

_HALVINGS = 44
_CHORDS = 1201
_TINY = Fraction(1, 10**290)
_ROOM = 1 - 2.0**-8  # of delta: the rest is for rounding


class PrivacyProfile(Protocol):
    """An upper bound of delta at every real epsilon, and a bound on its rounding."""

    def delta(self, epsilon: Floats) -> Floats:
        """The bound, as floats compute it."""

    def error(self, epsilon: Floats) -> Floats:
        """How far that may be from the bound in exact arithmetic."""


@dataclass(frozen=True)
class PassTable:
    """The probability to pass at the distances 0, 1, 2, ...; beyond the last one it stays as it is.

    >>> table = PassTable((Fraction(1, 1000), Fraction(1, 2), Fraction(1)))
    >>> table.at(1), table.at(7), table.reaches(0.4)
    (Fraction(1, 2), Fraction(1, 1), 1)
    """

    chances: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.chances or not all(a <= b for a, b in pairwise(self.chances)):
            raise ValueError("a table needs at least one chance, and none may be below the one before it")
        if self.chances[0] < _TINY or self.chances[-1] > 1:
            raise ValueError("chances must lie between 1e-290 and 1")

    def at(self, distance: int) -> Fraction:
        """The probability to pass at this distance."""
        return self.chances[min(distance, len(self.chances) - 1)]

    def reaches(self, chance: float) -> int | None:
        """The least distance at which passing is at least so likely; None if there is none."""
        return next((place for place, value in enumerate(self.chances) if value >= chance), None)

    def worst(self, profile: PrivacyProfile, epsilon: float, slack: float = 1.0) -> float:
        """The largest delta at ``epsilon`` of bit and labels together, with ``slack`` times the profile's rounding.

        Over all distances >= 1 and all neighbouring distances. Guarantee: ``distance_test.proof.md``, Theorem 1.
        """
        here, there = _neighbours(len(self.chances))
        passed, failed = self._floats()
        shifted = epsilon + np.log(passed[there] / passed[here])
        seen = profile.delta(shifted) + slack * profile.error(shifted)
        refused = np.maximum(failed[here] - math.exp(epsilon) * failed[there], 0.0) + failed[here] * 2.0**-49
        return float(np.max(refused + passed[here] * np.minimum(seen, 1.0))) * (1 + 2.0**-49)

    def fails_closed(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether a data set at distance 0, of which nothing is known, keeps within the budget."""
        first, second = self.chances[0], self.at(1)
        least = Fraction(math.exp(min(float_down(epsilon), 700.0))) * (1 - Fraction(1, 2**49))
        return first + max(Fraction(0), (1 - first) - least * (1 - second)) <= delta

    def _floats(self) -> tuple[Floats, Floats]:
        chances = (*self.chances, self.chances[-1])
        return np.array([float(c) for c in chances]), np.array([float(1 - c) for c in chances])


def best_table(
    profile: PrivacyProfile,
    epsilon: float,
    delta: float,
    longest: int,
    *,
    slack: float = 1.0,
    halvings: int = _HALVINGS,
) -> PassTable:
    """The table that passes as often as it may, if the labels give away no more than the profile says.

    >>> class Nothing:
    ...     def delta(self, epsilon):
    ...         return np.maximum(-np.expm1(epsilon), 0)
    ...     def error(self, epsilon):
    ...         return 0 * epsilon
    >>> best_table(Nothing(), 1.0, 1e-6, 400).reaches(0.9)
    15
    """
    allowed, seen = delta * _ROOM, _curve(profile, epsilon, slack)
    chances = [allowed]
    while len(chances) <= longest and chances[-1] < 1:
        known = seen if len(chances) > 1 else _first(seen, epsilon)
        following = _next(chances[-1], known, epsilon, allowed, halvings)
        if following - chances[-1] <= 2.0**-20 * min(chances[-1], 1 - chances[-1]):
            break
        chances.append(following)
    return PassTable(tuple(Fraction(chance) for chance in chances))


def _first(seen: Callable[[float], float], epsilon: float) -> Callable[[float], float]:
    """At distance 0 nothing is known of the labels: whatever passes there may give away everything."""
    return lambda place: 1.0 if place > epsilon else seen(place)


def _curve(profile: PrivacyProfile, epsilon: float, slack: float) -> Callable[[float], float]:
    """The profile as a plain function: chords in exp(epsilon) of a convex function are not below it."""
    low = epsilon - math.log1p(math.exp(epsilon)) - 1
    grid = np.linspace(low, 2 * epsilon + 2, _CHORDS)
    values = np.minimum(profile.delta(grid) + slack * profile.error(grid), 1.0)
    slopes = np.diff(values) / np.diff(np.exp(grid))
    heights, starts, rises = values.tolist(), np.exp(grid).tolist(), slopes.tolist()
    scale = (_CHORDS - 1) / (grid[-1] - low)

    def at(place: float) -> float:
        cell = int((place - low) * scale)
        if not 0 <= cell < _CHORDS - 1:
            return 1.0 if cell < 0 else float(heights[-1])
        return float(heights[cell] + (math.exp(place) - starts[cell]) * rises[cell])

    return at


def _next(chance: float, seen: Callable[[float], float], epsilon: float, allowed: float, halvings: int) -> float:
    """The largest chance at the next distance, by bisection on the logarithm, or of the failure from one half on."""
    grown = math.exp(epsilon)

    def fits(tried: float) -> bool:
        ratio = math.log(tried / chance)
        if tried * seen(epsilon - ratio) > allowed:
            return False
        return max((1 - chance) - grown * (1 - tried), 0.0) + chance * seen(epsilon + ratio) <= allowed

    if fits(1.0):
        return 1.0
    low, high = chance, 1.0
    for _ in range(halvings):
        middle = math.sqrt(low * high) if high < 0.5 or low < 0.25 else 1 - math.sqrt((1 - low) * (1 - high + 2.0**-60))
        if not low < middle < high:
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _neighbours(size: int) -> tuple[list[int], list[int]]:
    """All pairs of distances from 1 on, and their neighbours; the last place stands for all beyond."""
    pairs = [(d, e) for d in range(1, size + 1) for e in (d - 1, d, d + 1) if e <= size]
    return [d for d, _ in pairs], [e for _, e in pairs]
