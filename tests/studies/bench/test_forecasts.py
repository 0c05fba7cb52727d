"""The benchmark of forecasts: which cells there are, and what coming true means."""

import pytest

from snugdp_studies.bench.forecasts import BOUNDS, EPSILONS, ForecastCell, run, share


@pytest.mark.nightly
def test_every_kind_of_bounds_and_epsilon_is_a_cell() -> None:
    found = list(run("synthetic", ["literature"], rows=600, sample=60, fits=2))
    assert [(each.bounds, each.epsilon) for each in found] == [(b, e) for b in BOUNDS for e in EPSILONS]
    assert all(each.rows == 600 and each.seen > 0 and each.by_bounds > 0 and each.by_sample > 0 for each in found)


def test_a_forecast_comes_true_within_a_factor_of_two() -> None:
    cell = ForecastCell("made up", 100, 2, "public", 1.0, by_bounds=0.4, by_spread=0.25, by_sample=0.11, seen=0.1)
    assert cell.comes_true(cell.by_sample)
    assert not cell.comes_true(cell.by_bounds)
    assert not cell.comes_true(0.04)
    assert [share([cell], "by_spread", factor) for factor in (2, 3)] == [0, 1]
