"""Rows for teachers and a student, in the form of the public queries: frames, numbers, sparse numbers, or objects.

The queries decide how private rows are read, cell by cell, so no private row decides how another one is read. What is
refused here depends on shapes, names and the queries alone, not on the types that private columns have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from snugdp.estimators.inputs import eager
from snugdp.estimators.labels import labels_of
from snugdp.estimators.pate.cells import Column
from snugdp.secrecy.silence import attempt, muted
from snugdp.tables.cells import grid, groups, matrix, numbers
from snugdp.tables.cells.cell import sequence
from snugdp.tables.cells.rows import check_shape, undeclared_rows

Bits = NDArray[np.bool_]
Integers = NDArray[np.int64]

_SHAPE = "the queries must be rows by features: tables, or lists of rows of the same length"


@dataclass(frozen=True)
class Form:
    """What the public queries are: a "frame" with these columns, or "numbers", "sparse" or "objects".

    ``backend``: the library of a frame; ``labels``: the names of its columns as that library has them.
    """

    kind: str
    columns: tuple[Column, ...]
    names: tuple[str, ...] | None = None
    backend: Any = None
    labels: Any = None

    @classmethod
    def of(cls, queries: Any) -> Form:
        """The form of public rows.

        >>> Form.of([[0.5, 1], [2, None]]).kind, Form.of([["red", 1]]).kind
        ('numbers', 'objects')
        """
        frame = eager(queries)
        if frame is not None:
            columns = tuple(Column.of(frame.get_column(name)) for name in frame.columns)
            labels = queries.columns.copy() if hasattr(queries, "set_axis") else None
            return cls("frame", columns, tuple(frame.columns), frame.implementation, labels)
        if issparse(queries):
            return cls("sparse", (Column("number"),) * int(queries.shape[1]))
        if getattr(getattr(queries, "dtype", None), "kind", "O") in "biufc":
            return cls("numbers", (Column("number"),) * matrix(queries).shape[1])
        columns = tuple(Column.of_cells(column) for column in _public_cells(queries))
        return cls("objects" if any(column.kind == "text" for column in columns) else "numbers", columns)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def read(self, X: Any, what: str = "X") -> Any:
        """Rows in this form, in memory of their own, cell by cell: what a cell is read as depends on it alone.

        All numbers are float64. What is no number is missing where numbers are expected, whatever type X declares.
        """
        frame = eager(X)
        if (frame is not None) != (self.kind == "frame"):
            raise TypeError(f"{what} and the queries must be of one kind: tables with named columns, or arrays")
        if issparse(X) != (self.kind == "sparse"):
            raise TypeError(f"{what} and the queries must be of one kind: sparse, or dense as toarray() makes it")
        if frame is not None:
            if tuple(frame.columns) != self.names:
                raise ValueError(f"The feature names of {what} should match those of the queries, in the same order")
            return self._quiet(lambda: self.framed(self.cells(frame)))
        if issparse(X):
            self._check_width(int(X.shape[1]), what)
            return self._quiet(lambda: _compressed(X))
        if self.kind == "numbers" and getattr(getattr(X, "dtype", None), "kind", "O") in "biuf":
            plain = matrix(X, self.width)
            self._check_width(plain.shape[1], what)
            return np.array(plain, dtype=np.float64, order="C") + 0.0
        columns = self._columns(X, what)
        return self._quiet(lambda: self._filled(columns))

    def dress(self, X: Any) -> Any:
        """Rows of an array as a frame of the queries' columns. For rows to predict."""
        columns = self._columns(X, "X")
        pairs = list(zip(self.columns, columns, strict=True))
        return self._quiet(lambda: self.framed([kind.cells(cells) for kind, cells in pairs]))

    def _columns(self, X: Any, what: str) -> list[list[Any]]:
        """The cells of a list or an array, column by column. A row of a list that has another length is missing."""
        listed = undeclared_rows(X)
        if listed is not None:
            return _turned(grid(listed, self.width), self.width)
        array = np.asanyarray(X)
        if array.shape == (0,):
            array = array.reshape(0, self.width)
        check_shape(array)
        self._check_width(array.shape[1], what)
        if array.dtype.kind in "mM":
            raise TypeError(f"{what} must not be an array of dates or durations: give a list of rows, or a table")
        if array.dtype.kind in "US" and any(column.kind == "number" for column in self.columns):
            raise TypeError(
                f"{what} is an array of text, but the queries hold numbers. numpy turns all cells into text if "
                "one is text: give a list of rows, or a table"
            )
        cells = array.astype(object)
        return [list(column) for column in np.ma.filled(cells, None).T]

    def _check_width(self, width: int, what: str) -> None:
        if width != self.width:
            raise ValueError(
                f"{what} has {width} features, but PATEClassifier is expecting {self.width} features as input: those "
                "of the queries"
            )

    def _quiet(self, read: Callable[[], Any]) -> Any:
        with muted():
            worked, rows = attempt(read)
        if not worked:
            raise TypeError("the rows could not be read; the cause is withheld because it may depend on them")
        return rows

    def cells(self, frame: nw.DataFrame[Any]) -> list[Any]:
        """The cells of a frame that has these columns, and perhaps others: read, column by column."""
        return [kind.read(frame.get_column(name)) for name, kind in zip(self.names or (), self.columns, strict=True)]

    def framed(self, cells: Sequence[Any]) -> Any:
        """Cells that were read as a frame of the queries' library."""
        named = zip(self.names or (), self.columns, cells, strict=True)
        series = [column.series(name, read, self.backend) for name, column, read in named]
        native = nw.concat([one.to_frame() for one in series], how="horizontal").to_native()
        return native if self.labels is None else native.set_axis(self.labels, axis=1)

    def _filled(self, columns: list[list[Any]]) -> NDArray[Any]:
        shape = (len(columns[0]), self.width)
        rows = np.empty(shape, dtype=np.float64 if self.kind == "numbers" else object)
        for index, column in enumerate(self.columns):
            read = column.cells(columns[index])
            rows[:, index] = read.tolist() if column.kind == "number" else read
        return rows


def size(rows: Any) -> int:
    """How many rows there are."""
    return int(rows.shape[0])


def take(rows: Any, where: Integers | Bits) -> Any:
    """Some of the rows, of the same kind, in memory of their own; a pandas table is numbered anew."""
    if hasattr(rows, "iloc"):
        return rows.iloc[where].reset_index(drop=True).copy()
    if issparse(rows):
        return _indexed(rows[where])
    frame = eager(rows)
    if frame is None:
        return rows[where]
    positions = np.flatnonzero(where) if where.dtype == bool else where
    return frame[positions.tolist()].to_native()


def fresh(rows: Any) -> Any:
    """All rows in memory of their own: models may write into what they are given."""
    return take(rows, np.arange(size(rows)))


def spoiled(rows: Any, value: float) -> Any | None:
    """The rows with this value in place of all real numbers of the first one; nothing if there is no such number."""
    frame = eager(rows)
    if frame is None:
        if issparse(rows):
            return None
        real = np.array([isinstance(cell, float) for cell in rows[0].tolist()])
        rows = rows.copy()
        rows[0, real] = value
        return rows if real.any() else None
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
                fine &= allowed(numbers(frame.get_column(name).to_native()), nan=nan, infinite=infinite)
    elif issparse(rows):
        row = np.repeat(np.arange(size(rows)), np.diff(rows.indptr))
        fine[row[~allowed(rows.data, nan=nan, infinite=infinite)]] = False
    elif rows.dtype.kind == "f":
        fine &= allowed(rows, nan=nan, infinite=infinite).all(axis=1)
    elif rows.dtype.kind == "O":
        real = np.array([[cell if isinstance(cell, float) else 0.0 for cell in row] for row in rows.tolist()])
        fine &= allowed(real.reshape(rows.shape), nan=nan, infinite=infinite).all(axis=1)
    return fine


def read(X: Any, y: Any, whose: Any, form: Form, classes: NDArray[Any]) -> tuple[Any, Integers, Integers | None]:
    """Private rows, the indices of their labels, and the number of the person of each row if there are groups.

    A row without a group is a person of its own.
    """
    rows, labels = form.read(X), labels_of(y, classes.tolist())
    if size(rows) != len(labels):
        raise ValueError("X and y have inconsistent numbers of rows: give one label for every row")
    if isinstance(whose, str | bytes) or getattr(whose, "ndim", 1) != 1:
        raise ValueError("groups should be a 1d array or a column: one group for every row")
    persons = None if whose is None else groups(whose)
    if persons is not None and size(rows) != len(persons):
        raise ValueError("X and groups have inconsistent numbers of rows: give one group for every row")
    if persons is not None:
        alone = np.flatnonzero(persons < 0)
        persons[alone] = persons.max(initial=-1) + 1 + np.arange(len(alone))
    return rows, labels, persons


def allowed(cells: NDArray[Any], *, nan: bool, infinite: bool) -> Bits:
    """Which numbers may be learned from, where NaN or infinite ones may not."""
    fine = np.ones(cells.shape, dtype=bool)
    if not nan:
        fine &= ~np.isnan(cells)
    if not infinite:
        fine &= ~np.isinf(cells)
    return fine


def _public_cells(queries: Any) -> list[list[Any]]:
    """The cells of public queries, column by column; an error where they are not rows of one length."""
    listed = undeclared_rows(queries)
    if listed is None:
        array = np.asanyarray(queries)
        check_shape(array)
        if array.dtype.kind in "mM":
            raise TypeError("the queries must not be an array of dates or durations: give a list of rows, or a table")
        return [list(column) for column in np.ma.filled(array.astype(object), None).T]
    rows = [sequence(row) for row in listed]
    widths = {None if row is None else len(row) for row in rows}
    width = widths.pop() if len(widths) == 1 else None
    if not width:
        raise ValueError(_SHAPE)
    return _turned([row for row in rows if row is not None], width)


def _turned(rows: list[list[Any]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def _compressed(rows: Any) -> Any:
    """Sparse rows by row, as float64, with every entry once."""
    entries = rows.copy().tocoo()  # scipy notes in the original what it finds out
    data = entries.data
    with np.errstate(all="ignore"):
        floats = np.where(data.imag == 0, data.real, np.nan) if data.dtype.kind == "c" else data
    found = type(entries)((floats.astype(np.float64) + 0.0, entries.coords), shape=entries.shape).tocsr()
    return _indexed(found)


def _indexed(rows: Any) -> Any:
    """Sparse rows whose type of places depends on these rows alone."""
    kind = np.int32 if max(rows.nnz, *rows.shape) < 2**31 else np.int64
    rows.indptr, rows.indices = rows.indptr.astype(kind), rows.indices.astype(kind)
    return rows
