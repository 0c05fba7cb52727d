"""What queries plan to spend, beside their budgets."""

from typing import Any

import pytest

import snugdp

BUDGET: dict[str, Any] = {"epsilon": "1.3", "delta": "0.001"}
QUERIES = {
    "median": snugdp.Median(bounds=(0, 1), beta=0.1, **BUDGET),
    "median, replace": snugdp.Median(bounds=(0, 1), beta=0.1, rows=50, neighbours="replace", **BUDGET),
    "quantile": snugdp.Quantile(q=0.3, bounds=(0, 1), beta=0.1, rows=50, neighbours="replace", **BUDGET),
    "median, drawn": snugdp.Median(bounds=(0, 1), **BUDGET),
    "median, drawn, replace": snugdp.Median(bounds=(0, 1), neighbours="replace", **BUDGET),
    "quantile, drawn": snugdp.Quantile(q=0.3, bounds=(0, 1), method="exponential", **BUDGET),
    "quantiles": snugdp.Quantiles(q=[0.1, 0.5, 0.9], bounds=(0, 1), **BUDGET),
    "quartiles": snugdp.InterquartileRange(bounds=(0, 1), neighbours="replace", **BUDGET),
    "minimum": snugdp.Minimum(bounds=(0, 1), **BUDGET),
    "maximum": snugdp.Maximum(bounds=(0, 1), step="0.01", **BUDGET),
    "trimmed mean": snugdp.TrimmedMean(bounds=(0, 1), beta=0.1, rows=50, **BUDGET),
    "mode": snugdp.Mode(categories=["a", "b"], **BUDGET),
    "vote": snugdp.Vote(candidates=["a", "b"], noise_epsilon=2, **BUDGET),
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_test_and_the_release_spend_epsilon_and_no_more(name: str) -> None:
    query: Any = QUERIES[name]
    cost = query.plan().cost
    budget = snugdp.Budget(BUDGET["epsilon"], BUDGET["delta"], cost.neighbours)
    assert cost.fits(budget)
    assert cost.epsilon == budget.epsilon
