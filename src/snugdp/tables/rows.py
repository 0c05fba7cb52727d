"""A private table that a fit may read more than once: its statistics, and passes at points released on the way.

Rows as the row map leaves them are kept in memory for a fit that needs them often.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.engines import PASS_FAILED, cores, gather
from snugdp.tables.passes.base import M, MappedRows, Pass, RowPass
from snugdp.tables.passes.moments import GramPass, Moments
from snugdp.tables.passes.weighted import WEIGHT, WeightedPass, by_weight
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout
from snugdp.tables.sources import Source, SparkSource, open_source
from snugdp.tables.weighed_table import WeighableTable, WeighedTable

S = TypeVar("S")
Kept: TypeAlias = tuple[NDArray[Any], NDArray[Any], int]  # rows, their targets, and the weight that they all have

MAX_BYTES = 500 * 2**20  # bytes
_SINGLE = 1 << 48  # rows of a smaller squared norm have entries that are whole in single precision


class Rows(PrivateState):
    """The rows of a table, under a public schema. Private: it travels as a ``Secret``.

    Nothing is read before it is asked for; the moments are read once and kept, and so are the rows where a fit that
    reads them often asks for it and they are few enough.
    """

    __slots__ = (
        "_images",
        "_moments",
        "_one",
        "_progress",
        "_tables",
        "_weights",
        "bits",
        "schema",
        "source",
        "weight",
    )

    def __init__(self, data: object, schema: Layout, bits: int | None = None, *, progress: bool | None = None) -> None:
        self.schema, self.bits = schema, bits
        self.weight: int | None = None  # of the rows of a person together, at most
        self._weights: str | None = None
        self._one: Rows | None = None
        self._tables = data if isinstance(data, WeighableTable) else None
        if isinstance(data, WeighableTable):
            data = data.one
        if isinstance(data, WeighedTable):
            self.weight, self._weights = data.most, data.weights
            self._one, data = Rows(data.one, schema, bits, progress=progress), data.rows
        self.source: Source = open_source(data)
        self.source.check(self._weighted(GramPass(schema, bits)))
        self._moments: Moments | None = None
        self._images: Images | None = None
        self._progress = progress

    @property
    def one(self) -> Rows:
        """One row of each person, where they may have several; otherwise these rows."""
        return self if self._one is None else self._one

    @property
    def unit(self) -> int:
        """How often a row counts that counts in full."""
        return 1 if self._weights is None else WEIGHT

    @property
    def counts(self) -> list[int]:
        """How many persons have 1, 2, 3-4, 5-8, ... rows, where their weight is not known yet."""
        assert self._tables is not None
        return self._tables.counts

    def weighing(self, most: int) -> Rows:
        """All rows, where those of a person weigh at most so much."""
        assert self._tables is not None
        return Rows(self._tables.weighing(most), self.schema, self.bits, progress=False)

    @property
    def data(self) -> Source | WeighedTable | WeighableTable:
        """What these are the rows of."""
        if self._tables is not None:
            return self._tables
        if self.weight is None or self._weights is None:
            return self.source
        return WeighedTable(self.source, self.one.source, self.weight, self._weights)

    def moments(self) -> Moments:
        """X'X, X'y, y'y and the number of rows, exactly."""
        if self._moments is None:
            self._moments = self.state(GramPass(self.schema, self.bits))
        return self._moments

    def images(self) -> Images | None:
        """The rows after the row map, as many as fit into half a gigabyte; none for a table on a cluster."""
        if self._images is None and not isinstance(self.source, SparkSource):
            self._images = self._gathered(ImagePass(self.schema, self.bits, self._weights, share=MAX_BYTES // cores()))
        return self._images

    def state(self, work: Pass[S]) -> S:
        """The state of one pass over all rows: from those kept in memory where that is possible.

        Where rows have weights, each counts as often as its weight says: ``unit`` times, if it counts in full.
        """
        images, weighted = self._images, self._weighted(work)
        if images is not None and images.complete and isinstance(work, RowPass) and self._same(work):
            return cast(S, run(images, cast(Any, weighted), cores()))
        return self._gathered(weighted)

    def _weighted(self, work: Pass[S]) -> Pass[S]:
        if self._weights is None:
            return work
        if not isinstance(work, RowPass):
            raise TypeError("only sums over rows have weights")
        return cast(Pass[S], WeightedPass(work, self._weights))

    def _gathered(self, work: Pass[S]) -> S:
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
        self.blocks: list[Kept] = []
        self.count, self.size, self.complete = 0, 0, True

    def keep(self, block: Kept, most: int) -> None:
        """Keep a block if there is room; once there was none, no more are kept."""
        V, w, _ = block
        self.complete = self.complete and self.size + V.nbytes + w.nbytes <= most
        if self.complete:
            self.blocks.append(block)
            self.size += V.nbytes + w.nbytes

    def sample(self, rows: int) -> tuple[Floats, Floats, Floats]:
        """About so many rows, from everywhere among those that were kept, with their targets and weights."""
        kept = sum(len(w) for _, w, _ in self.blocks)
        stride = max(1, kept // rows)
        parts = [(V[::stride], w[::stride], np.full(len(w[::stride]), a)) for V, w, a in self.blocks]
        V, w, a = (np.concatenate(each).astype(np.float64) for each in zip(*parts, strict=True))
        return V, w, a


@dataclass(frozen=True)
class ImagePass(MappedRows):
    """Keeps rows in at most ``most`` bytes, ``share`` bytes in each of the parts that are folded side by side.

    Both are public. For tables of this process: the state does not travel.
    """

    schema: Layout
    bits: int | None = None
    weights: str | None = None
    most: int = MAX_BYTES
    share: int = MAX_BYTES

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema, and the weights."""
        return super().columns if self.weights is None else (*super().columns, self.weights)

    @property
    def _type(self) -> type:
        limits = self.row_map.limits
        return np.float32 if limits.largest_product < _SINGLE else np.float64

    def empty(self) -> Images:
        """Nothing kept yet."""
        return Images()

    def fold(self, state: Images, frame: nw.DataFrame[Any]) -> Images:
        """Keep the rows of a frame."""
        for weight, part in [(1, frame)] if self.weights is None else by_weight(frame, self.weights):
            for X, y in self.schema.blocks(part):
                state.count += len(X)
                for V, w in self.row_map.blocks(X, y) if state.complete else ():
                    state.keep((V.astype(self._type), w.astype(self._type), weight), self.share)
        return state

    def merge(self, one: Images, other: Images) -> Images:
        """Those of both, as far as there is room."""
        one.count += other.count
        whole = one.complete and other.complete
        for block in other.blocks:
            one.keep(block, self.most)
        one.complete = one.complete and whole
        return one

    def pack(self, state: Images) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")

    def unpack(self, packed: bytes) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")


def run(images: Images, work: RowPass[M] | WeightedPass[M], threads: int) -> M:
    """The state of a pass over all kept rows. What goes wrong is not told."""
    turn = iter(images.blocks)

    def part(_: int) -> M:
        state = work.empty()
        for V, w, weight in _each(turn):
            row = V.astype(np.float64), w.astype(np.float64)
            if isinstance(work, WeightedPass):
                work.add(state, *row, weight)
            else:
                work.add(state, *row)
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


def _each(turn: Iterator[Kept]) -> Iterator[Kept]:
    """The next block that no other thread has: the iterator of a list gives each of its items once."""
    while (block := next(turn, None)) is not None:
        yield block
