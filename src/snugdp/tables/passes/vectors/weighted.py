"""Sums over rows with weights: whole numbers, as exact as those of the pass without weights.

The rows of one weight are summed up by the pass itself, and what comes of it is multiplied by the weight. Proof:
``weighted.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic

import narwhals as nw
import numpy as np

from snugdp.tables.passes.base import M, RowPass, SummingPass
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout

WEIGHT = math.lcm(*range(1, 21)) << 20  # of a row that counts in full
_WEIGHT_BYTES = 8


@dataclass(frozen=True)
class WeightedPass(SummingPass[M], Generic[M]):
    """The sums of ``work`` in which a row counts as often as the column ``weight`` says, a whole number from 0 on.

    Guarantee: every sum is that over rows of weight times what the row adds to it without weights; so it is whole, and
    the same for every order and partition of the rows (``weighted.proof.md``, Theorem 1).
    """

    work: RowPass[M]
    weight: str

    @property
    def schema(self) -> Layout:
        """How rows are read."""
        return self.work.schema

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the pass, and the weights."""
        return (*self.work.columns, self.weight)

    def empty(self) -> M:
        """The sums over no rows, with room for weights."""
        return self.work.empty().widened(_WEIGHT_BYTES)

    def fold(self, state: M, frame: nw.DataFrame[Any]) -> M:
        """Add the rows of a frame, weight by weight."""
        for weight, part in by_weight(frame, self.weight):  # 1
            state.add_times(weight, self.work.fold(self.work.empty(), part))  # 2
        return state

    def add(self, state: M, V: Floats, w: Floats, weight: int) -> None:
        """Add rows of one weight that went through the row map already."""
        some = self.work.empty()
        self.work.add(some, V, w)
        state.add_times(weight, some)


def by_weight(frame: nw.DataFrame[Any], name: str) -> Iterator[tuple[int, nw.DataFrame[Any]]]:
    """The rows of each weight, without it: line 1."""
    weights = np.asarray(frame.get_column(name).to_numpy(), dtype=np.int64)
    rest = frame.drop(name)
    if not len(weights):
        return
    order = np.argsort(weights, kind="stable")
    ordered = weights[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    rows = rest[order]
    for start, stop in zip(starts, [*starts[1:], len(ordered)], strict=True):
        yield int(ordered[start]), rows[int(start) : int(stop)]
