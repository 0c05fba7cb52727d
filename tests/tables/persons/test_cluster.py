"""Persons on a real Spark session: the same rows as here, and none of them at the driver."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from snugdp.secrecy.secret import unwrap
from snugdp.tables.cells import cell as one
from snugdp.tables.engines import measure
from snugdp.tables.persons import keep_rows, person_counts, weigh_rows
from snugdp.tables.sources import Source, SparkSource, TableError, open_source
from tests.tables.clusters import MARKS, needs_pyspark, spark_session
from tests.tables.persons.tables import KEY, NAMES, Row, content, kept, some_rows, table
from tests.tables.persons.test_keep import mixed_rows
from tests.tables.tallies import Murderous, Tally

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


def test_the_same_rows_as_here(spark: Any, tmp_path: Path) -> None:
    rows, names = mixed_rows(), ("x", "k", "day", "yes")
    there = in_files(spark, rows, tmp_path / "rows")
    for most in (1, 4):
        source = keep_rows(open_source(there), names, "id", most, KEY)
        assert collected(source) == kept(rows, most, names=names)
        assert source.types == {name: open_source(there).types[name] for name in names}
    again = keep_rows(open_source(there.repartition(5).coalesce(3)), names, "id", 4, KEY)
    assert collected(again) == kept(rows, 4, names=names)


def test_text_that_is_one_person_comes_together(spark: Any, tmp_path: Path) -> None:
    """Spark would send "7", "7.0" and "07" to different workers."""
    ids = ["7", "7.0", "07", " 7", "x", None, "", "nan"] * 20
    rows = pl.DataFrame({"id": ids, "route": range(160), "Route_": 1.0})
    there = in_files(spark, rows, tmp_path / "rows")
    source = keep_rows(open_source(there), ["route", "Route_"], "id", 1, KEY)
    assert collected(source) == kept(rows, names=["route", "Route_"])
    assert collected(source).total() == 2 + 60


def test_weights_and_counts(spark: Any, tmp_path: Path) -> None:
    rows = table(some_rows(4, 500, 40))
    there = in_files(spark, rows, tmp_path / "rows")
    names = (*NAMES, "weight")
    here = weigh_rows(open_source(rows), NAMES, "id", 5, KEY)
    assert collected(weigh_rows(open_source(there), NAMES, "id", 5, KEY)) == content(here, names)
    assert person_counts(open_source(there), "id").tolist() == person_counts(open_source(rows), "id").tolist()
    assert not collected(keep_rows(open_source(there.limit(0)), NAMES, "id", 1, KEY))


def test_no_row_comes_to_the_driver(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(some_rows(4, 500, 40))
    there = in_files(spark, rows, tmp_path / "rows")
    measure(there, Tally(("x",)))  # by now the workers were asked for their version
    for name in ("collect", "toPandas", "toArrow", "toLocalIterator", "take", "count"):
        monkeypatch.setattr(type(there), name, _refused)
    source = keep_rows(open_source(there), NAMES, "id", 2, KEY)
    here = keep_rows(open_source(rows), NAMES, "id", 2, KEY)
    assert unwrap(measure(source, Tally(("x",)))) == unwrap(measure(here, Tally(("x",))))


def _refused(*_: Any, **__: Any) -> None:
    raise AssertionError("rows came to the driver")


def test_what_is_public_is_refused_up_front(spark: Any) -> None:
    there = open_source(spark.range(3).selectExpr("id", "float(id) as x"))
    with pytest.raises(TypeError, match="single precision"):
        keep_rows(there, ["id"], "x", 1, KEY)
    with pytest.raises(TableError, match='no column "y"'):
        keep_rows(there, ["y"], "id", 1, KEY)


@pytest.mark.slow
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    """Two workers with a JVM each, one of which is killed when the rows that are kept are read."""
    rows = table(some_rows(4, 3000, 300))
    with spark_session("local-cluster[2,1,1024]", tmp_path) as session:
        there = in_files(session, rows, tmp_path / "rows")
        source = keep_rows(open_source(there), NAMES, "id", 2, KEY)
        here = keep_rows(open_source(rows), NAMES, "id", 2, KEY)
        work = Murderous(("x",), tmp_path / "killed", executor=True)
        assert unwrap(measure(source, work)) == unwrap(measure(here, Tally(("x",))))
        assert "CoarseGrainedExecutorBackend" in (tmp_path / "killed").read_text()
        assert collected(source) == content(here, NAMES)
