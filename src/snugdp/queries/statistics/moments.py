"""Means, variances and proportions of one column. Proofs: ``mechanisms/statistics/{moments,clipping}.proof.md``."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

import numpy as np

from snugdp.inference.means import SampledMean
from snugdp.mechanisms.statistics.clipping import ClippedMoments, ClippedRange
from snugdp.mechanisms.statistics.moments import Found, JointMoments, NoisyMoments
from snugdp.propose.forecast import Note
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import ColumnKeywords
from snugdp.queries.estimate import Estimate
from snugdp.queries.labels import listed, public_names
from snugdp.queries.statistics.base import (
    ColumnStatistic,
    Contribution,
    OfSums,
    PreparedStatistic,
    best,
    expected,
    moment_grid,
    row_guess,
)
from snugdp.queries.statistics.clips import (
    ClipKeywords,
    ClippedStatistic,
    HiddenPart,
    clip_notes,
    clip_range,
    left_for_release,
)
from snugdp.release.persons import Persons
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Grid
from snugdp.tables.passes.columns.statistics import CellMeasure, LabelCounts, PowerSums, TruthCounts, ZerosAndOnes
from snugdp.tables.schema.kinds import Category

_LARGE_TABLE = 10**9  # rows, where errors are compared: to first order
_BITS = {1: 36, 2: 24}  # of the grid, by the degree


class ProportionKeywords(ColumnKeywords, total=False):
    """The keyword arguments of ``proportion``."""

    values: Sequence[Hashable] | Category | None
    rows: int | None
    inference: bool


class MeanKeywords(ClipKeywords, total=False):
    """The keyword arguments of ``mean``."""

    inference: bool


@dataclass(frozen=True, kw_only=True)
class MomentStatistic(ClippedStatistic):
    """A statistic of numbers between bounds, from their moments.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``;
    where numbers are clipped privately ``clipping.proof.md``).
    """

    @property
    def _degree(self) -> int:
        """Of the moments that are released."""
        return 2

    @staticmethod
    @abstractmethod
    def _statistic(moments: NoisyMoments, /) -> Found:
        """The statistic, in units of the width."""

    @abstractmethod
    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        """The statistic in the user's units, for numbers from ``lower`` on over this width."""

    @staticmethod
    @abstractmethod
    def _with_hidden(hidden: HiddenPart, shown: Estimate, rows: float, /) -> Estimate:
        """The same with what clipping may hide of at least so many rows."""

    def _about_population(self, shown: Estimate, moments: NoisyMoments, lower: float, width: float) -> Estimate:
        """The same with what is known of the population."""
        return shown

    @cached_property
    def _grid(self) -> Grid:
        make = Grid.across if self._degree == 1 else moment_grid
        return make(self._reach, _BITS[self._degree])

    def _contribution(self, share: Share) -> Contribution:
        measure = PowerSums((self._name,), (self._grid,), self._degree)
        return of_moments(measure, JointMoments(share, (self._grid.width,), self._degree))

    def _prepare(self, shares: tuple[Share, ...]) -> PreparedStatistic[Estimate]:
        grid, unit = self._grid, float(self._grid.unit)
        share = best(shares, lambda share: self._error(share, _LARGE_TABLE))
        if self.clip is None:
            made = JointMoments(share, (grid.width,), self._degree)

            def show(drawn: list[int]) -> Estimate:
                whole = ClippedRange(grid.lower, grid.upper, 0, share)
                return self._of_range(whole, made.moments(drawn), unit)

            measure = PowerSums((self._name,), (grid,), self._degree)
            forecast = expected(self.rows, lambda rows: self._error(share, rows))
            return PreparedStatistic(measure, made, show, theorem("moments/1"), forecast)
        chosen = clip_range(share, self._capped(grid, self._degree), self.clip, self.rows)
        left = left_for_release(chosen)
        forecast = expected(self.rows, lambda rows: self._error(left, rows), *clip_notes(chosen))
        clipped = ClippedMoments(chosen, self._degree)

        def show_clipped(drawn: tuple[ClippedRange, list[int]]) -> Estimate:
            clip, sums = drawn
            return self._of_range(clip, clipped.moments(clip, sums), unit)

        return PreparedStatistic(chosen.measure, clipped, show_clipped, theorem("clipped-mean/1"), forecast)

    def _of_range(self, clip: ClippedRange, moments: NoisyMoments, unit: float) -> Estimate:
        """The statistic of numbers clipped to a range."""
        ends = clip.low * unit, (clip.high - clip.low) * unit
        shown = self._about_population(self._shown(self._statistic(moments), *ends), moments, *ends)
        hidden = HiddenPart.of(clip, self._grid, found=isinstance(self.bounds, FoundNumber))
        return self._with_hidden(hidden, shown, moments.least_rows)

    def _error(self, share: Share, rows: int) -> float:
        """With so many rows that fill their bounds evenly, in the user's units."""
        width = self._grid.width
        found = JointMoments(share, (width,), self._degree).even(rows)
        return self._shown(self._statistic(found), 0.0, width * float(self._grid.unit)).error


@dataclass(frozen=True, kw_only=True)
class Mean(MomentStatistic):
    """The mean of a column of numbers.

    Parameters
    ----------
    inference : bool, default=False
        Whether the variance is released as well, and with it a standard error and a confidence interval for the
        population: ``conf_int()`` of the value. The plan says by how much the noise of the mean grows. With public
        bounds ``clip="auto"`` is then None: what clipping may hide would be most of the interval.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Mean(bounds=(0, 1000), epsilon=1)
    >>> 29 < query.release([20 + i % 21 for i in range(5000)]).value.value < 31
    True
    """

    inference: bool = False
    _statistic = staticmethod(NoisyMoments.mean)
    _with_hidden = staticmethod(HiddenPart.of_mean)

    def __post_init__(self) -> None:
        if self.inference and self.clip == "auto" and not self._open and not isinstance(self.bounds, FoundNumber):
            object.__setattr__(self, "clip", None)
        super().__post_init__()
        check_inference(self.inference, self._persons)

    @property
    def _degree(self) -> int:
        return 2 if self.inference else 1

    @property
    def _gaps(self) -> tuple[Note, ...]:
        return (*super()._gaps, *((self._price,) if self.inference else ()))

    @property
    def _price(self) -> Note:
        """What the variance adds to the noise of the mean."""
        one, two = (min(JointMoments(share, (2**20,), degree).even(_LARGE_TABLE).mean().error for share in self._shares)
                    for degree in (1, 2))  # fmt: skip
        return Note("population-mean", {"factor": two / one})

    def _about_population(self, shown: Estimate, moments: NoisyMoments, lower: float, width: float) -> Estimate:
        return with_population(shown, _sums_of(moments), lower, width) if self.inference else shown

    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        return mean_of(found, lower, width)


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

    _statistic = staticmethod(NoisyMoments.variance)
    _with_hidden = staticmethod(HiddenPart.of_variance)

    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        return Estimate(found.value * width**2, found.error * width**2, found.count)


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

    _with_hidden = staticmethod(HiddenPart.of_deviation)

    def _shown(self, found: Found, lower: float, width: float) -> Estimate:
        return deviation_of(found, width)


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
    inference : bool, default=False
        Whether the value has a standard error and a confidence interval for the population, ``conf_int()``. It costs
        nothing.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Proportion(values=["train", "bus"], epsilon=1)
    >>> 0.6 < query.release(["train", "bus", "car"] * 500).value.value < 0.73
    True
    """

    values: Sequence[Hashable] | Category | None = None
    rows: int | None = None
    inference: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", row_guess(self.rows))
        object.__setattr__(self, "values", listed(self.values))
        super().__post_init__()
        check_inference(self.inference, self._persons)

    @property
    def _measure(self) -> TruthCounts | LabelCounts:
        if self.values is None:
            return TruthCounts(self._name)
        return LabelCounts(self._name, public_names(cast(Sequence[Hashable], self.values), "values"))

    def _contribution(self, share: Share) -> Contribution:
        measure = self._measure
        ones = (1, 2) if isinstance(measure, TruthCounts) else (0, len(measure.names))
        return of_moments(ZerosAndOnes(measure, ones), JointMoments(share, (1,)))

    def _prepare(self, shares: tuple[Share, ...]) -> PreparedStatistic[Estimate]:
        share, measure = best(shares, lambda share: self._error(share, _LARGE_TABLE)), self._measure
        made = JointMoments(share, (1,))
        powers = partial(_zeros_and_ones, truth=self.values is None)
        forecast = expected(self.rows, lambda rows: self._error(share, rows))

        def show(drawn: list[int]) -> Estimate:
            moments = made.moments(drawn)
            found = moments.mean()
            shown = Estimate(found.value, found.error, found.count)
            return with_population(shown, _sums_of(moments), 0.0, 1.0) if self.inference else shown

        return PreparedStatistic(measure, OfSums(made, powers), show, theorem("moments/1"), forecast)

    @staticmethod
    def _error(share: Share, rows: int) -> float:
        return JointMoments(share, (1,)).even(rows).mean().error


def check_inference(inference: object, persons: Persons | None) -> None:
    """Refuse what is no choice, and several rows of a person: they are not independent."""
    if not isinstance(inference, bool | np.bool_):
        raise TypeError("inference must be True or False")
    if inference and persons is not None and (persons.most > 1 or persons.is_private):
        raise ValueError(
            "intervals for the population are for independent rows: with person=... leave out max_rows, so that one "
            "row of each person counts"
        )


def with_population(shown: Estimate, sums: SampledMean, lower: float, width: float) -> Estimate:
    """An estimate with its standard error and confidence interval, in the user's units."""
    low, high = (lower + width * float(end) for end in sums.interval())
    error = width * float(sums.standard_error)
    return replace(shown, standard_error=error, population_lower=low, population_upper=high)


def _sums_of(moments: NoisyMoments) -> SampledMean:
    """The number of rows, the sum and the variance of a column, in units of the width.

    The variance has one deviation of its noise added: too small a one would cost coverage, too large a one width.
    """
    covariance = moments.spread @ moments.spread.T
    zero, one = (moments.order.index(which) for which in ((0,), (1,)))
    noise = float(covariance[zero, zero]), float(covariance[one, one]), float(covariance[zero, one])
    spread = None
    if (2,) in moments.values:
        found = moments.variance()
        spread = min(found.value + found.error / moments.tail, 0.25)
    return SampledMean(moments.values[(0,)], moments.values[(1,)], spread, noise)


def of_moments(measure: CellMeasure, moments: JointMoments) -> Contribution:
    """What persons add to the sums of polynomials, from the powers that rows have."""
    powers = moments.degree + 1
    columns = [moments.features([int(i == j) for j in range(powers)]) for i in range(powers)]
    return Contribution(measure, tuple(zip(*columns, strict=True)), moments.noise.moves)


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
