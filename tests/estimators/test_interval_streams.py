"""Fits with intervals on files that are read in batches, and on Spark: the same numbers as of a table in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snugdp
from tests.estimators.test_intervals import COLUMNS, TABLE, model
from tests.tables.clusters import spark_session


def test_a_stream_has_the_same_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLE.head(1500)
    here = model().fit(table).conf_int()
    table.write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr("snugdp.tables.sources.frames.step", lambda columns: 400)  # rows of a batch
    for name in ("t.csv", "t.parquet"):
        assert np.array_equal(model().fit(tmp_path / name).conf_int(), here), name
    fitted = model().fit(table)
    for given in ({"metric": ("r2", "mae")}, {"metric": "mse", "delta": 1e-6}):
        asked: Any = {**given, "epsilon": 1}
        one, two, three = (
            snugdp.score(fitted, each, "income", **asked, noise=snugdp.Simulation(1)).value
            for each in (table, tmp_path / "t.csv", tmp_path / "t.parquet")
        )
        assert one == two == three
    found = [
        snugdp.mean(each, column="age", bounds=(0, 120), epsilon=1, inference=True, noise=snugdp.Simulation(1)).value
        for each in (table, tmp_path / "t.csv", tmp_path / "t.parquet")
    ]
    assert found[0] == found[1] == found[2]


def test_a_stream_has_the_same_conditional_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLE.head(1500)
    here = model(target="mean").fit(table).conf_int()
    table.write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr("snugdp.tables.sources.frames.step", lambda columns: 400)
    assert np.array_equal(model(target="mean").fit(tmp_path / "t.parquet").conf_int(), here)


def labels_model() -> Any:
    schema = snugdp.Schema({**COLUMNS, "bought": snugdp.Boolean()}, target="bought")
    return snugdp.LogisticRegression(2, 1e-6, schema=schema, inference=True, noise=snugdp.Simulation(1))


@pytest.mark.slow
def test_a_stream_of_labels_has_the_same_intervals_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLE.head(1500)
    table.write_csv(tmp_path / "t.csv")
    monkeypatch.setattr("snugdp.tables.sources.frames.step", lambda columns: 400)
    here, there = (labels_model().fit(each) for each in (table, tmp_path / "t.csv"))
    assert np.array_equal(here.conf_int(), there.conf_int())
    one, two = (
        snugdp.score(here, each, "bought", epsilon=1, noise=snugdp.Simulation(1)).value
        for each in (table, tmp_path / "t.csv")
    )
    assert one == two


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'snugdp[spark]'")
    with spark_session("local[2]", tmp_path) as session:
        yield session


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_has_the_same_intervals_and_scores(spark: Any, tmp_path: Path) -> None:
    table = TABLE.head(1500)
    table.write_parquet(tmp_path / "t.parquet")
    there = spark.read.parquet(str(tmp_path / "t.parquet")).repartition(3)
    fitted, labels = model().fit(table), labels_model().fit(table)
    assert np.array_equal(model().fit(there).conf_int(), fitted.conf_int())
    assert np.array_equal(model(target="mean").fit(there).conf_int(), model(target="mean").fit(table).conf_int())
    assert np.array_equal(labels_model().fit(there).conf_int(), labels.conf_int())
    asked: Any = {"metric": ("r2", "mae"), "epsilon": 1}
    one, two = (
        snugdp.score(fitted, each, "income", **asked, noise=snugdp.Simulation(1)).value for each in (table, there)
    )
    assert one == two
    one, two = (
        snugdp.score(labels, each, "bought", epsilon=1, noise=snugdp.Simulation(1)).value for each in (table, there)
    )
    assert one == two
