"""A sparse matrix as a table: rows of a scipy matrix, dense at most some at a time.

scipy is not imported here: whoever has a sparse matrix has imported it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.silence import attempt, muted
from snugdp.tables.cells.rows import check_shape, is_sparse, matrix
from snugdp.tables.schema.scaling import not_numbers, present
from snugdp.tables.sources.base import Batch, Frame, UndividedSource

_STEP = 1 << 16  # rows in a batch


class SparseBlock(PrivateState):
    """Some rows of a sparse matrix, and their targets if they have any. Private. A slice of it is dense."""

    __slots__ = ("data", "indices", "indptr", "width", "y")

    def __init__(
        self, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], width: int, y: NDArray[np.float64] | None
    ) -> None:
        self.indptr, self.indices, self.data, self.width, self.y = indptr, indices, data, width, y

    def __len__(self) -> int:  # type: ignore[override]  # engines look how large it is
        return len(self.indptr) - 1

    def with_targets(self) -> SparseBlock:
        """The rows that have a target; all of them where there are no targets."""
        kept = None if self.y is None else present([not_numbers(self.y)])
        if kept is None or self.y is None:
            return self
        lengths = np.diff(self.indptr)
        stored, ends = np.repeat(kept, lengths), np.append(0, np.cumsum(lengths[kept]))
        return SparseBlock(ends, self.indices[stored], self.data[stored], self.width, self.y[kept])

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Some of the rows as a matrix."""
        start, stop, _ = part.indices(len(self))
        inside = slice(self.indptr[start], self.indptr[stop])
        out = np.zeros((stop - start, self.width), dtype=self.data.dtype)
        out[row_numbers(self.indptr[start : stop + 1]), self.indices[inside]] = self.data[inside]
        return out

    @property
    def shape(self) -> tuple[int, int]:
        """Rows by columns."""
        return len(self), self.width

    def rows(self) -> NDArray[np.int64]:
        """For every number that is stored, its row in this block."""
        return row_numbers(self.indptr)


def row_numbers(indptr: NDArray[Any]) -> NDArray[np.int64]:
    """For every number that is stored, its row, counted from the first of these."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def read_matrix(X: Any) -> NDArray[Any] | SparseBlock:
    """The rows as ``matrix`` reads them; those of a sparse matrix stay sparse until they are sliced."""
    if isinstance(X, SparseBlock):
        return X
    if not is_sparse(X):
        return matrix(X)
    rows = canonical(X)
    return SparseBlock(rows.indptr, rows.indices, rows.data, int(rows.shape[1]), None)


def canonical(X: Any) -> Any:
    """The matrix by rows, every cell stored at most once: otherwise a row could count for more than its bound.

    Numbers stored for one cell are sorted and added up in double precision, so that neither the format nor other
    cells have a say in it. A number stored for a column that is not there is left out. Shapes, declared types
    and how numbers are laid out in memory decide what is refused. The user's own matrix is not changed.
    """
    check_shape(X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real numbers")
    if X.dtype.kind not in "biuf":
        raise TypeError("X must hold numbers; convert it first")
    with muted():
        worked, rows = attempt(lambda: _by_rows(X))
    if not worked:
        raise ValueError(
            "the sparse matrix is not well formed: some of its pointers lead outside its arrays. Build it again from "
            "its numbers and their places: scipy.sparse.coo_array((numbers, (rows, columns)), shape=...)"
        )
    return rows


def _by_rows(X: Any) -> Any:
    if X.format == "coo":  # scipy would add up in the narrow type of the numbers
        X = type(X)((X.data, X.coords if hasattr(X, "coords") else (X.row, X.col)), shape=X.shape)
        X.has_canonical_format = True
    elif X.format in ("csr", "csc", "bsr"):
        _require_pointers(X)
    found = X.tocsr()
    rows = type(found)((found.data, found.indices, found.indptr), shape=found.shape)  # a flag on X may be out of date
    inside = (rows.indices >= 0) & (rows.indices < rows.shape[1])
    return rows if inside.all() and rows.has_canonical_format else _once(rows, inside)


def _require_pointers(X: Any) -> None:
    """An error where compiled code would read or write outside its arrays."""
    steps = np.diff(X.indptr)
    strangers = X.format == "csc" and bool(((X.indices < 0) | (X.indices >= X.shape[0])).any())
    if (steps < 0).any() or X.indptr[0] != 0 or X.indptr[-1] > min(len(X.indices), len(X.data)) or strangers:
        raise ValueError("not well formed")


def _once(rows: Any, inside: NDArray[np.bool_]) -> Any:
    """Every cell once, in order; what is not ``inside`` is left out."""
    row, place, data = row_numbers(rows.indptr)[inside], rows.indices[inside], rows.data[inside]
    if data.dtype.kind != "b":
        data = data.astype(np.float64)
    order = np.lexsort((data, place, row))
    row, place, data = row[order], place[order], data[order]
    new = np.ones(len(data), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (place[1:] != place[:-1])
    first = np.flatnonzero(new)
    if len(first):
        data = (np.logical_or if data.dtype.kind == "b" else np.add).reduceat(data, first)
    pointers = np.zeros(rows.shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(row[first], minlength=rows.shape[0]), out=pointers[1:])
    return type(rows)((data, place[first], pointers), shape=rows.shape)


class SparseSource(UndividedSource):
    """A sparse matrix in memory, in blocks of rows that share its memory. Made from what ``canonical`` returns."""

    name, held = "the sparse matrix", True

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
