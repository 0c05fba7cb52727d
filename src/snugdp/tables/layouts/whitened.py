"""Rows in other directions: every row times a released matrix, and shortened together with its target.

The product is one of whole numbers, so that the image of a row does not depend on its place in a block. Proof:
``whitened.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.blas import require_exact_products
from snugdp.tables.engines import cores
from snugdp.tables.images import ImagePass, run
from snugdp.tables.layouts.arrays import WrappedLayout
from snugdp.tables.layouts.standardised import shortened, squared_lengths
from snugdp.tables.passes.base import Pass, RowPass, row_map
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Coefficients, Layout

S = TypeVar("S")
Long: TypeAlias = Literal["shorten", "drop", "keep"]

_EXACT = 1 << 53
_ROUNDED = 1 + 2.0**-12  # rows of the norm itself are not longer
_MATRIX_BITS = 30  # of the largest entry of the matrix, unless products would not be exact


@dataclass(frozen=True)
class WhitenedLayout(WrappedLayout):
    """A layout whose vectors are x times a matrix, which has a column for each direction. Public, or released.

    ``long``: what becomes of vectors longer than 1. "shorten": they are shortened to 1, each with its target; "drop":
    these rows are left out, and so are those that were too long before; "keep": the row map shortens the vectors.
    There is no constant: it is an entry of x like the others.

    Guarantee: the image of a row is a function of that row alone (``whitened.proof.md``, Theorem 1). The row map
    depends on the number of directions alone, and so do sensitivities.
    """

    layout: Layout
    matrix: tuple[tuple[float, ...], ...]
    long: Long = "shorten"
    norm = 1
    intercept = False

    def __post_init__(self) -> None:
        given = np.array(self.matrix, dtype=np.float64)
        if given.ndim != 2 or given.shape[0] != len(self.layout.features) or not given.shape[1]:
            raise ValueError(f"the matrix must have {len(self.layout.features)} rows, one for each entry of a vector")
        if not np.isfinite(given).all() or np.abs(given).max() >= 2.0**100:
            raise ValueError("the entries of the matrix must be finite and below 2**100")

    @property
    def features(self) -> tuple[str, ...]:
        """The directions."""
        return tuple(f"direction {place + 1}" for place in range(len(self.matrix[0])))

    @cached_property
    def _row_map(self) -> RowMap:
        return row_map(self.layout)

    @cached_property
    def _whole(self) -> tuple[Floats, int]:
        """The matrix in whole multiples of 2**-s, so that products with rows are exact in floats; and s."""
        entries = [Fraction(value) for line in self.matrix for value in line]
        largest, norm = max(abs(value) for value in entries), self._row_map.limits.norm_squared
        s = _MATRIX_BITS - (math.frexp(float(largest))[1] if largest else 0)
        while True:
            whole = np.array([round(value * Fraction(2) ** s) for value in entries], dtype=object)
            columns = whole.reshape(len(self.matrix), -1)
            if all(norm * sum(n * n for n in column) <= _EXACT**2 for column in columns.T.tolist()):
                return columns.astype(np.float64), s
            s -= 1

    @property
    def rounded(self) -> Floats:
        """The matrix as it is used."""
        whole, s = self._whole
        return np.ldexp(whole, -s)

    def blocks(self, frame: Any) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """The vectors and scaled targets of some rows, part by part."""
        for X, y in self._within(frame):
            for V, w in self._row_map.blocks(X, y):  # 1
                yield self.turned(V, w)

    def turned(self, V: Floats, w: Floats) -> tuple[Floats, Floats | None]:
        """The vectors and scaled targets of some rows, from their images under the layout: at most one block."""
        (whole, s), bits = self._whole, self._row_map.bits
        require_exact_products((whole.shape[1], len(whole), self._row_map.limits.block))
        with np.errstate(all="ignore"):  # a warning would depend on private values
            Z = np.dot(np.ldexp(whole.T, -s - bits), V.T).T  # 2, column by column in memory
            target = None if self.target is None else w * math.ldexp(1.0, -bits)
            return self._short(Z, target)  # 3

    def _within(self, frame: Any) -> Iterator[tuple[Floats, Floats | None]]:
        """The rows of the layout; where long ones are left out, without those that its row map would shorten."""
        features, most = len(self.layout.features) - self.layout.intercept, float(self.layout.norm) ** 2 * _ROUNDED
        for X, y in self.layout.blocks(frame):
            if self.long != "drop":
                yield X, y
                continue
            with np.errstate(all="ignore"):
                kept = ~(squared_lengths(X[:, :features]) > most)  # 0; what is no number is kept, and becomes 0
            yield X[kept], None if y is None else y[kept]

    def _short(self, Z: Floats, target: Floats | None) -> tuple[Floats, Floats | None]:
        if self.long == "shorten":
            return shortened(Z, target)
        if self.long == "keep":
            return Z, target
        kept = squared_lengths(Z) <= 1.0
        return Z[kept], None if target is None else target[kept]

    def back(self, theta: ArrayLike) -> Floats:
        """The same linear functions of vectors as they were before; one function, or one in each row of a matrix."""
        functions: Floats = np.asarray(theta, dtype=np.float64) @ self.rounded.T
        return functions

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of vectors in the user's units."""
        return self.layout.coefficients(self.back(theta))


class WhitenedRows(Rows):
    """The rows of a table in other directions. Private.

    They are made from the images of the rows as these are, where such are kept; unless long rows are to be left out.
    """

    __slots__ = ("_before",)

    def __init__(self, rows: Rows, matrix: tuple[tuple[float, ...], ...], long: Long) -> None:
        super().__init__(rows.source, WhitenedLayout(rows.schema, matrix, long), progress=False)
        self._before = rows

    def _gathered(self, work: Pass[S]) -> S:
        before, layout = self._before, self.schema
        assert isinstance(layout, WhitenedLayout)
        kept = before.kept() if before.bits is None and before.weight is None and layout.long != "drop" else None
        if kept is None or not isinstance(work, RowPass | ImagePass) or work.schema != layout:
            return super()._gathered(work)
        last = isinstance(work, ImagePass)  # from now on these rows are kept, in place of those
        if last:
            before.forget()
        rows, given = work.row_map, cast(Any, work)
        return cast(S, run(kept, given, cores(), onward=lambda V, w: rows.blocks(*layout.turned(V, w)), last=last))
