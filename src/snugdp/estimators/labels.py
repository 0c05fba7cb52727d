"""Labels among public classes, one by one: what a label is read as depends on its own cell alone.

Libraries give a column the type that all its cells have in common: one odd cell can turn a column of numbers into text.
So no declared type counts, and none is refused: 1, 1.0 and "1" are the class 1, or the class "1".
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from snugdp.data.column import places
from snugdp.data.quiet import quietly
from snugdp.estimators.pate_cells import as_number, as_text, cells_of, hushed
from snugdp.estimators.tables import eager

Integers = NDArray[np.int64]

_PLAIN = {str, int, float, bool, type(None)}
_COLUMN = (
    "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for "
    "example using ravel()."
)
_CLASSES = (
    "classes is needed: all labels there can be, such as classes=range(10) or classes=['no', 'yes']. They must be "
    "known without the data: a label read from the rows may be one person's, and would tell that this person is there"
)


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
    if not worked or distinct != len(labels) or len(labels) < 2 or any(missing(label) for label in labels):
        raise ValueError("classes must be at least two different labels, such as numbers or text, none of them missing")
    labels = quietly(lambda: sorted(labels))[1] or labels
    array = np.array(labels) if len(set(map(type, labels))) == 1 else np.empty(0)
    if array.shape != (len(labels),):
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
    return array


def labels_of(y: Any, classes: Sequence[Hashable]) -> Integers:
    """The place of every label among the public classes; -1 for what is none of them.

    >>> labels_of(np.array([0, 1, "rare"]), [0, 1]).tolist(), labels_of([5, "5", 5.0], ["4", "5"]).tolist()
    ([0, 1, -1], [1, 1, 1])
    """
    y = _one_column(y)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(y, arrow.Array):
        y = arrow.chunked_array([y])
    series: Any = nw.from_native(y, series_only=True, pass_through=True)
    read = _reader(classes)
    with hushed():
        if isinstance(series, nw.Series):
            worked, found = quietly(lambda: _by_value(series, read))
            return found if worked and found is not None else _by_cell(cells_of(series), read)
        if isinstance(y, np.ma.MaskedArray):
            return _by_cell(y.tolist(), read)
        if isinstance(y, np.ndarray):
            return _distinct(y, read) if y.dtype.kind in "biuf" else _by_cell(_cells(y), read)
        if isinstance(y, list | tuple | range):
            return _by_cell(list(y), read)
    return places(y, classes)  # which says what a column may be


def missing(cell: Any) -> bool:
    """Whether there is nothing in a cell."""
    return cell is None or bool(cell != cell)  # noqa: PLR0124  NaN is not itself


def _reader(classes: Sequence[Hashable]) -> Callable[[Any], int]:
    """How one cell is read: the class that equals it, or its text, or its number, or the only one that spells that."""
    place: dict[Any, int] = {label: i for i, label in enumerate(classes)}
    spelled = [(as_number(label), i) for label, i in place.items() if isinstance(label, str)]
    alone = Counter(value for value, _ in spelled)
    number = {value: i for value, i in spelled if alone[value] == 1}
    ways: tuple[Callable[[Any], Any], ...] = (
        place.get,
        lambda cell: place.get(as_text(cell)),
        lambda cell: place.get(_whole(cell)),
        lambda cell: place.get(as_number(cell), number.get(as_number(cell))),
    )

    def read(cell: Any) -> int:
        for way in ways:
            found = quietly(partial(way, cell))[1]
            if found is not None:
                return int(found)
        return -1

    return read


def _whole(cell: Any) -> int | None:
    """The whole number that text spells, exactly, also beyond the floats."""
    text = str.__str__(cell) if isinstance(cell, str) else "_"
    return None if "_" in text else int(text)


def _by_value(series: nw.Series[Any], read: Callable[[Any], int]) -> Integers | None:
    """Numbers of a declared type by their distinct values, which is faster; nothing for other columns."""
    dtype = series.dtype
    if not (dtype.is_integer() or dtype.is_float() or dtype == nw.Boolean):
        return None
    empty = np.asarray(series.is_null().to_numpy(), dtype=bool)
    filled = np.asarray(series.fill_null(False if dtype == nw.Boolean else 0).to_numpy())
    return np.where(empty, -1, _distinct(filled, read)) if filled.dtype.kind in "biuf" else None


def _distinct(values: NDArray[Any], read: Callable[[Any], int]) -> Integers:
    labels, which = np.unique(values, return_inverse=True)
    return np.array([read(label) for label in labels.tolist()], dtype=np.int64)[which]


def _cells(y: NDArray[Any]) -> list[Any]:
    return list(y) if y.dtype.kind in "mM" else y.tolist()  # nanoseconds would become whole numbers


def _by_cell(cells: list[Any], read: Callable[[Any], int]) -> Integers:
    """Each by itself; plain ones, which compare without asking anybody, once for every distinct value."""
    types = set(map(type, cells))
    if not types <= _PLAIN:
        return np.fromiter(map(read, cells), np.int64, len(cells))
    images: dict[Any, int]
    if len(types) == 1:
        images = {cell: read(cell) for cell in set(cells)}
        return np.fromiter(map(images.__getitem__, cells), np.int64, len(cells))
    keys = list(zip(map(type, cells), cells, strict=True))  # 1, 1.0 and True are equal, but not as text
    images = {key: read(key[1]) for key in set(keys)}
    return np.fromiter(map(images.__getitem__, keys), np.int64, len(keys))


def _one_column(y: Any) -> Any:
    frame = eager(y)
    if frame is not None:
        if len(frame.columns) != 1:
            raise ValueError("y should be a 1d array: one label for every row")
        warnings.warn(_COLUMN, DataConversionWarning, stacklevel=5)
        y = frame.get_column(frame.columns[0]).to_native()
    if not (isinstance(y, list | tuple) or hasattr(y, "dtype") or hasattr(y, "type")) and hasattr(y, "__array__"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and y.ndim != 1:
        if y.ndim != 2 or y.shape[1] != 1:
            raise ValueError("y should be a 1d array: one label for every row")
        warnings.warn(_COLUMN, DataConversionWarning, stacklevel=5)
        y = y.reshape(-1)
    return y
