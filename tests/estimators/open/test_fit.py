"""Fits without bounds: what they find, keep and refuse, and that nothing else leaves them."""

import gc
import io
import math
import pickle
import warnings
import weakref
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import snugdp
from snugdp import (
    Boolean,
    Budget,
    Category,
    Date,
    KeyConflictError,
    Ledger,
    LinearRegression,
    LogisticRegression,
    MemoryLedger,
    NotReleased,
    Number,
    PoissonRegression,
    Schema,
    Simulation,
)
from snugdp.estimators.forecasts.forecast import forecast
from snugdp.estimators.open.fit import OpenFit
from snugdp.mechanisms.bounds import sorts
from snugdp.report.model import render, told
from snugdp.tables.found import Flag, FoundLevels
from tests.effort import often, repeated, sampled
from tests.estimators import checks

MIXED = Schema(
    {
        "x": Number(),
        "city": Category(),
        "member": Boolean(),
        "day": Date(parts=["weekday"]),
        "p": Number(-5, 5),
        "y": Number(),
    },
    target="y",
    missing={"x": "indicator"},
)


def made(rows: int = 4000, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1, 50, 0.01] + [0, 1000, 0]
    return X, X @ [2.0, 0.1, 300.0] - 90 + rng.normal(size=rows)


def mixed(rows: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=rows),
            "city": rng.choice(["Oslo", "Rome"], rows),
            "member": rng.random(rows) < 0.4,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, rows), unit="D"),
            "p": rng.normal(size=rows),
        }
    )
    frame["y"] = 10 + frame.x + 3 * (frame.city == "Rome") + frame.p + rng.normal(size=rows) / 2
    frame.loc[::7, "x"] = np.nan
    frame.loc[::11, "y"] = np.nan
    return frame


def rehearsal(estimator: Any = LinearRegression, seed: int = 1, **options: Any) -> Any:
    return estimator(epsilon=1, delta=1e-6, noise=Simulation(seed), **options)


def labels(y: Any) -> Any:
    return np.where(y > np.median(y), "yes", "no")


MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "linear": (LinearRegression, {}),
    "adassp": (LinearRegression, {"method": "adassp"}),
    "labels": (LogisticRegression, {"classes": ["yes", "no"]}),
    "classes": (LogisticRegression, {"classes": ["no", "yes", "never"]}),
    "counts": (PoissonRegression, {"y_max": 10}),
}


def target_of(name: str, y: Any) -> Any:
    return labels(y) if name in ("labels", "classes") else np.clip(y - 1, 0, 9) if name == "counts" else y


@pytest.mark.slow
def test_a_line_without_any_bounds() -> None:
    X, y = made(20_000)
    real = LinearRegression(epsilon=1, delta=1e-6).fit(X[:5000], y[:5000])
    assert real.released_
    assert real.guarantee_ is not None
    assert real.guarantee_.theorem.id == "found-bounds/1"
    model = rehearsal().fit(X, y)
    assert model.score(X, y) > 0.93 * 0.97
    assert [column.flag for column in model.bounds_.columns.values()] == [Flag.FOUND] * 4
    assert model.cost_.fits(Budget(1, 1e-6))
    guess = X[:5] @ model.coef_ + model.intercept_
    assert model.predict(X[:5]) == pytest.approx(guess)  # nothing is clipped here


@pytest.mark.slow
def test_kinds_of_columns() -> None:
    frame = mixed(20_000)
    model = rehearsal(schema=MIXED).fit(frame)
    by_name = dict(zip(model.coef_names_, model.coef_.tolist(), strict=True))
    assert {"x", "x is missing", "city=Rome", "member", "day", "day.weekday.sin", "day.weekday.cos", "p"} <= set(
        by_name
    )
    assert by_name["x"] == pytest.approx(1, abs=0.1)
    assert by_name["p"] == pytest.approx(1, abs=0.1)
    assert by_name["city=Rome"] - by_name.get("city=Oslo", 0) == pytest.approx(3, abs=0.2)
    assert model.bounds_["p"].flag is Flag.FOUND  # beside open columns, also between public bounds
    assert model.bounds_["x"].missing == pytest.approx(1 / 7, abs=0.02)
    assert list(model.predict(frame)) == list(model.predict(frame.drop(columns="y")))  # other columns do not matter
    assert len(model.predict(frame)) == len(frame)


@sampled(6)
@pytest.mark.parametrize("name", MODELS)
def test_containers_do_not_matter(name: str, tmp_path: Path) -> None:
    (estimator, options), (X, y) = MODELS[name], made()
    first = rehearsal(estimator, **options).fit(X, target_of(name, y))
    for rows in (X.tolist(), sparse.csr_matrix(X), np.asfortranarray(X), X.astype(object)):
        again = rehearsal(estimator, **options).fit(rows, target_of(name, y))
        assert again.bounds_ == first.bounds_
        assert np.array_equal(again.coef_, first.coef_)
        assert np.array_equal(again.predict(rows), first.predict(X))


@pytest.mark.slow
def test_files_and_frames_are_read_alike(tmp_path: Path) -> None:
    frame = mixed()
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    tables = (frame, pl.from_pandas(frame), tmp_path / "t.parquet", tmp_path / "t.csv")
    models = [rehearsal(schema=MIXED).fit(table) for table in tables]
    assert all(np.array_equal(model.coef_, models[0].coef_) for model in models)
    assert all(model.bounds_ == models[0].bounds_ for model in models)


@sampled(2)
@pytest.mark.parametrize("order", [["yes", "no"], ["no", "yes"]])
def test_classes_of_a_schema_keep_their_meaning_in_any_order(order: list[str]) -> None:
    X, y = made(20_000)
    frame = pd.DataFrame(X, columns=list("abc"))
    schema = Schema({**dict.fromkeys("abc", Number()), "y": Category(order)}, target="y")
    inside = rehearsal(LogisticRegression, schema=schema).fit(frame.assign(y=labels(y)))
    beside = rehearsal(LogisticRegression, schema=schema).fit(frame, labels(y))
    for model in (inside, beside):
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(frame, labels(y)) > 0.9
    numbered = rehearsal(LogisticRegression, schema=replace(schema, columns={**schema.columns, "y": Category([1, 0])}))
    assert numbered.fit(frame.assign(y=(y > np.median(y)) * 1)).score(frame, (y > np.median(y)) * 1) > 0.9


# ---- bounds that were found before


def test_found_bounds_cost_nothing_the_second_time() -> None:
    X, y = made()
    first = rehearsal().fit(X, y)
    model = rehearsal(bounds=first.bounds_)
    second = model.fit(X, y)
    assert second.bounds_ == first.bounds_
    assert [step.id for step in second.plan_.steps] == ["sizes", "release"]
    assert second.cost_.mu_squared < first.cost_.mu_squared
    assert clone(model).bounds == first.bounds_
    assert rehearsal(bounds=first.bounds_).plan().cost == second.cost_


@pytest.mark.slow
def test_found_bounds_serve_other_targets() -> None:
    X, y = made(20_000)
    frame = pd.DataFrame(X, columns=list("abc"))
    schema = Schema({**dict.fromkeys("abc", Number()), "y": Number()}, target="y")
    bounds = rehearsal(schema=schema).fit(frame, y).bounds_
    counts = np.clip(y - 1, 0, 9)
    names = rehearsal(LogisticRegression, bounds=bounds, classes=["yes", "no"]).fit(frame, labels(y))
    assert names.score(frame, labels(y)) > 0.9
    own = rehearsal(LogisticRegression, bounds=bounds, classes=["yes", "no"]).fit(frame.assign(y=labels(y)))
    assert own.score(frame, labels(y)) > 0.9
    three = rehearsal(LogisticRegression, bounds=names.bounds_, classes=["no", "yes", "never"]).fit(frame, labels(y))
    assert three.score(frame, labels(y)) > 0.9
    assert rehearsal(PoissonRegression, bounds=bounds, y_max=10).fit(frame, counts).score(frame, counts) > 0
    labelled = replace(schema, columns={**schema.columns, "y": Category(["no", "yes"])})
    classes = rehearsal(LogisticRegression, schema=labelled).fit(frame, labels(y)).bounds_
    with pytest.raises(TypeError, match="not a Category"):
        rehearsal(bounds=classes).fit(frame, y)


def test_missing_cells_of_found_bounds(tmp_path: Path) -> None:
    frame, quick = mixed(), partial(rehearsal, method="adassp")
    bounds = quick(schema=replace(MIXED, missing="centre")).fit(frame).bounds_
    model = quick(bounds=bounds, missing={"x": "indicator"}).fit(frame)
    assert "x is missing" in model.coef_names_
    snugdp.save(model, tmp_path / "model.json")
    again = snugdp.load(tmp_path / "model.json")
    assert again.bounds_ == model.bounds_
    assert again.coef_names_ == model.coef_names_
    assert np.array_equal(again.predict(frame), model.predict(frame))
    dropped = quick(bounds=bounds, missing="drop").fit(frame)
    assert "x is missing" not in dropped.coef_names_
    assert not np.array_equal(dropped.coef_, quick(bounds=bounds).fit(frame).coef_)


def test_lists_of_proposals_on_found_bounds() -> None:
    X, y = made()
    bounds = rehearsal().fit(X, y).bounds_
    options: dict[str, Any] = {"method": "adassp", "proposals": {"ridge": [1, 2]}, "validation": (X[:200], y[:200])}
    model = rehearsal(bounds=bounds, **options).fit(X, y)
    assert model.best_proposal_["ridge"] in (1, 2)
    with pytest.raises(ValueError, match=r"bounds=model\.bounds_"):
        rehearsal(**options).fit(X, y)
    assert rehearsal(bounds=bounds, method="sufficient", validation=(X[:200], y[:200])).fit(X, y).released_


FRAME = pd.DataFrame({"a": [1.0] * 30, "b": [2.0] * 30})
OPEN = Schema({"a": Number(), "b": Number(), "y": Number()}, target="y")


@pytest.mark.parametrize(
    ("options", "arguments", "error", "message"),
    [
        ({"delta": 0}, (FRAME.to_numpy(), [1.0] * 30), ValueError, "delta > 0"),
        ({"neighbours": "replace"}, (FRAME.to_numpy(), [1.0] * 30), ValueError, "add_remove"),
        ({"missing": "guess"}, (FRAME.to_numpy(), [1.0] * 30), ValueError, "missing must be one of"),
        ({"fit_intercept": "yes"}, (FRAME.to_numpy(), [1.0] * 30), TypeError, "fit_intercept"),
        ({}, (np.zeros((3, 9000)), [1.0] * 3), ValueError, "8,192 entries"),
        ({}, (FRAME.to_numpy(), [1.0] * 29), ValueError, "inconsistent"),
        ({}, (FRAME.to_numpy(), None), ValueError, "requires y"),
        ({"schema": OPEN}, (FRAME, "a"), ValueError, 'the target is "y"'),
        ({"schema": OPEN}, (FRAME, None), ValueError, 'no column "y"'),
        ({"schema": OPEN, "y_bound": 3}, (FRAME, [1.0] * 30), ValueError, "leave out y_bound"),
        ({"schema": OPEN, "x_norm": 3}, (FRAME, [1.0] * 30), ValueError, "leave out x_norm"),
        ({"schema": Schema({"a": Number()})}, (FRAME, [1.0] * 30), ValueError, "names no target"),
    ],
)
def test_what_is_refused_before_the_charge(
    options: dict[str, Any], arguments: Any, error: type[Exception], message: str, unspent: MemoryLedger
) -> None:
    model = LinearRegression(**{"epsilon": 1, "delta": 1e-6, "ledger": unspent, **options})
    with pytest.raises(error, match=message):
        model.fit(*arguments)


def test_found_bounds_know_their_columns(unspent: MemoryLedger) -> None:
    X, y = made()
    bounds = rehearsal().fit(X, y).bounds_
    for options in ({"schema": OPEN}, {"x_norm": 1}):
        with pytest.raises(ValueError, match="leave out schema and x_norm"):
            LinearRegression(bounds=bounds, ledger=unspent, **options).fit(X, y)
    with pytest.raises(ValueError, match="3 are expected"):
        LinearRegression(bounds=bounds, ledger=unspent).fit(X[:, :2], y)


# ---- hostile tables


def hostile() -> dict[str, tuple[Any, Any]]:
    X, y = made(2000)
    rng = np.random.default_rng(3)

    def changed(value: Any, where: Any = (slice(None), 1)) -> Any:
        rows = X.copy()
        rows[where] = value
        return rows

    return {
        "constant": (changed(7.25), y),
        "zeros": (changed(0.0), np.zeros(2000)),
        "constant target": (X, np.full(2000, 3.5)),
        "outlier": (changed(1e300, (5, 2)), np.append(y[1:], -1e300)),
        "missing column": (changed(np.nan), y),
        "all missing": (np.full((2000, 3), np.nan), y),
        "no target": (X, np.full(2000, np.nan)),
        "infinite": (np.full((2000, 3), np.inf), np.full(2000, -np.inf)),
        "huge": (X * 1e300, y * 1e300),
        "subnormal": (X * 1e-310, y * 1e-310),
        "no rows": (X[:0], y[:0]),
        "two rows": (X[:2], y[:2]),
        "one of sixty": (np.eye(60)[rng.integers(0, 60, 2000)], y),
        "booleans": (X > 0, y > 0),
        "objects": (np.array([["a", None, 3.0]] * 2000, dtype=object), y),
        "wide": (rng.normal(size=(40, often(150, 700))), np.ones(40)),
    }


@sampled(84)
@repeated
@pytest.mark.parametrize("table", hostile())
@pytest.mark.parametrize("name", MODELS)
def test_hostile_tables(name: str, table: str) -> None:
    """Nothing raises, warns or prints; what is released predicts finite numbers."""
    (estimator, options), (X, y) = MODELS[name], hostile()[table]
    with np.errstate(all="ignore"):
        named = np.where(y > 0, "yes", "no").astype(object)
        named[np.isnan(y)] = None
    target = named if name in ("labels", "classes") else y
    told_out, told_err = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), np.errstate(all="raise"), redirect_stdout(told_out), redirect_stderr(told_err):
        warnings.simplefilter("error")
        model = estimator(epsilon=1, delta=1e-6, **options).fit(X, target)
        rows = np.array([[0.0, 1e300, math.inf], [math.nan] * 3]) if X.shape[1] == 3 else X[:2]
        if model.released_:
            assert len(model.predict(rows)) == len(rows)
            asked = model.predict_proba if name in ("labels", "classes") else model.predict
            assert np.isfinite(asked(rows)).all()
            assert np.isfinite(model.coef_).all()
    assert told_out.getvalue() + told_err.getvalue() == ""


@sampled(8)
@checks.each_strange_cell
def test_no_cell_raises_or_warns(strange: Any) -> None:
    cells = np.zeros((12, 2), dtype=object)
    cells[3, 1] = strange
    targets: Any = [0.0] * 12
    targets[5] = strange
    with checks.no_warnings():
        for rows in (cells, cells.tolist()):
            LinearRegression(epsilon=1, delta=1e-6).fit(rows, targets)
            LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1]).fit(rows, targets)


# ---- nothing escapes


@pytest.mark.slow
def test_a_failure_after_the_charge_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: OpenFit, *_: Any) -> Any:
        raise RuntimeError("a private value: 4217.8643")

    monkeypatch.setattr(OpenFit, "_on_found", broken)
    ledger = MemoryLedger(5, 1e-3, composition="tight")
    model = LinearRegression(epsilon=1, delta=1e-6, ledger=ledger).fit(*made())
    assert not model.released_
    assert ledger.spent == model.plan_.cost
    assert "4217" not in repr(vars(model))


def test_a_refused_fit_says_what_may_be_missing() -> None:
    X, y = made(2)
    model = rehearsal().fit(X, y)
    assert not model.released_
    assert not hasattr(model, "bounds_")
    with pytest.raises(NotReleased, match="too few rows to find the bounds of its target"):
        model.predict(X)
    assert "rows lie within a factor of two" in str(model.plan_)


@sampled(12)
@repeated
@pytest.mark.parametrize("rows", [2, 4000])
@pytest.mark.parametrize("name", MODELS)
def test_models_travel(name: str, rows: int, tmp_path: Path) -> None:
    (estimator, options), (X, y) = MODELS[name], made(rows)
    model = estimator(epsilon=1, delta=1e-6, **options).fit(X, target_of(name, y))
    snugdp.save(model, tmp_path / "model.json")
    for again in (pickle.loads(pickle.dumps(model)), snugdp.load(tmp_path / "model.json")):
        assert again.released_ is model.released_
        assert again.plan_.cost == model.plan_.cost
        if model.released_:
            assert again.bounds_ == model.bounds_
            assert np.array_equal(again.predict(X[:9]), model.predict(X[:9]))
    assert clone(model).get_params()["bounds"] == "private"
    if name == "counts" or often(0, 1):  # a page has forecasts, which are calibrated several times
        assert len(render(model, rows=1000)) > 10_000
    assert told(model)["theorem"] == "found-bounds/1"


def test_a_key_is_good_for_one_question(tmp_path: Path) -> None:
    X, y = made()
    with Ledger.open(tmp_path / "l", dataset="people", budget=Budget(20, 1e-3)) as ledger:

        def fit(key: str, rows: Any = X, **options: Any) -> Any:
            return LinearRegression(epsilon=1, delta=1e-6, ledger=ledger.once(key), **options).fit(rows, y)

        first, again = fit("one"), fit("one")
        assert again.bounds_ == first.bounds_
        assert np.array_equal(again.coef_, first.coef_)
        spent = ledger.spent
        others: list[tuple[Any, dict[str, Any]]] = [
            (X[:, :2], {}),
            (X, {"missing": "drop"}),
            (X, {"method": "adassp"}),
            (X, {"y_bound": 100}),
            (X, {"bounds": first.bounds_}),
            (pd.DataFrame(X, columns=list("abc")), {"schema": Schema({**dict.fromkeys("abcy", Number())}, target="y")}),
        ]
        for rows, options in others:
            with pytest.raises(KeyConflictError):
                fit("one", rows, **options)
        assert ledger.spent == spent
        second = fit("two", bounds=first.bounds_)
        assert np.array_equal(fit("two", bounds=first.bounds_).coef_, second.coef_)
        with pytest.raises(KeyConflictError):
            fit("two", bounds=replace(first.bounds_, radius=2 * first.bounds_.radius))


@pytest.mark.slow
def test_nothing_of_the_rows_is_kept() -> None:
    for kind in ("array", "list", "objects", "csr"):
        X, y = made(5000)
        watched = [weakref.ref(array) for array in (X, y)]
        model = LinearRegression(epsilon=1, delta=1e-6).fit(checks.contained(X, kind), y)
        del X, y
        gc.collect()
        assert [array() for array in watched] == [None, None]
        arrays = [part for part in checks.everything(model, set()) if isinstance(part, np.ndarray)]
        assert all(array.size < 10 for array in arrays)
        assert len(pickle.dumps(model)) < 100_000


# ---- plans


@sampled(5)
@pytest.mark.parametrize("name", MODELS)
def test_plans_and_forecasts_need_no_rows(name: str) -> None:
    estimator, options = MODELS[name]
    model = estimator(epsilon=1, delta=1e-6, **options)
    plan = model.plan(3)
    assert plan.cost.fits(Budget(1, 1e-6))
    X, y = made()
    fitted = model.fit(X, target_of(name, y))
    assert fitted.plan_ == plan
    assert fitted.cost_ == plan.cost
    with pytest.raises(ValueError, match="n_features"):
        estimator(epsilon=1, delta=1e-6, **options).plan()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_smaller_epsilons_are_expected_to_err_more(name: str) -> None:
    estimator, options = MODELS[name]
    outlook = forecast(estimator(epsilon=1, delta=1e-6, **options), 1000, n_features=3)
    assert outlook.by_epsilon[0].error > outlook.by_epsilon[-1].error > 0


def test_the_plan_of_a_schema_is_that_of_its_fit() -> None:
    frame = mixed()
    assert rehearsal(schema=MIXED).plan() == rehearsal(schema=MIXED).fit(frame).plan_
    counts = replace(MIXED, columns={**MIXED.columns, "y": Number()})
    model = rehearsal(PoissonRegression, schema=counts, y_max=30)
    assert model.plan() == model.fit(frame).plan_  # an open target takes the bounds of counts
    assert model.bounds_["y"].flag is Flag.PUBLIC


def test_a_plan_for_a_wide_table_says_what_to_expect() -> None:
    plan = LinearRegression(epsilon=1, delta=1e-6).plan(n_features=200, rows=3000)
    assert plan.forecast.fits == ()
    assert "with 3000 rows many columns are not found" in str(plan)
    assert "a refusal with 600 rows" in str(LinearRegression(epsilon=1, delta=1e-6).plan(n_features=200, rows=600))
    several = LinearRegression(epsilon=1, delta=1e-6).plan(n_features=200)
    assert [fit.rows for fit in several.forecast.fits] == [10_000, 100_000, 1_000_000]
    guessed = LinearRegression(epsilon=1, delta=1e-6, rows=3000).plan(n_features=200)
    assert [fit.rows for fit in guessed.forecast.fits] == [3000]


@pytest.mark.slow
def test_a_robust_line_is_called_one() -> None:
    words = "a robust line"
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 2))
    y = np.exp(X[:, 0] + 1.5 * rng.normal(size=4000))
    model = LinearRegression(epsilon=1, delta=1e-6, noise=Simulation(1)).fit(X, y)
    assert words in str(model.plan(n_features=2))
    assert words in render(model)
    assert model.predict(X).mean() < 0.9 * y.mean()  # as it says
    assert words not in str(LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1]).plan(n_features=2))
    assert words not in str(LinearRegression(epsilon=1, delta=1e-6, method="adassp").plan(n_features=2))


def test_dates_that_are_taken_for_numbers_end_alike_for_every_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """One odd cell makes objects of dates in memory: a fit must not be refused for one of them alone."""
    monkeypatch.setattr(sorts, "settled", lambda counts, deviation: Number())
    typed = mixed(600)[["x", "day", "y"]]
    objects = typed.assign(day=pd.Series(typed["day"].to_list(), dtype=object))
    found = [rehearsal().fit(table, "y").coef_.tolist() for table in (typed, pl.from_pandas(typed), objects)]
    assert found[0] == found[1] == found[2]


def test_which_fit_follows_is_decided_before_anything_is_found() -> None:
    """By the columns that are planned: levels that are found do not turn it into another one, with other costs."""
    schema = Schema({"level": Category(), "x": Number(), "y": Number()}, target="y")
    fit = OpenFit.planned(rehearsal(schema=schema), None)
    assert fit._preparation is not None
    expected = fit._preparation.expected()
    levels = FoundLevels(tuple(f"level {k}" for k in range(40)), (1 / 40,) * 40)
    layout = fit.model._layout_of(replace(expected, columns={**expected.columns, "level": levels}), fit.response)
    planned, made = fit.method.plan(), fit._make(layout, 1e4).plan()
    assert len(layout.features) > 24
    assert [step.id for step in made.steps] == [step.id for step in planned.steps] == ["sizes", "release"]
    assert made.cost == planned.cost


def test_wide_tables_without_bounds_are_whitened() -> None:
    plans = [rehearsal().plan(n_features=columns) for columns in (23, 24, 127, 128)]  # and a constant
    assert ["gram" in [step.id for step in plan.steps] for plan in plans] == [False, True, True, False]
    assert all(plan.cost.fits(snugdp.Budget(1, 1e-6)) for plan in plans)


@pytest.mark.parametrize("estimator", [LinearRegression, LogisticRegression])
def test_wide_public_bounds_do_no_harm_beside_open_columns(estimator: Any) -> None:
    """A number that fills a tenth of its bounds is as long as its neighbours, whose scales are found."""
    rng = np.random.default_rng(7)
    held = {"price": np.exp(rng.normal(3, 0.8, 4000)), "distance": np.abs(rng.normal(0, 30, 4000))}
    wide = {"price": Number(0, 500), "distance": Number(0, 1000), "score": Number()}
    held["score"] = rng.normal(size=4000)
    steps = sum((values - values.mean()) / values.std() for values in held.values()) + rng.normal(size=4000) / 2
    is_line = estimator is LinearRegression
    target: Any = steps if is_line else np.where(steps > 0, "yes", "no")
    schema = Schema({**wide, "y": Number() if is_line else Category(["no", "yes"])}, target="y")
    frame = pd.DataFrame({**held, "y": target})
    model = rehearsal(estimator, schema=schema).fit(frame)
    assert model.score(frame, frame["y"]) > (0.8 if is_line else 0.85)
    assert model.bounds_["price"].upper <= 500


def test_a_column_of_one_value_does_not_make_labels_steep() -> None:
    """Its slope and the intercept are determined in sum alone, so that noise makes both large."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20_000, 4))
    y = np.where(X[:, 0] + 2 * rng.logistic(size=len(X)) > 0, 1, 0)
    for seed in range(4):
        model = rehearsal(LogisticRegression, seed, classes=[0, 1]).fit(np.column_stack([X, np.ones(len(X))]), y)
        assert model.bounds_["x4"].flag is Flag.CONSTANT
        assert model.details_["stretch"] < 1.05


def test_a_target_far_from_zero_is_as_good_as_any() -> None:
    """Where noise beside a heap looked like rows, centre and scale were those of the noise, far off."""
    generator = np.random.default_rng(5)
    X = generator.normal(size=(2_500, 30))
    y = 42 + 0.02 * (0.7 * X[:, 0] + 0.7 * generator.normal(size=2_500))
    for seed in range(6):
        model = LinearRegression(epsilon=1, delta=1e-6, noise=Simulation(seed)).fit(X, y)
        assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.9 * y.std()
