"""Sparse models end to end: the right columns, sound coefficients, every container, and nothing private in sight."""

from __future__ import annotations

import pickle
import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from snugdp import (
    Boolean,
    Budget,
    BudgetExceededError,
    Category,
    Cost,
    MemoryLedger,
    NotPrivate,
    NotPrivateWarning,
    NotReleased,
    Number,
    Schema,
    Simulation,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from tests.effort import often, repeated, sampled
from tests.estimators import checks
from tests.estimators.checks import CANARY, ROWS
from tests.estimators.test_check_estimator import VALUES, failures

CLASSES = ["no", "yes"]


def truth(n: int, d: int, s: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Rows spread evenly, their columns that matter, targets and labels."""
    rng = np.random.default_rng(seed)
    X, places = rng.uniform(-1, 1, (n, d)), np.sort(rng.choice(d, s, replace=False))
    signal = X[:, places] @ rng.choice([-1.0, 1.0], s)
    y = np.clip(0.2 * signal + 0.1 + 0.05 * rng.normal(size=n), -1, 1)
    labels = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-3 * signal)), "yes", "no")
    return X, places, y, labels


def line(**given: Any) -> SparseLinearRegression:
    return SparseLinearRegression(**{"n_features_to_select": 3, "y_bound": 1, **given})


def labelled(**given: Any) -> SparseLogisticRegression:
    return SparseLogisticRegression(**{"n_features_to_select": 3, "classes": CLASSES, **given})


@pytest.mark.slow
def test_a_line_on_the_right_columns() -> None:
    X, places, y, _ = truth(6000, 100, 3)
    model = line().fit(X, y)
    assert model.released_
    assert model.support_.tolist() == places.tolist()
    assert sorted(model.ranking_) == places.tolist()
    assert model.selected_names_.tolist() == [f"x{j}" for j in places]
    assert model.coef_.shape == (100,)
    assert np.flatnonzero(model.coef_).tolist() == places.tolist()
    assert np.allclose(np.abs(model.coef_[places]), 0.2, atol=0.03)
    assert abs(model.intercept_ - 0.1) < 0.03
    inside = np.linalg.norm(X[:, places], axis=1) <= 0.8 * np.sqrt(3)  # longer rows are shortened
    assert np.allclose(model.predict(X)[inside], (X @ model.coef_ + model.intercept_)[inside])
    assert model.cost_.fits(Budget(1, 1e-6))
    assert model.cost_ == model.plan_.cost
    assert str(model.guarantee_) == "(1, 1e-06)-differential privacy, neighbours: add_remove"
    assert str(model.plan(100)) == str(model.plan_)
    assert model.outcome_.receipt.cost == model.cost_


@pytest.mark.slow
def test_labels_on_the_right_columns() -> None:
    X, places, _, labels = truth(6000, 100, 3)
    model = labelled().fit(X, labels)
    assert model.support_.tolist() == places.tolist()
    assert model.coef_.shape == (1, 100)
    assert model.intercept_.shape == (1,)
    assert np.allclose(np.abs(model.coef_[0, places]), 3, atol=0.6)
    assert model.score(X, labels) > 0.8
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.allclose(np.log(chances), model.predict_log_proba(X))
    assert ((chances[:, 1] > 0.5) == (model.predict(X) == "yes")).all()
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "yes")).all()
    assert model.classes_.tolist() == CLASSES
    assert model.cost_.fits(Budget(1, 1e-6))


@sampled(2)
@pytest.mark.parametrize("model", [line(), labelled()], ids=["line", "labels"])
def test_every_container_gives_the_same(model: Any) -> None:
    X, _, y, labels = truth(500, 8, 3)
    X[X < -0.5] = 0
    target: Any = labels if isinstance(model, SparseLogisticRegression) else y
    model.set_params(noise=Simulation(5))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    given = [X, X.tolist(), sp.csr_matrix(X), sp.csc_array(X), frame, pl.DataFrame(frame), frame.set_axis(frame.index[::-1])]  # fmt: skip # noqa: E501
    fits = [clone(model).fit(rows, target) for rows in given]
    for fit, rows in zip(fits, given, strict=True):
        assert np.array_equal(fit.coef_, fits[0].coef_)
        assert np.allclose(fit.predict_proba(rows) if target is labels else fit.predict(rows), fits[0].predict_proba(X) if target is labels else fits[0].predict(X))  # fmt: skip # noqa: E501
        assert fit.n_features_in_ == 8
    assert fits[4].feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="features"):
        fits[0].predict(X[:, :5])
    with pytest.raises(ValueError, match="features"):
        fits[2].predict(sp.csr_matrix(X[:, :5]))


def test_bounds_for_every_column() -> None:
    X, places, y, _ = truth(6000, 20, 3)
    units = np.linspace(0.5, 40, 20)
    model = line(x_bound=units.tolist()).fit(X * units, y)
    assert model.support_.tolist() == places.tolist()
    assert np.allclose(np.abs(model.coef_[places]) * units[places], 0.2, atol=0.03)
    assert np.allclose(model.predict(3 * X * units), model.predict(np.clip(3 * X, -1, 1) * units))


def test_a_schema_with_categories() -> None:
    rng = np.random.default_rng(2)
    n = 8000
    city, age, member = rng.integers(0, 4, n), rng.uniform(0, 100, n), rng.random(n) < 0.5
    junk = {f"j{k}": rng.uniform(0, 1, n) for k in range(10)}
    frame = pl.DataFrame({"city": np.array(["a", "b", "c", "d"])[city], "age": age, "member": member, **junk})
    columns: dict[str, Any] = {"city": Category(["a", "b", "c", "d"]), "age": Number(0, 100), "member": Boolean(), **dict.fromkeys(junk, Number(0, 1))}  # fmt: skip # noqa: E501
    y = 0.02 * age + (city == 2)
    model = SparseLinearRegression(2, schema=Schema({**columns, "y": Number(0, 4)}, target="y"))
    for fit in (model.fit(frame, y), clone(model).fit(frame.with_columns(y=y))):
        assert fit.selected_names_.tolist() == ["city=c", "age"]
        assert fit.coef_[4] == pytest.approx(0.02, abs=0.004)
        assert np.abs(fit.predict(frame) - y).mean() < 0.2
        assert fit.n_features_in_ == 13
    labels = SparseLogisticRegression(2, schema=Schema({**columns, "old": Boolean()}, target="old"))
    fit = labels.fit(frame, age > 60)
    assert "age" in fit.selected_names_
    assert (fit.predict(frame) == (age > 60)).mean() > 0.9
    assert fit.classes_.tolist() == [False, True]
    odds = fit.decision_function(frame)
    assert np.corrcoef(odds, age)[0, 1] > 0.9
    with pytest.raises(TypeError, match="Boolean"):
        SparseLogisticRegression(2, schema=model.schema).fit(frame, y)


def test_a_file_is_read_before_the_charge(tmp_path: Any) -> None:
    X, places, y, _ = truth(3000, 8, 2)
    path = tmp_path / "rows.parquet"
    pl.DataFrame({**{f"c{j}": X[:, j] for j in range(8)}, "y": y}).write_parquet(path)
    schema = Schema({**{f"c{j}": Number(-1, 1) for j in range(8)}, "y": Number(-1, 1)}, target="y")
    for selection in ("gumbel", "votes"):
        model = SparseLinearRegression(2, epsilon=4, method="adassp", schema=schema, selection=selection).fit(path)
        assert model.released_
        assert model.support_.tolist() == places.tolist()


@pytest.mark.slow
def test_short_rows_need_less_noise() -> None:
    """Normalised rows: Gaussian noise on all scores finds at this size what Gumbel noise cannot."""
    rng = np.random.default_rng(8)
    X = sp.csr_matrix(np.abs(rng.normal(size=(8000, 400))) * (rng.random((8000, 400)) < 0.05))
    X = sp.diags(1 / np.maximum(np.sqrt(X.multiply(X).sum(axis=1)).A1, 1e-9)) @ X
    places = np.arange(8) * 40
    y = np.where(np.asarray(X[:, places].sum(axis=1)).ravel() > 0, "yes", "no")
    found = {}
    for selection in ("gaussian", "gumbel"):
        model = labelled(n_features_to_select=8, selection=selection, row_norm=1, noise=Simulation(4)).fit(X, y)
        found[selection] = set(model.support_) & set(places)
        assert model.cost_.fits(Budget(1, 1e-6))
    assert len(found["gaussian"]) == 8 > len(found["gumbel"])
    with pytest.raises(ValueError, match="row_norm"):
        labelled(selection="gaussian").fit(X, y)
    with pytest.raises(ValueError, match="row_norm"):
        labelled(selection="gaussian", row_norm=0).fit(X, y)


@pytest.mark.slow
def test_votes_release_or_refuse() -> None:
    X, places, y, labels = truth(6000, 30, 2)
    for model, target in ((line(), y), (labelled(), labels)):
        model.set_params(n_features_to_select=2, epsilon=4, selection="votes")
        assert model.fit(X, target).support_.tolist() == places.tolist()
        assert model.cost_.epsilon == Cost(epsilon="0.8").epsilon
        assert model.cost_.fits(Budget(4, 1e-6))
        model.set_params(noise=Simulation(1)).fit(X[:40], target[:40])
        assert not model.released_
        assert isinstance(model.outcome_, NotPrivate)
        assert not hasattr(model, "support_")
        with pytest.raises(NotReleased):
            model.predict(X)


@sampled(3)
@pytest.mark.parametrize("method", ["objective", "sufficient", "adassp", "output", "posterior"])
def test_other_lines(method: str) -> None:
    X, places, y, _ = truth(6000, 30, 3)
    model = line(method=method, epsilon=4).fit(X, y)
    assert model.support_.tolist() == places.tolist()
    assert model.cost_.fits(Budget(4, 1e-6))
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * np.var(y)
    if method in ("output", "posterior"):
        assert model.certificate_ is not None  # the curvature on the chosen columns


@sampled(2)
@pytest.mark.parametrize("method", ["objective", "output"])
def test_other_ways_with_labels(method: str) -> None:
    X, places, _, labels = truth(6000, 30, 3)
    model = labelled(method=method, epsilon=4).fit(X, labels)
    assert model.support_.tolist() == places.tolist()
    assert model.cost_.fits(Budget(4, 1e-6))
    assert model.score(X, labels) > 0.75


@sampled(2)
@repeated
@pytest.mark.parametrize(("n", "d", "s", "epsilon"), [(5000, 200, 5, 0.5), (8000, 300, 15, 1)])
def test_recall_of_the_supports_of_the_text(n: int, d: int, s: int, epsilon: float) -> None:
    for seed in range(often(1, 3)):
        X, places, _, labels = truth(n, d, s, seed)
        model = labelled(n_features_to_select=s, epsilon=epsilon, noise=Simulation(seed)).fit(X, labels)
        assert len(set(model.support_) & set(places)) >= 0.8 * s


@pytest.mark.slow
def test_ten_thousand_columns_of_text() -> None:
    """A bag of words with a few telling ones; the matrix is never made dense."""
    rng = np.random.default_rng(3)
    n, d = 10_000, 10_000
    telling = np.array([11, 222, 3333, 4444, 9999])
    labels = rng.random(n) < 0.5
    row, word = np.repeat(np.arange(n), 30), rng.integers(0, d, 30 * n)
    shown = np.nonzero(rng.random((n, 5)) < np.where(labels, 0.6, 0.1)[:, None])
    plain = ~np.isin(word, telling)
    places = np.r_[row[plain], shown[0]], np.r_[word[plain], telling[shown[1]]]
    words = sp.coo_matrix((np.ones(len(places[0])), places), shape=(n, d))
    model = SparseLogisticRegression(5, epsilon=2, classes=[False, True], x_norm=1.5)
    model.plan(d)
    start = time.process_time()
    model.fit(words, labels)
    assert time.process_time() - start < 20  # about 1 s on an idle core
    assert model.support_.tolist() == telling.tolist()
    assert (model.predict(words) == labels).mean() > 0.85


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"n_features_to_select": 0}, "n_features_to_select"),
        ({"n_features_to_select": 9}, "at most 4"),
        ({"n_features_to_select": None}, "n_features_to_select"),
        ({"selection": "best"}, "selection must be"),
        ({"selection_share": 0}, "between 0 and 1"),
        ({"selection_share": 1}, "between 0 and 1"),
        ({"selection": "votes", "blocks": 0}, "blocks"),
        ({"selection": "votes", "blocks": None}, "blocks"),
        ({"method": "magic"}, "method must be"),
        ({"proposals": {"spice": 1}}, "no proposal"),
        ({"proposals": [1]}, "proposals must"),
        ({"method": "output", "proposals": {"ridge": [1, 2]}}, "no list"),
        ({"method": "descent"}, "rows"),
        ({"y_bound": None, "x_bound": 2}, "y_bound is needed"),
        ({"x_bound": 0}, "x_bound"),
        ({"x_bound": [1, 2]}, "x_bound"),
        ({"x_norm": 0}, "x_norm"),
        ({"delta": 0}, "delta"),
        ({"neighbours": "replace"}, "add_remove"),
        ({"fit_intercept": 1}, "fit_intercept"),
        ({"schema": 3}, "schema"),
        ({"epsilon": 0}, "epsilon"),
        ({"rows": 0}, "rows"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_paid(
    given: dict[str, Any], error: str, unspent: MemoryLedger
) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        line(ledger=unspent, **given).fit(np.ones((5, 4)), np.ones(5))


@pytest.mark.parametrize("classes", [None, ["a"], ["a", "b", "c"], "ab"])
def test_two_classes_are_declared_with_bounds(classes: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="classes"):
        labelled(classes=classes, x_bound=2).fit(np.ones((5, 4)), ["a"] * 5)


def test_the_ledger_pays_once_for_both_stages() -> None:
    X, _, y, _ = truth(500, 8, 3)
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    model = line(ledger=ledger).fit(X, y)
    assert model.outcome_.receipt.sequence == 1
    assert ledger.spent == model.cost_
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert "ledger of another process" in repr(pickle.loads(pickle.dumps(model)))


def test_a_seed_is_a_rehearsal() -> None:
    X, _, y, _ = truth(500, 8, 3)
    with pytest.warns(NotPrivateWarning):
        first = line(random_state=3).fit(X, y)
    with pytest.warns(NotPrivateWarning):
        again = line(random_state=3).fit(X, y)
    assert first.guarantee_ is None
    assert np.array_equal(first.coef_, again.coef_)


@sampled(8)
@pytest.mark.parametrize("kind", ["array", "csr", "pandas"])
@pytest.mark.parametrize("selection", ["gumbel", "votes"])
def test_nothing_of_the_rows_is_kept(kind: str, selection: str) -> None:
    model = line(method="adassp", selection=selection, ledger=MemoryLedger(9, 0.1, composition="tight"))
    checks.assert_nothing_kept(model.fit, lambda: (np.full((ROWS, 4), CANARY), np.full(ROWS, CANARY)), kind)


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("selection", ["gumbel", "votes"])
def test_the_number_of_rows_does_not_show(selection: str) -> None:
    def public(n: int) -> list[Any]:
        X, y, labels = np.ones((n, 4)), np.ones(n), np.array(["yes"] * n, dtype=object)
        seen = []
        for kind in ("array", "csr", "pandas"):
            for model, target in ((line(method="adassp"), y), (labelled(method="objective"), labels)):
                fitted = model.set_params(selection=selection).fit(checks.contained(X, kind), target)
                names = sorted(vars(fitted)) if fitted.released_ and selection == "gumbel" else []
                seen.append((str(fitted.plan_), names))
        return seen

    checks.assert_number_of_rows_does_not_show(public)


def test_errors_name_no_length() -> None:
    for rows in (np.ones((ROWS, 4)), sp.csr_matrix(np.ones((ROWS, 4))), pd.DataFrame(np.ones((ROWS, 4)))):
        with pytest.raises(ValueError, match="inconsistent") as caught:
            line().fit(rows, np.ones(ROWS - 1))
        assert not checks.shows(str(caught.value))


@pytest.mark.slow
def test_scikit_learns_battery() -> None:
    model = line(n_features_to_select=1, method="adassp", y_bound=5, x_bound=5, noise=Simulation(0))
    assert failures(model, VALUES) == set(VALUES)


LABELS = {
    **VALUES,
    "check_classifiers_one_label": "noise on ten rows, and the classes are not read from them",
    "check_classifiers_classes": "classes are declared: labels of another type are a mistake of the program",
    "check_classifiers_regression_target": "whether targets look like labels would be read from the rows",
    "check_classifier_not_supporting_multiclass": "a third label in the rows would show: it counts as the first class",
}


@pytest.mark.slow
def test_scikit_learns_battery_for_classifiers() -> None:
    model = labelled(n_features_to_select=1, method="objective", classes=[0, 1], x_bound=5, noise=Simulation(0))
    assert failures(model, LABELS) == set(LABELS)


@pytest.mark.slow
def test_in_a_pipeline_and_a_clone() -> None:
    X, places, y, _ = truth(6000, 100, 3)
    ledger = MemoryLedger(3, 1e-5, composition="tight")
    model = make_pipeline(FunctionTransformer(sp.csr_matrix), line(ledger=ledger)).fit(X, y)
    assert model[-1].support_.tolist() == places.tolist()
    assert clone(model[-1]).ledger is ledger


@pytest.mark.slow
def test_fewer_columns_are_chosen_where_fewer_were_found() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20_000))
    table = pl.DataFrame({"a": a, "b": b, "gone": np.full(20_000, np.nan), "y": 2 * a - b})
    schema = Schema(dict.fromkeys(table.columns, Number()), target="y")
    model = SparseLinearRegression(3, epsilon=2, schema=schema, noise=Simulation(1)).fit(table)
    assert sorted(model.selected_names_) == ["a", "b"]
