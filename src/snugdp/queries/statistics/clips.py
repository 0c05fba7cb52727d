"""Statistics of numbers that may be clipped privately: whether and how, and what a plan says about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Self, TypeAlias

from snugdp.mechanisms.statistics.clipping import (
    MAX_OCTAVES,
    ClippedRange,
    ClipRange,
    candidates,
    centre_of,
    clip_part,
    octaves_for,
    rows_needed,
)
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Note
from snugdp.propose.share import Share
from snugdp.queries.base import BoundedKeywords
from snugdp.queries.bounds.given import GivenBounds, both_ends, open_ends
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.base import ColumnStatistic, row_guess
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Ends, Grid
from snugdp.tables.passes.columns.statistics import CappedSums

_MAX_DOUBLINGS = 5  # doublings of the bounds that were found, at most: as many as are told apart
Clip: TypeAlias = Literal["auto", "private"] | None


class ClipKeywords(BoundedKeywords, total=False):
    """The keyword arguments of functions that ask for such a statistic."""

    clip: Clip
    rows: int | None


@dataclass(frozen=True, kw_only=True)
class ClippedStatistic(ColumnStatistic[Estimate]):
    """A statistic of numbers between bounds, clipped closer privately where that pays.

    Parameters
    ----------
    bounds : (Real, Real), FoundNumber or "private"
        Public bounds on the values of the column; either may be None. By default they are found privately, for a
        part of the budget; what was found is the ``certificate`` of the outcome, and good for other queries at no cost.
    clip : {"auto", "private"}, optional
        Where numbers are clipped: privately where there are enough rows for it ("auto"), privately always, or at the
        bounds alone (None). Clipping privately makes loose bounds cheap, and costs a quarter of the budget.
    rows : int, optional
        A public guess of the number of rows: for the forecast, and so that "auto" need not spend anything on counting.
    """

    bounds: GivenBounds = "private"
    clip: Clip = "auto"
    rows: int | None = None

    def __post_init__(self) -> None:
        check_clip(self.clip)
        object.__setattr__(self, "rows", row_guess(self.rows))
        super().__post_init__()

    @property
    def _open(self) -> Mapping[str, Ends]:
        ends = open_ends(self.bounds)
        return {} if ends is None else {self._name: ends}

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        return replace(self, bounds=found[self._name], rows=rows if self.rows is None else self.rows, epsilon=epsilon)

    @property
    def _reach(self) -> tuple[Real, Real]:
        """The bounds; those that were found are wider where numbers are clipped privately, so that tails are kept."""
        if not isinstance(self.bounds, FoundNumber) or self.clip is None:
            return both_ends(self.bounds)
        return reach_of(self.bounds, self._shares, self.rows)

    def _capped(self, grid: Grid, degree: int = 1) -> CappedSums:
        """What is summed up so that the column can be clipped: around the middle that was found, or from zero on."""
        centre = grid.nearest(self.bounds.centre, "the centre") if isinstance(self.bounds, FoundNumber) else None
        return capped_sums(self._name, grid, degree, centre)


@dataclass(frozen=True)
class HiddenPart:
    """What clipping may hide, in the user's units (``clipping.proof.md``, Lemmas 1 and 2).

    ``rows``: at most so many were clipped. ``below``, ``above``: how far each at most; None where that is not known.
    """

    rows: float
    below: float | None
    above: float | None

    @classmethod
    def of(cls, clip: ClippedRange, grid: Grid, *, found: bool) -> HiddenPart:
        """``found``: whether the bounds were found privately, so that rows may lie anywhere beyond them."""
        unit = float(grid.unit)
        far = (None, None) if found else ((clip.low - grid.lower) * unit, (grid.upper - clip.high) * unit)
        return cls(clip.beyond, *far)

    def of_sum(self, estimate: Estimate) -> Estimate:
        """A sum with what is hidden of it."""
        return self._times(estimate, self.rows)

    def of_mean(self, estimate: Estimate, rows: float) -> Estimate:
        """The same for a mean of at least so many rows."""
        return self._times(estimate, self._share(rows))

    def of_deviation(self, estimate: Estimate, rows: float) -> Estimate:
        """The same for a standard deviation, which clipping makes smaller."""
        far = self._farther
        return replace(estimate, above=None if far is None else far * math.sqrt(self._share(rows)))

    def of_variance(self, estimate: Estimate, rows: float) -> Estimate:
        """The same for a variance."""
        root = math.sqrt(max(estimate.value + estimate.error, 0.0))
        above = self.of_deviation(Estimate(root, 0.0), rows).above
        return replace(estimate, above=None if above is None else above * (2 * root + above))

    def _share(self, rows: float) -> float:
        return min(self.rows / rows, 1.0)

    @property
    def _farther(self) -> float | None:
        return None if self.below is None or self.above is None else max(self.below, self.above)

    def _times(self, estimate: Estimate, factor: float) -> Estimate:
        below, above = (None if far is None else far * factor for far in (self.below, self.above))
        return replace(estimate, below=below, above=above)


def reach_of(found: FoundNumber, shares: Sequence[Share], rows: int | None) -> tuple[float, float]:
    """Bounds around the centre that was found, as wide as so many rows let a clip be found again privately."""
    octaves = [_MAX_DOUBLINGS, *(octaves_for(share, rows) for share in shares if rows is not None)]
    half = (found.upper - found.lower) / 2 * 2 ** min(octaves)
    return found.centre - half, found.centre + half


def check_clip(clip: object) -> None:
    """Refuse what is no way to clip."""
    if clip not in ("auto", "private", None):
        raise ValueError('clip must be "auto", "private" or None: at the bounds alone')


def capped_sums(column: str, grid: Grid, degree: int = 1, centre: int | None = None) -> CappedSums:
    """What has to be summed up so that a column can be clipped at any candidate; around a centre, or from zero on."""
    middle = centre_of(grid) if centre is None else centre
    return CappedSums(column, grid, middle, (0, *candidates(grid, centre=middle)), degree)


def clip_range(share: Share, measure: CappedSums, clip: Clip, rows: int | None) -> ClipRange:
    """The choice of a range. "auto" clips where there are enough rows for it: so many, or a noisy number of them."""
    if clip == "auto":
        return ClipRange(share, measure, None if rows is None else octaves_for(share, rows))
    return ClipRange(share, measure, MAX_OCTAVES if rows is None else max(octaves_for(share, rows), 1))


def left_for_release(chosen: ClipRange) -> Share:
    """What is left where numbers are clipped."""
    return chosen.rest if chosen.octaves == 0 else chosen.rest.part(1 - clip_part(chosen.rest))


def clip_notes(chosen: ClipRange) -> tuple[Note, ...]:
    """What a plan says: whether it clips, and that nobody can know before whether that pays."""
    if chosen.octaves == 0:
        return (Note("clip-needs-rows", {"rows": rows_needed(chosen.rest, 1)}),)
    octaves = MAX_OCTAVES if chosen.octaves is None else chosen.octaves
    needed = rows_needed(chosen.rest, 6 if chosen.octaves is None else octaves)
    return (Note("clip-from-rows" if chosen.octaves is None else "clip-surely", {"rows": needed}),)
