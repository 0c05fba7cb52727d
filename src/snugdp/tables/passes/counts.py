"""Counts of rows: whole numbers that merge in any order."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from snugdp.secrecy.private_state import Hidden, sealed, unsealed

_HEADER = struct.Struct("<8sI")
_NAME = b"counts01"
_WIDTH = 16  # bytes of one number


class Counts(Hidden):
    """How many rows fall into each of a public number of bins. Private.

    >>> counts = Counts(2)
    >>> counts.add([3, 4])
    >>> counts, counts.merge(Counts.from_bytes(counts.to_bytes(), bins=2)).values()
    (<private counts>, [6, 8])
    """

    __slots__ = ("_counts",)

    def __init__(self, bins: int) -> None:
        self._counts = [0] * bins

    def add(self, more: Sequence[int]) -> None:
        """Count more rows."""
        self._counts = [a + int(b) for a, b in zip(self._counts, more, strict=True)]

    def merge(self, other: Counts) -> Counts:
        """Add the counts of other rows to these."""
        if len(self._counts) != len(other._counts):
            raise ValueError("counts of different bins cannot be merged")
        self.add(other._counts)
        return self

    def values(self) -> list[int]:
        """The counts."""
        return list(self._counts)

    def to_bytes(self) -> bytes:
        """All counts exactly, in a public number of bytes."""
        body = b"".join(n.to_bytes(_WIDTH, "little") for n in self._counts)
        return sealed(_HEADER.pack(_NAME, len(self._counts)) + body)

    @classmethod
    def from_bytes(cls, packed: bytes, bins: int) -> Counts:
        """The counts that ``to_bytes`` packed."""
        header, counts, packed = _HEADER.pack(_NAME, bins), cls(bins), unsealed(packed)
        if packed[: len(header)] != header or len(packed) != len(header) + _WIDTH * bins:
            raise ValueError("these bytes are not counts of this version and these bins")
        body = packed[len(header) :]
        counts.add([int.from_bytes(body[i * _WIDTH : (i + 1) * _WIDTH], "little") for i in range(bins)])
        return counts
