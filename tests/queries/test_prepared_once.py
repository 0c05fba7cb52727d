"""What follows from public parameters is made once in a call, however often it is used."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import Simulation
from snugdp.accounting import discrete
from snugdp.core.guarantee import Budget
from snugdp.estimators import labels
from snugdp.mechanisms.order_statistics import stable
from snugdp.tables.cells import Names
from snugdp.tables.grid import Grid

BUDGET: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "noise": Simulation(1)}
ROWS = [30 + i % 20 for i in range(1000)]
LABELS = ["yes"] * 200 + ["no"] * 90
CALLS: dict[str, tuple[Callable[[], Any], dict[str, int]]] = {
    "median": (lambda: snugdp.median(ROWS, bounds=(0, 120), **BUDGET), {"budget": 1, "grid": 1}),
    "median, tested": (
        lambda: snugdp.median(ROWS, bounds=(0, 120), method="test", **BUDGET),
        {"budget": 2, "grid": 1, "threshold": 1},  # the budget of the question, and that of the test
    ),
    "quantile, tested": (
        lambda: snugdp.quantile(ROWS, 0.5, bounds=(0, 120), method="test", neighbours="replace", **BUDGET),
        {"budget": 2, "grid": 1, "threshold": 1},
    ),
    "quantiles": (lambda: snugdp.quantiles(ROWS, [0.2, 0.5, 0.9], bounds=(0, 120), **BUDGET), {"budget": 1, "grid": 1}),
    "maximum": (lambda: snugdp.maximum(ROWS, bounds=(0, 120), **BUDGET), {"budget": 1, "grid": 1}),
    "trimmed mean": (lambda: snugdp.trimmed_mean(ROWS, bounds=(0, 120), **BUDGET), {"budget": 1, "grid": 1}),
    "mode": (
        lambda: snugdp.mode(LABELS, categories=["yes", "no"], **BUDGET),
        {"budget": 1, "names": 1, "threshold": 1},
    ),
    "vote": (lambda: snugdp.vote(LABELS, candidates=["yes", "no"], **BUDGET), {"budget": 1, "names": 1}),
    "bounds": (lambda: snugdp.private_bounds(ROWS, epsilon=1, noise=Simulation(1)), {"budget": 1}),
}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each of these is made."""
    made: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            made[what] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    count(Budget, "__init__", "budget")
    count(Grid, "between", "grid")
    count(Names, "__init__", "names")
    count(discrete, "discrete_laplace_threshold", "threshold")
    count(labels, "declared", "classes")
    stable._threshold_test.cache_clear()
    return made


@pytest.mark.parametrize("name", CALLS)
def test_a_query_is_prepared_once(name: str, counts: Counter[str]) -> None:
    call, expected = CALLS[name]
    call()
    assert counts == expected


@pytest.mark.slow
def test_a_fit_reads_its_classes_once(counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from snugdp.estimators import targets

    monkeypatch.setattr(targets, "declared", labels.declared)
    X = np.linspace(-1, 1, 40)[:, None]
    model = snugdp.LogisticRegression(classes=[False, True], x_norm=1, noise=Simulation(0))
    model.fit(X, X[:, 0] > 0)
    assert counts["classes"] == 1
    assert not [name for name in vars(model) if "during" in name]


def test_a_list_that_changes_later_changes_no_answer() -> None:
    labels = ["a", "b"]
    vote = snugdp.Vote(candidates=labels, epsilon=8)
    mode = snugdp.Mode(categories=labels, epsilon=8, delta=1e-6)
    labels.reverse()
    assert vote.release(["a"] * 500).value == mode.release(["a"] * 500).value == "a"
