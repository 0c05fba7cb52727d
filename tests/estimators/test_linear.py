"""The face of linear regression: what goes in, what comes out, what is refused, and who pays."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from snugdp import (
    Boolean,
    Category,
    Cost,
    LinearRegression,
    MemoryLedger,
    Number,
    Schema,
    Simulation,
    Spline,
    estimators,
)
from snugdp.core.guarantee import Budget
from snugdp.estimators.base import Promise
from snugdp.propose.forecast import ErrorOf, noted
from tests.estimators.tiny import Tiny

NAMES = ["a", "b", "c"]
TRUTH = np.array([1.0, -2.0, 0.5])
SCHEMA = Schema({**dict.fromkeys(NAMES, Number(-1, 1)), "y": Number(-1, 7)}, target="y")


NUMBERS = LINEAR = "predict"  # what tests/estimators/test_supervised.py asks a fitted model
ASKS, SCORING, VALUE = ("predict",), None, 1.0


def made(n: int = 4000, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ TRUTH + 3 + rng.normal(0, 0.1, n)


def rehearsal(**given: Any) -> Any:
    return LinearRegression(**{"method": "adassp", "x_norm": 2, "y_bound": (-1, 7), "noise": Simulation(4), **given})


def with_schema(**given: Any) -> Any:
    return LinearRegression(**{"method": "adassp", "schema": SCHEMA, "noise": Simulation(4), **given})


def test_the_default_whitens_rows_with_public_bounds_of_all_columns() -> None:
    """How bounds are declared is public, and decides; the plan says which it is."""

    def theorem(columns: dict[str, Number], **more: Any) -> str:
        schema = Schema({**columns, "y": Number(0, 1)}, target="y")
        return LinearRegression(1, 1e-6, schema=schema, **more).plan().theorem.id

    many = {f"x{place}": Number(0, 1) for place in range(128)}
    assert theorem({"x": Number(0, 1)}) == "linear-whitened/1"
    assert theorem({name: many[name] for name in list(many)[1:]}) == "linear-whitened/1"
    assert theorem(many) == theorem({"x": Spline(0, 1)}) == "linear-adaptive/1"
    assert theorem({"x": Number(0, 1)}, method="adaptive") == "linear-adaptive/1"
    assert theorem({"x": Number()}) == "found-bounds/1"
    assert LinearRegression(1, 1e-6, x_norm=1, y_bound=1).plan(n_features=2).theorem.id == "linear-adaptive/1"


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


def test_cells_outside_a_schema_are_clipped() -> None:
    X, y = made(300)
    answer = with_schema().fit(pd.DataFrame(X, columns=NAMES), y)
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


@pytest.mark.parametrize("intercept", [True, False])
def test_the_intercept(intercept: bool) -> None:
    X, y = made(300)
    model = rehearsal(fit_intercept=intercept, y_bound=7).fit(X, y)
    assert (model.intercept_ != 0) == intercept
    assert with_schema(fit_intercept=intercept).fit(pd.DataFrame(X, columns=NAMES), y)._layout.intercept == intercept


def test_what_was_released_besides(tiny: str) -> None:
    model: Any = LinearRegression(method=tiny, x_norm=2, y_bound=(0, 20), rows=77, proposals={"theta": 0.5})
    model.fit(*made(30))
    assert (model.details_, model.certificate_) == ({"ridge": 3.0}, "certificate")
    assert np.allclose(model.coef_, 0.5 * 10 / 2)
    assert model.intercept_ == 10 + 0.5 * 10
    assert np.allclose(model.noise_scale_, 0.5 * 10 / 2)
    assert Tiny.last == {"rows": 77}


def test_validation_rows_reach_the_method_scaled(tiny: str) -> None:
    X, y = made(30)
    model = LinearRegression(method=tiny, x_norm=2, y_bound=(-1, 7), validation=(X[:5], y[:5])).fit(X, y)
    rows, target = Tiny.last["validation"]
    assert np.allclose(rows, np.column_stack([X[:5] / 2, np.ones(5)]))
    assert np.allclose(target, (y[:5] - 3) / 4)
    frame = pd.DataFrame(X, columns=NAMES)
    with_schema(method=tiny, validation=(frame[:5], y[:5])).fit(frame, y)
    assert np.allclose(Tiny.last["validation"][0], np.column_stack([X[:5] / np.sqrt(3), np.ones(5)]))
    assert model.plan(3).title == "tiny"


def test_the_plan_is_in_the_users_units(tiny: str) -> None:
    model = LinearRegression(method=tiny, x_norm=2, y_bound=(0, 20))
    forecast = model.plan(n_features=3).forecast
    assert (forecast.error_of, forecast.answer_error) == (ErrorOf.PREDICTION, None)
    assert [fit.rows for fit in forecast.fits] == [1_000, 10_000, 100_000, 1_000_000]
    for fit in forecast.fits:  # 4.5 times as for rows of full length
        assert list(fit.noise) == ["x0", "x1", "x2"]
        assert list(fit.noise.values()) == pytest.approx([22.5 / fit.rows] * 3, rel=0.01)
        assert fit.error == pytest.approx(45 / fit.rows, rel=0.01)
    assert forecast.notes[:1] == noted("best-tried-surely").notes
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
    ({"y_bound": None}, ValueError, "must not come from the data"),
    ({"y_bound": None}, ValueError, "leave out both to have bounds found privately"),
    ({"bounds": "public"}, TypeError, 'bounds must be "private"'),
    ({"bounds": None, "x_norm": None}, TypeError, 'bounds must be "private"'),
    ({"missing": "drop"}, ValueError, "leave out x_norm"),
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


def test_a_target_of_text_costs_nothing(unspent: MemoryLedger) -> None:
    with pytest.raises(TypeError, match="text"):
        rehearsal(noise=None, ledger=unspent).fit(np.ones((3, 2)), np.array(["a", "b", "c"]))


def test_a_table_that_breaks_while_it_is_read_costs_nothing(tmp_path: Path, unspent: MemoryLedger) -> None:
    X, y = made(30)
    path = tmp_path / "table.csv"
    pd.DataFrame(X, columns=NAMES).assign(y=y).to_csv(path, index=False)
    from snugdp.tables.sources import open_source

    source = open_source(path)
    path.write_text("a,b,c,y\n")
    with pytest.raises(ValueError, match="was changed"):
        with_schema(noise=None, ledger=unspent).fit(source)


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
    with pytest.raises(TypeError, match="columns of the schema"):
        with_schema().fit(pd.DataFrame(X, columns=NAMES), y).predict(X)


def test_pipelines_set_output() -> None:
    X, y = made(300)
    frame = pd.DataFrame(X, columns=NAMES)
    pipe = make_pipeline(FunctionTransformer(lambda table: table / 2), rehearsal()).set_output(transform="pandas")
    assert np.array_equal(pipe.fit(frame, y).predict(frame), pipe.predict(frame))
    assert pipe[-1].feature_names_in_.tolist() == NAMES


def test_a_rehearsal_begins_anew_and_promises_nothing() -> None:
    X, y = made(300)
    model = rehearsal()
    assert np.array_equal(model.fit(X, y).coef_, model.fit(X, y).coef_)
    assert (model.guarantee_, model.receipt_) == (None, None)
    assert "NOT PRIVATE" in repr(model.outcome_)
    assert model.released_


@pytest.mark.slow
def test_scikit_learn_is_used_by_its_public_names_only() -> None:
    for path in Path(estimators.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if name.startswith("_")], path
