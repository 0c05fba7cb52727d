"""Nothing private shows: not in repr, pickle, attributes, errors or warnings, and not in what is done with few rows."""

from __future__ import annotations

import gc
import pickle
import re
import struct
import traceback
import warnings
import weakref
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp import LinearRegression, MemoryLedger, Number, Schema, Simulation
from tests.estimators.tiny import tiny  # noqa: F401

CANARY, ROWS = 4217.8643, 7919  # a cell, and a number of rows, that occur nowhere else
SECRET = "Jane Q. Canary"
LISTS = pd.ArrowDtype(pa.list_(pa.string()))
SCHEMA = Schema({"a": Number(0, 10), "b": Number(0, 10), "y": Number(0, 10)}, target="y")


def table(n: int = ROWS) -> tuple[Any, Any]:
    X, y = np.full((n, 2), CANARY), np.full(n, CANARY)
    return X, y


def shows(text: str | bytes) -> bool:
    """Whether a cell or the number of rows is in it, in digits or in bytes."""
    raw = text.encode() if isinstance(text, str) else text
    marks = [b"Canary", struct.pack("<d", CANARY), struct.pack(">d", CANARY)]
    marks += [b"M" + struct.pack("<H", ROWS), struct.pack("<q", ROWS)]  # a number as pickle and numpy write it
    numbers = re.search(rb"(?<![\d.])(4217|7919)(?!\d)", raw)  # not the digits of noise
    return numbers is not None or any(mark in raw for mark in marks)


def everything(value: Any, seen: set[int]) -> list[Any]:
    """All that can be reached from an estimator through attributes and containers."""
    if id(value) in seen or isinstance(value, type) or callable(value):
        return []
    seen.add(id(value))
    parts: list[Any] = list(getattr(value, "__dict__", {}).values())
    if isinstance(value, dict):
        parts += [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        parts += list(value)
    return [value, *(deep for part in parts for deep in everything(part, seen))]


def test_the_search_finds_what_is_there() -> None:
    for found in (
        f"n = {ROWS}",
        np.array([CANARY]).tobytes(),
        pickle.dumps(CANARY),
        pickle.dumps(ROWS),
        pickle.dumps(np.int64(ROWS)),
    ):
        assert shows(found)
    assert not shows(repr(LinearRegression(x_norm=10, y_bound=10)))


@pytest.mark.parametrize("refuse", [False, True])
@pytest.mark.parametrize("kind", ["array", "list", "objects", "pandas", "schema"])
def test_nothing_of_the_rows_is_kept(tiny: str, kind: str, refuse: bool) -> None:  # noqa: F811
    X, y = table()
    given: Any = X
    model = LinearRegression(
        method=tiny, x_norm=10, y_bound=10, proposals={"refuse": refuse}, ledger=MemoryLedger(9, 0.1)
    )
    if kind in ("list", "objects"):
        given = X.tolist() if kind == "list" else X.astype(object)
    if kind in ("pandas", "schema"):
        given = pd.DataFrame(X, columns=["a", "b"])
    if kind == "schema":
        model.set_params(schema=SCHEMA, x_norm=None, y_bound=None)
    model.fit(given, y)
    for text in (repr(model), str(model), pickle.dumps(model), repr(model.get_params()), model._repr_html_()):
        assert not shows(text)
    for value in everything(model, set()):
        assert not shows(str(value)), type(value)
        assert not isinstance(value, np.ndarray) or value.size < 10
    watched = weakref.ref(X)
    del X, given
    gc.collect()
    assert watched() is None


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
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with pytest.raises((TypeError, ValueError)) as caught:
                model.fit(rows, target)
        error: BaseException | None = caught.value
        while error is not None:
            assert not shows("".join(traceback.format_exception_only(error)))
            error = error.__cause__ or error.__context__
        assert not any(shows(str(warning.message)) for warning in said)


STRANGE: list[Any] = [
    np.nan, np.inf, -np.inf, 1e308, None, SECRET, b"x", {"a": 1}, 10**400, 1j, [], object(), pd.NA, pd.NaT,
    np.datetime64("NaT"),
]  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE, ids=[f"{i}-{type(cell).__name__}" for i, cell in enumerate(STRANGE)])
def test_no_cell_raises_or_warns(strange: Any) -> None:
    cells: Any = np.zeros((12, 2)).tolist()
    cells[3][1] = strange
    array = np.zeros((12, 2), dtype=object)
    array[3, 1] = strange
    targets: Any = [0.0] * 12
    targets[5] = strange
    model = LinearRegression(method="adassp", x_norm=10, y_bound=10, noise=Simulation(0))
    frame = pd.DataFrame({"a": array[:, 0], "b": array[:, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (cells, array, frame):
            assert model.fit(rows, targets).released_
            assert model.fit(rows, pd.Series(targets, dtype=object)).released_
            assert np.isfinite(model.predict(rows)).all()
        described = LinearRegression(method="adassp", schema=SCHEMA, noise=Simulation(0))
        assert described.fit(frame, targets).released_


@pytest.mark.parametrize("method", ["adassp", "sufficient"])
def test_the_number_of_rows_does_not_show(method: str) -> None:
    """With 0, 1 and 2 rows the same things happen, and what is public is the same."""
    seen = []
    for n in (0, 1, 2, 50):
        X, y = np.ones((n, 2)), np.ones(n)
        frame = pd.DataFrame(X, columns=["a", "b"])
        for rows, model in (
            (X, LinearRegression(method=method, x_norm=10, y_bound=10)),
            (frame, LinearRegression(method=method, x_norm=10, y_bound=10)),
            (frame, LinearRegression(method=method, schema=SCHEMA)),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                fitted = model.fit(rows, y)
            names = sorted(vars(fitted))
            public = (str(fitted.plan_), fitted.cost_, fitted.n_features_in_, fitted.released_, len(fitted.coef_))
            seen.append((n, names, public, fitted.predict(rows).shape))
    for (_, *one), (_, *other) in zip(seen[:3] * 3, seen[3:], strict=True):
        assert one[:2] == other[:2]
    assert [shape for *_, shape in seen[::3]] == [(0,), (1,), (2,), (50,)]


def test_an_interrupted_fit_shows_no_row(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """A method that raises because of a row fails closed inside the spine; what a fit adds around it says nothing."""
    X, y = table(50)
    model = LinearRegression(method=tiny, x_norm=10, y_bound=10, proposals={"theta": -1})
    with pytest.raises(ValueError, match="theta") as caught:
        model.fit(X, y)
    assert not shows(str(caught.value))
    assert not hasattr(model, "released_")
