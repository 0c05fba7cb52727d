"""From whatever holds a table to batches of rows: frames, files, folders, databases and clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugdp.lazy import loader

if TYPE_CHECKING:
    from snugdp.tables.sources.base import Batch, Partition, Source, TableError, wanted
    from snugdp.tables.sources.cluster import SparkSource
    from snugdp.tables.sources.csv.stream import Csv
    from snugdp.tables.sources.database import DuckDB, DuckDBSource
    from snugdp.tables.sources.files import FileSource
    from snugdp.tables.sources.frames import FrameSource, LazySource
    from snugdp.tables.sources.opening import open_source

__all__ = [
    "Batch", "Csv", "DuckDB", "DuckDBSource", "FileSource", "FrameSource", "LazySource", "Partition", "Source",
    "SparkSource", "TableError", "open_source", "wanted",
]  # fmt: skip

__getattr__ = loader(
    __name__,
    {
        "snugdp.tables.sources.base": "Batch Partition Source TableError wanted",
        "snugdp.tables.sources.cluster": "SparkSource",
        "snugdp.tables.sources.csv.stream": "Csv",
        "snugdp.tables.sources.database": "DuckDB DuckDBSource",
        "snugdp.tables.sources.files": "FileSource",
        "snugdp.tables.sources.frames": "FrameSource LazySource",
        "snugdp.tables.sources.opening": "open_source",
    },
)
