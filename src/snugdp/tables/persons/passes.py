"""One pass over a table by persons: whose row each is, what is kept of it, and the table that results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import polars as pl

from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.engines import PASS_FAILED, cores, gather
from snugdp.tables.persons.hashing import Words, mixed, subkeys
from snugdp.tables.persons.images import Image, check_person, image, person_image, rows_of_persons
from snugdp.tables.persons.order import TEXT, WHO
from snugdp.tables.persons.state import Held, numbered
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources import Batch, Source, SparkSource
from snugdp.tables.sources.base import Frame, TableError, UndividedSource, guarded
from snugdp.tables.spill import Spill, SpilledRows

MAX_BYTES = 500 * 2**20  # in memory
_MAX_KEY = 1 << 128


def checked(source: Source, columns: Sequence[str], person: str, key: int) -> tuple[str, ...]:
    """The columns, each once; or an error about something public."""
    names = tuple(dict.fromkeys(columns))
    if not names:
        raise ValueError("columns must name at least one column")
    if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < _MAX_KEY:
        raise ValueError("the key must be a whole number from 0 to 2**128 - 1, drawn independently of the rows")
    if person not in source.types:
        raise TableError(f'{source.name} has no column "{person}" to tell persons apart')
    check_person(person, source.types[person])
    return names


class HeldPass:
    """A pass that holds what it has read of persons: in memory while there is room, then in files."""

    @property
    def room(self) -> int:
        """The bytes that each of the states that are folded side by side may hold."""
        return MAX_BYTES // cores()


@dataclass(frozen=True)
class PersonPass(HeldPass):
    """A pass that looks at all rows of a person together. For tables of this process: the state does not travel.

    ``names``: the columns of the result.
    """

    names: tuple[str, ...]
    person: str
    key: int
    drops = True  # whether some rows may not be needed

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys([*self.names, self.person]))

    def empty(self) -> Held:
        """No rows."""
        return Held()

    def fold(self, state: Held, frame: nw.DataFrame[Any]) -> Held:
        """Some more rows."""
        if len(frame):
            frame, person = rows_of_persons(frame, self.person)  # line 1
            who, rows, missing = self._who(person), frame.select(*self.names), person.missing
            index = pl.DataFrame({WHO: who, **self.about(rows, who)}).with_columns(numbered(len(who)))
            if person.text is not None and person.text.null_count() < len(who):
                index = index.with_columns(person.text.alias(TEXT))
            if missing.any():  # line 2
                state.add_loose(rows[np.flatnonzero(missing)])
                index = index.filter(pl.Series(~missing))
            state.add(rows, index)
            state.settle(self, self.room)
        return state

    def merge(self, one: Held, other: Held) -> Held:
        """The rows of both parts."""
        one.merge(other)
        one.settle(self, MAX_BYTES)  # so much all states together may hold
        return one

    def pack(self, state: Held) -> NoReturn:
        """Refused."""
        raise TypeError("rows of persons stay in their process")

    def unpack(self, packed: bytes) -> NoReturn:
        """Refused."""
        raise TypeError("rows of persons stay in their process")

    def _who(self, person: Image) -> Words:
        """The keyed hash of each row's person. Different numbers have different hashes; texts decide by themselves."""
        return mixed(person.words(subkeys(self.key, 1)[0]))

    def row_words(self, frame: Frame, who: Words) -> Words:
        """The keyed hash of each row and its person, from the images of its cells: line 3."""
        keys = subkeys(self.key, 1 + len(self.names))[1:]
        for name, key in zip(sorted(self.names), keys, strict=True):
            who = mixed(who ^ image(frame.get_column(name)).words(key, coarse=True))
        return who

    def routes(self, frame: Frame) -> Words:
        """The keyed hash of each row's person, or of the row where it has none."""
        person = person_image(frame.get_column(self.person))
        who = self._who(person)
        return np.where(person.missing, self.row_words(frame, who), who)

    def about(self, frame: Frame, who: Words) -> dict[str, Words]:
        """What else the index has of each row."""
        raise NotImplementedError

    def chosen(self, index: pl.DataFrame, parts: list[Frame]) -> pl.DataFrame:
        """The rows of an index that are still needed, and what is known of them."""
        raise NotImplementedError

    def finished(self, frame: Frame, index: pl.DataFrame | None) -> Frame:
        """The rows of the result; there is no index of rows without an identifier."""
        return frame

    def types(self, source: Source) -> dict[str, DType]:
        """The types of the result."""
        return {name: source.types[name] for name in self.names}

    def spark_fields(self, fields: Any) -> Any:
        """The types of the result in Spark, given those of the columns that are read."""
        return type(fields)([fields[name] for name in self.names])


def all_persons(source: Source, work: PersonPass, *, progress: bool | None = None) -> Source:
    """The table that results from a pass by persons."""
    if isinstance(source, SparkSource):
        from snugdp.tables.persons.cluster import shuffled

        return shuffled(source, work)
    held = gather(source, work, progress=progress)
    worked, parts = attempt(lambda: list(results(held, work)))
    if not worked or parts is None:
        raise PrivateComputationError(PASS_FAILED)
    return PersonSource(source, work.types(source), parts)


def results(held: Held, work: PersonPass) -> Iterator[Frame | SpilledRows]:
    """The rows of the result: in memory if they were there, in a file otherwise."""
    in_files = held.is_in_files()
    spill = Spill() if in_files else None
    for frame, index in held.results(work):
        rows = work.finished(frame, index)
        yield rows if spill is None else spill.write(rows, None)


class PersonSource(UndividedSource):
    """Rows that were made of another table, with the types that it declares."""

    def __init__(self, source: Source, types: dict[str, DType], parts: Sequence[Frame | SpilledRows]) -> None:
        self.name, self.inferred, self.held = source.name, source.inferred, True
        self.floats_for_missing = source.floats_for_missing
        self.types = types
        self._parts = tuple(parts)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows."""
        return guarded(
            self._read(columns), lambda: "rows in a temporary file could not be read again: run it once more"
        )

    def _read(self, columns: Sequence[str]) -> Iterator[Batch]:
        for part in self._parts:
            frame = part.read()[0] if isinstance(part, SpilledRows) else part
            yield Batch(frame.select(*columns))
