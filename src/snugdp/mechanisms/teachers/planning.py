"""From public numbers and a belief about the votes to a proposal: how much noise, and which table for the test.

The value of a proposal is the number of labels that are expected to be the plurality, a refusal counting as none. The
plain Gaussian mechanism is one of the proposals, and it never refuses: the test has to beat it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from snugdp.core.guarantee import Budget
from snugdp.mechanisms.teachers.ball import Floats, Integers, gaps
from snugdp.mechanisms.teachers.confident import ConfidentLosses
from snugdp.mechanisms.teachers.distance_test import (
    Ballots,
    PassTable,
    PrivacyProfile,
    RenyiProfile,
    best_table,
    labelling_for,
)
from snugdp.numerics.rationals import float_down

_QUICK, _THOROUGH = 10, 44  # halvings of a table's bisections
_LIKELY = 0.9
_MIN_SIGMA = 2.0
_SAME_CHANCE = 0.01
_STEPS = 20  # groups of queries in a belief, finer among the doubtful ones
_NODES = np.linspace(-7.0, 7.0, 113)
_DENSITY = np.exp(-(_NODES**2) / 2) / np.sqrt(2 * np.pi) * (_NODES[1] - _NODES[0])


@dataclass(frozen=True)
class VoteBelief:
    """Made-up ballots: the leads of the plurality over the other classes, and how many queries look like each."""

    ballots: Ballots
    tops: Integers  # the votes of the plurality
    assumed: bool = False  # whether nobody said anything

    def votes(self) -> Integers:
        """Whole histograms, one for each query."""
        rows = np.concatenate([self.tops[:, None], self.tops[:, None] - self.ballots.leads], axis=1)
        ends = np.rint(np.cumsum(self.ballots.counts)).astype(np.int64)
        return np.repeat(np.maximum(rows, 0), np.diff(ends, prepend=0), axis=0)

    def accuracy(self, sigma: float) -> float:
        """The share of labels that are the plurality."""
        return float(self._hits(sigma) @ self.ballots.counts / self.ballots.counts.sum())

    def answers(self, sigma: float, threshold: float, threshold_sigma: float) -> tuple[float, float]:
        """How many queries get an answer, and the share of those that are the plurality."""
        from scipy.special import ndtr

        answered = ndtr((self.tops - threshold) / threshold_sigma) * self.ballots.counts
        return float(answered.sum()), float(self._hits(sigma) @ answered / max(answered.sum(), 1e-300))

    def _hits(self, sigma: float) -> Floats:
        from scipy.special import log_ndtr

        logs = log_ndtr(self.ballots.leads[:, None, :] / sigma + _NODES[None, :, None]).sum(axis=2)
        hits: Floats = np.exp(logs) @ _DENSITY
        return hits


def design(*, gap: Any, proxy: Any, teachers: int, queries: int, classes: int) -> VoteBelief:
    """The belief that was given: leads in votes, or public histograms; without one all leads are as likely.

    >>> design(gap=50, proxy=None, teachers=100, queries=20, classes=3).ballots.leads.tolist()
    [[50, 50]]
    """
    if gap is not None and proxy is not None:
        raise ValueError("give gap or proxy, not both: they say the same thing in two ways")
    if proxy is not None:
        return _from_histograms(proxy, teachers, queries, classes)
    leads = np.sort(_leads(np.linspace(0, teachers, _STEPS) if gap is None else gap, teachers))
    picked, counts = _ranks(len(leads), queries, 0.0)
    return even(leads[picked], counts, teachers, classes, gap is None)


def doubted(belief: VoteBelief) -> VoteBelief:
    """The same with every lead a tenth smaller, and one query without any: what to be prepared for if it costs nothing.

    >>> doubted(design(gap=50, proxy=None, teachers=100, queries=20, classes=3)).ballots.leads.tolist()
    [[0, 0], [45, 45]]
    """
    leads, counts = belief.ballots.leads, belief.ballots.counts
    smaller = np.concatenate([np.zeros_like(leads[:1]), leads * 9 // 10])
    weights = np.concatenate([[1.0], counts]) * (counts.sum() / (counts.sum() + 1))
    return replace(belief, ballots=Ballots(smaller, weights), tops=np.concatenate([belief.tops[:1], belief.tops]))


def even(leads: Integers, counts: Floats, teachers: int, classes: int, assumed: bool = False) -> VoteBelief:
    """Ballots in which the plurality leads by as much over every other class: the most doubtful ones of that lead."""
    tops = (teachers + leads + 1) // 2
    return VoteBelief(Ballots(np.repeat(leads[:, None], classes - 1, axis=1), counts), tops, assumed)


def _leads(gap: Any, teachers: int) -> Integers:
    try:
        values = np.atleast_1d(np.asarray(gap, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all() or values.min() < 0:
        raise ValueError(
            "gap must be a number of votes, or a list of them: the lead that the plurality is believed to have"
        )
    if values.max() > teachers:
        raise ValueError(f"gap must be at most the number of teachers, {teachers}")
    return np.floor(values).astype(np.int64)


def _from_histograms(proxy: Any, teachers: int, queries: int, classes: int) -> VoteBelief:
    votes = np.asarray(proxy)
    if votes.ndim != 2 or votes.shape[1] != classes or not len(votes) or votes.dtype.kind not in "iuf":
        raise ValueError(
            f"proxy must be public histograms: one row for a query, and one column for each of {classes} classes"
        )
    if not np.isfinite(votes).all() or votes.min() < 0 or not votes.sum(axis=1).min() > 0:
        raise ValueError("proxy must hold counts of votes: at least 0, and at least one in every row")
    scaled = np.floor(votes * (teachers / votes.sum(axis=1, keepdims=True))).astype(np.int64)
    leads = gaps(scaled)
    order = np.lexsort(leads.T[::-1])
    ranks, counts = _ranks(len(votes), queries, 1.0)
    picked = order[ranks]
    return VoteBelief(Ballots(leads[picked], counts), scaled.max(axis=1)[picked])


def _ranks(given: int, queries: int, doubt: float) -> tuple[Integers, Floats]:
    """Which of the given queries, the most doubtful first, stand for how many of those to come.

    The next queries are another sample: where k of those given are as doubtful, ``doubt`` deviations more are allowed
    for. Few are kept, more of the doubtful ones, and each stands for those after it.
    """
    edges = np.unique(np.floor(np.geomspace(1, given + 1, _STEPS)).astype(np.int64) - 1)  # 0 .. given
    expected = edges * (queries / given)
    spread = doubt * (np.sqrt(expected + expected**2 / np.maximum(edges, 1)) + 1)
    reached = np.minimum(np.where(edges > 0, expected + spread, 0), queries)
    reached[-1] = queries
    return edges[:-1], np.diff(reached)


@dataclass(frozen=True)
class Tested:
    """A table for the test, and what the belief says of it."""

    table: PassTable
    chance: float  # to pass, if the belief is right
    moves: int  # that the ballots of the belief may change by


@dataclass(frozen=True)
class Search:
    """A search for the best table at given noise. ``profile(belief, moves)`` is what the labels give away."""

    budget: Budget
    teachers: int
    queries: int
    classes: int
    profile: Callable[[VoteBelief, int], PrivacyProfile]

    def for_belief(self, ballots: VoteBelief) -> Tested:
        """The table with which such ballots pass most often."""
        most = self._most_moves(ballots)
        if most < 0:
            return Tested(PassTable((self.budget.delta / 2,)), 0.0, -1)

        def chance(moves: int) -> float:
            return float(self._table(ballots, moves, _QUICK).at(moves + 1))

        place = _climb(chance, 0, most)
        table = self._table(ballots, place, _THOROUGH)
        return Tested(table, float(table.at(place + 1)), place)

    def for_both(self, belief: VoteBelief, doubt: VoteBelief) -> Tested:
        """The table for the doubtful version of a belief, if the belief itself loses nothing by it."""
        best, careful = self.for_belief(belief), self.for_belief(doubt)
        chance = self._chance(belief, careful.table) if careful.moves >= 0 else 0.0
        return Tested(careful.table, chance, careful.moves) if chance >= best.chance - _SAME_CHANCE else best

    def for_nobody(self) -> Tested:
        """The table that asks for the smallest lead, if all queries had the same one."""
        least = self._least_lead(lambda profile: self._alone(profile) < 0.98 * self._delta)
        if least is None:
            return Tested(PassTable((self.budget.delta / 2,)), 0.0, -1)

        def spared(lead: int) -> float:
            likely = self._table(self._even(lead), 0, _QUICK).reaches(_LIKELY)
            return -float("inf") if likely is None else -(lead + 2.0 * likely)

        lead = _climb(spared, least, self.teachers)
        return Tested(self._table(self._even(lead), 0, _THOROUGH), 0.0, 0)

    def lead_for(self, table: PassTable) -> int | None:
        """The lead in every query, the same for all, with which the test passes in 9 of 10 cases; None if none does."""
        needed = table.reaches(_LIKELY)
        if needed is None:
            return None
        moves = max(needed - 1, 0)
        slack = 2.25 * moves + 1.25
        return self._least_lead(lambda found: table.worst(found, self._epsilon, slack) <= self._delta, moves)

    def _chance(self, belief: VoteBelief, table: PassTable) -> float:
        """How likely such ballots pass with this table."""

        def exceeds(moves: int) -> bool:
            return not table.worst(self.profile(belief, moves), self._epsilon, 2.25 * moves + 1) <= self._delta

        return float(table.at(bisect_left(range(self.teachers + 1), True, key=exceeds)))

    def _table(self, ballots: VoteBelief, moves: int, halvings: int) -> PassTable:
        profile = self.profile(ballots, moves)
        slack = 2.25 * moves + 1.25
        return best_table(profile, self._epsilon, self._delta, self.teachers + 1, slack=slack, halvings=halvings)

    def _most_moves(self, ballots: VoteBelief) -> int:
        """The most moves after which the labels alone keep within the budget; -1 if none."""
        low, high = -1, self.teachers
        while low < high:
            middle = (low + high + 1) // 2
            good = self._alone(self.profile(ballots, middle)) < 0.98 * self._delta
            low, high = (middle, high) if good else (low, middle - 1)
        return low

    def _least_lead(self, good: Callable[[PrivacyProfile], bool], moves: int = 0) -> int | None:
        low, high = 0, self.teachers + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if good(self.profile(self._even(middle), moves)) else (middle + 1, high)
        return None if low > self.teachers else low

    def _even(self, lead: int) -> VoteBelief:
        return even(np.array([lead]), np.array([float(self.queries)]), self.teachers, self.classes)

    def _alone(self, profile: PrivacyProfile) -> float:
        return float(profile.delta(np.array([self._epsilon]))[0])

    @property
    def _epsilon(self) -> float:
        return float_down(self.budget.epsilon)

    @property
    def _delta(self) -> float:
        return float_down(self.budget.delta)


def plain_search(budget: Budget, *, teachers: int, queries: int, classes: int, sigma: Fraction) -> Search:
    """The search for plain noisy labels."""
    labelling = labelling_for(sigma, queries, budget)
    return Search(budget, teachers, queries, classes, lambda belief, moves: labelling.profile(belief.ballots, moves))


def confident_search(budget: Budget, losses: ConfidentLosses, *, queries: int, classes: int) -> Search:
    """The search for labels behind a threshold."""

    def profile(belief: VoteBelief, moves: int) -> PrivacyProfile:
        return RenyiProfile.of(losses, belief.votes(), moves)

    return Search(budget, losses.teachers, queries, classes, profile)


def best_sigmas(value: Callable[[float], float], largest: float, without: float, coarse: int) -> dict[float, float]:
    """The noises whose value is nearly the greatest, and their values; none if ``without`` a test nothing is lost.

    From ``largest`` on no test is needed: there the value is ``without``.
    """
    least = min(_MIN_SIGMA, largest / 2)
    tried: dict[float, float] = {s: value(s) for s in np.geomspace(least, largest, coarse)[:-1].tolist()}
    tried[largest] = without
    for _ in range(2):
        order = sorted(tried)
        place = order.index(max(tried, key=lambda sigma: tried[sigma]))
        for one, other in pairwise(order[max(place - 1, 0) : place + 2]):
            middle = math.sqrt(one * other)
            tried[middle] = value(middle)
    enough = max(*tried.values(), without + 2 * _SAME_CHANCE) - _SAME_CHANCE
    return {sigma: found for sigma, found in sorted(tried.items()) if found >= enough}


def _climb(value: Callable[[int], float], low: int, high: int) -> int:
    """The place of the greatest value between two whole numbers: a coarse scan, then ever smaller steps."""
    tried: dict[int, float] = {place: value(place) for place in {round(x) for x in np.linspace(low, high, 6).tolist()}}
    step = max((high - low) // 8, 1)
    while True:
        best = max(tried, key=lambda place: (tried[place], place))
        fresh = [place for place in (best - step, best + step) if low <= place <= high and place not in tried]
        tried |= {place: value(place) for place in fresh}
        if not fresh and step == 1:
            return best
        step = step if any(tried[place] > tried[best] for place in fresh) else max(step // 2, 1)
