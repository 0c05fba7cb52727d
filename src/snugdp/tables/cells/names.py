"""A public list of names (classes, categories, candidates), and which of them each cell of a column is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt, muted
from snugdp.tables.cells import cell as one
from snugdp.tables.cells.columns import Integers, label_images, label_rows

_BAND = 1 << 16  # names that are whole numbers this close together are looked up in a table
_EXACT = 1 << 24  # whole numbers below it are the image of no other number


@dataclass(frozen=True)
class Names:
    """Public names that tell cells apart. ``what``: how messages call them.

    Guarantee: the index of a cell depends on that cell and on the names alone, in every container. Names that one
    reading could confuse, such as 1 and "1", are refused here, where all is public.

    >>> Names(["a", "b"]).indices(["b", "x", None, "a"]).tolist(), Names([0, 1]).indices(np.array(["1", "?"])).tolist()
    ([1, -1, -1, 0], [1, -1])
    """

    names: Sequence[Hashable]
    what: str = "the names"

    def __post_init__(self) -> None:
        listed = None if isinstance(self.names, str | bytes) else attempt(lambda: list(self.names))[1]
        if listed is None:
            raise TypeError(f"{self.what} must be a list of labels")
        plain = tuple(name.item() if isinstance(name, np.generic) else name for name in listed)
        object.__setattr__(self, "names", plain)
        if any(isinstance(name, list | tuple | set | dict) for name in plain):
            raise TypeError(f"{self.what} must be text, numbers, booleans or dates, not containers")
        if any(isinstance(name, complex | np.complexfloating) for name in plain):
            raise ValueError(f"Complex data not supported: {self.what} must be text, numbers, booleans or dates")
        labels = [one.label(name) for name in plain]
        if None in labels:
            raise ValueError(
                f"{self.what} must be text, numbers, booleans or dates. None, NaN and the text 'nan' stand for a "
                "missing label and cannot be listed"
            )
        if len(set(labels)) != len(labels):
            raise ValueError(
                f"two of {self.what} are the same label: list each once. Numbers and text that spells them are one "
                "label (1, 1.0, True and '1'), and so are numbers that no double-precision float tells apart: loaders "
                "turn one into the other"
            )

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {one.label(name): index for index, name in enumerate(self.names)}

    def index(self, cell: Any) -> int:
        """The index of one cell among the names; -1 for what is none of them."""
        return self._index.get(one.label(cell), -1)

    def indices(self, data: object) -> Integers:
        """The index of every cell of a column; -1 for what is none of the names."""
        return label_images(label_rows(data, self.what), self.index, self.of_numbers, self._large)

    def places(self, data: object) -> Integers:
        """As ``indices``, but a label that is none of the names counts as one more name; -1 is for missing cells.

        >>> Names(["a", "b"]).places(["b", "x", None, "nan", 7]).tolist()
        [1, 2, -1, -1, 2]
        """
        other = len(self)

        def place(cell: Any) -> int:
            found = one.label(cell)
            return -1 if found is None else self._index.get(found, other)

        def of_floats(values: NDArray[Any]) -> Integers:
            found = self.of_numbers(values)
            return np.where((found < 0) & ~np.isnan(values.astype(np.float64)), other, found)

        return label_images(label_rows(data, self.what), place, of_floats, self._large)

    @cached_property
    def _large(self) -> bool:
        return any(isinstance(key, float) and key.is_integer() and abs(key) >= _EXACT for key in self._index)

    def counts(self, data: object) -> Integers:
        """How often each name occurs in a column. Cells that are none of them are ignored.

        >>> Names(["a", "b"]).counts(["a", "b", 1, "a"]).tolist()
        [2, 1]
        """
        return np.bincount(self.indices(data) + 1, minlength=len(self) + 1)[1:].astype(np.int64)

    def of_numbers(self, values: NDArray[Any]) -> Integers:
        """The indices of numbers of a declared type, in an array of any shape."""
        with muted():
            if values.dtype.itemsize == 1:
                table = self._found(np.arange(256, dtype=np.uint8).view(values.dtype.newbyteorder("=")))
                return table[values.view(np.uint8)]
            return self._found(values if values.dtype.itemsize <= 8 else values.astype(np.float64))

    def _found(self, values: NDArray[Any]) -> Integers:
        keys, places = self._keys
        if not len(keys):
            return np.full(values.shape, -1, dtype=np.int64)
        if self._table is not None and values.dtype.kind in "iuf":
            return self._tabled(values, *self._table)
        floats = values.astype(np.float64)
        at = np.minimum(np.searchsorted(keys, floats), len(keys) - 1)
        return np.where(keys[at] == floats, places[at], -1)

    @cached_property
    def _keys(self) -> tuple[NDArray[np.float64], Integers]:
        """The floats that are names, in ascending order: each itself, and as single precision has it."""
        found: dict[float, int] = {}
        for key, index in self._index.items():
            if isinstance(key, float):
                with muted():
                    single = float(np.float32(key))
                found |= {value: index for value in (key, single) if one.in_single(value) == key}
        keys = sorted(found)
        return np.array(keys, dtype=np.float64), np.array([found[key] for key in keys], dtype=np.int64)

    @cached_property
    def _table(self) -> tuple[int, Integers] | None:
        """The lowest of names that are small whole numbers, and the index of each from there on; -1 at the end."""
        keys, places = self._keys
        if not len(keys) or any(key != np.floor(key) or abs(key) >= _EXACT for key in keys):
            return None
        low, high = int(keys[0]), int(keys[-1])
        if high - low >= _BAND:
            return None
        table = np.full(high - low + 2, -1, dtype=np.int64)
        table[keys.astype(np.int64) - low] = places
        return low, table

    @staticmethod
    def _tabled(values: NDArray[Any], low: int, table: Integers) -> Integers:
        last = len(table) - 1
        inside = (values >= low) & (values < low + last)
        if values.dtype.kind == "f":
            inside &= values == np.floor(values)
        shifted = np.full(values.shape, last, dtype=np.int64)
        np.subtract(values, low, out=shifted, where=inside, dtype=np.int64, casting="unsafe")
        return table[shifted]
