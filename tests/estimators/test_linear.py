"""The face of linear regression: what goes in, what comes out, what is refused, and who pays."""

from __future__ import annotations

import ast
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

from snugdp import (
    Boolean,
    BudgetExceededError,
    Category,
    Cost,
    LinearRegression,
    MemoryLedger,
    NotReleased,
    Number,
    Schema,
    Simulation,
    estimators,
)
from snugdp.core.guarantee import Budget
from snugdp.estimators.base import Promise
from snugdp.estimators.methods.linear import METHODS
from snugdp.propose.forecast import ErrorOf, noted
from tests.estimators.tiny import Tiny, tiny  # noqa: F401

NAMES = ["a", "b", "c"]
TRUTH = np.array([1.0, -2.0, 0.5])
SCHEMA = Schema({**dict.fromkeys(NAMES, Number(-1, 1)), "y": Number(-1, 7)}, target="y")


def made(n: int = 4000, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ TRUTH + 3 + rng.normal(0, 0.1, n)


def rehearsal(**given: Any) -> Any:
    return LinearRegression(**{"method": "adassp", "x_norm": 2, "y_bound": (-1, 7), "noise": Simulation(4), **given})


def with_schema(**given: Any) -> Any:
    return LinearRegression(**{"method": "adassp", "schema": SCHEMA, "noise": Simulation(4), **given})


def test_a_fit_finds_the_line() -> None:
    X, y = made(20_000)
    model: Any = LinearRegression(epsilon=2, method="sufficient", x_norm=2, y_bound=(-1, 7)).fit(X, y)
    assert np.allclose(model.coef_, TRUTH, atol=0.25)
    assert model.intercept_ == pytest.approx(3, abs=0.25)
    assert np.allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert model.score(X, y) > 0.9
    assert model.released_ is True
    assert model.noise_scale_.shape == (3,)
    assert 0 < model.noise_scale_.max() < 0.1
    assert model.guarantee_ == Promise(Budget(2, 1e-6), model.plan_.theorem)
    assert model.cost_ == model.plan_.cost == model.receipt_.cost
    assert model.receipt_.ledger == "this call"
    assert model.outcome_.value is not None
    assert set(model.details_) == {"ridge", "clip", "lowest"}
    assert (model.n_features_in_, model.coef_names_) == (3, ("x0", "x1", "x2"))


def test_every_container_gives_the_same_fit() -> None:
    X, y = made(300)
    columns = dict(zip(NAMES, X.T, strict=True))
    odd = np.random.default_rng(1).permutation(len(y))  # labels of rows, which must not matter
    answer = rehearsal().fit(X, y)
    named = [pd.DataFrame(columns, index=odd), pl.DataFrame(columns), pa.table(columns)]
    for rows in (X, X.tolist(), X.astype(object), np.asfortranarray(X), pd.DataFrame(X), *named):
        for target in (y, y.tolist(), tuple(y), y.astype(object), pd.Series(y), pl.Series(y), pa.array(y)):
            model = rehearsal().fit(rows, target)
            assert np.array_equal(model.coef_, answer.coef_)
        assert np.allclose(model.predict(rows), answer.predict(X), rtol=1e-12)
        if any(rows is table for table in named):
            assert model.feature_names_in_.tolist() == NAMES == list(model.coef_names_)
        else:
            assert not hasattr(model, "feature_names_in_")


def test_a_table_with_a_schema(tmp_path: Path) -> None:
    X, y = made(300)
    whole = pd.DataFrame(dict(zip(NAMES, X.T, strict=True)), index=range(7, 307)).assign(y=y)
    path = tmp_path / "table.parquet"
    whole.reset_index(drop=True).to_parquet(path)
    answer = with_schema().fit(whole)
    for rows, target in ((whole[NAMES], y), (whole[NAMES], whole["y"]), (pl.from_pandas(whole), None), (path, None)):
        model = with_schema().fit(rows, target)
        assert np.array_equal(model.coef_, answer.coef_)
        assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, NAMES)
    shuffled = whole[["c", "y", "a", "b"]]
    assert np.allclose(answer.predict(shuffled), X @ answer.coef_ + answer.intercept_)
    wild = pd.DataFrame({"a": [5.0, None], "b": [0.0, 0.0], "c": [0.0, 0.0]})
    tame = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 0.0], "c": [0.0, 0.0]})
    assert np.allclose(answer.predict(wild), answer.predict(tame))


def test_categories_and_truth_values() -> None:
    rng = np.random.default_rng(5)
    n = 30_000
    table = pl.DataFrame({
        "city": rng.choice(["Rome", "Oslo"], n), "member": rng.random(n) < 0.5, "age": rng.uniform(0, 100, n),
    })  # fmt: skip
    y = np.where(table["city"] == "Rome", 20, 40) + 10 * table["member"].to_numpy() + 0.2 * table["age"].to_numpy()
    columns: Any = {"city": Category(["Rome", "Oslo"]), "member": Boolean(), "age": Number(0, 100), "y": Number(0, 100)}
    model = LinearRegression(
        epsilon=8, method="sufficient", schema=Schema(columns, target="y"), noise=Simulation(0), fit_intercept=False
    ).fit(table, y)
    assert model.coef_names_ == ("city=Rome", "city=Oslo", "member", "age")
    assert model.n_features_in_ == 3
    assert np.abs(model.predict(table) - y).mean() < 3
    assert [fit.rows for fit in model.plan().forecast.fits] == [1_000, 10_000, 100_000, 1_000_000]
    assert list(model.plan().forecast.fits[0].noise) == list(model.coef_names_)
    assert "(city=Rome)" in str(model.plan())


def test_rows_to_predict_are_read_as_the_fit_reads_them() -> None:
    X, y = made(300)
    model = rehearsal().fit(X, y)
    far, nan = np.array([[40.0, 0, 0], [0, np.inf, 0]]), np.array([[np.nan, 1, 0]])
    assert np.allclose(model.predict(far), np.array([[2.0, 0, 0], [0, 2, 0]]) @ model.coef_ + model.intercept_)
    assert np.allclose(model.predict(nan), model.predict([[0, 1, 0]]))
    assert model.predict(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_intercept(intercept: bool) -> None:
    X, y = made(300)
    model = rehearsal(fit_intercept=intercept, y_bound=7).fit(X, y)
    assert (model.intercept_ != 0) == intercept
    assert with_schema(fit_intercept=intercept).fit(pd.DataFrame(X, columns=NAMES), y)._layout.intercept == intercept


def test_a_column_as_target_is_taken_with_a_warning() -> None:
    X, y = made(300)
    answer = rehearsal().fit(X, y).coef_
    assert np.array_equal(rehearsal().fit(X, [[value] for value in y]).coef_, answer)  # a list declares no shape
    for column in (y[:, None], pd.DataFrame({"y": y})):
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            assert np.array_equal(rehearsal().fit(X, column).coef_, answer)


def test_a_refused_fit_is_fitted_and_refused(tiny: str) -> None:  # noqa: F811
    X, y = made(30)
    ledger = MemoryLedger(10, 1e-3)
    model: Any = LinearRegression(method=tiny, x_norm=1, y_bound=1, ledger=ledger).fit(X, y)
    assert model.coef_.shape == (3,)
    model.set_params(proposals={"refuse": True}).fit(X, y)
    check_is_fitted(model)
    assert model.released_ is False
    assert ledger.spent == Cost(epsilon=2, delta=2e-6)
    assert model.receipt_.sequence == 2
    assert model.guarantee_.epsilon == 1
    for gone in ("coef_", "intercept_", "noise_scale_", "details_", "coef_names_"):
        assert not hasattr(model, gone)
    with pytest.raises(NotReleased, match="more rows"):
        model.predict(X)
    with pytest.raises(NotReleased, match="more rows"):
        model.score(X, y)
    with pytest.raises(NotReleased):
        pickle.loads(pickle.dumps(model)).predict(X)
    assert not isinstance(NotReleased("x"), NotFittedError)


def test_what_was_released_besides(tiny: str) -> None:  # noqa: F811
    model: Any = LinearRegression(method=tiny, x_norm=2, y_bound=(0, 20), rows=77, proposals={"theta": 0.5})
    model.fit(*made(30))
    assert (model.details_, model.certificate_) == ({"ridge": 3.0}, "certificate")
    assert np.allclose(model.coef_, 0.5 * 10 / 2)
    assert model.intercept_ == 10 + 0.5 * 10
    assert np.allclose(model.noise_scale_, 0.5 * 10 / 2)
    assert Tiny.last == {"rows": 77}


def test_validation_rows_reach_the_method_scaled(tiny: str) -> None:  # noqa: F811
    X, y = made(30)
    model = LinearRegression(method=tiny, x_norm=2, y_bound=(-1, 7), validation=(X[:5], y[:5])).fit(X, y)
    rows, target = Tiny.last["validation"]
    assert np.allclose(rows, np.column_stack([X[:5] / 2, np.ones(5)]))
    assert np.allclose(target, (y[:5] - 3) / 4)
    frame = pd.DataFrame(X, columns=NAMES)
    with_schema(method=tiny, validation=(frame[:5], y[:5])).fit(frame, y)
    assert np.allclose(Tiny.last["validation"][0], np.column_stack([X[:5] / np.sqrt(3), np.ones(5)]))
    assert model.plan(3).title == "tiny"


def test_the_plan_is_in_the_users_units(tiny: str) -> None:  # noqa: F811
    model = LinearRegression(method=tiny, x_norm=2, y_bound=(0, 20))
    forecast = model.plan(n_features=3).forecast
    assert (forecast.error_of, forecast.answer_error) == (ErrorOf.PREDICTION, None)
    assert [fit.rows for fit in forecast.fits] == [1_000, 10_000, 100_000, 1_000_000]
    for fit in forecast.fits:  # 4.5 times as for rows of full length
        assert list(fit.noise) == ["x0", "x1", "x2"]
        assert list(fit.noise.values()) == pytest.approx([22.5 / fit.rows] * 3, rel=0.01)
        assert fit.error == pytest.approx(45 / fit.rows, rel=0.01)
    assert forecast.notes == noted("best-tried-surely").notes
    assert [fit.rows for fit in model.plan(3, rows=50).forecast.fits] == [50]
    assert [fit.rows for fit in model.set_params(rows=60).plan(3).forecast.fits] == [60]
    assert model.plan(3).cost == Cost(epsilon=1, delta=1e-6)
    with pytest.raises(ValueError, match="n_features"):
        model.plan()
    for width in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_features must be"):
            model.plan(n_features=width)  # type: ignore[arg-type]
    assert model.fit(*made(30)).plan() == model.plan(3) == model.plan_
    uneven = Schema({"a": Number(0, 1), "b": Number(0, 100), "y": Number(0, 2)}, target="y")
    noise = LinearRegression(method=tiny, schema=uneven).plan().forecast.fits[0].noise
    assert noise == {"a": pytest.approx(100 * noise["b"]), "b": pytest.approx(5.66e-05, rel=0.01)}
    assert "(a), 5.66e-05 (b)" in str(LinearRegression(method=tiny, schema=uneven).plan())


@pytest.mark.parametrize("method", sorted(METHODS))
def test_all_methods_make_a_plan_and_a_fit(method: str) -> None:
    recipe = METHODS[method]
    assert isinstance(recipe.maker, str)
    pytest.importorskip(f"snugdp.mechanisms.{recipe.maker.partition(':')[0]}", reason=f"{method} is not built yet")
    model = rehearsal(method=method, rows=400, proposals={"steps": 3} if method == "descent" else None)
    assert model.plan(3).cost.neighbours.value == "add_remove"
    model.fit(*made(400))
    assert [fit.rows for fit in model.plan_.forecast.fits] == [400]
    if model.released_:
        assert model.predict(np.zeros((2, 3))).shape == (2,)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"epsilon": 0}, ValueError, "epsilon"),
    ({"epsilon": "much"}, ValueError, "epsilon"),
    ({"epsilon": True}, TypeError, "epsilon"),
    ({"delta": 1}, ValueError, "delta"),
    ({"delta": -1}, ValueError, "delta"),
    ({"neighbours": "swap"}, ValueError, "neighbours"),
    ({"method": "magic"}, ValueError, '"adassp"'),
    ({"method": None}, ValueError, "method must be one of"),
    ({"method": ["adassp"]}, ValueError, "method must be one of"),
    ({"proposals": {"rigde": 1}}, ValueError, 'no proposal "rigde"; allowed: "ridge"'),
    ({"proposals": [1]}, TypeError, "proposals"),
    ({"method": "descent"}, ValueError, "needs rows"),
    ({"validation": (1, 2)}, ValueError, '"sufficient" has'),
    ({"x_norm": None}, ValueError, "private_bounds"),
    ({"y_bound": None}, ValueError, "must not come from the data"),
    ({"x_norm": -1}, ValueError, "x_norm"),
    ({"x_norm": "wide"}, ValueError, "x_norm"),
    ({"y_bound": 0}, ValueError, "y_bound"),
    ({"y_bound": (3, 1)}, ValueError, "lower bound"),
    ({"y_bound": (1, 2, 3)}, ValueError, "pair"),
    ({"fit_intercept": "yes"}, TypeError, "fit_intercept"),
    ({"rows": 0}, ValueError, "rows"),
    ({"rows": 2.5}, ValueError, "rows"),
    ({"rows": True}, ValueError, "rows"),
    ({"ledger": 5}, TypeError, "ledger"),
    ({"ledger": MemoryLedger}, TypeError, "ledger"),
    ({"noise": 5}, TypeError, "noise"),
    ({"noise": Simulation(1)}, ValueError, "NOT PRIVATE"),
    ({"progress": "bar"}, TypeError, "progress"),
    ({"schema": SCHEMA}, ValueError, "leave out x_norm"),
    ({"schema": "file.toml", "x_norm": None, "y_bound": None}, TypeError, "snugdp.Schema"),
    ({"schema": Schema({"a": Number(0, 1)}), "x_norm": None, "y_bound": None}, ValueError, "target"),
]


WITH_FEATURES: list[tuple[dict[str, Any], type[Exception], str]] = [  # the method needs their number to judge
    ({"delta": 0}, ValueError, "delta"),
    ({"neighbours": "replace"}, ValueError, "add_remove"),
    ({"proposals": {"ridge": -1}}, ValueError, "ridge"),
    ({"method": "sufficient", "validation": 5}, TypeError, "pair"),
    ({"method": "sufficient", "validation": (np.ones((3, 2)), [1.0] * 3)}, ValueError, "3 are expected"),
    ({"method": "sufficient", "validation": (pd.DataFrame({"a": [1.0]}), [1.0])}, ValueError, "3 are expected"),
    ({"method": "sufficient", "validation": (np.ones((3, 3)), [1.0])}, ValueError, "validation"),
]


class Untouchable:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the rows were read")


@pytest.mark.parametrize(("changes", "error", "message"), [*BAD, *WITH_FEATURES], ids=lambda value: str(value)[:40])
def test_bad_parameters_are_refused_before_anything_is_charged_or_read(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    ledger = MemoryLedger(100, 0.1)
    model = LinearRegression(**{"method": "adassp", "x_norm": 2, "y_bound": 3, "ledger": ledger, **changes})
    for X, y in (made(30), (Untouchable(), Untouchable())):
        if not isinstance(X, Untouchable) or (changes, error, message) in BAD:
            with pytest.raises(error, match=message):
                model.fit(X, y)
    if not {"ledger", "noise"} & set(changes):
        with pytest.raises(error, match=message):
            model.plan(n_features=3)
    assert ledger.spent == Cost()


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (np.ones((3, 2)), None, ValueError, "requires y to be passed, but the target y is None"),
        (np.ones((3, 2)), np.ones(2), ValueError, "inconsistent"),
        (np.ones((3, 2)), np.ones((3, 2)), ValueError, "1d array"),
        (np.ones((3, 2)), pd.DataFrame({"a": [1], "b": [2]}), ValueError, "1d array"),
        (pd.DataFrame({"a": [1.0, 2.0]}), np.ones(3), ValueError, "inconsistent"),
        (pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])}), np.ones(2), TypeError, '"a" must hold numbers'),
        (pl.DataFrame({"a": [["x"], ["y"]]}), np.ones(2), TypeError, '"a" must hold numbers'),
        (np.ones(3), np.ones(3), ValueError, "Reshape"),
        (np.ones((3, 2)), np.array(["a", "b", "c"]), TypeError, "text"),
        ("table.parquet", np.ones(3), ValueError, "2D"),
        (pd.DataFrame({"a": [1.0, 2.0], 5: [1.0, 2.0]}), np.ones(2), TypeError, "all be text"),
        (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), np.ones(2), ValueError, "a"),
        (pl.DataFrame({"a": [1.0]}).lazy(), np.ones(1), (TypeError, ValueError), "2D"),
        (np.ones((3, 0)), np.ones(3), ValueError, "0 feature"),
    ],
)
def test_bad_data(X: Any, y: Any, error: type[Exception], message: str) -> None:
    ledger = MemoryLedger(100, 0.1)
    with pytest.raises(error, match=message):
        rehearsal(noise=None, ledger=ledger).fit(X, y)
    assert ledger.spent == Cost()


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (np.ones((3, 3)), np.ones(3), TypeError, "by their names"),
        (np.ones((3, 3)), None, TypeError, "cannot read a table"),
        (pd.DataFrame({"a": [1.0], "b": [1.0]}), [1.0], ValueError, 'no column "c"'),
        (pd.DataFrame(np.ones((1, 4)), columns=[*NAMES, "y"]), [1.0], ValueError, 'column "y", the target, already'),
        (pd.DataFrame({"a": pd.to_datetime(["2020"]), "b": [1.0], "c": [1.0]}), [1.0], TypeError, "convert the column"),
        ("nowhere.parquet", None, ValueError, "no file"),
        (Path("nowhere.parquet"), [1.0], TypeError, "without y"),
    ],
)
def test_bad_tables(X: Any, y: Any, error: type[Exception], message: str) -> None:
    ledger = MemoryLedger(100, 0.1)
    with pytest.raises(error, match=message):
        with_schema(noise=None, ledger=ledger).fit(X, y)
    assert ledger.spent == Cost()


def test_a_table_that_breaks_while_it_is_read_costs_nothing(tmp_path: Path) -> None:
    X, y = made(30)
    path, ledger = tmp_path / "table.csv", MemoryLedger(100, 0.1)
    pd.DataFrame(X, columns=NAMES).assign(y=y).to_csv(path, index=False)
    from snugdp.tables.sources import open_source

    source = open_source(path)
    path.write_text("a,b,c,y\n")
    with pytest.raises(ValueError, match="was changed"):
        with_schema(noise=None, ledger=ledger).fit(source)
    assert ledger.spent == Cost()


def test_predict_checks_names_and_numbers_of_features() -> None:
    X, y = made(30)
    model = rehearsal().fit(pd.DataFrame(X, columns=NAMES), y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=["a", "c", "b"]))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pl.DataFrame(X, schema=["a", "c", "b"]))
    with pytest.raises(ValueError, match="2 features, but 3 are expected"):
        rehearsal().fit(X, y).predict(pl.DataFrame(X[:, :2], schema=["a", "b"]))
    assert np.allclose(model.predict(pl.DataFrame(X, schema=NAMES)), model.predict(pd.DataFrame(X, columns=NAMES)))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match="X has 2 features, but LinearRegression is expecting 3"):
        rehearsal().fit(X, y).predict(X[:, :2])
    with pytest.raises(NotFittedError):
        rehearsal().predict(X)
    with pytest.raises(TypeError, match="columns of the schema"):
        with_schema().fit(pd.DataFrame(X, columns=NAMES), y).predict(X)


def test_clones_and_searches_share_the_ledger_and_every_fit_is_charged(tiny: str) -> None:  # noqa: F811
    X, y = made(60)
    ledger = MemoryLedger(100, 1e-3)
    model = LinearRegression(epsilon=0.5, method=tiny, x_norm=2, y_bound=7, ledger=ledger)
    twin = clone(model)
    assert twin.ledger is ledger
    twin.fit(X, y)
    assert ledger.spent == Cost(epsilon=0.5, delta=1e-6)
    cross_val_score(model, X, y, cv=3)
    assert ledger.spent == Cost(epsilon=2, delta=4e-6)
    search = GridSearchCV(model, {"epsilon": [0.5, 1.0], "x_norm": [1, 2]}, cv=3).fit(X, y)
    last = search.best_params_["epsilon"]
    assert ledger.spent == Cost(epsilon=2, delta=4e-6) + Cost(epsilon=9, delta=12e-6) + Cost(epsilon=last, delta=1e-6)
    make_pipeline(FunctionTransformer(), model).fit(X, y)
    assert ledger.spent.delta == Cost(delta=18e-6).delta
    assert copy.deepcopy(model).get_params()["epsilon"] == 0.5


def test_a_ledger_that_runs_out_stops_the_fit_and_leaves_no_model(tiny: str) -> None:  # noqa: F811
    X, y = made(60)
    model = LinearRegression(method=tiny, x_norm=2, y_bound=7, ledger=MemoryLedger(1.5, 1e-3)).fit(X, y)
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_pipelines_set_output_and_pickles() -> None:
    X, y = made(300)
    frame = pd.DataFrame(X, columns=NAMES)
    pipe = make_pipeline(FunctionTransformer(lambda table: table / 2), rehearsal()).set_output(transform="pandas")
    assert np.array_equal(pipe.fit(frame, y).predict(frame), pipe.predict(frame))
    assert pipe[-1].feature_names_in_.tolist() == NAMES
    model = LinearRegression(method="adassp", x_norm=2, y_bound=7, ledger=MemoryLedger(10, 1e-3)).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.guarantee_ == model.guarantee_
    with pytest.raises(RuntimeError, match="stayed behind"):
        loaded.fit(X, y)
    loaded.set_params(ledger=MemoryLedger(10, 1e-3)).fit(X, y)


def test_a_rehearsal_begins_anew_and_promises_nothing() -> None:
    X, y = made(300)
    model = rehearsal()
    assert np.array_equal(model.fit(X, y).coef_, model.fit(X, y).coef_)
    assert (model.guarantee_, model.receipt_) == (None, None)
    assert "NOT PRIVATE" in repr(model.outcome_)
    assert model.released_


def test_scikit_learn_is_used_by_its_public_names_only() -> None:
    for path in Path(estimators.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if name.startswith("_")], path


def test_tags() -> None:
    tags = LinearRegression().__sklearn_tags__()
    assert tags.non_deterministic
    assert tags.input_tags.allow_nan
    assert tags.regressor_tags.poor_score
    assert tags.target_tags.required
    assert not tags.input_tags.sparse
    assert not tags.no_validation
    assert not with_schema().__sklearn_tags__().target_tags.required
    assert not with_schema().__sklearn_tags__().non_deterministic
