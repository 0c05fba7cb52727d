"""Columns of files: for queries read whole, each cell by itself; for teachers and predictions batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import polars as pl

from snugdp.cli.models import value_of
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import dates, numbers, numeric, truths, type_name
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, Number
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import Batch, FileSource, Partition, Source, TableError, open_source
from snugdp.tables.sources.base import guarded, step
from snugdp.tables.sources.base import listed as names_of
from snugdp.tables.sources.files import FilePartition, PolarsFormat


@dataclass(frozen=True)
class WantedColumns:
    """Some columns of a table, with what they hold: what a ``Source`` has to know of a pass."""

    kinds: Mapping[str, Column]

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.kinds)

    @property
    def schema(self) -> Schema:
        """The types that they must have."""
        return Schema(self.kinds, intercept=False)


def table(file: str | Path, multiline: bool) -> Source | str | Path:
    """A file, folder or pattern as it is; without ``multiline`` opened, with every line of CSV files as a row."""
    return file if multiline else FileSource.of([file], multiline=False)


def opened(file: object, kinds: Mapping[str, Column]) -> Source:
    """The table, if it has these columns with these types. No row is looked at."""
    source = open_source(file)
    work: Any = WantedColumns(kinds)
    source.check(work)
    return source


def of_numbers(file: object, columns: Sequence[str]) -> Source:
    """The table, if it has these columns, and numbers in them by their declared types. No row is looked at."""
    source = open_source(file)
    for name in columns:
        if name in source.types and not numeric(source.type_for_reading(name)):
            raise TypeError(
                f'column "{name}" is of type {type_name(source.types[name])}: it must hold numbers. Convert it, or ask '
                "for its mode or a vote"
            )
    return opened(source, {name: Number(-1, 1) for name in columns})


def frame(source: Source, kinds: Mapping[str, Column], *, beside: Sequence[str] = ()) -> pl.DataFrame:
    """The columns of all rows, booleans as 0 and 1; those ``beside`` them as they are. Private if the table is."""
    return _read(gathered(source, (*kinds, *beside)), kinds)


def _read(table: pl.DataFrame, kinds: Mapping[str, Column]) -> pl.DataFrame:
    """The table with these columns read cell by cell; others, and categories, as they are."""
    readers = {Number: numbers, Boolean: truths, Date: dates}
    read = {name: readers[type(kind)] for name, kind in kinds.items() if type(kind) in readers and name in table}
    return table.with_columns(pl.Series(name, reader(table[name])) for name, reader in read.items())


@dataclass(frozen=True)
class ReadPartition(Partition):
    """A part of a table whose columns are read."""

    inner: Partition
    kinds: Mapping[str, Column]

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Batch by batch."""
        for batch in self.inner.batches(columns):
            yield Batch(nw.from_native(_read(batch.frame.to_polars(), self.kinds), eager_only=True), batch.size)


class ReadSource(Source):
    """A table whose columns are read as a schema says, batch by batch: booleans as 0 and 1."""

    def __init__(self, source: Source, kinds: Mapping[str, Column]) -> None:
        self._source, self._kinds = source, kinds
        self.name, self.size, self.types = source.name, source.size, source.types

    def partitions(self) -> Sequence[Partition]:
        """Those of the table."""
        return [ReadPartition(part, self._kinds) for part in self._source.partitions()]

    def verify(self) -> None:
        """As the table."""
        self._source.verify()


def gathered(source: Source, columns: Sequence[str]) -> pl.DataFrame:
    """The columns of all rows, as they are."""
    parts = [batch.frame.to_native() for part in source.partitions() for batch in part.batches(columns)]
    if not parts:
        return pl.DataFrame(schema=dict.fromkeys(columns, pl.Float64))
    worked, joined = attempt(lambda: pl.concat(parts))
    if not worked or joined is None:
        raise TableError(f"the parts of {source.name} do not fit together: write the table again")
    whole: pl.DataFrame = joined
    return whole


def listed(column: str, values: Sequence[str], source: Source) -> Category:
    """Public values from the command line, as the declared type of the column has them."""
    dtype = source.types.get(column, nw.Unknown())
    if dtype == nw.Boolean:
        words = {"true": True, "false": False}
        if not all(value.lower() in words for value in values):
            raise ValueError(f'column "{column}" holds booleans: --values can be true and false')
        return Category([words[value.lower()] for value in values])
    if dtype.is_numeric():
        numbers = [value_of(value, {}) for value in values]
        if any(isinstance(number, str) for number in numbers):
            raise ValueError(f'column "{column}" holds numbers, so --values must be numbers too')
        return Category(numbers)
    return Category(list(values))


class Reader:
    """Pairs of the columns that a model reads and those that are kept, both as polars frames."""

    def __init__(self, source: Source, model: Any, keep: tuple[str, ...]) -> None:
        self._source, self._keep = source, keep
        self._columns = _columns(model, source)
        absent = [name for name in (*self._columns, *keep) if name not in source.types]
        if absent:
            raise TableError(f"{source.name} has no column {names_of(absent)}, which the model or --keep asks for")
        source.verify()

    def __iter__(self) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        wanted = tuple(dict.fromkeys((*self._columns, *self._keep)))
        some = False
        for part in self._source.partitions():
            for batch in _ordered(part, wanted):
                frame: pl.DataFrame = nw.from_native(batch.frame.to_native(), eager_only=True).to_polars()
                some = True
                yield frame.select(self._columns), frame.select(self._keep)
        if not some:  # a file of predictions has its columns all the same
            yield _empty(self._columns), _empty(self._keep)


def _empty(names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(names, pl.String))


def _columns(model: Any, source: Source) -> tuple[str, ...]:
    """By name; a model of arrays without names takes all columns in their order."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return tuple(names)
    if len(source.types) != model.n_features_in_:
        raise TableError(
            f"the model was fitted on rows without names, with {model.n_features_in_} entries: give a table with just "
            "these columns, in their order"
        )
    return tuple(source.types)


def _ordered(part: Any, columns: tuple[str, ...]) -> Iterator[Batch]:
    """Statistics may be taken in any order; predictions go back to their rows."""
    if not isinstance(part, FilePartition) or not isinstance(part.format, PolarsFormat):
        return cast(Iterator[Batch], part.batches(columns))
    part.stamp.check()
    query = part.format.scan(part.path).select(columns)
    frames: Any = query.collect_batches(chunk_size=step(len(columns)), maintain_order=True, lazy=True)
    batches = (Batch(nw.from_native(frame, eager_only=True)) for frame in frames)
    return guarded(batches, part._explain)


def declared(schema: Path | None, column: str) -> Column | None:
    """What a schema file says of a column; nothing without one."""
    if schema is None:
        return None
    columns = Schema.from_toml(schema).columns
    if column not in columns:
        raise ValueError(f'{schema} has no column "{column}"; it has {", ".join(columns)}')
    return columns[column]


def bounds(schema: Path | None, column: str, lower: str | None, upper: str | None) -> tuple[Any, Any]:
    """The bounds of a column of numbers, as given or as the schema has them; None for an end that neither has."""
    kind = declared(schema, column)
    if kind is not None and not isinstance(kind, Number):
        raise TypeError(f'the schema says that column "{column}" is not a number: ask for its mode or a vote')
    low = lower if lower is not None or kind is None else kind.lower
    high = upper if upper is not None or kind is None else kind.upper
    return low, high


def bounds_text(ends: tuple[Any, Any]) -> str:
    """Public bounds in words.

    >>> bounds_text((0, "1e6")), bounds_text((0, None)), bounds_text((None, None))
    ('0 to 1,000,000', 'from 0 on', 'none given')
    """
    low, high = (None if end is None else f"{float(end):,.10g}" for end in ends)
    if low is None:
        return "none given" if high is None else f"up to {high}"
    return f"from {low} on" if high is None else f"{low} to {high}"
