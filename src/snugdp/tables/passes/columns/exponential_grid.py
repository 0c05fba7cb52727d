"""A public grid from 2**-20 to 2**60 on both sides of zero, and how many rows lie on and between its edges.

Four edges for every doubling: 1, 1.25, 1.5, 1.75, 2, 2.5, ... All are exact floats, and none depends on data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.tables.passes.base import SummingPass, Sums
from snugdp.tables.schema.scaling import floats
from snugdp.tables.schema.schema import Number, Schema

MIN_EXPONENT, MAX_EXPONENT, STEPS = -20, 60, 4

_BELOW = [2.0**k * (1 + j / STEPS) for k in range(MIN_EXPONENT, MAX_EXPONENT) for j in range(STEPS)]
_POSITIVE = [*_BELOW, 2.0**MAX_EXPONENT]
EDGES: NDArray[np.float64] = np.array([-edge for edge in reversed(_POSITIVE)] + [0.0, *_POSITIVE])
EDGES.flags.writeable = False
CELLS = 2 * len(EDGES) + 1


def tally(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many rows lie in each cell: below the first edge, on it, between it and the second, and so on.

    Infinities lie beyond the outermost edges; missing values are not counted.

    >>> int(tally(np.array([0.0, 0.0, np.inf, np.nan])).sum())
    3
    """
    known = values[~np.isnan(values)].astype(np.float64, copy=False)
    above = np.searchsorted(EDGES, known, side="right")
    on_edge = EDGES[np.maximum(above, 1) - 1] == known
    return np.bincount(2 * above - on_edge, minlength=CELLS).astype(np.int64, copy=False)


@dataclass(frozen=True)
class GridCounts(SummingPass[Sums]):
    """One pass over a table: the tally of every listed column. Sums of whole numbers, so exact in any order."""

    columns: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The type that the columns must have. It says nothing about bounds: the grid does."""
        return Schema({name: Number(-1, 1) for name in self.columns}, intercept=False)

    def empty(self) -> Sums:
        """No rows."""
        return Sums(len(self.columns) * CELLS)

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Some more rows."""
        state.accumulate([count for name in self.columns for count in tally(floats(frame.get_column(name))).tolist()])
        return state

    def table(self, state: Sums) -> NDArray[np.int64]:
        """One row of cells for every column."""
        return np.array(state.values(), dtype=np.int64).reshape(len(self.columns), CELLS)
