"""One exact pass for columns: rows, sums of powers and products, counts in public cells, and sums up to public caps.

Cells become whole numbers of a public grid; all sums are of whole numbers, so any order and any partition of the rows
gives the same. The image of a cell depends on that cell and on public declarations alone, and a missing cell counts
nowhere but among the missing. The numbers in the comments are those of ``statistics.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any, Literal, Protocol, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.tables.cells import Names, dated, labelled, numbers, numeric, truths, type_name
from snugdp.tables.grid import Grid
from snugdp.tables.passes.base import SummingPass, Sums
from snugdp.tables.schema.kinds import DType
from snugdp.tables.schema.scaling import day_numbers, floats

Integers: TypeAlias = NDArray[np.int64]
Quantity: TypeAlias = Literal["numbers", "dates"]  # dates as days since 1970
Reading: TypeAlias = Quantity | Literal["booleans"] | Names
Reader: TypeAlias = Callable[[str, Reading], NDArray[Any]]

ALONE = "column"  # the name of a column that comes by itself
_MAX_SUM = 1 << 62  # of whole numbers in 64 bits
_MIN_BLOCK = 1 << 10  # rows: factors are cut in two before blocks get shorter
_ROWS = 1 << 16  # at a time, so that they stay in the cache
_KEY_SHIFT = 49  # of the bits of a float: its exponent and three more bits are left


class Measure(Protocol):
    """Some sums over the rows of a table. ``reads``: the columns, and as what."""

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """The columns that are read, and as what."""

    @property
    def size(self) -> int:
        """How many sums there are."""

    def sums(self, rows: int, read: Reader) -> list[int]:
        """The sums over some rows."""


class CellNumbers(Protocol):
    """A few whole numbers that each row adds to one cell, or to none."""

    @property
    def cells(self) -> int:
        """How many cells there are."""

    @property
    def width(self) -> int:
        """How many numbers a row adds."""

    @property
    def largest(self) -> int:
        """The largest size of a number that a row adds."""


class CellMeasure(CellNumbers, Protocol):
    """A measure of which each row adds a few whole numbers to one cell, or to none."""

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """The columns that are read, and as what."""

    def entries(self, rows: int, read: Reader) -> tuple[Integers, tuple[Integers, ...]]:
        """For every row its cell, -1 for none, and its numbers."""


@dataclass(frozen=True)
class RowCount:
    """How many rows there are."""

    reads: tuple[tuple[str, Reading], ...] = ()
    size = cells = width = largest = 1

    def sums(self, rows: int, read: Reader) -> list[int]:
        """The number of rows."""
        return [rows]

    def entries(self, rows: int, read: Reader) -> tuple[Integers, tuple[Integers, ...]]:
        """One for each row."""
        return np.zeros(rows, dtype=np.int64), (np.ones(rows, dtype=np.int64),)


@dataclass(frozen=True)
class PowerSums:
    """Sums of a**i b**j over the rows where all columns are numbers; a and b in cells above their lower bounds.

    In the order of (i, j): the first exponent changes last. The first sum is the number of these rows.
    """

    columns: tuple[str, ...]
    grids: tuple[Grid, ...]
    degree: int = 1
    reading: Quantity = "numbers"

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """All of them as numbers, or as dates."""
        return tuple((name, self.reading) for name in self.columns)

    @property
    def size(self) -> int:
        """One for each pair of exponents."""
        return int((self.degree + 1) ** len(self.columns))

    def sums(self, rows: int, read: Reader) -> list[int]:
        """The sums over some rows."""
        raw = [read(*one) for one in self.reads]
        known = ~np.isnan(raw[0]) if len(raw) == 1 else ~(np.isnan(raw[0]) | np.isnan(raw[1]))
        count = int(np.count_nonzero(known))
        cells = [_cells(grid, x[known]) for grid, x in zip(self.grids, raw, strict=True)]
        powers = [_powers(x, grid.width, self.degree) for grid, x in zip(self.grids, cells, strict=True)]
        every = product(range(self.degree + 1), repeat=len(raw))
        return [_exact_sum([p[i - 1] for p, i in zip(powers, each, strict=True) if i], count) for each in every]

    cells = 1

    @property
    def width(self) -> int:
        """The powers of the only column."""
        return self.degree + 1

    @property
    def largest(self) -> int:
        """The largest power at the upper bound."""
        return int(math.prod(grid.width for grid in self.grids) ** self.degree)

    def entries(self, rows: int, read: Reader) -> tuple[Integers, tuple[Integers, ...]]:
        """The powers of the only column, from 0 on."""
        values = read(*self.reads[0])
        known = ~np.isnan(values)
        cells = _cells(self.grids[0], np.where(known, values, 0.0))
        return np.where(known, 0, -1), tuple(cells**power for power in range(self.degree + 1))


class CellCounts:
    """How many rows are in each cell: every row counts once, in one of them."""

    width = largest = 1

    @property
    def size(self) -> int:
        """How many cells there are."""
        raise NotImplementedError

    @property
    def cells(self) -> int:
        """One for each sum."""
        return self.size

    def places(self, read: Reader) -> Integers:
        """The cell of every row."""
        raise NotImplementedError

    def sums(self, rows: int, read: Reader) -> list[int]:
        """The counts over some rows."""
        counts: list[int] = np.bincount(self.places(read), minlength=self.size).tolist()
        return counts

    def entries(self, rows: int, read: Reader) -> tuple[Integers, tuple[Integers, ...]]:
        """One for each row."""
        return self.places(read), (np.ones(rows, dtype=np.int64),)


@dataclass(frozen=True)
class TruthCounts(CellCounts):
    """How many cells are no, yes and neither."""

    column: str

    @property
    def size(self) -> int:
        """No, yes and neither."""
        return 3

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """The column, as booleans."""
        return ((self.column, "booleans"),)

    def places(self, read: Reader) -> Integers:
        """The cell of every row."""
        values = read(self.column, "booleans")
        return np.where(np.isnan(values), 2, (values == 1).astype(np.int64))


@dataclass(frozen=True)
class LabelCounts(CellCounts):
    """How many cells are each of the names, another label, and missing."""

    column: str
    names: Names

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """The column, as labels."""
        return ((self.column, self.names),)

    @property
    def size(self) -> int:
        """The names and two more."""
        return len(self.names) + 2

    def places(self, read: Reader) -> Integers:
        """The cell of every row."""
        places = read(self.column, self.names)
        return np.where(places < 0, self.size - 1, places)


@dataclass(frozen=True)
class EdgeCounts(CellCounts):
    """How many cells are below the first edge, from one edge up to the next, at or above the last, and missing.

    A number on an edge is above it, but for the last one, which belongs to the cell below it.
    """

    column: str
    edges: tuple[float, ...]

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """The column, as numbers."""
        return ((self.column, "numbers"),)

    @property
    def size(self) -> int:
        """The cells between the edges, the two outside, and one for what is missing."""
        return len(self.edges) + 2

    def places(self, read: Reader) -> Integers:
        """The cell of every row."""
        values = read(self.column, "numbers").astype(np.float64, copy=False)
        at = np.searchsorted(np.array(self.edges), values, side="right")
        at[values == self.edges[-1]] -= 1
        at[np.isnan(values)] = len(self.edges) + 1
        return at


@dataclass(frozen=True)
class SignedTotal:
    """Numbers of a column, in cells of a public grid."""

    column: str
    grid: Grid
    cells = width = 1

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """The column, as numbers."""
        return ((self.column, "numbers"),)

    @property
    def largest(self) -> int:
        """The farther bound."""
        return max(abs(self.grid.lower), abs(self.grid.upper), 1)

    def entries(self, rows: int, read: Reader) -> tuple[Integers, tuple[Integers, ...]]:
        """Each number."""
        values = read(*self.reads[0])
        known = ~np.isnan(values)
        return np.where(known, 0, -1), (self.grid.integers(np.where(known, values, 0.0), self.grid.lower),)


@dataclass(frozen=True)
class ZerosAndOnes:
    """Rows with an entry, and whether it is one of those that count. ``measure``: counts; the last cell is missing.

    ``ones``: from the first of these cells up to below the second, rows count.
    """

    measure: TruthCounts | LabelCounts
    ones: tuple[int, int]
    cells = largest = 1
    width = 2

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """As the counts."""
        return self.measure.reads

    def entries(self, rows: int, read: Reader) -> tuple[Integers, tuple[Integers, ...]]:
        """One for each row with an entry, and one more where it counts."""
        places, (each,) = self.measure.entries(rows, read)
        counts = (places >= self.ones[0]) & (places < self.ones[1])
        return np.where(places < self.measure.size - 1, 0, -1), (each, counts.astype(np.int64))


@dataclass(frozen=True)
class CappedSums:
    """By the distance of a number from a public centre: rows, and sums of powers of the distance, between caps.

    ``centre`` and ``caps`` are in cells of the grid; the caps ascend, and the last is the largest distance there is.
    First the rows below the centre, then the others; of each the powers 0 .. ``degree``; of each a sum for every cap:
    over the rows whose distance is at most this cap and above the one before.
    """

    column: str
    grid: Grid
    centre: int
    caps: tuple[int, ...]
    degree: int = 1
    reading: Quantity = "numbers"

    @property
    def reads(self) -> tuple[tuple[str, Reading], ...]:
        """The column, as numbers or as dates."""
        return ((self.column, self.reading),)

    @property
    def size(self) -> int:
        """Two sides, all powers, all caps."""
        return 2 * (self.degree + 1) * len(self.caps)

    def sums(self, rows: int, read: Reader) -> list[int]:
        """The sums over some rows."""
        values = read(self.column, self.reading)
        signed = _cells(self.grid, values[~np.isnan(values)]) + (self.grid.lower - self.centre)
        distance, width = np.abs(signed), len(self.caps)
        place = self._places(distance) + width * (signed >= 0)
        totals = np.array(
            [
                np.bincount(place, minlength=2 * width).astype(object),
                binned(place, distance, self.caps[-1], 2 * width),
                *(binned(place, distance * distance, self.caps[-1] ** 2, 2 * width) for _ in range(self.degree - 1)),
            ]
        )
        sides = totals.reshape(self.degree + 1, 2, width).transpose(1, 0, 2)
        return [int(total) for total in sides.ravel()]

    def _places(self, distance: Integers) -> Integers:
        """The first cap that is not below each distance: from a table by its leading bits, then step by step."""
        base, first, caps, steps = self._table
        keys = (distance.astype(np.float64).view(np.int64) >> _KEY_SHIFT) - base
        place: Integers = first[np.maximum(keys, 0)]
        for _ in range(steps):
            place = place + (distance > caps[place])  # 5
        return place

    @cached_property
    def _table(self) -> tuple[int, Integers, Integers, int]:
        """By the leading bits of a float, where its search begins; and how many steps it takes at most."""
        caps = np.array(self.caps)
        base, last = (int(key) >> _KEY_SHIFT for key in np.array([1.0, float(self.caps[-1])]).view(np.int64))
        lows = (np.arange(base, last + 2) << _KEY_SHIFT).view(np.float64)
        lows[0] = 0.0
        first = np.searchsorted(caps, lows)
        return base, first[:-1], caps, int(np.diff(first).max())

    def above(self, sums: list[int]) -> list[int]:
        """For every cap, how many rows are farther from the centre."""
        here, there = self._by_side(sums)
        counts = np.array(here[0]) + np.array(there[0])
        return [int(farther) for farther in counts.sum() - np.cumsum(counts)]

    def clipped(self, sums: list[int], cap: int) -> list[int]:
        """The sums of powers 0 .. degree of numbers clipped at the cap with this position, in cells above ``low``."""
        limit, low = self.caps[cap], self.low(cap)
        moments = [0] * (self.degree + 1)
        for sign, side in zip((-1, 1), self._by_side(sums), strict=True):
            far = sum(side[0][cap + 1 :])
            for power in range(self.degree + 1):
                moments[power] += sign**power * (sum(side[power][: cap + 1]) + far * limit**power)
        shift = self.centre - low
        shifted = [moments[0], moments[1] + shift * moments[0]]
        if self.degree == 2:
            shifted.append(moments[2] + 2 * shift * moments[1] + shift**2 * moments[0])
        return shifted

    def low(self, cap: int) -> int:
        """The lower end of the clipped range, in cells."""
        return max(self.grid.lower, self.centre - self.caps[cap])

    def high(self, cap: int) -> int:
        """The upper end of the clipped range, in cells."""
        return min(self.grid.upper, self.centre + self.caps[cap])

    def _by_side(self, sums: list[int]) -> list[list[list[int]]]:
        width, powers = len(self.caps), self.degree + 1
        cut = [sums[start : start + width] for start in range(0, self.size, width)]
        return [cut[:powers], cut[powers:]]


@dataclass(frozen=True)
class ReadColumns:
    """Which columns are read as what: what is public about them can be checked before a row is read."""

    reads: tuple[tuple[str, Reading], ...]

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare with the declared types of a table."""
        for name, reading in self.reads:
            fits = labelled if isinstance(reading, Names) else dated if reading == "dates" else numeric
            if not fits(types[name]):
                wanted = "labels" if isinstance(reading, Names) else reading
                raise TypeError(f'column "{name}" must hold {wanted}, not {type_name(types[name])}; convert it first')


@dataclass(frozen=True)
class StatisticsPass(SummingPass[Sums]):
    """All measures in one pass. Whole numbers, equal for every order and partition of the rows.

    Guarantee: the sums of the images of the rows, exactly (``statistics.proof.md``, Theorem 1).

    >>> import polars as pl
    >>> work = StatisticsPass((RowCount(), PowerSums(("age",), (Grid.across((0, 100), 16),))))
    >>> frame = nw.from_native(pl.DataFrame({"age": [50.0, 25.0, None, 700.0]}), eager_only=True)
    >>> work.parts(work.fold(work.empty(), frame))
    [[4], [3, 89600]]
    """

    measures: tuple[Measure, ...]

    @cached_property
    def _reads(self) -> tuple[tuple[str, Reading], ...]:
        return tuple(dict.fromkeys(one for measure in self.measures for one in measure.reads))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys(name for name, _ in self._reads))

    @property
    def schema(self) -> ReadColumns:
        """The types that they must have."""
        return ReadColumns(self._reads)

    def empty(self) -> Sums:
        """No rows."""
        return Sums(sum(measure.size for measure in self.measures))

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Some more rows; a column is read once, however many measures there are of it."""
        state.accumulate(self._sums(len(frame), read_images(frame, self._reads)))
        return state

    def alone(self, *columns: object) -> list[list[int]]:
        """The sums for columns that come by themselves, of equal length, in the order in which they are read.

        >>> StatisticsPass((TruthCounts(ALONE),)).alone(["yes", "no", 1, None])
        [[1, 2, 1]]
        """
        images = {read: _plain_image(data, read[1]) for read, data in zip(self._reads, columns, strict=True)}
        rows = {len(image) for image in images.values()}
        if len(rows) != 1:
            raise ValueError("the columns must have the same number of rows")
        return self._cut(self._sums(rows.pop(), images))

    def parts(self, state: Sums) -> list[list[int]]:
        """The sums of each measure."""
        return self._cut(state.values())

    def _sums(self, rows: int, images: Mapping[tuple[str, Reading], NDArray[Any]]) -> list[int]:
        totals = [0] * sum(measure.size for measure in self.measures)
        with np.errstate(all="ignore"):  # a warning would depend on private values
            for start in range(0, rows, _ROWS):
                part = {read: image[start : start + _ROWS] for read, image in images.items()}
                size = min(_ROWS, rows - start)
                more = (measure.sums(size, lambda *read, part=part: part[read]) for measure in self.measures)
                totals = [total + new for total, new in zip(totals, chain.from_iterable(more), strict=True)]
        return totals

    def _cut(self, values: list[int]) -> list[list[int]]:
        rest = iter(values)
        return [[next(rest) for _ in range(measure.size)] for measure in self.measures]


def read_images(
    frame: nw.DataFrame[Any], reads: tuple[tuple[str, Reading], ...]
) -> dict[tuple[str, Reading], NDArray[Any]]:
    """The columns of a frame, each as it is read."""
    return {(name, reading): _image(frame.get_column(name), reading) for name, reading in reads}


def _image(column: nw.Series[Any], reading: Reading) -> NDArray[Any]:
    if reading == "dates":
        return day_numbers(column)
    return floats(column) if reading == "numbers" else _plain_image(column.to_native(), reading)


def _plain_image(data: object, reading: Reading) -> NDArray[Any]:
    if isinstance(reading, Names):
        return reading.places(data)
    return numbers(data) if reading == "numbers" else truths(data)


def _cells(grid: Grid, known: NDArray[Any]) -> Integers:
    """Whole cells above the lower bound, 0 .. width."""
    return grid.integers(known.astype(np.float64, copy=False), grid.lower) - grid.lower  # 1


def _powers(cells: Integers, top: int, degree: int) -> list[tuple[Integers, int]]:
    """The powers 1 .. degree, each with its largest value."""
    return [(cells, top), (cells * cells, top**2)] if degree == 2 else [(cells, top)]


def _exact_sum(factors: list[tuple[Integers, int]], count: int) -> int:
    """The sum of a product of whole numbers, each at least 0 and at most its top; the number of rows without any."""
    if not factors:
        return count
    (first, top), rest = factors[0], factors[1:]
    block = _MAX_SUM // math.prod(top for _, top in factors)
    if block >= _MIN_BLOCK:
        second = rest[0][0] if rest else None
        return sum(_short_sum(first, second, slice(start, start + block)) for start in range(0, len(first), block))  # 2
    half = (top.bit_length() + 1) // 2
    low, high = first & ((1 << half) - 1), first >> half  # 3
    parts = [*rest, (high, top >> half)], [*rest, (low, (1 << half) - 1)]
    return (_exact_sum(parts[0], count) << half) + _exact_sum(parts[1], count)


def _short_sum(first: Integers, second: Integers | None, rows: slice) -> int:
    return int(first[rows].sum() if second is None else np.dot(first[rows], second[rows]))


def binned(place: Integers, values: Integers, top: int, size: int) -> NDArray[Any]:
    """For every place the sum of its values, at most ``top`` each: in parts of few bits, whose sums floats hold."""
    total: NDArray[Any] = np.zeros(size, dtype=object)
    bits = 53 - len(place).bit_length()
    for shift in range(0, top.bit_length(), bits):
        part = (values >> shift) & ((1 << bits) - 1)
        sums = np.bincount(place, part.astype(np.float64), minlength=size)  # 4
        total += np.array([int(each) << shift for each in sums], dtype=object)
    return total
