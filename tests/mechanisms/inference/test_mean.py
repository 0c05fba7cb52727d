"""The conditional mean with intervals: what it costs, what it estimates, and whether intervals cover."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from snugdp import Budget, Cost, Number, Schema, Simulation
from snugdp.mechanisms.inference.line import WhitenedLine
from snugdp.mechanisms.inference.mean import WhitenedMean, clip_from_counts
from snugdp.mechanisms.inference.whitening import WhitenedFit
from snugdp.mechanisms.linear.base import Design
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows

BUDGET = Budget(1, 1e-6)
LINE = Schema({"a": Number(-1, 1), "y": Number(-10, 10)}, target="y")
DESIGN = Design.of(LINE)


def skewed(seed: int, n: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, n)
    return pl.DataFrame({"a": a, "y": 0.5 * a + 0.25 + rng.exponential(1.0, n) - 1})


def fitted(method: Any, frame: pl.DataFrame, seed: int) -> WhitenedFit:
    outcome = method.fit(Secret(Rows(frame, LINE)), ReleaseContext(Simulation(seed)))
    assert isinstance(outcome.value, WhitenedFit)
    return outcome.value


def ends(fit: WhitenedFit, entry: int, scale: float) -> tuple[float, float]:
    assert fit.equation is not None
    found = fit.equation.contrast(fit.directions.T @ np.eye(2)[entry])
    return found.lower * scale, found.upper * scale


@pytest.mark.parametrize("beside", [Fraction(0), Fraction(1, 100)])
def test_the_cost_is_the_budget_for_every_basis(beside: Fraction) -> None:
    for basis in (None, ((1.0,), (0.0,))):
        cost = WhitenedMean(DESIGN, BUDGET, beside, basis).plan().cost
        assert cost == Cost(mu_squared=cost.mu_squared), "all of it is Gaussian"
        assert (cost + Cost(mu_squared=beside)).fits(BUDGET)
        assert not (cost + Cost(mu_squared=beside + cost.mu_squared / 50)).fits(BUDGET), "nothing is left"


def test_no_intercept_costs_no_centre_and_gets_less_room() -> None:
    design = Design.of(Schema({"a": Number(-1, 1), "y": Number(-10, 10)}, target="y", intercept=False))
    with_one, without = (WhitenedMean(each, BUDGET) for each in (DESIGN, design))
    assert [step.id for step in with_one.plan().steps][:2] == ["centre", "sizes"]
    assert next(step.id for step in without.plan().steps) == "sizes"
    assert without._clip_factor < with_one._clip_factor


def test_it_is_the_mean_where_a_robust_line_is_not() -> None:
    frame = skewed(1, 20_000)
    mean, robust = (fitted(method(DESIGN, BUDGET), frame, 1) for method in (WhitenedMean, WhitenedLine))
    low, high = ends(mean, 1, 10.0)
    assert low < 0.25 < high
    assert high - low < 0.2
    assert ends(robust, 1, 10.0)[1] < 0.25 - 0.05, "a robust line lies below"
    slope = ends(mean, 0, 10.0)
    assert slope[0] < 0.5 < slope[1]
    assert mean.theta * 10 == pytest.approx([0.5, 0.25], abs=0.15)


def test_few_rows_say_nothing_and_odd_tables_are_fitted() -> None:
    for frame in (skewed(1, 30), skewed(1, 0), pl.DataFrame({"a": [1.0] * 9, "y": [1e300] * 9})):
        fit = fitted(WhitenedMean(DESIGN, BUDGET), frame, 1)
        assert not np.isfinite(ends(fit, 0, 1.0)).any()
        assert np.isfinite(fit.theta).all()


def test_what_no_theorem_speaks_of_is_refused() -> None:
    for budget in (Budget(1, 0), Budget(1, 1e-6, "replace")):
        with pytest.raises(ValueError, match=r"delta|add_remove"):
            WhitenedMean(DESIGN, budget)
    with pytest.raises(ValueError, match="too small"):
        WhitenedMean(DESIGN, BUDGET, Fraction(1))
    with pytest.raises(ValueError, match="basis"):
        WhitenedMean(DESIGN, BUDGET, basis=((1.0,),))


def test_the_clip_is_the_edge_of_the_highest_clear_bin() -> None:
    assert clip_from_counts([0.0] * 24, 1.0, top=1.0, factor=1.0) == 2.0**-12
    assert clip_from_counts([4.0, 0.0], 1.0, top=3.0, factor=2.0) == 6.0
    assert clip_from_counts([3.0, 3.5], 1.0, top=1.0, factor=1.0) == 2.0**-0.5


@pytest.mark.slow
def test_intervals_cover_the_mean_of_skewed_errors() -> None:
    """Of 240, fewer than 212 would be very rare at 95 %."""
    inside = []
    for seed in range(120):
        fit = fitted(WhitenedMean(DESIGN, BUDGET), skewed(seed, 4000), seed)
        for entry, truth in ((0, 0.5), (1, 0.25)):
            low, high = ends(fit, entry, 10.0)
            inside.append(low <= truth <= high)
    assert sum(inside) >= 212, f"{sum(inside)} of {len(inside)}"
