"""Rows as the row map leaves them, kept in memory for a fit that needs them more than once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.passes.base import MappedRows
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout

S = TypeVar("S")

MAX_BYTES = 500 * 2**20  # bytes
_SINGLE = 1 << 48  # rows of a smaller squared norm have entries that are whole in single precision
_FAILED = "the pass over the rows failed; the cause is withheld because it may depend on them. Nothing was released"


class Images(PrivateState):
    """Blocks of rows; all of them if ``complete``, otherwise as many as there was room for. Private."""

    __slots__ = ("blocks", "complete", "count", "size")

    def __init__(self) -> None:
        self.blocks: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self.count, self.size, self.complete = 0, 0, True

    def keep(self, V: NDArray[Any], w: NDArray[Any], most: int) -> None:
        """Keep a block if there is room; once there was none, no more are kept."""
        self.complete = self.complete and self.size + V.nbytes + w.nbytes <= most
        if self.complete:
            self.blocks.append((V, w))
            self.size += V.nbytes + w.nbytes

    def sample(self, rows: int) -> tuple[Floats, Floats]:
        """About so many rows, from everywhere among those that were kept."""
        kept = sum(len(w) for _, w in self.blocks)
        stride = max(1, kept // rows)
        parts = [(V[::stride], w[::stride]) for V, w in self.blocks]
        return (
            np.concatenate([V for V, _ in parts]).astype(np.float64),
            np.concatenate([w for _, w in parts]).astype(np.float64),
        )


class BlockPass(Protocol[S]):
    """A pass that can also be given rows that went through the row map already."""

    def empty(self) -> S:
        """The state of no rows."""
        ...

    def add(self, state: S, V: Floats, w: Floats) -> None:
        """Add the rows of a block."""
        ...

    def merge(self, one: S, other: S) -> S:
        """The state of both parts."""
        ...


@dataclass(frozen=True)
class ImagePass(MappedRows):
    """Keeps rows in at most ``most`` bytes, ``share`` bytes in each of the parts that are folded side by side.

    Both are public. For tables of this process: the state does not travel.
    """

    schema: Layout
    bits: int | None = None
    most: int = MAX_BYTES
    share: int = MAX_BYTES

    @property
    def _type(self) -> type:
        limits = self.row_map.limits
        return np.float32 if limits.largest_product < _SINGLE else np.float64

    def empty(self) -> Images:
        """Nothing kept yet."""
        return Images()

    def fold(self, state: Images, frame: nw.DataFrame[Any]) -> Images:
        """Keep the rows of a frame."""
        state.count += len(frame)
        if state.complete:
            for X, y in self.schema.blocks(frame):
                for V, w in self.row_map.blocks(X, y):
                    state.keep(V.astype(self._type), w.astype(self._type), self.share)
        return state

    def merge(self, one: Images, other: Images) -> Images:
        """Those of both, as far as there is room."""
        one.count += other.count
        whole = one.complete and other.complete
        for V, w in other.blocks:
            one.keep(V, w, self.most)
        one.complete = one.complete and whole
        return one

    def pack(self, state: Images) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")

    def unpack(self, packed: bytes) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")


def run(images: Images, work: BlockPass[S], threads: int) -> S:
    """The state of a pass over all kept rows. What goes wrong is not told."""
    turn = iter(images.blocks)

    def part(_: int) -> S:
        state = work.empty()
        for V, w in _each(turn):
            work.add(state, V.astype(np.float64), w.astype(np.float64))
        return state

    def together() -> S:
        number = min(threads, len(images.blocks))
        if number < 2:
            return part(0)
        total = work.empty()
        with ThreadPoolExecutor(number) as pool:
            for state in pool.map(part, range(number)):
                total = work.merge(total, state)
        return total

    worked, total = attempt(together)
    if not worked or total is None:
        raise PrivateComputationError(_FAILED)
    return total


def _each(turn: Iterator[tuple[NDArray[Any], NDArray[Any]]]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The next block that no other thread has: the iterator of a list gives each of its items once."""
    while (block := next(turn, None)) is not None:
        yield block
