"""scikit-learn's own battery. What it wants that would betray somebody must fail, and nothing else may."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from snugdp import LinearRegression, Simulation
from snugdp.estimators.methods import METHODS

VALUES = {
    "check_estimators_empty_data_messages": "an error when there are no rows would tell them from one row",
    "check_supervised_y_no_nan": "an error when no target is a number would tell them from one that is",
}
TWO_FITS = dict.fromkeys(
    ("check_regressor_data_not_an_array", "check_supervised_y_2d", "check_regressors_int", "check_fit_idempotent"),
    "two fits are compared, and private noise has no seed",
)
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


@pytest.mark.parametrize("method", OFFERED)
def test_a_rehearsal_passes_all_checks_but_those_that_look_at_values(method: str) -> None:
    estimator = LinearRegression(method=method, x_norm=10, y_bound=5, noise=Simulation(0), **OFFERED[method])
    assert failures(estimator, VALUES) == set(VALUES)


def test_a_release_passes_all_but_those_that_compare_two_fits() -> None:
    estimator = LinearRegression(method="adassp", x_norm=10, y_bound=(-5, 5))
    assert failures(estimator, VALUES | TWO_FITS) == set(VALUES | TWO_FITS)


def test_the_default_method() -> None:
    pytest.importorskip("snugdp.mechanisms.adaptive", reason="the default method is not built yet")
    estimator = LinearRegression(x_norm=10, y_bound=5, noise=Simulation(0))
    assert estimator.method == "auto" in METHODS
    assert failures(estimator, VALUES) == set(VALUES)


@pytest.mark.parametrize("empty", [np.empty, np.zeros])
def test_what_the_failing_checks_would_betray(empty: Callable[..., Any]) -> None:
    """The same call on neighbouring tables: whatever the one does, the other must do as well."""
    estimator = LinearRegression(method="adassp", x_norm=10, y_bound=5, noise=Simulation(0))
    assert estimator.fit(empty((0, 3)), []).released_ == estimator.fit(np.ones((1, 3)), [1.0]).released_
    nothing, one = np.full(10, np.nan), np.r_[np.full(9, np.nan), 1.0]
    assert estimator.fit(np.ones((10, 3)), nothing).released_ == estimator.fit(np.ones((10, 3)), one).released_
