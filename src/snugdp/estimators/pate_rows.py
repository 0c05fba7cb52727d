"""Rows for teachers and a student, in the form of the public queries: frames, numbers, sparse numbers, or objects.

The queries decide how private rows are read, so no private row decides how another one is read. What is refused here
depends on shapes, names, declared types and the queries alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from snugdp.data.arrays import matrix
from snugdp.data.column import numbers, places
from snugdp.data.quiet import quietly
from snugdp.estimators.tables import eager

Bits = NDArray[np.bool_]
Integers = NDArray[np.int64]

_COLUMN = (
    "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for "
    "example using ravel()."
)
_CLASSES = (
    "classes is needed: all labels there can be, such as classes=range(10) or classes=['no', 'yes']. They must be "
    "known without the data: a label read from the rows may be one person's, and would tell that this person is there"
)
_SHAPE = "X and the queries must be rows by features: tables, or lists of rows of the same length"


@dataclass(frozen=True)
class Form:
    """What the public queries are: a "frame" with these columns, or "numbers", "sparse" or "objects" of this width."""

    kind: str
    width: int
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, queries: Any) -> Form:
        """The form of public rows.

        >>> Form.of([[0.5, 1], [2, None]]), Form.of([["red", 1]]).kind
        (Form(kind='numbers', width=2, names=None), 'objects')
        """
        frame = eager(queries)
        if frame is not None:
            return cls("frame", len(frame.columns), tuple(frame.columns))
        if issparse(queries):
            return cls("sparse", int(queries.shape[1]))
        if _textual(queries):
            return cls("objects", _cells(queries).shape[1])
        return cls("numbers", matrix(queries).shape[1])

    def read(self, X: Any, what: str = "X") -> Any:
        """Rows in this form. A cell that is no number is NaN where numbers are expected."""
        frame = eager(X)
        if (frame is not None) != (self.kind == "frame"):
            raise TypeError(f"{what} and the queries must be of one kind: tables with named columns, or arrays")
        if frame is not None:
            if tuple(frame.columns) != self.names:
                raise ValueError(f"The feature names of {what} should match those of the queries, in the same order")
            return X
        if issparse(X) != (self.kind == "sparse"):
            raise TypeError(f"{what} and the queries must be of one kind: sparse, or dense as toarray() makes it")
        rows: Any = X.tocsr() if issparse(X) else _cells(X) if self.kind == "objects" else matrix(X)
        if rows.shape[1] != self.width:
            raise ValueError(
                f"{what} has {rows.shape[1]} features, but PATEClassifier is expecting {self.width} features as input: "
                "those of the queries"
            )
        return rows


def size(rows: Any) -> int:
    """How many rows there are."""
    return int(rows.shape[0])


def take(rows: Any, where: Integers | Bits) -> Any:
    """Some of the rows, of the same kind; a pandas table is numbered anew."""
    if hasattr(rows, "iloc"):
        return rows.iloc[where].reset_index(drop=True)
    frame = eager(rows)
    if frame is None:
        return rows[where]
    positions = np.flatnonzero(where) if where.dtype == bool else where
    return frame[positions.tolist()].to_native()


def spoiled(rows: Any, value: float) -> Any | None:
    """The rows with this value in place of all real numbers of the first one; nothing if there is no such number."""
    frame = eager(rows)
    if frame is None:
        if issparse(rows) or rows.dtype.kind != "f":
            return None
        rows = rows.copy()
        rows[0] = value
        return rows
    columns = []
    for name, kind in frame.schema.items():
        if kind.is_float():
            cells = numbers(frame.get_column(name).to_native()).copy()
            cells[0] = value
            columns.append(nw.new_series(name, cells, kind, backend=frame.implementation))
    return frame.with_columns(*columns).to_native() if columns else None


def usable(rows: Any, *, nan: bool, infinite: bool) -> Bits:
    """Which rows may be learned from, each by itself, where NaN or infinite numbers may not."""
    fine = np.ones(size(rows), dtype=bool)
    frame = eager(rows)
    if frame is not None:
        for name, kind in frame.schema.items():
            if kind.is_numeric():
                fine &= _allowed(numbers(frame.get_column(name).to_native()), nan=nan, infinite=infinite)
    elif issparse(rows):
        row = np.repeat(np.arange(size(rows)), np.diff(rows.indptr))
        fine[row[~_allowed(rows.data, nan=nan, infinite=infinite)]] = False
    elif rows.dtype.kind == "f":
        fine &= _allowed(rows, nan=nan, infinite=infinite).all(axis=1)
    return fine


def declared(classes: Any) -> NDArray[Any]:
    """The public classes as an array, in ascending order where they have one.

    >>> declared(["yes", "no"]).tolist(), declared(range(3)).tolist()
    (['no', 'yes'], [0, 1, 2])
    """
    if classes is None:
        raise ValueError(_CLASSES)
    listed = None if isinstance(classes, str | bytes) else quietly(lambda: list(classes))[1]
    if listed is None:
        raise TypeError("classes must be a list of labels, such as range(10) or ['no', 'yes']")
    labels = [label.item() if isinstance(label, np.generic) else label for label in listed]
    worked, distinct = quietly(lambda: len(set(labels)))
    if not worked or distinct != len(labels) or len(labels) < 2 or any(_missing(label) for label in labels):
        raise ValueError("classes must be at least two different labels, such as numbers or text, none of them missing")
    labels = quietly(lambda: sorted(labels))[1] or labels
    array = np.array(labels) if len(set(map(type, labels))) == 1 else np.empty(0)
    if array.shape != (len(labels),):
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
    return array


def labels_of(y: Any, classes: Sequence[Hashable]) -> Integers:
    """The place of every label among the public classes; -1 for what is none of them."""
    frame = eager(y)
    if frame is not None:
        if len(frame.columns) != 1:
            raise ValueError("y should be a 1d array: one label for every row")
        warnings.warn(_COLUMN, DataConversionWarning, stacklevel=4)
        y = frame.get_column(frame.columns[0]).to_native()
    if not (isinstance(y, list | tuple) or hasattr(y, "dtype") or hasattr(y, "type")) and hasattr(y, "__array__"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and y.ndim != 1:
        if y.ndim != 2 or y.shape[1] != 1:
            raise ValueError("y should be a 1d array: one label for every row")
        warnings.warn(_COLUMN, DataConversionWarning, stacklevel=4)
        y = y.reshape(-1)
    kind, text = getattr(getattr(y, "dtype", None), "kind", "O"), [isinstance(label, str) for label in classes]
    if (kind in "biuf" and all(text)) or (kind == "U" and not any(text)):
        raise TypeError("y and classes must be of the same type: one of them is text, the other is numbers")
    return places(y, classes)


def read(X: Any, y: Any, groups: Any, form: Form, classes: NDArray[Any]) -> tuple[Any, Integers, Integers | None]:
    """Private rows, the places of their labels, and the number of the person of each row if there are groups."""
    rows, labels = form.read(X), labels_of(y, classes.tolist())
    if size(rows) != len(labels):
        raise ValueError("X and y have inconsistent numbers of rows: give one label for every row")
    whose = None if groups is None else people(groups)
    if whose is not None and size(rows) != len(whose):
        raise ValueError("X and groups have inconsistent numbers of rows: give one group for every row")
    return rows, labels, whose


def people(groups: Any) -> Integers:
    """A number for every distinct group, from 0 on; -1 for rows without one. Groups are told apart one by one.

    >>> people(["ann", "bob", "ann", None, 7, 7.0, float("nan")]).tolist()
    [0, 1, 0, -1, 2, 2, -1]
    """
    if isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype.kind in "biuSU":
        _, which = np.unique(groups, return_inverse=True)
        return which.astype(np.int64)
    series: Any = nw.from_native(groups, series_only=True, pass_through=True)
    cells: Any = series.to_list() if isinstance(series, nw.Series) else groups
    if getattr(cells, "ndim", 1) != 1 or not hasattr(cells, "__len__") or isinstance(cells, str | bytes):
        raise ValueError("groups should be a 1d array or a column: one group for every row")
    found: dict[Hashable, int] = {}
    return np.fromiter((_person(cell, found) for cell in cells), np.int64, len(cells))


def _person(cell: Any, found: dict[Hashable, int]) -> int:
    try:
        return -1 if _missing(cell) else found.setdefault(cell, len(found))
    except Exception:  # what cannot be compared belongs to nobody
        return -1


def _missing(cell: Any) -> bool:
    return cell is None or bool(cell != cell)  # noqa: PLR0124  NaN is not itself


def _allowed(cells: NDArray[Any], *, nan: bool, infinite: bool) -> Bits:
    fine = np.ones(cells.shape, dtype=bool)
    if not nan:
        fine &= ~np.isnan(cells)
    if not infinite:
        fine &= ~np.isinf(cells)
    return fine


def _textual(rows: Any) -> bool:
    """Whether public rows hold cells that are no numbers."""
    if isinstance(rows, np.ndarray):
        if rows.dtype.kind == "O":
            return not quietly(lambda: rows.astype(np.float64))[0]
        return rows.dtype.kind in "US"
    listed = isinstance(rows, list | tuple) and all(isinstance(row, list | tuple) for row in rows)
    return listed and any(isinstance(cell, str) for row in rows for cell in row)


def _cells(rows: Any) -> NDArray[Any]:
    """Rows of any objects, each cell as it is: numpy would give them the type that all have in common."""
    if isinstance(rows, list | tuple) and all(isinstance(row, list | tuple) for row in rows):
        width = len(rows[0]) if rows else 0
        if any(len(row) != width for row in rows):
            raise ValueError(_SHAPE)
        table = np.empty((len(rows), width), dtype=object)
        for place, row in enumerate(rows):
            table[place] = row
        return table
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        return rows.astype(object)
    raise ValueError(_SHAPE)
