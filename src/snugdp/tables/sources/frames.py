"""Tables in memory, in slices that share its memory; and polars queries, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import declared
from snugdp.tables.sources.base import Batch, Frame, TableError, UndividedSource, guarded, listed, step

_MIN_PIECE_ROWS = 1 << 13  # on the average: shorter ones are put together


class FrameSource(UndividedSource):
    """A table in memory. A pandas column of objects is one, whatever its rows look like."""

    name = "the table"
    inferred = held = True

    def __init__(self, frame: Frame) -> None:
        names = list(frame.columns)
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise TableError(f"two columns of the table are called {listed(doubled)}; rename one")
        self._frame = frame
        self.floats_for_missing = frame.implementation.is_pandas_like()
        self.types = {name: declared(frame.get_column(name)) for name in names}

    def beside(self, name: str, values: nw.Series[Any]) -> FrameSource:
        """The table with one more column, which was taken out of it or given beside it."""
        if name in self.types:
            raise TableError(f"two columns of the table are called {listed([name])}; rename one")
        if len(values) != len(self._frame):
            raise ValueError(f"X and {name} have inconsistent numbers of rows: give one for every row")
        return FrameSource(self._frame.with_columns(values.alias(name)))

    def is_empty(self) -> bool:
        """Whether there are no rows. Private, except in a rehearsal."""
        return not len(self._frame)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Slices; the columns are chosen slice by slice, so that no container copies the whole table."""
        explain = "a column of the table cannot be read: convert it to numbers or text"
        return guarded(self._slices(columns), lambda: explain)

    def _slices(self, columns: Sequence[str]) -> Iterator[Batch]:
        rows, size = len(self._frame), step(len(columns))
        for start in range(0, rows, size):
            yield Batch(self._frame[start : min(start + size, rows)].select(*columns))


class LazySource(UndividedSource):
    """A polars query that was not run yet. It is run once, in batches."""

    name = "the polars query"
    inferred = True

    def __init__(self, query: pl.LazyFrame) -> None:
        worked, types = attempt(lambda: dict(nw.from_native(query).collect_schema()))
        if not worked or types is None:
            raise TableError("the polars query cannot be planned: look at query.collect_schema()")
        plan = attempt(lambda: query.explain(optimized=False).lower())[1] or ""
        if "csv scan" in plan or "ndjson scan" in plan:
            raise TableError(
                "a polars query on a CSV or JSON file takes its types from the first rows, and a later cell that does "
                "not fit makes it fail: give the path of the CSV file, or write it to Parquet first"
            )
        self.query, self.types = query, types

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows, streamed."""
        explain = "the polars query failed while it ran; the cause is withheld because it may quote rows"
        return guarded(streamed(self.query.select(columns), len(columns)), lambda: explain)


def streamed(query: pl.LazyFrame, columns: int) -> Iterator[Batch]:
    """The result of a query in batches of bounded size, in any order; what is not wanted any more is not computed."""
    batches: Any = query.collect_batches(chunk_size=step(columns), maintain_order=False, lazy=True)
    for frame in batches:
        for part in _contiguous(frame):
            yield Batch(nw.from_native(part, eager_only=True))


def _contiguous(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The rows of a frame, in parts that lie in one piece in memory: without a copy unless its pieces are many."""
    lengths = frame.get_column(frame.columns[0]).chunk_lengths() if frame.width else []
    if len(lengths) < 2 or len(frame) < len(lengths) * _MIN_PIECE_ROWS:
        yield frame.rechunk()
        return
    start = 0
    for length in lengths:
        yield frame.slice(start, length).rechunk()  # which copies nothing that is in one piece
        start += length
