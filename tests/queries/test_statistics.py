"""Statistics: close to those without noise, within their budgets, in every container; nothing and few rows too."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import snugdp
from snugdp import Cost, Estimate, HistogramCounts, MemoryLedger, Simulation
from tests.effort import sampled

S: Any = snugdp  # its functions, without what they say of their arguments
N = 6000
RNG = np.random.default_rng(8)
AGE = RNG.normal(45, 12, N).clip(0, 100)
PAY = AGE * 700 + RNG.gamma(2, 9000, N)
TABLE = pl.DataFrame(
    {
        "age": AGE,
        "pay": PAY,
        "city": RNG.choice(["Rome", "Oslo", "Bern", ""], N).tolist(),
        "own": [(True, False, None)[i] for i in RNG.integers(0, 3, N)],
    }
)
PAIR = {"columns": ("age", "pay"), "bounds": ((0, 120), (0, 200_000))}
RELATIONS = ("add_remove", "replace")
CITIES = TABLE["city"].to_list()
OWN = [one for one in TABLE["own"].to_list() if one is not None]
KNOWN = [city for city in CITIES if city]

QUERIES: dict[str, tuple[Callable[..., Any], dict[str, Any], float]] = {
    "count of a column": (S.Count, {"column": "city"}, len(KNOWN)),
    "sum": (S.Sum, {"column": "age", "bounds": (0, 120)}, float(AGE.sum())),
    "sum, not clipped": (S.Sum, {"column": "age", "bounds": (0, 120), "clip": None}, float(AGE.sum())),
    "mean": (S.Mean, {"column": "pay", "bounds": (0, 10**7)}, float(PAY.mean())),
    "mean, always clipped": (
        S.Mean,
        {"column": "pay", "bounds": (-(10**7), 10**7), "clip": "private"},
        float(PAY.mean()),
    ),
    "mean, not clipped": (S.Mean, {"column": "age", "bounds": (0, 120), "clip": None}, float(AGE.mean())),
    "variance": (S.Variance, {"column": "age", "bounds": (0, 120)}, float(AGE.var())),
    "variance, rows": (S.Variance, {"column": "age", "bounds": (0, 120), "rows": N}, float(AGE.var())),
    "deviation": (S.StandardDeviation, {"column": "age", "bounds": (0, 1200)}, float(AGE.std())),
    "covariance": (S.Covariance, PAIR, float(np.cov(AGE, PAY, ddof=0)[0, 1])),
    "correlation": (S.Correlation, PAIR, float(np.corrcoef(AGE, PAY)[0, 1])),
    "proportion": (S.Proportion, {"column": "own"}, sum(OWN) / len(OWN)),
    "proportion of values": (
        S.Proportion,
        {"column": "city", "values": ["Rome", "Bern"]},
        sum(city != "Oslo" for city in KNOWN) / len(KNOWN),
    ),
}


@sampled(15)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_close_and_intervals_honest(name: str, delta: float, relation: str) -> None:
    make, given, truth = QUERIES[name]
    query = make(**given, epsilon=2, delta=delta, neighbours=relation)
    found = [query.release(TABLE, noise=Simulation(seed)).value for seed in range(12)]
    assert all(isinstance(one, Estimate) for one in found)
    errors = np.array([abs(float(one) - truth) for one in found])
    widths = np.array([one.error for one in found])
    assert np.median(errors / widths) < 1.1, "the interval is for the noise alone, and clips are few"
    assert np.median(errors) < max(0.1 * abs(truth), 0.02)
    assert all(one.lower <= one.value <= one.upper for one in found)


@sampled(5)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0, 1e-6, 0.2])
@pytest.mark.parametrize("name", QUERIES)
def test_plans_spend_the_budget_and_not_more(name: str, delta: float, relation: str) -> None:
    make, given, _ = QUERIES[name]
    query = make(**given, epsilon="0.7", delta=delta, neighbours=relation)
    budget = snugdp.Budget("0.7", delta, relation)
    plan = query.plan()
    assert plan.cost.fits(budget)
    assert not plan.cost.fits(snugdp.Budget("0.68", delta, relation))
    assert str(plan)
    ledger = MemoryLedger(1, 0.3, relation, composition="tight")
    outcome = query.release(TABLE, ledger=ledger)
    assert outcome.cost == plan.cost == ledger.spent


@pytest.mark.parametrize("relation", RELATIONS)
def test_histograms(relation: str) -> None:
    edges = [0, 18, 40.5, 65, 90]
    given: dict[str, Any] = {"epsilon": 3, "neighbours": relation}
    found = S.histogram(TABLE, column="age", edges=edges, **given, noise=Simulation(1)).value
    assert isinstance(found, HistogramCounts)
    assert found.above is not None
    want = np.histogram(AGE, edges)[0]
    assert np.abs(np.array(found.counts) - want).max() < 12
    assert found.cells[0] == (0.0, 18.0)
    assert abs(found.above - int((AGE > 90).sum())) < 12
    bins = S.histogram(TABLE, column="age", bins=4, bounds=(0, 100), **given, noise=Simulation(1)).value
    assert np.abs(np.array(bins.counts) - np.histogram(AGE, 4, (0, 100))[0]).max() < 12
    cities = S.histogram(TABLE, column="city", values=["Oslo", "Rome"], **given, noise=Simulation(2)).value
    assert abs(cities["Rome"].value - CITIES.count("Rome")) < 12
    assert abs(cities.other - CITIES.count("Bern")) < 12
    assert abs(cities.missing - CITIES.count("")) < 12
    assert sum(cities.shares().values()) == pytest.approx(1)


def test_a_category_of_a_schema_lists_the_values() -> None:
    for function in (S.histogram, S.proportion):
        first, second = (
            function(TABLE, column="city", values=values, epsilon=1, noise=Simulation(1)).value
            for values in (["Oslo", "Rome"], S.Category(["Oslo", "Rome"]))
        )
        assert first == second


@pytest.mark.slow
def test_many_cells_take_no_time_and_gaussian_noise_is_never_worse() -> None:
    query = S.Histogram(bins=50_000, bounds=(0, 1), epsilon=1, delta=1e-6)
    found = query.release(np.linspace(0, 1, 1000), noise=Simulation(1)).value
    assert len(found.counts) == 50_000


@pytest.mark.parametrize(
    "name", ["mean", "sum", "variance", "correlation", "proportion of values", "count of a column"]
)
def test_every_container_gives_the_same(name: str, tmp_path: Path) -> None:
    make, given, _ = QUERIES[name]
    query = make(**given, epsilon=1)
    want = query.release(TABLE, noise=Simulation(5)).value
    TABLE.write_parquet(tmp_path / "t.parquet")
    TABLE.write_csv(tmp_path / "t.csv")
    for data in (TABLE.to_pandas(), TABLE.to_arrow(), TABLE.lazy(), str(tmp_path / "t.parquet"), tmp_path / "t.csv"):
        assert query.release(data, noise=Simulation(5)).value == want


def test_a_column_by_itself_is_read_as_in_a_table() -> None:
    for name in ("mean", "sum", "deviation", "proportion of values"):
        make, given, _ = QUERIES[name]
        column = given["column"]
        alone = {key: value for key, value in given.items() if key != "column"}
        want = make(**given, epsilon=1).release(TABLE, noise=Simulation(3)).value
        for data in (TABLE[column], TABLE[column].to_list(), TABLE[column].to_pandas(), TABLE[column].to_arrow()):
            assert make(**alone, epsilon=1).release(data, noise=Simulation(3)).value == want
    want = S.Correlation(**PAIR, epsilon=1).release(TABLE, noise=Simulation(3)).value
    query = S.Correlation(bounds=PAIR["bounds"], epsilon=1)
    assert query.release((AGE, PAY.tolist()), noise=Simulation(3)).value == want


@pytest.mark.parametrize(
    "data",
    [
        [0] * 40,
        np.zeros(40),
        range(40),
        pd.Series([None] * 40),
        pl.Series([1] * 40),
        TABLE[:40],
        TABLE[:40].to_pandas(),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_are_counted_whatever_they_are_in(data: Any) -> None:
    assert S.count(data, epsilon=1000).value.value == 40


def test_the_number_of_rows_is_public_where_rows_are_replaced() -> None:
    with pytest.raises(ValueError, match="public when neighbours replace"):
        S.Count(epsilon=1, neighbours="replace")


NOTHING: list[Any] = [[], [None], ["?"] * 50, [math.nan] * 3, [7.0]]


@sampled(6)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", NOTHING, ids=str)
def test_no_rows_one_row_and_missing_rows_have_ordinary_answers(rows: list[Any], relation: str) -> None:
    given: dict[str, Any] = {"epsilon": 1, "neighbours": relation}
    for make in (S.Mean, S.Variance, S.StandardDeviation):
        for clip in ("auto", "private", None):
            for seed in range(5):
                found = make(bounds=(-10, 10), clip=clip, **given).release(rows, noise=Simulation(seed)).value
                assert -10 <= found.value <= 100
                assert math.isfinite(found.error)
    pair = S.Correlation(bounds=((-10, 10), (0, 10)), **given)
    assert -1 <= pair.release((rows, rows), noise=Simulation(1)).value.value <= 1
    assert math.isfinite(S.Sum(bounds=(0, 10), **given).release(rows, noise=Simulation(1)).value.value)
    share = S.Proportion(values=[7, 8], **given).release(rows, noise=Simulation(1)).value
    assert 0 <= share.value <= 1
    assert len(S.Histogram(edges=[0, 1], **given).release(rows, noise=Simulation(1)).value.counts) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda given: S.mean(TABLE, column="nope", bounds=(0, 1), **given), ValueError, 'no column "nope"'),
        (
            lambda given: S.mean(TABLE, column="city", bounds=(5, 1), **given),
            ValueError,
            "lower bound must be less",
        ),
        (lambda given: S.mean(TABLE, column="age", bounds="public", **given), ValueError, "bounds must be a pair"),
        (lambda given: S.mean(TABLE, bounds=(0, 1), **given), TypeError, "cannot read a column"),
        (lambda given: S.mean(TABLE, column=3, bounds=(0, 1), **given), TypeError, "name of a column"),
        (lambda given: S.mean([1], bounds=(0, 1), clip="never", **given), ValueError, "clip must be"),
        (lambda given: S.mean([1], bounds=(0, 1), rows=0, **given), ValueError, "rows must be"),
        (lambda given: S.mean([1], bounds=(0, 1), rows=2.5, **given), ValueError, "rows must be"),
        (lambda given: S.covariance(TABLE, bounds=((0, 1), (0, 1)), **given), TypeError, "pair of columns"),
        (lambda given: S.covariance(([1], [1, 2]), bounds=((0, 1), (0, 1)), **given), ValueError, "same number"),
        (lambda given: S.covariance(TABLE, columns=("age", "pay"), bounds=3, **given), ValueError, "of both columns"),
        (
            lambda given: S.covariance(TABLE, columns=("age", "age"), bounds=((0, 1), (0, 1)), **given),
            ValueError,
            "two different",
        ),
        (lambda given: S.correlation(TABLE, columns="age", **given), TypeError, "two names"),
        (
            lambda given: S.correlation(TABLE, columns=("age", "pay"), bounds=(0, 1), **given),
            ValueError,
            "pair of",
        ),
        (lambda given: S.histogram([1], **given), ValueError, "edges, bins and values"),
        (lambda given: S.histogram([1], edges=[1, 2], bounds=(0, 1), **given), ValueError, "bounds go with bins"),
        (lambda given: S.histogram([1], bins=0, bounds=(0, 1), **given), ValueError, "bins must be"),
        (lambda given: S.histogram([1], edges=[1, 1], **given), ValueError, "ascending"),
        (lambda given: S.histogram([1], edges=[1], **given), ValueError, "ascending"),
        (lambda given: S.histogram([1], edges="12", **given), TypeError, "list of numbers"),
        (lambda given: S.histogram([1], values=[], **given), ValueError, "empty"),
        (lambda given: S.proportion([1], values=["a", "a"], **given), ValueError, "same label"),
        (lambda given: S.proportion([1], values="yes", **given), TypeError, "list of labels"),
        (lambda given: S.variance([1], bounds=(0, 1e200), **given), ValueError, "below 1e150"),
        (lambda given: S.covariance(([1], [1]), bounds=((0, 1), (0, 1e200)), **given), ValueError, "below 1e150"),
        (lambda given: S.mean([1], bounds=(0, 1), **{**given, "epsilon": "1e-300"}), ValueError, "nothing could be"),
        (lambda given: S.mean([1], bounds=(1e15, 1e15 + 1), **given), ValueError, "subtract a public constant"),
    ],
)
def test_what_is_public_is_refused_before_the_charge(
    call: Callable[[dict[str, Any]], Any], error: type[Exception], message: str
) -> None:
    for relation in RELATIONS:
        ledger = MemoryLedger(10, 0, relation, composition="tight")
        with pytest.raises(error, match=message):
            call({"epsilon": 1, "neighbours": relation, "ledger": ledger})
        assert ledger.spent == Cost(neighbours=relation)


def test_an_empty_budget_is_said_before_anything_is_drawn() -> None:
    ledger = MemoryLedger(1, 0, composition="tight")
    S.mean(AGE, bounds=(0, 120), epsilon=1, ledger=ledger)
    with pytest.raises(snugdp.BudgetExceededError):
        S.count(AGE, epsilon="0.1", ledger=ledger)


def test_keys_bind_the_question(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    snugdp.Ledger.open(path, dataset="t", budget=snugdp.Budget(10)).close()
    with snugdp.Ledger.open(path) as book:
        first = S.mean(TABLE, column="age", bounds=(0, 120), epsilon=1, ledger=book.once("a"))
        again = S.mean(TABLE, column="age", bounds=(0.0, "120"), epsilon=1, ledger=book.once("a"))
        assert first.value == again.value
        assert isinstance(again.value, Estimate)
        for changed in ({"column": "pay"}, {"clip": None}, {"bounds": (0, 121)}, {"rows": 9}):
            given: dict[str, Any] = {"column": "age", "bounds": (0, 120), "epsilon": 1, **changed}
            with pytest.raises(snugdp.KeyConflictError):
                S.mean(TABLE, **given, ledger=book.once("a"))
        counts = S.histogram(TABLE, column="city", values=["Rome"], epsilon=1, ledger=book.once("b"))
        stored = S.histogram(TABLE, column="city", values=("Rome",), epsilon=1, ledger=book.once("b"))
        assert counts.value == stored.value


def test_loose_bounds_cost_little_and_forecasts_say_so() -> None:
    def error(upper: float, **given: Any) -> float:
        query = S.Mean(bounds=(0, upper), epsilon=1, **given)
        found = [float(query.release(AGE, noise=Simulation(seed)).value) - AGE.mean() for seed in range(60)]
        return float(np.sqrt(np.mean(np.square(found))))

    tight, loose = error(120), error(12_000)
    assert loose < 3 * tight
    assert loose < error(12_000, clip=None) / 10
    notes = {note.code for note in S.Mean(bounds=(0, 120), epsilon=1).plan().forecast.notes}
    assert notes == {"error-with-rows", "clip-from-rows", "missing-entries"}
    few = S.Mean(bounds=(0, 120), epsilon=1, rows=20).plan().forecast
    assert {note.code for note in few.notes} == {"clip-needs-rows", "missing-entries"}
    assert few.answer_error is not None
