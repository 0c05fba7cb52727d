"""The face of Poisson regression: counts, rates, their caps, and what must not show."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import d2_tweedie_score

from snugdp import Boolean, MemoryLedger, Number, PoissonRegression, Schema, Simulation
from snugdp.propose.forecast import ErrorOf
from tests.estimators.checks import STRANGE, no_warnings
from tests.estimators.test_check_estimator import VALUES, failures

NAMES = ["a", "b"]
TRUTH = np.array([1.0, -0.5])
SCHEMA = Schema({**dict.fromkeys(NAMES, Number(-1, 1)), "y": Number(0, 20)}, target="y")


def made(n: int = 4000, key: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(key)
    X = rng.uniform(-1, 1, (n, 2))
    return X, rng.poisson(np.exp(X @ TRUTH + 0.7))


def rehearsal(**given: Any) -> Any:
    usual = {"method": "objective", "y_max": 20, "x_norm": np.sqrt(2), "noise": Simulation(4)}
    return PoissonRegression(**{**usual, **given})


@pytest.mark.parametrize("method", ["auto", "objective", "output"])
def test_a_fit_finds_the_rates(method: str) -> None:
    X, y = made(40_000)
    ledger = MemoryLedger(4, 1e-6, composition="tight")
    model = rehearsal(epsilon=4, method=method, noise=None, ledger=ledger).fit(X, y)
    assert model.coef_.shape == (2,)
    assert np.allclose(model.coef_, TRUTH, atol=0.35)
    assert model.intercept_ == pytest.approx(0.7, abs=0.2)
    assert np.allclose(model.predict(X), np.exp(X @ model.coef_ + model.intercept_))
    assert model.score(X, y) == pytest.approx(d2_tweedie_score(y, model.predict(X), power=1))
    assert model.score(X, y) > 0.25
    assert model.receipt_.sequence == 1
    assert ledger.spent == model.cost_
    assert model.guarantee_.epsilon == 4
    assert model.plan_.forecast.error_of is ErrorOf.LINEAR


def test_rates_stop_at_their_cap() -> None:
    X, y = made(400)
    model = rehearsal(rate_max=2).fit(X, y)
    assert model.predict(X).max() <= 2 * (1 + 1e-12)
    assert model.predict(X).min() > 0
    free = rehearsal().fit(X, y)
    assert free._response().loss.curvature == 10
    assert free._response().loss.slope == 20  # half of y_max as a cap costs nothing
    assert rehearsal(rate_max=15)._response().loss.slope == 30


def test_counts_beyond_the_largest_are_clipped() -> None:
    X, y = made(400)
    answer = rehearsal(y_max=3).fit(X, np.minimum(y, 3)).coef_
    for wild in (y, np.where(y > 3, np.inf, y), np.where(y > 3, 1e300, y).tolist()):
        assert np.array_equal(rehearsal(y_max=3).fit(X, wild).coef_, answer)


def test_a_table_with_a_schema(tmp_path: Path) -> None:
    X, y = made(400)
    whole = pd.DataFrame(X, columns=NAMES).assign(y=y)
    whole.to_parquet(tmp_path / "table.parquet")
    answer = rehearsal().fit(X, y)
    for rows, target in ((whole, None), (whole[NAMES], y), (tmp_path / "table.parquet", None)):
        model = rehearsal(schema=SCHEMA, y_max=None, x_norm=None).fit(rows, target)
        assert np.allclose(model.coef_, answer.coef_, atol=1e-3)  # the same rows, but for a rounding
        assert np.allclose(model.predict(whole), answer.predict(X), rtol=1e-3)
    assert rehearsal(schema=SCHEMA, y_max=20, x_norm=None).plan().cost


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"y_max": None}, ValueError, "y_max is needed"),
        ({"y_max": 0}, ValueError, "most"),
        ({"y_max": "many"}, ValueError, "y_max"),
        ({"rate_max": 0}, ValueError, "rate"),
        ({"schema": SCHEMA}, ValueError, "leave out x_norm"),
        ({"schema": SCHEMA, "x_norm": None, "y_max": 10}, ValueError, r"must be Number\(0, 10\)"),
        ({"schema": Schema({"a": Number(0, 1)}), "x_norm": None, "y_max": 10}, ValueError, "target"),
        (
            {"schema": Schema({"a": Number(0, 1), "y": Boolean()}, target="y"), "x_norm": None, "y_max": 10},
            ValueError,
            "holds counts",
        ),
        ({"schema": 5, "x_norm": None}, TypeError, "snugdp.Schema"),
        ({"method": "descent"}, ValueError, "method must be one of"),
        ({"epsilon": -1}, ValueError, "epsilon"),
    ],
)
def test_bad_parameters_cost_nothing(
    changes: dict[str, Any], error: type[Exception], message: str, unspent: MemoryLedger
) -> None:
    model = rehearsal(**{"noise": None, "ledger": unspent, **changes})
    with pytest.raises(error, match=message):
        model.fit(*made(30))
    with pytest.raises(error, match=message):
        model.plan(2)


def test_degenerate_tables_are_fitted_like_any_other() -> None:
    X, y = made(30)
    with no_warnings():
        for rows, counts in (
            (X[:0], y[:0]), (X[:1], y[:1]), (X, y * 0), (X, y - 100), (X * np.nan, y), (X * np.inf, y),
            (X, [None] * 30),
        ):  # fmt: skip
            model = rehearsal(noise=None).fit(rows, counts)
            assert np.isfinite(model.predict(np.vstack([X, X * np.inf]))).all()
        for strange in STRANGE:
            assert rehearsal().fit(X[:3], [1, strange, 2]).released_


def test_clones_pickles_and_tags() -> None:
    X, y = made(100)
    model = rehearsal().fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert np.array_equal(clone(model).fit(X, y).coef_, model.coef_)
    with pytest.raises(NotFittedError):
        PoissonRegression().predict(X)
    assert is_regressor(model)
    assert model.__sklearn_tags__().target_tags.positive_only


def test_a_grid_of_ridges_is_scored_by_likelihood() -> None:
    X, y = made(2000)
    response = rehearsal()._response()
    model = rehearsal().fit(X, y)
    linear, target = X @ model.coef_ + model.intercept_, np.clip(y / 10 - 1, -1, 1)
    rates = np.minimum(np.exp(linear), 10)
    assert response.value(linear, target) == pytest.approx(np.mean(np.minimum(y, 20) * np.log(rates) - rates))
    assert response.value(linear, target) > response.value(-linear, target)


@pytest.mark.slow
def test_scikit_learns_own_battery() -> None:
    model = PoissonRegression(method="objective", y_max=5, x_norm=10, noise=Simulation(0))
    assert failures(model, VALUES) == set(VALUES)
