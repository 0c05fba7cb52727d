"""A query on a DuckDB database file, streamed; it can reach nothing else.

The extra ``snugdp[duckdb]`` brings what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw

from snugdp.secrecy.silence import attempt
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources.base import Batch, Stamp, TableError, UndividedSource, guarded, step


@dataclass(frozen=True)
class DuckDB:
    """A query on a database file: ``DuckDB("shop.duckdb", "select age, income from customers")``.

    It is one statement that selects, and reads the tables of this file only: no other files, no network.
    Each row of the result counts as one person. A query that mixes persons (joins, groups, windows, limits) lets one
    of them move several rows; that is not covered.
    """

    path: str | Path
    query: str


class DuckDBSource(UndividedSource):
    """The result of a query, not computed yet."""

    def __init__(self, asked: DuckDB) -> None:
        self._asked, self.name = asked, f"the query on {asked.path}"
        _library()
        if not Path(asked.path).is_file():
            raise TableError(f"there is no database file {asked.path}")
        self._stamps = _stamps(Path(asked.path))
        worked, types = attempt(self._plan)
        if not worked or types is None:
            raise TableError(
                f"the query on {asked.path} cannot be planned: try 'describe' with it in DuckDB. It can use the tables "
                "of this file alone, and the file must not be open elsewhere"
            )
        if not types:
            raise TableError(f"the query on {asked.path} must be one statement that selects, such as 'select ...'")
        self.types = types

    def _plan(self) -> dict[str, DType]:
        """The types; none if it is not one statement that selects, which is then not run."""
        with _connect(self._asked.path) as connection:
            kinds = [statement.type for statement in connection.extract_statements(self._asked.query)]
            if kinds != [_library().StatementType.SELECT]:
                return {}
            return dict(nw.from_native(connection.sql(self._asked.query)).collect_schema())

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows, streamed. An error if the database changed since it was opened."""
        explain = f"{self.name} failed while it ran; the cause is withheld because it may quote rows"
        self._unchanged()
        yield from guarded(self._stream(columns), lambda: explain)
        self._unchanged()

    def _unchanged(self) -> None:
        for stamp in self._stamps:
            stamp.check()
        if len(_stamps(Path(self._asked.path))) != len(self._stamps):
            raise TableError(f"{self._asked.path} was changed after it was opened: open it again when nobody writes")

    def _stream(self, columns: Sequence[str]) -> Iterator[Batch]:
        import pyarrow as pa

        with _connect(self._asked.path) as connection:
            result = connection.sql(self._asked.query)
            for batch in result.to_arrow_reader(step(len(columns))):
                table = pa.Table.from_batches([batch]).select(list(columns))
                yield Batch(nw.from_native(table, eager_only=True))


def _stamps(path: Path) -> list[Stamp]:
    """Of the database, and of its log if there is one: changes stand there first."""
    log = Path(f"{path}.wal")
    return [Stamp.of(path), *([Stamp.of(log)] if log.exists() else [])]


def _connect(path: str | Path) -> Any:
    return _library().connect(str(path), read_only=True, config={"enable_external_access": "false"})


def _library() -> Any:
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError:
        raise TableError("queries on database files need DuckDB: pip install 'snugdp[duckdb]'") from None
    return duckdb
