"""One estimator for every loss: labels, counts and numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from snugdp import (
    GLM,
    Category,
    LogisticRegression,
    MemoryLedger,
    Number,
    PoissonRegression,
    Schema,
    Simulation,
)
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, OneAgainst, PseudoHuber, SoftHinge, TamedPoisson
from tests.effort import sampled
from tests.estimators.test_check_estimator import VALUES, failures

TRUTH = np.array([1.0, -2.0])


def made(n: int = 4000, key: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(key)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X @ TRUTH + rng.normal(0, 0.2, n)


def model(loss: Any, **given: Any) -> Any:
    return GLM(loss, **{"method": "objective", "x_norm": 1.5, "noise": Simulation(4), **given})


@pytest.mark.parametrize("method", ["auto", "objective"])
def test_logistic_and_counts_are_the_estimators_of_those_names(method: str) -> None:
    X, y = made()
    usual: dict[str, Any] = {"method": method, "x_norm": 1.5, "noise": Simulation(4)}
    labels = np.where(y > 0, "b", "a")
    pairs: list[tuple[Any, Any, Any]] = [
        (GLM(Logistic(), classes=["a", "b"], **usual), LogisticRegression(classes=["a", "b"], **usual), labels),
        (GLM(TamedPoisson(9, 4.5), **usual), PoissonRegression(y_max=9, **usual), np.round(y + 3)),
    ]
    for one, other, target in pairs:
        one.fit(X, target)
        other.fit(X, target)
        assert np.array_equal(one.coef_, other.coef_)
        assert np.array_equal(one.predict(X), other.predict(X))
        assert one.score(X, target) == other.score(X, target)


@sampled(4)
@pytest.mark.parametrize("loss", [PseudoHuber(0.2), LogCosh("0.2"), Huber(0.2)], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("method", ["auto", "objective", "output"])
def test_numbers(loss: Any, method: str) -> None:
    X, y = made(20_000)
    fit = model(loss, epsilon=4, method=method, y_bound=(-4, 4))
    if isinstance(loss, Huber) and method == "output":
        with pytest.raises(ValueError, match="smooth second derivative"):
            fit.fit(X, y)
        return
    fit.fit(X, y)
    assert np.allclose(fit.coef_, TRUTH, atol=0.4)
    assert np.allclose(fit.predict(X), X @ fit.coef_ + fit.intercept_)
    assert fit.score(X, y) > 0.8
    assert is_regressor(fit)
    assert not hasattr(fit, "decision_function")


def test_soft_hinges_tell_classes_apart() -> None:
    X, y = made(8000)
    two = model(SoftHinge(0.5), classes=[0, 1], epsilon=4).fit(X, (y > 0).astype(int))
    assert two.score(X, y > 0) > 0.85
    three = model(SoftHinge(0.5), classes=range(3), epsilon=8).fit(X, np.digitize(y, [-1, 1]))
    assert three.coef_.shape == (3, 2)
    assert three.score(X, np.digitize(y, [-1, 1])) > 0.6
    assert three.decision_function(X).shape == (8000, 3)
    assert is_classifier(three)
    assert three.classes_.tolist() == [0, 1, 2]
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.where(y > 0, "up", "down"))
    schema = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "c": Category(["up", "down"])}, target="c")
    named = model(SoftHinge(0.5), schema=schema, x_norm=None, epsilon=4).fit(frame)
    assert named.predict(frame[:5]).tolist() == frame["c"][:5].tolist() or named.score(frame, frame["c"]) > 0.85


@pytest.mark.parametrize(
    ("loss", "changes", "error", "message"),
    [
        (None, {}, TypeError, "loss must be one of"),
        ("logistic", {}, TypeError, "loss must be one of"),
        (Logistic, {"classes": [0, 1]}, TypeError, "loss must be one of"),
        (OneAgainst(Logistic(), 0, 3), {"classes": [0, 1]}, TypeError, "loss must be one of"),
        (Logistic(), {}, ValueError, "classes is needed"),
        (Logistic(), {"classes": [0, 1], "y_bound": 1}, ValueError, "leave out y_bound"),
        (TamedPoisson(9, 4), {"y_bound": 1}, ValueError, "leave out y_bound"),
        (TamedPoisson(9, 4), {"classes": [0, 1]}, ValueError, "leave out classes"),
        (LogCosh(1), {"classes": [0, 1]}, ValueError, "leave out classes"),
        (LogCosh(1), {}, ValueError, "y_bound"),
        (LogCosh(1), {"y_bound": 1, "neighbours": "replace"}, ValueError, "add_remove"),
    ],
)
def test_bad_wishes_cost_nothing(
    loss: Any, changes: dict[str, Any], error: type[Exception], message: str, unspent: MemoryLedger
) -> None:
    fit = model(loss, noise=None, ledger=unspent, **changes)
    with pytest.raises(error, match=message):
        fit.fit(*made(30))
    with pytest.raises(error, match=message):
        fit.plan(2)


def test_clones_and_pickles() -> None:
    X, y = made(200)
    fit = model(LogCosh(0.2), y_bound=4).fit(X, y)
    assert np.array_equal(clone(fit).fit(X, y).coef_, fit.coef_)
    assert np.array_equal(pickle.loads(pickle.dumps(fit)).predict(X), fit.predict(X))
    with pytest.raises(NotFittedError):
        GLM(LogCosh(1)).predict(X)


@pytest.mark.slow
def test_scikit_learns_own_battery() -> None:
    assert failures(model(LogCosh(0.2), x_norm=10, y_bound=5, noise=Simulation(0)), VALUES) == set(VALUES)
