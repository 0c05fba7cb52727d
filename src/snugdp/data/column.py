"""One column from any container, row by row.

Whether a call is refused depends on the container and its declared type alone. Inside, every row has an image that
depends on that row and nothing else: what is not a number is missing, and what is not in the public list is nobody's.
Rows of a list are never promoted to a common type: that would let one row change the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.data import kinds
from snugdp.data.quiet import quietly

Image = TypeVar("Image", bound=np.generic)
Rows: TypeAlias = "list[Any] | NDArray[Any] | nw.Series[Any]"

_ACCEPTED = "a list, a tuple, a one-dimensional numpy array, or a pandas, polars or pyarrow column"
_PLAIN_NUMBERS = {int, float, bool}
_NUMBERS: tuple[Any, ...] = (float, int, np.integer, np.floating, np.bool_, Decimal, Fraction)
_BASES: dict[Any, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}
_EXACT = {*_BASES, bool, type(None)}


def numbers(data: object) -> NDArray[np.float64]:
    """The column as floats; missing and unreadable rows are NaN.

    >>> numbers([1, 2.5, None, "x"]).tolist()
    [1.0, 2.5, nan, nan]
    """
    column = _column(data)
    if isinstance(column, list):  # without a declared type: that all rows are text is no reason to refuse, for one
        return _read(column, lambda: _list_numbers(column))  # row that is a number would be seen
    whole, real = _numeric(column)
    if whole:
        return _read(column, lambda: _spread(*_present(column), len(column)))
    if real:
        return _read(column, lambda: _real_numbers(column))
    raise TypeError(f"the column must hold numbers, not {type_name(column)}; convert it first")


def places(data: object, categories: Sequence[Hashable]) -> NDArray[np.int64]:
    """Where each row stands in the public list of categories; -1 for rows that are nobody's.

    >>> places(["b", "x", "a", "b"], ["a", "b"]).tolist()
    [1, -1, 0, 1]
    """
    column = _column(data)
    place = {category: i for i, category in enumerate(categories)}
    if isinstance(column, list):
        return _read(column, lambda: np.fromiter((_place(row, place) for row in column), np.int64, len(column)))
    if _by_value(column):
        return _read(column, lambda: _distinct_places(column, place))
    if isinstance(column, nw.Series) and hasattr(getattr(column.to_native(), "cat", None), "codes"):
        return _read(column, lambda: _coded_places(column.to_native(), place))
    if isinstance(column, nw.Series) and column.dtype in (nw.String, nw.Categorical, nw.Enum):
        return _read(column, lambda: _text_places(column, categories))
    raise TypeError(f"labels must be text, numbers or truth values, not {type_name(column)}; convert them first")


def number(row: object) -> float:
    """One row of a list as a float: NaN for what is no number, infinity for what is beyond the floats.

    A row is never asked, only its type: what a subclass of a number would print or raise is not run.
    """
    kind = type(row)
    if issubclass(kind, np.timedelta64) or not issubclass(kind, _NUMBERS):  # numpy counts durations among the integers
        return float("nan")
    base = next(base for base in _NUMBERS if issubclass(kind, base))
    try:
        return float(base.__float__(row))
    except OverflowError:
        return _beyond(row, base)
    except Exception:  # a signalling NaN
        return float("nan")


def unreadable(data: object) -> Exception:
    """What is wrong with a container that is no column."""
    if isinstance(data, np.ndarray):
        return ValueError(f"the column must be one-dimensional, not {data.ndim}-dimensional")
    hint = "; take one column, as in table['age']" if hasattr(data, "columns") else f"; give {_ACCEPTED}"
    return TypeError(f"cannot read a column from {type(data).__name__}{hint}")


def type_name(column: Rows) -> str:
    """The declared type in a word, without the labels or lengths that some types carry."""
    if isinstance(column, list):
        return "objects"
    if isinstance(column, nw.Series):
        return kinds.type_name(column.dtype)
    return {"U": "text", "S": "bytes", "M": "dates", "m": "durations", "c": "complex numbers"}.get(
        column.dtype.kind, "records"
    )


def _column(data: object) -> Rows:
    """The rows of a container: a list if it has no declared type, otherwise an array or a series."""
    if isinstance(data, np.ndarray):
        if data.ndim != 1:
            raise unreadable(data)
        untyped = data.dtype.kind == "O"
        return data.tolist() if untyped else data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    if isinstance(data, (list, tuple, range)):
        return list(data)
    if getattr(data, "dtype", None) == np.dtype(object):  # pandas without a declared type: like a list
        return list(data)  # type: ignore[call-overload, no-any-return]
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(data, arrow.Array):
        data = arrow.chunked_array([data])
    series: Any = nw.from_native(data, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise unreadable(data)
    if series.dtype == nw.Unknown and _is_null(series):
        return [None] * len(series)
    return series.to_list() if series.dtype == nw.Object else series


def _numeric(column: NDArray[Any] | nw.Series[Any]) -> tuple[bool, bool]:
    """Whether the declared type holds whole numbers (or truth values), or real ones."""
    if isinstance(column, nw.Series):
        dtype = column.dtype
        whole = dtype == nw.Boolean or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128))
        return whole, dtype.is_numeric()
    return column.dtype.kind in "biu", column.dtype.kind == "f"


def _is_null(series: nw.Series[Any]) -> bool:
    """Whether the column is declared to hold nothing at all: the only type without a name that can be read."""
    native: Any = series.to_native()
    return str(getattr(native, "type", None) or native.dtype).lower() in ("null", "null[pyarrow]")


def _by_value(column: NDArray[Any] | nw.Series[Any]) -> bool:
    """Whether the distinct values of the column can be listed in Python without a doubt: numbers, and numpy's text."""
    return any(_numeric(column)) or (isinstance(column, np.ndarray) and column.dtype.kind in "US")


def _list_numbers(rows: list[Any]) -> NDArray[np.float64]:
    if set(map(type, rows)) <= _PLAIN_NUMBERS:  # then numpy converts one by one, as ``number`` does
        try:
            return np.array(rows, dtype=np.float64)
        except OverflowError:
            pass
    return np.fromiter((number(row) for row in rows), dtype=np.float64, count=len(rows))


def _real_numbers(column: NDArray[Any] | nw.Series[Any]) -> NDArray[np.float64]:
    if isinstance(column, np.ma.MaskedArray):
        return _spread(*_present(column), len(column))
    if isinstance(column, np.ndarray):
        return column.astype(np.float64, copy=False)
    if column.dtype == nw.Decimal:  # backends round decimals differently; Python rounds them correctly
        return np.fromiter((number(row) for row in column.to_list()), dtype=np.float64, count=len(column))
    return np.asarray(column.cast(nw.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


def _present(column: NDArray[Any] | nw.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values, and which rows have one. No cast of the backend: pyarrow's raises on whole numbers beyond 2**53."""
    if isinstance(column, nw.Series):
        if not _numeric(column)[0]:
            values = _real_numbers(column)
            return values, ~np.isnan(values)
        filled = column.fill_null(False if column.dtype == nw.Boolean else 0)
        return np.asarray(filled.to_numpy()), ~np.asarray(column.is_null().to_numpy(), dtype=bool)
    return np.asarray(column), ~np.ma.getmaskarray(column)


def _spread(values: NDArray[Any], present: NDArray[np.bool_], rows: int) -> NDArray[np.float64]:
    if present.all():
        return values.astype(np.float64, copy=False)
    floats = np.full(rows, np.nan)
    floats[present] = values[present]
    return floats


def _distinct_places(column: NDArray[Any] | nw.Series[Any], place: dict[Hashable, int]) -> NDArray[np.int64]:
    """By the distinct values, as Python numbers or text, which compare exactly."""
    values, present = _present(column)
    labels, which = np.unique(values[present], return_inverse=True)
    found = np.full(len(column), -1, dtype=np.int64)
    found[present] = np.array([_place(label, place) for label in labels.tolist()], dtype=np.int64)[which]
    return found


def _coded_places(native: Any, place: dict[Hashable, int]) -> NDArray[np.int64]:
    """By the codes of a pandas categorical; code -1, a missing row, takes the last entry."""
    images = [*(_place(label, place) for label in native.cat.categories.tolist()), -1]
    found: NDArray[np.int64] = np.array(images, dtype=np.int64)[native.cat.codes.to_numpy()]
    return found


def _text_places(column: nw.Series[Any], categories: Sequence[Hashable]) -> NDArray[np.int64]:
    """By one comparison a category inside the backend: text that cannot be decoded never leaves it."""
    text = column if column.dtype == nw.String else column.cast(nw.String)
    found = np.full(len(column), -1, dtype=np.int64)
    for i, category in enumerate(categories):
        if isinstance(category, str):
            found[np.asarray((text == category).fill_null(False).to_numpy(), dtype=bool)] = i
    return found


def _place(row: Any, place: dict[Hashable, int]) -> int:
    worked, found = quietly(lambda: place.get(row if type(row) in _EXACT else plain(row), -1))
    return found if worked and found is not None else -1  # -1: also a row that cannot be compared with a category


def plain(row: Any) -> Any:
    """A row of a subclass of numbers or text without what the subclass does when it is compared."""
    kind = type(row)
    if kind.__module__ == "numpy" or not issubclass(kind, tuple(_BASES)):
        return row
    base = next(base for base in _BASES if issubclass(kind, base))
    return _BASES[base](row)


def _beyond(row: Any, base: Any) -> float:
    try:
        return float("inf") if base.__gt__(row, 0) else float("-inf")
    except Exception:
        return float("nan")


def _read(column: Rows, read: Callable[[], NDArray[Image]]) -> NDArray[Image]:
    """The rows, or an error about the declared type alone."""
    with np.errstate(all="ignore"):
        worked, images = quietly(read)
    if not worked or images is None:
        raise TypeError(f"a column of type {type_name(column)} could not be read; convert it to floats or text first")
    return images
