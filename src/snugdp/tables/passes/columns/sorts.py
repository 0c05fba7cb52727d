"""How many cells of columns without a declared type are missing, numbers, dates and text.

A row adds 1 to one count of every column: one row more moves the counts of k columns by a vector of length sqrt(k), and
another row in its place by at most sqrt(2 k).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from snugdp.tables.cells import sorts
from snugdp.tables.cells.sorts import SORTS
from snugdp.tables.passes.base import SummingPass, Sums
from snugdp.tables.schema.kinds import Undeclared
from snugdp.tables.schema.schema import Schema


@dataclass(frozen=True)
class SortPass(SummingPass[Sums]):
    """Counts of the sorts of cells, column after column, in the order of ``SORTS``.

    >>> import polars as pl
    >>> table = nw.from_native(pl.DataFrame({"a": ["1", "x"], "b": [None, "2024-03-01"]}), eager_only=True)
    >>> work = SortPass(("a", "b"))
    >>> work.fold(work.empty(), table).values()
    [0, 1, 0, 1, 1, 0, 1, 0]
    """

    columns: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The types that the columns may have."""
        return Schema({name: Undeclared() for name in self.columns}, intercept=False)

    def empty(self) -> Sums:
        """No cells."""
        return Sums(len(SORTS) * len(self.columns))

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Add the rows of a frame."""
        found = [np.bincount(sorts(frame.get_column(name).to_native()), minlength=len(SORTS)) for name in self.columns]
        state.accumulate(np.concatenate(found).tolist())
        return state
