"""From whatever holds a table to batches of rows: frames, files, folders, databases and clusters."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from snugdp.lazy import loader
from snugdp.tables.sources.base import Batch, Partition, Source, TableError, eager_frame, wanted
from snugdp.tables.sources.cluster import SparkSource
from snugdp.tables.sources.database import DuckDB, DuckDBSource

if TYPE_CHECKING:
    from snugdp.tables.sources.csv import Csv
    from snugdp.tables.sources.files import FileSource
    from snugdp.tables.sources.frames import FrameSource, LazySource

__all__ = [
    "Batch", "Csv", "DuckDB", "DuckDBSource", "FileSource", "FrameSource", "LazySource", "Partition", "Source",
    "SparkSource", "TableError", "is_named", "is_spark", "open_source", "wanted",
]  # fmt: skip

__getattr__ = loader(  # what needs polars
    __name__,
    {
        "snugdp.tables.sources.csv": "Csv",
        "snugdp.tables.sources.files": "FileSource",
        "snugdp.tables.sources.frames": "FrameSource LazySource",
    },
)
_ACCEPTED = (
    "a pandas, polars, pyarrow, narwhals or Spark table; the path of a Parquet, CSV (.csv, .csv.gz) or Arrow (.arrow, "
    ".feather, .ipc) file, of a folder of them, or a pattern such as 'part-*.parquet'; a list of paths; "
    "Csv(path, ...); or DuckDB(path, query)"
)


def open_source(data: object) -> Source:
    """Open a table: its names and declared types, and a promise of rows. No row is looked at.

    Everything that can be checked without the rows is checked here: the files exist and can be read, their footers
    are whole, and all of them have the same columns.

    Guarantee: whether this raises, and what the message says, depends on public facts alone: paths, formats, names and
    declared types. The first record of a CSV file counts as names.

    >>> import polars as pl
    >>> open_source(pl.DataFrame({"age": [31, 45], "city": ["Rome", "Oslo"]})).types
    {'age': Int64, 'city': String}
    """
    if isinstance(data, Source):
        return data
    from snugdp.tables.sources.csv import Csv
    from snugdp.tables.sources.files import FileSource

    if isinstance(data, Csv):
        return FileSource.of_text(data)
    if isinstance(data, str | Path):
        return FileSource.of([data])
    if isinstance(data, list | tuple) and data and all(isinstance(path, str | Path) for path in data):
        return FileSource.of(data)
    if isinstance(data, DuckDB):
        return DuckDBSource(data)
    return _from_frame(data)


def _from_frame(data: object) -> Source:
    import polars as pl

    from snugdp.tables.sources.frames import FrameSource, LazySource

    native: Any = data.to_native() if isinstance(data, nw.LazyFrame) else data
    if isinstance(native, pl.LazyFrame):
        return LazySource(native)
    if is_spark(native):
        return SparkSource(native)
    frame = _frame(native)
    if frame is None:
        raise TypeError(f"cannot read a table from {type(data).__name__}; give {_ACCEPTED}")
    return FrameSource(frame)


def _frame(native: object) -> nw.DataFrame[Any] | None:
    names: Sequence[object] = list(getattr(native, "columns", ()))
    if any(not isinstance(name, str) for name in names) and "pandas" in type(native).__module__:
        raise TableError("the names of the columns must be text; rename them")
    if isinstance(native, nw.DataFrame):
        return native
    return eager_frame(native)


def is_named(data: object) -> bool:
    """Whether it is a table with names that is no frame in memory: a path, a query, a database or a Spark table."""
    import polars as pl

    from snugdp.tables.sources.csv import Csv

    far = isinstance(data, str | os.PathLike | Source | DuckDB | Csv | nw.LazyFrame | pl.LazyFrame)
    return far or is_spark(data)


def is_spark(native: object) -> bool:
    """Without importing pyspark: whoever has a Spark table has imported it."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and (
        isinstance(native, module.DataFrame) or type(native).__module__.startswith("pyspark.sql.")
    )
