"""Released numbers as people read them, and intervals that cover what clipping takes away."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import Simulation
from snugdp.queries.estimate import Estimate
from snugdp.serial.codec import StoredOutcome, dumps, loads
from tests.effort import sampled

WORDS = [
    (Estimate(42.1234, 0.3), "42.12 ± 0.30 (95 %)"),
    (Estimate(37759.3, 236.2, 1e4), "37,759 ± 236 (95 %)"),
    (Estimate(0.0, 0.0), "0 ± 0 (95 %)"),
    (Estimate(3e20, 1e15), "3e+20 ± 1e+15 (95 %)"),
    (Estimate(5, 0.5, above=2), "5.00 ± 0.50 (95 %), and up to 2.00 more where numbers were clipped"),
    (Estimate(5, 1, below=1, above=2), "5.0 ± 1.0 (95 %), and up to 1.0 less or 2.0 more where numbers were clipped"),
    (Estimate(5, 1, below=None, above=None), "5.0 ± 1.0 (95 %), without what lies beyond the bounds that were found"),
]  # fmt: skip


@pytest.mark.parametrize(("estimate", "words"), WORDS, ids=[words for _, words in WORDS])
def test_it_reads_well(estimate: Estimate, words: str) -> None:
    assert str(estimate) == words


def test_the_interval_has_what_clipping_may_hide() -> None:
    assert (Estimate(5, 0.5, below=1, above=2).lower, Estimate(5, 0.5, below=1, above=2).upper) == (3.5, 7.5)
    assert (Estimate(5, 0.5, below=None, above=None).lower, Estimate(5, 0.5, above=None).upper) == (-math.inf, math.inf)


@pytest.mark.parametrize("estimate", [Estimate(1.5, 0.25, 3.0), Estimate(5.0, 0.5, below=None, above=2.0)])
def test_it_is_kept_as_before_unless_something_was_clipped(estimate: Estimate) -> None:
    stored = dumps(StoredOutcome(refused=False, value=estimate)) or ""
    assert loads(stored).value == estimate
    assert ("above" in stored) == (estimate.above != 0)


RNG = np.random.default_rng(5)
N = 2000
HARD: dict[str, tuple[Any, float]] = {
    "normal": (RNG.normal(50, 10, N), 100.0),
    "Pareto 1.5": (RNG.pareto(1.5, N) + 1, 1e4),
    "Pareto 2.5": (RNG.pareto(2.5, N) + 1, 1e4),
    "lognormal": (RNG.lognormal(10, 1, N), 1e7),
    "95 % zeros": (np.where(RNG.random(N) < 0.95, 0.0, RNG.lognormal(5, 1, N)), 1e5),
    "99 % equal": (np.where(RNG.random(N) < 0.99, 3.0, RNG.lognormal(5, 1, N)), 1e5),
}
RUNS = 40


@sampled(6)
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("loose", [1, 100])
def test_the_mean_of_all_rows_is_inside(name: str, loose: int) -> None:
    """In 19 of 20 cases, whatever the column is; 28 of 40 runs are far below what chance allows."""
    rows, upper = HARD[name]
    rows = np.clip(rows, 0, upper)
    query, noise = snugdp.Mean(bounds=(0, loose * upper), epsilon=1), Simulation(3)
    found = [query.release(rows, noise=noise).value for _ in range(RUNS)]
    assert sum(one is not None and one.lower <= rows.mean() <= one.upper for one in found) >= RUNS * 0.8
    assert all(one is not None and one.below == 0 for one in found)  # the lower bound is where distances start


def test_a_mostly_zero_column_is_no_certain_zero() -> None:
    """It was: 0 ± 1e-12 for a column of 95 % zeros, since the clip fell to the heap."""
    rows, upper = HARD["95 % zeros"]
    for seed in range(10):
        found = snugdp.mean(rows, bounds=(0, upper), epsilon=1, noise=Simulation(seed)).value
        assert found is not None
        assert found.error + (found.above or 0) > float(rows.mean())


@sampled(6)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}], ids=str)
def test_sums_and_spreads_say_it_too(relation: str, budget: dict[str, Any]) -> None:
    rows = np.clip(RNG.pareto(1.5, 5000) + 1, 0, 1e4)
    given: dict[str, Any] = {"bounds": (0, 1e5), "neighbours": relation, **budget}
    truths = {"sum": rows.sum(), "variance": rows.var(), "standard_deviation": rows.std()}
    for name, truth in truths.items():
        inside = 0
        for seed in range(20):
            found = getattr(snugdp, name)(rows, **given, noise=Simulation(seed)).value
            inside += found.lower <= truth <= found.upper
        assert inside >= 15, name


def test_nothing_is_hidden_where_bounds_are_public_and_nothing_is_clipped() -> None:
    found = snugdp.mean([5.0] * 500, bounds=(0, 10), clip=None, epsilon=1).value
    assert found is not None
    assert (found.below, found.above) == (0, 0)


def test_beyond_found_bounds_nothing_is_known() -> None:
    found = snugdp.mean(HARD["lognormal"][0], epsilon=1, noise=Simulation(1)).value
    assert found is not None
    assert (found.below, found.above, found.upper) == (None, None, math.inf)


def test_descriptions_say_it_for_means() -> None:
    import polars as pl

    schema = snugdp.Schema({"x": snugdp.Number(0, 10**7)})
    table = pl.DataFrame({"x": HARD["lognormal"][0]})
    found = snugdp.describe(table, schema=schema, epsilon=2, noise=Simulation(1)).value
    assert found is not None
    mean = found.mean("x")
    assert mean.above is not None
    assert mean.above > mean.error
    assert mean.lower <= float(HARD["lognormal"][0].mean()) <= mean.upper
    assert "Clipping may hide up to" in str(found)
