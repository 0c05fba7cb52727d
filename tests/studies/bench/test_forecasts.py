"""The benchmark of forecasts: which cells there are, and what coming true means."""

import math

import numpy as np
import pytest

from snugdp_studies.bench.forecasts import BOUNDS, EPSILONS, MODELS, ForecastCell, Moved, run, share


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS)
def test_every_kind_of_bounds_and_epsilon_is_a_cell(model: str) -> None:
    found = list(run("synthetic", ["literature"], model, rows=600, sample=60, fits=2))
    assert [(each.bounds, each.epsilon) for each in found] == [(b, e) for b in BOUNDS for e in EPSILONS]
    assert all(each.rows == 600 and each.seen.root > 0 and each.by_bounds.root > 0 for each in found)


def test_a_forecast_comes_true_within_a_factor_of_two() -> None:
    expected = {"by_bounds": Moved(0.4, None), "by_spread": Moved(0.25, 0.06), "by_sample": Moved(0.11, 0.3)}
    cell = ForecastCell("made up", 100, 2, "public", 1.0, **expected, seen=Moved(0.1, 0.05))
    assert [cell.comes_true(how) for how in expected] == [False, False, True]
    assert [cell.comes_true(how, of="typical") for how in expected] == [None, True, False]
    assert [share([cell], "by_spread", factor) for factor in (2, 3)] == [0, 1]
    assert math.isnan(share([cell], "by_bounds", 2, "typical"))


def test_a_refusal_comes_true_where_it_was_expected() -> None:
    never = Moved.among([np.ones(3)], 1.0)
    cell = ForecastCell("made up", 9, 2, "none", 1.0, never, never, Moved(1.0, 1.0), seen=never)
    assert [cell.comes_true(how) for how in ("by_bounds", "by_sample")] == [True, False]


def test_few_rows_have_most_of_the_noise_and_a_typical_one_has_little() -> None:
    moved = Moved.among([np.zeros(5), np.array([1.0, 1.0, 1.0, 1.0, 100.0])], 2.0)
    assert moved.typical == pytest.approx(math.sqrt(0.5) / 2)
    assert moved.root == pytest.approx(math.sqrt((4 * 0.5 + 5000) / 5) / 2)
