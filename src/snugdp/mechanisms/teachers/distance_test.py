"""The distance test for noisy labels: how many teachers may change before the labels give away too much.

Proof beside it. Nothing is converted and no order is chosen: the bit and the labels are held to delta at
epsilon as one release.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.teachers.ball import Floats, Integers, gaps, log_miss
from snugdp.mechanisms.teachers.confident import ConfidentLosses
from snugdp.mechanisms.teachers.pair import Composer, Profile, composer_for
from snugdp.mechanisms.teachers.passing import PassTable, PrivacyProfile
from snugdp.mechanisms.teachers.table import UNIT
from snugdp.noise import Noise
from snugdp.numerics.rationals import float_down
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret

THEOREM = theorem("labels-distance/1")

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
