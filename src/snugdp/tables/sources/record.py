"""What earlier passes over a table have read: a later one must have read the same rows."""

from __future__ import annotations

from collections.abc import Iterable

from snugdp.secrecy.private_state import PrivateState


class PassRecord(PrivateState):
    """The digests of what was read, by columns. Private.

    Guarantee: passes that a record lets through have read as many rows each, and those that read the same columns the
    same rows, in any order, unless two 64-bit sums of hashes agree by chance.
    """

    __slots__ = ("_digests", "_rows")

    def __init__(self) -> None:
        self._rows: int | None = None
        self._digests: dict[tuple[str, ...], tuple[int, ...]] = {}

    def meets(self, columns: Iterable[str], rows: int, *sums: int) -> bool:
        """Whether a pass has read what earlier ones have read; the first is noted."""
        self._rows = rows if self._rows is None else self._rows
        return rows == self._rows and self._digests.setdefault(tuple(sorted(columns)), sums) == sums
