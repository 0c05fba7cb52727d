"""Statistics of all columns of a table under one cost. Proof: ``described.proof.md``.

What is missing in a column of numbers is counted for nothing where rows come or go: a row is either missing there, or
among the numbers. The numbers in the comments are those of the proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.mechanisms.statistics.clipping import ClippedMoments, ClippedRange
from snugdp.mechanisms.statistics.joint import JointNoise, cell_noise, count_noise
from snugdp.mechanisms.statistics.moments import JointMoments
from snugdp.noise import Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret

ROWS = "rows"  # a step, and where the number of rows is found
_MISSING_MOVE = Fraction(1)


class Drawing(Protocol):
    """Something that is drawn from sums or cells of a column, within its share."""

    @property
    def share(self) -> Share:
        """What it costs."""

    def draw(self, data: Secret[Any], noise: Noise) -> Any:
        """One draw."""


@dataclass(frozen=True)
class MomentsAndMissing:
    """The moments of one column, clipped where that pays; where rows come or go, how many are missing as well.

    Guarantee: the cost of the share (``described.proof.md``, Theorem 1).
    """

    clipped: ClippedMoments

    @property
    def share(self) -> Share:
        """What it costs."""
        return self.clipped.range.share

    def draw(self, data: Secret[list[int]], noise: Noise) -> tuple[ClippedRange, list[int]]:
        """The range, the sums of polynomials in it, and the rows without a number; ``data``: all rows, then the sums.

        Where rows are replaced there is no such last number.
        """
        numbers = data.map(itemgetter(slice(1, None)))
        if not self.counts_missing:
            return self.clipped.draw(numbers, noise)
        clip = self.clipped.range.draw(numbers, noise)
        return clip, self.noise(clip).draw(data.map(partial(self._features, clip)), noise)  # 2

    @property
    def counts_missing(self) -> bool:
        """Whether rows come or go: otherwise their number is public, and what is missing follows from it."""
        return self.share.neighbours is Neighbours.ADD_REMOVE

    def noise(self, clip: ClippedRange) -> JointNoise:
        """Of the polynomials, and of the rows without a number."""
        polynomials = self._within(clip).noise
        return replace(polynomials, moves=(*polynomials.moves, _MISSING_MOVE))

    def _within(self, clip: ClippedRange) -> JointMoments:
        return JointMoments(clip.left, (clip.high - clip.low,), self.clipped.degree)

    def _features(self, clip: ClippedRange, sums: list[int]) -> list[int]:
        powers = self.clipped.range.measure.clipped(sums[1:], clip.place)
        return [*self._within(clip).features(powers[: self.clipped.degree + 1]), sums[0] - powers[0]]  # 1


@dataclass(frozen=True)
class EntryCounts:
    """How many rows have a number and, where rows come or go, how many have none.

    Guarantee: the cost of the share (``described.proof.md``, Theorem 1).
    """

    share: Share

    @property
    def noise(self) -> JointNoise:
        """The noise of the counts."""
        return cell_noise(self.share, 2) if self.share.neighbours is Neighbours.ADD_REMOVE else count_noise(self.share)

    def draw(self, data: Secret[list[int]], noise: Noise) -> list[int]:
        """The counts; ``data``: all rows, then the number of numbers."""
        number = len(self.noise.moves)
        return self.noise.draw(data.map(lambda sums: [sums[1], sums[0] - sums[1]][:number]), noise)


@dataclass(frozen=True)
class Portion:
    """One part of a description: what is drawn, under which step, and from which statistics."""

    id: str
    drawing: Drawing
    noise: StepNoise

    @property
    def step(self) -> Step:
        """Of a plan."""
        return Step(self.id, StepKind.RELEASE, self.noise, self.drawing.share.cost)


@dataclass(frozen=True)
class DescribedRelease:
    """All portions, from the statistics of one pass by their ids. The number of rows is shown where it is public.

    Guarantee: the costs of the shares together (``described.proof.md``, Theorem 2).
    """

    portions: tuple[Portion, ...]
    neighbours: Neighbours

    @property
    def rows_are_public(self) -> bool:
        """Whether all neighbours have as many rows."""
        return self.neighbours is Neighbours.REPLACE

    def steps(self) -> tuple[Step, ...]:
        """Of a plan: one for each portion."""
        free = Step(ROWS, StepKind.RELEASE, StepNoise("public-rows"), Cost(neighbours=self.neighbours))
        return (*([free] if self.rows_are_public else []), *(portion.step for portion in self.portions))

    def draw(self, data: Secret[Mapping[str, Any]], noise: Noise) -> dict[str, Any]:
        """What every portion draws, by its id."""
        drawn = {ROWS: noise.at(ROWS).reveal(data.map(itemgetter(ROWS)))} if self.rows_are_public else {}  # 3
        for one in self.portions:
            drawn[one.id] = one.drawing.draw(data.map(itemgetter(one.id)), noise.at(one.id))  # 4
        return drawn
