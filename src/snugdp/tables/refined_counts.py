"""Ranks of a column that stays where it is: counts by bins, refined around a rank until its values are few.

Memory and what travels are bounded, whatever the number of rows. The first pass counts all rows. Each of the next ones
makes the windows of two ranks 2**14 times smaller, and a window of 2**14 cells has few values: of 2**64 cells,
four such passes are enough. One more brings their values, and one what lies between both ranks. So there are at most
six, and usually two or three.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.engines import gather
from snugdp.tables.grid import CellRange
from snugdp.tables.passes.counts.value_counts import ColumnCells, ValueCounts
from snugdp.tables.passes.counts.window_counts import MAX_SINGLE_VALUES, Window, WindowCounts, WindowState
from snugdp.tables.passes.together import Together
from snugdp.tables.sources import Source

if TYPE_CHECKING:
    from snugdp.tables.passes.counts.sorted_counts import SortedCounts

MAX_PASSES = 6


class RefinedCounts(PrivateState):
    """All values of a column on a public grid, by their ranks: as ``ValueCounts``, read when they are asked for.

    Private. All passes read one table, or raise (``passes/digest.proof.md``).
    """

    __slots__ = ("_column", "_first", "_found", "_grid", "_missing", "_source", "rows")

    def __init__(self, source: Source, column: str, grid: CellRange, missing: int | None) -> None:
        self._source, self._column, self._grid, self._missing = source, column, grid, missing
        self._found: dict[tuple[int, int], tuple[ValueCounts, int]] = {}
        self._first = gather(source, WindowCounts(column, grid, Window(grid.lower, grid.upper), missing))
        self.rows = self._first.rows

    def between(self, start: int, stop: int) -> tuple[ValueCounts, int]:
        """The values of the rows of rank ``start`` to ``stop``, with all their rows, and how many rows are below."""
        if (start, stop) not in self._found:
            state = self._holding(start, stop)
            values, below = state.values.between(start - state.below, stop - state.below)
            self._found[start, stop] = values, state.below + below
        return self._found[start, stop]

    def whole(self) -> ValueCounts:
        """All of them in memory."""
        return self._sorted().whole()

    def blocks(self) -> Iterator[ValueCounts]:
        """All of them, block by block."""
        return self._sorted().blocks()

    def _sorted(self) -> ValueCounts | SortedCounts:
        work = ColumnCells(self._column, self._grid, self._missing)
        return gather(self._source, work, progress=False).ranked()

    def _holding(self, start: int, stop: int) -> WindowState:
        """The values of a window that holds the rows of these ranks."""
        low = high = self._first
        while low is not high or low.bins is not None:
            first, last = _place(low, start), _place(high, stop - 1)
            if last.upto - first.under <= MAX_SINGLE_VALUES or first.window.size == last.window.size == 1:
                whole = Window(first.window.low, last.window.high)  # at most stop - start values, or few rows
                return self._read([whole], max(MAX_SINGLE_VALUES, stop - start))[0]
            found = self._read(list(dict.fromkeys([first.window, last.window])))
            low, high = found[0], found[-1]
        return low

    def _read(self, windows: list[Window], most: int = MAX_SINGLE_VALUES) -> list[WindowState]:
        passes = [WindowCounts(self._column, self._grid, window, self._missing, most) for window in windows]
        found: list[WindowState] = gather(self._source, Together(tuple(passes), passes[0].schema), progress=False).parts
        return found


@dataclass(frozen=True, repr=False, eq=False)
class _Place(PrivateState):
    """Where a rank lies: a bin or a value, and how many rows are below it and up to it."""

    window: Window
    under: int
    upto: int


def _place(state: WindowState, rank: int) -> _Place:
    counts = state.values.counts if state.bins is None else state.bins
    sums = np.cumsum(counts)
    at = int(np.searchsorted(sums, rank - state.below, side="right"))
    upto = state.below + int(sums[at])
    value = int(state.values.values[at]) if state.bins is None else 0
    window = Window(value, value) if state.bins is None else state.window.part(at, at)
    return _Place(window, upto - int(counts[at]), upto)
