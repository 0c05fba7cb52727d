"""Exact X'X, X'y, y'y and the number of rows: whole numbers, the same for every order and every partition of the rows.

BLAS multiplies blocks small enough that its float sums are exact; int64 adds the blocks up, and Python integers
take over before an int64 could overflow. The line numbers in the comments are those of ``moments.proof.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snugdp.numerics.blas import require_exact_gram, require_exact_products
from snugdp.tables.passes.base import RowPass, Sums
from snugdp.tables.rowmap import Floats, RowLimits
from snugdp.tables.schema.schema import Layout

_NARROW = 20  # entries up to which products of different matrices are faster than one with itself
_SMALL_PRODUCT = 1_000_000  # multiplications up to which BLAS packs nothing


class Moments(Sums):
    """X'X, X'y, y'y and the number of rows, of rows of integers within public ``limits``. Private.

    Guarantee: exact whole numbers, so equal for every order of rows, every partition and every block size; one row
    moves them by at most ``limits.sensitivity(...)`` (``moments.proof.md``, Theorems 1 to 4).

    >>> from snugdp.tables.rowmap import RowMap
    >>> row_map = RowMap(entries=2, feature_bound=1, bits=4)
    >>> moments = Moments(row_map.limits)
    >>> for V, w in row_map.blocks(np.array([[0.5, 0.25], [0.0, 1.0]]), np.array([1.0, -1.0])):
    ...     moments.add(V, V, w)
    >>> moments
    <private moments>
    >>> moments.gram(), moments.cross(), moments.square(), moments.count()
    ([[64, 32], [32, 272]], [128, -192], 512, 2)
    """

    __slots__ = ("limits",)

    def __init__(self, limits: RowLimits, room: int | None = None) -> None:
        self.limits = limits
        require_exact_gram(limits.block, limits.entries)
        parts = [(limits.entries, limits.block, len(part)) for part in _parts(limits.block, limits.entries)]
        require_exact_products((1, limits.block, limits.entries), (1, limits.block, 1), *parts)
        rows = min(limits.rows_in_int64, room or limits.rows_in_int64)
        super().__init__(
            limits.entries**2 + limits.entries + 2,
            limits.entries,
            limits.norm_squared,
            limits.target,
            room=rows * limits.largest_product,
        )

    def add(self, Z: Floats | None, V: Floats, w: Floats) -> None:
        """Add Z'Z, V'w, w'w and the rows of one block: at most ``rows_per_block``, whole numbers within the limits.

        Z is V for second moments, and None where Z'Z is not wanted.
        """
        if len(V) > self.limits.rows_per_block:
            raise ValueError("the block is too large for its sums to be exact")
        sums = self.reserve(len(V) * self.limits.largest_product)
        d = self.limits.entries  # np.dot and not @: numpy lets other threads work meanwhile
        if Z is not None:
            sums[: d * d] += gram(Z).astype(np.int64).reshape(-1)  # line 8
        if self.limits.target:
            sums[d * d : -2] += np.dot(w, V).astype(np.int64)
            sums[-2] += np.int64(np.dot(w, w))
        sums[-1] += len(V)

    def gram(self) -> list[list[int]]:
        """X'X, in cells squared."""
        values, d = self.values(), self.limits.entries
        return [values[d * i : d * (i + 1)] for i in range(d)]

    def cross(self) -> list[int]:
        """X'y, in cells squared."""
        return self.values()[self.limits.entries**2 : -2]

    def square(self) -> int:
        """y'y, in cells squared."""
        return self.values()[-2]

    def count(self) -> int:
        """The number of rows: private when rows may be added or removed."""
        return self.values()[-1]


def gram(Z: Floats) -> Floats:
    """Z'Z. Narrow blocks that lie by column are multiplied in parts.

    >>> gram(np.asfortranarray([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[1.0, 2.0], [2.0, 13.0]]
    """
    if not (Z.flags.f_contiguous and 1 < Z.shape[1] <= _NARROW):
        return np.asarray(np.dot(Z.T, Z))
    product = np.empty((Z.shape[1],) * 2)
    for part in _parts(*Z.shape):
        product[:, part.start : part.stop] = np.dot(Z.T, Z[:, part.start : part.stop])
    return product


def _parts(rows: int, entries: int) -> Iterator[range]:
    """The columns of the parts of a narrow block: at most half of them in one, so that no part is the whole."""
    width = max(1, min((entries + 1) // 2, _SMALL_PRODUCT // max(rows * entries, 1)))
    for start in range(0, entries if 1 < entries <= _NARROW else 0, width):
        yield range(start, min(start + width, entries))


@dataclass(frozen=True)
class GramPass(RowPass[Moments]):
    """Exact second moments: X'X, X'y, y'y and the number of rows.

    Entries of X are in units of 2**-bits. Without ``bits`` the grid is about a millionth of the bound on a row.

    Guarantee: whole numbers, equal for every order and partition of the rows; one row moves them by at most
    ``limits.sensitivity(...)`` (``moments.proof.md``, Theorems 1 to 4).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = GramPass(Schema({"x": Number(-1, 1)}), bits=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.5, 7.0, None]}), eager_only=True)
    >>> work.fold(work.empty(), frame).gram()
    [[320, 384], [384, 768]]
    """

    schema: Layout
    bits: int | None = None

    def __post_init__(self) -> None:
        self.row_map  # noqa: B018  # a grid that does not fit is refused here, in public

    def empty(self) -> Moments:
        """The moments of no rows."""
        return Moments(self.row_map.limits)

    def add_block(self, state: Moments, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        state.add(V, V, w)
