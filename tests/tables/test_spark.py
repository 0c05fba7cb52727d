"""The Spark engine on a real session: the same state as here to the last bit, whatever happens to a worker."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from snugdp import (
    PCA,
    LinearRegression,
    LogisticRegression,
    MemoryLedger,
    OneHotEncoder,
    Simulation,
    StandardScaler,
    describe,
)
from snugdp.estimators.pate import tables as pate_tables
from snugdp.secrecy.secret import PrivateComputationError, unwrap
from snugdp.tables import engines
from snugdp.tables.engines import Engine, Spark, measure
from snugdp.tables.grid import StepGrid
from snugdp.tables.passes.counts.value_counts import ColumnCells
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.schema.schema import Category, Number, Schema
from snugdp.tables.sources import Csv, SparkSource, TableError, cluster, open_source, spark_plan
from snugdp.tables.sources.cluster import interpreter
from tests.effort import sampled
from tests.estimators.pate import panels
from tests.real_data import real_data
from tests.tables import where
from tests.tables.clusters import MARKS, ODD_NAMES, PATH, SCHEMA, TABLE, WORK, in_files, needs_pyspark, spark_session
from tests.tables.tallies import Failing, Murderous, Tally

needs_pyspark()
pytestmark = MARKS
ROWS = Tally(())  # reads no column, and counts rows all the same


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session("local[2]", tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Any:
    return in_files(spark, tmp_path / "rows")


def test_the_same_state_as_here(spark: Any, table: Any) -> None:
    engine: Engine = Spark()
    assert engine.run(open_source(table), WORK) == unwrap(measure(TABLE, WORK))
    gram = GramPass(SCHEMA)
    assert gram.pack(unwrap(measure(table, gram))) == gram.pack(unwrap(measure(TABLE, gram)))
    assert unwrap(measure(table, ROWS)) == [len(TABLE)]
    cells = ColumnCells("a", StepGrid.between((-100, 100), "0.25"))
    assert cells.pack(unwrap(measure(table, cells))) == cells.pack(unwrap(measure(TABLE, cells)))
    mixed = table.repartition(7, "a").union(table.where("false")).withColumnRenamed("kind of", "kind.of")
    assert unwrap(measure(mixed, WORK)) == unwrap(measure(TABLE, WORK))
    assert unwrap(measure(spark.range(0).selectExpr("double(id) a", "double(id) b"), WORK)) == WORK.empty()


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error_where_nobody_tries_again(table: Any, tmp_path: Path) -> None:
    work = Murderous(WORK.columns, tmp_path / "killed", executor=False)
    with pytest.raises(TableError, match="the Spark job failed") as caught:
        measure(table, work)
    assert caught.value.__context__ is None
    assert "pyspark" in (tmp_path / "killed").read_text()
    assert unwrap(measure(table, WORK)) == unwrap(measure(TABLE, WORK))


def test_a_partition_that_is_missing_or_doubled_is_an_error(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = engines._answers
    for change in (lambda answers: answers[:-1], lambda answers: [*answers, answers[0]]):
        monkeypatch.setattr(engines, "_answers", lambda job, change=change: (real(job)[0], change(real(job)[1])))
        with pytest.raises(TableError, match="missing or came twice"):
            measure(table, WORK)


def test_what_is_public_is_refused_up_front(spark: Any, table: Any) -> None:
    with pytest.raises(TableError, match='has no column "weight"; it has "a", "b", "kind of"'):
        measure(table, Tally(("weight",)))
    with pytest.raises(TypeError, match='"a" is of type Unknown'):
        measure(table.selectExpr("map(b, a) as a", "b"), WORK)
    with pytest.raises(TableError, match='apart: "a", "A"'):
        open_source(table.selectExpr("a", "b as A"))
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(TableError, match="rows could be lost silently"):
            measure(table, WORK)
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


@sampled(3)
@pytest.mark.parametrize("option", ["ignoreCorruptFiles", "IGNOREMISSINGFILES"])
@pytest.mark.parametrize("version", ["parquet", ""])  # which formats are read by the first interface of Spark
def test_options_that_skip_files_are_refused_wherever_they_are(
    option: str, version: str, spark: Any, table: Any, tmp_path: Path
) -> None:
    before = spark.conf.get("spark.sql.sources.useV1SourceList")
    spark.conf.set("spark.sql.sources.useV1SourceList", version)
    try:
        skipping = spark.read.option(option, "true").parquet(str(tmp_path / "rows"))
        whole = spark.read.option(option, "false").parquet(str(tmp_path / "rows"))
    finally:
        spark.conf.set("spark.sql.sources.useV1SourceList", before)
    skipping.createOrReplaceTempView("skipping")
    table.createOrReplaceTempView("whole")
    for given in (
        skipping,
        table.union(skipping),
        skipping.cache(),
        spark.sql("select * from whole where a in (select a from skipping)"),
        spark.sql("with other as (select * from skipping) select a, b from other"),
    ):
        with pytest.raises(TableError, match="rows could be lost silently"):
            measure(given, WORK)
    skipping.unpersist()
    assert unwrap(measure(whole, WORK)) == unwrap(measure(TABLE, WORK))


def test_a_plan_that_cannot_be_inspected_is_refused(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(plan: Any) -> Any:
        raise RuntimeError("SECRET")

    monkeypatch.setattr(spark_plan, "_nodes", failing)
    with pytest.raises(TableError, match="cannot be inspected") as caught:
        measure(table, WORK)
    assert caught.value.__context__ is None


def may_change(session: Any, table: Any) -> dict[str, Any]:
    """Tables whose rows may be others when they are read again, by why."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    table.createOrReplaceTempView("rows")
    odd = f.udf(lambda x: x, "double").asNondeterministic()
    numbered = f.row_number().over(Window.partitionBy("a").orderBy("b"))
    return {
        "rand": table.withColumn("b", f.rand()),
        "uuid": table.where("uuid() > '5'"),
        "monotonically_increasing_id": table.withColumn("b", f.monotonically_increasing_id().cast("double")),
        "not deterministic": table.withColumn("b", odd("a")),
        r"\(limit\)": table.limit(50),
        r"order in which they come \(limit\)": session.sql(
            "select * from rows where a in (select a from rows limit 3)"
        ),
        r"they come \(limit\)": session.sql("with some as (select * from rows limit 3) select a, b from some"),
        "offset": table.offset(3),
        "sample": table.sample(0.5, seed=1),
        "dropDuplicates": table.dropDuplicates(["a"]),
        "window": table.withColumn("b", numbered.cast("double")),
        "an aggregate such as first": table.groupBy("a").agg(f.first("b").alias("b")),
        "a sum of floats or": table.groupBy("a").agg(f.sum("b").alias("b")),
        "a mean of integers": table.groupBy("a").agg(f.avg(f.col("b").cast("bigint")).alias("b")),
        "a collation takes for equal": session.sql(
            "select length(string(a) collate UTF8_LCASE) a, count(*) b from rows group by string(a) collate UTF8_LCASE"
        ),
        "its checkpoint is a lazy one": table.withColumn("b", f.rand()).localCheckpoint(eager=False),
        "aes_encrypt": table.withColumn("b", f.expr("length(aes_encrypt(string(a), '0123456789abcdef'))")),
        "such as 'now'": table.where(f.to_timestamp(f.lit("now")) > f.to_date(f.lit("2020-01-31"))),
        "'12:30'": table.where("timestamp('12:30') > to_date('2020-01-31')"),
        "current_timestamp": table.where("b < double(unix_timestamp(current_timestamp()))"),
        "the date or the time": table.where("cast('today' as date) > to_date('2020-01-31')"),
        "or one that is put together": table.where("date('to' || 'day') > to_date('2020-01-31')"),
        "mapInArrow": table.select("a", "b").mapInArrow(lambda batches: batches, "a double, b double"),
        "since it is a stream": session.readStream.format("rate")
        .load()
        .selectExpr("double(value) a", "double(value) b"),
    }


def test_plans_whose_rows_may_change_are_refused_before_anything_is_read(spark: Any, table: Any) -> None:
    for why, changing in may_change(spark, table).items():
        with pytest.raises(TableError, match=why) as caught:
            open_source(changing).check(WORK)
        assert "table.checkpoint(eager=True)" in str(caught.value)


def test_plans_that_give_the_same_rows_in_any_order_are_read(table: Any) -> None:
    from pyspark.sql import functions as f

    whole = f.col("b").cast("decimal(20, 2)")
    for same in (
        table.distinct(),
        table.groupBy("a").agg(f.max("b").alias("b"), f.count("*"), f.sum(whole), f.avg(f.col("a").cast("smallint"))),
        table.join(table.select("a").distinct(), "a"),
        table.orderBy("a").repartition(3),
        table.limit(50).localCheckpoint(),
    ):
        open_source(same).check(WORK)


@pytest.mark.slow
def test_rows_that_change_unseen_by_the_plan_end_the_fit(spark: Any, table: Any) -> None:
    """A function that draws and does not say so: an error in a second pass, behind the charge a refusal."""
    from pyspark.sql import functions as f

    with interpreter(spark):
        drawing = f.udf(lambda x: x if x is None else x + random.random(), "double")
        odd = table.withColumn("a", drawing("a"))
    source = open_source(odd)
    measure(source, WORK)
    with pytest.raises(TableError, match="held other rows when it was read again"):
        measure(source, WORK)
    used = {name: column for name, column in SCHEMA.columns.items() if name != SCHEMA.target}
    ledger = MemoryLedger(2, 1e-5)
    model = LogisticRegression(epsilon=1, delta=1e-6, schema=Schema(used, target="kind of"), ledger=ledger).fit(odd)
    assert not model.released_
    assert ledger.remaining.epsilon < 2


def test_a_file_that_vanishes_is_an_error(table: Any, tmp_path: Path) -> None:
    source = open_source(table)
    (tmp_path / "rows" / "3.parquet").unlink()
    with pytest.raises(TableError, match="the Spark job failed") as caught:
        measure(source, WORK)
    assert caught.value.__context__ is None


def test_what_fails_in_the_pass_is_not_told(table: Any) -> None:
    with pytest.raises(TableError, match="withheld") as caught:
        measure(table, Failing(("a", "b")))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", ["bike", "elevators"])
def test_real_tables_are_the_same_to_the_last_bit(name: str, spark: Any) -> None:
    path = real_data(f"{name}.csv.gz")
    names = [f"x{i}" for i in range({"bike": 17, "elevators": 18}[name])] + ["y"]
    schema = Schema(dict.fromkeys(names, Number(-500, 500)), target="y")
    work = GramPass(schema)
    here = unwrap(measure(Csv(path, names=names), work))
    there = spark.read.csv(str(path), schema=", ".join(f"{column} double" for column in names)).repartition(5)
    assert work.pack(unwrap(measure(there, work))) == work.pack(here)
    assert here.count() > 10_000


@pytest.mark.slow
def test_pyspark_is_not_imported_for_tables_elsewhere() -> None:
    code = (
        "import sys, polars as pl; from snugdp.tables.engines import measure\n"
        "from tests.tables.tallies import Tally\n"
        "measure(pl.DataFrame({'a': [1]}), Tally(('a',))); assert 'pyspark' not in sys.modules, 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": PATH}, check=True)


@pytest.mark.slow
def test_an_environment_that_was_not_activated(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another python3 comes first: workers run the interpreter of the driver, unless somebody named one."""
    assert unwrap(measure(spark.range(5), ROWS)) == [5]
    assert spark.sparkContext.pythonExec == "python3"  # other jobs are the user's
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")  # now that interpreter was asked for: it cannot run the library
    monkeypatch.setattr(cluster, "_ready", set())
    with pytest.raises(TableError, match=f"Python {sys.version_info[0]}.{sys.version_info[1]} as here") as caught:
        measure(spark.range(5), ROWS)
    assert 'PYSPARK_PYTHON before the session starts. It is set to "python3"' in str(caught.value)


def test_whose_interpreter_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours on this machine, and never where somebody named one."""

    def used(master: str, named: str = "python3", conf: str = "") -> str:
        settings = SimpleNamespace(contains=lambda name: name == conf)
        context = SimpleNamespace(master=master, pythonExec=named, getConf=lambda: settings)
        with interpreter(SimpleNamespace(sparkContext=context)):
            found: str = context.pythonExec
        assert context.pythonExec == named
        return found

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert used("local[2]") == used("local-cluster[2,1,1024]") == sys.executable
    assert used("local[2]", "/other/python") == "/other/python"
    assert used("yarn") == used("local[2]", conf="spark.pyspark.python") == "python3"
    monkeypatch.setenv("PYSPARK_PYTHON", "/named/later")
    assert used("local[2]") == "python3"


@pytest.mark.slow
@pytest.mark.parametrize("center", ["bounds", "private"])
def test_the_same_components_as_here(table: Any, center: str) -> None:
    """Also where a released centre makes the table be read again."""
    fits = [PCA(2, schema=SCHEMA, center=center, method="projector", noise=Simulation(1)) for _ in range(2)]
    here, there = (fit.fit(rows) for fit, rows in zip(fits, (TABLE, table), strict=True))
    assert np.array_equal(here.components_, there.components_)
    assert np.array_equal(here.mean_, there.mean_)


def test_the_same_coefficients_as_here(table: Any) -> None:
    """By the method that reads the table again around a released centre."""
    used = {name: column for name, column in SCHEMA.columns.items() if name != SCHEMA.target}
    schema = Schema(used, target="kind of")
    here, there = (LogisticRegression(schema=schema, noise=Simulation(1)).fit(rows) for rows in (TABLE, table))
    assert np.array_equal(here.coef_, there.coef_)
    assert here.classes_.tolist() == there.classes_.tolist()


@pytest.mark.slow
def test_predictions_stay_on_the_cluster(table: Any) -> None:
    """Row by row the same as here, with all other columns beside them."""
    used = {name: column for name, column in SCHEMA.columns.items() if name != SCHEMA.target}
    label: Any = LogisticRegression(schema=Schema(used, target="kind of"), noise=Simulation(1)).fit(TABLE)
    line: Any = LinearRegression(schema=SCHEMA, method="adassp", noise=Simulation(1)).fit(TABLE)
    known = TABLE.filter(pl.col("a").is_not_null()).sort("a")
    there = table.where("a is not null").orderBy("a")
    assert [row["prediction"] for row in label.predict(there).collect()] == label.predict(known).tolist()
    assert [row["prediction"] for row in line.predict(there).collect()] == line.predict(known).tolist()
    answers = label.predict_proba(there)
    assert answers.columns == [*table.columns, "probabilities"] == ["a", "b", "kind of", "probabilities"]
    assert [row["probabilities"] for row in answers.collect()] == label.predict_proba(known).tolist()
    with pytest.raises(TableError, match='has a column "prediction" already'):
        line.predict(line.predict(table))
    with pytest.raises(TableError, match='no column "kind of", which the model reads'):
        line.predict(table.drop("kind of"))


@pytest.mark.parametrize("person", [None, "the `kind.of`"])
def test_columns_may_have_any_name(table: Any, person: str | None) -> None:
    """Spark reads a dot as the way into a struct, and a backtick as the end of a name."""
    here, there = TABLE.rename(ODD_NAMES), table.toDF(*ODD_NAMES.values())
    columns = {ODD_NAMES[name]: column for name, column in SCHEMA.columns.items() if ODD_NAMES[name] != person}
    schema = Schema(columns, target="`", person=person)
    fits: list[Any] = [LinearRegression(schema=schema, noise=Simulation(1)).fit(rows) for rows in (here, there)]
    one, other = fits
    assert np.array_equal(one.coef_, other.coef_)
    assert sorted(row[-1] for row in other.predict(there).collect()) == sorted(one.predict(here).tolist())


@pytest.mark.slow
def test_every_answer_stays_on_the_cluster(table: Any) -> None:
    used = {name: column for name, column in SCHEMA.columns.items() if name != SCHEMA.target}
    label: Any = LogisticRegression(schema=Schema(used, target="kind of"), noise=Simulation(1)).fit(TABLE)
    scaled = StandardScaler(schema=Schema({"a": SCHEMA.columns["a"]}), noise=Simulation(1)).fit(TABLE)
    levels = OneHotEncoder(schema=Schema({"kind of": Category()}), noise=Simulation(1)).fit(TABLE)
    asked = {"decision_function": label, "predict_log_proba": label, "transform": scaled}
    for method, model in [*asked.items(), ("transform", levels)]:
        answers = getattr(model, method)(table)
        assert sorted(row[-1] for row in answers.collect()) == sorted(getattr(model, method)(TABLE).tolist()), method
        assert answers.where("false").collect() == getattr(model, method)(table.where("false")).collect() == []
    with pytest.raises(TypeError, match="must hold numbers, not Binary"):
        scaled.transform(table.selectExpr("binary('1') as a"))


@pytest.mark.slow
def test_what_runs_as_documented(spark: Any, tmp_path: Path) -> None:
    """Every query and estimator gives what it gives here, or is refused, as docs/tables.md says."""
    where.TABLE.write_parquet(tmp_path / "where.parquet")
    found = where.column_of(spark.read.parquet(str(tmp_path / "where.parquet")))
    assert found == {name: engines["Spark"] for name, engines in where.documented().items()}


def test_a_description_is_the_same_on_a_cluster(spark: Any, tmp_path: Path) -> None:
    people = pl.DataFrame({"age": [float(i % 90) for i in range(900)], "way": ["car", "bus", None] * 300})
    people.write_parquet(tmp_path / "people.parquet")
    schema = Schema({"age": Number(0, 120), "way": Category(["car", "bus"])})
    found = [
        describe(table, schema=schema, epsilon=1, noise=Simulation(3)).value
        for table in (people, spark.read.parquet(str(tmp_path / "people.parquet")).repartition(3))
    ]
    assert found[0] is not None
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("person", [None, "who"])
def test_teachers_vote_where_their_rows_lie_as_they_do_here(person: str | None, spark: Any, tmp_path: Path) -> None:
    panels.TABLE.write_parquet(tmp_path / "panel.parquet")
    there = spark.read.parquet(str(tmp_path / "panel.parquet"))
    for model in (panels.Watchful(), panels.Watchful(fails=ValueError), panels.Watchful(fails=SystemExit)):
        here = panels.votes(panels.TABLE, model, person)
        assert panels.votes(there.repartition(5, "city"), model, person) == here
    asked = panels.QUERIES.select("a", "b").to_pandas()
    here = panels.votes(panels.TABLE, panels.lines(), person, nan=False, queries=asked)
    assert panels.votes(there, panels.lines(), person, nan=False, queries=asked) == here


@pytest.mark.slow
def test_teachers_that_cannot_travel_or_parts_in_two_are_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panels.TABLE.write_parquet(tmp_path / "panel.parquet")
    there = spark.read.parquet(str(tmp_path / "panel.parquet"))
    with pytest.raises(ValueError, match="cannot be sent to the workers"):
        panels.votes(there, panels.Watchful(fails=threading.Lock()))
    real = pate_tables._scattered
    cut = lambda *given: SparkSource(real(*given).table.repartition(3, "word"), is_checked=True)  # noqa: E731
    monkeypatch.setattr(pate_tables, "_scattered", cut)
    with pytest.raises(PrivateComputationError, match="could not be trained"):
        panels.votes(there, panels.Watchful())
    from pyspark.sql.functions import rand

    rows = there.withColumn("a", rand())
    with pytest.raises(TableError, match="deterministic"):
        panels.votes(rows, panels.Watchful())
