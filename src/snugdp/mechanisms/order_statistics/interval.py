"""Two points between which a quantile of the population lies. Proof: ``interval.proof.md``.

Between the rows of ranks q n - H and q n + H lies the quantile q of the population in 19 of 20 cases, if H covers what
sampling and the draws move ranks by. H needs the number of rows, of which a noisy one is drawn first; that the draws
are about q n needs none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np

from snugdp.mechanisms.order_statistics.rank_draw import RELEASE, Cells, Points, RankDraw, RankTarget
from snugdp.mechanisms.statistics.joint import JointNoise
from snugdp.noise import Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.value_counts import WeightedCells

COUNT_PART = Fraction(1, 10)  # of the budget: for the number of rows
_MOST_LEVELS = 2**60  # of an offset, so that levels are numbers of 64 bits
_MAX_DENOMINATOR = 1000
ALPHA = 0.05


@dataclass(frozen=True)
class RankOffset:
    """How far from q n the ranks of both ends are, and which of the ends are the bounds instead."""

    ranks: float
    lower_open: bool
    upper_open: bool


def rank_offset(q: float, rows: float, scale: float, alpha: float = ALPHA) -> RankOffset:
    """From a noisy number of rows. ``scale``: so many ranks off, a draw is e times less likely.

    >>> found = rank_offset(0.9, 1527, 2 * 0.9 / 0.226)
    >>> round(found.ranks, 3), found.lower_open, found.upper_open
    (33.124, False, False)
    """
    n, z = max(rows, 0.0), NormalDist().inv_cdf(1 - alpha / 2)
    ranks = math.hypot(z * math.sqrt(n * q * (1 - q)), scale * math.log(1 / alpha))
    return RankOffset(ranks, q * n <= ranks, (1 - q) * n <= ranks)


@dataclass(frozen=True)
class QuantileIntervalDraw:
    """The noisy number of rows, then a point below and a point above a quantile.

    Guarantee: the cost of the share, which is pure (``interval.proof.md``, Theorem 1).
    """

    q: Fraction
    points: Points
    share: Share

    def __post_init__(self) -> None:
        if not self.share.is_pure:
            raise ValueError("the interval of a quantile is drawn with pure noise")

    @cached_property
    def _quantile(self) -> RankTarget:
        return RankTarget.quantile(self.q, _MAX_DENOMINATOR)

    @cached_property
    def count(self) -> JointNoise:
        """For the number of rows."""
        return JointNoise(self.share.part(COUNT_PART), (Fraction(1),), "count", "count")

    @cached_property
    def end(self) -> RankDraw:
        """A draw of the quantile itself: those of the ends differ in the wanted rank alone."""
        return RankDraw.paid_by(self.share.part((1 - COUNT_PART) / 2), self._quantile, self.points)

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        how = StepNoise("rank", "exponential", self.end.scale, "ranks", 2)
        cost = self.share.part(1 - COUNT_PART).cost
        return (*self.count.steps(), Step(RELEASE, StepKind.RELEASE, how, cost))

    def draw(self, cells: Secret[Cells], noise: Noise) -> tuple[int, int]:
        """The lower and the upper end: bounds where the rows beyond them are too few."""
        (rows,) = self.count.draw(cells.map(lambda held: [rows_of(held)]), noise)  # 1
        offset = rank_offset(float(self.q), float(rows), self.end.scale)  # 2
        shift = min(math.ceil(offset.ranks * self._quantile.slope), _MOST_LEVELS)
        here = noise.at(RELEASE)
        low, high = (self._shifted(by).draw(cells, here) for by in (-shift, shift))  # 3
        low, high = min(low, high), max(low, high)
        return self.points.lower if offset.lower_open else low, self.points.upper if offset.upper_open else high  # 4

    def _shifted(self, by: int) -> RankDraw:
        """The draw of a rank by so many levels more."""
        target = RankTarget(self._quantile.slope, self._quantile.share, by, by)
        return RankDraw.paid_by(self.share.part((1 - COUNT_PART) / 2), target, self.points)


def rows_of(cells: Cells) -> int:
    """How many rows are counted.

    >>> rows_of(np.array([3, 3, 5]))
    3
    """
    tally = cells.counts() if isinstance(cells, WeightedCells) else cells
    return len(tally) if isinstance(tally, np.ndarray) else int(tally.rows)
