"""Rows as the row map leaves them, for a fit that reads them often: in memory, and beyond that in a nameless file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.engines import PASS_FAILED
from snugdp.tables.passes.base import MappedRows
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.passes.vectors.weighted import by_weight
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout
from snugdp.tables.spill import Spill

Kept: TypeAlias = tuple[NDArray[Any], NDArray[Any], int]  # rows, their targets, and the weight that they all have
Onward: TypeAlias = Callable[[Floats, Floats], Iterable[tuple[Floats, Floats]]]  # rows as another layout has them
S = TypeVar("S")

MAX_BYTES = 350 * 2**20  # bytes
_FIRST_PIECE, _PIECE = 1 << 20, 1 << 23  # bytes of memory that is asked for at a time: first, and in the end
_SINGLE = 1 << 48  # rows of a smaller squared norm have entries that are whole in single precision


@dataclass(frozen=True, repr=False, eq=False)
class FiledBlock(PrivateState):
    """A block of rows in a file. Private."""

    spill: Spill
    start: int
    shape: tuple[int, int]
    dtype: type
    weight: int
    by_column: bool

    @classmethod
    def written(cls, block: Kept, place: FiledBlock | Spill) -> FiledBlock:
        """A block behind all others of a file, or in the place of one: its rows as they lie, then their targets."""
        V, w, weight = block
        by_column = abs(V.strides[0]) < abs(V.strides[1])
        parts = [np.ascontiguousarray(part) for part in (V.T if by_column else V, w)]
        if isinstance(place, Spill):
            spill, start = place, place.append(*parts)
        else:
            spill, start = place.spill, place.start
            spill.overwrite(start, *parts)
        return cls(spill, start, (len(V), V.shape[1]), V.dtype.type, weight, by_column)

    @property
    def size(self) -> int:
        """Bytes of the block."""
        rows, entries = self.shape
        return rows * (entries + 1) * np.dtype(self.dtype).itemsize

    def read(self) -> Kept:
        """The block again."""
        rows, entries = self.shape
        numbers: NDArray[Any] = self.spill.read(self.start, self.size).view(self.dtype)
        V, w = numbers[: rows * entries], numbers[rows * entries :]
        return V.reshape(entries, rows).T if self.by_column else V.reshape(rows, entries), w, self.weight


class BlockMemory(PrivateState):
    """Memory for blocks: asked for in large pieces, as every small one costs time again, or that of earlier blocks."""

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[NDArray[np.uint8]] = []
        self._size = _FIRST_PIECE

    def copied(self, block: Kept, kind: type) -> Kept:
        """The block in memory of its own, its rows as they lie, by column or by row."""
        V, w, weight = block
        by_column = abs(V.strides[0]) < abs(V.strides[1])
        rows, target = self._taken(V.size, kind), self._taken(w.size, kind)
        own = rows.reshape(V.shape[::-1]).T if by_column else rows.reshape(V.shape)
        own[...], target[...] = V, w
        return own, target, weight

    def give(self, block: Kept) -> None:
        """Memory of a block that nobody needs any more."""
        V, w, _ = block
        whole = V.T if abs(V.strides[0]) < abs(V.strides[1]) else V
        if whole.flags.c_contiguous and whole.flags.writeable:
            self._pieces = [piece.reshape(-1).view(np.uint8) for piece in (whole, w)] + self._pieces[:1]

    def _taken(self, numbers: int, kind: type) -> NDArray[Any]:
        size = numbers * np.dtype(kind).itemsize
        place = next((place for place, piece in enumerate(self._pieces) if len(piece) >= size), None)
        if place is None:
            self._pieces, place = [np.empty(max(size, self._size), dtype=np.uint8)], 0
            self._size = min(2 * self._size, _PIECE)
        piece = self._pieces.pop(place)
        if len(piece) - size >= 8:
            self._pieces.insert(0, piece[-(-size // 8) * 8 :])
        return piece[:size].view(kind)


class Images(PrivateState):
    """Blocks of rows, in memory while there is room and then in a file; all of them if ``complete``. Private.

    ``count``: of all rows that the layout does not leave out. ``moments``: theirs, where they were asked for.
    """

    __slots__ = ("_free", "_memory", "_spill", "blocks", "complete", "count", "moments", "size")

    def __init__(self, moments: Moments | None = None) -> None:
        self.blocks: list[Kept | FiledBlock] = []
        self.count, self.size, self.complete = 0, 0, True
        self.moments = moments
        self._memory = BlockMemory()
        self._spill: Spill | None = None
        self._free: list[FiledBlock] = []

    def keep(self, block: Kept, share: int, kind: type, *, filed: bool = True) -> None:
        """Keep a copy: in memory up to ``share`` bytes, then in a file. Once the disk is full, no more are kept.

        Without ``filed`` there is no file: beyond ``share`` bytes no rows are kept, and those that were are let go.
        """
        size = (block[0].size + block[1].size) * np.dtype(kind).itemsize
        if self.size + size > share and not filed:
            self.let_go()
            return
        own = self._memory.copied(block, kind)
        if self.size + size <= share:
            self.blocks.append(own)
            self.size += size
            return
        self.complete, written = attempt(lambda: self._filed(own))
        self._memory.give(own)
        if written is not None:
            self.blocks.append(written)

    def let_go(self) -> None:
        """Keep no rows, those that were kept before neither."""
        self.blocks, self.size, self._memory = [], 0, BlockMemory()
        self.complete = False

    def replace(self, block: Kept | FiledBlock, held: Kept) -> None:
        """Nobody needs a block any more that was kept elsewhere and is in memory: the next ones may take its place."""
        self._memory.give(held)
        if isinstance(block, FiledBlock):
            self._free.append(block)

    def _filed(self, block: Kept) -> FiledBlock:
        V, w, _ = block
        if self._free and self._free[-1].size == V.nbytes + w.nbytes:
            return FiledBlock.written(block, self._free.pop())
        if self._spill is None:
            self._spill = Spill()
        return FiledBlock.written(block, self._spill)

    def sample(self, rows: int) -> tuple[Floats, Floats, Floats]:
        """About so many rows, from everywhere among those that were kept, with their targets and weights."""
        kept = sum(block.shape[0] if isinstance(block, FiledBlock) else len(block[1]) for block in self.blocks)
        stride = max(1, kept // rows)
        parts = [
            (V[::stride].copy(), w[::stride].copy(), np.full(len(w[::stride]), a))  # the others are not held
            for V, w, a in (read(each) for each in self.blocks)
        ]
        V, w, a = (np.concatenate(each).astype(np.float64) for each in zip(*parts, strict=True))
        return V, w, a


def read(block: Kept | FiledBlock) -> Kept:
    """A block, wherever it is."""
    return block.read() if isinstance(block, FiledBlock) else block


@dataclass(frozen=True)
class ImagePass(MappedRows):
    """Keeps all rows: in each of the parts that are folded side by side, ``share`` bytes in memory and more in a file.

    For tables of this process: the state does not travel. ``moments``: whether those of the rows are taken on the way,
    which is for rows without weights. ``filed``: whether there is a file; without one, all rows are kept or none.
    """

    schema: Layout
    bits: int | None = None
    weights: str | None = None
    share: int = MAX_BYTES
    moments: bool = False
    filed: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema, and the weights."""
        return super().columns if self.weights is None else (*super().columns, self.weights)

    @property
    def _type(self) -> type:
        limits = self.row_map.limits
        return np.float32 if limits.largest_product < _SINGLE else np.float64

    @property
    def in_memory(self) -> int:
        """How many rows fit into the memory of a part."""
        return self.share // ((self.row_map.entries + 1) * np.dtype(self._type).itemsize)

    def empty(self) -> Images:
        """Nothing kept yet."""
        return Images(Moments(self.row_map.limits) if self.moments else None)

    def fold(self, state: Images, frame: nw.DataFrame[Any]) -> Images:
        """Keep the rows of a frame."""
        for weight, part in [(1, frame)] if self.weights is None else by_weight(frame, self.weights):
            for X, y in self.schema.blocks(part):
                for V, w in self.row_map.blocks(X, y):
                    self.add(state, V, w, weight)
        return state

    def add(self, state: Images, V: Floats, w: Floats, weight: int = 1) -> None:
        """Keep rows of one weight that went through the row map already."""
        state.count += len(V)
        if state.moments is not None:
            state.moments.add(V, V, w)
        if state.complete:
            state.keep((V, w, weight), self.share, self._type, filed=self.filed)

    def merge(self, one: Images, other: Images) -> Images:
        """Those of both."""
        one.count += other.count
        one.size += other.size
        one.blocks += other.blocks
        one.complete = one.complete and other.complete
        if one.moments is not None and other.moments is not None:
            one.moments.merge(other.moments)
        if not (one.complete or self.filed):
            one.let_go()
        return one

    def pack(self, state: Images) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")

    def unpack(self, packed: bytes) -> NoReturn:
        """Refused."""
        raise TypeError("rows that were kept stay in their process")


class Adding(Protocol[S]):
    """A pass that takes rows which went through the row map already: a ``RowPass``, or an ``ImagePass``.

    They may be in single precision. Where rows have weights it is a ``WeightedPass``, which takes these as well.
    """

    def empty(self) -> S:
        """The state of no rows."""

    def merge(self, one: S, other: S) -> S:
        """The state of both parts."""

    @property
    def add(self) -> Callable[..., None]:
        """Add some rows to a state, with their targets and, where they have some, their weight."""


def run(
    images: Images,
    work: Adding[S],
    threads: int,
    *,
    weighted: bool = False,
    onward: Onward | None = None,
    last: bool = False,
) -> S:
    """The state of a pass over all kept rows, or over what ``onward`` makes of them. What goes wrong is not told.

    ``last``: no other pass needs these rows, and the memory of a block is free once it was read; so those in memory
    are read first.
    """
    if last:
        images.blocks.sort(key=lambda block: not isinstance(block, FiledBlock))
    following = partial(_taken, images.blocks) if last else partial(next, iter(images.blocks), None)

    def part(_: int) -> S:
        state = work.empty()
        while (kept := following()) is not None:
            V, w, weight = read(kept)
            blocks = [(V, w)] if onward is None else onward(V.astype(np.float64), w.astype(np.float64))
            if last and isinstance(state, Images):
                state.replace(kept, (V, w, weight))
            for block in blocks:
                work.add(state, *block, *(weight,) * weighted)
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
        raise PrivateComputationError(PASS_FAILED)
    return total


def _taken(blocks: list[Kept | FiledBlock]) -> Kept | FiledBlock | None:
    """The last block of a list, which loses it; two threads never get the same one."""
    try:
        return blocks.pop()
    except IndexError:
        return None
