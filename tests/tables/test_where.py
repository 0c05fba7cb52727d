"""The table "What runs where" of docs/tables.md is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest

import snugdp
from snugdp.estimators.registry import ESTIMATORS
from snugdp.tables.sources import DuckDB
from tests.tables.where import ASKED, ENGINES, TABLE, column_of, documented

OTHERS = {
    "advise",
    "calibrated",
    "check_pipeline",
    "from_distance",
    "from_statistics",
    "from_upper_bound",
    "load",
    "save",
}
OF_VOTES = {"pate", "select", "vote"}  # of votes or scores, not of rows


def test_every_release_stands_in_the_table() -> None:
    functions = {name for name in snugdp.__all__ if name.islower()} - OTHERS - OF_VOTES
    assert set(ASKED) == functions | {entry.name for entry in ESTIMATORS}
    assert set(documented()) == set(ASKED)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES[:3])
def test_what_runs_without_a_cluster(engine: str, tmp_path: Path) -> None:
    path, base = tmp_path / "rows.parquet", tmp_path / "rows.duckdb"
    TABLE.write_parquet(path)
    if engine == "DuckDB":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(base)) as connection:
            connection.execute(f"create table rows as select * from '{path}'")
    data = {"frame": TABLE, "DuckDB": DuckDB(base, "select * from rows")}.get(engine, str(path))
    assert column_of(data) == {name: where[engine] for name, where in documented().items()}
