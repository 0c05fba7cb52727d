"""At most so many rows of each person: those with the smallest keyed hash. The line numbers are of ``persons.proof.md``.

A person is whoever has the same identifier; a row without one is a person of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.silence import attempt
from snugdp.tables.engines import gather
from snugdp.tables.persons.hashing import Words, mixed, subkeys
from snugdp.tables.persons.images import Image, bits, check_person, image, person_image
from snugdp.tables.sources import Batch, Source
from snugdp.tables.sources.base import Frame, TableError, UndividedSource

MAX_KEY = 1 << 128
_ROOM = 1 << 21  # rows that wait, at least, before those that are not kept are dropped
_NUMBER, _TEXT, _HASH, _PART, _ROW = "number", "text", "hash", "part", "row"
_PERSON = [_NUMBER, _TEXT]


def keep_rows(
    source: Source, columns: Sequence[str], person: str, most: int, key: int, *, progress: bool | None = None
) -> Source:
    """The columns of a table with at most ``most`` rows of each person: those with the smallest keyed hash.

    ``person``: the column with the identifiers, which are read as labels (``tables.cells``): 7, 7.0 and "7" are one
    person, and whole numbers from 2**53 on are told apart where their type is declared (files, databases), but not in
    memory. A row whose identifier is missing is a person of its own. ``key``: a whole number below 2**128 that was
    drawn once, independently of the rows.

    Rows that are equal in ``columns`` come one after the other in the order of hashes: among a person's different rows
    each is as likely to be kept as any other, however often it occurs.

    Guarantee: the rows that are kept are the union over persons of a function of that person's own rows, the key and
    public values; so adding or removing a person adds or removes at most ``most`` rows, and replacing one changes at
    most ``most`` for others (``persons.proof.md``, Theorem 1). What is raised depends on public values alone.
    """
    work = KeepPass(*_checked(source, columns, person, most, key), exact=not source.inferred)
    return KeptSource(source, work.columns_kept, gather(source, work, progress=progress).frames(work))


def _checked(
    source: Source, columns: Sequence[str], person: str, most: int, key: int
) -> tuple[tuple[str, ...], str, int, int]:
    """Everything that is public, or an error about it."""
    names = tuple(dict.fromkeys(columns))
    if not names:
        raise ValueError("columns must name at least one column")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError("the number of rows that are kept of a person must be a whole number from 1 on")
    if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < MAX_KEY:
        raise ValueError("the key must be a whole number from 0 to 2**128 - 1, drawn independently of the rows")
    if person not in source.types:
        raise TableError(f'{source.name} has no column "{person}" to tell persons apart')
    check_person(person, source.types[person])
    return names, person, most, key


class Kept(PrivateState):
    """Rows that may be kept: some that were chosen among each other, and some that wait. Private.

    ``parts``: the rows as their container has them; ``index``: whose rows they are, and their hashes. ``loose``: rows
    without an identifier, which are all kept.
    """

    __slots__ = ("chosen", "index", "loose", "parts", "waiting")

    def __init__(self) -> None:
        self.parts: list[Frame] = []
        self.loose: list[Frame] = []
        self.index: list[pl.DataFrame] = []
        self.chosen = self.waiting = 0

    def add(self, frame: Frame, index: pl.DataFrame) -> None:
        """More rows that wait."""
        if len(index):
            self.index.append(index.with_columns(pl.lit(len(self.parts), dtype=pl.UInt32).alias(_PART)))
            self.parts.append(frame)
            self.waiting += len(index)

    def merge(self, other: Kept) -> None:
        """The rows of both."""
        before = len(self.parts)
        self.index += [index.with_columns(pl.col(_PART) + before) for index in other.index]
        self.parts += other.parts
        self.loose += other.loose
        self.waiting += other.waiting + other.chosen

    def is_full(self) -> bool:
        """Whether more rows wait than were chosen."""
        return self.waiting > _ROOM + self.chosen

    def choose(self, work: KeepPass) -> None:
        """Drop whatever is not kept."""
        if not self.waiting:
            return
        index = work.chosen(pl.concat(self.index), self.parts).sort(_PART, _ROW)
        self.index, parts, self.parts = [], self.parts, []
        self.chosen = self.waiting = 0
        for (part,), rows in index.partition_by(_PART, as_dict=True, include_key=False).items():
            frame = parts[int(part)]
            whole = len(rows) == len(frame)
            self.add(frame if whole else frame[rows[_ROW].to_numpy()], rows.with_columns(_numbered(len(rows))))
        self.chosen, self.waiting = self.waiting, 0

    def frames(self, work: KeepPass) -> tuple[Frame, ...]:
        """All rows that are kept."""
        self.choose(work)
        return (*self.parts, *self.loose)


@dataclass(frozen=True)
class KeepPass:
    """Keeps ``most`` rows of each person. ``exact``: see ``person_image``."""

    columns_kept: tuple[str, ...]
    person: str
    most: int
    key: int
    exact: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys([*self.columns_kept, self.person]))

    def empty(self) -> Kept:
        """No rows."""
        return Kept()

    def fold(self, state: Kept, frame: nw.DataFrame[Any]) -> Kept:
        """Some more rows."""
        if not len(frame):
            return state
        who = person_image(frame.get_column(self.person), exact=self.exact)
        kept, missing = frame.select(*self.columns_kept), who.missing
        if missing.any():  # line 2
            state.loose.append(kept[np.flatnonzero(missing)])
        state.add(kept, self._index(who, self._hashes(who, kept)).filter(pl.Series(~missing)))
        if state.is_full():
            state.choose(self)
        return state

    def merge(self, one: Kept, other: Kept) -> Kept:
        """The rows of both parts."""
        one.merge(other)
        if one.is_full():
            one.choose(self)
        return one

    def pack(self, state: Kept) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")

    def unpack(self, packed: bytes) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")

    def _hashes(self, who: Image, frame: Frame) -> Words:
        """The keyed hash of each row and its person, from the images of its cells: line 3."""
        first, *keys = subkeys(self.key, 1 + len(self.columns_kept))
        found = who.words(first)
        for name, key in zip(sorted(self.columns_kept), keys, strict=True):
            found = mixed(found ^ image(frame.get_column(name)).words(key))
        return found

    def _index(self, who: Image, hashes: Words) -> pl.DataFrame:
        text = pl.repeat(None, len(hashes), dtype=pl.String, eager=True) if who.text is None else who.text
        named = {_NUMBER: pl.Series(bits(who.number)), _TEXT: text, _HASH: pl.Series(hashes)}
        return pl.DataFrame(named).with_columns(_numbered(len(hashes)))

    def chosen(self, index: pl.DataFrame, parts: Sequence[Frame]) -> pl.DataFrame:
        """The first rows of each person in the order of hashes, and of contents where hashes are equal."""
        person = [_NUMBER] if not index[_TEXT].null_count() < len(index) else _PERSON
        if self.most == 1:
            index = index.filter(pl.col(_HASH) == pl.col(_HASH).min().over(person))
        index = index.sort([*person, _HASH])  # line 4
        place = _places(_is_new(index, person))
        tied = ~_is_new(index, [*person, _HASH])
        cut = tied & (place == self.most)  # the last row that is kept has the hash of the first that is not
        if cut.any():
            run = np.cumsum(~tied)
            open_runs = np.flatnonzero(np.isin(run, run[cut]))
            order = _by_content(run[open_runs], _rows(index[open_runs], parts))
            moved = np.arange(len(index))
            moved[open_runs] = open_runs[order]
            index = index[moved]
        return index.filter(pl.Series(place < self.most))


class KeptSource(UndividedSource):
    """Some rows of another table, with the types that it declares."""

    def __init__(self, source: Source, columns: Sequence[str], frames: Sequence[Frame]) -> None:
        self.name, self.inferred = source.name, source.inferred
        self.floats_for_missing = source.floats_for_missing
        self.types = {name: source.types[name] for name in columns}
        self._frames = tuple(frames)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows."""
        return (Batch(frame.select(*columns)) for frame in self._frames)


def _numbered(rows: int) -> pl.Series:
    return pl.Series(_ROW, np.arange(rows, dtype=np.uint32))


def _is_new(index: pl.DataFrame, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows differ from the one before."""
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in names)
    found = ~index.select(same.alias(_ROW))[_ROW].to_numpy()
    found[:1] = True
    return found


def _places(is_first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows there are before each one since the last first one."""
    every = np.arange(len(is_first))
    return every - np.maximum.accumulate(np.where(is_first, every, 0))


def _rows(index: pl.DataFrame, parts: Sequence[Frame]) -> pl.DataFrame:
    """What rows hold, in columns that compare: those with equal columns are equal to every reader of cells."""
    index = index.with_row_index("place")
    pieces = []
    for (part,), rows in index.partition_by(_PART, as_dict=True, include_key=False).items():
        frame = parts[int(part)][rows[_ROW].to_numpy()]
        columns = [series for name in frame.columns for series in _comparable(frame.get_column(name))]
        named = {f"{place}": series for place, series in enumerate(columns)}
        pieces.append(pl.DataFrame(named).with_columns(rows["place"]))
    return pl.concat(pieces, how="vertical_relaxed").sort("place").drop("place")


def _comparable(column: nw.Series[Any]) -> list[pl.Series]:
    """The image of each cell, and the cell itself as its library writes it: 2**53 + 1, "07"."""
    found = image(column)
    exact = attempt(lambda: column.to_polars().cast(pl.String))[1]
    text = pl.repeat(None, len(column), dtype=pl.String, eager=True)
    if exact is None:
        cells = column.to_list()
        exact = pl.Series([str(cell) if type(cell) in (int, str) else None for cell in cells], dtype=pl.String)
    return [pl.Series(found.number), text if found.text is None else found.text, exact]


def _by_content(run: NDArray[np.int64], rows: pl.DataFrame) -> NDArray[np.int64]:
    """An order of tied rows: runs as they are, and within each by content: line 5."""
    rows = rows.with_columns(run=pl.Series(run))
    names = [name for name in rows.columns if name != "run"]
    return rows.select(pl.arg_sort_by(["run", *names], nulls_last=True)).to_series().to_numpy().astype(np.int64)
