"""Numbers of rows: all of them, between public edges, or per public category."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np

from snugdp.tables.passes.base import SummingPass
from snugdp.tables.passes.sums import Sums
from snugdp.tables.schema.scaling import OneHot, floats
from snugdp.tables.schema.schema import Category, Number, Schema


@dataclass(frozen=True)
class CountPass(SummingPass[Sums]):
    """The number of rows. No column is needed for it; the engine reads whichever is there."""

    @property
    def columns(self) -> tuple[str, ...]:
        """None."""
        return ()

    def empty(self) -> Sums:
        """Nothing counted yet."""
        return Sums(1)

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Count the rows of a frame."""
        state.accumulate([len(frame)])
        return state


@dataclass(frozen=True)
class HistogramPass(SummingPass[Sums]):
    """Rows per bin: between public ``edges`` of a column of numbers, or per value of public ``categories``.

    Bin i holds edges[i] <= x < edges[i + 1]; numbers below the first edge count in the first bin, numbers from the last
    edge on in the last. Edges may be infinite. Missing values and values in no category are not counted.

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

    def empty(self) -> Sums:
        """Nothing counted yet."""
        return Sums(self.bins)

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Count the rows of a frame."""
        column = frame.get_column(self.column)
        if self.categories is not None:
            places = OneHot(tuple(self.categories), 1.0).read(column)
        else:
            values, edges = floats(column), np.array(self.edges)
            values = values[~np.isnan(values)]
            places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, self.bins - 1)
        state.accumulate(np.bincount(places[places >= 0], minlength=self.bins).tolist())
        return state
