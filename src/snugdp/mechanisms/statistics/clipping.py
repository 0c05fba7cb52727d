"""A clipping range found in private, so that loose bounds cost little. Proof: ``clipping.proof.md``.

Numbers are clipped at a public distance from a public centre, one of a list of candidates. One is drawn with a
probability that falls with the number of rows beyond it, and with its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NamedTuple

from snugdp.mechanisms.order_statistics.rank_draw import range_of
from snugdp.mechanisms.statistics.joint import RELEASE, JointNoise, count_noise, total_noise
from snugdp.mechanisms.statistics.moments import JointMoments, NoisyMoments
from snugdp.noise import Gumbel, Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import Grid
from snugdp.tables.passes.columns.statistics import CappedSums

COUNT = "count"  # a step
STEPS = 4  # candidates for every doubling
TILT = Fraction(3, 4)  # how much the logarithm of the weight falls from one candidate to the next
MAX_OCTAVES = 16  # how often bounds are halved at most
_PURE_PART, _GAUSSIAN_PART = Fraction(1, 5), Fraction(1, 10)  # of a share, for the choice
_COUNT_PART = Fraction(1, 20)  # of a share, for the number of rows that decides how many candidates there are
_DOUBT = 2  # standard deviations of that number, which are taken off it
_RARE = Fraction(1, 1000)  # how often more rows are beyond the candidate than the law of the choice tells, at most
_MARGIN = 6  # how far the right candidate leads the lowest one, as a logarithm, with the fewest rows that it is for


def clip_part(share: Share) -> Fraction:
    """The part of a share that the choice gets; the release gets the rest."""
    return _PURE_PART if share.is_pure else _GAUSSIAN_PART


def centre_of(grid: Grid) -> int:
    """The number nearest to 0 within the bounds, in cells: distances are taken from there."""
    return min(max(0, grid.lower), grid.upper)


def candidates(grid: Grid, octaves: int = MAX_OCTAVES, centre: int | None = None) -> tuple[int, ...]:
    """Distances from the centre in cells, four for every doubling; the last reaches the farther bound.

    >>> candidates(Grid(0, -8, 64), 2)
    (16, 20, 24, 28, 32, 40, 48, 56, 64)
    """
    centre = centre_of(grid) if centre is None else centre
    return caps_up_to(max(grid.upper - centre, centre - grid.lower), octaves)


def caps_up_to(largest: int, octaves: int) -> tuple[int, ...]:
    """Whole numbers, four for every doubling; the last is the largest itself.

    >>> caps_up_to(12, 10)
    (1, 2, 3, 4, 5, 6, 7, 9, 10, 12)
    """
    below = {(largest * quarter) >> (halvings + 2) for halvings in range(1, octaves + 1) for quarter in range(4, 8)}
    return (*sorted(cap for cap in below if 0 < cap < largest), largest)


@dataclass(frozen=True)
class CandidateDraw:
    """One of ``number`` candidates, drawn with the weights of which ``scores`` has the logarithms."""

    share: Share
    number: int
    step: ClassVar[str] = RELEASE

    @property
    def range(self) -> Fraction:
        """How far the logarithms of the probabilities may spread between neighbours."""
        return range_of(self.share)

    def draw(self, above: Secret[list[int]], noise: Noise) -> int:
        """The position of a candidate, from how many are beyond each of them."""
        return noise.at(self.step).argmax(above.map(self.scores), Gumbel(1))  # 2

    def scores(self, above: list[int]) -> list[Fraction]:
        """The logarithms of the weights."""
        raise NotImplementedError


@dataclass(frozen=True)
class ClipChoice(CandidateDraw):
    """One of ``number`` candidates, drawn with weights exp(-range * rows beyond it - TILT * position).

    Guarantee: the cost of the share (``clipping.proof.md``, Theorem 1).
    """

    def scores(self, above: list[int]) -> list[Fraction]:
        """The logarithms of the weights."""
        rate = self.range
        return [-rate * rows - TILT * place for place, rows in enumerate(above)]  # 1

    def rows_beyond(self, place: int) -> int:
        """At most so many rows lie beyond the candidate that was drawn, in 999 of 1,000 cases (Lemma 1); public.

        >>> from snugdp.core.guarantee import Budget
        >>> choice = ClipChoice(Share.pure(Budget("0.2")), 17)
        >>> choice.rows_beyond(12), choice.rows_beyond(16)
        (64, 0)
        """
        last = self.number - 1
        if place == last:
            return 0
        return math.ceil((float(TILT) * (last - place) + math.log(self.number / _RARE)) / float(self.range))


def octaves_for(share: Share, rows: float) -> int:
    """How far down the candidates reach: as far as so many rows can tell the right one from the lowest. 0: none do."""
    known = rows * float(ClipChoice(share.part(clip_part(share)), 1).range) - _MARGIN
    return int(min(max(known // float(STEPS * TILT), 0), MAX_OCTAVES))


def rows_needed(share: Share, octaves: int) -> int:
    """The number of rows from which on a choice among so many octaves hardly ever clips too much."""
    return int((STEPS * TILT * octaves + _MARGIN) / ClipChoice(share.part(clip_part(share)), 1).range) + 1


class ClippedRange(NamedTuple):
    """A range of cells, within the grid, and what was left of the share for a release on it. Public.

    ``beyond``: at most so many rows are clipped, as far as the law of the choice tells.
    """

    low: int
    high: int
    place: int
    left: Share
    beyond: int = 0


@dataclass(frozen=True)
class ClipRange:
    """Where to clip: a draw among the candidates of so many octaves. Of none: at the bounds, without a draw.

    ``measure``: the sums that are looked at; a first cap of 0 is no candidate: it tells rows at the centre from others.
    ``octaves``: public, or None, and then a noisy number of rows beyond the first cap decides: a heap at the centre
    tells nothing of the others.

    Guarantee: what it draws and what is ``left`` cost the share together (``clipping.proof.md``, Theorem 2).
    """

    share: Share
    measure: CappedSums
    octaves: int | None = None

    @property
    def _counting(self) -> JointNoise:
        """The noise of the number of rows, if that decides."""
        return replace(count_noise(self.share.part(_COUNT_PART)), step=COUNT)

    @property
    def rest(self) -> Share:
        """What the count leaves."""
        return self.share.part(1 - _COUNT_PART) if self.octaves is None else self.share

    def draw(self, sums: Secret[list[int]], noise: Noise) -> ClippedRange:
        """The range."""
        octaves = self._counted(sums, noise) if self.octaves is None else self.octaves
        last = len(self.measure.caps) - 1
        first = max(last - STEPS * octaves, int(self.measure.caps[0] == 0))
        if first == last:  # 4
            return self._range(last, self.rest)
        part = clip_part(self.rest)
        choice = ClipChoice(self.rest.part(part), last - first + 1)
        drawn = choice.draw(sums.map(lambda each: self.measure.above(each)[first:]), noise)
        return self._range(first + drawn, self.rest.part(1 - part), choice.rows_beyond(drawn))

    def _counted(self, sums: Secret[list[int]], noise: Noise) -> int:
        counting = self._counting
        (drawn,) = counting.draw(sums.map(lambda each: self.measure.above(each)[:1]), noise)  # 3
        return octaves_for(self.rest, drawn - _DOUBT * counting.deviations[0])

    def _range(self, place: int, left: Share, beyond: int = 0) -> ClippedRange:
        return ClippedRange(self.measure.low(place), self.measure.high(place), place, left, beyond)

    def steps(self, release: StepNoise) -> tuple[Step, ...]:
        """Of a plan: the count, then the clip and the ``release`` in one; without a clip the release gets its part."""
        counted = self._counting.steps() if self.octaves is None else ()
        return *counted, Step(RELEASE, StepKind.RELEASE, release, self.rest.cost)


@dataclass(frozen=True)
class ClippedMoments:
    """Moments of one column, of numbers that are clipped where that pays.

    Guarantee: the cost of the share (``clipping.proof.md``, Theorem 2).
    """

    range: ClipRange
    degree: int = 1

    def draw(self, data: Secret[list[int]], noise: Noise) -> tuple[ClippedRange, list[int]]:
        """The range in cells, and the sums of polynomials in it; ``moments`` reads them."""
        clip = self.range.draw(data, noise)
        measure = self.range.measure
        powers = data.map(lambda sums: measure.clipped(sums, clip.place)[: self.degree + 1])
        return clip, self._within(clip).draw(powers, noise)  # 5

    def moments(self, clip: ClippedRange, drawn: list[int]) -> NoisyMoments:
        """The moments, in units of the range."""
        return self._within(clip).moments(drawn)

    def _within(self, clip: ClippedRange) -> JointMoments:
        return JointMoments(clip.left, (clip.high - clip.low,), self.degree)

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        grid = self.range.measure.grid
        (step,) = JointMoments(self.range.rest, (grid.width,), self.degree).steps()
        return self.range.steps(replace(step.noise, on="clipped-moments"))


@dataclass(frozen=True)
class ClippedTotal:
    """The sum of one column, of numbers that are clipped where that pays.

    Guarantee: the cost of the share (``clipping.proof.md``, Theorem 2).
    """

    range: ClipRange

    def draw(self, data: Secret[list[int]], noise: Noise) -> tuple[ClippedRange, int]:
        """The range, and the sum, in cells."""
        clip = self.range.draw(data, noise)
        measure = self.range.measure
        total = data.map(lambda sums: _total(measure.clipped(sums, clip.place), clip.low))
        return clip, total_noise(clip.left, clip.low, clip.high).draw(total, noise)[0]  # 5

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        grid = self.range.measure.grid
        (step,) = total_noise(self.range.rest, grid.lower, grid.upper).steps()
        return self.range.steps(replace(step.noise, on="clipped-sum"))


def _total(powers: list[int], low: int) -> list[int]:
    return [powers[1] + low * powers[0]]
