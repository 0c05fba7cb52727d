"""Rows of a table of any size as bytes, and the teacher of each by a keyed hash. Proof: ``classifier.proof.md``.

A row is what a teacher sees of it: its label and its cells as the queries have them read. So every engine has the same
bytes for it, and the same part in the same order for every teacher. The numbers in the comments are the proof's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from snugdp.estimators.pate.rows import Form, Integers, allowed
from snugdp.estimators.pate.teachers import Tolerance
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import Names
from snugdp.tables.persons.hashing import Words, mixed, subkeys
from snugdp.tables.persons.images import bits, person_image
from snugdp.tables.sources.base import Frame

WORD, WHO, ROW, TEACHER = "word", "who", "row", "teacher"  # WHO: the keyed word of a person; null for a row by itself
_NUMBER = "number"  # of a row among those that equal it, from 1 on
_CELL, _LENGTH = 8, 4  # bytes of a cell that is no text, and of the length of a text
_TYPES = {"number": "<f8", "category": "<i8"}  # all others are moments
_NO_TEXT = (1 << 8 * _LENGTH) - 1
Counted: TypeAlias = tuple[int, bytes, int]  # a word, its row, and how many of those stood by themselves


@dataclass(frozen=True)
class RowRecords:
    """How rows become records, and records parts of teachers. Public, but for the key. It can be pickled."""

    form: Form
    target: str
    classes: tuple[Any, ...]
    takes: Tolerance
    teachers: int
    key: int = field(repr=False)
    person: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that are read."""
        return (*(self.form.names or ()), self.target, *([] if self.person is None else [self.person]))

    def of(self, frame: Frame) -> pl.DataFrame:
        """The records of the usable rows of a frame, each a function of its row, the key and what is public."""
        cells, labels = self.form.cells(frame), self._names.indices(frame.get_column(self.target).to_native())
        usable = labels >= 0
        for column, read in zip(self.form.columns, cells, strict=True):
            if column.kind == "number":
                usable &= allowed(read, nan=self.takes.nan, infinite=self.takes.infinite)
        words = self._words(cells, labels).view(np.int64)
        rows: pl.Series = pl.Series(ROW, self._packed(cells, labels), dtype=pl.Binary)
        return pl.DataFrame([pl.Series(WORD, words), self._who(frame), rows]).filter(pl.Series(usable))

    def _who(self, frame: Frame) -> pl.Series:
        """The keyed word of each row's person; null where there is none: 1a."""
        if self.person is None:
            return pl.repeat(None, len(frame), dtype=pl.Int64, eager=True).alias(WHO)
        person = person_image(frame.get_column(self.person))
        words: pl.Series = pl.Series(WHO, mixed(person.words(self._keys[0])).view(np.int64))
        return words.set(pl.Series(person.missing), None)

    def assigned(self, records: pl.DataFrame, before: Counted | None = None) -> tuple[pl.DataFrame, Counted | None]:
        """The records with their teachers: all that are equal come together, or one after the other.

        ``before``: the last record of those that came before, as it was returned with them.
        """
        alone = pl.col(WHO).is_null()
        found = records.with_columns(alone.cast(pl.Int64).cum_sum().over(WORD, ROW).alias(_NUMBER))  # 1b
        if before is not None:
            same = (pl.col(WORD) == before[0]) & (pl.col(ROW) == before[1])
            found = found.with_columns(pl.col(_NUMBER) + pl.when(same).then(before[2]).otherwise(0))
        last = None if found.is_empty() else found.select(WORD, ROW, _NUMBER).row(-1)
        numbers = mixed(found[_NUMBER].to_numpy().view(np.uint64) ^ self._keys[1])
        apart = mixed(found[WORD].to_numpy().view(np.uint64) ^ numbers)
        together = found[WHO].fill_null(0).to_numpy().view(np.uint64)
        words = np.where(found[WHO].is_null().to_numpy(), apart, together)
        teachers = (words % np.uint64(self.teachers)).astype(np.int64)  # 1c
        return found.select(pl.Series(TEACHER, teachers), WORD, ROW), last

    def part(self, records: pl.DataFrame) -> tuple[Any, Integers]:
        """The rows of one teacher and their labels, in an order that depends on these rows alone.

        No rows if the queries' library cannot hold them: the teacher then abstains.
        """
        rows = records.sort(WORD, ROW)[ROW].to_list()  # 2
        worked, found = attempt(lambda: self._unpacked(rows))
        return (None, np.empty(0, dtype=np.int64)) if not worked or found is None else found

    @cached_property
    def _keys(self) -> Words:
        """For persons, for the numbers of equal rows, for labels, and for every column."""
        return subkeys(self.key, 3 + self.form.width)

    @cached_property
    def _names(self) -> Names:
        return Names(list(self.classes), "classes")

    @cached_property
    def _texts(self) -> tuple[bool, ...]:
        return tuple(column.kind == "text" for column in self.form.columns)

    def _words(self, cells: Sequence[Any], labels: Integers) -> Words:
        """The keyed word of each row."""
        words = mixed(labels.view(np.uint64) ^ self._keys[2])
        for is_text, read, key in zip(self._texts, cells, self._keys[3:], strict=True):
            found = _text_words(read) if is_text else _plain(read)
            words = mixed(words ^ mixed(found ^ key))
        return words

    def _packed(self, cells: Sequence[Any], labels: Integers) -> list[bytes]:
        """Each row as bytes, which determine it."""
        plain = [_plain(read) for is_text, read in zip(self._texts, cells, strict=True) if not is_text]
        body, width = np.column_stack([labels.view(np.uint64), *plain]).astype("<u8").tobytes(), self._width
        rows = [body[start : start + width] for start in range(0, len(body), width)]
        for is_text, read in zip(self._texts, cells, strict=True):
            if is_text:
                rows = [row + _text_bytes(text) for row, text in zip(rows, read, strict=True)]
        return rows

    @property
    def _width(self) -> int:
        """Bytes of a row before its texts."""
        return _CELL * (1 + len(self._texts) - sum(self._texts))

    def _unpacked(self, rows: list[bytes]) -> tuple[Any, Integers]:
        width = self._width
        plain = np.frombuffer(b"".join(row[:width] for row in rows), dtype="<u8").reshape(len(rows), -1)
        places, numbers = [width] * len(rows), iter(plain.T[1:])
        cells: list[Any] = []
        for column in self.form.columns:
            if column.kind == "text":
                found = [_text_at(row, place) for row, place in zip(rows, places, strict=True)]
                cells.append([text for text, _ in found])
                places = [end for _, end in found]
            else:
                cells.append(np.ascontiguousarray(next(numbers)).view(_TYPES.get(column.kind, "<M8[us]")))
        return self.form.framed(cells), np.ascontiguousarray(plain[:, 0]).view(np.int64)


def _plain(read: Any) -> Words:
    """Cells that are no text as 64 bits: numbers with one zero and one NaN, places of categories, or moments."""
    if read.dtype.kind == "f":
        return bits(read)
    return read.astype(np.int64).view(np.uint64)  # type: ignore[no-any-return]


def _text_words(texts: Sequence[str | None]) -> Words:
    found = (blake2b(_text_bytes(text), digest_size=_CELL).digest() for text in texts)
    return np.frombuffer(b"".join(found), dtype="<u8").astype(np.uint64)


def _text_bytes(text: str | None) -> bytes:
    """A text behind its length."""
    if text is None:
        return _NO_TEXT.to_bytes(_LENGTH, "little")
    body = text.encode("utf-8", "surrogatepass")
    return len(body).to_bytes(_LENGTH, "little") + body


def _text_at(row: bytes, place: int) -> tuple[str | None, int]:
    """The text at this place, and the place behind it."""
    start = place + _LENGTH
    size = int.from_bytes(row[place:start], "little")
    return (
        (None, start)
        if size == _NO_TEXT
        else (row[start : start + size].decode("utf-8", "surrogatepass"), start + size)
    )
