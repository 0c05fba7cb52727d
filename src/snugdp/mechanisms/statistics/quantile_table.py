"""Edges drawn in private, and how many rows lie between them. Proof: ``quantile_table.proof.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np

from snugdp.core.guarantee import Budget
from snugdp.mechanisms.order_statistics.rank_draw import Cells, Points
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles
from snugdp.mechanisms.statistics.joint import JointNoise, cell_noise
from snugdp.noise import Noise
from snugdp.propose.plan import Step
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.value_counts import ValueCounts, WeightedCells

Drawn: TypeAlias = tuple[tuple[int, ...], list[int]]  # edges, and counts between them
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class QuantileTableDraw:
    """Points that cut a column into parts of about equal size, then the noisy number of rows in each part.

    Guarantee: the cost of both shares together (``quantile_table.proof.md``, Theorem 1).
    """

    edges: SeveralQuantiles
    counts: JointNoise

    @classmethod
    def within(cls, budget: Budget, bins: int, points: Points) -> QuantileTableDraw:
        """Half of the budget for each; pure or Gaussian, whichever has the smaller error in rows."""
        shares = [Share.pure(budget), *([Share.gaussian(budget)] if budget.delta else [])]
        cuts = tuple(Fraction(place, bins) for place in range(1, bins))
        halves = (share.part(_HALF) for share in shares)
        return min(
            (cls(SeveralQuantiles(cuts, points, half), cell_noise(half, bins)) for half in halves),
            key=lambda one: one.edges.scale * math.log(20) + one.counts.errors[0],
        )

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        return (*self.edges.steps(), *self.counts.steps())

    def draw(self, cells: Secret[Cells], noise: Noise) -> Drawn:
        """The edges, from the lower bound to the upper one and none twice; and the counts."""
        lower, upper = self.edges.points.lower, self.edges.points.upper
        inner = {point for point in self.edges.draw(cells, noise) if lower < point < upper}  # 1
        edges = (lower, *sorted(inner), upper)
        return edges, self.counts.draw(cells.map(partial(rows_between, edges)), noise)  # 2


def rows_between(edges: tuple[int, ...], cells: Cells) -> list[int]:
    """How many cells lie from each edge up to below the next one; those on the last edge belong to the last part.

    >>> rows_between((0, 5, 9), np.array([0, 4, 5, 9]))
    [2, 2]
    """
    tally = cells.counts() if isinstance(cells, WeightedCells) else cells
    found = ValueCounts(tally, np.ones_like(tally)) if isinstance(tally, np.ndarray) else tally
    rows = np.zeros(len(edges) - 1, dtype=np.int64)
    for block in found.blocks():
        place = np.searchsorted(np.array(edges[1:-1], dtype=np.int64), block.values, side="right")
        np.add.at(rows, place, block.counts)
    return [int(each) for each in rows]
