"""Whole numbers that are added up exactly, in any order: the state of every pass that sums.

The line numbers in the comments are those of ``moments.proof.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState, sealed, unsealed

MAX_INT64 = (1 << 63) - 1


class Sums(PrivateState):
    """A public number of whole numbers, and floats beside them on which no statement rests. Private.

    ``about``: public numbers that states must share to be merged, such as those of a grid. ``width``: the bytes of one
    packed number; 16 hold 2**75 rows of the finest grid. ``room``: how far the 64-bit sums may grow.

    >>> counts = Sums(2)
    >>> counts.accumulate([3, 4])
    >>> counts, counts.merge(Sums(2).restored(counts.to_bytes())).values()
    (<private sums>, [6, 8])
    """

    __slots__ = ("_about", "_held", "_recent", "_room", "_totals", "_width", "floats")

    def __init__(
        self, size: int, *about: int, floats: tuple[int, ...] = (0,), width: int = 16, room: int = MAX_INT64
    ) -> None:
        self._totals: NDArray[Any] = np.zeros(size, dtype=object)
        self._recent = np.zeros(size, dtype=np.int64)
        self._held, self._room = 0, room
        self._about, self._width = about, width
        self.floats = np.zeros(floats)

    def accumulate(self, more: Sequence[int]) -> None:
        """Add Python integers of any size."""
        self._totals += np.array(more, dtype=object)

    def reserve(self, bound: int) -> NDArray[np.int64]:
        """The 64-bit sums, to add at most ``bound`` to each of them: emptied first if they could overflow."""
        if self._held + bound > self._room:  # line 9
            self._totals, self._held = self._all(), 0
            self._recent[:] = 0
        self._held += bound
        return self._recent

    def _all(self) -> NDArray[Any]:
        totals: NDArray[Any] = self._totals + self._recent.astype(object)
        return totals

    def values(self) -> list[int]:
        """All sums."""
        return [int(total) for total in self._all()]

    def merge(self, other: Self) -> Self:
        """Add the sums of other rows to these: whole numbers, so in any order."""
        if self._header() != other._header():
            raise ValueError("statistics of different grids, sizes or bounds cannot be merged")
        self._totals += other._all()  # line 10
        self.floats += other.floats
        return self

    def same_as(self, other: Self) -> bool:
        """Whether all numbers are equal. For tests: the answer is private."""
        return self.to_bytes() == other.to_bytes()

    def _header(self) -> bytes:
        numbers = (len(self._totals), *self.floats.shape, self._width, *self._about)
        return f"sums/1 {type(self).__name__} {numbers}\n".encode()

    def to_bytes(self) -> bytes:
        """All numbers exactly, in a public number of bytes."""
        whole = b"".join(total.to_bytes(self._width, "little", signed=True) for total in self.values())
        return sealed(self._header() + whole + self.floats.astype("<f8").tobytes())

    def restored(self, packed: bytes) -> Self:
        """The numbers that ``to_bytes`` packed, in this state, which must be empty and of the same size and grid."""
        body, header, width = unsealed(packed), self._header(), self._width
        end = len(header) + width * len(self._totals)
        if not body.startswith(header) or len(body) != end + self.floats.nbytes:
            raise ValueError("these bytes are not statistics of this version, size, grid and bounds")
        cuts = range(len(header), end, width)
        self.accumulate([int.from_bytes(body[cut : cut + width], "little", signed=True) for cut in cuts])
        self.floats += np.frombuffer(body[end:], dtype="<f8").reshape(self.floats.shape)
        return self
