"""Quantiles for persons with several rows: all rows of a person are used, with weights that add up to a public cap.

Proof: ``mechanisms/persons/persons.proof.md``, Theorem 4.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome, Unit
from snugdp.mechanisms.order_statistics.rank_draw import MAX_PERSON_DENOMINATOR, OneRank, RankDraw, RankTarget
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import Shown
from snugdp.queries.order_statistics.base import RankQuery, SingleRank
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons
from snugdp.release.spine import release_if_drawn
from snugdp.tables.persons.totals import RankEntries, all_weighted, person_totals
from snugdp.tables.sources import Source

Seen = TypeVar("Seen")
THEOREM = theorem("person-ranks/1")
FULL = 1 << 20  # the weight of a row that counts in full
MAX_CAP = 1 << 10


class PersonRanks(Generic[Seen]):
    """Quantiles as they are released for persons: the whole budget is theirs, and pure."""

    def __init__(self, query: RankQuery[Seen], persons: Persons) -> None:
        if persons.most > MAX_CAP:
            raise ValueError(f"max_rows must be at most {MAX_CAP:,} for quantiles")
        self._asked, self._persons = query.without_persons(), persons

    @cached_property
    def _mechanism(self) -> OneRank | SeveralQuantiles:
        asked, most = self._asked, self._persons.most
        share, wanted = Share.pure(self._persons.budget), asked._weighed
        assert wanted is not None
        if not isinstance(asked, SingleRank):
            return SeveralQuantiles(wanted, asked._points, share, FULL, most)
        half = share.epsilon / (1 if share.neighbours is Neighbours.ADD_REMOVE else 2)
        target = RankTarget.quantile(wanted[0], MAX_PERSON_DENOMINATOR)
        return OneRank(RankDraw(target, asked._points, half, Neighbours.ADD_REMOVE, FULL, most), share)

    @cached_property
    def plan(self) -> Plan:
        """What will be done and what it costs."""
        most = self._persons.most
        note = Note("persons-weights-one") if most == 1 else Note("persons-weights", {"rows": most})
        plan = self._asked._plan_of(self._mechanism)
        return replace(plan, theorem=THEOREM, budget=self._persons.budget, unit=Unit.PERSON).with_notes(note)

    def release(self, source: Source, library: Any, context: ReleaseContext) -> Outcome[Seen]:
        """Read, pay, draw."""
        asked, most = self._asked, self._persons.most
        assert asked.column is not None
        entries = RankEntries(asked.column, asked._grid, asked._missing_cell)
        cells = person_totals(source, entries, self._persons.column).map(
            lambda totals: all_weighted(totals, FULL, most, entries.grid.lower)
        )
        return release_if_drawn(self.plan, Shown(self._mechanism, asked._shown), cells, context)
