"""Statistics of a column for persons with several rows, from what each person adds with all of them.

Proof: ``mechanisms/persons/persons.proof.md``, Theorem 3.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

from snugdp.core.outcome import Outcome, Unit
from snugdp.mechanisms.persons.totals import (
    THEOREM,
    PersonVectors,
    ShownAtCap,
    ShownVectors,
    TotalsBlock,
    choice_part,
    divided,
    share_of_row,
)
from snugdp.mechanisms.statistics.joint import RELEASE
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.queries.statistics.base import ColumnStatistic, Contribution, PreparedStatistic, title_of
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons
from snugdp.release.spine import certify_and_release, release
from snugdp.secrecy.secret import Secret
from snugdp.tables.persons.totals import MeasureEntries, PersonTotals, person_totals
from snugdp.tables.sources import Source

Seen = TypeVar("Seen")
_MOST_CELLS = 16  # in which a person's rows are taken to lie, where pure and Gaussian noise are compared
_SCALAR = 9  # numbers, below which a public cap may well be better than one that is found privately


class PersonStatistic(Generic[Seen]):
    """A statistic as it is released for persons: the whole budget is theirs."""

    def __init__(self, query: ColumnStatistic[Seen], persons: Persons) -> None:
        bare = {"clip": None} if hasattr(query, "clip") else {}
        self._asked = query.without_persons(**bare)
        self._gaps = query._gaps
        self._persons = persons

    @cached_property
    def _share(self) -> Share:
        shares = self._asked._shares
        found = self._contribution_of(shares[0])
        return better_share(shares, 1 if found.cell is not None else found.measure.cells, self._persons.most)

    def _contribution_of(self, share: Share) -> Contribution:
        return self._asked._contribution(share)

    @cached_property
    def _contribution(self) -> Contribution:
        return self._contribution_of(self._share)

    @cached_property
    def _entries(self) -> MeasureEntries:
        return MeasureEntries(self._contribution.measure, self._contribution.cell)

    @cached_property
    def _vectors(self) -> PersonVectors:
        found, persons = self._contribution, self._persons
        drawn, rest = divided(self._share, self._entries.cells * len(found.rows), in_private=persons.is_private)
        block = TotalsBlock(tuple(range(len(found.rows[0]))), found.rows, found.moves, rest, RELEASE)
        return PersonVectors((block,), self._entries.cells, persons.most, persons.is_private, found.least, drawn)

    def _prepared(self, cap: Fraction) -> PreparedStatistic[Seen]:
        """The statistic of single rows, each of which may cost what a person has divided by the cap."""
        return self._asked._prepare((share_of_row(self._vectors.blocks[0].share, cap),))

    def _show(self, cap: Fraction, drawn: list[list[Fraction]]) -> Seen:
        return self._prepared(cap).show([round(each) for each in drawn[0]])

    @cached_property
    def plan(self) -> Plan:
        """What will be done and what it costs."""
        vectors, title = self._vectors, title_of(self._asked)
        cap = Fraction(1 if vectors.in_private else vectors.largest)
        forecast = self._prepared(cap).forecast
        if vectors.in_private:
            notes = cap_notes(vectors, forecast.answer_error)
            forecast = Forecast(notes=notes)
        else:
            notes = (Note("persons-totals", {"rows": vectors.largest}),)
            forecast = replace(forecast, notes=(*forecast.notes, *notes))
        plan = Plan(title, THEOREM, vectors.steps(), {}, forecast, self._persons.budget, Unit.PERSON)
        return plan.with_notes(*self._gaps)

    def release(self, source: Source, library: Any, context: ReleaseContext) -> Outcome[Seen]:
        """Read, pay, draw."""
        data = person_totals(source, self._entries, self._persons.column)
        return released(self.plan, ShownVectors(self._vectors, self._show), data, context)


def released(
    plan: Plan, shown: ShownVectors[Seen], data: Secret[PersonTotals], context: ReleaseContext
) -> Outcome[Seen]:
    """Under a public cap, or under one that is found first and is the certificate of the outcome."""
    if shown.vectors.in_private:
        return certify_and_release(plan, shown.vectors, shown, data, context)
    return release(plan, ShownAtCap(shown), data, context)


def better_share(shares: tuple[Share, ...], cells: int, most: int, parts: int = 1) -> Share:
    """Pure noise hides the sum of what a person adds, Gaussian noise its length: the better one, by public numbers."""
    pure, *others = shares
    spread = math.sqrt(min(cells, most, _MOST_CELLS))
    each = (share.part(Fraction(1, parts)) for share in shares)
    sizes = [TotalsBlock((0,), ((1,),), (Fraction(1),), share, RELEASE).unit_noise for share in each]
    return others[0] if others and sizes[1] < sizes[0] * spread else pure


def cap_notes(vectors: PersonVectors, error: float | None) -> tuple[Note, ...]:
    """What a plan says of a cap that is found privately: what it costs and gains, against a public one."""
    numbers = vectors.numbers
    part = float(choice_part(vectors.blocks[0].share, numbers))
    params = {"candidates": len(vectors.candidates), "largest": vectors.largest, "part": part}
    found = [Note("persons-private-cap", params)]
    if error is not None:
        found.append(Note("persons-cap-error", {"error": error, "largest": vectors.largest}))
    if vectors.restores:
        found.append(Note("persons-cap-restored"))
    return (*found, Note("persons-cap-few" if numbers < _SCALAR else "persons-cap-many"))
