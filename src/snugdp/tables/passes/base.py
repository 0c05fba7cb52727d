"""One pass over a table: what is read, what is kept, and how the parts of a table come together.

A pass is public and picklable, its state is private. States merge exactly, so an engine may cut a table anywhere.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import narwhals as nw
import numpy as np

from snugdp.tables.passes.sums import Sums
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.schema.schema import Layout

S = TypeVar("S")
M = TypeVar("M", bound=Sums)


class Pass(Protocol[S]):
    """What an engine needs to know of a pass. No method raises, warns or prints because of what rows hold."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        ...

    def empty(self) -> S:
        """The state of no rows."""
        ...

    def fold(self, state: S, frame: nw.DataFrame[Any]) -> S:
        """The state with more rows; the one that was given may be changed and must not be used again."""
        ...

    def merge(self, one: S, other: S) -> S:
        """The state of both parts; ``one`` may be changed and must not be used again."""
        ...

    def pack(self, state: S) -> bytes:
        """The state exactly, to travel between processes."""
        ...

    def unpack(self, packed: bytes) -> S:
        """The state that was packed."""
        ...


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
            self.add_block(state, np.asarray(V[part], dtype=np.float64), w[part])

    def add_block(self, state: M, V: Floats, w: Floats) -> None:
        """Add at most ``block`` rows."""
        raise NotImplementedError


def row_map(schema: Layout, bits: int | None = None) -> RowMap:
    """How the vectors of a schema become integers: the features bounded by ``norm``, the intercept always 1."""
    target = 0 if schema.target is None else schema.target_bound
    return RowMap(len(schema.features), schema.norm, target, bits, constant=schema.intercept)
