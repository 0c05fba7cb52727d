"""scikit-learn's own battery. What it wants that would betray somebody must fail, and nothing else may."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from snugdp import Exact, LinearRegression, MemoryLedger, NotPrivate, NotPrivateWarning, Simulation
from tests.effort import often, repeated

VALUES = {
    "check_supervised_y_no_nan": "an error when no target is a number would tell them from one that is",
}
OFFERED: dict[str, dict[str, Any]] = {
    "adassp": {},
    "sufficient": {},
    "descent": {"rows": 100, "proposals": {"steps": 2}},
}


def failures(estimator: Any, expected: dict[str, str]) -> set[str]:
    """The checks that did not pass, apart from those that scikit-learn skips by its tags or for want of a library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(results) > 40
    assert not [result for result in results if result["status"] == "failed"], results
    return {result["check_name"] for result in results if result["status"] == "xfail"}


@pytest.mark.slow
@repeated
@pytest.mark.parametrize("method", list(OFFERED)[: often(1, 3)])
def test_a_rehearsal_passes_all_checks_but_those_that_look_at_values(method: str) -> None:
    estimator = LinearRegression(method=method, x_norm=10, y_bound=5, noise=Simulation(0), **OFFERED[method])
    assert failures(estimator, VALUES) == set(VALUES)


@pytest.mark.slow
@repeated
@pytest.mark.parametrize("method", ["objective", "adassp", "auto"][: often(1, 3)])
def test_a_release_passes_all_of_them_but_that_one(method: str) -> None:
    """Checks that compare two fits set ``random_state``, as scikit-learn does for every estimator with randomness."""
    assert failures(LinearRegression(method=method, x_norm=10, y_bound=(-5, 5)), VALUES) == set(VALUES)


@pytest.mark.parametrize("empty", [np.empty, np.zeros])
def test_what_the_failing_checks_would_betray(empty: Callable[..., Any]) -> None:
    """The same call on neighbouring tables: whatever the one does, the other must do as well."""
    estimator = LinearRegression(method="adassp", x_norm=10, y_bound=5)
    assert estimator.fit(empty((0, 3)), []).released_ == estimator.fit(np.ones((1, 3)), [1.0]).released_
    nothing, one = np.full(10, np.nan), np.r_[np.full(9, np.nan), 1.0]
    assert estimator.fit(np.ones((10, 3)), nothing).released_ == estimator.fit(np.ones((10, 3)), one).released_


def test_a_seed_is_a_rehearsal_and_says_so() -> None:
    X, y = np.ones((20, 2)), np.ones(20)
    seeded = LinearRegression(method="adassp", x_norm=2, y_bound=2, random_state=3)
    with pytest.warns(NotPrivateWarning, match="NOT PRIVATE"):
        first = seeded.fit(X, y)
    assert first.guarantee_ is None
    assert first.receipt_ is None
    assert isinstance(first.outcome_, NotPrivate)
    with pytest.raises(ValueError, match="not both"):
        seeded.set_params(noise=Exact()).fit(X, y)
    with pytest.raises(TypeError, match="whole number"):
        seeded.set_params(noise=None, random_state=np.random.RandomState(1)).fit(X, y)
    with pytest.warns(NotPrivateWarning), pytest.raises(ValueError, match="cannot be charged"):
        seeded.set_params(random_state=3, ledger=MemoryLedger(1, 1e-6)).fit(X, y)
