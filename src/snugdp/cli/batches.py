"""Rows to predict, batch by batch and in their order, with the columns that a model asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import narwhals as nw
import polars as pl

from snugdp.tables.sources import Batch, Source
from snugdp.tables.sources.base import TableError, guarded, listed, step
from snugdp.tables.sources.files import FilePartition, PolarsFormat


class Reader:
    """Pairs of the columns that a model reads and those that are kept, both as polars frames."""

    def __init__(self, source: Source, model: Any, keep: tuple[str, ...]) -> None:
        self._source, self._keep = source, keep
        self._columns = _columns(model, source)
        absent = [name for name in (*self._columns, *keep) if name not in source.types]
        if absent:
            raise TableError(f"{source.name} has no column {listed(absent)}, which the model or --keep asks for")
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
