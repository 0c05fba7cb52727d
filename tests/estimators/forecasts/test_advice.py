"""Advice: the epsilon that it names is enough by the plan's own forecast, and the next smaller one is not."""

import math
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.estimators.forecasts.forecast import forecast
from snugdp.propose.forecast import EPSILONS


def model(epsilon: float = 1) -> snugdp.LinearRegression:
    return snugdp.LinearRegression(epsilon, 1e-6, method="adassp", x_norm=1, y_bound=1)


def error_at(epsilon: float, rows: int) -> float:
    return forecast(model(epsilon), rows, n_features=4, factors=(), more=()).asked.error


def test_the_smallest_round_epsilon_that_is_enough() -> None:
    advice = snugdp.advise(model(), rows=20_000, n_features=4, error=0.02)
    assert advice.epsilon in EPSILONS
    place = EPSILONS.index(advice.epsilon)
    assert advice.error == error_at(advice.epsilon, 20_000) <= 0.02 < error_at(EPSILONS[place - 1], 20_000)
    assert advice.plan.budget is not None
    assert advice.plan.budget.epsilon == snugdp.Budget(advice.epsilon).epsilon
    assert f"epsilon {advice.epsilon:g} is enough" in str(advice)
    assert "Plan: " in str(advice)


def test_from_an_epsilon_to_an_error() -> None:
    advice = snugdp.advise(model(0.7), rows=20_000, n_features=4)
    assert (advice.epsilon, advice.wanted) == (0.7, None)
    assert advice.error == error_at(0.7, 20_000)


def test_where_no_epsilon_is_enough_rows_are() -> None:
    advice = snugdp.advise(model(), rows=50, n_features=4, error=0.01)
    assert advice.epsilon is None
    assert advice.rows_needed is not None
    assert error_at(1.0, advice.rows_needed) <= 0.01 < error_at(1.0, advice.rows_needed // 2)
    assert f"{advice.rows_needed:,} rows" in str(advice)


@pytest.mark.parametrize("error", [1e-300, 1e300])
def test_errors_of_any_size_are_answered(error: float) -> None:
    advice = snugdp.advise(model(), rows=1000, n_features=4, error=error)
    assert advice.epsilon == (EPSILONS[0] if error > 1 else None)


def test_an_error_that_rehearsals_do_not_tell_is_not_a_number() -> None:
    X, alone = np.arange(60.0).reshape(20, 3), np.ones(20)
    advice = snugdp.advise(snugdp.LinearRegression(1, 1e-6), rows=100, n_features=3, sample=(X, alone))
    assert advice.error == math.inf
    assert "there is no telling what privacy noise adds" in str(advice)
    assert " inf" not in str(advice)


@pytest.mark.parametrize("wrong", [0, -1, float("nan")])
def test_an_error_is_above_zero(wrong: float) -> None:
    with pytest.raises(ValueError, match="error"):
        snugdp.advise(model(), rows=100, n_features=4, error=wrong)


def test_a_component_may_stand_out_from_noise() -> None:
    advice = snugdp.advise(snugdp.PCA(2, 1, 1e-6, x_norm=1), rows=10_000, n_features=4, error=0.05)
    assert advice.epsilon is not None
    assert advice.error <= 0.05


def test_only_models_with_forecasts() -> None:
    with pytest.raises(TypeError, match="compare plans"):
        snugdp.advise(snugdp.Count(epsilon=1), rows=100)


SCHEMA = snugdp.Schema({"a": snugdp.Number(0, 10), "y": snugdp.Number(0, 200)}, target="y")


@pytest.mark.parametrize("spread", [None, 0.1, {"y": 0.05}])
def test_a_plan_for_an_error_has_it_and_so_has_a_plan_at_its_epsilon(spread: Any) -> None:
    asked = snugdp.LinearRegression(7, 1e-6, schema=SCHEMA)
    plan = asked.plan(rows=5_000, error=0.5, spread=spread)
    (fit,) = plan.forecast.fits
    assert fit.error <= 0.5
    advice = snugdp.advise(asked, rows=5_000, error=0.5, spread=spread)
    assert plan == advice.plan
    assert advice.epsilon is not None
    assert plan.budget == snugdp.Budget(advice.epsilon, 1e-6)
    there = snugdp.LinearRegression(advice.epsilon, 1e-6, schema=SCHEMA)
    assert there.plan(rows=5_000, spread=spread).forecast.fits == plan.forecast.fits
    place = EPSILONS.index(advice.epsilon)
    below = snugdp.LinearRegression(EPSILONS[place - 1], 1e-6, schema=SCHEMA).plan(rows=5_000, spread=spread)
    assert below.forecast.fits[0].error > 0.5


def test_a_plan_for_an_error_without_bounds() -> None:
    plan = snugdp.LinearRegression(1, 1e-6).plan(3, 5_000, error=0.1)
    assert plan.forecast.fits[0].error <= 0.1  # there is one: rows are enough to find bounds at its epsilon


def test_a_plan_for_an_error_that_no_epsilon_brings_says_how_many_rows_would() -> None:
    with pytest.raises(ValueError, match=r"no epsilon up to 10 is enough.*rows would be enough"):
        snugdp.LinearRegression(1, 1e-6, schema=SCHEMA).plan(rows=200, error=1e-3)
    with pytest.raises(ValueError, match="needs rows"):
        snugdp.LinearRegression(1, 1e-6, schema=SCHEMA).plan(error=2)
