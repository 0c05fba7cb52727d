"""Which epsilon a wanted error of an answer takes: the smallest round one by the plan's own forecast."""

from typing import Any

import pytest

import snugdp
from snugdp.propose.forecast import EPSILONS

MEAN = {"bounds": (0, 100), "rows": 5_000}


@pytest.mark.parametrize(
    ("kind", "given", "error"),
    [
        (snugdp.Count, {}, 20),
        (snugdp.Count, {"person": "who"}, 20),
        (snugdp.Sum, {"bounds": (0, 100)}, 1_000),
        (snugdp.Mean, MEAN, 0.5),
        (snugdp.Histogram, {"bounds": (0, 100), "bins": 10}, 5),
    ],
)
def test_it_is_enough_and_the_next_smaller_one_is_not(kind: Any, given: Any, error: float) -> None:
    plan = kind(epsilon=7, **given).plan(error=error)
    assert plan.forecast.answer_error <= error
    epsilon = float(plan.budget.epsilon) if plan.budget else float(plan.cost.epsilon)
    place = EPSILONS.index(epsilon)
    assert plan == kind(epsilon=epsilon, **given).plan()
    assert kind(epsilon=EPSILONS[place - 1], **given).plan().forecast.answer_error > error


def test_where_no_epsilon_is_enough_it_says_what_is_left() -> None:
    with pytest.raises(ValueError, match=r"no epsilon up to 10 is enough: at epsilon 10 .* 0\.2996"):
        snugdp.Count(epsilon=1).plan(error=0.1)


@pytest.mark.parametrize("query", [snugdp.Median(epsilon=1, bounds=(0, 9)), snugdp.Mean(epsilon=1, bounds=(0, 100))])
def test_of_a_plan_without_one_number_none_can_be_wanted(query: Any) -> None:
    with pytest.raises(ValueError, match="give rows"):
        query.plan(error=1)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "much"])
def test_an_error_is_a_number_above_zero(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="error"):
        snugdp.Count(epsilon=1).plan(error=wrong)
