"""Records on piles: in memory while there is room, then in a file, from where one pile comes back at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.spill import Spill, SpilledRows

PILES = 256
ROOM = 1 << 26  # bytes in memory, of each of the states that are folded side by side
Sorter: TypeAlias = Callable[[pl.DataFrame], NDArray[np.int64]]  # the pile of every record


class Piles(PrivateState):
    """Records in memory, and in a file those for which there was no room. Private."""

    __slots__ = ("_bytes", "_frames", "_piles", "_sorter", "_spill")

    def __init__(self, sorter: Sorter) -> None:
        self._sorter = sorter
        self._spill: Spill | None = None
        self._frames: list[pl.DataFrame] = []
        self._piles: dict[int, list[SpilledRows]] = {}
        self._bytes = 0

    def add(self, records: pl.DataFrame) -> None:
        """More of them."""
        self._frames.append(records)
        self._bytes += int(records.estimated_size())
        if self._bytes > ROOM:
            self._put_away()

    def merge(self, other: Piles) -> None:
        """All records of both."""
        for pile, blocks in other._piles.items():
            self._piles.setdefault(pile, []).extend(blocks)
        for records in other._frames:
            self.add(records)

    def results(self) -> Iterator[pl.DataFrame]:
        """All records, those of one pile together."""
        if not self._piles:
            if self._frames:
                yield pl.concat(self._frames)
            return
        self._put_away()
        for pile in sorted(self._piles):
            yield pl.concat([block.read()[0].to_polars() for block in self._piles[pile]])

    def _put_away(self) -> None:
        if not self._frames:
            return
        records, self._frames, self._bytes = pl.concat(self._frames), [], 0
        spill = self._spill = Spill() if self._spill is None else self._spill
        piles = self._sorter(records)
        ordered = records[np.argsort(piles, kind="stable")]
        ends = np.cumsum(np.bincount(piles, minlength=PILES)).tolist()
        for pile, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > start:
                some = nw.from_native(ordered[start:end], eager_only=True)
                self._piles.setdefault(pile, []).append(spill.write(some, None))
