"""What each person adds to sums over rows, cell by cell: whole numbers, exact, in one pass over the rows.

The line numbers in the comments are those of ``totals.proof.md``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState, sealed, unsealed
from snugdp.secrecy.secret import Secret
from snugdp.tables.engines import gather
from snugdp.tables.grid import CellRange
from snugdp.tables.passes.columns.statistics import CellMeasure, CellNumbers, ReadColumns, read_images
from snugdp.tables.passes.counts.groups import BITS, UNIT, ValueColumn
from snugdp.tables.passes.counts.keys import KeyColumn
from snugdp.tables.passes.counts.value_counts import WeightedCells
from snugdp.tables.persons import passes
from snugdp.tables.persons.hashing import mixed, subkeys
from snugdp.tables.persons.images import rows_of_persons
from snugdp.tables.persons.order import HASH, TEXT, WHO, in_order
from snugdp.tables.persons.passes import HeldPass, checked
from snugdp.tables.sources import Source
from snugdp.tables.sources.base import Frame
from snugdp.tables.spill import Spill, SpilledRows

Integers: TypeAlias = NDArray[np.int64]

ROWS = "rows"
_BUCKET_BITS = 6
_BUCKETS = 1 << _BUCKET_BITS
_MAX_DEPTH = 64 // _BUCKET_BITS
_LOOSE = -1  # the bucket of rows without an identifier
_HASH_BITS = 16  # of a cell, at least: so many decide at once (``order``)
_MAX_TOTAL = 1 << 57  # in size, of what a person adds


class Entries(CellNumbers, Protocol):
    """What rows add: each to one public cell, or to none, a few whole numbers. A function of the row alone."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""

    @property
    def schema(self) -> ReadColumns | None:
        """The types that they must have."""

    def of(self, frame: Frame) -> tuple[Integers, tuple[Integers, ...]]:
        """For every row its cell, -1 for none, and its numbers."""


@dataclass(frozen=True)
class MeasureEntries:
    """Those of a measure of columns. ``cell``: the only one that is asked about, where not all are."""

    measure: CellMeasure
    cell: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys(name for name, _ in self.measure.reads))

    @property
    def schema(self) -> ReadColumns:
        """The types that they must have."""
        return ReadColumns(self.measure.reads)

    @property
    def cells(self) -> int:
        """Those of the measure, or one."""
        return self.measure.cells if self.cell is None else 1

    @property
    def width(self) -> int:
        """That of the measure."""
        return self.measure.width

    @property
    def largest(self) -> int:
        """That of the measure."""
        return self.measure.largest

    def of(self, frame: Frame) -> tuple[Integers, tuple[Integers, ...]]:
        """The cell and the numbers of every row."""
        images = read_images(frame, self.measure.reads)
        with np.errstate(all="ignore"):  # a warning would depend on private values
            cells, values = self.measure.entries(len(frame), lambda *read: images[read])
        return cells if self.cell is None else np.where(cells == self.cell, 0, -1), values


@dataclass(frozen=True)
class RankEntries:
    """Rows by the cells of a public grid, from its lower end on. ``missing``: the cell of rows that are no numbers."""

    column: str
    grid: CellRange
    missing: int | None = None
    width = largest = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def schema(self) -> ReadColumns:
        """It holds numbers."""
        return ReadColumns(((self.column, "numbers"),))

    @property
    def cells(self) -> int:
        """Those of the grid."""
        return self.grid.upper - self.grid.lower + 1

    def of(self, frame: Frame) -> tuple[Integers, tuple[Integers, ...]]:
        """The cell of every row, which counts for one."""
        values = read_images(frame, self.schema.reads)[self.column, "numbers"].astype(np.float64, copy=False)
        cells, known = np.full(len(values), -1, dtype=np.int64), ~np.isnan(values)
        cells[known] = self.grid.cells(values[known], None) - self.grid.lower
        if self.missing is not None:
            cells[~known] = self.missing - self.grid.lower
        return cells, (np.ones(len(values), dtype=np.int64),)


@dataclass(frozen=True)
class GroupEntries:
    """Rows by listed keys: each of its value columns as valid cells, sums and squares, beside the row itself.

    ``missing``: whether rows without a key are in a cell of their own, behind those of the keys of each column.
    """

    keys: tuple[KeyColumn, ...]
    values: tuple[ValueColumn, ...] = ()
    missing: bool = False
    schema: ReadColumns | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys([*(key.name for key in self.keys), *(value.name for value in self.values)]))

    @property
    def _sizes(self) -> list[int]:
        return [len(key.listed) + key.other + (self.missing and not key.other) for key in self.keys]

    @property
    def cells(self) -> int:
        """All combinations of keys."""
        return int(np.prod(self._sizes))

    @property
    def width(self) -> int:
        """The row, and two or three for every value column."""
        return 1 + sum(2 + value.squares for value in self.values)

    @property
    def largest(self) -> int:
        """A value at its bound."""
        return UNIT if self.values else 1

    def of(self, frame: Frame) -> tuple[Integers, tuple[Integers, ...]]:
        """The group and the numbers of every row."""
        cells, known = np.zeros(len(frame), dtype=np.int64), np.ones(len(frame), dtype=bool)
        for key, size in zip(self.keys, self._sizes, strict=True):
            place = key.raw(frame.get_column(key.name)).to_numpy().astype(np.int64)
            if self.missing:
                place = np.where(place < 0, size - 1, place)
            known &= place >= 0
            cells = cells * size + place
        numbers = [np.ones(len(frame), dtype=np.int64)]
        for value in self.values:
            valid, whole = value.read(frame.get_column(value.name))
            numbers += [valid.astype(np.int64), whole, *([(whole * whole) >> BITS] if value.squares else [])]
        return np.where(known, cells, -1), tuple(numbers)


class PersonTotals(Protocol):
    """What persons add, in parts that fit into memory. Private."""

    @property
    def parts(self) -> Iterator[Totals]:
        """All persons, each in one part."""


@dataclass(frozen=True, eq=False, repr=False)
class Totals(PrivateState):
    """What persons add, an entry for every person and cell, persons one after the other. Private.

    ``person``: which, from 0 on. ``values``: the sums over the person's rows of the cell. ``too_many``: persons with
    more rows than 64 bits have room for: what they add is not known.
    """

    person: Integers
    cell: Integers
    values: tuple[Integers, ...]
    too_many: NDArray[np.bool_]

    @property
    def parts(self) -> Iterator[Totals]:
        """The only one."""
        yield self

    def weighted(self, full: int, most: int, lower: int) -> WeightedCells:
        """The cells, from this one on, with weights: of n rows of a person each has floor(full min(n, most) / n)."""
        rows = np.bincount(self.person, self.values[0].astype(np.float64), minlength=self.persons).astype(np.int64)
        with np.errstate(all="ignore"):
            each = full * np.minimum(rows, most) // rows  # line 6
        each[self.too_many] = 0
        return WeightedCells(self.cell + lower, each[self.person] * self.values[0])

    @property
    def persons(self) -> int:
        """How many there are."""
        return len(self.too_many)


@dataclass(frozen=True, eq=False, repr=False)
class SpilledTotals(PrivateState):
    """Those of more persons than fit into memory, in files. Private."""

    blocks: tuple[SpilledRows, ...]
    work: TotalsPass

    @property
    def parts(self) -> Iterator[Totals]:
        """One after the other."""
        return (self.work.read(block.read()[0].to_native()) for block in self.blocks)


def all_weighted(totals: PersonTotals, full: int, most: int, lower: int) -> WeightedCells:
    """The cells of all persons with weights, see ``Totals.weighted``. They are in memory."""
    parts = [part.weighted(full, most, lower) for part in totals.parts]
    return WeightedCells(
        np.concatenate([part.cells for part in parts]), np.concatenate([part.weights for part in parts])
    )


class PersonLines(PrivateState):
    """Lines of persons and cells: some that are put together, some that wait, and rows without a person. Private.

    ``buckets``: lines in files, by some bits of the hash of their person; those without a person have their own.
    """

    __slots__ = ("buckets", "depth", "held", "loose", "spill", "waiting")

    def __init__(self, depth: int = 0, spill: Spill | None = None) -> None:
        self.held: pl.DataFrame | None = None
        self.waiting: list[pl.DataFrame] = []
        self.loose: list[pl.DataFrame] = []
        self.buckets: dict[int, list[SpilledRows]] = {}
        self.depth, self.spill = depth, spill

    def add(self, lines: pl.DataFrame, room: int) -> None:
        """More lines. Those that wait are put together now and then, and if many are left, into files."""
        if len(lines):
            self.waiting.append(lines)
        if _size(self.waiting) + _size(self.loose) > room // 2:
            held = self.together()
            if _size([*self.loose, *(() if held is None else (held,))]) > room // 4 and self.depth < _MAX_DEPTH:
                self.put_away()

    def merge(self, other: PersonLines, room: int) -> None:
        """The lines of both."""
        self.loose += other.loose
        for bucket, blocks in other.buckets.items():
            self.buckets.setdefault(bucket, []).extend(blocks)
        self.waiting += other.waiting
        self.add(pl.DataFrame() if other.held is None else other.held, room)

    def together(self) -> pl.DataFrame | None:
        """Every person and cell once, with the sums over all lines, in the order of the hashes of persons."""
        if self.waiting:
            parts = [*(() if self.held is None else (self.held,)), *self.waiting]
            self.held, self.waiting = _summed(pl.concat(parts, how="diagonal")), []
        return self.held

    def put_away(self) -> None:
        """All lines into files."""
        held, self.held, loose, self.loose = self.together(), None, self.loose, []
        spill = self.spill = Spill() if self.spill is None else self.spill
        if held is not None:
            buckets = (held[WHO].to_numpy() >> np.uint64(64 - _BUCKET_BITS * (self.depth + 1))) & np.uint64(
                _BUCKETS - 1
            )
            ends = np.flatnonzero(np.diff(buckets, append=np.uint64(_BUCKETS))) + 1
            for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
                self._write(spill, int(buckets[start]), held[start:end])
        for lines in loose:
            self._write(spill, _LOOSE, lines)

    def _write(self, spill: Spill, bucket: int, lines: pl.DataFrame) -> None:
        self.buckets.setdefault(bucket, []).append(spill.write(nw.from_native(lines, eager_only=True), None))

    def whole(self) -> Iterator[pl.DataFrame]:
        """All lines, persons one after the other, in parts; lines without a person have no hash."""
        if not self.buckets:
            held = self.together()
            yield from (() if held is None else (held,))
            yield from self.loose
            return
        self.put_away()  # then all lines of a person are in one bucket
        for bucket, blocks in self.buckets.items():
            inner = PersonLines(self.depth + 1, self.spill)
            for block in blocks:
                lines = block.read()[0].to_native()
                if bucket == _LOOSE:
                    yield lines
                else:
                    inner.add(lines, passes.MAX_BYTES)
            yield from inner.whole()


def _size(frames: list[pl.DataFrame]) -> int:
    return sum(int(frame.estimated_size()) for frame in frames)


def _summed(lines: pl.DataFrame) -> pl.DataFrame:
    """Line 3."""
    if HASH not in lines.columns and TEXT not in lines.columns:
        sums = lines.lazy().group_by(WHO).agg(pl.exclude(WHO).sum())  # one cell, and hashes that tell persons apart
        return sums.collect(engine="streaming").sort(WHO)
    order = in_order(lines)
    firsts = np.flatnonzero(order.new_hash)
    found = lines.select(pl.col(name) for name in (WHO, TEXT, HASH) if name in lines.columns)[order.rows[firsts]]
    numbers = [name for name in lines.columns if name not in found.columns]
    return found.with_columns(
        pl.Series(name, np.add.reduceat(lines[name].to_numpy()[order.rows], firsts)) for name in numbers
    )


@dataclass(frozen=True)
class TotalsPass(HeldPass):
    """Adds up what each person adds to each cell.

    Guarantee: the totals are the union over persons of a function of that person's own rows and of public values
    (``totals.proof.md``, Theorem 1).
    """

    entries: Entries
    person: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys([*self.entries.columns, self.person]))

    @property
    def schema(self) -> ReadColumns | None:
        """The types that they must have."""
        return self.entries.schema

    def empty(self) -> PersonLines:
        """No rows."""
        return PersonLines()

    def fold(self, state: PersonLines, frame: nw.DataFrame[Any]) -> PersonLines:
        """Some more rows."""
        if len(frame):
            frame, person = rows_of_persons(frame, self.person)  # line 1
            cells, values = self.entries.of(frame)  # line 2
            numbers = {ROWS: np.ones(len(cells), dtype=np.int64), **{f"v{i}": each for i, each in enumerate(values)}}
            columns: dict[str, Any] = {WHO: mixed(person.words(subkeys(0, 1)[0])), **self._hash(cells), **numbers}
            if person.text is not None and person.text.null_count() < len(cells):
                columns[TEXT] = person.text
            lines, counted, missing = pl.DataFrame(columns), cells >= 0, person.missing
            if (counted & missing).any():
                state.loose.append(lines.filter(pl.Series(counted & missing)).drop(WHO, TEXT, strict=False))  # line 4
            counted &= ~missing
            state.add(lines if counted.all() else lines.filter(pl.Series(counted)), self.room)
        return state

    def _hash(self, cells: Integers) -> dict[str, NDArray[np.uint64]]:
        """The cell in the first bits of 64; where there is one cell, nothing."""
        return {HASH: cells.astype(np.uint64) << self._shift} if self.entries.cells > 1 else {}

    @property
    def _shift(self) -> np.uint64:
        return np.uint64(64 - max(_HASH_BITS, self.entries.cells.bit_length()))

    def merge(self, one: PersonLines, other: PersonLines) -> PersonLines:
        """The lines of both parts."""
        one.merge(other, self.room)
        return one

    def pack(self, state: PersonLines) -> bytes:
        """All lines."""
        found: dict[bool, list[pl.DataFrame]] = {True: [], False: []}
        for lines in state.whole():
            found[WHO in lines.columns].append(lines)
        parts = [_packed(found[known]) for known in (True, False)]
        return sealed(b"".join(len(part).to_bytes(8, "little") + part for part in parts))

    def unpack(self, packed: bytes) -> PersonLines:
        """The lines that were packed."""
        state, body = self.empty(), unsealed(packed)
        cut = 8 + int.from_bytes(body[:8], "little")
        lines, loose = body[8:cut], body[cut + 8 :]
        if loose:
            state.loose.append(pl.read_ipc(io.BytesIO(loose)))
        if lines:
            state.add(pl.read_ipc(io.BytesIO(lines)), self.room)
        return state

    def totals(self, state: PersonLines) -> PersonTotals:
        """What persons add: those with an identifier, and each row without one."""
        if state.buckets:
            spill = Spill()
            frames = (nw.from_native(lines, eager_only=True) for lines in state.whole())
            return SpilledTotals(tuple(spill.write(frame, None) for frame in frames), self)
        return _joined([self.read(lines) for lines in state.whole()], self.entries.width)

    def read(self, lines: pl.DataFrame) -> Totals:
        """The totals in lines, of which those of a person come one after the other."""
        names = [name for name in (WHO, TEXT) if name in lines.columns]
        new = np.ones(len(lines), dtype=bool)
        if names:
            same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in names)
            new = ~lines.select(same).to_series().to_numpy()
            new[:1] = True
        person = np.cumsum(new) - 1
        rows, *values = (lines[name].to_numpy() for name in (ROWS, *(f"v{i}" for i in range(self.entries.width))))
        cells = lines[HASH].to_numpy() >> self._shift if HASH in lines.columns else np.zeros(len(lines))
        most = np.bincount(person, rows.astype(np.float64))
        too_many = most > _MAX_TOTAL // self.entries.largest  # line 5
        return Totals(person, cells.astype(np.int64), tuple(values), too_many)


def _joined(parts: list[Totals], width: int) -> Totals:
    """As one part."""
    none = np.zeros(0, dtype=np.int64)
    parts = [Totals(none, none, (none,) * width, np.zeros(0, dtype=bool)), *parts]
    starts = np.cumsum([0, *(part.persons for part in parts[:-1])])
    return Totals(
        np.concatenate([part.person + start for part, start in zip(parts, starts, strict=True)]),
        np.concatenate([part.cell for part in parts]),
        tuple(np.concatenate(each) for each in zip(*(part.values for part in parts), strict=True)),
        np.concatenate([part.too_many for part in parts]),
    )


def _packed(lines: list[pl.DataFrame]) -> bytes:
    packed = io.BytesIO()
    if lines:
        pl.concat(lines, how="diagonal").write_ipc(packed)
    return packed.getvalue()


def person_totals(source: Source, entries: Entries, person: str) -> Secret[PersonTotals]:
    """What each person adds, in one pass over a table. What is raised depends on public values alone."""
    checked(source, entries.columns or (person,), person, 0)
    work = TotalsPass(entries, person)
    return Secret(gather(source, work)).map(work.totals)
