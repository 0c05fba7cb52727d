"""One column from any container, row by row and without a look at the values.

Whether a call is refused depends on the container and its declared type alone. Inside, every row has an image:
what is not a number is missing, and what is not in the public list counts for nobody.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

_NOBODY = object()
_ACCEPTED = "a list, a tuple, a one-dimensional numpy array, or a pandas, polars or pyarrow column"


def numbers(data: object) -> NDArray[np.float64]:
    """The column as floats; missing and unreadable rows are NaN."""
    column = _column(data)
    kind = _kind(column)
    if kind == "text":
        raise TypeError("the column holds text; convert it to numbers first")
    if kind == "other":
        raise TypeError(f"the column must hold numbers, not {column.dtype}; convert it first")
    read = _quietly(lambda: _floats(column, kind))
    if read is None:  # raised here, outside any handler: a native library's message may quote a row
        raise TypeError(f"a column of type {column.dtype} could not be read as numbers; convert it to floats first")
    return read


def counts(data: object, categories: Sequence[Hashable]) -> list[int]:
    """How often each public category occurs. Rows in no category count for nobody."""
    column = _column(data)
    if isinstance(column, nw.Series):
        if column.dtype.is_nested():
            raise TypeError(f"the column must hold labels, not {column.dtype}")
        table = column.value_counts(sort=False, name="count")
        labels, sizes = table.get_column(table.columns[0]).to_list(), table.get_column("count").to_list()
    elif column.dtype.kind == "O":
        return _object_counts(column, categories)
    else:
        values, number = np.unique(column, return_counts=True)
        labels, sizes = values.tolist(), number.tolist()
    tally = dict(zip(labels, sizes, strict=True))
    return [int(tally.get(category, 0)) for category in categories]


def _object_counts(column: NDArray[Any], categories: Sequence[Hashable]) -> list[int]:
    rows = column.tolist()
    try:
        tally = Counter(rows)
    except Exception:  # some row cannot be compared with a category: go row by row, and leave it out
        places = {category: category for category in categories}
        tally = Counter(_matched(row, places) for row in rows)
    return [tally[category] for category in categories]


def _matched(row: Any, places: dict[Hashable, Hashable]) -> object:
    try:
        return places.get(row, _NOBODY)
    except Exception:
        return _NOBODY


def _column(data: object) -> NDArray[Any] | nw.Series[Any]:
    if isinstance(data, np.ndarray):
        if data.ndim != 1:
            raise ValueError(f"the column must be one-dimensional, not {data.ndim}-dimensional")
        return _from_list(data.tolist()) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    if isinstance(data, (list, tuple, range)):
        return _from_list(data)
    if getattr(data, "dtype", None) == np.dtype(object):  # pandas without a declared type: like a list
        return _from_list(list(data))  # type: ignore[call-overload]
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(data, arrow.Array):
        data = arrow.chunked_array([data])
    series: Any = nw.from_native(data, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise TypeError(f"cannot read a column from {type(data).__name__}; give {_ACCEPTED}")
    return series


def _from_list(rows: Sequence[Any]) -> NDArray[Any]:
    """An array of numbers if numpy sees nothing else, otherwise an array of objects: a list has no declared type."""
    try:
        array = np.asarray(rows)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.ndim == 1 and len(array) == len(rows) and (array.dtype.kind in "biuf" or not len(rows)):
        return array
    return np.fromiter(rows, dtype=object, count=len(rows))


def _kind(column: NDArray[Any] | nw.Series[Any]) -> str:
    """What a column is declared to hold: whole, real, objects, text or something else. Types are public."""
    if isinstance(column, nw.Series):
        dtype = column.dtype
        if dtype in (nw.Object, nw.Unknown):
            return "objects"
        whole = dtype == nw.Boolean or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128))
        return "whole" if whole else "real" if dtype.is_numeric() else "other"
    if column.dtype.kind == "O":
        text = len(column) > 0 and all(isinstance(row, (str, bytes)) for row in column)
        return "text" if text else "objects"
    return {"b": "whole", "i": "whole", "u": "whole", "f": "real"}.get(column.dtype.kind, "other")


def _floats(column: NDArray[Any] | nw.Series[Any], kind: str) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        if kind == "objects":
            rows = column.to_list() if isinstance(column, nw.Series) else column
            return np.fromiter((_number(row) for row in rows), dtype=np.float64, count=len(rows))
        if not isinstance(column, nw.Series):
            return column.astype(np.float64, copy=False)
        if kind == "real":
            return np.asarray(column.cast(nw.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
        # Not by a cast of the backend: pyarrow's raises on whole numbers beyond 2**53, and quotes them.
        values = np.asarray(column.fill_null(0 if column.dtype != nw.Boolean else False).to_numpy()).astype(np.float64)
        values[column.is_null().to_numpy()] = np.nan
        return values


def _quietly(read: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64] | None:
    try:
        return read()
    except Exception:
        return None


def _number(row: object) -> float:
    if not isinstance(row, (int, float, np.integer, np.floating, np.bool_, Decimal, Fraction)):
        return float("nan")
    try:
        return float(row)
    except OverflowError:
        return float("inf") if row > 0 else float("-inf")
    except ValueError:  # Decimal("sNaN")
        return float("nan")
