"""A table with persons as queries read it: its columns by their names, or the only one beside the identifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from snugdp.noise import Noise
from snugdp.queries.table import Library, library_of
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.engines import PASS_FAILED
from snugdp.tables.schema.schema import check_person_name
from snugdp.tables.sources import Source, SparkSource, open_source
from snugdp.tables.sources.base import TableError, listed

_NAMES = (
    'person="{person}" is the name of a column, and these data have no names: give a table with that column and the '
    "one that is asked about"
)


@dataclass(frozen=True, repr=False)
class PersonTable:
    """A table, opened, and what is read of it. ``column``: the only one that is asked about, to be read by itself."""

    source: Source
    library: Library
    persons: Persons
    columns: tuple[str, ...]
    column: str | None = None

    @classmethod
    def of(cls, data: object, persons: Persons, columns: tuple[str, ...] | None) -> PersonTable:
        """Whether the table has these columns is checked here, by its names. ``columns``: None for the only one."""
        person = persons.column
        if isinstance(data, list | tuple) and not all(isinstance(path, str) for path in data):
            raise TypeError(_NAMES.format(person=person))
        try:
            source = open_source(data)
        except TypeError:
            raise TypeError(_NAMES.format(person=person)) from None
        absent = [name for name in (person, *(columns or ())) if name not in source.types]
        if absent:
            raise TableError(f"{source.name} has no column {listed(absent)}; it has {listed(list(source.types))}")
        if columns is not None:
            check_person_name(person, columns)
            return cls(source, library_of(data), persons, columns or (person,))
        if isinstance(source, SparkSource):
            raise TypeError("this query reads a column into memory, and a Spark table stays on its cluster")
        others = [name for name in source.types if name != person]
        if len(others) != 1:
            raise ValueError(
                f'the table has several columns beside "{person}": say which one is asked about by column=..., or give '
                "a table of these two alone"
            )
        return cls(source, library_of(data), persons, tuple(others), others[0])

    def kept(self, noise: Noise) -> Any:
        """The kept rows: as a table, or as the only column that is asked about."""
        kept = self.persons.kept(self.source, self.columns, noise)
        kept.library = self.library
        return kept if self.column is None else alone(kept, self.column)


def alone(kept: Source, column: str) -> Any:
    """The only column of a table, in memory. Whether it has rows is private: one without has its type too."""
    frames = [batch.frame for part in kept.partitions() for batch in part.batches((column,))]
    found: tuple[bool, Any] = attempt(lambda: nw.concat(frames).get_column(column) if frames else _none(kept, column))
    worked, whole = found
    if not worked:
        raise PrivateComputationError(PASS_FAILED)
    return whole


def _none(kept: Source, column: str) -> Any:
    """A column without rows. Of a table without types it is text."""
    import polars as pl

    dtype = kept.types[column]
    return nw.new_series(column, [], nw.String() if dtype == nw.Unknown else dtype, backend=pl)
