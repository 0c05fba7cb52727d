"""All columns of a description: how a budget is divided among them, what is summed up, and what is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from snugdp.mechanisms.statistics.described import ROWS, DescribedRelease, EntryCounts
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.share import Share
from snugdp.queries.description.columns import (
    SUMS_WEIGHT,
    DescribedColumn,
    DescribedKind,
    NumberRequest,
    Unlisted,
    described_column,
)
from snugdp.queries.description.result import VALUE_NAMES, Description, names_with
from snugdp.queries.statistics.balance import balanced
from snugdp.queries.statistics.base import TYPICAL_ROWS, best
from snugdp.queries.table import Library, StatisticsTable, Value
from snugdp.tables.found import Flag, FoundBounds, FoundLevels, FoundNumber
from snugdp.tables.passes.columns.statistics import Measure, RowCount, StatisticsPass
from snugdp.tables.passes.together import Checked, JointState, Together
from snugdp.tables.schema.kinds import Number, Undeclared
from snugdp.tables.schema.schema import Schema

_COUNTED_SHARE = 0.9  # of the rows that were found: hardly ever too many
_LARGE_TABLE = 10**9  # rows, where errors are compared: to first order


@dataclass(frozen=True)
class DescribedTable:
    """The columns of a table by what they hold. Public.

    ``wanted``: what is asked of numbers. ``shares``: all that may be spent, in each currency that may be chosen.
    ``steps``: the spacing of some columns. ``seen``: what was found of numbers whose bounds are not public.
    ``declared``: what the types of the table are compared with; nothing where that was done before.
    """

    kinds: Mapping[str, DescribedKind]
    wanted: NumberRequest
    shares: tuple[Share, ...]
    steps: Mapping[str, Real] = field(default_factory=dict)
    seen: Mapping[str, FoundNumber] = field(default_factory=dict)
    declared: Checked | None = None

    @cached_property
    def columns(self) -> tuple[DescribedColumn, ...]:
        """What is drawn of each."""
        steps, kinds = self.steps, self.kinds
        plain = [described_column(name, 1, kind, self.wanted, steps.get(name)) for name, kind in kinds.items()]
        part = Fraction(SUMS_WEIGHT, sum(column.weight for column in plain))
        wanted = replace(self.wanted, shares=tuple(share.part(part) for share in self.shares))
        return tuple(
            described_column(name, at, kind, self._known_rows(wanted, name), steps.get(name), seen=self.seen.get(name))
            for at, (name, kind) in enumerate(kinds.items(), 1)
        )

    def _known_rows(self, wanted: NumberRequest, name: str) -> NumberRequest:
        """With the number of rows that have an entry, as far as that was found."""
        if wanted.rows is None or name not in self.seen:
            return wanted
        return replace(wanted, rows=max(int(wanted.rows * (1 - (self.seen[name].missing or 0.0))), 1))

    @cached_property
    def _weights(self) -> int:
        return sum(column.weight for column in self.columns)

    def _part(self, share: Share, weight: int) -> Share:
        """The part of a share that a weight stands for."""
        return share.part(Fraction(weight, self._weights))

    @cached_property
    def share(self) -> Share:
        """The currency with the smaller errors: on average over columns and statistics, as ratios."""

        def doubt(share: Share) -> float:
            errors = (column.errors(partial(self._part, share), _LARGE_TABLE).values() for column in self.columns)
            return sum(math.log(error) for several in errors for error in several)

        return self.shares[0] if len(self.shares) == 1 else best(self.shares, doubt)

    @cached_property
    def mechanism(self) -> DescribedRelease:
        """All portions of all columns."""
        shares = partial(self._part, self.share)
        portions = (portion for column in self.columns for portion in column.portions(shares))
        return DescribedRelease(tuple(portions), self.share.neighbours)

    def forecast(self) -> Forecast:
        """What to expect, column by column."""
        rows, shares = self.wanted.rows or TYPICAL_ROWS, partial(self._part, self.share)
        weights = Note("describe-weights", {"total": self._weights})
        notes = (Note("describe-rows", {"rows": rows}), *(column.note(shares, rows) for column in self.columns))
        return Forecast(chances=(PassChance(1.0, "always"),), notes=(weights, *notes, Note("missing-counted")))

    @cached_property
    def work(self) -> Together:
        """The one pass."""
        cells = (column.cells for column in self.columns)
        return Together((self._sums, *(each for each in cells if each is not None)), self.declared)

    @cached_property
    def _sums(self) -> StatisticsPass:
        measures: list[Measure] = [RowCount(), *(column.measure for column in self.columns)]
        return StatisticsPass(tuple(measures))

    def statistics(self, states: JointState) -> Mapping[str, Any]:
        """What was summed up, by the portions that draw from it."""
        (rows,), *sums = self._sums.parts(states.parts[0])
        found: dict[str, Any] = {ROWS: rows}
        found |= {one.sums_id: one.statistics(rows, each) for one, each in zip(self.columns, sums, strict=True)}
        kept = [one.quantiles_id for one in self.columns if one.cells is not None]
        return found | {name: state.total() for name, state in zip(kept, states.parts[1:], strict=True)}

    def shown(self, library: Library, left_out: Mapping[str, str], drawn: Mapping[str, Any]) -> Description:
        """What was drawn, for people."""
        shares = partial(self._part, self.share)
        found = [column.found(drawn, shares) for column in self.columns]
        rows, counts = balanced([one.entries for one in found], self._tail, drawn.get(ROWS))
        quantiles = tuple(f"{float(100 * q):g}%" for q in self.wanted.quantiles)
        lines: list[tuple[Value, ...]] = []
        listed: list[tuple[Value, ...]] = []
        for name, one, (entries, missing) in zip(self.kinds, found, counts, strict=True):
            lines.append((name, *one.line(entries, missing, len(quantiles))))
            listed += [(name, value, count, one.value_error) for value, count in one.values]
        tables = (_table(names_with(quantiles), lines, library), _table(VALUE_NAMES, listed, library))
        return Description(rows, *tables, dict(left_out))

    @property
    def _tail(self) -> float:
        """How many standard deviations the noise of counts stays below in 19 of 20 cases."""
        return EntryCounts(self.share).noise.tail


def described_kinds(declared: Schema, found: FoundBounds) -> dict[str, DescribedKind]:
    """What the columns hold, as far as it was declared or found; of others entries are counted."""
    return {name: _kind(name, declared, found) for name in declared.columns}


def found_numbers(declared: Schema, found: FoundBounds) -> dict[str, FoundNumber]:
    """What was found of numbers and dates whose bounds are not public."""
    columns = ((name, found.columns.get(name)) for name in declared.open_columns)
    return {name: column for name, column in columns if isinstance(column, FoundNumber)}


def rows_found(found: FoundBounds) -> int:
    """A number of rows that hardly ever is too large."""
    return max(int(_COUNTED_SHARE * found.rows), 1)


def _kind(name: str, declared: Schema, found: FoundBounds) -> DescribedKind:
    known, told, seen = declared.columns[name], found.declared.columns[name], found.columns.get(name)
    if isinstance(known, Undeclared) and isinstance(told, Number):
        hidden = seen is None or seen.flag is Flag.NOT_FOUND
        return Unlisted("unknown") if hidden else Number()
    if isinstance(seen, FoundLevels) and seen.flag is not Flag.PUBLIC:
        return seen.kind() or Unlisted("category")
    return told


def _table(names: tuple[str, ...], lines: list[tuple[Value, ...]], library: Library) -> StatisticsTable:
    return StatisticsTable(names, tuple(zip(*lines, strict=True)) if lines else ((),) * len(names), library)
