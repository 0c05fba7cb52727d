"""What linear and logistic regression promise alike: containers, schemas, plans, refusals, ledgers, pickles."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from snugdp import BudgetExceededError, Cost, MemoryLedger, NotReleased
from snugdp.estimators.methods.glm import GLM_METHODS
from snugdp.estimators.methods.linear import METHODS
from tests.effort import sampled
from tests.estimators import test_linear, test_logistic
from tests.estimators.checks import Untouchable

NAMES = ["a", "b", "c"]
MODULES: dict[str, Any] = {"linear": test_linear, "logistic": test_logistic}


@pytest.fixture(params=MODULES)
def face(request: pytest.FixtureRequest) -> Any:
    """The module of an estimator, with its builders: ``made``, ``rehearsal``, ``with_schema``."""
    return MODULES[request.param]


def test_every_container_gives_the_same_fit(face: Any) -> None:
    X, y = face.made(300)
    columns = dict(zip(NAMES, X.T, strict=True))
    odd = np.random.default_rng(1).permutation(len(y))  # labels of rows, which must not matter
    answer = face.rehearsal().fit(X, y)
    named = [pd.DataFrame(columns, index=odd), pl.DataFrame(columns), pa.table(columns)]
    cells = y.tolist()
    targets = [cells, tuple(cells), y.astype(object), pd.Series(y, index=odd), pl.Series(cells), pa.array(cells)]
    if face is test_logistic:
        targets.append(pd.Series(y, dtype="category"))
    for rows in (X, X.tolist(), X.astype(object), np.asfortranarray(X), pd.DataFrame(X), *named):
        model = face.rehearsal().fit(rows, y)
        assert np.array_equal(model.coef_, answer.coef_)
        assert np.allclose(getattr(model, face.NUMBERS)(rows), getattr(answer, face.NUMBERS)(X), rtol=1e-12)
        if any(rows is table for table in named):
            assert model.feature_names_in_.tolist() == NAMES == list(model.coef_names_)
        else:
            assert not hasattr(model, "feature_names_in_")
    for target in targets:
        for rows in (X, *named):
            assert np.array_equal(face.rehearsal().fit(rows, target).coef_, answer.coef_)


def test_a_column_as_target_is_taken_with_a_warning(face: Any) -> None:
    X, y = face.made(300)
    answer = face.rehearsal().fit(X, y).coef_
    assert np.array_equal(face.rehearsal().fit(X, [[value] for value in y]).coef_, answer)  # a list declares no shape
    for column in (y[:, None], pd.DataFrame({"y": y})):
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            assert np.array_equal(face.rehearsal().fit(X, column).coef_, answer)


@pytest.mark.parametrize(
    ("name", "method", "score"), [("linear", "adassp", 0.3), ("logistic", "objective", 0.7), ("logistic", "auto", 0.7)]
)
def test_a_table_with_a_schema(name: str, method: str, score: float, tmp_path: Path) -> None:
    face = MODULES[name]
    X, y = face.made(300)
    whole = pd.DataFrame(dict(zip(NAMES, X.T, strict=True)), index=range(7, 307)).assign(y=y)
    whole.reset_index(drop=True).to_parquet(tmp_path / "table.parquet")
    whole.to_csv(tmp_path / "table.csv", index=False)
    answer = face.with_schema(method=method).fit(whole)
    for rows, target in (
        (whole[NAMES], y),
        (whole[NAMES], whole["y"]),
        (pl.from_pandas(whole), None),
        (tmp_path / "table.parquet", None),
        (tmp_path / "table.csv", None),
    ):
        model = face.with_schema(method=method).fit(rows, target)
        assert np.array_equal(model.coef_, answer.coef_)
        assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, NAMES)
        assert np.array_equal(model.predict(whole), answer.predict(whole[NAMES]))
    shuffled = whole[["c", "y", "a", "b"]]
    assert np.allclose(getattr(answer, face.LINEAR)(shuffled), X @ np.ravel(answer.coef_) + answer.intercept_)
    assert answer.score(whole[NAMES], y) > score


def test_rows_to_predict_are_read_as_the_fit_reads_them(face: Any) -> None:
    X, y = face.made(300)
    model = face.rehearsal().fit(X, y)
    ask = getattr(model, face.LINEAR)
    far, nan = np.array([[40.0, 0, 0], [0, np.inf, 0]]), np.array([[np.nan, 1, 0]])
    assert np.allclose(ask(far), ask([[2.0, 0, 0], [0, 2, 0]]))
    assert np.allclose(ask(nan), ask([[0, 1, 0]]))
    assert model.predict(np.empty((0, 3))).shape == (0,)
    with pytest.raises(ValueError, match=r"X has 2 features, but L.*Regression is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(NotFittedError):
        face.rehearsal().predict(X)


@sampled(2)
@pytest.mark.parametrize(
    ("name", "method"), [*(("linear", each) for each in METHODS), *(("logistic", each) for each in GLM_METHODS)]
)
def test_all_methods_make_a_plan_and_a_fit(name: str, method: str) -> None:
    face = MODULES[name]
    model = face.rehearsal(method=method, rows=400, proposals={"steps": 3} if method == "descent" else None)
    assert model.plan(3).cost.neighbours.value == "add_remove"
    model.fit(*face.made(400))
    assert [fit.rows for fit in model.plan_.forecast.fits] == [400]
    if model.released_:
        assert model.predict(np.zeros((2, 3))).shape == (2,)


def test_a_refused_fit_is_fitted_and_refused(face: Any, tiny: str) -> None:
    X, y = face.made(30)
    ledger = MemoryLedger(10, 1e-3, composition="tight")
    model = face.rehearsal(method=tiny, noise=None, ledger=ledger).fit(X, y)
    assert model.coef_.shape[-1] == 3
    model.set_params(proposals={"refuse": True}).fit(X, y)
    check_is_fitted(model)
    assert model.released_ is False
    assert ledger.spent == Cost(epsilon=2, delta=2e-6)
    assert model.receipt_.sequence == 2
    assert model.guarantee_.epsilon == 1
    for gone in ("coef_", "intercept_", "noise_scale_", "details_", "coef_names_"):
        assert not hasattr(model, gone)
    for name in face.ASKS:
        with pytest.raises(NotReleased, match="more rows"):
            getattr(model, name)(X)
    with pytest.raises(NotReleased, match="more rows"):
        model.score(X, y)
    with pytest.raises(NotReleased):
        pickle.loads(pickle.dumps(model)).predict(X)
    assert not isinstance(NotReleased("x"), NotFittedError)


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [(name, *case) for name, module in MODULES.items() for case in [*module.BAD, *module.WITH_FEATURES]],
    ids=lambda value: str(value)[:40],
)
def test_bad_parameters_are_refused_before_anything_is_charged_or_read(
    name: str, changes: dict[str, Any], error: type[Exception], message: str, unspent: MemoryLedger
) -> None:
    face = MODULES[name]
    model = face.rehearsal(**{"noise": None, "ledger": unspent, **changes})
    for X, y in (face.made(30), (Untouchable(), Untouchable())):
        if not isinstance(X, Untouchable) or (changes, error, message) in face.BAD:
            with pytest.raises(error, match=message):
                model.fit(X, y)
    if not {"ledger", "noise"} & set(changes):
        with pytest.raises(error, match=message):
            model.plan(n_features=3)


def test_a_missing_target_costs_nothing(face: Any, unspent: MemoryLedger) -> None:
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        face.rehearsal(noise=None, ledger=unspent).fit(np.ones((3, 2)), None)


@pytest.mark.parametrize(
    ("X", "shape", "error", "message"),
    [
        (np.ones((3, 2)), 2, ValueError, "inconsistent"),
        (np.ones((3, 2)), (3, 2), ValueError, "1d array"),
        (pd.DataFrame({"a": [1.0, 2.0]}), 3, ValueError, "inconsistent"),
        (pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])}), 2, TypeError, '"a" must hold numbers'),
        (pl.DataFrame({"a": [["x"], ["y"]]}), 2, TypeError, '"a" must hold numbers'),
        (np.ones(3), 3, ValueError, "Reshape"),
        ("table.parquet", 3, ValueError, "2D"),
        (pd.DataFrame({"a": [1.0, 2.0], 5: [1.0, 2.0]}), 2, TypeError, "all be text"),
        (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), 2, ValueError, "a"),
        (pl.DataFrame({"a": [1.0]}).lazy(), 1, (TypeError, ValueError), "2D"),
        (np.ones((3, 0)), 3, ValueError, "0 feature"),
    ],
)
def test_bad_data(face: Any, X: Any, shape: Any, error: Any, message: str, *, unspent: MemoryLedger) -> None:
    y = np.full(shape, face.VALUE)
    for target in (y, pd.DataFrame(y)) if y.ndim == 2 else (y,):
        with pytest.raises(error, match=message):
            face.rehearsal(noise=None, ledger=unspent).fit(X, target)


@pytest.mark.parametrize(
    ("X", "given", "error", "message"),
    [
        (np.ones((3, 3)), True, TypeError, "columns by name"),
        (np.ones((3, 3)), False, TypeError, "cannot read a table"),
        (pd.DataFrame({"a": [1.0], "b": [1.0]}), True, ValueError, 'no column "c"'),
        (pd.DataFrame(np.ones((1, 4)), columns=[*NAMES, "y"]), True, ValueError, 'column "y", the target, already'),
        (pd.DataFrame({"a": pd.to_datetime(["2020"]), "b": [1.0], "c": [1.0]}), True, TypeError, "convert the column"),
        ("nowhere.parquet", False, ValueError, "no file"),
        (Path("nowhere.parquet"), True, TypeError, "leave out y"),
    ],
)
def test_bad_tables(
    face: Any, X: Any, given: bool, error: type[Exception], message: str, *, unspent: MemoryLedger
) -> None:
    y = [face.VALUE] * (len(X) if hasattr(X, "__len__") else 1) if given else None
    with pytest.raises(error, match=message):
        face.with_schema(noise=None, ledger=unspent).fit(X, y)


def test_clones_and_searches_share_the_ledger_and_every_fit_is_charged(face: Any, tiny: str) -> None:
    X, y = face.made(60)
    ledger = MemoryLedger(100, 1e-3, composition="tight")
    model = face.rehearsal(epsilon=0.5, method=tiny, noise=None, ledger=ledger)
    twin = clone(model)
    assert twin.ledger is ledger
    twin.fit(X, y)
    assert ledger.spent == Cost(epsilon=0.5, delta=1e-6)
    cross_val_score(model, X, y, cv=3)
    assert ledger.spent == Cost(epsilon=2, delta=4e-6)
    search = GridSearchCV(model, {"epsilon": [0.5, 1.0], "x_norm": [1, 2]}, cv=3, scoring=face.SCORING).fit(X, y)
    last = search.best_params_["epsilon"]
    assert ledger.spent == Cost(epsilon=2, delta=4e-6) + Cost(epsilon=9, delta=12e-6) + Cost(epsilon=last, delta=1e-6)
    make_pipeline(FunctionTransformer(), model).fit(X, y)
    assert ledger.spent.delta == Cost(delta=18e-6).delta
    assert copy.deepcopy(model).get_params()["epsilon"] == 0.5


def test_a_ledger_that_runs_out_stops_the_fit_and_leaves_no_model(face: Any, tiny: str) -> None:
    X, y = face.made(60)
    model = face.rehearsal(method=tiny, noise=None, ledger=MemoryLedger(1.5, 1e-3, composition="tight")).fit(X, y)
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_pickles(face: Any) -> None:
    X, y = face.made(300)
    model = face.rehearsal(noise=None, ledger=MemoryLedger(10, 1e-3, composition="tight")).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(getattr(loaded, face.NUMBERS)(X), getattr(model, face.NUMBERS)(X))
    assert loaded.guarantee_ == model.guarantee_
    with pytest.raises(RuntimeError, match="stayed behind"):
        loaded.fit(X, y)
    loaded.set_params(ledger=MemoryLedger(10, 1e-3, composition="tight")).fit(X, y)


def test_tags(face: Any) -> None:
    tags, described = (make(noise=None).__sklearn_tags__() for make in (face.rehearsal, face.with_schema))
    assert tags.non_deterministic
    assert tags.input_tags.allow_nan
    assert (tags.regressor_tags or tags.classifier_tags).poor_score
    assert (tags.classifier_tags is not None) == (face is test_logistic)
    assert tags.classifier_tags is None or tags.classifier_tags.multi_class
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert not described.input_tags.sparse
    assert not tags.no_validation
    assert not described.target_tags.required
    assert not face.with_schema().__sklearn_tags__().non_deterministic
