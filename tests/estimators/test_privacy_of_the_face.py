"""Nothing private shows: not in repr, pickle, attributes, errors or warnings, and not in what is done with few rows."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp import (
    PCA,
    LinearRegression,
    LogisticRegression,
    MemoryLedger,
    Number,
    Schema,
    Simulation,
    SparseLinearRegression,
)
from tests.effort import sampled
from tests.estimators import checks
from tests.estimators.checks import CANARY, ROWS, SECRET

SCHEMA = Schema({"a": Number(0, 10), "b": Number(0, 10), "y": Number(0, 10)}, target="y")


def table(n: int = ROWS) -> tuple[Any, Any]:
    X, y = np.full((n, 2), CANARY), np.full(n, CANARY)
    return X, y


def test_the_search_finds_what_is_there() -> None:
    for found in (
        f"n = {ROWS}",
        np.array([CANARY]).tobytes(),
        pickle.dumps(CANARY),
        pickle.dumps(ROWS),
        pickle.dumps(np.int64(ROWS)),
    ):
        assert checks.shows(found)
    assert not checks.shows(repr(LinearRegression(x_norm=10, y_bound=10)))


@sampled(12)
@pytest.mark.parametrize("refuse", [False, True])
@pytest.mark.parametrize("kind", ["array", "list", "objects", "pandas", "schema"])
def test_nothing_of_the_rows_is_kept(tiny: str, kind: str, refuse: bool) -> None:
    bounds: dict[str, Any] = {"schema": SCHEMA} if kind == "schema" else {"x_norm": 10, "y_bound": 10}
    model = LinearRegression(method=tiny, proposals={"refuse": refuse}, ledger=MemoryLedger(9, 0.1), **bounds)
    checks.assert_nothing_kept(model.fit, table, kind)


@sampled(3)
@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "text", "lengths", "nested", "complex"])
def test_no_error_or_warning_quotes_a_row(kind: str) -> None:
    X, y = table()
    rows: Any = {
        "pandas": pd.DataFrame(
            {"a": pd.Series([[SECRET]] * ROWS, dtype=pd.ArrowDtype(pa.list_(pa.string()))), "b": X[:, 0]}
        ),
        "polars": pl.DataFrame({"a": [[SECRET]] * ROWS, "b": X[:, 0]}),
        "array": np.full((ROWS, 2), SECRET),
        "text": X,
        "lengths": X[1:],
        "nested": X[None],
        "complex": X + 1j * CANARY,
    }[kind]
    target: Any = np.array([SECRET] * ROWS) if kind == "text" else y
    for model in (
        LinearRegression(method="adassp", x_norm=10, y_bound=10),
        LinearRegression(method="adassp", schema=SCHEMA),
    ):
        checks.assert_refused_in_silence(partial(model.fit, rows, target))


@sampled(4)
@checks.each_strange_cell
def test_no_cell_raises_or_warns(strange: Any) -> None:
    """In a fit; and of all models in what they are asked afterwards, since audits look at fits alone."""
    cells: Any = np.zeros((12, 2)).tolist()
    cells[3][1] = strange
    array = np.zeros((12, 2), dtype=object)
    array[3, 1] = strange
    targets: Any = [0.0] * 12
    targets[5] = strange
    model = LinearRegression(method="adassp", x_norm=10, y_bound=10, noise=Simulation(0))
    frame = pd.DataFrame({"a": array[:, 0], "b": array[:, 1]})
    plain, seeded = np.zeros((12, 2)), dict[str, Any](noise=Simulation(0))
    components = PCA(1, x_norm=10, **seeded).fit(plain)
    labels = LogisticRegression(method="objective", x_norm=10, classes=[0, 1], **seeded).fit(plain, [0] * 12)
    few = SparseLinearRegression(1, method="adassp", y_bound=10, **seeded).fit(plain, [0.0] * 12)
    with checks.no_warnings():
        for rows in (cells, array, frame):
            assert model.fit(rows, targets).released_
            assert model.fit(rows, pd.Series(targets, dtype=object)).released_
            assert np.isfinite(model.predict(rows)).all()
        for asked in (components.transform, labels.predict_proba, few.predict):
            assert all(np.isfinite(asked(rows)).all() for rows in (cells, array))
        described = LinearRegression(method="adassp", schema=SCHEMA, noise=Simulation(0))
        assert described.fit(frame, targets).released_


@pytest.mark.parametrize("method", ["adassp", "sufficient"])
def test_the_number_of_rows_does_not_show(method: str) -> None:
    def public(n: int) -> list[Any]:
        X, y = np.ones((n, 2)), np.ones(n)
        frame = pd.DataFrame(X, columns=["a", "b"])
        seen, norms = [], {"x_norm": 10, "y_bound": 10}
        cases: list[tuple[Any, dict[str, Any]]] = [(X, norms), (frame, norms), (frame, {"schema": SCHEMA})]
        for rows, bounds in cases:
            fitted = LinearRegression(method=method, **bounds).fit(rows, y)
            assert fitted.predict(rows).shape == (n,)
            shown = fitted.cost_, fitted.n_features_in_, fitted.released_, len(fitted.coef_)
            seen.append((sorted(vars(fitted)), str(fitted.plan_), *shown))
        return seen

    checks.assert_number_of_rows_does_not_show(public)


def test_an_interrupted_fit_shows_no_row(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that raises because of a row fails closed inside the spine; what a fit adds around it says nothing."""
    X, y = table(50)
    model = LinearRegression(method=tiny, x_norm=10, y_bound=10, proposals={"theta": -1})
    with pytest.raises(ValueError, match="theta") as caught:
        model.fit(X, y)
    assert not checks.shows(str(caught.value))
    assert not hasattr(model, "released_")
