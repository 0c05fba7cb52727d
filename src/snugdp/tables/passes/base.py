"""One pass over a table: what is read, what is kept, and how the parts of a table come together.

A pass is public and picklable, its state is private. States merge exactly, so an engine may cut a table anywhere. Most
are whole numbers that are added up; the line numbers in the comments are those of ``vectors/moments.proof.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, Self, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState, sealed, unsealed
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.schema.schema import Layout

MAX_INT64 = (1 << 63) - 1

S = TypeVar("S")
M = TypeVar("M", bound="Sums")


class Pass(Protocol[S]):
    """What an engine needs to know of a pass. No method raises, warns or prints because of what rows hold."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""

    def empty(self) -> S:
        """The state of no rows."""

    def fold(self, state: S, frame: nw.DataFrame[Any]) -> S:
        """The state with more rows; the one that was given may be changed and must not be used again."""

    def merge(self, one: S, other: S) -> S:
        """The state of both parts; ``one`` may be changed and must not be used again."""

    def pack(self, state: S) -> bytes:
        """The state exactly, to travel between processes."""

    def unpack(self, packed: bytes) -> S:
        """The state that was packed."""


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

    def add_times(self, times: int, other: Self) -> None:
        """Add the sums of other rows so many times, whatever their widths."""
        self._totals += times * other._all()
        self.floats += times * other.floats

    def widened(self, more: int) -> Self:
        """The same sums with so many bytes more for each of them."""
        self._width += more
        return self

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


class SummingPass(Generic[M]):
    """A pass whose state is whole numbers that are added up."""

    def empty(self) -> M:
        """The sums over no rows."""
        raise NotImplementedError

    def merge(self, one: M, other: M) -> M:
        """Add exactly."""
        return one.merge(other)

    def pack(self, state: M) -> bytes:
        """Whole numbers, in a public number of bytes."""
        return state.to_bytes()

    def unpack(self, packed: bytes) -> M:
        """The sums that were packed."""
        return self.empty().restored(packed)


class MappedRows:
    """Rows as whole numbers of the row map. ``schema`` and ``bits`` are fields of the passes themselves."""

    schema: Layout
    bits: int | None

    @cached_property
    def row_map(self) -> RowMap:
        """How rows become integers."""
        return row_map(self.schema, self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return tuple(self.schema.columns)


class RowPass(MappedRows, SummingPass[M]):
    """A pass that sums over rows after the row map, block by block."""

    @property
    def block(self) -> int:
        """Rows of a block: sums over it are exact, and it fits a cache."""
        return self.row_map.limits.block

    def fold(self, state: M, frame: nw.DataFrame[Any]) -> M:
        """Add the rows of a frame."""
        for X, y in self.schema.blocks(frame):
            for V, w in self.row_map.blocks(X, y, self.block):
                self.add_block(state, V, w)
        return state

    def add(self, state: M, V: Floats, w: Floats) -> None:
        """Add rows that went through the row map already."""
        for start in range(0, len(V), self.block):
            part = slice(start, start + self.block)
            self.add_block(state, np.asarray(V[part], dtype=np.float64), np.asarray(w[part], dtype=np.float64))

    def add_block(self, state: M, V: Floats, w: Floats) -> None:
        """Add at most ``block`` rows."""
        raise NotImplementedError


def row_map(schema: Layout, bits: int | None = None) -> RowMap:
    """How the vectors of a schema become integers: the features bounded by ``norm``, the intercept always 1."""
    target = 0 if schema.target is None else 1  # layouts scale targets to [-1, 1]
    return RowMap(len(schema.features), schema.norm, target, bits, constant=schema.intercept)
