"""Values on a public grid and how often each occurs, sorted in a file where memory cannot hold them.

Sorted runs are merged block by block; a query by ranks then reads the few blocks around its rank.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.passes.counts.value_counts import ValueCounts, added_up
from snugdp.tables.spill import Spill

_BLOCK = 1 << 14  # values that are read at a time
_BYTES = 8  # of a whole number


@dataclass(frozen=True, repr=False, eq=False)
class FiledCounts(PrivateState):
    """Some values in ascending order with their counts, in a file. Private."""

    spill: Spill
    start: int
    size: int  # values
    rows: int

    @classmethod
    def written(cls, spill: Spill, counts: ValueCounts) -> FiledCounts:
        """Append values, and their counts behind them."""
        body = counts.values.astype("<i8").tobytes() + counts.counts.astype("<i8").tobytes()
        return cls(spill, spill.append(body), len(counts.values), counts.rows)

    def read(self, first: int = 0, stop: int | None = None) -> ValueCounts:
        """Some of them again, by their places."""
        last = self.size if stop is None else min(stop, self.size)
        values, counts = (
            np.frombuffer(self.spill.read(start + _BYTES * first, _BYTES * (last - first)), dtype="<i8")
            for start in (self.start, self.start + _BYTES * self.size)
        )
        return ValueCounts(values.astype(np.int64), counts.astype(np.int64))

    def blocks(self) -> Iterator[ValueCounts]:
        """All of them, block by block."""
        for first in range(0, self.size, _BLOCK):
            yield self.read(first, first + _BLOCK)


class SortedCounts(PrivateState):
    """All values of a column in ascending order, each once, in blocks of a file. Private."""

    __slots__ = ("_blocks", "_under", "rows")

    def __init__(self, runs: Iterable[FiledCounts]) -> None:
        spill = Spill()
        self._blocks = [FiledCounts.written(spill, block) for block in _merged([run.blocks() for run in runs])]
        self._under = [0, *np.cumsum([block.rows for block in self._blocks]).tolist()]  # rows before each block
        self.rows = int(self._under[-1])

    def between(self, start: int, stop: int) -> tuple[ValueCounts, int]:
        """The values of the rows of rank ``start`` to ``stop``, with all their rows, and how many rows are below."""
        first, last = (bisect_right(self._under, rank) - 1 for rank in (start, stop - 1))
        parts = [block.read() for block in self._blocks[first : last + 1]]
        whole = ValueCounts(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "counts")))
        under = self._under[first]
        found, below = whole.between(start - under, stop - under)
        return found, under + below

    def blocks(self) -> Iterator[ValueCounts]:
        """All of them, block by block."""
        return (block.read() for block in self._blocks)

    def whole(self) -> ValueCounts:
        """All of them in memory."""
        parts = [block.read() for block in self._blocks]
        return ValueCounts(
            np.concatenate([part.values for part in parts]), np.concatenate([part.counts for part in parts])
        )


def _merged(runs: list[Iterator[ValueCounts]]) -> Iterator[ValueCounts]:
    """Blocks in ascending order, no value in two of them. Each run has its values in ascending order, each once."""
    pairs = [(next(run, None), run) for run in runs]
    held, left = [block for block, _ in pairs if block is not None], [run for block, run in pairs if block is not None]
    while held:
        upto = min(int(block.values[-1]) for block in held)  # no run has a value up to here behind its block
        cuts = [int(np.searchsorted(block.values, upto, side="right")) for block in held]
        yield added_up(
            np.concatenate([block.values[:cut] for block, cut in zip(held, cuts, strict=True)]),
            np.concatenate([block.counts[:cut] for block, cut in zip(held, cuts, strict=True)]),
        )
        rest = [
            (ValueCounts(block.values[cut:], block.counts[cut:]) if cut < len(block.values) else next(run, None), run)
            for block, cut, run in zip(held, cuts, left, strict=True)
        ]
        held, left = (
            [block for block, _ in rest if block is not None],
            [run for block, run in rest if block is not None],
        )
