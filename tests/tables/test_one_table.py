"""All passes of a release have read one table: other rows in a later pass are an error, behind the charge a refusal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from snugdp import LogisticRegression, MemoryLedger, Simulation
from snugdp.estimators.base import NotReleased
from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import measure
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.schema.schema import Category, Number, Schema
from snugdp.tables.sources import DuckDB, TableError, open_source
from tests.tables.tallies import Tally

WORK = Tally(("a", "b"))
TABLE = pl.DataFrame({"a": [float(i) for i in range(500)], "b": [1.0 - i for i in range(500)]})
OTHER = "held other rows when it was read again"


class Shifting:
    """A query whose rows differ from one run to another, from some run on."""

    def __init__(self, table: pl.DataFrame, column: str, first: int) -> None:
        self.runs, self._column, self._first = 0, column, first
        self.query = table.lazy().map_batches(self._run, schema=table.schema)

    def _run(self, frame: pl.DataFrame) -> pl.DataFrame:
        self.runs += 1
        moved = float(self.runs) / 1024 if self.runs > self._first else 0.0
        return frame.with_columns(pl.col(self._column) + moved)


def twice(source: Any, between: Any = lambda: None) -> None:
    opened = open_source(source)
    measure(opened, WORK)
    measure(opened, WORK)
    between()
    measure(opened, WORK)


def test_a_query_that_changes() -> None:
    twice(TABLE.lazy())
    twice(Shifting(TABLE, "b", first=3).query)
    with pytest.raises(TableError, match=OTHER) as caught:
        twice(Shifting(TABLE, "b", first=2).query)
    assert caught.value.__context__ is None


def test_what_one_pass_alone_opens_is_not_digested(monkeypatch: pytest.MonkeyPatch) -> None:
    query, source = TABLE.lazy(), open_source(TABLE.lazy())
    monkeypatch.setattr("snugdp.tables.engines.DigestPass", None)
    measure(query, WORK)
    with pytest.raises(TypeError):
        measure(source, WORK)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_a_file_that_is_replaced_by_one_that_looks_like_it(ending: str, tmp_path: Path) -> None:
    """Of the same size and the same time: neither is what tells."""
    path, table = tmp_path / f"rows.{ending}", TABLE.with_columns(pl.lit("x").alias("c"))
    write(table, path)
    before = path.stat()

    def replaced() -> None:
        write(table.with_columns(pl.col("b").reverse()), tmp_path / f"new.{ending}")
        os.replace(tmp_path / f"new.{ending}", path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    twice(path)
    with pytest.raises(TableError, match=OTHER):
        twice(path, replaced)
    assert path.stat().st_size == before.st_size


def write(table: pl.DataFrame, path: Path) -> None:
    if path.suffix == ".parquet":
        table.write_parquet(path, compression="uncompressed", statistics=False)
    elif path.suffix == ".arrow":
        table.write_ipc(path)
    else:
        table.write_csv(path)


def test_a_database_query_that_draws(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.sql("create table rows as select range::double as a, -range::double as b from range(500)")
    twice(DuckDB(tmp_path / "rows.duckdb", "select a, b from rows"))
    for query in ("select a, b from rows using sample 50 percent (bernoulli)", "select a, random() as b from rows"):
        with pytest.raises(TableError, match=OTHER):
            twice(DuckDB(tmp_path / "rows.duckdb", query))


def test_rows_are_counted_whatever_is_read() -> None:
    """Passes over different columns."""
    opened = open_source(Growing().query)
    measure(opened, Tally(("a",)))
    with pytest.raises(TableError, match=OTHER):
        measure(opened, Tally(("b",)))


class Growing(Shifting):
    """A query with one row more each time."""

    def __init__(self) -> None:
        super().__init__(TABLE, "a", 0)

    def _run(self, frame: pl.DataFrame) -> pl.DataFrame:
        self.runs += 1
        return pl.concat([frame, *[frame[:1]] * self.runs])


def test_other_types_of_the_same_rows_share_what_was_read() -> None:
    source = open_source(Shifting(TABLE, "b", first=1).query)
    seen = source.with_types(dict(source.types))
    measure(source, WORK)
    with pytest.raises(TableError, match=OTHER):
        measure(seen, WORK)


SCHEMA = Schema({"x": Number(-3, 3), "z": Number(-3, 3), "y": Category(["no", "yes"])}, target="y")


def people(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    x, z = rng.normal(size=(2, rows))
    return pl.DataFrame({"x": x, "z": z, "y": np.where(x + rng.normal(size=rows) > 0, "yes", "no")})


@pytest.mark.parametrize("first", [1, 2])
def test_behind_the_charge_it_is_a_refusal_that_is_stored(first: int) -> None:
    """The fit ends, whatever the rows do: it is paid for, refused once, and says nothing about rows."""
    shifting, ledger = Shifting(people(), "x", first), MemoryLedger(2, 1e-5)
    model = LogisticRegression(epsilon=1, delta=1e-6, schema=SCHEMA, ledger=ledger)
    model.fit(shifting.query)
    assert not model.released_
    with pytest.raises(NotReleased, match="the table was not the same each time"):
        model.predict(people(3))
    assert shifting.runs == first + 1
    assert ledger.remaining.epsilon < 2


def test_the_same_fit_with_and_without_digests(tmp_path: Path) -> None:
    table = people()
    table.write_parquet(tmp_path / "people.parquet")
    fits = [
        LogisticRegression(schema=SCHEMA, noise=Simulation(3)).fit(rows)
        for rows in (table, table.lazy(), tmp_path / "people.parquet")
    ]
    assert all(np.array_equal(fits[0].coef_, fit.coef_) for fit in fits)
    gram = GramPass(SCHEMA)
    here, there = (gram.pack(unwrap(measure(rows, gram))) for rows in (table, table.lazy()))
    assert here == there
