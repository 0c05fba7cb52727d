"""A quantile of a column for many keys: one draw for each of them. Proof: ``grouped.proof.md``, Theorem 3."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import itemgetter

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.order_statistics.rank_draw import Cells, Points, RankDraw, RankTarget
from snugdp.noise import Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import Grid
from snugdp.tables.wide_grid import WideGrid


@dataclass(frozen=True)
class GroupRanks:
    """The q-quantile of every key on a public grid. ``keys``: a row counts for at most so many of them.

    Guarantee: the cost of the share (``grouped.proof.md``, Theorem 3).
    """

    share: Share
    q: Fraction
    grid: Grid | WideGrid
    step: str
    keys: int = 1

    @cached_property
    def point(self) -> RankDraw:
        """The draw of one key, for one row more or less."""
        replaced = self.share.neighbours is Neighbours.REPLACE
        times = self.keys * ((2 if self.share.is_pure else 4) if replaced else 1)
        part = self.share.part(Fraction(1, times))
        own = Share(part.epsilon, part.mu_squared, Neighbours.ADD_REMOVE)
        return RankDraw.paid_by(own, RankTarget.quantile(self.q), Points.of(self.grid))

    def draw(self, cells: Secret[list[Cells]], number: int, noise: Noise) -> list[float | None]:
        """A quantile for each of a public number of keys; None where the draw stands for no answer."""
        source = noise.at(self.step)
        drawn = (self.point.draw(cells.map(itemgetter(place)), source) for place in range(number))
        return [self.grid.number(cell) if self.point.points.is_answer(cell) else None for cell in drawn]

    @property
    def ranks(self) -> float:
        """How many ranks a quantile is usually off, at least: the scale of the draw."""
        return float(1 / (self.point.rate * self.point.target.slope))

    def steps(self, column: str) -> tuple[Step]:
        """The one step of a plan."""
        how = StepNoise("group-rank", "exponential", self.ranks, "ranks", params={"column": column})
        return (Step(self.step, StepKind.RELEASE, how, self.share.cost),)
