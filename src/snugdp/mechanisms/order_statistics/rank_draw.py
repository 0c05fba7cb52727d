"""A point of a public grid whose rank is nearly the wanted one: quantiles and extremes without a proposal.

Proof: ``rank_draw.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting.bounded_range import range_at
from snugdp.core.guarantee import Neighbours
from snugdp.noise import Noise
from snugdp.noise.exact.weighted import MAX_WEIGHT, Groups, joined
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import CellRange
from snugdp.tables.passes.counts.value_counts import ValueCounts, WeightedCells

if TYPE_CHECKING:
    from snugdp.tables.passes.counts.sorted_counts import SortedCounts
    from snugdp.tables.refined_counts import RefinedCounts

Integers: TypeAlias = NDArray[np.int64]

RELEASE = "release"  # step
MAX_DENOMINATOR = 10**6  # of a quantile: so that all levels are numbers of 64 bits
MAX_PERSON_DENOMINATOR = 1000  # the same where rows have weights
_AROUND = 17  # bits
FORECAST_CASES = 20  # forecasts are for 19 cases in 20
_OUTWEIGHED = 16  # times: points that stand for no answer weigh more than all others
_REACH = 90  # levels so far behind the best, times the rate, are left to the sampler's second look


Tally: TypeAlias = "Integers | ValueCounts | SortedCounts | RefinedCounts"
Cells: TypeAlias = "Integers | ValueCounts | SortedCounts | RefinedCounts | WeightedCells"


_EMPTY = ValueCounts.of(np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class RankTarget:
    """How far a point is from having the wanted rank: ``max(c L - a n - p, a n + r - c M, 0)``.

    L: rows below the point, M: rows up to it. ``slope``: c. ``share``: a. ``above``: p. ``below``: r. All are public,
    and 0 <= a <= c.
    """

    slope: int
    share: int
    above: int = 0
    below: int = 0

    @classmethod
    def quantile(cls, q: Fraction, largest: int = MAX_DENOMINATOR) -> RankTarget:
        """The rank q n, between 0 and n, for 0 < q < 1; ``largest``: denominator of q.

        >>> RankTarget.quantile(Fraction(1, 4))
        RankTarget(slope=4, share=1, above=0, below=0)
        """
        near = q.limit_denominator(largest)
        if not 0 < near < 1:
            least = "a millionth" if largest == MAX_DENOMINATOR else "a thousandth"
            raise ValueError(f"a quantile must lie between 0 and 1, at least {least} away from both")
        return cls(near.denominator, near.numerator)

    @classmethod
    def rank(cls, m: int) -> RankTarget:
        """The m-th smallest row, counted from 1."""
        return cls(1, 0, m - 1, m)

    @classmethod
    def offset(cls, c0: int) -> RankTarget:
        """The rank (n + c0)/2, for a public c0: any quantile at the price of the median, where n is known."""
        return cls(2, 1, c0, c0)

    @classmethod
    def from_bottom(cls, rows: int) -> RankTarget:
        """So many rows below it: from the rows below it to those up to it."""
        return cls(1, 0, rows, rows)

    @classmethod
    def from_top(cls, rows: int) -> RankTarget:
        """So many rows above it."""
        return cls(1, 1, -rows, -rows)

    def reach(self, neighbours: Neighbours) -> int:
        """How far one row moves a level (``rank_draw.proof.md``, Lemma 1)."""
        one = max(self.share, self.slope - self.share)
        return one if neighbours is Neighbours.ADD_REMOVE else self.slope

    def rate(self, loss_range: Fraction, neighbours: Neighbours) -> Fraction:
        """The rate of a draw of this range (Theorem 1)."""
        return loss_range / (2 * self.reach(neighbours))

    def levels(self, under: Integers, upto: Integers, rows: int) -> Integers:
        """Of points with these numbers of rows below them and up to them."""
        goal = self.share * rows
        found: Integers = np.maximum(self.slope * under - (goal + self.above), goal + self.below - self.slope * upto)
        return np.maximum(found, 0)

    def near(self, rate: Fraction, rows: int) -> tuple[int, int]:
        """Ranks from which on, and up to which, levels are not far from the best one."""
        width = math.ceil(_REACH / (rate * self.slope)) + 2
        ends = (Fraction(self.share * rows + shift, self.slope) for shift in (self.below, self.above))
        low, high = (min(max(end, Fraction(0)), Fraction(rows)) for end in ends)
        start = min(max(math.floor(min(low, high)) - width, 0), max(rows - 1, 0))
        return start, max(min(math.ceil(max(low, high)) + width, rows), min(start + 1, rows))


class BaseMeasure(enum.Enum):
    """Which points are likely before any row is looked at: public weights on the grid.

    UNIFORM: all alike. DYADIC: blocks of doubling length around zero (or the bound next to it) weigh the same.
    MIXED: half of each, hardly worse than the better of the two.
    """

    UNIFORM = "uniform"
    DYADIC = "dyadic"
    MIXED = "mixed"


@dataclass(frozen=True)
class Points:
    """The whole numbers from ``lower`` to ``upper``, and their weights before any row is looked at.

    ``anchor``: where the blocks of a dyadic base begin. ``beyond``: so many points at the lower and at the upper end
    stand for no answer. They outweigh all others, so that a draw that the rows do not hold ends there.
    """

    lower: int
    upper: int
    base: BaseMeasure = BaseMeasure.MIXED
    anchor: int | None = None
    beyond: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, grid: CellRange) -> Points:
        """The cells of a grid; those that no answer lies in, of one that is open, stand for none."""
        return cls(grid.lower, grid.upper, beyond=grid.beyond)

    def is_answer(self, point: int) -> bool:
        """Whether a point stands for an answer."""
        return self.lower + self.beyond[0] <= point <= self.upper - self.beyond[1]

    def up_to(self, point: int) -> Points:
        """Those up to one of them; of those that stand for no answer what is left."""
        below, above = self.beyond
        left = min(below, point - self.lower + 1), max(0, point - self.upper + above)
        return replace(self, upper=point, beyond=left)

    def from_on(self, point: int) -> Points:
        """Those from one of them on."""
        below, above = self.beyond
        left = max(0, self.lower + below - point), min(above, self.upper - point + 1)
        return replace(self, lower=point, beyond=left)

    @property
    def centre(self) -> int:
        """The anchor: by default zero, or the bound next to it."""
        return min(max(0, self.lower), self.upper) if self.anchor is None else self.anchor

    @property
    def last_block(self) -> int:
        """The number of the longest block."""
        farthest = max(abs(self.upper - self.centre), abs(self.centre - self.lower))
        return max(farthest.bit_length() - 1, 0)

    @property
    def level_weight(self) -> int:
        """The exponent of the uniform weight beside a dyadic one: both halves weigh about the same."""
        return (self.last_block + 2).bit_length() if self.base is BaseMeasure.MIXED else 0

    @property
    def mass(self) -> int:
        """No less than all weights together; every weight is at least ``2**level_weight``."""
        return self.base_mass + sum(many << self._end_weight(many) for many in self.beyond if many)

    @property
    def base_mass(self) -> int:
        """The same without what ends weigh more."""
        points, blocks = self.upper - self.lower + 1, 2 * (self.last_block + 2)
        uniform = points << self.level_weight if self.base is not BaseMeasure.DYADIC else 0
        return uniform + (blocks << self.last_block if self.base is not BaseMeasure.UNIFORM else 0)

    def _end_weight(self, many: int) -> int:
        """The exponent of the weight that each of so many points at an end has beside that of the base."""
        return min((_OUTWEIGHED * self.base_mass // many).bit_length(), MAX_WEIGHT)

    def weighted(self, first: Integers, count: Integers, level: Integers) -> Groups:
        """Groups that follow each other, with the weights of the base, split where these change; and of the ends."""
        found = Groups(first, count, level, np.full(len(first), self.level_weight))
        if self.base is not BaseMeasure.UNIFORM:
            split = self._split(first, count, level)
            found = split if self.base is BaseMeasure.DYADIC else joined(found, split)
        below, above = self.beyond
        for start, many in ((self.lower, below), (self.upper - above + 1, above)):
            if many:
                begin, end = np.maximum(first, start), np.minimum(first + count, start + many)
                found = joined(found, Groups(begin, end - begin, level, np.full(len(first), self._end_weight(many))))
        return found

    def _split(self, first: Integers, count: Integers, level: Integers) -> Groups:
        end = int(first[-1] + count[-1])
        powers = [1 << k for k in range(self.last_block + 1)]
        starts = [self.centre, *(self.centre + p for p in powers), *(self.centre - p + 1 for p in powers)]
        edges = [start for start in starts if int(first[0]) < start < end]
        begin = np.union1d(first, np.array(edges, dtype=np.int64))
        far = np.abs(begin - self.centre)
        block = np.searchsorted(np.array(powers), far, side="right") - 1
        weight = self.last_block - np.maximum(block, 0)
        return Groups(begin, np.diff(begin, append=end), level[np.searchsorted(first, begin, side="right") - 1], weight)


@dataclass(frozen=True)
class RankDraw:
    """One point, drawn with probability proportional to its weight times exp(-rate * level).

    ``loss_range``: of the draw. Guarantee: range ``loss_range`` for neighbours in this relation, also where rows that
    are not counted (missing ones) come to be counted (``rank_draw.proof.md``, Theorem 1).

    ``full``, ``most``: for persons whose rows have weights. A row that counts in full has the weight ``full``, and the
    rows of a person at most ``most`` times that (``persons/persons.proof.md``, Theorem 4). Levels are in weights.
    """

    target: RankTarget
    points: Points
    loss_range: Fraction
    neighbours: Neighbours
    full: int = 1
    most: int = 1

    @classmethod
    def paid_by(cls, share: Share, target: RankTarget, points: Points) -> RankDraw:
        """The draw that a share pays for."""
        return cls(target, points, range_of(share), share.neighbours)

    @property
    def rate(self) -> Fraction:
        """What a unit of the level costs."""
        return self.target.rate(self.loss_range, self.neighbours) / (self.full * self.most)

    @property
    def scale(self) -> float:
        """So many ranks off, in rows that count in full, a point is e times less likely."""
        return float(1 / (self.rate * self.target.slope * self.full))

    def groups(self, cells: Cells) -> Groups:
        """The points by their levels. Cells are whole numbers between the ends of the points, in any order."""
        known = cells.counts() if isinstance(cells, WeightedCells) else cells
        return _groups(known, self.target, self.points, self.rate)

    def draw(self, cells: Secret[Cells], noise: Noise) -> int:
        """A point, in the step at hand."""
        return noise.weighted_choice(cells.map(self.groups), self.rate)

    def rank_error(self, often: float = 0.95) -> int:
        """So many ranks the answer is off at most, in this share of all cases (Theorem 2)."""
        weight = math.log(self.points.mass >> self.points.level_weight) - math.log1p(-often)
        return math.ceil(weight / float(self.rate) / (self.target.slope * self.full))

    def rows_needed(self) -> int:
        """With so many rows an open end is hardly ever drawn, where an even part of the weight lies around the answer.

        That part is 2**-17 of the weight: say the thousandth part of a doubling.
        """
        need = math.log(FORECAST_CASES * self.points.mass / (self.points.base_mass >> _AROUND)) / float(self.rate)
        target = self.target
        sides = ((need - target.below, target.share), (need + target.above, target.slope - target.share))
        return max(math.ceil(levels / (each * self.full)) for levels, each in sides if each)


@dataclass(frozen=True)
class OneRank:
    """A release of one point, with its step."""

    point: RankDraw
    share: Share

    def steps(self) -> tuple[Step]:
        """Of a plan."""
        noise = StepNoise("rank", "exponential", self.point.scale, "ranks")
        return (Step(RELEASE, StepKind.RELEASE, noise, self.share.cost),)

    def draw(self, cells: Secret[Cells], noise: Noise) -> int:
        """The point."""
        return self.point.draw(cells, noise.at(RELEASE))


def range_of(share: Share) -> Fraction:
    """The range of one draw that a share pays for."""
    return share.epsilon if share.is_pure else range_at(share.mu_squared)


def levels_of(cells: Tally, target: RankTarget, ends: tuple[int, int]) -> tuple[Integers, Integers, Integers]:
    """All points between two ends, in order: where a run of equal levels begins, how long it is, and its level.

    >>> levels_of(np.array([5, 1, 1]), RankTarget.quantile(Fraction(1, 2)), (0, 6))
    (array([0, 1, 2, 5, 6]), array([1, 1, 3, 1, 1]), array([3, 0, 1, 1, 3]))
    """
    tally = ValueCounts.of(cells) if isinstance(cells, np.ndarray) else cells.whole()
    return _runs(tally, 0, tally.rows, target, ends)


def _groups(cells: Tally, target: RankTarget, points: Points, rate: Fraction) -> Groups:
    rows = len(cells) if isinstance(cells, np.ndarray) else cells.rows
    lower, upper = points.lower, points.upper
    tally, under = _between(cells, *target.near(rate, rows)) if rows else (_EMPTY, 0)  # 1
    upto = under + tally.rows
    low, high = int(tally.values[0]) if under else lower, int(tally.values[-1]) if upto < rows else upper
    found = points.weighted(*_runs(tally, under, rows, target, (low, high)))  # 2, 3
    if (low, high) == (lower, upper):
        return found
    goal = target.share * rows
    left = [goal + target.below - target.slope * under] if under else []
    right = [target.slope * upto - (goal + target.above)] if upto < rows else []

    def others() -> Groups:
        whole = points.weighted(*levels_of(cells, target, (lower, upper)))
        outside = (whole.first < low) | (whole.first > high)
        first, count, level, weight = (one[outside] for one in whole.arrays)
        return Groups(first, count, level, weight)

    return replace(found, others=others, others_level=min(left + right), others_mass=points.mass)  # 4


def _between(cells: Tally, start: int, stop: int) -> tuple[ValueCounts, int]:
    """The values of the rows of rank ``start`` to ``stop``, with all their rows, and how many rows are below them."""
    if not isinstance(cells, np.ndarray):
        return cells.between(start, stop)
    apart = np.partition(cells, start)
    apart[start:].partition(stop - 1 - start)  # two at once are slower
    values, counts = np.unique(apart[start:stop], return_counts=True)
    below = int(np.count_nonzero(apart[:start] == values[0]))
    counts[0] += below
    counts[-1] += int(np.count_nonzero(apart[stop:] == values[-1]))
    return ValueCounts(values, counts), start - below


def _runs(
    tally: ValueCounts, under: int, rows: int, target: RankTarget, ends: tuple[int, int]
) -> tuple[Integers, Integers, Integers]:
    """The points from one end to the other: a value has a level of its own, those between two values have the same."""
    values, upto = tally.values, under + np.cumsum(tally.counts)
    between = np.concatenate([[under], upto])
    first, count, level = (np.empty(2 * len(values) + 1, dtype=np.int64) for _ in range(3))
    first[0], first[1::2], first[2::2] = ends[0], values, values + 1
    count[:-1], count[-1] = np.diff(first), ends[1] + 1 - first[-1]
    level[0::2] = target.levels(between, between, rows)
    level[1::2] = target.levels(upto - tally.counts, upto, rows)
    some = count > 0
    return first[some], count[some], level[some]
