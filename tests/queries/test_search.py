"""Queries without bounds: a good answer, a refusal where there are too few rows, and never nonsense."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import Budget, Category, MemoryLedger, Number, Schema, Simulation
from snugdp.tables.found import Flag, FoundNumber
from snugdp.tables.sources import TableError
from tests.effort import sampled

RNG = np.random.default_rng(7)
N = 4000
COLUMNS: dict[str, Any] = {
    "normal": RNG.normal(50, 10, N),
    "small": RNG.normal(0, 1e-3, N),
    "income": np.exp(RNG.normal(10, 1, N)),
    "years": RNG.integers(1990, 2021, N).astype(float),
    "offset": RNG.normal(1e5, 30, N),
    "tails": RNG.standard_t(3, N),
}
RELATIONS = ("add_remove", "replace")
BUDGETS: list[dict[str, Any]] = [{"epsilon": 1}, {"epsilon": 0.5, "delta": 1e-6}]


def released(outcome: Any) -> Any:
    assert not outcome.refused
    return outcome.value


@sampled(5)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
def test_moments_without_bounds(name: str, budget: dict[str, Any], relation: str) -> None:
    rows = COLUMNS[name]
    given: dict[str, Any] = {**budget, "neighbours": relation}
    spread = np.std(rows)
    mean = snugdp.mean(rows, **given, noise=Simulation(1))
    assert abs(released(mean).value - np.mean(rows)) < 0.15 * spread
    assert isinstance(mean.certificate, FoundNumber)
    assert mean.certificate.flag is not Flag.NOT_FOUND
    total = snugdp.sum(rows, **given, noise=Simulation(2))
    assert abs(released(total).value - np.sum(rows)) < 0.15 * spread * N + 0.03 * abs(np.sum(rows))
    deviation = snugdp.standard_deviation(rows, **given, noise=Simulation(3))
    assert abs(released(deviation).value - spread) < 0.5 * spread


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_ranks_need_no_bounds(name: str, relation: str) -> None:
    rows = COLUMNS[name]
    given: dict[str, Any] = {"epsilon": 1, "neighbours": relation}

    def rank(value: float) -> float:
        return float(np.mean(rows <= value))

    seeds = iter(range(20))
    assert abs(rank(released(snugdp.median(rows, **given, noise=Simulation(next(seeds))))) - 0.5) < 0.04
    assert abs(rank(released(snugdp.quantile(rows, 0.9, **given, noise=Simulation(next(seeds))))) - 0.9) < 0.02
    several = released(snugdp.quantiles(rows, [0.1, 0.25, 0.5, 0.75], **given, noise=Simulation(next(seeds))))
    assert np.abs([rank(one) - q for one, q in zip(several, (0.1, 0.25, 0.5, 0.75), strict=True)]).max() < 0.05
    ends = {**given, "step": int(name == "years")}
    assert rank(released(snugdp.minimum(rows, **ends, noise=Simulation(next(seeds))))) < 0.05
    assert rank(released(snugdp.maximum(rows, **ends, noise=Simulation(next(seeds))))) > 0.95
    distance = released(snugdp.interquartile_range(rows, **given, noise=Simulation(next(seeds))))
    low, high = np.quantile(rows, [0.25, 0.75])
    assert distance == pytest.approx(high - low, rel=0.15)
    plan = snugdp.Median(**given).plan()
    assert plan.cost == snugdp.Median(bounds=(0, 1), **given).plan().cost
    assert "none are needed" in str(plan)


def test_steps_without_bounds() -> None:
    ages = RNG.integers(18, 90, 3000)
    assert released(snugdp.median(ages, step=1, epsilon=1, noise=Simulation(1))) in range(50, 57)
    assert released(snugdp.minimum(ages, step=1, beyond=40, epsilon=1, noise=Simulation(1))) in (18, 19, 20)
    zeros = np.where(RNG.random(500) < 0.6, 0.0, 3.0)
    assert released(snugdp.median(zeros, epsilon=1, noise=Simulation(1))) == 0


@pytest.mark.slow
def test_too_few_rows_are_a_refusal_and_never_nonsense() -> None:
    """A draw beyond the rows is hardly ever shown as an answer."""
    shown = []
    for seed in range(120):
        rows = np.random.default_rng(seed).normal(50, 10, 4 + seed % 20)
        drawn = [snugdp.median(rows, epsilon=0.5, noise=Simulation(seed)).value]
        drawn += snugdp.quantiles(rows, [0.1, 0.5, 0.9], epsilon=0.5, noise=Simulation(seed)).value or []
        drawn.append(snugdp.quantile(rows, 0.95, epsilon=0.5, noise=Simulation(seed)).value)
        shown += [one for one in drawn if one is not None and not 0 < one < 120]
    assert len(shown) <= 10
    for function in (snugdp.mean, snugdp.sum, snugdp.variance, snugdp.trimmed_mean):
        assert function([5.0] * 8, epsilon=1, noise=Simulation(3)).refused
    assert snugdp.histogram([5.0] * 8, bins=3, epsilon=1, noise=Simulation(3)).refused


@pytest.mark.parametrize(("function", "data"), [(snugdp.mean, []), (snugdp.median, []), (snugdp.mean, [None] * 900)])
def test_no_rows(function: Any, data: list[Any]) -> None:
    assert function(data, epsilon=1, noise=Simulation(2)).refused


def test_pairs_without_bounds() -> None:
    first = COLUMNS["normal"]
    second = first + np.random.default_rng(1).normal(0, 10, N)
    for budget in BUDGETS:
        found: Any = snugdp.correlation((first, second), **budget, noise=Simulation(1))
        assert abs(released(found).value - np.corrcoef(first, second)[0, 1]) < 0.15
        assert set(found.certificate) == {"first", "second"}
    one = snugdp.covariance((first, second), bounds=((0, 100), "private"), epsilon=1, noise=Simulation(1))
    assert abs(released(one).value - 100) < 25
    assert isinstance(one.certificate, FoundNumber)
    frame = pl.DataFrame({"a": first, "b": second})
    assert not snugdp.correlation(frame, columns=("a", "b"), epsilon=1, noise=Simulation(1)).refused


def test_histograms_without_bounds() -> None:
    table = released(snugdp.histogram(COLUMNS["normal"], bins=8, epsilon=1, noise=Simulation(1)))
    assert len(table.cells) == 8
    assert sum(table.counts) > 0.95 * N
    assert table.cells[0][0] < 35
    assert 65 < table.cells[-1][1] < 150
    parts = released(snugdp.quantile_table(COLUMNS["income"], bins=4, epsilon=1, noise=Simulation(1)))
    assert max(abs(count - N / 4) for count in parts.counts) < N / 20


def test_tests_without_bounds() -> None:
    rows = np.full(2000, 40.0) + np.arange(2000) % 3
    trimmed = snugdp.trimmed_mean(rows, epsilon=1, noise=Simulation(1))
    assert abs(released(trimmed) - 41) < 1
    tested = snugdp.median(rows, method="test", epsilon=1, delta=1e-6, noise=Simulation(1))
    assert abs(released(tested) - 41) < 3
    given = snugdp.median(rows, beta=1, rows=2000, epsilon=1, delta=1e-6, missing=1e30, noise=Simulation(1))
    assert abs(released(given) - 41) < 10
    for query in (snugdp.Median(method="test", epsilon=1, delta=1e-6), snugdp.TrimmedMean(epsilon=1, rows=2000)):
        assert query.plan().step_ids[:2] == ("grid", "zoom")
        assert query.plan().cost.fits(Budget(1, 1e-6, query.plan().cost.neighbours))


def test_a_public_end_is_kept() -> None:
    rows = RNG.exponential(3, 3000)
    found: Any = snugdp.mean(rows, bounds=(0, None), epsilon=1, noise=Simulation(1))
    assert found.certificate.lower == 0
    assert abs(released(found).value - 3) < 0.3
    assert released(snugdp.minimum(rows, bounds=(0, None), epsilon=1, noise=Simulation(1))) >= 0


def test_what_was_found_is_used_again_at_no_cost() -> None:
    rows, ledger = COLUMNS["offset"], MemoryLedger(1000)  # with hardly any noise
    first = snugdp.mean(rows, epsilon=500, ledger=ledger)
    again = snugdp.Mean(bounds=first.certificate, epsilon=500)
    assert again.plan().step_ids[0] != "grid"
    assert abs(released(again.release(rows, ledger=ledger)).value - 1e5) < 30
    assert again.plan().cost == snugdp.Mean(bounds=(0, 1), epsilon=500).plan().cost


@sampled(4)
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 0.2, "delta": 1e-3}, {"epsilon": 2, "delta": 1e-6}])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_whole_costs_what_was_asked_for(budget: dict[str, Any], relation: str) -> None:
    given: dict[str, Any] = {**budget, "neighbours": relation}
    schema = Schema({"x": Number(), "y": Number(0, 1), "z": Category(["a"])}, intercept=False)
    queries: list[Any] = [
        snugdp.Mean(**given),
        snugdp.Sum(clip=None, **given),
        snugdp.Variance(rows=300, **given),
        snugdp.Covariance(**given),
        snugdp.Histogram(bins=4, **given),
        snugdp.Describe(schema=schema, **given),
        snugdp.GroupBy(by="k", keys=["a"], statistics={"x": ["mean", "median"]}, **given),
    ]
    for query in queries:
        plan = query.plan()
        assert plan.cost.fits(Budget(budget["epsilon"], budget.get("delta", 0), relation))
        assert plan.step_ids[:4] == ("grid", "zoom", "zoom-2", "zoom-3")
        assert plan.theorem.id == "column-looks/1"


def test_bounds_that_are_given_change_nothing() -> None:
    rows = COLUMNS["normal"]
    both: list[Any] = [(0, 100), [0, 100]]
    for bounds in both:
        plan = snugdp.Mean(bounds=bounds, epsilon=1).plan()
        assert plan.theorem.id == "clipped-mean/1"
        assert "grid" not in plan.step_ids
        assert snugdp.median(rows, bounds=bounds, epsilon=1, noise=Simulation(1)).value == pytest.approx(50, abs=1)


def test_groups_and_descriptions_without_bounds() -> None:
    frame = pl.DataFrame({
        "city": np.random.default_rng(1).choice(["Oslo", "Rome"], N),
        "age": COLUMNS["normal"],
        "pay": COLUMNS["income"],
        "rare": [1.0] * 20 + [None] * (N - 20),
    })  # fmt: skip
    wanted = {"age": ["mean", "median"], "pay": "sum"}
    groups: Any = snugdp.group_by(frame, "city", statistics=wanted, epsilon=2, delta=1e-6, noise=Simulation(1))
    table = released(groups)
    assert table["city"] == ("Oslo", "Rome")
    assert set(groups.certificate) == {"age", "pay"}
    assert all(abs(one - 50) < 3 for name in ("age_mean", "age_median") for one in table[name])
    medians = snugdp.group_by(frame, "city", statistics={"rare": "median"}, epsilon=1, delta=1e-6, noise=Simulation(1))
    assert released(medians)["rare_median"] == (None, None)
    assert medians.certificate is None
    schema = Schema({"city": Category(["Oslo", "Rome"]), "age": Number(), "rare": Number()}, intercept=False)
    found: Any = snugdp.describe(frame, schema=schema, epsilon=2, noise=Simulation(1))
    described = released(found)
    assert abs(described.mean("age").value - 50) < 2
    assert described.columns["mean"][2] is None
    assert described.columns["50%"][2] is None
    again = snugdp.describe(frame, schema=schema, bounds=found.certificate, epsilon=2, noise=Simulation(1))
    assert again.certificate is None
    assert abs(released(again).mean("age").value - 50) < 2


ODD: list[Any] = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, None, "word", True, 10**400, object()]


@sampled(4)
@pytest.mark.parametrize("function", [snugdp.mean, snugdp.median, snugdp.sum, snugdp.quantile_table])
def test_odd_cells_at_the_doors(function: Any) -> None:
    """Nothing is raised or warned of, and one odd cell beside many rows moves hardly anything."""
    plain = COLUMNS["normal"].tolist()
    for cell in ODD:
        outcome = function([*plain, cell], epsilon=1, noise=Simulation(5))
        assert not outcome.refused
    assert function(ODD, epsilon=1, noise=Simulation(5)).refused


def test_nothing_is_charged_for_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    ledger = MemoryLedger(1, 1e-6)
    frame = pl.DataFrame({"a": [b"x"], "b": [1.0]})
    pair: Any = (0, 1)
    mistakes: list[Callable[[], Any]] = [
        lambda: snugdp.mean(frame, column="a", epsilon=1, ledger=ledger),
        lambda: snugdp.mean(frame, column="c", epsilon=1, ledger=ledger),
        lambda: snugdp.mean(tmp_path / "none.csv", column="c", epsilon=1, ledger=ledger),
        lambda: snugdp.correlation(([1.0], [1.0, 2.0]), epsilon=1, ledger=ledger),
        lambda: snugdp.group_by(frame, "c", statistics={"b": "mean"}, epsilon=1, delta=1e-6, ledger=ledger),
        lambda: snugdp.describe(frame, schema=Schema({"a": Number()}), epsilon=1, ledger=ledger),
        lambda: snugdp.trimmed_mean([], epsilon=1, ledger=MemoryLedger(1, 0, "replace")),
        lambda: snugdp.describe(frame, schema=Schema({"b": Number()}), bounds=pair, epsilon=1, ledger=ledger),
    ]
    for mistake in mistakes:
        with pytest.raises((TypeError, ValueError, OSError, TableError)):
            mistake()
    assert ledger.remaining.epsilon == 1


def test_a_retry_shows_the_same_bounds(tmp_path: Path) -> None:
    with snugdp.Ledger.open(tmp_path / "l", dataset="people", budget=Budget(1)) as ledger:
        first = snugdp.mean(COLUMNS["normal"], epsilon=1, ledger=ledger.once("a"))
        again = snugdp.mean(COLUMNS["normal"], epsilon=1, ledger=ledger.once("a"))
    assert again.value == first.value
    assert again.certificate == first.certificate
    assert isinstance(first.certificate, FoundNumber)


def test_files_and_columns_are_looked_at_alike(tmp_path: Path) -> None:
    rows = COLUMNS["normal"]
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"x": rows}).write_parquet(path)
    alone = snugdp.mean(rows, epsilon=1, noise=Simulation(4))
    assert snugdp.mean(path, column="x", epsilon=1, noise=Simulation(4)).value == alone.value
    assert snugdp.mean(rows.tolist(), epsilon=1, noise=Simulation(4)).value == alone.value
    assert snugdp.median(path, column="x", epsilon=1, noise=Simulation(4)).value == pytest.approx(
        snugdp.median(rows, epsilon=1, noise=Simulation(4)).value
    )
