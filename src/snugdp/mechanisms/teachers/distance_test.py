"""The distance test for noisy labels: how many teachers may change before the labels give away too much.

Proof: ``distance_test.proof.md``. Nothing is converted and no order is chosen: the bit and the labels are held to delta
at epsilon as one release. Given what the labels may give away, the bit is the best one (``best_table``): each chance to
pass is as large as the one before it allows, from delta at distance 0 up to certainty.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np

from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.teachers.ball import Floats, Integers, gaps, log_miss
from snugdp.mechanisms.teachers.confident import ConfidentLosses
from snugdp.mechanisms.teachers.pair import Composer, Profile, composer_for
from snugdp.mechanisms.teachers.table import UNIT
from snugdp.noise import Noise
from snugdp.numerics.rationals import float_down
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret

THEOREM = theorem("labels-distance/1")

_HALVINGS = 44
_CHORDS = 1201
_TINY = Fraction(1, 10**290)
_DELTA_SHARE = 1 - 2.0**-8  # of delta: the rest is for rounding
_SPARE = 2.0**-34  # of log q for every move: far above the rounding of log q and of sigma


@dataclass(frozen=True)
class Ballots:
    """Distinct histograms and how often each occurs: the leads of the plurality over all others. Private."""

    leads: Integers
    counts: Floats

    @classmethod
    def of(cls, votes: Integers) -> Ballots:
        """The leads of every histogram, equal ones counted together."""
        leads, counts = np.unique(gaps(votes), axis=0, return_counts=True)
        return cls(leads, counts.astype(np.float64))


@dataclass(frozen=True)
class Labelling:
    """What labels of this noise give away within some vote moves of given histograms."""

    sigma: float
    composer: Composer

    def profile(self, ballots: Ballots, moves: int) -> Profile:
        """The profile of all labels together, if every histogram may change by so many moves."""
        miss = log_miss(ballots.leads, self.sigma, moves) + (moves + 1) * _SPARE
        nodes, places = np.unique(self.composer.node(miss), return_inverse=True)
        counts: Floats = np.bincount(places.ravel(), weights=ballots.counts).astype(np.float64)
        return self.composer.profile(nodes, counts)


def labelling_for(sigma: Fraction, queries: int, budget: Budget) -> Labelling:
    """Labels of this noise, accurate near the budget.

    Sigma is rounded down, which makes the shift larger and q smaller: ``_SPARE`` is far above what q loses by that.
    """
    noise, epsilon, delta = (float_down(value) for value in (sigma, budget.epsilon, budget.delta))
    return Labelling(noise, composer_for(noise, queries, epsilon, delta))


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


@dataclass(frozen=True)
class RenyiProfile:
    """The profile that Renyi divergences give: at every epsilon by the best order."""

    curve: Floats
    orders: Floats

    @classmethod
    def of(cls, losses: ConfidentLosses, votes: Integers, moves: int) -> RenyiProfile:
        """The profile of labels behind a threshold, within so many moves of these votes."""
        return cls((losses.of(votes, moves) * UNIT).astype(np.float64), np.array(losses.table.orders))

    def delta(self, epsilon: Floats) -> Floats:
        """The bound at every epsilon."""
        fixed = (self.orders - 1) * np.log1p(-1 / self.orders) - np.log(self.orders)
        exponents = (self.orders - 1) * (self.curve - np.asarray(epsilon)[..., None]) + fixed
        bound: Floats = np.exp(np.minimum(exponents.min(axis=-1), 0.0))
        return bound

    def error(self, epsilon: Floats) -> Floats:
        """What floats may have done to it: exponents are below 2**21."""
        return self.delta(epsilon) * 2.0**-28


@dataclass(frozen=True)
class SharpDistance:
    """Pass with the chance that the table gives to the distance of the votes.

    ``profile(votes, moves)`` must be nested: one vote moved in every query and one move more never lower it.

    Guarantee: with the labels, (epsilon, delta)-DP if every teacher's data belong to one person or more, whether it
    passes or not (``distance_test.proof.md``, Theorem 2).
    """

    profile: Callable[[Integers], Callable[[int], PrivacyProfile]]
    table: PassTable
    budget: Budget
    teachers: int

    def __post_init__(self) -> None:
        if not self.table.fails_closed(self.budget.epsilon, self.budget.delta):
            raise ValueError("this table passes too often at distance 0: make it with best_table for this budget")

    @property
    def cost(self) -> Cost:
        """The budget: of the bit and of the labels that follow."""
        return self.budget.cost

    def distance(self, votes: Integers) -> int:
        """How many teachers may change before the labels would give away too much. Private."""
        within = self.profile(votes)
        epsilon, delta = float_down(self.budget.epsilon), float_down(self.budget.delta)

        def exceeds(moves: int) -> bool:  # what is not a number exceeds
            return not self.table.worst(within(moves), epsilon, 2.25 * moves + 1) <= delta

        with np.errstate(all="ignore"):  # a warning would depend on private values
            return bisect_left(range(self.teachers + 1), True, key=exceeds)

    def passes(self, data: Secret[Integers], noise: Noise) -> bool:
        """One draw of the bit."""
        return noise.at("test").chance(data.map(lambda votes: self.table.at(self.distance(votes))))


def confident_profile(losses: ConfidentLosses) -> Callable[[Integers], Callable[[int], PrivacyProfile]]:
    """The profile of labels behind a threshold, for ``SharpDistance``."""
    return lambda votes: lambda moves: RenyiProfile.of(losses, votes, moves)


def labels_profile(labelling: Labelling) -> Callable[[Integers], Callable[[int], PrivacyProfile]]:
    """The profile of plain noisy labels, for ``SharpDistance``."""

    def of(votes: Integers) -> Callable[[int], PrivacyProfile]:
        ballots = Ballots.of(votes)
        fresh = replace(labelling, composer=replace(labelling.composer, rows={}))  # what it keeps tells of the votes
        return lambda moves: fresh.profile(ballots, moves)

    return of


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
    allowed, seen = delta * _DELTA_SHARE, _curve(profile, epsilon, slack)
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
