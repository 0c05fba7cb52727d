"""Sparse matrices in all linear models: the same result as the dense matrix, to the last bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

from snugdp import (
    GLM,
    PCA,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    Simulation,
)
from snugdp.tables.losses.losses import PseudoHuber
from tests.effort import sampled
from tests.estimators.checks import CANARY, assert_nothing_kept, assert_refused_in_silence, no_warnings

WIDTH, ROWS = 6, 400
MODELS: dict[str, Callable[[], Any]] = {
    "LinearRegression": lambda: LinearRegression(epsilon=4, x_norm=3, y_bound=3, noise=Simulation(1)),
    "adassp": lambda: LinearRegression(method="adassp", epsilon=4, x_norm=3, y_bound=3, noise=Simulation(1)),
    "LogisticRegression": lambda: LogisticRegression(epsilon=4, x_norm=3, classes=[0, 1, 2], noise=Simulation(1)),
    "PoissonRegression": lambda: PoissonRegression(epsilon=4, x_norm=3, y_max=3, noise=Simulation(1)),
    "GLM": lambda: GLM(PseudoHuber(1), epsilon=4, x_norm=3, y_bound=3, noise=Simulation(1)),
    "PCA": lambda: PCA(2, epsilon=4, x_norm=3, noise=Simulation(1)),
}
each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def table(seed: int = 5) -> tuple[Any, Any]:
    """A matrix of counts that is mostly 0, and counts as targets."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.3, (ROWS, WIDTH)).astype(float)
    return X, np.minimum(X[:, 0] + X[:, 1], 2)


def same(one: Any, other: Any, X: Any, form: Any) -> None:
    """Two models that are equal to the last bit, and so is what they say of these rows."""
    for name in ("coef_", "intercept_", "components_", "explained_variance_", "n_features_in_", "released_"):
        assert hasattr(one, name) == hasattr(other, name)
        assert np.array_equal(getattr(one, name, 0), getattr(other, name, 0))
    for ask in ("predict", "predict_proba", "decision_function", "transform"):
        if one.released_ and hasattr(one, ask):
            assert np.array_equal(getattr(one, ask)(X), getattr(other, ask)(form))


@sampled(10)
@each_model
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_matrix, sp.dok_array])
def test_the_same_as_the_dense_matrix(make: Any, form: Any) -> None:
    X, y = table()
    same(make().fit(X, y), make().fit(form(X), y), X, form(X))


@each_model
def test_odd_cells_are_those_of_the_dense_matrix(make: Any) -> None:
    X, y = table()
    X[3, 1], X[4, 2], X[5, 0], X[6, 3] = np.nan, np.inf, -1e300, -np.inf
    with no_warnings():
        same(make().fit(X, y), make().fit(sp.csr_array(X), y), X, sp.csr_array(X))


@each_model
def test_a_cell_stored_in_parts_counts_once(make: Any) -> None:
    X, y = table()
    parts = sp.coo_array(X)
    rows, columns = parts.coords
    halves = np.concatenate([parts.data / 2, parts.data / 2])
    form = sp.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape)
    same(make().fit(X, y), make().fit(form, y), X, form)


@each_model
def test_a_dense_model_reads_sparse_rows_and_the_other_way_round(make: Any) -> None:
    X, y = table()
    same(make().fit(X, y), make().fit(sp.csr_array(X), y), sp.csc_array(X), X)


@pytest.mark.slow
def test_public_rows_for_a_choice_may_be_sparse() -> None:
    X, y = table()
    grid = {"method": "objective", "proposals": {"ridge": [4, 8]}, "noise": Simulation(2)}
    given: dict[str, Any] = {"epsilon": 4, "x_norm": 3, "y_bound": 3, **grid}
    one, other = (LinearRegression(validation=(rows[:50], y[:50]), **given).fit(X, y) for rows in (X, sp.csr_array(X)))
    assert np.array_equal(one.coef_, other.coef_)


@pytest.mark.slow
def test_the_checks_of_scikit_learn_for_sparse_matrices() -> None:
    """Other models pass all checks in their own tests, sparse or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(MODELS["GLM"](), on_skip=None, on_fail=None)
    sparse = {result["check_name"]: result["status"] for result in results if "sparse" in result["check_name"]}
    assert len(sparse) >= 3
    assert set(sparse.values()) == {"passed"}


@sampled(6)
@each_model
def test_nothing_of_the_rows_is_kept(make: Any) -> None:
    def made() -> tuple[Any, ...]:
        X, y = table()
        X[0, 0] = CANARY
        return X, y

    assert_nothing_kept(make().fit, made, "csr", largest=100)


@each_model
def test_what_is_refused_quotes_nothing(make: Any) -> None:
    X, y = table()
    broken = sp.csr_array(X)
    broken.indptr[3] = 4217
    assert_refused_in_silence(lambda: make().fit(broken, y))
    assert_refused_in_silence(lambda: make().fit(sp.csr_array(X * 1j), y))
    fitted = make().fit(X, y)
    ask = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    with pytest.raises(ValueError, match="5 features"):
        ask(sp.csr_array(X[:, :5]))
