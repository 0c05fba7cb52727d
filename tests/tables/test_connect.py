"""Spark Connect with a live server: the same releases as here to the last bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import PCA, LinearRegression, LogisticRegression, MemoryLedger, Simulation
from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import SparkConnect, _Merge, _row, engine_for, measure
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import TableError, open_source
from tests.tables import where
from tests.tables.clusters import MARKS, ODD_NAMES, SCHEMA, TABLE, WORK, connect_session, in_files, needs_pyspark
from tests.tables.tallies import Failing

needs_pyspark()
pytest.importorskip("grpc", reason="Spark Connect is not installed: pip install 'snugdp[spark]'")
pytestmark = MARKS
LABELS = Schema({name: kind for name, kind in SCHEMA.columns.items() if name != "b"}, target="kind of")


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with connect_session(tmp_path_factory.mktemp("connect")) as session:
        yield session


@pytest.fixture
def table(connect: Any, tmp_path: Path) -> Any:
    return in_files(connect, tmp_path / "rows")


def answers(parts: list[int]) -> list[tuple[int, list[int]]]:
    """What the task behind the shuffle makes of these partitions."""
    task = _Merge(WORK)
    rows = [_row(part, b"" if part < 0 else WORK.pack([part] * 5)) for part in parts]
    return [(row["part"], WORK.unpack(row["state"])) for batch in task(iter(rows)) for row in batch.to_pylist()]


def test_partitions_that_are_missing_or_doubled_are_told() -> None:
    pytest.importorskip("pyarrow")
    assert answers([2, 0, -1, 1]) == [(3, [3] * 5)]
    assert answers([-1]) == [(0, [0] * 5)]  # a table without partitions
    for parts in ([0, 2, -1], [0, 1, 1, -1], [0, 1], [], [0, 0, -1]):
        assert [number for number, _ in answers(parts)] == [-1]


@pytest.mark.slow
def test_the_same_state_as_here(connect: Any, table: Any) -> None:
    assert isinstance(engine_for(open_source(table)), SparkConnect)
    gram = GramPass(SCHEMA)
    assert gram.pack(unwrap(measure(table, gram))) == gram.pack(unwrap(measure(TABLE, gram)))
    assert unwrap(measure(table.repartition(7, "a"), WORK)) == unwrap(measure(TABLE, WORK))
    assert unwrap(measure(table.where("false"), WORK)) == WORK.empty()
    assert unwrap(measure(connect.range(0).selectExpr("double(id) a", "double(id) b"), WORK)) == WORK.empty()


@pytest.mark.slow
def test_what_is_refused_and_the_way_out(connect: Any, table: Any) -> None:
    from pyspark.sql.connect import functions as f

    table.createOrReplaceTempView("rows")
    for changing in (
        table.limit(50), table.withColumn("b", f.rand()), table.where("uuid() > '5'"), connect.table("rows"),
        table.dropDuplicates(["a"]), table.sample(0.5, seed=1), connect.sql("select * from rows limit 3"),
    ):  # fmt: skip
        with pytest.raises(TableError, match=r"table\.checkpoint\(eager=True\)"):
            open_source(changing).check(WORK)
    assert unwrap(measure(table.limit(50).localCheckpoint(), WORK))[0] == 50
    connect.sql("create table kept using parquet as select * from rows")
    assert unwrap(measure(connect.table("kept"), WORK)) == unwrap(measure(TABLE, WORK))
    same = table.groupBy("a").agg(f.max("b").alias("b")).withColumn("a", f.col("a") + 1).distinct()
    assert unwrap(measure(same, WORK))[0] == TABLE["a"].n_unique()


@pytest.mark.slow
def test_what_fails_on_the_cluster_is_not_told(table: Any) -> None:
    with pytest.raises(TableError, match="withheld") as caught:
        measure(table, Failing(("a", "b")))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(epsilon=1, delta=1e-6, schema=LABELS, noise=Simulation(1)),
    "line": lambda: LinearRegression(epsilon=1, delta=1e-6, schema=SCHEMA, noise=Simulation(1)),
    "components": lambda: PCA(2, epsilon=1, delta=1e-6, schema=SCHEMA, noise=Simulation(1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_same_fits_as_here(name: str, table: Any) -> None:
    here, there = (MODELS[name]().fit(rows) for rows in (TABLE, table))
    parts = ("coef_", "components_")
    one, other = ([np.asarray(getattr(fit, part)) for part in parts if hasattr(fit, part)] for fit in (here, there))
    assert len(one) == 1
    assert np.array_equal(one[0], other[0])
    ask = "transform" if name == "components" else "predict"
    answers = [row[-1] for row in getattr(there, ask)(table).where("a is not null").orderBy("a").collect()]
    assert np.array_equal(answers, getattr(here, ask)(TABLE.filter(pl.col("a").is_not_null()).sort("a")))


@pytest.mark.slow
def test_columns_may_have_any_name(table: Any) -> None:
    here, there = TABLE.rename(ODD_NAMES), table.toDF(*ODD_NAMES.values())
    schema = Schema({ODD_NAMES[name]: column for name, column in LABELS.columns.items()}, target="the `kind.of`")
    one, other = (LogisticRegression(schema=schema, noise=Simulation(1)).fit(rows) for rows in (here, there))
    assert np.array_equal(one.coef_, other.coef_)
    for ask in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
        answers = getattr(other, ask)(there).collect()
        assert sorted(row[-1] for row in answers) == sorted(getattr(one, ask)(here).tolist()), ask


@pytest.mark.slow
def test_the_same_answers_as_here(connect: Any, tmp_path: Path) -> None:
    where.TABLE.write_parquet(tmp_path / "where.parquet")
    there = connect.read.parquet(str(tmp_path / "where.parquet"))
    assert all(
        where.runs(where.ASKED[name], there) for name in ("median", "mean", "group_by", "describe", "PATEClassifier")
    )


@pytest.mark.nightly
def test_what_runs_as_documented(connect: Any, tmp_path: Path) -> None:
    """All that the table of the page says of Spark."""
    where.TABLE.write_parquet(tmp_path / "where.parquet")
    found = where.column_of(connect.read.parquet(str(tmp_path / "where.parquet")))
    assert found == {name: marks["Spark"] for name, marks in where.documented().items()}


@pytest.mark.slow
def test_persons_come_together(connect: Any, tmp_path: Path) -> None:
    rows = TABLE.with_columns((pl.int_range(pl.len()) % 90).alias("who"))
    rows.write_parquet(tmp_path / "rows.parquet")
    there = connect.read.parquet(str(tmp_path / "rows.parquet")).repartition(3)
    given: dict[str, Any] = {"column": "a", "bounds": (0, 400), "person": "who", "max_rows": 3, "epsilon": 1}
    one, other = (snugdp.sum(data, noise=Simulation(2), **given).value for data in (rows, there))
    assert str(one) == str(other)


@pytest.mark.slow
def test_rows_that_change_unseen_by_the_plan_end_the_fit(table: Any) -> None:
    """A function that draws and does not say so."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import DoubleType

    drawing: Any = f.udf(lambda x: x if x is None else x + random.random(), DoubleType())
    ledger = MemoryLedger(2, 1e-5)
    odd = table.withColumn("a", drawing(f.col("a")))
    model = LogisticRegression(epsilon=1, delta=1e-6, schema=LABELS, ledger=ledger).fit(odd)
    assert not model.released_
    assert ledger.remaining.epsilon < 2
