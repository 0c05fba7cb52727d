"""Where rows lie and how long they are: their sum, and a histogram of their norms on a logarithmic scale.

Each row adds whole numbers that are a function of that row alone. Proof: ``norms.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from snugdp.tables.passes.base import RowPass
from snugdp.tables.passes.sums import Sums
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout

PROOF = "tables/passes/norms.proof.md#theorem-1"


@dataclass(frozen=True)
class RowSumPass(RowPass[Sums]):
    """The sums of the entries of all rows in cells, and last the number of rows.

    Guarantee: whole numbers, equal for every order and partition of the rows; the sums of the entries move by at most
    the norm of a row when one comes or goes, and the number by 1 (``norms.proof.md``, Theorem 1).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = RowSumPass(Schema({"x": Number(-1, 1)}, intercept=False), bits=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.5, -7.0, None]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()
    [-8, 3]
    """

    schema: Layout
    bits: int | None = None

    def empty(self) -> Sums:
        """The sums over no rows."""
        return Sums(self.row_map.entries + 1)

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        state.accumulate([*V.astype(np.int64).sum(axis=0).tolist(), len(V)])


@dataclass(frozen=True)
class NormPass(RowPass[Sums]):
    """Rows by the norm of their features: bin k holds T 2**(-(k+1)/2) <= norm < T 2**(-k/2), T the bound on it.

    Longer rows count in the first bin, shorter ones in the last, so that every row counts once.

    Guarantee: one row moves one count by one (``norms.proof.md``, Theorem 2).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> frame = nw.from_native(pd.DataFrame({"x": [1.0, -0.6, 0.5, 0.001]}), eager_only=True)
    >>> work = NormPass(Schema({"x": Number(-1, 1)}), count=4)
    >>> work.fold(work.empty(), frame).values()
    [1, 2, 0, 1]
    """

    schema: Layout
    bits: int | None = None
    count: int = 24

    def empty(self) -> Sums:
        """Nothing counted yet."""
        return Sums(self.count)

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The lower ends of all bins but the last, as squares in cells, from the largest down."""
        return tuple(math.ldexp(float(self.row_map.norm_squared), -k) for k in range(1, self.count))

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Count the rows of one block."""
        features = V[:, : self.row_map.entries - self.row_map.constant].astype(np.float64)
        squares = np.einsum("ij,ij->i", features, features)
        places = self.count - 1 - np.searchsorted(np.array(self.edges[::-1]), squares, side="right")
        state.accumulate(np.bincount(places, minlength=self.count).tolist())
