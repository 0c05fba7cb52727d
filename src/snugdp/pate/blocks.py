"""Votes from any container, in blocks of rows and in order: arrays, lists, frames, Parquet files and polars queries.

Whether a table is refused here depends on containers, shapes and declared types alone. Where every cell has the same
declared type a block is a matrix; otherwise it is lines, each read by itself, so that no cell changes another. A list
declares no shape: a row that is not as long as the others is missing, whatever the others hold.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import declared, grid

CELLS = 1 << 21  # votes in a block
_GROUP = 64  # columns
_ACCEPTED = (
    "a two-dimensional array, a list of lists, a pandas, polars or pyarrow table, the path of a Parquet, Arrow or CSV "
    "file, or a polars LazyFrame"
)


@dataclass(frozen=True, repr=False)
class VoteLines:
    """Rows, or columns, each of a type of its own. Private."""

    lines: Sequence[object]
    rows: bool


Block: TypeAlias = "NDArray[Any] | VoteLines"


@dataclass(frozen=True, repr=False)
class Part:
    """Some columns of a table, all rows of them. How many columns is public; the blocks are not."""

    width: int
    blocks: Callable[[], Iterator[Block]]


@dataclass(frozen=True, repr=False)
class VoteTable:
    """A table that was opened: its width and the names of its columns are public.

    ``parts`` are its columns in groups that can be read one after the other; ``whole`` is all of them at once.
    """

    whole: Part
    names: tuple[Hashable, ...] | None = None
    groups: tuple[Part, ...] = ()

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.whole.width

    @property
    def parts(self) -> tuple[Part, ...]:
        """The columns in groups, in order."""
        return self.groups or (self.whole,)


def open_table(votes: object, width: int | None = None) -> VoteTable:
    """Open a table of votes. No cell is looked at. ``width``: of the rows of a list, where it is declared."""
    if isinstance(votes, np.ndarray):
        return _array(votes)
    if isinstance(votes, list | tuple):
        return _list(list(votes), width)
    native: Any = votes.to_native() if isinstance(votes, nw.LazyFrame | nw.DataFrame) else votes
    if isinstance(native, str | Path) or hasattr(type(native), "collect_batches"):
        return _streamed(native)
    if hasattr(native, "columns"):
        return _frame(native)
    if hasattr(native, "__array__") and not isinstance(native, np.generic):
        worked, values = attempt(lambda: np.asarray(native))
        if worked and values is not None:
            return _array(values)
    raise TypeError(f"cannot read votes from {type(votes).__name__}; give {_ACCEPTED}")


def steps(rows: int, width: int) -> Iterator[slice]:
    """The rows in blocks of bounded size."""
    size = max(1, CELLS // max(width, 1))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def _array(values: NDArray[Any]) -> VoteTable:
    if values.ndim != 2:
        raise ValueError(f"votes must be a table of two dimensions, not of {values.ndim}")
    rows, width = values.shape
    if values.dtype.kind == "O":
        return VoteTable(Part(width, lambda: (VoteLines(values[part].tolist(), True) for part in steps(rows, width))))
    return VoteTable(Part(width, lambda: (values[part] for part in steps(rows, width))))


def _list(rows: list[Any], width: int | None) -> VoteTable:
    """A list of rows: as wide as is declared, or as most of its rows are."""
    kinds = {(row.dtype, row.shape) if type(row) is np.ndarray else None for row in rows}
    if any(found is not None and (found[0].kind in "mMV" or found[0] == np.float16) for found in kinds):
        raise TypeError("votes must not be arrays of dates, durations, records or half precision; give lists")
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is not None and kind[0].kind in "biu" and len(kind[1]) == 1 and kind[1] == (width or kind[1][0],):
        return VoteTable(Part(kind[1][0], lambda: (np.stack(rows[part]) for part in steps(len(rows), kind[1][0]))))
    cells = grid(rows, width)
    found = len(cells[0]) if cells else 0
    return VoteTable(Part(found, lambda: (VoteLines(cells[part], True) for part in steps(len(cells), found))))


def _frame(native: Any) -> VoteTable:
    """A table in memory. Columns go by their places: names may be numbers, or the same twice."""
    places, names = [str(place) for place in range(len(native.columns))], None
    if hasattr(native, "set_axis"):
        names, native = tuple(native.columns.tolist()), native.set_axis(places, axis=1)
    elif hasattr(native, "rename_columns"):
        names, native = tuple(native.column_names), native.rename_columns(places)
    frame: Any = nw.from_native(native, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(f"cannot read votes from {type(native).__name__}; give {_ACCEPTED}")

    def part_of(columns: Sequence[str]) -> Part:
        def blocks() -> Iterator[Block]:
            some = frame.select(*columns)
            return (_columns(some[rows]) for rows in steps(len(frame), len(columns)))

        return Part(len(columns), blocks)

    return _grouped(part_of, frame.columns, names or tuple(frame.columns))


def _streamed(native: Any) -> VoteTable:
    """Typed files or a polars query, read in batches and in the order of the rows."""
    from snugdp.tables.sources import FileSource, LazySource, TableError, open_source

    source = open_source(native)
    names = tuple(source.types)
    if isinstance(source, LazySource):  # in one go: it is run once
        return VoteTable(Part(len(names), lambda: _batches(source.query, len(names), source.name)), names)
    if not isinstance(source, FileSource):
        raise TableError("votes are read from Parquet, Arrow or CSV files: write them to one first")

    def part_of(columns: Sequence[str]) -> Part:
        def blocks() -> Iterator[Block]:
            for file in source.partitions():
                scan = getattr(file.format, "scan", None)
                if scan is None:
                    yield from (_columns(batch.frame) for batch in file.batches(columns))
                    continue
                file.stamp.check()
                yield from _batches(scan(file.path).select(columns), len(columns), str(file.path))
                file.stamp.check()

        return Part(len(columns), blocks)

    return _grouped(part_of, names, names)


def _grouped(
    part_of: Callable[[Sequence[str]], Part], columns: Sequence[str], names: tuple[Hashable, ...]
) -> VoteTable:
    """With few columns at a time blocks are long, and a file's rows need not all be in memory."""
    groups = tuple(part_of(columns[at : at + _GROUP]) for at in range(0, len(columns), _GROUP))
    return VoteTable(part_of(columns), names, groups)


def _batches(query: Any, width: int, name: str) -> Iterator[Block]:
    from snugdp.tables.sources import TableError

    size = max(1, CELLS // max(width, 1))
    worked, batches = attempt(lambda: iter(query.collect_batches(chunk_size=size, maintain_order=True, lazy=True)))
    while worked and batches is not None:
        worked, batch = attempt(lambda: next(batches, None))
        if worked and batch is None:
            return
        if worked:
            yield _columns(nw.from_native(batch, eager_only=True))
    raise TableError(f"{name} could not be read to its end: it is damaged, or the query fails")


def _columns(frame: nw.DataFrame[Any]) -> Block:
    columns = [frame.get_column(name) for name in frame.columns]
    worked, matrix = attempt(lambda: _matrix(columns))
    if worked and matrix is not None:
        return matrix
    return VoteLines([column.to_native() for column in columns], False)


def _matrix(columns: list[nw.Series[Any]]) -> NDArray[Any] | None:
    """Columns of one numeric type side by side, masked where a row is missing; nothing if they are not of one."""
    kinds = {declared(column) for column in columns}
    kind = next(iter(kinds), nw.Object())
    if len(kinds) != 1 or not (kind == nw.Boolean or kind.is_integer() or kind.is_float()):
        return None
    complete = [kind.is_float() or not column.null_count() for column in columns]  # missing floats are NaN
    filled = [
        column if full else column.fill_null(False if kind == nw.Boolean else 0)
        for column, full in zip(columns, complete, strict=True)
    ]
    arrays = [column.to_numpy() for column in filled]
    types = {array.dtype for array in arrays}
    if len(types) != 1 or next(iter(types)).kind not in "biuf":
        return None
    values = np.stack(arrays).T
    if all(complete):
        return values
    return np.ma.MaskedArray(values, np.stack([np.asarray(column.is_null().to_numpy(), bool) for column in columns]).T)
