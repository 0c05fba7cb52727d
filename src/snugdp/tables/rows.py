"""A private table that a fit may read more than once: its statistics, and passes at points released on the way.

Rows as the row map leaves them are kept in memory for a fit that needs them often.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.engines import PASS_FAILED, cores, gather
from snugdp.tables.passes.base import M, MappedRows, Pass, RowPass
from snugdp.tables.passes.moments import GramPass, Moments
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout
from snugdp.tables.sources import Source, SparkSource, open_source

S = TypeVar("S")

MAX_BYTES = 500 * 2**20  # bytes
_SINGLE = 1 << 48  # rows of a smaller squared norm have entries that are whole in single precision


class Rows(PrivateState):
    """The rows of a table, under a public schema. Private: it travels as a ``Secret``.

    Nothing is read before it is asked for; the moments are read once and kept, and so are the rows where a fit that
    reads them often asks for it and they are few enough.
    """

    __slots__ = ("_images", "_moments", "_progress", "bits", "schema", "source")

    def __init__(self, data: object, schema: Layout, bits: int | None = None, *, progress: bool | None = None) -> None:
        self.schema, self.bits = schema, bits
        self.source: Source = open_source(data)
        self.source.check(GramPass(schema, bits))
        self._moments: Moments | None = None
        self._images: Images | None = None
        self._progress = progress

    def moments(self) -> Moments:
        """X'X, X'y, y'y and the number of rows, exactly."""
        if self._moments is None:
            self._moments = self.state(GramPass(self.schema, self.bits))
        return self._moments

    def images(self) -> Images | None:
        """The rows after the row map, as many as fit into half a gigabyte; none for a table on a cluster."""
        if self._images is None and not isinstance(self.source, SparkSource):
            self._images = self.state(ImagePass(self.schema, self.bits, share=MAX_BYTES // cores()))
        return self._images

    def state(self, work: Pass[S]) -> S:
        """The state of one pass over all rows: from those kept in memory where that is possible."""
        images = self._images
        if images is not None and images.complete and isinstance(work, RowPass) and self._same(work):
            return cast(S, run(images, work, cores()))
        progress, self._progress = self._progress, False  # one bar: how often rows are read may depend on them
        return gather(self.source, work, progress=progress)

    def _same(self, work: RowPass[Any]) -> bool:
        """Whether the pass maps rows as those in memory were mapped."""
        return work.schema == self.schema and work.bits == self.bits


class Images(PrivateState):
    """Blocks of rows; all of them if ``complete``, otherwise as many as there was room for. Private.

    ``count``: of all rows that the layout does not leave out.
    """

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
        for X, y in self.schema.blocks(frame):
            state.count += len(X)
            for V, w in self.row_map.blocks(X, y) if state.complete else ():
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


def run(images: Images, work: RowPass[M], threads: int) -> M:
    """The state of a pass over all kept rows. What goes wrong is not told."""
    turn = iter(images.blocks)

    def part(_: int) -> M:
        state = work.empty()
        for V, w in _each(turn):
            work.add(state, V.astype(np.float64), w.astype(np.float64))
        return state

    def together() -> M:
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
        raise PrivateComputationError(PASS_FAILED)
    return total


def _each(turn: Iterator[tuple[NDArray[Any], NDArray[Any]]]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The next block that no other thread has: the iterator of a list gives each of its items once."""
    while (block := next(turn, None)) is not None:
        yield block
