"""How every entry goes with the target: exact sums of x_j y and of x_j, for choosing columns in private.

Entries and targets are rounded to whole numbers of cells, row by row, and clipped there; all sums are of whole numbers.
Proof: ``scores.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.blas import require_exact_products
from snugdp.tables.layouts.boxes import Box, BoxSchema
from snugdp.tables.passes.base import SummingPass, Sums
from snugdp.tables.schema.scaling import Floats
from snugdp.tables.sources import Source, wanted
from snugdp.tables.sources.sparse import SparseBlock

BITS = 16
CELLS = 1 << BITS  # the bound on an entry, and on a target, in cells
_MAX_BLOCK_ROWS = 1 << 20  # the sums of a block stay below 2**53
_MAX_TRIED_COLUMNS, _TRIED_CELLS = 1 << 10, 1 << 18  # in a trial of the product
_MAX_ENTRIES = 1 << 20  # of a row whose squares are added exactly
_SAFE = 1 - 2.0**-40  # far more than three roundings, far less than a cell

Integers = NDArray[np.int64]


class Scores(Sums):
    """Sums over rows: x_j y and x_j for every entry j, y, and the number of rows; in cells. Private."""

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        columns = min(width, _MAX_TRIED_COLUMNS)
        require_exact_products((2, max(256, _TRIED_CELLS // columns), columns))
        self.width = width
        super().__init__(2 * width + 2)

    def add(self, products: NDArray[Any], entries: NDArray[Any], target: float, rows: int) -> None:
        """The sums of some more rows, whole numbers in floats."""
        sums = self.reserve(rows * CELLS**2)
        sums += np.concatenate([products, entries, [target, rows]]).astype(np.int64)  # 4

    def centred(self, centre: int) -> Integers:
        """|sum of x_j (y - centre)| for every j, in squares of a cell; the centre is in cells. At most 2**62."""
        scores: Integers = np.minimum(np.abs(self._signed(centre)), 1 << 62).astype(np.int64)  # 5
        return scores

    def signed(self, centre: int) -> list[int]:
        """The same without the absolute value and without a limit."""
        return [int(total) for total in self._signed(centre)]

    def _signed(self, centre: int) -> NDArray[Any]:
        sums = np.array(self.values(), dtype=object)
        totals: NDArray[Any] = sums[: self.width] - centre * sums[self.width : -2]
        return totals

    def totals(self) -> list[int]:
        """The sum of the targets in cells, and the number of rows times ``CELLS``."""
        *_, target, rows = self.values()
        return [target, rows * CELLS]


@dataclass(frozen=True)
class ScorePass(SummingPass[Scores]):
    """Exact sums of x_j y, x_j and y, with entries and targets as whole numbers of at most ``CELLS``.

    Guarantee: whole numbers, equal for every order and partition of the rows; one row moves every ``centred(c)`` by at
    most ``CELLS * (CELLS + |c|)`` (``scores.proof.md``, Theorem 1). With a ``row_norm`` longer rows are
    shortened to it: one row moves ``signed(c)`` by at most ``row_limit * (CELLS + |c|)`` in norm (Theorem 3).

    >>> from snugdp.tables.layouts.arrays import Block
    >>> work = ScorePass(BoxSchema(("a", "b"), x_bound=1, y_bound=1))
    >>> state = work.fold(work.empty(), Block(np.array([[1.0, -9.0], [0.5, np.nan]]), np.array([1.0, -1.0])))
    >>> (state.centred(0) / CELLS**2).tolist()
    [0.5, 1.0]
    """

    schema: Box
    row_norm: Fraction | None = None

    def __post_init__(self) -> None:
        if self.row_norm is not None and len(self.schema.names) > _MAX_ENTRIES:
            raise ValueError(f"a bound on the norm of whole rows is for at most {_MAX_ENTRIES:,} columns")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns."""
        return tuple(self.schema.columns)

    @property
    def row_limit(self) -> int:
        """The bound on the norm of a row, in cells."""
        if self.row_norm is None:
            raise ValueError("there is no bound on the norm of whole rows")
        return math.floor(self.row_norm * CELLS)

    def empty(self) -> Scores:
        """The scores of no rows."""
        return Scores(len(self.schema.names))

    def fold(self, state: Scores, frame: Any) -> Scores:
        """Add the rows of a frame, or of a block of a matrix."""
        if isinstance(frame, SparseBlock) and isinstance(self.schema, BoxSchema):
            row, place, V, w = self.stored(self.schema, frame)
            products = np.bincount(place, V * w[row], minlength=state.width)  # 3
            state.add(products, np.bincount(place, V, minlength=state.width), float(w.sum()), len(w))
            return state
        for V, w in self.images(frame):
            products, entries = np.dot(np.stack([w, np.ones(len(w))]), V)  # 3
            state.add(products, entries, float(w.sum()), len(w))
        return state

    def images(self, frame: Any) -> Iterator[tuple[Floats, Floats]]:
        """Entries and targets as whole numbers of cells, some rows at a time."""
        width = len(self.schema.names)
        for X, y in self.schema.blocks(frame):
            if y is None or len(X) > _MAX_BLOCK_ROWS:
                raise ValueError("scores need targets, and blocks of at most 2**20 rows")
            V = _whole(X[:, :width])
            if self.row_norm is not None:
                factor = self._factors(np.einsum("ij,ij->i", V, V))
                np.trunc(V * factor[:, None], out=V)  # 7
                V[np.einsum("ij,ij->i", V, V) > self.row_limit**2] = 0.0  # 8
            yield V, _whole(y)

    def stored(self, schema: BoxSchema, block: SparseBlock) -> tuple[Integers, NDArray[Any], Floats, Floats]:
        """Of the rows that have a target: the rows, columns and images of what is stored, and the targets."""
        block = block.with_targets()
        if block.y is None:
            raise ValueError("scores need targets")
        row, places, size = block.rows(), block.indices, len(block)
        V = _whole(schema.scaled(block.data, places))
        if self.row_norm is not None:
            factor = self._factors(np.bincount(row, V * V, minlength=size))
            np.trunc(V * factor[row], out=V)  # 7
            V[(np.bincount(row, V * V, minlength=size) > self.row_limit**2)[row]] = 0.0  # 8
        return row, places, V, _whole(schema.aims(block.y))

    def _factors(self, squares: NDArray[Any]) -> Floats:
        """What rows are multiplied with so that their sums of squares keep the limit."""
        limit = float(self.row_limit)
        return np.where(squares > limit**2, limit * _SAFE / np.sqrt(np.maximum(squares, 1.0)), 1.0)  # 6


def block_sums(
    source: Source, work: ScorePass, parts: int, lots: Callable[[int, int], Integers]
) -> tuple[Integers, Integers, Integers, Integers]:
    """The same sums for each of ``parts`` blocks of rows: products and entries (parts by width), targets, counts.

    ``lots(n, parts)`` says which block each of n rows goes to. Rows are read in order, in this thread. Sums are modulo
    2**64, so what a block gets depends on its own rows alone, however they are read.
    """
    width = len(work.schema.names)
    products, entries = np.zeros(parts * width, np.int64), np.zeros(parts * width, np.int64)
    targets, counts = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    columns = wanted(work, source.types)
    for partition in source.partitions():
        for batch in partition.batches(columns):
            frame: Any = batch.frame
            if isinstance(frame, SparseBlock) and isinstance(work.schema, BoxSchema):
                row, place, V, w = work.stored(work.schema, frame)
                if not len(w):  # all rows of the batch were left out
                    continue
                block = lots(len(w), parts)
                key = block[row] * width + place
                products += np.bincount(key, V * w[row], minlength=parts * width).astype(np.int64)
                entries += np.bincount(key, V, minlength=parts * width).astype(np.int64)
                _tally(block, w, targets, counts)
                continue
            for V, w in work.images(frame):
                if not len(w):
                    continue
                block = lots(len(w), parts)
                order = np.argsort(block, kind="stable")
                present, first = np.unique(block[order], return_index=True)
                ordered = V[order]
                entries.reshape(parts, width)[present] += np.add.reduceat(ordered, first, axis=0).astype(np.int64)
                ordered *= w[order][:, None]
                products.reshape(parts, width)[present] += np.add.reduceat(ordered, first, axis=0).astype(np.int64)
                _tally(block, w, targets, counts)
    return products.reshape(parts, width), entries.reshape(parts, width), targets, counts


def _tally(block: Integers, w: Floats, targets: Integers, counts: Integers) -> None:
    targets += np.bincount(block, w, minlength=len(targets)).astype(np.int64)
    counts += np.bincount(block, minlength=len(counts))


def _whole(values: Floats) -> Floats:
    """Whole numbers of cells, at most ``CELLS``; what is no number is 0."""
    with np.errstate(all="ignore"):
        out = values * float(CELLS)
        np.rint(out, out=out)  # 1
        np.clip(out, -float(CELLS), float(CELLS), out=out)  # 2
        np.copyto(out, 0.0, where=np.isnan(out))
    return out
