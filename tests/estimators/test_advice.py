"""Advice: the epsilon that it names is enough by the plan's own forecast, and the next smaller one is not."""

import pytest

import snugdp
from snugdp.estimators.advice import EPSILONS
from snugdp.estimators.forecast import forecast


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


@pytest.mark.parametrize("wrong", [0, -1, float("nan")])
def test_an_error_is_above_zero(wrong: float) -> None:
    with pytest.raises(ValueError, match="error"):
        snugdp.advise(model(), rows=100, n_features=4, error=wrong)


def test_only_models_with_forecasts() -> None:
    with pytest.raises(TypeError, match="compare plans"):
        snugdp.advise(snugdp.Count(epsilon=1), rows=100)
