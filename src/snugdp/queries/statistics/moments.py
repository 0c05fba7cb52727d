"""Means, variances and proportions of one column. Proofs: ``mechanisms/statistics/{moments,clipping}.proof.md``."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, cast

from snugdp.mechanisms.statistics.clipping import ClippedMoments, ClippedRange
from snugdp.mechanisms.statistics.moments import Found, JointMoments, NoisyMoments
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import ColumnKeywords
from snugdp.queries.estimate import Estimate
from snugdp.queries.labels import listed, public_names
from snugdp.queries.statistics.base import (
    ColumnStatistic,
    OfSums,
    PreparedStatistic,
    best,
    expected,
    moment_grid,
    row_guess,
)
from snugdp.queries.statistics.clips import ClippedStatistic, HiddenPart, clip_notes, clip_range, left_for_release
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Grid
from snugdp.tables.passes.statistics import LabelCounts, Measure, PowerSums, TruthCounts
from snugdp.tables.schema.kinds import Category

_MANY = 10**9  # rows, where errors are compared: to first order
_BITS = {1: 36, 2: 24}  # of the grid, by the degree


class ProportionKeywords(ColumnKeywords, total=False):
    """The keyword arguments of ``proportion``."""

    values: Sequence[Hashable] | Category | None
    rows: int | None


@dataclass(frozen=True, kw_only=True)
class MomentStatistic(ClippedStatistic):
    """A statistic of numbers between bounds, from their moments.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``;
    where numbers are clipped in private ``clipping.proof.md``).
    """

    degree: ClassVar[int]

    @staticmethod
    @abstractmethod
    def _statistic(moments: NoisyMoments, /) -> Found:
        """The statistic, in units of the width."""

    @abstractmethod
    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        """The statistic in the user's units, for numbers from ``lower`` on over this width."""

    @abstractmethod
    def _with_hidden(self, shown: Estimate, hidden: HiddenPart, rows: float) -> Estimate:
        """The same with what clipping may hide of at least so many rows."""

    @cached_property
    def _grid(self) -> Grid:
        make = Grid.across if self.degree == 1 else moment_grid
        return make(self._reach, _BITS[self.degree])

    @cached_property
    def _prepared(self) -> PreparedStatistic[Estimate]:
        grid, unit = self._grid, float(self._grid.unit)
        share = best(self._shares, lambda share: self._error(share, _MANY))
        if self.clip is None:
            made = JointMoments(share, (grid.width,), self.degree)

            def show(drawn: list[int]) -> Estimate:
                whole = ClippedRange(grid.lower, grid.upper, 0, share)
                return self._of_range(whole, made.moments(drawn), unit)

            measure = PowerSums((self._name,), (grid,), self.degree)
            forecast = expected(self.rows, lambda rows: self._error(share, rows))
            return PreparedStatistic(measure, made, show, theorem("moments/1"), forecast)
        chosen = clip_range(share, self._capped(grid, self.degree), self.clip, self.rows)
        left = left_for_release(chosen)
        forecast = expected(self.rows, lambda rows: self._error(left, rows), *clip_notes(chosen))
        clipped = ClippedMoments(chosen, self.degree)

        def show_clipped(drawn: tuple[ClippedRange, list[int]]) -> Estimate:
            clip, sums = drawn
            return self._of_range(clip, clipped.moments(clip, sums), unit)

        return PreparedStatistic(chosen.measure, clipped, show_clipped, theorem("clipped-mean/1"), forecast)

    def _of_range(self, clip: ClippedRange, moments: NoisyMoments, unit: float) -> Estimate:
        """The statistic of numbers clipped to a range."""
        shown = self._shown(self._statistic(moments), clip.low * unit, (clip.high - clip.low) * unit)
        hidden = HiddenPart.of(clip, self._grid, found=isinstance(self.bounds, FoundNumber))
        return self._with_hidden(shown, hidden, moments.least_rows)

    def _error(self, share: Share, rows: int) -> float:
        """With so many rows that fill their bounds evenly, in the user's units."""
        width = self._grid.width
        found = JointMoments(share, (width,), self.degree).even(rows)
        return self._shown(self._statistic(found), 0.0, width * float(self._grid.unit)).error


@dataclass(frozen=True, kw_only=True)
class Mean(MomentStatistic):
    """The mean of a column of numbers.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Mean(bounds=(0, 1000), epsilon=1)
    >>> 29 < query.release([20 + i % 21 for i in range(5000)]).value.value < 31
    True
    """

    degree = 1
    _statistic = staticmethod(NoisyMoments.mean)

    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        return mean_of(found, lower, width)

    def _with_hidden(self, shown: Estimate, hidden: HiddenPart, rows: float) -> Estimate:
        return hidden.of_mean(shown, rows)


@dataclass(frozen=True, kw_only=True)
class Variance(MomentStatistic):
    """The variance of a column of numbers: the mean square of their distances from the mean.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Variance(bounds=(0, 100), epsilon=1)
    >>> 20 < query.release([20 + i % 21 for i in range(5000)]).value.value < 55
    True
    """

    degree = 2
    _statistic = staticmethod(NoisyMoments.variance)

    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        return Estimate(found.value * width**2, found.error * width**2, found.count)

    def _with_hidden(self, shown: Estimate, hidden: HiddenPart, rows: float) -> Estimate:
        return hidden.of_variance(shown, rows)


@dataclass(frozen=True, kw_only=True)
class StandardDeviation(Variance):
    """The standard deviation of a column of numbers: the root of their variance.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.StandardDeviation(bounds=(0, 100), epsilon=1)
    >>> 4 < query.release([20 + i % 21 for i in range(5000)]).value.value < 8
    True
    """

    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        return deviation_of(found, width)

    def _with_hidden(self, shown: Estimate, hidden: HiddenPart, rows: float) -> Estimate:
        return hidden.of_deviation(shown, rows)


@dataclass(frozen=True, kw_only=True)
class Proportion(ColumnStatistic[Estimate]):
    """The share of rows that are true, or that have one of the listed values, among those with an entry.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``).

    Parameters
    ----------
    values : sequence or Category, optional
        The labels that count, known without the data. Without them, the column holds yes and no.
    rows : int, optional
        A public guess of the number of rows, for the forecast.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Proportion(values=["train", "bus"], epsilon=1)
    >>> 0.6 < query.release(["train", "bus", "car"] * 500).value.value < 0.73
    True
    """

    values: Sequence[Hashable] | Category | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", row_guess(self.rows))
        object.__setattr__(self, "values", listed(self.values))
        super().__post_init__()

    @cached_property
    def _prepared(self) -> PreparedStatistic[Estimate]:
        share = best(self._shares, lambda share: self._error(share, _MANY))
        if self.values is None:
            measure: Measure = TruthCounts(self._name)
        else:
            measure = LabelCounts(self._name, public_names(cast(Sequence[Hashable], self.values), "values"))
        made = JointMoments(share, (1,))
        powers = partial(_zeros_and_ones, truth=self.values is None)
        forecast = expected(self.rows, lambda rows: self._error(share, rows))

        def show(drawn: list[int]) -> Estimate:
            found = made.moments(drawn).mean()
            return Estimate(found.value, found.error, found.count)

        return PreparedStatistic(measure, OfSums(made, powers), show, theorem("moments/1"), forecast)

    @staticmethod
    def _error(share: Share, rows: int) -> float:
        return JointMoments(share, (1,)).even(rows).mean().error


def _zeros_and_ones(counts: list[int], truth: bool) -> list[int]:
    """The powers of zeros and ones, from counts: no, yes and missing; or each listed value, others and missing."""
    return [sum(counts[:-1]), counts[1] if truth else sum(counts[:-2])]


def mean_of(found: Found, lower: float, width: float) -> Estimate:
    """A mean in the user's units, of numbers from ``lower`` on over this width."""
    return Estimate(lower + found.value * width, found.error * width, found.count)


def deviation_of(found: Found, width: float) -> Estimate:
    """The standard deviation that belongs to a variance, in the user's units."""
    ends = found.value - found.error, found.value, found.value + found.error
    low, value, high = (math.sqrt(max(end, 0.0)) for end in ends)
    return Estimate(value * width, max(high - value, value - low) * width, found.count)
