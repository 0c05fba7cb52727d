"""Descriptions of tables: what is in them, their plans and budgets, the ways in, and bad input."""

import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import Boolean, Budget, Category, Describe, MemoryLedger, Number, Schema, Simulation
from snugdp.queries.description.describe import STATISTICS
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.balance import NoisyEntries, balanced
from snugdp.tables.schema.kinds import Undeclared
from snugdp.tables.sources import DuckDB
from tests.effort import often, repeated

SCHEMA = Schema(
    {"age": Number(0, 120), "income": Number(0, 10**6), "way": Category(["car", "train", "bus"]), "owner": Boolean()}
)


def table(rows: int = 5000) -> pl.DataFrame:
    generator = np.random.default_rng(3)
    incomes = np.exp(generator.normal(10, 0.5, rows))
    return pl.DataFrame(
        {
            "age": generator.integers(18, 90, rows),
            "income": [None if i % 10 == 0 else float(x) for i, x in enumerate(incomes)],
            "way": generator.choice(["car", "train", "walk"], rows, p=[0.6, 0.3, 0.1]),
            "owner": generator.random(rows) < 0.4,
        }
    )


TABLE = table()


def released(data: Any = TABLE, **given: Any) -> snugdp.Description:
    found = snugdp.describe(data, **{"schema": SCHEMA, "epsilon": 4, "noise": Simulation(5), **given}).value
    assert found is not None
    return found


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_it_is_about_right(relation: str, delta: float) -> None:
    found = released(neighbours=relation, delta=delta, steps={"age": 1})
    columns = found.columns.to_dict()
    assert found.rows.value == pytest.approx(5000, abs=40 if relation == "add_remove" else 0)
    assert columns["missing"] == pytest.approx([0, 500, 0, 0], abs=80)
    mean, deviation = TABLE["income"].mean(), TABLE["income"].std()
    assert isinstance(mean, float)
    assert isinstance(deviation, float)
    assert found.mean("income").value == pytest.approx(mean, rel=0.03)
    assert columns["standard_deviation"][1] == pytest.approx(deviation, rel=0.2)
    assert columns["50%"][0] == pytest.approx(TABLE["age"].median(), abs=1)
    assert columns["95%"][1] == pytest.approx(TABLE["income"].quantile(0.95), rel=0.05)
    assert found.mean("owner").value == pytest.approx(0.4, abs=0.05)
    assert list(found.counts("way")) == ["car", "train", "bus"]
    assert found.counts("way")["bus"].value == pytest.approx(0, abs=60)


def test_rows_are_entries_and_missing_ones_in_every_column() -> None:
    for seed in range(5):
        found = released(noise=Simulation(seed), epsilon=0.5)
        pairs = zip(found.columns["count"], found.columns["missing"], strict=True)
        assert all(a + b == pytest.approx(found.rows.value) for a, b in pairs)  # type: ignore[operator]


@pytest.mark.slow
@repeated
def test_errors_are_kept_in_19_of_20_cases() -> None:
    """Of 4 columns with 2 counts and the rows: far from the bounds that counts have."""
    data, runs = TABLE.with_columns(income=pl.col("income").fill_null(0).replace(0, None)), often(20, 60)
    off = []
    for seed in range(runs):
        found = released(data, noise=Simulation(seed), epsilon=2)
        off.append(abs(found.rows.value - 5000) > found.rows.error)
        off.append(abs(found.count("income").value - 4500) > found.count("income").error)
    assert sum(off) <= 2 * runs * 0.05 + 4 * math.sqrt(2 * runs * 0.05)


def test_counts_agree_by_least_squares() -> None:
    """Against the normal equations: unknown rows and entries of each column, observed with their variances."""
    given = [NoisyEntries(90, 2, 20, 1), NoisyEntries(70, 5, 40, 3), NoisyEntries(100, 1, 3, 1)]
    design, seen, weights = [], [], []
    for place, one in enumerate(given):
        unit = [float(place == each) for each in range(3)]
        design += [[0.0, *unit], [1.0, *(-each for each in unit)]]
        seen += [one.entries, one.missing]
        weights += [1 / one.variance, 1 / one.missing_variance]
    A, W = np.array(design), np.diag(weights)
    covariance = np.linalg.inv(A.T @ W @ A)
    solved = covariance @ A.T @ W @ np.array(seen)
    rows, split = balanced(given, 2.0)
    assert [rows.value, *(entries.value for entries, _ in split)] == pytest.approx(solved)
    assert [rows.error, *(entries.error for entries, _ in split)] == pytest.approx(2 * np.sqrt(np.diag(covariance)))
    missing = np.array([[1.0, *(-float(place == each) for each in range(3))] for place in range(3)])
    errors = 2 * np.sqrt(np.diag(missing @ covariance @ missing.T))
    assert [one.error for _, one in split] == pytest.approx(errors)


def test_the_plan_costs_the_budget_and_says_how_it_is_divided() -> None:
    for relation in ("add_remove", "replace"):
        for delta in (0, 1e-6):
            query = Describe(schema=SCHEMA, epsilon=1, delta=delta, neighbours=relation)
            assert query.plan().cost.fits(Budget(1, delta, relation))
            assert not query.plan().cost.fits(Budget("0.999", delta, relation))
            assert "weights, 10 in all" in str(query.plan())
    steps = Describe(schema=SCHEMA, epsilon=1).plan().steps
    assert [step.cost.epsilon for step in steps] == [Fraction(part, 10) for part in (2, 2, 2, 2, 1, 1)]


def test_many_columns_are_paid_in_squares() -> None:
    few = Describe(schema=Schema({"x": Number(0, 1)}), epsilon=1, delta=1e-6, quantiles=[0.5])
    many = Describe(schema=Schema({f"x{i}": Number(0, 1) for i in range(40)}), epsilon=1, delta=1e-6)
    assert few.plan().cost.mu_squared == 0
    assert many.plan().cost.epsilon == 0


@pytest.mark.parametrize("asked", [(), ("mean",), ("quantiles",), ("standard_deviation",), STATISTICS[::2]])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_less_may_be_asked_for(asked: tuple[str, ...], relation: str) -> None:
    query = Describe(schema=SCHEMA, epsilon=1, statistics=asked, neighbours=relation, columns=["way", "age"])
    found = query.release(TABLE, noise=Simulation(1)).value
    assert found is not None
    assert found.columns["column"] == ("way", "age")
    assert (found.columns["standard_deviation"][1] is None) == ("standard_deviation" not in asked)
    assert found.quantiles == (("5%", "25%", "50%", "75%", "95%") if "quantiles" in asked else ())
    assert "age" in str(found)
    assert "age" in str(query.plan())


def test_all_ways_into_a_table_give_the_same(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    TABLE.write_csv(tmp_path / "t.csv")
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    want = released().columns.to_dict()
    for data in (TABLE.to_pandas(), TABLE.to_arrow(), tmp_path / "t.parquet", str(tmp_path / "t.csv")):
        assert released(data, schema=tmp_path / "s.toml").columns.to_dict() == want
    assert type(released(TABLE.to_pandas()).frame).__module__.startswith("pandas")
    assert type(released(TABLE.to_arrow()).frame).__module__.startswith("pyarrow")
    assert released().frame.columns == list(released().columns.names)


def test_states_travel_between_processes() -> None:
    work = Describe(schema=SCHEMA, epsilon=1)._pass
    parts = [
        work.fold(work.empty(), nw.from_native(TABLE[cut], eager_only=True)) for cut in (slice(700), slice(700, None))
    ]
    whole = work.fold(work.empty(), nw.from_native(TABLE, eager_only=True))
    packed = work.pack(work.merge(*(work.unpack(work.pack(part)) for part in parts)))
    assert packed == work.pack(whole)
    with pytest.raises(ValueError, match="these bytes are not"):
        work.unpack(packed + packed)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_no_row_and_one_row_are_ordinary_answers(rows: int, relation: str, delta: float) -> None:
    found = released(TABLE.head(rows), neighbours=relation, delta=delta, epsilon=0.1)
    assert len(found.columns) == 4
    assert str(found)


def test_a_column_without_any_entry_is_an_ordinary_answer() -> None:
    data = TABLE.with_columns(age=pl.lit(None, pl.Int64), way=pl.lit(None, pl.String), owner=pl.lit(None, pl.Boolean))
    found = released(data)
    assert found.columns["missing"] == pytest.approx((5000, 500, 5000, 5000), abs=60)
    assert all(isinstance(value, float) for value in found.columns["mean"][:2])


def test_a_key_binds_the_question(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    snugdp.Ledger.open(path, dataset="t", budget=Budget(10, 1e-5)).close()
    with snugdp.Ledger.open(path) as book:
        asked: dict[str, Any] = {"schema": SCHEMA, "epsilon": 1}
        first = snugdp.describe(TABLE, **asked, ledger=book.once("first")).value
        same = (0.05, 0.25, 0.5, "0.75", 0.95)
        again = snugdp.describe(TABLE, **asked, quantiles=same, ledger=book.once("first")).value
        assert first is not None
        assert first == again
        taller = Schema({**SCHEMA.columns, "age": Number(0, 121)})
        others: list[dict[str, Any]] = [
            {"columns": ["age"]}, {"steps": {"age": 1}}, {"quantiles": [0.5]}, {"statistics": ["mean"]},
            {"schema": taller}, {"clip": None}, {"neighbours": "replace"},
        ]  # fmt: skip
        for other in others:
            with pytest.raises((snugdp.KeyConflictError, snugdp.RelationMismatchError)):
                snugdp.describe(TABLE, **{**asked, **other}, ledger=book.once("first"))


def test_a_budget_that_does_not_suffice_is_not_touched() -> None:
    ledger = MemoryLedger("0.5", 0, composition="tight")
    with pytest.raises(snugdp.BudgetExceededError):
        snugdp.describe(TABLE, schema=SCHEMA, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"bounds": 3}, "bounds must map"),
    ({"columns": ["agee"]}, 'no column "agee"'),
    ({"columns": []}, "leave it out for all"),
    ({"columns": ["age", "age"]}, "none twice"),
    ({"statistics": ["median"]}, "not 'median'"),
    ({"quantiles": [0]}, "minimum or its maximum"),
    ({"steps": {"way": 1}}, "columns of numbers"),
    ({"steps": {"height": 1}}, "not among the columns"),
    ({"steps": {"age": 0}}, "greater than 0"),
    ({"schema": Schema({"year": Number(10**12, 10**12 + 1)})}, 'column "year"'),
    ({"clip": "hard"}, "clip must be"),
    ({"rows": 0}, "rows must be"),
    ({"epsilon": 0}, "epsilon"),
]


@pytest.mark.parametrize(("given", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_mistakes_are_said_before_a_row_is_read(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        Describe(**{"schema": SCHEMA, "epsilon": 1, **given})


def test_a_table_without_a_column_of_the_schema_is_not_charged() -> None:
    ledger = MemoryLedger(10, 0, composition="tight")
    for data in (TABLE.drop("age"), TABLE.with_columns(age=pl.lit(None, pl.List(pl.Int64)))):
        with pytest.raises((ValueError, TypeError), match='"age"'):
            snugdp.describe(data, schema=SCHEMA, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_what_was_not_released_cannot_be_asked_for() -> None:
    found = released()
    for ask in (lambda: found.mean("way"), lambda: found.mean("nobody"), lambda: found.counts("nobody")):
        with pytest.raises(KeyError):
            ask()
    assert found.counts("age") == {}


def test_texts_fit_their_width() -> None:
    numbers, values = released().texts()
    parts = list(numbers.within(60))
    assert len(parts) > 1
    assert all(len(line) <= 60 for part in parts for line in str(part).splitlines())
    assert [head for part in parts for head in part.heads[1:]] == list(numbers.heads[1:])
    assert values.lines[0][0] == "way"
    assert json.dumps(released().columns.to_dict())
    assert isinstance(released().rows, Estimate)


def test_the_pass_travels() -> None:
    work = Describe(schema=SCHEMA, epsilon=1)._pass
    assert pickle.loads(pickle.dumps(work)) == work


def test_a_database_is_a_table(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "people.db")) as connection:
        connection.register("held", TABLE.to_arrow())
        connection.execute("create table people as select * from held")
    found = released(DuckDB(str(tmp_path / "people.db"), "select * from people"))
    assert found.columns.to_dict() == released().columns.to_dict()


def test_what_a_column_holds_is_declared_or_costs_a_delta() -> None:
    schema = Schema({"age": Number(0, 120), "city": Undeclared()})
    with pytest.raises(ValueError, match="what columns hold"):
        Describe(schema=schema, epsilon=1)
    assert Describe(schema=schema, columns=["age"], epsilon=1).described.columns.keys() == {"age"}
