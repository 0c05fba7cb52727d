"""A sparse matrix and its targets as a table: rows of a scipy matrix, without making it dense.

scipy is not imported here: whoever has a sparse matrix has imported it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.cells.rows import check_shape
from snugdp.tables.sources.base import Batch, Frame, UndividedSource

_STEP = 1 << 16  # rows in a batch


class SparseBlock(PrivateState):
    """Some rows of a sparse matrix and their targets. Private."""

    __slots__ = ("data", "indices", "indptr", "width", "y")

    def __init__(
        self, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], width: int, y: NDArray[np.float64] | None
    ) -> None:
        self.indptr, self.indices, self.data, self.width, self.y = indptr, indices, data, width, y

    def __len__(self) -> int:  # type: ignore[override]  # passes count rows
        return len(self.indptr) - 1

    def rows(self) -> NDArray[np.int64]:
        """For every number that is stored, its row in this block."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def dense(self, part: slice) -> NDArray[Any]:
        """Some of the rows as a matrix."""
        start, stop, _ = part.indices(len(self))
        inside = slice(self.indptr[start], self.indptr[stop])
        out = np.zeros((stop - start, self.width), dtype=self.data.dtype)
        out[np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1])), self.indices[inside]] = (
            self.data[inside]
        )
        return out


def canonical(X: Any) -> Any:
    """The matrix by rows, every cell stored at most once: otherwise a row could count for more than its bound.

    Shapes and declared types decide what is refused. The user's own matrix is not changed.
    """
    check_shape(X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real numbers")
    if X.dtype.kind not in "biuf":
        raise TypeError("X must hold numbers; convert it first")
    found = X.tocsr()
    rows = type(found)((found.data, found.indices, found.indptr), shape=found.shape)  # a flag on X may be out of date
    if not rows.has_canonical_format:
        rows = rows.astype(np.float64)  # sums of small whole numbers would wrap around
        with np.errstate(all="ignore"):
            rows.sum_duplicates()
    return rows


class SparseSource(UndividedSource):
    """A sparse matrix in memory, in blocks of rows that share its memory. Made from what ``canonical`` returns."""

    name = "the sparse matrix"

    def __init__(self, X: Any, y: NDArray[np.float64], names: Sequence[str], target: str) -> None:
        self._X, self._y = X, y
        self.types = dict.fromkeys((*names, target), nw.Float64())  # numbers, whatever their width

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Blocks of rows. Engines hand them on; only ``BoxSchema`` and the score pass look inside."""
        X, width = self._X, int(self._X.shape[1])
        for start in range(0, int(X.shape[0]), _STEP):
            stop = min(start + _STEP, int(X.shape[0]))
            inside = slice(int(X.indptr[start]), int(X.indptr[stop]))
            pointers = X.indptr[start : stop + 1] - X.indptr[start]
            block = SparseBlock(pointers, X.indices[inside], X.data[inside], width, self._y[start:stop])
            yield Batch(cast(Frame, block))
