"""Exact X'X, X'y, y'y and the number of rows: whole numbers, the same for every order and every partition of the rows.

BLAS multiplies blocks small enough that its float sums are exact; int64 adds the blocks up, and Python integers
take over before an int64 could overflow. The line numbers in the comments are those of ``moments.proof.md``.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.blas import require_exact_gram, require_exact_products
from snugdp.secrecy.private_state import Hidden, sealed, unsealed
from snugdp.tables.limits import Limits
from snugdp.tables.rowmap import Floats

PROOF = "tables/passes/moments.proof.md#theorem-4"

_HEADER = struct.Struct("<8sIQQ")  # name and version, entries, norm squared, target: all public
_NAME = b"moments1"
_WIDTH = 16  # bytes of one number, two's complement: 2**75 rows of the finest grid fit


class Moments(Hidden):
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

    __slots__ = ("_limb", "_room", "_rows", "_spilled", "limits")

    def __init__(self, limits: Limits, room: int | None = None) -> None:
        self.limits = limits
        require_exact_gram(limits.block, limits.entries)
        require_exact_products((1, limits.block, limits.entries), (1, limits.block, 1))
        self._limb = np.zeros(limits.entries**2 + limits.entries + 2, dtype=np.int64)
        self._spilled: NDArray[Any] = np.zeros(len(self._limb), dtype=object)
        self._rows = 0  # in the limb
        self._room = min(limits.rows_in_int64, room or limits.rows_in_int64)

    def add(self, Z: Floats | None, V: Floats, w: Floats) -> None:
        """Add Z'Z, V'w, w'w and the rows of one block: at most ``rows_per_block``, whole numbers within the limits.

        Z is V for second moments, a weighted V for a Hessian, and None where Z'Z is not wanted.
        """
        if len(V) > self.limits.rows_per_block:
            raise ValueError("the block is too large for its sums to be exact")
        if self._rows + len(V) > self._room:  # line 9
            self._spill()
        d = self.limits.entries  # np.dot and not @: numpy lets other threads work meanwhile
        if Z is not None:
            self._limb[: d * d] += np.dot(Z.T, Z).astype(np.int64).reshape(-1)  # line 8
        if self.limits.target:
            self._limb[d * d : -2] += np.dot(w, V).astype(np.int64)
            self._limb[-2] += np.int64(np.dot(w, w))
        self._limb[-1] += len(V)
        self._rows += len(V)

    def _spill(self) -> None:
        self._spilled += self._limb.astype(object)
        self._limb[:] = 0
        self._rows = 0

    def merge(self, other: Moments) -> Moments:
        """Add the statistics of other rows to these: whole numbers, so in any order."""
        if self.limits != other.limits:
            raise ValueError("statistics on different grids or with different bounds cannot be merged")
        self._spilled += other._totals()  # line 10
        return self

    def _totals(self) -> NDArray[Any]:
        totals: NDArray[Any] = self._spilled + self._limb.astype(object)
        return totals

    def gram(self) -> list[list[int]]:
        """X'X, in cells squared."""
        d = self.limits.entries
        rows: list[list[int]] = self._totals()[: d * d].reshape(d, d).tolist()
        return rows

    def cross(self) -> list[int]:
        """X'y, in cells squared."""
        entries: list[int] = self._totals()[self.limits.entries**2 : -2].tolist()
        return entries

    def square(self) -> int:
        """y'y, in cells squared."""
        return int(self._totals()[-2])

    def count(self) -> int:
        """The number of rows: private when rows may be added or removed."""
        return int(self._totals()[-1])

    def same_as(self, other: Moments) -> bool:
        """Whether all numbers are equal. For tests: the answer is private."""
        return self.limits == other.limits and self._totals().tolist() == other._totals().tolist()

    def to_bytes(self) -> bytes:
        """All numbers exactly, in a public number of bytes."""
        limits = self.limits
        header = _HEADER.pack(_NAME, limits.entries, limits.norm_squared, limits.target)
        return sealed(
            header + b"".join(int(n).to_bytes(_WIDTH, "little", signed=True) for n in self._totals().tolist())
        )

    @classmethod
    def from_bytes(cls, packed: bytes, limits: Limits) -> Moments:
        """The statistics that ``to_bytes`` packed, under the limits that they must have been made with."""
        moments, packed = cls(limits), unsealed(packed)
        header = _HEADER.pack(_NAME, limits.entries, limits.norm_squared, limits.target)
        if packed[: len(header)] != header or len(packed) != len(header) + _WIDTH * len(moments._limb):
            raise ValueError("these bytes are not statistics of this version, grid and bounds")
        body = packed[len(header) :]
        for place in range(len(moments._limb)):
            part = body[place * _WIDTH : (place + 1) * _WIDTH]
            moments._spilled[place] = int.from_bytes(part, "little", signed=True)
        return moments
