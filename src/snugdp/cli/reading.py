"""Columns of files for queries and teachers: read whole, each cell by itself, with the types that are declared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import numbers, numeric, truths
from snugdp.tables.schema.kinds import Boolean, Category, Column, Number, type_name
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import FileSource, Source, TableError, open_source


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


def of_numbers(file: object, columns: Sequence[str]) -> None:
    """Whether the table has these columns, and numbers in them by their declared types. No row is looked at."""
    source = open_source(file)
    for name in columns:
        if name in source.types and not numeric(source.type_for_reading(name)):
            raise TypeError(
                f'column "{name}" is of type {type_name(source.types[name])}: it must hold numbers. Convert it, or ask '
                "for its mode or a vote"
            )
    opened(source, {name: Number(-1, 1) for name in columns})


def frame(source: Source, kinds: Mapping[str, Column]) -> pl.DataFrame:
    """The columns of all rows, booleans as 0 and 1. Private if the table is."""
    table = gathered(source, tuple(kinds))
    readers = {Number: numbers, Boolean: truths}
    read = {name: readers[type(kind)] for name, kind in kinds.items() if type(kind) in readers}
    return table.with_columns(pl.Series(name, reader(table[name])) for name, reader in read.items())


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
        return Category([_number(column, value) for value in values])
    return Category(list(values))


def _number(column: str, text: str) -> Hashable:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError(f'column "{column}" holds numbers, so --values must be numbers too')
