"""Which of some public names each cell of a column is: what a cell is read as depends on itself alone.

Libraries give a column the type that all its cells have in common: one odd cell can turn a column of numbers into text.
So no declared type counts, and none is refused: 1, 1.0 and "1" are the name 1, or the name "1".
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.data import column
from snugdp.data.cells import as_number, as_text, cells_of, hushed
from snugdp.data.quiet import quietly

Integers = NDArray[np.int64]
Reader: TypeAlias = Callable[[Any], int]
Cells: TypeAlias = "list[Any] | NDArray[Any] | nw.Series[Any]"

_PLAIN = {str, int, float, bool, type(None)}


def places(data: Any, names: Sequence[Hashable]) -> Integers:
    """The place of every cell among the public names; -1 for what is none of them.

    >>> places(np.array([0, 1, "rare"]), [0, 1]).tolist(), places([5, "5", 5.0], ["4", "5"]).tolist()
    ([0, 1, -1], [1, 1, 1])
    """
    cells, read = _cells(data), reader(names)
    with hushed():
        worked, found = quietly(lambda: _by_value(cells, read))
        return found if worked and found is not None else _by_cell(_listed(cells), read)


def counts(data: Any, names: Sequence[Hashable]) -> list[int]:
    """How often each public name occurs. Cells that are none of them count for nobody.

    >>> counts(["a", "b", 1, "a"], ["a", "b", "c"]), counts(["1", "2", "?"], [1, 2])
    ([2, 1, 0], [1, 1])
    """
    cells, read = _cells(data), reader(names)
    tally = np.zeros(len(names) + 1, dtype=np.int64)  # what is nobody's comes last
    with hushed():
        worked, sizes = quietly(lambda: _sizes(cells))
        if worked and sizes is not None:
            for cell, size in sizes:
                tally[read(cell)] += size
        else:
            np.add.at(tally, _by_cell(_listed(cells), read), 1)
    return [int(count) for count in tally[:-1]]


def reader(names: Sequence[Hashable]) -> Reader:
    """How one cell is read: the name that equals it, or its text, or its number, or the only one that spells that."""
    place: dict[Any, int] = {name: i for i, name in enumerate(names)}
    spelled = [(as_number(name), i) for name, i in place.items() if isinstance(name, str)]
    alone = Counter(value for value, _ in spelled if not math.isnan(value))
    number = {value: i for value, i in spelled if alone[value] == 1}
    ways: tuple[Callable[[Any], Any], ...] = (
        place.get,
        lambda cell: place.get(as_text(cell)),
        lambda cell: place.get(_whole(cell)),
        lambda cell: place.get(as_number(cell), number.get(as_number(cell))),
    )

    def read(cell: Any) -> int:
        bare = quietly(partial(column.plain, cell))[1]
        for way in ways:
            found = quietly(partial(way, bare))[1]
            if found is not None:
                return int(found)
        return -1

    return read


def _whole(cell: Any) -> int | None:
    """The whole number that text spells, exactly, also beyond the floats."""
    text = str.__str__(cell) if isinstance(cell, str) else "_"
    return None if "_" in text else int(text)


def _cells(data: Any) -> Cells:
    """The cells of a container, or an error that says what a column may be."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(data, arrow.Array):
        data = arrow.chunked_array([data])
    series: Any = nw.from_native(data, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    if isinstance(data, np.ma.MaskedArray) and data.ndim == 1:
        return data.tolist()  # type: ignore[no-any-return]
    if isinstance(data, np.ndarray) and data.ndim == 1:
        return data
    if isinstance(data, list | tuple | range):
        return list(data)
    raise column.unreadable(data)


def _listed(cells: Cells) -> list[Any]:
    if isinstance(cells, nw.Series):
        return cells_of(cells)
    if isinstance(cells, list):
        return cells
    return list(cells) if cells.dtype.kind in "mM" else cells.tolist()  # nanoseconds would become whole numbers


def _by_value(cells: Cells, read: Reader) -> Integers | None:
    """Numbers of a declared type by their distinct values, which is faster; nothing for other columns."""
    found = _numbers(cells)
    if found is None:
        return None
    values, empty = found
    names, which = np.unique(values, return_inverse=True)
    return np.where(empty, -1, np.array([read(name) for name in names.tolist()], dtype=np.int64)[which])


def _sizes(cells: Cells) -> list[tuple[Any, int]] | None:
    """The distinct values and how often they occur, of numbers and of text; nothing for other columns."""
    found = _numbers(cells)
    if found is not None:
        values, empty = found
        names, sizes = np.unique(values[~empty], return_counts=True)
        return list(zip(names.tolist(), sizes.tolist(), strict=True))
    if isinstance(cells, nw.Series) and cells.dtype == nw.String:
        table = cells.alias("name").value_counts(name="size")
        return list(zip(table["name"].to_list(), table["size"].to_list(), strict=True))
    return None


def _numbers(cells: Cells) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """Numbers of a declared type, and which of them are missing."""
    if isinstance(cells, list):
        return None
    if isinstance(cells, np.ndarray):
        return (cells, np.zeros(len(cells), dtype=bool)) if cells.dtype.kind in "biuf" else None
    dtype = cells.dtype
    if not (dtype.is_integer() or dtype.is_float() or dtype == nw.Boolean):
        return None
    empty = np.asarray(cells.is_null().to_numpy(), dtype=bool)
    filled = np.asarray(cells.fill_null(False if dtype == nw.Boolean else 0).to_numpy())
    return (filled, empty) if filled.dtype.kind in "biuf" else None


def _by_cell(cells: list[Any], read: Reader) -> Integers:
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
