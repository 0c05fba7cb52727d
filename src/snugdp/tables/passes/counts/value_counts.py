"""One pass over a column: its values on a public grid, each once, and how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState, sealed, unsealed
from snugdp.tables.grid import CellRange
from snugdp.tables.schema.scaling import day_numbers, floats
from snugdp.tables.schema.schema import Date, Number, Schema

if TYPE_CHECKING:
    from snugdp.tables.passes.counts.sorted_counts import FiledCounts, SortedCounts
    from snugdp.tables.spill import Spill

Integers = NDArray[np.int64]
_HEADER = b"value-counts/1\n"
MAX_VALUES = 1 << 19  # values in memory before they are written to a file
_STEP = 1 << 17  # rows that are sorted at a time


@dataclass(frozen=True, eq=False, repr=False)
class ValueCounts(PrivateState):
    """Values in ascending order, each once, and how often each occurs."""

    values: Integers
    counts: Integers

    @classmethod
    def of(cls, cells: Integers) -> ValueCounts:
        """Of cells in any order."""
        return cls(*np.unique(cells, return_counts=True))

    @property
    def rows(self) -> int:
        """How many cells there are."""
        return int(self.counts.sum())

    def cells(self) -> Integers:
        """All cells again, in ascending order."""
        return np.repeat(self.values, self.counts)

    def merge(self, other: ValueCounts) -> ValueCounts:
        """Of both: whole numbers, so exact in any order."""
        both = np.concatenate([self.values, other.values]), np.concatenate([self.counts, other.counts])
        return added_up(*both)

    def between(self, start: int, stop: int) -> tuple[ValueCounts, int]:
        """The values of the rows of rank ``start`` to ``stop``, with all their rows, and how many rows are below."""
        sums = np.cumsum(self.counts)
        first, last = (int(np.searchsorted(sums, rank, side="right")) for rank in (start, stop - 1))
        part = slice(first, last + 1)
        return ValueCounts(self.values[part], self.counts[part]), int(sums[first - 1]) if first else 0

    def whole(self) -> ValueCounts:
        """All of them in memory, where they are."""
        return self

    def blocks(self) -> Iterator[ValueCounts]:
        """All of them at once."""
        yield self


def added_up(values: Integers, counts: Integers) -> ValueCounts:
    """Each value once, in ascending order, with the sum of its counts."""
    order = np.argsort(values, kind="stable")
    values = values[order]
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if len(values) else order
    return ValueCounts(values[first], np.add.reduceat(counts[order], first) if len(values) else counts)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedCells(PrivateState):
    """Cells in any order, each with a whole weight of at least 0, by which it counts."""

    cells: Integers
    weights: Integers

    def counts(self) -> ValueCounts:
        """The cells in ascending order, each once, with their weights added up."""
        values, where = np.unique(self.cells, return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, where, self.weights)
        return ValueCounts(values[counts > 0], counts[counts > 0])

    def chosen(self, which: NDArray[np.bool_]) -> WeightedCells:
        """Some of them."""
        return WeightedCells(self.cells[which], self.weights[which])


class GatheredCounts(PrivateState):
    """Counts in the making: parts of growing size, so that merging many small ones takes little time in all.

    Once there are too many values for memory, they are written to a file as a sorted run.
    """

    __slots__ = ("_parts", "_runs", "_spill")

    def __init__(self, *parts: ValueCounts) -> None:
        self._parts = list(parts)
        self._runs: list[FiledCounts] = []
        self._spill: Spill | None = None

    def add(self, more: ValueCounts) -> GatheredCounts:
        """More rows. A part is merged with those before it that are not larger than twice its size."""
        while self._parts and len(self._parts[-1].values) <= 2 * len(more.values):
            more = self._parts.pop().merge(more)
        self._parts.append(more)
        if len(more.values) > MAX_VALUES:
            self._write()
        return self

    def join(self, other: GatheredCounts) -> GatheredCounts:
        """All rows of both."""
        self._runs += other._runs
        return self.add(other._in_memory())

    def total(self) -> ValueCounts:
        """All rows, in memory."""
        return self.ranked().whole()

    def ranked(self) -> ValueCounts | SortedCounts:
        """All rows: in memory, or in a file where they were too many."""
        if not self._runs:
            return self._in_memory()
        from snugdp.tables.passes.counts.sorted_counts import SortedCounts

        self._write()
        return SortedCounts(self._runs)

    def _in_memory(self) -> ValueCounts:
        found = ValueCounts.of(np.empty(0, dtype=np.int64))
        for part in reversed(self._parts):
            found = part.merge(found)
        return found

    def _write(self) -> None:
        from snugdp.tables.passes.counts.sorted_counts import FiledCounts
        from snugdp.tables.spill import Spill  # polars: only for those who bring many values

        self._spill = Spill() if self._spill is None else self._spill
        self._runs.append(FiledCounts.written(self._spill, self._in_memory()))
        self._parts = []


@dataclass(frozen=True)
class GridColumn:
    """One column of numbers on a public grid."""

    column: str
    grid: CellRange

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def schema(self) -> Schema:
        """The type that the column must have. Its bounds are those of the grid."""
        return Schema({self.column: Number(-1, 1)}, intercept=False)


@dataclass(frozen=True)
class ColumnCells(GridColumn):
    """The cells of one column on a public grid.

    ``missing``: the cell of rows that are missing or invalid; without it they are left out. ``dates``: whether cells
    are read as days since 1970. The image of a row depends on that row alone.

    >>> import pandas as pd
    >>> from snugdp.tables.grid import StepGrid
    >>> work = ColumnCells("age", StepGrid.between((0, 120), 1))
    >>> frame = nw.from_native(pd.DataFrame({"age": [30, 31, 30, None]}), eager_only=True)
    >>> work.fold(work.empty(), frame).total().counts
    array([2, 1])
    """

    missing: int | None = None
    dates: bool = False

    @property
    def schema(self) -> Schema:
        """That of numbers, or of dates."""
        return Schema({self.column: Date(-1, 1)}, intercept=False) if self.dates else super().schema

    def empty(self) -> GatheredCounts:
        """No rows."""
        return GatheredCounts()

    def fold(self, state: GatheredCounts, frame: nw.DataFrame[Any]) -> GatheredCounts:
        """Some more rows."""
        read = day_numbers if self.dates else floats
        column = frame.get_column(self.column)
        for start in range(0, len(column), _STEP):
            cells = self.grid.cells(read(column[start : start + _STEP]), self.missing)
            state = state.add(ValueCounts.of(cells))
        return state

    def merge(self, one: GatheredCounts, other: GatheredCounts) -> GatheredCounts:
        """Both parts."""
        return one.join(other)

    def pack(self, state: GatheredCounts) -> bytes:
        """All values and counts; how many bytes that are tells how many values there are."""
        found = state.total()
        return sealed(_HEADER + np.stack([found.values, found.counts]).astype("<i8").tobytes())

    def unpack(self, packed: bytes) -> GatheredCounts:
        """What was packed."""
        body = unsealed(packed)
        if not body.startswith(_HEADER) or (len(body) - len(_HEADER)) % 16:
            raise ValueError("these bytes are not counts of values")
        values, counts = np.frombuffer(body[len(_HEADER) :], dtype="<i8").reshape(2, -1).astype(np.int64)
        return GatheredCounts(ValueCounts(values, counts))
