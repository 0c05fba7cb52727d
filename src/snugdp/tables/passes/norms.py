"""Where rows lie and how long they are: their sum, and a histogram of their norms on a logarithmic scale.

Each row adds whole numbers that are a function of that row alone. Proof: ``norms.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from snugdp.tables.passes.base import Counting, row_map
from snugdp.tables.passes.counts import Counts
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.schema.schema import Layout

PROOF = "tables/passes/norms.proof.md#theorem-1"


@dataclass(frozen=True)
class _RowPass(Counting):
    schema: Layout
    bits: int | None = None

    @cached_property
    def row_map(self) -> RowMap:
        """How rows become integers."""
        return row_map(self.schema, self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return tuple(self.schema.columns)

    def fold(self, state: Counts, frame: nw.DataFrame[Any]) -> Counts:
        """Add the rows of a frame."""
        for X, y in self.schema.blocks(frame):
            for V, w in self.row_map.blocks(X, y):
                self.add(state, V, w)
        return state

    def add(self, state: Counts, V: Floats, w: Floats) -> None:
        """Add the rows of one block, as whole numbers of the row map."""
        raise NotImplementedError


@dataclass(frozen=True)
class RowSumPass(_RowPass):
    """The sums of the entries of all rows, each entry moved up to be positive, and last the number of rows.

    Guarantee: ``sums`` moves by at most the norm of a row when one comes or goes (``norms.proof.md``,
    Theorem 1).
    """

    @property
    def bins(self) -> int:
        """One for each entry, and the number of rows."""
        return self.row_map.entries + 1

    @cached_property
    def _up(self) -> int:
        """No entry is smaller than minus this."""
        return math.isqrt(self.row_map.limits.norm_squared) + 1

    def add(self, state: Counts, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        total = V.astype(np.int64).sum(axis=0) + self._up * len(V)
        state.add([*total.tolist(), len(V)])

    def sums(self, state: Counts) -> list[int]:
        """The sums of the entries in cells. As private as the state."""
        *totals, count = state.values()
        return [total - self._up * count for total in totals]


@dataclass(frozen=True)
class NormPass(_RowPass):
    """Rows by the norm of their features: bin k holds T 2**(-(k+1)/2) <= norm < T 2**(-k/2), T the bound on it.

    Longer rows count in the first bin, shorter ones in the last, so that every row counts once.

    Guarantee: one row moves one count by one (``norms.proof.md``, Theorem 2).

    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> frame = nw.from_native(pd.DataFrame({"x": [1.0, -0.6, 0.5, 0.001]}), eager_only=True)
    >>> work = NormPass(Schema({"x": Number(-1, 1)}), count=4)
    >>> work.fold(work.empty(), frame).values()
    [1, 2, 0, 1]
    """

    count: int = 24

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return self.count

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The lower ends of all bins but the last, as squares in cells, from the largest down."""
        return tuple(math.ldexp(float(self.row_map.norm_squared), -k) for k in range(1, self.count))

    def add(self, state: Counts, V: Floats, w: Floats) -> None:
        """Count the rows of one block."""
        features = V[:, : self.row_map.entries - self.row_map.constant].astype(np.float64)
        squares = np.einsum("ij,ij->i", features, features)
        places = self.count - 1 - np.searchsorted(np.array(self.edges[::-1]), squares, side="right")
        state.add(np.bincount(places, minlength=self.count).tolist())
