"""At most so many rows of each person: those with the smallest keyed hash.

A person is whoever has the same identifier; a row without one is a person of its own. The line numbers in the comments
are those of ``persons.proof.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.tables.passes.counts.keys import KeyColumn
from snugdp.tables.persons.hashing import Words, mixed, subkeys, text_words
from snugdp.tables.persons.images import image, written
from snugdp.tables.persons.order import HASH, Ordered, by_piece
from snugdp.tables.persons.passes import PersonPass, all_persons, checked
from snugdp.tables.persons.state import PART, ROW, Held
from snugdp.tables.sources import Source
from snugdp.tables.sources.base import Frame

_PLACE, _RUN = "place", "run"
_KEY_BITS = 32  # of a hash


def keep_rows(
    source: Source, columns: Sequence[str], person: str, most: int, key: int, *, progress: bool | None = None
) -> Source:
    """The columns of a table with at most ``most`` rows of each person: those with the smallest keyed hash.

    ``person``: the column with the identifiers, which are read as labels (``tables.cells``): 7, 7.0 and "7" are one
    person, and whole numbers from 2**53 on are told apart by their digits. Floats of this size have lost digits, and
    two persons may have the same one: their rows are left out, and so are those of a type that was ``guessed``. A row
    whose identifier is missing is a person of its own. ``key``: a whole number below 2**128 that was drawn once,
    independently of the rows.

    Rows that are equal in ``columns`` have the same hash: each of a person's different rows is as likely to be the
    first as any other, however often it occurs.

    Guarantee: the rows that are kept are the union over persons of a function of that person's own rows, the key and
    public values. So adding or removing a person adds or removes at most ``most`` rows, and replacing one replaces at
    most ``most`` rows by at most ``most`` others (``persons.proof.md``, Theorem 1). What is raised depends on public
    values alone.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError("the number of rows that are kept of a person must be a whole number from 1 on")
    names = checked(source, columns, person, key)
    return all_persons(source, KeepPass(names, person, key, most), progress=progress)


@dataclass(frozen=True)
class KeepPass(PersonPass):
    """Keeps ``most`` rows of each person."""

    most: int = 1

    def about(self, frame: Frame, who: Words) -> dict[str, Words]:
        """The keyed hash of each row."""
        return {HASH: self.row_words(frame, who)}

    def chosen(self, index: pl.DataFrame, parts: list[Frame]) -> pl.DataFrame:
        """The first rows of each person in the order of hashes, and of contents where hashes are equal."""
        kept = np.zeros(len(index), dtype=bool)
        for rows in by_piece(index, lambda order: self.first(order, index, parts)):  # line 4
            kept[rows] = True
        return index.filter(pl.Series(kept))

    def first(self, order: Ordered, index: pl.DataFrame, parts: list[Frame]) -> NDArray[np.int64]:
        """Those of some persons."""
        rows, place = order.rows, order.places
        cut = ~order.new_hash & (place == self.most)  # the first row that is not kept has the hash of the last that is
        if cut.any():
            run: NDArray[np.int64] = np.cumsum(order.new_hash, dtype=np.int64)
            undecided = np.flatnonzero(np.isin(run, run[cut]))
            rows[undecided] = _by_content(index, rows[undecided], run[undecided], parts)
        return rows[place < self.most]


def keep_keys(
    source: Source,
    columns: Sequence[str],
    person: str,
    keys: Sequence[KeyColumn],
    *,
    most: int,
    key: int,
    missing: bool = False,
) -> Source:
    """The columns of a table with one row for each of at most ``most`` keys of a person, chosen by a keyed hash.

    ``keys``: how the key columns are read. ``missing``: whether rows without a key have one; otherwise they are left
    out. ``person`` and ``key`` are as in ``keep_rows``.

    Guarantee: the rows that are kept are the union over persons of a function of that person's own rows, the key and
    public values; those of a person have different keys, at most ``most`` (``persons.proof.md``, Theorem 3).
    """
    names = checked(source, columns, person, key)
    work = KeepKeysPass(names, person, key, most, tuple(keys), missing)
    return all_persons(source, work)


@dataclass(frozen=True)
class KeepKeysPass(KeepPass):
    """Keeps one row for each of ``most`` keys of a person."""

    keys: tuple[KeyColumn, ...] = ()
    missing: bool = False

    def fold(self, state: Held, frame: nw.DataFrame[Any]) -> Held:
        """Some more rows: line 10."""
        if not self.missing and len(frame):
            known = np.ones(len(frame), dtype=bool)
            for encoded in self._encoded(frame):
                known &= encoded.is_not_null().to_numpy()
            frame = frame[np.flatnonzero(known)]
        return super().fold(state, frame)

    def _encoded(self, frame: Frame) -> list[pl.Series]:
        return [key.encoded(key.raw(frame.get_column(key.name))) for key in self.keys]

    def about(self, frame: Frame, who: Words) -> dict[str, Words]:
        """Half of the hash is that of the key, the other half that of the row: line 11."""
        found, salts = who, subkeys(self.key, 1 + len(self.names) + len(self.keys))[1 + len(self.names) :]
        for encoded, salt in zip(self._encoded(frame), salts, strict=True):
            words = text_words(encoded.cast(pl.String), salt)
            found = mixed(found ^ np.where(encoded.is_null().to_numpy(), ~salt, words))
        half = np.uint64(_KEY_BITS)
        return {HASH: (found >> half << half) | (self.row_words(frame, who) >> half)}

    def first(self, order: Ordered, index: pl.DataFrame, parts: list[Frame]) -> NDArray[np.int64]:
        """The first row of each key, and the first keys of each person: line 12."""
        rows, half = order.rows, np.uint64(_KEY_BITS)
        tops = index[HASH].to_numpy()[rows] >> half
        new_key = order.new_person.copy()
        new_key[1:] |= tops[1:] != tops[:-1]
        number = np.cumsum(new_key, dtype=np.int64)
        first = number[np.maximum.accumulate(np.where(order.new_person, np.arange(len(rows)), 0))]
        kept = new_key & (number - first < self.most)
        run: NDArray[np.int64] = np.cumsum(order.new_hash, dtype=np.int64)
        again = np.flatnonzero(~order.new_hash)
        undecided = np.flatnonzero(np.isin(run, np.intersect1d(run[kept], run[again])))
        if len(undecided):
            rows[undecided] = _by_content(index, rows[undecided], run[undecided], parts)
        return rows[kept]


def _by_content(
    index: pl.DataFrame, rows: NDArray[np.int64], run: NDArray[np.int64], parts: list[Frame]
) -> NDArray[np.int64]:
    """The same rows, those of each run in the order of their contents: line 5."""
    contents = _contents(index[rows], parts)
    names = contents.columns
    contents = contents.with_columns(pl.Series(_RUN, run))
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in names)
    if contents.select((~same & (pl.col(_RUN) == pl.col(_RUN).shift())).any()).item() is not True:
        return rows  # those of a run are equal
    order: NDArray[np.int64] = contents.select(pl.arg_sort_by([_RUN, *names], nulls_last=True)).to_series().to_numpy()
    return rows[order]


def _contents(index: pl.DataFrame, parts: list[Frame]) -> pl.DataFrame:
    """What rows hold, in columns that compare: rows that are equal there are equal to every reader of cells.

    First the images of all cells, then how they are written: on that a loader has a say.
    """
    pieces = []
    for (part,), rows in index.with_row_index(_PLACE).partition_by(PART, as_dict=True, include_key=False).items():
        frame = parts[int(part)][rows[ROW].to_numpy()]
        cells = [_comparable(frame.get_column(name)) for name in frame.columns]
        named = {f"{i} {j}": column[i] for i in range(len(cells[0])) for j, column in enumerate(cells)}
        pieces.append(pl.DataFrame(named).with_columns(rows[_PLACE]))
    return pl.concat(pieces).sort(_PLACE).drop(_PLACE)


def _comparable(column: nw.Series[Any]) -> list[pl.Series]:
    """The image of each cell, and the cell as it is written."""
    found, none = image(column), pl.repeat(None, len(column), dtype=pl.String, eager=True)
    return [pl.Series(found.number), *(none if text is None else text for text in (found.text, written(column)))]
