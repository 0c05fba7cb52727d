"""First and last look of a whitened line: where targets lie, and the mean residual, which the intercept follows."""

from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp import Budget, Cost, Number, Schema, Simulation
from snugdp.mechanisms.inference.line import WhitenedLine
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective import scale
from snugdp.mechanisms.objective.location import located
from snugdp.mechanisms.objective.scale import MeanResidual, TargetHistogram, TargetSum
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.distances import ResidualSumPass, TargetHistogramPass
from snugdp.tables.rows import Rows

SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-8, 8)}, target="y")
DESIGN = Design.of(SCHEMA)
MU = Fraction(1, 4)
THETA = (Fraction(1, 3), Fraction(-2), Fraction(1, 7))


def table(seed: int, n: int, skew: float = 0.0) -> pl.DataFrame:
    """Where errors are skewed their mean is 0, and usual ones lie below."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, (2, n))
    errors = skew * (rng.exponential(size=n) - 1) + (1 - skew) * rng.normal(size=n)
    return pl.DataFrame({"a": a, "b": b, "y": a - 0.5 * b + errors})


def total(frame: pl.DataFrame, clip: int) -> int:
    work = ResidualSumPass(SCHEMA, THETA, clip=clip)
    (found,) = work.fold(work.empty(), nw.from_native(frame, eager_only=True)).values()
    return int(found)


@pytest.mark.parametrize("clip", [1, 1000, 1 << 19, 1 << 24])
def test_one_row_moves_the_sum_by_no_more_than_the_clip(clip: int) -> None:
    frame = table(1, 300)
    odd = pl.DataFrame({"a": [1e300, None, -1.0], "b": [float("nan"), 1.0, -1.0], "y": [8.0, -1e300, 8.0]})
    whole = total(frame, clip)
    for row in (*frame[:20].iter_slices(1), *odd.iter_slices(1)):
        assert abs(total(pl.concat([frame, row]), clip) - whole) <= clip
        assert total(pl.concat([frame, row]), clip) - whole == total(row, clip)


def test_it_is_the_sum_of_clipped_residuals() -> None:
    frame = table(2, 500)
    X, y = next(iter(SCHEMA.blocks(nw.from_native(frame))))
    V, w = DESIGN.row_map.integers(X, y)
    cells = w - V @ np.array([float(each) for each in THETA])
    clip = 1 << 19
    assert abs(total(frame, clip) - np.clip(cells, -clip, clip).sum()) <= 2 * len(cells)


def draws(frame: pl.DataFrame, times: int, clip: Fraction) -> np.ndarray[Any, Any]:
    look, rows = MeanResidual(DESIGN, MU), Secret(Rows(frame, SCHEMA))
    return np.array([float(look.draw(rows, Simulation(seed), THETA, clip, 1.0)) for seed in range(times)])


def test_the_noise_is_that_of_its_cost_whatever_the_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours lie up to a clip apart, and the deviation is the clip over mu."""
    monkeypatch.setattr(scale, "_DOUBT", 0.0)
    for clip in (Fraction(1, 100), Fraction(1, 3), Fraction(2)):
        found = draws(table(3, 0), 400, clip)
        assert 0.87 < found.std() * float(MU / clip) < 1.13


def test_what_may_be_noise_raises_nothing() -> None:
    found = draws(table(4, 0), 400, Fraction(1))
    assert (found == 0).mean() > 0.9


def fitted(frame: pl.DataFrame, seed: int, **given: Any) -> Any:
    method = WhitenedLine(DESIGN, Budget(1, 1e-6), intervals=False, **given)
    outcome = method.fit(Secret(Rows(frame, SCHEMA)), ReleaseContext(Simulation(seed)))
    assert outcome.value is not None
    return outcome.value


def test_a_skewed_target_is_predicted_nearer_to_its_mean() -> None:
    """The mean of y is a - b/2, and a robust line lies below."""
    with_it, without = [], []
    for seed in range(6):
        fit = fitted(table(seed, 8000, skew=1.0), seed)
        low = SCHEMA.coefficients(fit.theta).intercept
        with_it.append(low)
        without.append(low - 8 * fit.released["raised"])
    assert np.mean(without) < -0.05
    assert abs(np.mean(with_it)) < 0.7 * abs(np.mean(without))


def test_few_rows_raise_nothing_and_a_line_with_intervals_never_asks() -> None:
    found = [fitted(table(seed, 50), seed).released["raised"] for seed in range(20)]
    assert np.mean(np.array(found) == 0) > 0.7
    with_intervals = WhitenedLine(DESIGN, Budget(1, 1e-6))
    assert "level" not in [step.id for step in with_intervals.plan().steps]


def test_a_line_is_raised_in_the_directions_that_are_identified() -> None:
    """Those are fewer than entries, and the sum of residuals is one over rows of so many."""
    frame = table(7, 2000, skew=1.0).with_columns(b=pl.col("a"))
    fit = fitted(frame, 1, basis=((1.0, 0.0), (0.0, 0.0), (0.0, 1.0)))
    assert "raised" in fit.released
    assert abs(fit.theta[1]) < 1e-9


def test_without_an_intercept_nothing_is_raised() -> None:
    schema = Schema(SCHEMA.columns, target="y", intercept=False)
    method = WhitenedLine(Design.of(schema), Budget(1, 1e-6), intervals=False)
    assert "level" not in [step.id for step in method.plan().steps]
    outcome = method.fit(Secret(Rows(table(1, 500), schema)), ReleaseContext(Simulation(1)))
    assert outcome.value is not None
    assert "raised" not in outcome.value.released


def counts(frame: pl.DataFrame, bins: int) -> np.ndarray[Any, Any]:
    work = TargetHistogramPass(SCHEMA, count=bins)
    return np.array(work.fold(work.empty(), nw.from_native(frame, eager_only=True)).values())


@pytest.mark.parametrize("bins", [2, 7, 12])
def test_one_row_moves_one_count_of_targets_by_one(bins: int) -> None:
    frame = table(5, 400)
    whole = counts(frame, bins)
    assert whole.sum() == len(frame)
    odd = pl.DataFrame({"a": [1e300, None, -1.0], "b": [float("nan"), 1.0, -1.0], "y": [8.0, -1e300, float("inf")]})
    for row in (*frame[:20].iter_slices(1), *odd.iter_slices(1)):
        moved = counts(pl.concat([frame, row]), bins) - whole
        assert sorted(moved.tolist()) == [0] * (bins - 1) + [1]
    y = frame["y"].to_numpy()
    assert np.abs(whole - np.histogram(y, np.linspace(-8, 8, bins + 1))[0]).sum() <= 2


@pytest.mark.parametrize("empty", [True, False])
def test_the_noise_of_the_first_look_is_that_of_its_cost(empty: bool) -> None:
    rows = Secret(Rows(table(6, 0 if empty else 200), SCHEMA))
    total, places = TargetSum(DESIGN, MU), TargetHistogram(DESIGN, MU)
    sums = np.array([total.draw(rows, Simulation(seed)) for seed in range(400)])
    bins = np.array([places.draw(rows, Simulation(seed)) for seed in range(100)])
    assert 0.87 < sums.std() * float(MU) < 1.13
    assert 0.9 < bins.std(axis=0).mean() * float(MU) < 1.1
    assert total.cost == places.cost == Cost(mu=MU)


def test_targets_that_lie_close_together_are_found_where_a_mean_is_noise() -> None:
    found, means = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        exact = np.histogram(rng.normal(-0.7, 0.06, 1500), np.linspace(-1, 1, 13))[0]
        noisy, number, total = exact + rng.normal(0, 200, 12), 1500 + rng.normal(0, 300), -1050 + rng.normal(0, 200)
        found.append(located(noisy.tolist(), 200.0, (number, 300.0), (total, 200.0)))
        means.append(total / number)
    assert np.mean((np.array(found) + 0.7) ** 2) < 0.3 * np.mean((np.array(means) + 0.7) ** 2)


@pytest.mark.parametrize(("number", "total"), [(-1e6, 1e9), (0.0, 0.0), (1e12, -1e12), (5.0, 3.0)])
def test_any_noise_gives_a_place_between_the_bounds(number: float, total: float) -> None:
    for counts_ in ([0.0] * 12, [-1e9] * 12, [1e12] * 12, [*[0.0] * 11, 1e15]):
        assert -1 <= located(counts_, 0.5, (number, 2.0), (total, 1.0)) <= 1


def test_only_small_budgets_ask_for_a_histogram() -> None:
    for epsilon, asked in ((0.1, True), (0.5, False), (4, False)):
        plan = WhitenedLine(DESIGN, Budget(epsilon, 1e-6), intervals=False).plan()
        assert ("places" in [step.id for step in plan.steps]) is asked
        assert plan.cost.fits(Budget(epsilon, 1e-6))
