"""What every estimator owes to the people in its rows: a canary in their cells, which must show nowhere."""

from __future__ import annotations

import gc
import pickle
import re
import struct
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

CANARY, ROWS = 4217.8643, 7919  # a cell, and a number of rows, that occur nowhere else
SECRET = "Jane Q. Canary"
STRANGE: list[Any] = [
    np.nan, np.inf, -np.inf, 1e308, None, SECRET, b"x", {"a": 1}, 10**400, 1j, [], object(), pd.NA, pd.NaT,
    np.datetime64("NaT"),
]  # fmt: skip
each_strange_cell = pytest.mark.parametrize(
    "strange", STRANGE, ids=[f"{i}-{type(cell).__name__}" for i, cell in enumerate(STRANGE)]
)


class Untouchable:
    """Rows that must not be read."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the rows were read")


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


def contained(X: Any, kind: str) -> Any:
    """The rows in another container; a schema knows its columns by name."""
    if kind in ("pandas", "schema"):
        return pd.DataFrame(X, columns=list("abcd")[: X.shape[1]])
    if kind == "csr":
        return sp.csr_matrix(X)
    return {"array": X, "list": X.tolist(), "objects": X.astype(object)}[kind]


def assert_nothing_kept(
    fit: Callable[..., Any], made: Callable[[], tuple[Any, ...]], kind: str, *, largest: float = 10
) -> None:
    """A fit to these arrays, the rows in a container of this kind, leaves nothing of them: no text, no cell, no array.

    ``largest``: the size that every array of the model stays below.
    """
    X, *rest = made()
    watched = [weakref.ref(array) for array in (X, *rest)]
    model = fit(contained(X, kind), *rest)
    del X, rest
    for text in (repr(model), str(model), pickle.dumps(model), repr(model.get_params()), model._repr_html_()):
        assert not shows(text)
    for value in everything(model, set()):
        assert not shows(str(value)), type(value)
        assert not isinstance(value, np.ndarray) or value.size < largest
    gc.collect()
    assert [array() for array in watched] == [None] * len(watched)


def assert_refused_in_silence(fit: Callable[[], Any]) -> None:
    """It is refused, and neither the errors, with all that they came from, nor a warning quotes a row."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises((TypeError, ValueError)) as caught:
            fit()
    error: BaseException | None = caught.value
    while error is not None:
        assert not shows("".join(traceback.format_exception_only(error)))
        error = error.__cause__ or error.__context__
    assert not any(shows(str(warning.message)) for warning in said)


@contextmanager
def no_warnings() -> Iterator[None]:
    """A warning inside is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def assert_number_of_rows_does_not_show(public: Callable[[int], Any]) -> None:
    """With 0, 1 and 2 rows the same things happen without a warning, and what is public is the same."""
    with no_warnings():
        seen = [public(n) for n in (0, 1, 2, 50)]
    for other in seen[1:]:
        assert other == seen[0]
