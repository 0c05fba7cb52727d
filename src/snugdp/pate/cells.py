"""From cells to votes: which class a label stands for, and which counts are counts. Each cell by itself.

Nothing here raises by a value; only declared types are refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.data.column import number, numbers, places
from snugdp.pate.blocks import Block, Lines

Integers = NDArray[np.int64]

MOST = 1 << 40  # teachers: sums of counts stay far from the end of the whole numbers
_BAND = 1 << 16  # classes that are whole numbers this close together are looked up in a table
_CELLS = 1 << 19  # votes counted at a time


def tally(found: Integers, width: int) -> Integers:
    """How often each place occurs in each row."""
    flat = found + width * np.arange(len(found))[:, None]
    return np.bincount(flat.ravel(order="K"), minlength=width * len(found)).reshape(len(found), width)


def placed(block: Block, labels: tuple[Hashable, ...]) -> Iterator[Integers]:
    """Where each label stands among the classes; the place after the last is for what is none of them."""
    if isinstance(block, Lines):
        lines = np.stack([places(line, labels) for line in block.lines]) if block.lines else np.zeros((0, 0), np.int64)
        found = lines if block.rows else lines.T
        yield np.where(found < 0, len(labels), found)
        return
    lookup = _Lookup(labels, block.dtype)
    size = max(1, _CELLS // max(block.shape[1], 1))
    for start in range(0, len(block), size):
        part = block[start : start + size]
        cells = lookup(np.asarray(part))
        if isinstance(part, np.ma.MaskedArray):
            cells[np.ma.getmaskarray(part)] = len(labels)
        yield cells


class _Lookup:
    """From cells of one declared type to places; cell by cell what Python's ``==`` says."""

    def __init__(self, labels: tuple[Hashable, ...], dtype: np.dtype[Any]) -> None:
        if dtype.kind not in "biufUS":
            raise TypeError("labels must be text, numbers or truth values; convert them first")
        self._none = len(labels)
        keys = {key: place for place, label in enumerate(labels) if (key := _key(label, dtype)) is not None}
        self._text = dtype.kind in "US"
        self._keys = np.array(sorted(keys), dtype=None if self._text else dtype)
        self._places = np.array([*(keys[key] for key in sorted(keys)), self._none], dtype=np.int64)
        self._table: Integers | None = None
        if not self._text and keys and all(key == key // 1 for key in keys) and max(keys) - min(keys) < _BAND:
            self._low, self._high = int(min(keys)), int(max(keys))
            self._table = np.full(self._high - self._low + 2, self._none, dtype=np.int64)
            self._table[[int(key) - self._low for key in keys]] = list(keys.values())

    def __call__(self, cells: NDArray[Any]) -> Integers:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            return self._found(cells)

    def _found(self, cells: NDArray[Any]) -> Integers:
        if not len(self._keys):
            return np.full(cells.shape, self._none, dtype=np.int64)
        if self._table is not None:
            return self._tabled(cells, self._table)
        at = np.searchsorted(self._keys, cells)
        last = np.minimum(at, len(self._keys) - 1)
        found: Integers = np.where(self._keys[last] == cells, self._places[last], self._none)
        return found

    def _tabled(self, cells: NDArray[Any], table: Integers) -> Integers:
        if cells.dtype.itemsize == 1:
            values = np.arange(256, dtype=np.uint8).view(np.int8 if cells.dtype.kind == "i" else np.uint8).astype(int)
            inside = (values >= self._low) & (values <= self._high)
            found: Integers = table[np.where(inside, values - self._low, len(table) - 1)][cells.view(np.uint8)]
            return found
        inside = (cells >= self._low) & (cells <= self._high)
        if cells.dtype.kind == "f":
            inside &= cells == np.floor(cells)
        shifted = np.full(cells.shape, len(table) - 1, dtype=np.int64)
        np.subtract(cells, self._low, out=shifted, where=inside, casting="unsafe")
        return table[shifted]


def _key(label: Hashable, dtype: np.dtype[Any]) -> Any:
    """The value of a declared type that equals a label, if there is one."""
    if dtype.kind in "US":
        text = isinstance(label, str if dtype.kind == "U" else bytes)
        ended = text and not label.endswith("\0" if dtype.kind == "U" else b"\0")  # type: ignore[attr-defined]
        return label if ended else None  # numpy's text cannot end with a null
    if isinstance(label, str | bytes):
        return None
    try:
        with np.errstate(all="ignore"):
            value = dtype.type(label)
        return value.item() if value.item() == label else None
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return None


def whole(block: Block) -> Integers:
    """The counts; -1 where a cell is none: missing, negative, not whole, or too large to be one."""
    if isinstance(block, Lines):
        lines = np.stack([_floats(line) for line in block.lines]) if block.lines else np.zeros((0, 0))
        cells: NDArray[Any] = lines if block.rows else lines.T
    else:
        cells = block
        if cells.dtype.kind not in "biuf":
            raise TypeError('histograms must hold numbers; for labels use form="teachers" or form="queries"')
    with np.errstate(all="ignore"):  # a warning would depend on private values
        plain = np.asarray(cells)
        good = (plain >= 0) & (plain <= MOST) if plain.dtype.kind != "b" else np.ones(plain.shape, dtype=np.bool_)
        if plain.dtype.kind == "f":
            good &= plain == np.floor(plain)
        if isinstance(cells, np.ma.MaskedArray):
            good &= ~np.ma.getmaskarray(cells)
        return np.where(good, plain, -1).astype(np.int64)


def _floats(line: Any) -> NDArray[np.float64]:
    """A line of counts as floats, which hold every count that is allowed; what is no number is NaN."""
    if isinstance(line, list | tuple | range) or getattr(line, "dtype", None) == np.dtype(object):
        return np.fromiter((number(cell) for cell in line), dtype=np.float64, count=len(line))
    return numbers(line)
