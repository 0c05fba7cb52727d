"""One pass over a column on a public grid: what lies in a window of it, in bounded memory.

The values of the window and how often each occurs, while they are few; otherwise how many rows lie in each of at most
16,384 bins of equal length, a power of two. Which of both depends on the number of different values in the window
alone, so states are the same in every order and for every division of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from snugdp.secrecy.private_state import PrivateState, sealed, unsealed
from snugdp.tables.passes.counts.value_counts import GridColumn, Integers, ValueCounts
from snugdp.tables.schema.scaling import floats

_HEADER = b"window-counts/1\n"
_BIN_BITS = 14  # as many bins as values that are kept one by one
MAX_SINGLE_VALUES = 1 << 14  # values that are kept one by one
_STEP = 1 << 17  # rows that are read at a time
_NO_VALUES = ValueCounts.of(np.empty(0, dtype=np.int64))
_WORD = 1 << 64


@dataclass(frozen=True)
class Window:
    """The cells from ``low`` to ``high``, in bins of 2**shift cells.

    >>> window = Window(-5, 4_095_994)
    >>> window.shift, window.places(np.array([-5, 994, 995, 4_095_994])).tolist(), window.part(1, 2)
    (8, [0, 3, 3, 15999], Window(low=251, high=762))
    """

    low: int
    high: int

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.high - self.low + 1

    @property
    def shift(self) -> int:
        """The binary logarithm of the length of a bin."""
        return max(0, (self.size - 1).bit_length() - _BIN_BITS)

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return (self.size - 1 >> self.shift) + 1

    def places(self, cells: Integers) -> Integers:
        """The bins of cells of the window. Differences of 64-bit numbers are exact modulo 2**64, and all are below."""
        offsets = cells.view(np.uint64) - np.uint64(self.low % _WORD)
        return (offsets >> np.uint64(self.shift)).astype(np.int64)

    def part(self, first: int, last: int) -> Window:
        """The bins from one to another one."""
        return Window(self.low + (first << self.shift), min(self.low + (last + 1 << self.shift) - 1, self.high))


class WindowState(PrivateState):
    """How many rows lie below a window, and its rows: by values, or by bins. Private."""

    __slots__ = ("below", "bins", "values", "window")

    def __init__(self, window: Window, below: int = 0) -> None:
        self.window, self.below = window, below
        self.values = _NO_VALUES
        self.bins: Integers | None = None

    @property
    def rows(self) -> int:
        """Of the window."""
        return self.values.rows if self.bins is None else int(self.bins.sum())

    def add(self, cells: Integers, most: int) -> None:
        """More cells of the window."""
        if self.bins is None:
            self.add_counts(ValueCounts.of(cells), most)
        else:
            self.bins += np.bincount(self.window.places(cells), minlength=self.window.bins)

    def add_counts(self, counts: ValueCounts, most: int) -> None:
        """More values of the window, each as often as it occurs; bins once there are more than ``most``."""
        if self.bins is None:
            self.values = self.values.merge(counts)
            if len(self.values.values) <= most:
                return
            counts, self.values = self.values, _NO_VALUES
            self.bins = np.zeros(self.window.bins, dtype=np.int64)
        np.add.at(self.bins, self.window.places(counts.values), counts.counts)

    def merge(self, other: WindowState, most: int) -> WindowState:
        """Those of both."""
        self.below += other.below
        if other.bins is None:
            self.add_counts(other.values, most)
            return self
        if self.bins is not None:
            self.bins += other.bins
            return self
        mine, self.values, self.bins = self.values, _NO_VALUES, other.bins
        self.add_counts(mine, most)
        return self


@dataclass(frozen=True)
class WindowCounts(GridColumn):
    """The cells of one column in a window of a public grid.

    ``missing``: the cell of rows that are missing or invalid; without it they are left out. ``most``: values that are
    kept one by one. The image of a row depends on that row alone.
    """

    window: Window
    missing: int | None = None
    most: int = MAX_SINGLE_VALUES

    def empty(self) -> WindowState:
        """No rows."""
        return WindowState(self.window)

    def fold(self, state: WindowState, frame: nw.DataFrame[Any]) -> WindowState:
        """Some more rows."""
        column, whole = frame.get_column(self.column), (self.window.low, self.window.high)
        for start in range(0, len(column), _STEP):
            cells = self.grid.cells(floats(column[start : start + _STEP]), self.missing)
            if whole != (self.grid.lower, self.grid.upper):
                state.below += int(np.count_nonzero(cells < self.window.low))
                cells = cells[(cells >= self.window.low) & (cells <= self.window.high)]
            state.add(cells, self.most)
        return state

    def merge(self, one: WindowState, other: WindowState) -> WindowState:
        """Both parts."""
        return one.merge(other, self.most)

    def pack(self, state: WindowState) -> bytes:
        """Whole numbers; how many bytes that are tells how many values there are."""
        held = [state.values.values, state.values.counts] if state.bins is None else [state.bins]
        about = [state.below, int(state.bins is not None)]
        return sealed(_HEADER + np.concatenate([np.array(about, dtype=np.int64), *held]).astype("<i8").tobytes())

    def unpack(self, packed: bytes) -> WindowState:
        """What was packed."""
        body = unsealed(packed)
        if not body.startswith(_HEADER) or (len(body) - len(_HEADER)) % 8:
            raise ValueError("these bytes are not counts in a window")
        (below, binned), held = np.split(np.frombuffer(body[len(_HEADER) :], dtype="<i8").astype(np.int64), [2])
        state = WindowState(self.window, int(below))
        if binned:
            state.bins = held
        else:
            state.values = ValueCounts(*held.reshape(2, -1))
        return state
