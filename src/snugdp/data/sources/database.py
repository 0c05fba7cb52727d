"""A query on a DuckDB database file, streamed. The extra ``snugdp[duckdb]`` brings what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw

from snugdp.data.kinds import DType
from snugdp.data.sources.base import Batch, Partition, Source, TableError, guarded, quietly, step


@dataclass(frozen=True)
class DuckDB:
    """A query on a database file: ``DuckDB("shop.duckdb", "select age, income from customers")``.

    Each row of the result counts as one person. A query that mixes persons (joins, groups, windows, limits) lets one
    of them move several rows; that is not covered.
    """

    path: str | Path
    query: str


class DuckDBSource(Source, Partition):
    """The result of a query, not computed yet."""

    def __init__(self, asked: DuckDB) -> None:
        self._asked = asked
        _library()
        if not Path(asked.path).is_file():
            raise TableError(f"there is no database file {asked.path}")
        worked, types = quietly(self._plan)
        if not worked or types is None:
            raise TableError(f"the query on {asked.path} cannot be planned: try 'describe' with it in DuckDB")
        self._types = types

    def _plan(self) -> dict[str, DType]:
        with _connect(self._asked.path) as connection:
            return dict(nw.from_native(connection.sql(self._asked.query)).collect_schema())

    @property
    def types(self) -> Mapping[str, DType]:
        """The types that the query declares."""
        return self._types

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the query on {self._asked.path}"

    def partitions(self) -> Sequence[Partition]:
        """One."""
        return (self,)

    def batches(self, columns: Sequence[str], cells: Mapping[str, DType]) -> Iterator[Batch]:
        """The rows, streamed."""
        explain = f"{self.name} failed while it ran; the cause is withheld because it may quote rows"
        return guarded(self._stream(columns), lambda: explain)

    def _stream(self, columns: Sequence[str]) -> Iterator[Batch]:
        import pyarrow as pa

        with _connect(self._asked.path) as connection:
            result = connection.sql(self._asked.query)
            for batch in result.to_arrow_reader(step(len(columns))):
                table = pa.Table.from_batches([batch]).select(list(columns))
                yield Batch(nw.from_native(table, eager_only=True))


def _connect(path: str | Path) -> Any:
    return _library().connect(str(path), read_only=True)


def _library() -> Any:
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError:
        raise TableError("queries on database files need DuckDB: pip install 'snugdp[duckdb]'") from None
    return duckdb
