"""Several quantiles of one column: two by two draws, more by halving the column at the middle one, and so on.

Proof: ``several.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from snugdp.accounting.bounded_range import range_at
from snugdp.core.guarantee import Budget, Neighbours
from snugdp.mechanisms.order_statistics.rank_draw import (
    MAX_DENOMINATOR,
    MAX_PERSON_DENOMINATOR,
    Cells,
    Integers,
    Points,
    RankDraw,
    RankTarget,
    range_of,
)
from snugdp.noise import Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.value_counts import WeightedCells

Rows: TypeAlias = Integers | WeightedCells

_DIGITS = 16  # random binary digits behind every row, so that rows of one value can be parted
_BITS = 61  # of a row with its digits
_MAX_SINGLE_DRAWS = 2  # as many quantiles are drawn without halving


class Halving(NamedTuple):
    """One draw: which of the quantiles, at what depth, and which quantile it is of the rows that are left there."""

    place: int
    depth: int
    q: Fraction


def halvings(quantiles: Sequence[Fraction]) -> list[Halving]:
    """The draws in order, for ascending quantiles between 0 and 1: the middle one, those below it, those above it.

    >>> [(one.place, one.depth, str(one.q)) for one in halvings([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)])]
    [(1, 1, '1/2'), (0, 2, '1/2'), (2, 2, '1/2')]
    """
    return list(_halved((Fraction(0), *quantiles, Fraction(1)), 1, len(quantiles), 1))


def _halved(ends: Sequence[Fraction], i: int, j: int, depth: int) -> Iterator[Halving]:
    """Of the quantiles i to j, counted from 1, between the one before them and the one behind them."""
    if i <= j:
        k, low, high = (i + j) // 2, ends[i - 1], ends[j + 1]
        yield Halving(k - 1, depth, (ends[k] - low) / (high - low))  # 1
        yield from _halved(ends, i, k - 1, depth + 1)
        yield from _halved(ends, k + 1, j, depth + 1)


@dataclass(frozen=True)
class SeveralQuantiles:
    """Points for ascending quantiles, in ascending order.

    Guarantee: ``share.cost``, for neighbours in its relation, also where rows that are not counted (missing ones) come
    to be counted (``several.proof.md``, Theorem 1). ``full``, ``most``: see ``RankDraw``.
    """

    quantiles: tuple[Fraction, ...]
    points: Points
    share: Share
    full: int = 1
    most: int = 1

    def __post_init__(self) -> None:
        if self.full > 1 and not self.share.is_pure:
            raise ValueError("several quantiles of persons whose rows have weights are proved for pure noise")
        ends = (Fraction(0), *self.quantiles, Fraction(1))
        if not self.quantiles or not all(low < high for low, high in pairwise(ends)):
            raise ValueError("quantiles lie between 0 and 1, in ascending order, none twice")

    @classmethod
    def within(cls, budget: Budget, quantiles: Sequence[Fraction], points: Points) -> SeveralQuantiles:
        """Paid for by a pure or by a Gaussian part, whichever leaves a draw more."""
        shares = [Share.pure(budget), *([Share.gaussian(budget)] if budget.delta else [])]
        return max((cls(tuple(quantiles), points, share) for share in shares), key=lambda one: one.loss_range)

    @property
    def stages(self) -> int:
        """How many parts the share has: two draws, or as many as there are depths."""
        few = len(self.quantiles) <= _MAX_SINGLE_DRAWS
        return len(self.quantiles) if few else len(self.quantiles).bit_length()

    @cached_property
    def loss_range(self) -> Fraction:
        """Of one draw."""
        part = self.share.part(Fraction(1, self.stages))
        if self.full > 1:
            return part.epsilon / (1 if part.neighbours is Neighbours.ADD_REMOVE else 2)
        if len(self.quantiles) <= _MAX_SINGLE_DRAWS or part.neighbours is Neighbours.ADD_REMOVE:
            return range_of(part)
        if part.is_pure:
            return part.epsilon / 2
        return min(range_at(part.mu_squared) / 2, range_at(part.mu_squared / 2))

    def steps(self) -> tuple[Step, ...]:
        """Of a plan: one for each draw or depth."""
        cost, stages = self.share.part(Fraction(1, self.stages)).cost, range(1, self.stages + 1)
        times = [sum(one.depth == stage for one in self._draws()) for stage in stages]
        steps = (StepNoise("rank", "exponential", self.scale, "ranks", many) for many in times)
        kind = StepKind.RELEASE
        return tuple(Step(_step(stage), kind, noise, cost) for stage, noise in zip(stages, steps, strict=True))

    @cached_property
    def scale(self) -> float:
        """The largest number of ranks over which the probability falls by a factor e."""
        draws = (self._draw(one, self.points) for one in self._draws())
        return max(draw.scale for draw in draws)

    @property
    def rows_needed(self) -> int:
        """With so many rows hardly any draw is lost beyond an open end."""
        draws = (self._draw(Halving(0, 1, q), self.points) for q in self.quantiles)
        return max(draw.rows_needed() for draw in draws)

    def draw(self, cells: Secret[Cells], noise: Noise) -> tuple[int, ...]:
        """The points."""
        if len(self.quantiles) <= _MAX_SINGLE_DRAWS:
            drawn = [self._draw(one, self.points).draw(cells, noise.at(_step(one.depth))) for one in self._draws()]
            return tuple(sorted(drawn))
        fine, rows = self._fine(), noise.at(_step(1))
        drawn = self._halve(cells.map(lambda all_of_them: self._with_digits(all_of_them, rows)), fine, noise)
        return tuple(self._coarse(point) for point in sorted(drawn))  # 5

    @property
    def separate(self) -> tuple[RankDraw, ...] | None:
        """The draws, where there are so few that each is on all rows."""
        few = len(self.quantiles) <= _MAX_SINGLE_DRAWS
        return tuple(self._draw(one, self.points) for one in self._draws()) if few else None

    def _draws(self) -> list[Halving]:
        """All draws; where there are few, one for each stage, on all rows."""
        if len(self.quantiles) > _MAX_SINGLE_DRAWS:
            return halvings(self.quantiles)
        return [Halving(place, place + 1, q) for place, q in enumerate(self.quantiles)]

    def _draw(self, one: Halving, points: Points) -> RankDraw:
        """Of the rows that are left: how many these are is private in both relations, once a column was halved."""
        few = len(self.quantiles) <= _MAX_SINGLE_DRAWS and self.full == 1
        relation = self.share.neighbours if few else Neighbours.ADD_REMOVE
        target = RankTarget.quantile(one.q, MAX_DENOMINATOR if self.full == 1 else MAX_PERSON_DENOMINATOR)
        return RankDraw(target, points, self.loss_range, relation, self.full, self.most)

    def _halve(self, cells: Secret[Rows], points: Points, noise: Noise) -> list[int]:
        """Every quantile, on the rows and between the points that the draws before have left it."""
        left: dict[tuple[int, int], tuple[Secret[Rows], Points]] = {(0, len(self.quantiles) - 1): (cells, points)}
        found = []
        for one in halvings(self.quantiles):
            i, j = next(ends for ends in left if ends[0] <= one.place <= ends[1])
            rows, between = left.pop((i, j))
            point = self._draw(one, between).draw(rows, noise.at(_step(one.depth)))  # 3
            found.append(point)
            if i < one.place:
                left[i, one.place - 1] = _part(rows, point, below=True), between.up_to(point)  # 4
            if one.place < j:
                left[one.place + 1, j] = _part(rows, point, below=False), between.from_on(point)
        return found

    @property
    def _spare(self) -> int:
        """The last digits of a point that give way to random ones."""
        largest = max(abs(self.points.lower), abs(self.points.upper))
        return max(0, largest.bit_length() + _DIGITS - _BITS)

    def _fine(self) -> Points:
        """The points with random digits behind them."""
        lower, upper, centre = (
            end >> self._spare << _DIGITS for end in (self.points.lower, self.points.upper, self.points.centre)
        )
        below, above = (many >> self._spare << _DIGITS for many in self.points.beyond)
        return replace(self.points, lower=lower, upper=upper + (1 << _DIGITS) - 1, anchor=centre, beyond=(below, above))

    def _with_digits(self, cells: Cells, noise: Noise) -> Rows:
        if isinstance(cells, WeightedCells):
            return WeightedCells(self._finer(cells.cells, noise), cells.weights)
        return self._finer(cells if isinstance(cells, np.ndarray) else cells.whole().cells(), noise)

    def _finer(self, rows: Integers, noise: Noise) -> Integers:
        return (rows >> self._spare << _DIGITS) + noise.scatter(len(rows), 1 << _DIGITS)  # 2

    def _coarse(self, point: int) -> int:
        return min(max(point >> _DIGITS << self._spare, self.points.lower), self.points.upper)


def _part(rows: Secret[Rows], point: int, *, below: bool) -> Secret[Rows]:
    def part(cells: Rows) -> Rows:
        values = cells.cells if isinstance(cells, WeightedCells) else cells
        which = values < point if below else values >= point
        return cells.chosen(which) if isinstance(cells, WeightedCells) else cells[which]

    return rows.map(part)


def _step(stage: int) -> str:
    return f"stage-{stage}"
