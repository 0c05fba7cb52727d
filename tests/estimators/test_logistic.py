"""The face of logistic regression: what goes in, what comes out, what is refused, who pays, and what must not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from snugdp import (
    Boolean,
    Category,
    Cost,
    LinearRegression,
    LogisticRegression,
    MemoryLedger,
    NotPrivateWarning,
    NotReleased,
    Number,
    PoissonRegression,
    Schema,
    Selected,
    Simulation,
    SparseLinearRegression,
)
from snugdp.core.guarantee import Budget
from snugdp.estimators.base import Promise
from snugdp.estimators.targets import ClassTarget, LabelBounds
from snugdp.propose.forecast import ErrorOf
from snugdp.tables.losses.losses import Logistic
from tests.effort import sampled
from tests.estimators import checks
from tests.estimators.checks import CANARY, ROWS, SECRET
from tests.estimators.test_check_estimator import failures
from tests.estimators.tiny import Tiny

NAMES = ["a", "b", "c"]
TRUTH = np.array([4.0, -3.0, 0.0])
WORDS = np.array(["no", "yes"])
SCHEMA = Schema({**dict.fromkeys(NAMES, Number(-1, 1)), "y": Category(["yes", "no"])}, target="y")


NUMBERS, LINEAR = "predict_proba", "decision_function"  # what tests/estimators/test_supervised.py asks a fitted model
ASKS = ("predict", "predict_proba", "predict_log_proba", "decision_function")
SCORING, VALUE = "neg_log_loss", "no"


def made(n: int = 4000, key: int = 1, classes: Any = WORDS) -> tuple[Any, Any]:
    rng = np.random.default_rng(key)
    X = rng.uniform(-1, 1, (n, 3))
    noisy = X @ TRUTH + 0.5 + rng.logistic(size=n)
    edges = np.linspace(-3, 3, len(classes) + 1)[1:-1] if len(classes) > 2 else [0.0]
    return X, np.asarray(classes)[np.digitize(noisy, edges)]


def rehearsal(**given: Any) -> Any:
    usual = {"method": "objective", "classes": ["no", "yes"], "x_norm": 2, "noise": Simulation(4)}
    return LogisticRegression(**{**usual, **given})


def with_schema(**given: Any) -> Any:
    return rehearsal(**{"schema": SCHEMA, "classes": None, "x_norm": None, **given})


def test_a_fit_finds_the_classes() -> None:
    X, y = made(20_000)
    model: Any = LogisticRegression(epsilon=2, classes=["yes", "no"], x_norm=2).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert np.allclose(model.coef_, TRUTH, atol=0.8)
    assert np.allclose(model.decision_function(X), (X @ model.coef_.T + model.intercept_)[:, 0])
    assert model.score(X, y) > 0.8
    chances = model.predict_proba(X)
    assert np.allclose(chances[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    assert np.allclose(np.exp(model.predict_log_proba(X)), chances)
    assert np.array_equal(model.predict(X), WORDS[(chances[:, 1] > 0.5).astype(int)])
    assert log_loss(y, chances) < 0.5
    assert model.released_ is True
    assert model.guarantee_ == Promise(Budget(2, 1e-6), model.plan_.theorem)
    assert model.plan_.theorem.id == "glm-adaptive/1"
    assert model.cost_ == model.plan_.cost == model.receipt_.cost
    assert model.certificate_.radius > 0
    assert {"ridge", "sigma", "radius"} <= set(model.details_)
    assert (model.n_features_in_, model.coef_names_) == (3, ("x0", "x1", "x2"))


@sampled(6)
@pytest.mark.parametrize("method", ["auto", "objective"])
@pytest.mark.parametrize("together", ["ovr", "softmax"])
def test_more_than_two_classes(method: str, together: str) -> None:
    colours = np.array([30, 10, 20])  # in no order
    X, y = made(20_000, classes=np.sort(colours))
    model = rehearsal(method=method, classes=colours, epsilon=4, multi_class=together).fit(X, y)
    assert model.classes_.tolist() == [10, 20, 30]
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == (3,)
    assert model.decision_function(X).shape == model.predict_proba(X).shape == (20_000, 3)
    assert np.allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert model.score(X, y) > max(0.6, np.mean(y == 30))
    assert log_loss(y, model.predict_proba(X)) < 0.95
    chances = np.exp(model.decision_function(X))
    chances = chances if together == "softmax" else chances / (1 + chances)
    assert np.allclose(model.predict_proba(X), chances / chances.sum(axis=1, keepdims=True))
    if together == "softmax":
        assert np.array_equal(model.set_params(multi_class="auto").fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("values", [None, [False, True], [3, 1, 2], ["x", "y", "z", "w"], [0.5, -1.5]])
def test_the_classes_of_a_schema(values: Any) -> None:
    column = Boolean() if values is None else Category(values)
    classes = sorted(values or [False, True])
    X, y = made(300, classes=np.array(classes))
    schema = Schema({**dict.fromkeys(NAMES, Number(-1, 1)), "y": column}, target="y")
    frame = pd.DataFrame(X, columns=NAMES)
    inside, beside = with_schema(schema=schema).fit(frame.assign(y=y)), with_schema(schema=schema).fit(frame, y)
    assert inside.classes_.tolist() == beside.classes_.tolist() == classes
    assert np.array_equal(inside.coef_, beside.coef_)
    assert inside.coef_.shape == (1 if len(classes) == 2 else len(classes), 3)
    array = rehearsal(classes=classes, x_norm=np.sqrt(3)).fit(X, y)  # the same rows, but for a rounding
    assert np.allclose(array.coef_, inside.coef_, atol=1e-3)


@pytest.mark.slow
def test_a_row_whose_label_is_none_of_the_classes_is_left_out() -> None:
    X, y = made(300)
    some = np.arange(300) % 7 > 0
    answer = rehearsal().fit(X[some], y[some]).coef_
    for strange in (None, "maybe", 7, np.nan, "YES", b"nope"):
        labels: Any = y.astype(object)
        labels[~some] = strange
        assert np.array_equal(rehearsal().fit(X, labels).coef_, answer)
        assert np.array_equal(rehearsal().fit(X, labels.tolist()).coef_, answer)
        frame = pd.DataFrame(X, columns=NAMES)
        expected = with_schema().fit(frame[some], y[some]).coef_
        assert np.array_equal(with_schema().fit(frame.assign(y=labels)).coef_, expected)
        assert np.array_equal(with_schema().fit(frame, labels).coef_, expected)


@sampled(3)
@pytest.mark.parametrize("method", ["auto", "objective", "output"])
def test_degenerate_tables_are_fitted_like_any_other(method: str) -> None:
    """One class only, no rows, one row, nothing but infinities: the same things happen, and nothing is said."""
    X, y = made(40)
    tables: list[tuple[Any, Any]] = [
        (X, np.full(40, "yes")), (X, np.full(40, "no")), (X[:0], y[:0]), (X[:1], y[:1]), (X * np.inf, y),
        (X * np.nan, y), (np.zeros_like(X), y), (X * 1e300, y), (X, [None] * 40),
    ]  # fmt: skip
    seen = set()
    for rows, labels in tables:
        with checks.no_warnings():
            model: Any = LogisticRegression(method=method, classes=["no", "yes"], x_norm=2).fit(rows, labels)
            assert np.isfinite(model.predict_proba(np.vstack([X, X * np.inf]))).all()
        seen.add(
            (model.released_, str(model.plan_), model.coef_.shape, tuple(model.classes_), tuple(sorted(vars(model))))
        )
    assert len(seen) == 1


def test_three_classes_of_which_one_is_there() -> None:
    X, _ = made(50)
    model = rehearsal(classes=range(3), method="auto", epsilon=20).fit(
        np.repeat(X, 20, axis=0), np.ones(1000, dtype=int)
    )
    assert np.mean(model.predict(X) == 1) > 0.9
    assert rehearsal(classes=range(3)).fit(X[:1], [2]).coef_.shape == (3, 3)


@sampled(2)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_intercept(intercept: bool) -> None:
    X, y = made(300)
    for method in ("objective", "auto"):
        assert bool(rehearsal(fit_intercept=intercept, method=method).fit(X, y).intercept_[0]) == intercept


def test_no_rows_have_no_predictions() -> None:
    model = rehearsal(classes=range(4)).fit(made(300)[0], np.zeros(300))
    assert model.predict_proba(np.empty((0, 3))).shape == (0, 4)


def test_plans_are_public_and_in_the_users_units(tiny: str) -> None:
    model = rehearsal(method=tiny, noise=None)
    assert [fit.rows for fit in model.plan(n_features=3, rows=100).forecast.fits] == [100]
    assert model.plan(3).forecast.error_of is ErrorOf.LINEAR
    assert "to the error of the linear function" in str(model.plan(3))
    assert model.fit(*made(30)).plan() == model.plan(3) == model.plan_
    with pytest.raises(ValueError, match="n_features"):
        rehearsal().plan()
    schema = Schema({"a": Number(0, 1), "y": Boolean()}, target="y")
    (one,) = with_schema(method=tiny, schema=schema, rows=9).plan().forecast.fits
    (two,) = rehearsal(method=tiny, classes=[0, 1], x_norm=0.5, rows=9).plan(1).forecast.fits
    assert (one.error, list(one.noise.values())) == (two.error, list(two.noise.values()))  # booleans have no units
    fitted = with_schema(method=tiny, schema=schema, noise=None).fit(pd.DataFrame({"a": [0.5], "y": [True]}))
    assert fitted.coef_.tolist() == [[2.0]]
    assert fitted.intercept_.tolist() == [0.0]
    assert fitted.noise_scale_.tolist() == [1.0]
    assert Tiny.last["losses"][0].classifies


@pytest.mark.slow
def test_a_grid_is_searched_in_private() -> None:
    X, y = made(4000)
    ledger = MemoryLedger(4, 1e-6, composition="tight")
    given = {"epsilon": 4, "noise": None, "ledger": ledger, "validation": made(200, 2), "selection": {"mean_runs": 3}}
    model = rehearsal(**given, proposals={"ridge": [4, 40], "composable": True}).fit(X, y)
    assert ledger.spent == model.cost_ == Cost(epsilon=4, delta=1e-6)
    assert model.receipt_.sequence == 1
    if model.released_:  # a random number of runs may be none
        assert isinstance(model.outcome_.value, Selected)
        assert model.best_proposal_["ridge"] in (4, 40)
        public, labels = made(200, 2)
        assert model.outcome_.value.score == pytest.approx(-log_loss(labels, model.predict_proba(public)), rel=1e-6)
    else:
        with pytest.raises(NotReleased, match='method="auto"'):
            model.predict(X)
    tested = rehearsal(method="output", proposals={"ridge": [2, 20], "shape": "hessian"}).fit(X, y)
    assert tested.certificate_.ridge in (2, 20)
    assert not hasattr(tested, "best_proposal_")


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"epsilon": 0}, ValueError, "epsilon"),
    ({"delta": 1}, ValueError, "delta"),
    ({"neighbours": "swap"}, ValueError, "neighbours"),
    ({"method": "adassp"}, ValueError, '"auto", "objective", "output"'),
    ({"proposals": {"rigde": 1}}, ValueError, 'no proposal "rigde"; allowed: "ridge"'),
    ({"proposals": {"ridge": [1, 2]}}, ValueError, "needs validation"),
    ({"validation": (1, 2)}, ValueError, "without a list of proposals"),
    ({"classes": None}, ValueError, "classes is needed"),
    ({"multi_class": "ovo"}, ValueError, "multi_class"),
    ({"classes": "no"}, TypeError, "a list of labels"),
    ({"classes": ["no"]}, ValueError, "at least two"),
    ({"classes": ["no", "no"]}, ValueError, "same label"),
    ({"classes": ["no", None]}, ValueError, "stand for a missing label"),
    ({"classes": range(2000)}, ValueError, "more than 1000"),
    ({"x_norm": -1}, ValueError, "x_norm"),
    ({"fit_intercept": "yes"}, TypeError, "fit_intercept"),
    ({"rows": 0}, ValueError, "rows"),
    ({"ledger": 5}, TypeError, "ledger"),
    ({"noise": 5}, TypeError, "noise"),
    ({"noise": Simulation(1)}, ValueError, "NOT PRIVATE"),
    ({"progress": "bar"}, TypeError, "progress"),
    ({"schema": SCHEMA}, ValueError, "leave out classes"),
    ({"schema": SCHEMA, "classes": None}, ValueError, "leave out x_norm"),
    ({"schema": "file.toml", "x_norm": None, "classes": None}, TypeError, "snugdp.Schema"),
    ({"schema": Schema({"a": Number(0, 1)}), "x_norm": None, "classes": None}, ValueError, "target"),
    (
        {"schema": Schema({"a": Number(0, 1), "y": Number(0, 1)}, target="y"), "x_norm": None, "classes": None},
        TypeError,
        "Boolean or a Category",
    ),
]
WITH_FEATURES: list[tuple[dict[str, Any], type[Exception], str]] = [  # the method needs their number to judge
    ({"delta": 0}, ValueError, "delta"),
    ({"neighbours": "replace"}, ValueError, "add_remove"),
    ({"proposals": {"ridge": 0.01}}, ValueError, "ridge must be at least"),
    ({"method": "output", "classes": ["no", "so", "yes"]}, ValueError, 'use "auto" or "objective"'),
    ({"proposals": {"composable": True}, "classes": ["no", "so", "yes"]}, ValueError, "not composable"),
    ({"method": "output", "proposals": {"shape": "round"}}, ValueError, "shape"),
]


@pytest.mark.parametrize("regression", [LinearRegression, SparseLinearRegression, PoissonRegression])
def test_a_regression_refuses_classes(regression: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"not a Category: classes are for|y_max is needed"):
        regression(schema=SCHEMA).plan()


def test_a_seed_is_a_rehearsal_and_says_so() -> None:
    X, y = made(60)
    with pytest.warns(NotPrivateWarning, match="NOT PRIVATE") as said:
        first = rehearsal(noise=None, random_state=3).fit(X, y)
    assert said[0].filename == __file__
    assert (first.guarantee_, first.receipt_) == (None, None)
    assert np.array_equal(rehearsal().fit(X, y).coef_, rehearsal().fit(X, y).coef_)
    with pytest.raises(ValueError, match="at least one row"):
        rehearsal().fit(X[:0], y[:0])


class Checked(LogisticRegression):
    """With classes read from the rows, as scikit-learn's checks declare none. Never do this."""

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, holdout: Any = None) -> Any:
        self._seen = y
        return super().fit(X, y, groups, holdout=holdout)

    def _response(self) -> ClassTarget:
        seen = np.asarray(self._seen)
        whole = seen.dtype.kind != "f" or (np.isfinite(seen).all() and (seen == np.round(seen)).all())
        classes = np.unique(seen) if whole and len(np.unique(seen)) > 1 else np.arange(2)
        given = LabelBounds(None, 1, self.fit_intercept, self.x_norm, classes)
        return ClassTarget(Logistic(), given, together=True)


VALUES = {
    "check_supervised_y_no_nan": "an error when a label is no number would tell such a row from others",
    "check_classifiers_regression_target": "labels that are none of the classes count as the first, whatever they are",
}


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"noise": Simulation(0)}])
def test_scikit_learns_own_battery(given: dict[str, Any]) -> None:
    """What it wants that would betray somebody must fail, and nothing else may but what noise on ten rows decides."""
    noisy = {"check_classifiers_one_label": "noise on ten rows"}
    found = failures(Checked(method="objective", x_norm=10, **given), {**VALUES, **noisy})
    assert found - set(noisy) == set(VALUES)


def table(n: int = ROWS) -> tuple[Any, Any]:
    return np.full((n, 2), CANARY), np.full(n, SECRET)


@sampled(9)
@pytest.mark.parametrize("kind", ["array", "list", "pandas", "schema"])
@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]])
def test_nothing_of_the_rows_is_kept(tiny: str, kind: str, classes: list[str]) -> None:
    bounds: dict[str, Any] = {"classes": classes, "x_norm": 10}
    if kind == "schema":
        columns: dict[str, Any] = {"a": Number(0, 10), "b": Number(0, 10), "y": Category(classes)}
        bounds = {"schema": Schema(columns, target="y"), "classes": None, "x_norm": None}
    model = rehearsal(method=tiny, noise=None, ledger=MemoryLedger(9, 0.1, composition="tight"), **bounds)
    checks.assert_nothing_kept(model.fit, table, kind)
