"""Keys, and statistics of the keys that are shown, under one cost. Proof: ``grouped.proof.md``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.keys.moments import Floats, GroupMoments, Integers, Power, Sums
from snugdp.mechanisms.keys.ranks import GroupRanks
from snugdp.mechanisms.keys.selection import KeySelection
from snugdp.mechanisms.keys.threshold import best_selection, check_keys
from snugdp.mechanisms.order_statistics.rank_draw import Cells
from snugdp.noise import Noise
from snugdp.numerics import roots
from snugdp.numerics.rationals import rational
from snugdp.propose.plan import Step
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import Grid
from snugdp.tables.passes.counts.groups import ROWS, GroupPass
from snugdp.tables.passes.counts.keys import Encoded
from snugdp.tables.passes.together import JointState
from snugdp.tables.wide_grid import WideGrid

Listed: TypeAlias = tuple[tuple[Encoded, ...], ...]
THEOREM = theorem("group-by/1")
COUNT = "count"
_STEPS = 40


@dataclass(frozen=True)
class Grouped:
    """What was released: keys as they are encoded, their counts, and the sums of every value column. Public."""

    keys: tuple[tuple[Encoded, ...], ...]
    counts: Floats
    sums: tuple[Floats, ...]
    ranks: tuple[list[float | None], ...] = ()


@dataclass(frozen=True)
class AskedRank:
    """A quantile of a column on a public grid."""

    column: str
    q: Fraction
    grid: Grid | WideGrid


@dataclass(frozen=True)
class Asked:
    """What is to be released of every group: sums by their powers, and quantiles."""

    powers: tuple[Power, ...] = ()
    ranks: tuple[AskedRank, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.powers or self.ranks)


@dataclass(frozen=True)
class GroupedRelease:
    """Counts and sums by key. ``selection``: how keys that are not listed are shown; without it ``count`` draws theirs.

    Guarantee: the costs of its steps together (``grouped.proof.md``, Theorem 2).
    """

    selection: KeySelection | None
    count: GroupMoments | None
    columns: tuple[GroupMoments, ...]
    ranks: tuple[GroupRanks, ...] = ()

    @classmethod
    def of(cls, budget: Budget, asked: Asked, *, listed: bool, keys: int, key_share: Fraction) -> GroupedRelease:
        """What a budget pays for, in the currency that gives the smaller errors; all of that is public."""
        forms = [cls._pure(budget, asked, listed, keys, key_share)]
        if budget.delta and (asked or listed):
            forms.append(cls._gaussian(budget, asked, listed, keys, key_share))
        return min(forms, key=cls._doubt)

    @classmethod
    def of_share(cls, share: Share, asked: Asked) -> GroupedRelease:
        """Of listed keys, one for each row, with a share."""
        return cls._parts(None, share, asked, 1)

    @classmethod
    def _pure(cls, budget: Budget, asked: Asked, listed: bool, keys: int, part: Fraction) -> GroupedRelease:
        if listed:
            return cls._parts(None, Share.pure(budget), asked, keys)
        check_keys(keys, budget.delta)
        if not asked:
            return cls(best_selection(budget, keys), None, ())
        selection = best_selection(Budget(part * budget.epsilon, budget.delta, budget.neighbours), keys)
        return cls._parts(selection, Share.pure(budget).part(1 - part), asked, keys)

    @classmethod
    def _gaussian(cls, budget: Budget, asked: Asked, listed: bool, keys: int, part: Fraction) -> GroupedRelease:
        if listed:
            return cls._parts(None, Share.gaussian(budget), asked, keys)
        half = Budget(part * budget.epsilon, budget.delta / 2, budget.neighbours)
        selection = best_selection(half, keys)

        def affordable(mu: Fraction) -> bool:
            return (selection.cost + Cost(mu=mu, neighbours=budget.neighbours)).fits(budget)

        high = rational(gaussian.mu(budget.epsilon, budget.delta), "mu")
        mu, _ = roots.bisect(affordable, high / 2**_STEPS, high, _STEPS, middle=roots.float_mean, near=2**10)
        if not affordable(mu):
            return cls._pure(budget, asked, listed, keys, part)
        return cls._parts(selection, Share(Fraction(0), mu**2, budget.neighbours), asked, keys)

    @classmethod
    def _parts(cls, selection: KeySelection | None, share: Share, asked: Asked, keys: int) -> GroupedRelease:
        """Equal parts for the counts of listed keys and for every column."""
        part = share.part(Fraction(1, len(asked.powers) + len(asked.ranks) + (selection is None)))
        count = GroupMoments(part, Power.COUNT, COUNT, keys) if selection is None else None
        columns = (GroupMoments(part, power, f"column-{i + 1}", keys) for i, power in enumerate(asked.powers))
        ranks = (GroupRanks(part, one.q, one.grid, f"rank-{i + 1}", keys) for i, one in enumerate(asked.ranks))
        return cls(selection, count, tuple(columns), tuple(ranks))

    def _doubt(self) -> float:
        """The sum of the errors of all sums, in rows."""
        parts = [*self.columns, *(() if self.count is None else (self.count,))]
        sums = sum(np.sum(part.tail * np.linalg.norm(part.spread, axis=1)) for part in parts)
        return float(sums + sum(one.ranks for one in self.ranks))

    def steps(self, names: tuple[str, ...], ranked: tuple[str, ...] = ()) -> tuple[Step, ...]:
        """Of a plan; ``names``: of the value columns; ``ranked``: of those of the quantiles."""
        first = (self.selection.step(),) if self.selection is not None else ()
        counted = self.count.steps(COUNT) if self.count is not None else ()
        sums = (step for one, name in zip(self.columns, names, strict=True) for step in one.steps(name))
        return (
            *first,
            *counted,
            *sums,
            *(s for one, name in zip(self.ranks, ranked, strict=True) for s in one.steps(name)),
        )

    @property
    def count_error(self) -> float:
        """What the noise moves a count by, at most, in 19 of 20 cases."""
        if self.selection is not None:
            return self.selection.count_error
        assert self.count is not None
        return float(self.count.error(np.array([1.0, 0.0, 0.0]))[0])

    def groups(self, states: Secret[JointState], works: tuple[GroupPass, ...], listed: Listed, noise: Noise) -> Grouped:
        """Keys first, then the sums and quantiles of those that are shown. ``listed``: the keys that are public.

        ``states``: of the passes: sums, then the cells of every quantile.
        """
        work, state = works[0], states.map(lambda joint: joint.parts[0])
        if self.selection is not None:
            shown = self.selection.draw(state.map(work.counts), noise)  # 1
            keys, counts = tuple(key for key, _ in shown), np.array([count for _, count in shown])
        else:
            keys = listed
        held = state.map(lambda groups: work.at(groups, keys))
        if self.count is not None:
            counts = self.count.draw(held.map(lambda sums: (sums[ROWS],)), noise)[0]  # 2
        sums = (column.draw(held.map(partial(_of, place)), noise) for place, column in enumerate(self.columns))  # 3
        ranks = (
            one.draw(states.map(partial(_cells, place + 1, works[place + 1], keys)), len(keys), noise)  # 4
            for place, one in enumerate(self.ranks)
        )
        return Grouped(keys, counts, tuple(sums), tuple(ranks))


def _cells(place: int, work: GroupPass, keys: Listed, joint: JointState) -> list[Cells]:
    return list(work.cells(joint.parts[place], keys))


def _of(place: int, sums: dict[str, Integers]) -> Sums:
    """The sums of one value column; squares where they are kept."""
    return tuple(sums[name] for name in (f"n{place}", f"s{place}", f"q{place}") if name in sums)
