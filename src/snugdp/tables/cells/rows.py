"""Rows by features from any container without names of columns, cell by cell.

An array declares its shape. A list declares none: an entry that is a list is a row, any other entry a row of one cell.
Unless the width is given, it is the length that most rows have, and public like the names of columns. All cells of a
row of another length are missing: it is that row's problem, and nobody else's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt, muted
from snugdp.tables.cells import cell as one
from snugdp.tables.cells.columns import Floats, listed_numbers

_SHAPE = (
    "Expected 2D array, got {} array instead: rows by features. Reshape your data with X.reshape(-1, 1) if it has a "
    "single feature, or with X.reshape(1, -1) if it is a single row"
)
_NO_COLUMNS = "X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required. Give at least one column"


def matrix(X: Any, width: int | None = None) -> NDArray[Any]:
    """The rows as a matrix of numbers; no copy where they are one already. What is not a number is NaN.

    ``width``: how many cells a row of a list has, where that is declared.

    >>> matrix([[1, None], [True, "x"], [5], "?"]).tolist()
    [[1.0, nan], [1.0, nan], [nan, nan], [nan, nan]]
    """
    if is_sparse(X):
        raise TypeError("sparse data are not supported: give a dense array, as X.toarray() makes it")
    listed = undeclared_rows(X)
    if listed is not None:
        cells = grid(listed, width)
        with muted():
            return _reshaped(listed_numbers(list(chain.from_iterable(cells))), cells, width)
    rows = np.asanyarray(X)
    if rows.shape == (0,):  # what numpy makes of an empty list
        return np.empty((0, width or 1))
    if rows.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real numbers")
    check_shape(rows)
    if rows.dtype.kind == "O":
        with muted():
            return listed_numbers(rows.ravel().tolist()).reshape(rows.shape)
    if rows.dtype.kind not in "biuf":
        raise TypeError(
            "X must hold numbers; convert it first, or describe the table by a schema. numpy turns all cells into "
            "text if one is text: give a list, or a table"
        )
    if isinstance(rows, np.ma.MaskedArray):
        with muted():
            return np.ma.filled(rows.astype(np.float64), np.nan)
    return np.asarray(rows)


def undeclared_rows(X: Any) -> list[Any] | None:
    """The rows of a list, or of what is like one: numpy would find one type for all cells by looking at them."""
    listed = one.sequence(X) if not isinstance(X, np.ndarray) else X.tolist() if _is_list_of_objects(X) else None
    if listed is not None or isinstance(X, str | bytes | Mapping | np.ndarray):
        return listed
    if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        return None  # nothing to numpy but one object
    declares = any(hasattr(X, name) for name in ("__array__", "__array_interface__", "__array_struct__"))
    if declares or attempt(lambda: memoryview(X))[0]:
        return None
    return attempt(lambda: list(X))[1]


def grid(rows: list[Any], width: int | None = None) -> list[list[Any]]:
    """The cells of a list of rows, all of one length; None in those of another.

    >>> grid([[1, 2], (3, 4), [5], 6])
    [[1, 2], [3, 4], [None, None], [None, None]]
    """
    plain = [_plain(row) for row in rows]
    lengths = [attempt(partial(one.length, row))[1] for row in plain]
    size = width if width is not None else _commonest([1 if length is None else length for length in lengths])
    missing: list[Any] = [None] * size
    return [
        missing if (1 if length is None else length) != size else [row] if length is None else one.sequence(row) or []
        for row, length in zip(plain, lengths, strict=True)
    ]


def check_shape(rows: NDArray[Any]) -> None:
    """An error unless an array is rows by features: its shape is declared, and public."""
    if rows.ndim != 2:
        raise ValueError(_SHAPE.format("scalar" if rows.ndim == 0 else f"{rows.ndim}D"))
    if rows.shape[1] == 0:
        raise ValueError(_NO_COLUMNS)


def is_sparse(data: object) -> bool:
    """Without importing scipy: whoever has a sparse matrix has imported it."""
    return type(data).__module__.startswith("scipy.sparse")


def _plain(row: Any) -> Any:
    """A row that is a column of a library as a list; any other as it is."""
    if str(type(row).__module__).partition(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(row, "__len__"):
        return attempt(lambda: row.to_pylist() if hasattr(row, "to_pylist") else list(row))[1]
    return row


def _commonest(lengths: list[int]) -> int:
    """The length that most rows have, the first of several; 1 where no row tells."""
    counts = Counter(length for length in lengths if length > 0)
    return counts.most_common(1)[0][0] if counts else 1


def _is_list_of_objects(X: NDArray[Any]) -> bool:
    return X.ndim == 1 and X.dtype.kind == "O"


def _reshaped(cells: Floats, rows: list[list[Any]], width: int | None) -> Floats:
    return cells.reshape(len(rows), len(rows[0]) if rows else width or 1)
