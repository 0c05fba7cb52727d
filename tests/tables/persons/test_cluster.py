"""Persons on a real Spark session: the same rows as here, and none of them at the driver."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.secrecy.secret import unwrap
from snugdp.tables.cells import cell as one
from snugdp.tables.engines import measure
from snugdp.tables.persons import keep_rows, person_counts, weigh_rows
from snugdp.tables.persons.totals import RankEntries, person_totals
from snugdp.tables.sources import Source, SparkSource, TableError, open_source
from tests.tables.clusters import MARKS, needs_pyspark, spark_session
from tests.tables.persons.tables import GRID, KEY, NAMES, Row, content, kept, some_rows, table
from tests.tables.persons.test_keep import mixed_rows
from tests.tables.persons.test_totals import shown
from tests.tables.tallies import Words

needs_pyspark()
pytestmark = MARKS


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session("local[2]", tmp_path_factory.mktemp("spark")) as session:
        yield session


def in_files(session: Any, rows: pl.DataFrame, folder: Path, parts: int = 4) -> Any:
    folder.mkdir()
    for part in range(parts):
        rows[part::parts].write_parquet(folder / f"{part}.parquet")
    return session.read.parquet(str(folder))


def collected(source: Source) -> Counter[Row]:
    assert isinstance(source, SparkSource)
    return Counter(tuple(one.label(cell) for cell in row) for row in source.table.collect())


@pytest.mark.slow
def test_the_same_rows_as_here(spark: Any, tmp_path: Path) -> None:
    rows, names = mixed_rows(), ("x", "k", "day", "yes")
    there = in_files(spark, rows, tmp_path / "rows")
    for most in (1, 4):
        source = keep_rows(open_source(there), names, "id", most, KEY)
        assert collected(source) == kept(rows, most, names=names)
        assert source.types == {name: open_source(there).types[name] for name in names}
    again = keep_rows(open_source(there.repartition(5).coalesce(3)), names, "id", 4, KEY)
    assert collected(again) == kept(rows, 4, names=names)


@pytest.mark.slow
def test_persons_come_together_and_no_row_comes_to_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would send "7", "7.0" and "07" to different workers."""
    there = open_source(spark.range(3).selectExpr("id", "float(id) as x"))
    with pytest.raises(TypeError, match="single precision"):
        keep_rows(there, ["id"], "x", 1, KEY)
    with pytest.raises(TableError, match='no column "y"'):
        keep_rows(there, ["y"], "id", 1, KEY)
    ids = ["7", "7.0", "07", " 7", "x", None, "", "nan"] * 20
    rows = pl.DataFrame({"id": ids, "route": range(160), "Route_": 1.0})
    far = in_files(spark, rows, tmp_path / "rows", 2)
    work, names = Words(("route", "Route_")), ["route", "Route_"]
    open_source(far).check(work)  # by now the workers were asked for their version
    for name in ("collect", "toPandas", "toArrow", "toLocalIterator", "take", "count"):
        monkeypatch.setattr(type(far), name, _refused)
    here, seen = (unwrap(measure(keep_rows(open_source(data), names, "id", 1, KEY), work)) for data in (rows, far))
    assert seen == here
    assert sum(here.values()) == 2 + 60


@pytest.mark.slow
def test_weights_and_counts(spark: Any, tmp_path: Path) -> None:
    rows = table(some_rows(4, 500, 40))
    there = in_files(spark, rows, tmp_path / "rows")
    names = (*NAMES, "weight")
    here = weigh_rows(open_source(rows), NAMES, "id", 5, KEY)
    assert collected(weigh_rows(open_source(there), NAMES, "id", 5, KEY)) == content(here, names)
    assert person_counts(open_source(there), "id").tolist() == person_counts(open_source(rows), "id").tolist()
    assert not collected(keep_rows(open_source(there.where("false")), NAMES, "id", 1, KEY))


def _refused(*_: Any, **__: Any) -> None:
    raise AssertionError("rows came to the driver")


@pytest.mark.slow
def test_models_and_queries_are_those_of_the_same_table_here(spark: Any, tmp_path: Path) -> None:
    """Person by person, from the table to the release: the same numbers for the same noise."""
    rows = _orders()
    there = in_files(spark, rows, tmp_path / "orders")
    for make in _models().values():
        here, far = (make(noise=snugdp.Simulation(5)).fit(data) for data in (rows, there.repartition(3)))
        assert far.plan_.unit is far.outcome_.unit is snugdp.Unit.PERSON
        assert far.cost_ == here.cost_
        one, other = (np.asarray(getattr(model, "coef_", getattr(model, "components_", 0))) for model in (here, far))
        assert one.shape
        assert np.array_equal(one, other)
    for ask in _questions().values():
        near, distant = (ask(data, snugdp.Simulation(7)) for data in (rows, there))
        assert distant.unit is snugdp.Unit.PERSON
        assert str(near.value) == str(distant.value)


def _orders() -> pl.DataFrame:
    """Persons with 1 to 7 rows, in no order."""
    rng = np.random.default_rng(3)
    who = rng.permutation(np.repeat(np.arange(120), 1 + np.arange(120) % 7))
    x = rng.uniform(-1, 1, (len(who), 2))
    shop = rng.choice(["Rome", "Oslo"], len(who))
    columns = {"who": [f"p{one}" for one in who], "a": x[:, 0], "b": x[:, 1], "shop": shop}
    return pl.DataFrame({**columns, "y": np.clip(x[:, 0] - x[:, 1], -1, 1), "buys": x[:, 0] > 0})


def _models() -> dict[str, Any]:
    numbers = {name: snugdp.Number(-1, 1) for name in ("a", "b")}
    line = snugdp.Schema({**numbers, "y": snugdp.Number(-1, 1)}, "y", person="who")
    label = snugdp.Schema({**numbers, "buys": snugdp.Boolean()}, "buys", person="who")
    points = snugdp.Schema(numbers, person="who")
    return {
        "sums": partial(snugdp.LinearRegression, epsilon=4, schema=line, method="adassp", max_rows=3),
        "line": partial(snugdp.LinearRegression, epsilon=4, schema=line, method="output", max_rows=2),
        "logistic": partial(snugdp.LogisticRegression, epsilon=4, schema=label, method="output", max_rows=2),
        "components": partial(snugdp.PCA, 1, epsilon=4, schema=points, max_rows=2),
        "weights": partial(snugdp.LinearRegression, epsilon=4, schema=line, max_rows=2),
        "private weight": partial(snugdp.LinearRegression, epsilon=4, schema=line, max_rows="private"),
    }


def _questions() -> dict[str, Any]:
    whose: dict[str, Any] = {"person": "who", "epsilon": 2}
    return {
        "count": lambda data, noise: snugdp.count(data, noise=noise, max_rows=2, **whose),
        "mean": lambda data, noise: snugdp.mean(data, column="a", bounds=(-1, 1), delta=1e-6, noise=noise, **whose),
        "groups": lambda data, noise: snugdp.group_by(data, "shop", keys=["Rome", "Oslo"], noise=noise, **whose),
        "table": lambda data, noise: snugdp.describe(data, noise=noise, delta=1e-6, **whose),
        "capped sum": lambda data, noise: snugdp.sum(
            data, column="a", bounds=(-1, 1), max_rows="private", noise=noise, **whose
        ),
        "totals by group": lambda data, noise: snugdp.group_by(
            data,
            "shop",
            keys=["Rome", "Oslo"],
            statistics={"a": "mean"},
            bounds={"a": (-1, 1)},
            max_rows=3,
            noise=noise,
            **whose,
        ),
        "weighted median": lambda data, noise: snugdp.median(
            data, column="a", bounds=(-1, 1), max_rows=3, noise=noise, **whose
        ),
        "keys": lambda data, noise: snugdp.group_by(data, "shop", delta=1e-6, max_rows=2, noise=noise, **whose),
    }


@pytest.mark.slow
def test_what_persons_add(spark: Any, tmp_path: Path) -> None:
    rows = table(some_rows(4, 900, 60))
    there = in_files(spark, rows, tmp_path / "rows").repartition(5)
    far, near = (unwrap(person_totals(open_source(data), RankEntries("x", GRID), "id")) for data in (there, rows))
    assert shown(far) == shown(near)
    assert sum(shown(far).values()) > 60
