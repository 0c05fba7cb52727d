"""Groups with listed keys for persons with several rows, from what each person adds with all of them.

Proof: ``mechanisms/persons/persons.proof.md``, Theorem 3.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np

from snugdp.core.outcome import Outcome, Unit
from snugdp.mechanisms.keys.grouped import COUNT, Asked, Grouped, GroupedRelease
from snugdp.mechanisms.keys.moments import Floats, GroupMoments
from snugdp.mechanisms.persons.totals import THEOREM, PersonVectors, ShownVectors, TotalsBlock, divided, share_of_row
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.groups import GroupBy
from snugdp.queries.statistics.base import budget_shares
from snugdp.queries.statistics.persons import better_share, cap_notes, released
from snugdp.queries.table import Library, StatisticsTable
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons, drawn_key
from snugdp.tables.passes.counts.keys import KeyColumn
from snugdp.tables.persons.keep import keep_keys
from snugdp.tables.persons.totals import GroupEntries, person_totals
from snugdp.tables.sources import Source

KEYS_THEOREM = theorem("person-keys/1")


class PersonGroups:
    """Counts and sums of listed groups as they are released for persons: the whole budget is theirs."""

    def __init__(self, query: GroupBy, persons: Persons) -> None:
        self._query, self._persons = query.without_persons(), persons

    @cached_property
    def _share(self) -> Share:
        shares, parts = budget_shares(self._persons.budget), len(self._query.columns) + 1
        return better_share(shares, len(self._query.groups), self._persons.most, parts)

    @cached_property
    def _divided(self) -> tuple[Share | None, Share]:
        return divided(self._share, len(self._query.groups), in_private=self._persons.is_private)

    def _made(self, share: Share) -> GroupedRelease:
        """The release about single rows that a share pays for."""
        return GroupedRelease.of_share(share, Asked(tuple(one.power for one in self._query.columns)))

    @cached_property
    def _vectors(self) -> PersonVectors:
        drawn, rest = self._divided
        made = self._made(rest)
        assert made.count is not None
        blocks, place = [_block(made.count, 0)], 1
        for one, column in zip(made.columns, self._query.columns, strict=True):
            blocks.append(_block(one, place))
            place += 2 + column.column.squares
        most, cells = self._persons.most, len(self._query.groups)
        return PersonVectors(tuple(blocks), cells, most, self._persons.is_private, share=drawn)

    def _at(self, cap: Fraction) -> GroupedRelease:
        """The release about single rows under a cap."""
        return self._made(share_of_row(self._divided[1], cap))

    @cached_property
    def plan(self) -> Plan:
        """What will be done and what it costs."""
        vectors, query = self._vectors, self._query
        made = self._at(Fraction(1 if vectors.in_private else vectors.largest))
        if vectors.in_private:
            notes = (Note("groups-listed", {"groups": len(query.groups)}), *cap_notes(vectors, made.count_error))
        else:
            notes = (*query.expected(made), Note("persons-totals", {"rows": vectors.largest}))
        steps = vectors.steps((COUNT, *(one.column.name for one in query.columns)))
        forecast = Forecast(notes=(*notes, query.gaps))
        return Plan("Group by", THEOREM, steps, {}, forecast, self._persons.budget, Unit.PERSON)

    def release(self, source: Source, library: Library, context: ReleaseContext) -> Outcome[StatisticsTable]:
        """Read, pay, draw."""
        work = self._query.sums_pass(source)
        if any(key.lists for key in work.keys):
            raise TypeError("the cells of a key column are lists: with max_rows above 1 they must be single keys")
        keys = cast(tuple[KeyColumn, ...], work.keys)
        data = person_totals(source, GroupEntries(keys, work.values, work.missing), self._persons.column)

        def show(cap: Fraction, drawn: list[list[Fraction]]) -> StatisticsTable:
            made = self._at(cap)
            counts, *columns = (np.array(each, dtype=np.float64) for each in drawn)
            sums = (one.sums_from(_by_row(one, each)) for one, each in zip(made.columns, columns, strict=True))
            return self._query.table(made, Grouped(self._query.groups, counts, tuple(sums)), work.keys, library)

        return released(self.plan, ShownVectors(self._vectors, show), data, context)


class PersonKeys:
    """Groups whose keys nobody listed: each person counts once for each of a few keys."""

    def __init__(self, query: GroupBy, persons: Persons) -> None:
        self._query, self._persons = query.without_persons(), persons

    @cached_property
    def _made(self) -> GroupedRelease:
        return self._query.mechanism_for(self._persons.most)

    @cached_property
    def plan(self) -> Plan:
        """What will be done and what it costs."""
        plan = replace(self._query.plan_of(self._made), theorem=KEYS_THEOREM, unit=Unit.PERSON)
        return plan.with_notes(Note("persons-keys", {"keys": self._persons.most}))

    def release(self, source: Source, library: Library, context: ReleaseContext) -> Outcome[StatisticsTable]:
        """Keep the rows, read them, pay, draw."""
        query, persons = self._query, self._persons
        query.check(source)
        work = query.sums_pass(source)
        if any(key.lists for key in work.keys):
            raise TypeError("the cells of a key column are lists: with max_rows above 1 they must be single keys")
        keys = cast(tuple[KeyColumn, ...], work.keys)
        kept = keep_keys(
            source,
            query.read_columns,
            persons.column,
            keys,
            most=persons.most,
            key=drawn_key(context.noise),
            missing=work.missing,
        )
        return query.release_groups(kept, library, self._made, self.plan, context)


def _by_row(moments: GroupMoments, drawn: Any) -> Floats:
    """A line for every combination."""
    found: Floats = drawn.reshape(len(moments.basis.rows), -1)
    return found


def _block(moments: GroupMoments, place: int) -> TotalsBlock:
    """What is released of one column, whose numbers begin at this place."""
    rows = moments.basis.rows
    width = max(i + 1 for row in rows for i, factor in enumerate(row) if factor)
    places = tuple(range(place, place + width))
    return TotalsBlock(places, tuple(row[:width] for row in rows), moments.moves, moments.share, moments.step)
