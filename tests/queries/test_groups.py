"""Statistics by group: right numbers, honest errors, and bad input that is refused before anything is charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import snugdp
from snugdp import Boolean, Category, Number, Schema, Simulation, StatisticsTable
from snugdp.serial.codec import StoredOutcome, dumps, loads
from tests.effort import often, repeated, sampled

rng = np.random.default_rng(3)
N = 6000
TABLE = pl.DataFrame(
    {
        "city": [f"c{min(int(i), 60)}" for i in rng.zipf(1.4, N)],
        "year": rng.integers(2000, 2004, N),
        "income": rng.normal(40_000, 15_000, N),
        "smoker": rng.random(N) < 0.3,
    }
)
BOUNDS = {"income": (0, 100_000)}
LOTS: Any = {"epsilon": 1e6, "delta": 1e-6}  # so much that hardly any noise is left


def true(column: str, of: pl.Expr, by: str = "city") -> dict[Any, float]:
    found = TABLE.group_by(by).agg(of.alias("found"))
    return dict(zip(found[by].to_list(), found["found"].to_list(), strict=True))


def by_key(table: StatisticsTable, column: str) -> dict[Any, Any]:
    return dict(zip(table.columns[0], table[column], strict=True))


def test_with_a_large_budget_all_is_exact() -> None:
    asked = {"income": ["mean", "sum", "variance", "standard_deviation", "count"], "smoker": "proportion"}
    found = snugdp.group_by(TABLE, "city", statistics=asked, bounds=BOUNDS, **LOTS, noise=Simulation(8)).value
    assert found is not None
    income = pl.col("income").clip(0, 100_000)
    for column, of in {
        "count": pl.len(),
        "income_count": pl.len(),
        "income_mean": income.mean(),
        "income_sum": income.sum(),
        "income_variance": income.var(ddof=0),
        "income_standard_deviation": income.std(ddof=0),
        "smoker_proportion": pl.col("smoker").mean(),
    }.items():
        expected = true("city", of)
        shown = by_key(found, column)
        assert set(shown) >= {key for key, rows in true("city", pl.len()).items() if rows > 2}
        errors = by_key(found, f"{column}_error")
        assert all(
            value == pytest.approx(expected[key], rel=1e-6, abs=5 * errors[key] + 0.01) for key, value in shown.items()
        ), column


def test_keys_come_in_order_and_rare_ones_do_not() -> None:
    found = snugdp.group_by(TABLE, "city", epsilon=1, delta=1e-6).value
    assert found is not None
    rows = true("city", pl.len())
    assert list(found["city"]) == sorted(map(str, found["city"]))
    assert {key for key, n in rows.items() if n > 40} <= set(found["city"]) <= set(rows)
    years = snugdp.group_by(TABLE.sample(fraction=1, shuffle=True, seed=2), "year", epsilon=1, delta=1e-6).value
    assert years is not None
    assert years["year"] == (2000, 2001, 2002, 2003)


@pytest.mark.slow
@sampled(2)
@repeated
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_errors_hold_in_19_of_20_cases(relation: str) -> None:
    query = snugdp.GroupBy(
        by="year",
        statistics={"income": ["mean", "sum", "standard_deviation"], "smoker": "proportion"},
        bounds=BOUNDS,
        epsilon=1,
        delta=1e-6,
        neighbours=relation,
    )
    income = pl.col("income").clip(0, 100_000)
    truths = {
        "count": true("", pl.len(), "year"),
        "income_mean": true("", income.mean(), "year"),
        "income_sum": true("", income.sum(), "year"),
        "income_standard_deviation": true("", income.std(ddof=0), "year"),
        "smoker_proportion": true("", pl.col("smoker").mean(), "year"),
    }
    inside = dict.fromkeys(truths, 0)
    runs = often(30, 100)
    for seed in range(runs):
        found = query.release(TABLE, noise=Simulation(seed)).value
        assert found is not None
        for name, expected in truths.items():
            errors = by_key(found, f"{name}_error")
            inside[name] += sum(abs(value - expected[key]) <= errors[key] for key, value in by_key(found, name).items())
    assert all(0.9 * 4 * runs < held <= 4 * runs for held in inside.values()), inside
    forecast = {note.params["statistic"] for note in query.plan().forecast.notes if note.code == "group-statistic"}
    assert forecast == set(truths) - {"count"}


def test_listed_keys_are_complete() -> None:
    listed: dict[str, list[Any]] = {"year": [2003, 2001, 1999], "smoker": [True, False]}
    found = snugdp.group_by(TABLE, ["year", "smoker"], keys=listed, epsilon=50).value
    assert found is not None
    keys = list(zip(found["year"], found["smoker"], strict=True))
    assert keys == [(year, smoker) for year in listed["year"] for smoker in listed["smoker"]]
    counts: dict[Any, Any] = dict(zip(keys, found["count"], strict=True))
    assert abs(counts[1999, True]) < 3
    assert counts[2003, True] == pytest.approx(TABLE.filter((pl.col("year") == 2003) & pl.col("smoker")).height, abs=3)


def test_a_schema_lists_keys_and_has_bounds() -> None:
    schema = Schema({"year": Category([2000, 2001]), "income": Number(0, 100_000), "smoker": Boolean()})
    asked = {"income": "mean", "smoker": ["proportion", "count"]}
    found = snugdp.group_by(TABLE, "year", statistics=asked, schema=schema, other=True, epsilon=1000).value
    assert found is not None
    assert found["year"] == (2000, 2001, "(other)")
    assert sum(found["count"]) == pytest.approx(N, abs=2)  # type: ignore[arg-type]
    by_smoker = snugdp.group_by(TABLE, "smoker", schema=schema, epsilon=1000).value
    assert by_smoker is not None
    assert by_smoker["smoker"] == (False, True)


def test_some_keys_listed_and_others_not() -> None:
    found = snugdp.group_by(TABLE, ["year", "city"], keys={"year": [2000]}, epsilon=4, delta=1e-6).value
    assert found is not None
    assert set(found["year"]) == {2000}
    assert "c1" in found["city"]


def test_missing_cells_are_ignored_and_missing_keys_dropped_or_kept() -> None:
    table = pl.DataFrame({"k": ["a"] * 300 + [None] * 300, "x": [2.0, None, float("nan")] * 200})
    asked: Any = {"statistics": {"x": ["mean", "count"]}, "bounds": {"x": (0, 10)}}
    found = snugdp.group_by(table, "k", **asked, **LOTS).value
    assert found is not None
    assert found["k"] == ("a",)
    assert found["x_mean"][0] == pytest.approx(2, abs=1e-3)
    assert found["x_count"][0] == pytest.approx(100, abs=0.1)
    kept = snugdp.group_by(table, "k", missing=True, **LOTS).value
    assert kept is not None
    assert kept["k"] == ("a", None)
    listed = snugdp.group_by(table, "k", keys=["a", "b"], missing=True, epsilon=1000).value
    assert listed is not None
    assert listed["k"] == ("a", "b", None)
    assert listed["count"][2] == pytest.approx(300, abs=1)


@pytest.mark.parametrize("keys", [2, 8])
def test_several_keys_a_row(keys: int) -> None:
    lists = [[f"k{j}" for j in range(8)], ["k1", "k1", "k0"], []] * 400
    table = pl.DataFrame({"tags": lists, "x": [1.0] * 1200})
    found = snugdp.group_by(
        table, "tags", statistics={"x": "sum"}, bounds={"x": (0, 2)}, max_keys=keys, epsilon=50, delta=1e-3
    ).value
    assert found is not None
    assert found["tags"] == tuple(f"k{j}" for j in range(keys))
    expected = [800, 800, *[400] * (keys - 2)]
    assert list(found["count"]) == pytest.approx(expected, abs=12)
    assert list(found["x_sum"]) == pytest.approx(expected, abs=12)


@pytest.mark.parametrize("data", [TABLE, TABLE.to_pandas(), TABLE.to_arrow()], ids=["polars", "pandas", "pyarrow"])
def test_a_frame_of_the_library_that_came_in(data: Any) -> None:
    found = snugdp.group_by(data, "year", statistics={"smoker": "proportion"}, epsilon=1, delta=1e-6).value
    assert found is not None
    assert type(found.frame) is type(data)
    assert isinstance(found.to_pandas(), pd.DataFrame)
    assert isinstance(found.to_arrow(), pa.Table)
    assert found.to_polars().columns == list(found.names)
    assert found.to_polars()["year"].to_list() == [2000, 2001, 2002, 2003]


def test_medians_and_quantiles_by_group() -> None:
    asked = {"income": ["median", "mean", "quantile_0.9"]}
    found = snugdp.group_by(TABLE, "year", statistics=asked, bounds=BOUNDS, **LOTS).value
    assert found is not None
    assert found.names[3:] == ("income_mean", "income_mean_error", "income_median", "income_quantile_0.9")
    for name, q in (("income_median", 0.5), ("income_quantile_0.9", 0.9)):
        low, high = (true("", pl.col("income").quantile(q, side), "year") for side in ("lower", "higher"))
        assert all(low[key] - 0.01 <= value <= high[key] + 0.01 for key, value in by_key(found, name).items())
    query = snugdp.GroupBy(by="city", statistics={"income": "median"}, bounds=BOUNDS, epsilon=2, delta=1e-6)
    assert "income_median is off by less than" in str(query.plan())
    shown = query.release(TABLE).value
    assert shown is not None
    assert abs(by_key(shown, "income_median")["c1"] - 40_000) < 3000
    nobody = snugdp.group_by(TABLE, "year", keys=[1999], statistics=asked, bounds=BOUNDS, epsilon=1).value
    assert nobody is not None
    assert 0 <= float(str(nobody["income_median"][0])) <= 100_000


def test_medians_of_lists_and_missing_keys() -> None:
    table = pl.DataFrame({"k": [["a", "b"], ["a"], None] * 200, "x": [1.0, 3.0, None] * 200})
    given: Any = {"statistics": {"x": "median"}, "bounds": {"x": (0, 10)}, "epsilon": 500, "delta": 1e-3}
    found = snugdp.group_by(table, "k", max_keys=2, missing=True, **given).value
    assert found is not None
    assert found["k"] == ("a", "b", None)
    assert 1 <= float(str(found["x_median"][0])) <= 3
    assert found["x_median"][1] == pytest.approx(1, abs=0.01)


def test_files_give_what_frames_give(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    TABLE.write_csv(tmp_path / "t.csv")
    asked: Any = {"statistics": {"income": "mean"}, "bounds": BOUNDS, "epsilon": 1, "delta": 1e-6}
    found = [
        snugdp.group_by(source, "city", **asked, noise=Simulation(4)).value
        for source in (TABLE, tmp_path / "t.parquet", str(tmp_path / "t.csv"))
    ]
    assert found[0] == found[1] == found[2]


def test_a_table_is_stored_and_read_back() -> None:
    found = snugdp.group_by(TABLE, "city", epsilon=1, delta=1e-6).value
    text = dumps(StoredOutcome(False, found))
    assert text is not None
    assert loads(text).value == found


def test_a_key_of_a_ledger_gives_the_same_table_again(tmp_path: Path) -> None:
    with snugdp.Ledger.open(tmp_path / "ledger", dataset="people", budget=snugdp.Budget(2, 1e-5)) as ledger:
        first = snugdp.group_by(TABLE, "city", epsilon=1, delta=1e-6, ledger=ledger.once("cities")).value
        again = snugdp.group_by(TABLE, ["city"], epsilon=1, delta=1e-6, ledger=ledger.once("cities")).value
        assert first == again
        with pytest.raises(snugdp.KeyConflictError):
            snugdp.group_by(TABLE, "year", epsilon=1, delta=1e-6, ledger=ledger.once("cities"))


def test_text_and_numbers_in_one_column() -> None:
    table = pd.DataFrame({"k": pd.Series([1, "a", "1", 1.0] * 200, dtype=object)})
    found = snugdp.group_by(table, "k", **LOTS).value
    assert found is not None
    assert found["k"] == (1, "a")
    assert found.to_polars()["k"].to_list() == ["1", "a"]
    assert list(found["count"]) == pytest.approx([600, 200], abs=1)


def test_nothing_to_show_is_an_ordinary_answer() -> None:
    asked: Any = {"statistics": {"x": ["mean", "variance"]}, "bounds": {"x": (0, 1)}, "epsilon": 1, "delta": 1e-6}
    for keys, values in (
        ([], []),
        (["a"], [0.5]),
        ([None] * 500, [0.5] * 500),
        ([f"user {i}" for i in range(2000)], [0.5] * 2000),
    ):
        table = pl.DataFrame({"k": pl.Series(keys, dtype=pl.String), "x": pl.Series(values, dtype=pl.Float64)})
        found = snugdp.group_by(table, "k", **asked, noise=Simulation(1)).value
        assert found is not None
        assert len(found) == 0
        assert found.names == ("k", "count", "count_error", "x_mean", "x_mean_error", "x_variance", "x_variance_error")
        assert found.frame.shape == (0, 7)
    nobody = pl.DataFrame({"k": ["a"] * 500, "x": pl.Series([None] * 500, dtype=pl.Float64)})
    found = snugdp.group_by(nobody, "k", **asked).value
    assert found is not None
    assert found["x_mean_error"] == (1.0,)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"by": "town"}, ValueError, 'no column "town"; it has "city"'),
    ({"by": "income"}, TypeError, "must hold text, whole numbers or booleans, not Float64"),
    ({"by": []}, ValueError, "by must name a key column"),
    ({"by": ["city", "city"]}, ValueError, "none twice"),
    ({"delta": 0}, ValueError, "delta > 0"),
    ({"statistics": {"income": "mean"}, "bounds": {"income": (5, 1)}}, ValueError, 'bounds of "income".*less than'),
    ({"statistics": {"income": "mean"}, "bounds": {"income": 5}}, ValueError, "pair"),
    ({"statistics": {"income": "meen"}, "bounds": BOUNDS}, ValueError, "must be some of count, sum, mean"),
    ({"statistics": {"income": []}, "bounds": BOUNDS}, ValueError, "must be some of"),
    ({"statistics": {"income": "quantile_1.5"}, "bounds": BOUNDS}, ValueError, "must be some of"),
    ({"statistics": {"income": "quantile_0.0"}, "bounds": BOUNDS}, ValueError, "must be some of"),
    ({"statistics": {"smoker": "median"}, "schema": Schema({"smoker": Boolean()})}, ValueError, "proportion"),
    ({"statistics": "income"}, TypeError, "must map columns"),
    ({"statistics": {"salary": "mean"}, "bounds": {"salary": (0, 1)}}, ValueError, 'no column "salary"'),
    ({"keys": ["a", "a"]}, ValueError, "same label"),
    ({"keys": []}, ValueError, "keys is empty"),
    ({"keys": {"year": [1]}}, ValueError, "not among the key columns"),
    ({"by": ["city", "year"], "keys": ["a"]}, ValueError, "by name"),
    ({"by": ["city", "year"], "keys": {"city": range(2000), "year": range(2000)}}, ValueError, "more than 1,000,000"),
    ({"other": True}, ValueError, "listed keys"),
    ({"max_keys": 2}, TypeError, "max_keys is for a column whose cells are lists"),
    ({"max_keys": 0}, ValueError, "max_keys"),
    ({"by": ["city", "year"], "max_keys": 2}, ValueError, "one key column"),
    ({"key_share": 1}, ValueError, "key_share"),
    ({"epsilon": -1}, ValueError, "epsilon"),
    ({"neighbours": "both"}, ValueError, "neighbours"),
    (
        {"by": "smoker", "statistics": {"city": "mean"}, "schema": Schema({"city": Category(["a"])})},
        ValueError,
        "category",
    ),
]


@pytest.mark.parametrize(("given", "kind", "words"), BAD, ids=lambda each: str(each)[:40])
def test_bad_input_is_refused_before_anything_is_charged(
    given: dict[str, Any], kind: type[Exception], words: str
) -> None:
    ledger = snugdp.MemoryLedger(5, 1e-3, composition="tight")
    with pytest.raises(kind, match=words):
        snugdp.group_by(TABLE, **{"by": "city", "epsilon": 1, "delta": 1e-6, "ledger": ledger, **given})
    assert ledger.spent == snugdp.MemoryLedger(5, 1e-3, composition="tight").spent


def test_columns_that_hold_no_numbers_and_names_that_clash() -> None:
    table = pl.DataFrame({"k": ["a"], "d": [b"x"], "count": ["b"]})
    with pytest.raises(TypeError, match='"d" must hold numbers, not Binary'):
        snugdp.group_by(table, "k", statistics={"d": "mean"}, bounds={"d": (0, 1)}, epsilon=1, delta=1e-6)
    with pytest.raises(ValueError, match='would be called "count"'):
        snugdp.GroupBy(by="count", epsilon=1, delta=1e-6)


def test_no_budget_left() -> None:
    ledger = snugdp.MemoryLedger(1, 1e-6, composition="tight")
    snugdp.group_by(TABLE, "city", epsilon=1, delta=1e-6, ledger=ledger)
    with pytest.raises(snugdp.BudgetExceededError):
        snugdp.group_by(TABLE, "city", epsilon=1, delta=1e-6, ledger=ledger)


def test_the_plan_says_what_to_expect() -> None:
    query = snugdp.GroupBy(by="city", statistics={"income": ["mean"]}, bounds=BOUNDS, epsilon=1, delta=1e-6)
    text = str(query.plan())
    assert "a key is shown in 19 of 20 cases if 30 rows have it" in text
    assert "income_mean of a group of 1000 rows is off by less than" in text
    assert "key_share = 0.5" in text
    assert query.plan().theorem.id == "group-by/1"
    listed = str(snugdp.GroupBy(by="city", keys=["a", "b"], epsilon=1).plan())
    assert "all 2 listed groups, also empty ones" in listed
    assert "epsilon 1, neighbours: add_remove" in listed


def test_a_table_for_people() -> None:
    table = StatisticsTable(("k", "n"), (("a", None), (1.5, 12345.678)))
    assert repr(table) == "k            n\na          1.5\nNone  12,345.7"
    assert repr(StatisticsTable(("n",), (tuple(range(20)),))).splitlines()[-1] == "... 8 more rows"
    with pytest.raises(KeyError, match="there are k, n"):
        table["m"]
    with pytest.raises(ValueError, match="one length"):
        StatisticsTable(("k", "n"), ((1,), (1, 2)))
