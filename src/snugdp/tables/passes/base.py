"""One pass over a table: what is read, what is kept, and how the parts of a table come together.

A pass is public and picklable, its state is private. States merge exactly, so an engine may cut a table anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import narwhals as nw
import numpy as np

from snugdp.tables.passes.counts import Counts
from snugdp.tables.passes.moments import Moments
from snugdp.tables.rowmap import RowMap
from snugdp.tables.schema.scaling import OneHot, floats
from snugdp.tables.schema.schema import Category, Layout, Number, Schema

S = TypeVar("S")


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


def row_map(schema: Layout, bits: int | None = None) -> RowMap:
    """How the vectors of a schema become integers: the features bounded by ``norm``, the intercept always 1."""
    target = 0 if schema.target is None else schema.target_bound
    return RowMap(len(schema.features), schema.norm, target, bits, constant=schema.intercept)


@dataclass(frozen=True)
class GramPass:
    """Exact second moments: X'X, X'y, y'y and the number of rows.

    Entries of X are in units of 2**-bits. Without ``bits`` the grid is about a millionth of the bound on a row.

    Guarantee: whole numbers, equal for every order and partition of the rows; one row moves them by at most
    ``limits.sensitivity(...)`` (``moments.proof.md``, Theorems 1 to 4).

    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number
    >>> work = GramPass(Schema({"x": Number(-1, 1)}), bits=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.5, 7.0, None]}), eager_only=True)
    >>> work.fold(work.empty(), frame).gram()
    [[320, 384], [384, 768]]
    """

    schema: Layout
    bits: int | None = None

    def __post_init__(self) -> None:
        assert self.row_map.limits  # a grid that does not fit is refused here, in public

    @cached_property
    def row_map(self) -> RowMap:
        """How rows become integers."""
        return row_map(self.schema, self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return tuple(self.schema.columns)

    def empty(self) -> Moments:
        """The moments of no rows."""
        return Moments(self.row_map.limits)

    def fold(self, state: Moments, frame: nw.DataFrame[Any]) -> Moments:
        """Add the rows of a frame."""
        for X, y in self.schema.blocks(frame):
            for V, w in self.row_map.blocks(X, y):
                state.add(V, V, w)
        return state

    def merge(self, one: Moments, other: Moments) -> Moments:
        """Add exactly."""
        return one.merge(other)

    def pack(self, state: Moments) -> bytes:
        """Whole numbers, in a public number of bytes."""
        return state.to_bytes()

    def unpack(self, packed: bytes) -> Moments:
        """The moments that were packed."""
        return Moments.from_bytes(packed, self.row_map.limits)


class Counting:
    """What passes that count have in common."""

    @property
    def bins(self) -> int:
        """How many counts there are."""
        return 1

    def empty(self) -> Counts:
        """Nothing counted yet."""
        return Counts(self.bins)

    def merge(self, one: Counts, other: Counts) -> Counts:
        """Add exactly."""
        return one.merge(other)

    def pack(self, state: Counts) -> bytes:
        """Whole numbers, in a public number of bytes."""
        return state.to_bytes()

    def unpack(self, packed: bytes) -> Counts:
        """The counts that were packed."""
        return Counts.from_bytes(packed, self.bins)


@dataclass(frozen=True)
class CountPass(Counting):
    """The number of rows. No column is needed for it; the engine reads whichever is there."""

    @property
    def columns(self) -> tuple[str, ...]:
        """None."""
        return ()

    def fold(self, state: Counts, frame: nw.DataFrame[Any]) -> Counts:
        """Count the rows of a frame."""
        state.add([len(frame)])
        return state


@dataclass(frozen=True)
class HistogramPass(Counting):
    """Rows per bin: between public ``edges`` of a column of numbers, or per value of public ``categories``.

    Bin i holds edges[i] <= x < edges[i + 1]; numbers below the first edge count in the first bin, numbers from the last
    edge on in the last. Edges may be infinite. Missing rows, and rows in no category, count for nobody.

    >>> import pandas as pd
    >>> frame = nw.from_native(pd.DataFrame({"x": [1.0, 2.0, 2.5, 9.0, None]}), eager_only=True)
    >>> work = HistogramPass("x", edges=(0, 2, 4))
    >>> work.fold(work.empty(), frame).values()
    [1, 3]
    """

    column: str
    edges: Sequence[float] | None = None
    categories: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        if (self.edges is None) == (self.categories is None):
            raise ValueError("give either edges or categories, from outside the data")
        if self.categories is not None:
            object.__setattr__(self, "categories", Category(self.categories).values)
            return
        edges = tuple(float(edge) for edge in self.edges or ())
        if len(edges) < 2 or any(math.isnan(a) or not a < b for a, b in pairwise(edges)):
            raise ValueError("edges must be at least two increasing numbers")
        object.__setattr__(self, "edges", edges)

    @property
    def bins(self) -> int:
        """How many counts there are."""
        return len(self.categories) if self.categories is not None else len(self.edges or ()) - 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The named column."""
        return (self.column,)

    @property
    def schema(self) -> Schema:
        """The type that the column must have. It says nothing about bounds: the edges do."""
        kind = Category(self.categories) if self.categories is not None else Number(-1, 1)
        return Schema({self.column: kind}, intercept=False)

    def fold(self, state: Counts, frame: nw.DataFrame[Any]) -> Counts:
        """Count the rows of a frame."""
        column = frame.get_column(self.column)
        if self.categories is not None:
            places = OneHot(tuple(self.categories), 1.0).read(column)
        else:
            values, edges = floats(column), np.array(self.edges)
            values = values[~np.isnan(values)]
            places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, self.bins - 1)
        state.add(np.bincount(places[places >= 0], minlength=self.bins).tolist())
        return state
