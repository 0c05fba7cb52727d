"""Queries of columns in one call each: a function makes a query and releases it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from snugdp.core.outcome import Outcome
from snugdp.numerics.rationals import Real
from snugdp.queries.docstrings import takes
from snugdp.queries.estimate import Estimate
from snugdp.queries.labels import Label, Mode, ModeKeywords, Vote, VoteKeywords
from snugdp.queries.order_statistics.base import RankKeywords
from snugdp.queries.order_statistics.extremes import ExtremeKeywords, Maximum, Minimum
from snugdp.queries.order_statistics.interval import QuantileInterval
from snugdp.queries.order_statistics.quantile_table import QuantileTable, QuantileTableKeywords
from snugdp.queries.order_statistics.quantiles import (
    InterquartileRange,
    Median,
    MiddleRankKeywords,
    Quantile,
    Quantiles,
)
from snugdp.queries.order_statistics.robust import TrimmedMean, TrimmedMeanKeywords
from snugdp.queries.statistics.clips import ClipKeywords
from snugdp.queries.statistics.counts import Count, CountKeywords, Sum
from snugdp.queries.statistics.histogram import Histogram, HistogramCounts, HistogramKeywords
from snugdp.queries.statistics.moments import (
    Mean,
    MeanKeywords,
    Proportion,
    ProportionKeywords,
    StandardDeviation,
    Variance,
)
from snugdp.queries.statistics.pairs import Correlation, Covariance, PairKeywords


@takes(Count)
def count(data: object, **options: Unpack[CountKeywords]) -> Outcome[Estimate]:
    """How many rows there are, or entries or missing cells in a column: ``Count(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> 900 < float(snugdp.count(range(1000), epsilon=1).value) < 1100
    True
    """
    return Count._answer(data, **options)


@takes(Sum)
def sum(data: object, **options: Unpack[ClipKeywords]) -> Outcome[Estimate]:
    """The private sum of a column: ``Sum(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> 4500 < float(snugdp.sum([5.0] * 1000, bounds=(0, 10), epsilon=1).value) < 5500
    True
    """
    return Sum._answer(data, **options)


@takes(Mean)
def mean(data: object, **options: Unpack[MeanKeywords]) -> Outcome[Estimate]:
    """The private mean of a column: ``Mean(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [20 + i % 21 for i in range(5000)]
    >>> 29 < float(snugdp.mean(ages, bounds=(0, 1000), epsilon=1).value) < 31
    True
    """
    return Mean._answer(data, **options)


@takes(Variance)
def variance(data: object, **options: Unpack[ClipKeywords]) -> Outcome[Estimate]:
    """The private variance of a column: ``Variance(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [20 + i % 21 for i in range(5000)]
    >>> 20 < float(snugdp.variance(ages, bounds=(0, 100), epsilon=1).value) < 55
    True
    """
    return Variance._answer(data, **options)


@takes(StandardDeviation)
def standard_deviation(data: object, **options: Unpack[ClipKeywords]) -> Outcome[Estimate]:
    """The private standard deviation of a column: ``StandardDeviation(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [20 + i % 21 for i in range(5000)]
    >>> 4 < float(snugdp.standard_deviation(ages, bounds=(0, 100), epsilon=1).value) < 8
    True
    """
    return StandardDeviation._answer(data, **options)


@takes(Covariance)
def covariance(data: object, **options: Unpack[PairKeywords]) -> Outcome[Estimate]:
    """The private covariance of two columns: ``Covariance(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> height, weight = [150 + i % 50 for i in range(5000)], [50 + i % 50 for i in range(5000)]
    >>> bounds = (100, 250), (0, 200)
    >>> 150 < float(snugdp.covariance((height, weight), bounds=bounds, epsilon=1).value) < 270
    True
    """
    return Covariance._answer(data, **options)


@takes(Correlation)
def correlation(data: object, **options: Unpack[PairKeywords]) -> Outcome[Estimate]:
    """The private correlation of two columns: ``Correlation(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> height, weight = [150 + i % 50 for i in range(5000)], [50 + i % 50 for i in range(5000)]
    >>> bounds = (150, 200), (50, 100)
    >>> float(snugdp.correlation((height, weight), bounds=bounds, epsilon=2).value) > 0.9
    True
    """
    return Correlation._answer(data, **options)


@takes(Proportion)
def proportion(data: object, **options: Unpack[ProportionKeywords]) -> Outcome[Estimate]:
    """The private share of rows that are true, or have listed values: ``Proportion(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> commute = ["train", "bus", "car"] * 500
    >>> 0.28 < float(snugdp.proportion(commute, values=["car"], epsilon=1).value) < 0.38
    True
    """
    return Proportion._answer(data, **options)


@takes(Histogram)
def histogram(data: object, **options: Unpack[HistogramKeywords]) -> Outcome[HistogramCounts]:
    """The private number of rows in every cell: ``Histogram(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> commute = ["train", "bus", "car"] * 500
    >>> 450 < snugdp.histogram(commute, values=["train", "bus", "car"], epsilon=1).value.counts[0] < 550
    True
    """
    return Histogram._answer(data, **options)


@takes(Median)
def median(data: object, **options: Unpack[MiddleRankKeywords]) -> Outcome[float]:
    """The private median of one column: ``Median(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [30 + i % 20 for i in range(2000)]
    >>> 38 <= snugdp.median(ages, bounds=(0, 120), step=1, epsilon=1).value <= 41
    True
    """
    return Median._answer(data, **options)


@takes(Quantile)
def quantile(data: object, q: Real, **options: Unpack[MiddleRankKeywords]) -> Outcome[float]:
    """The private q-quantile of one column: ``Quantile(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> waits = [i % 60 for i in range(6000)]
    >>> 52 <= snugdp.quantile(waits, 0.9, bounds=(0, 60), step=1, epsilon=1).value <= 55
    True
    """
    return Quantile._answer(data, q=q, **options)


@takes(Quantiles)
def quantiles(data: object, q: Sequence[Real], **options: Unpack[RankKeywords]) -> Outcome[tuple[float, ...]]:
    """Several private quantiles of one column: ``Quantiles(...).release(data)``.

    Returns
    -------
    Outcome
        Its value is a tuple, in the order of ``q``.

    Examples
    --------
    >>> import snugdp
    >>> waits = [i % 60 for i in range(6000)]
    >>> low, high = snugdp.quantiles(waits, [0.25, 0.75], bounds=(0, 60), step=1, epsilon=2).value
    >>> 12 <= low <= 17 and 42 <= high <= 47
    True
    """
    return Quantiles._answer(data, q=q, **options)


@takes(InterquartileRange)
def interquartile_range(data: object, **options: Unpack[RankKeywords]) -> Outcome[float]:
    """The private distance of the quartiles of one column: ``InterquartileRange(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> waits = [i % 60 for i in range(6000)]
    >>> 27 <= snugdp.interquartile_range(waits, bounds=(0, 60), step=1, epsilon=2).value <= 33
    True
    """
    return InterquartileRange._answer(data, **options)


@takes(Minimum)
def minimum(data: object, **options: Unpack[ExtremeKeywords]) -> Outcome[float]:
    """A private lower end of one column: ``Minimum(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [18 + i % 50 for i in range(5000)]
    >>> snugdp.minimum(ages, bounds=(0, 120), step=1, epsilon=1, beyond=50).value
    18.0
    """
    return Minimum._answer(data, **options)


@takes(Maximum)
def maximum(data: object, **options: Unpack[ExtremeKeywords]) -> Outcome[float]:
    """A private upper end of one column: ``Maximum(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [18 + i % 50 for i in range(5000)]
    >>> snugdp.maximum(ages, bounds=(0, 120), step=1, epsilon=1, beyond=50).value
    67.0
    """
    return Maximum._answer(data, **options)


@takes(QuantileInterval)
def quantile_interval(data: object, q: Real = 0.5, **options: Unpack[RankKeywords]) -> Outcome[tuple[float, float]]:
    """A confidence interval for a quantile of the population: ``QuantileInterval(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> incomes = [20_000 + 4 * i for i in range(10_000)]
    >>> low, high = snugdp.quantile_interval(incomes, q=0.5, bounds=(0, 1_000_000), epsilon=2).value
    >>> 38_000 < low < 40_000 < high < 42_000
    True
    """
    return QuantileInterval._answer(data, q=q, **options)


@takes(QuantileTable)
def quantile_table(data: object, **options: Unpack[QuantileTableKeywords]) -> Outcome[HistogramCounts]:
    """A histogram of a column with private edges: ``QuantileTable(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> incomes = [20_000 + 4 * i for i in range(10_000)]
    >>> table = snugdp.quantile_table(incomes, bins=5, bounds=(0, 1_000_000), epsilon=2).value
    >>> 27_000 < table.cells[1][0] < 29_000
    True
    """
    return QuantileTable._answer(data, **options)


@takes(TrimmedMean)
def trimmed_mean(data: object, **options: Unpack[TrimmedMeanKeywords]) -> Outcome[float]:
    """The private trimmed mean of one column: ``TrimmedMean(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> 4 < snugdp.trimmed_mean([5.0] * 1000, bounds=(0, 10), epsilon=5).value < 6
    True
    """
    return TrimmedMean._answer(data, **options)


@takes(Mode)
def mode(data: object, **options: Unpack[ModeKeywords[Label]]) -> Outcome[Label]:
    """The most frequent category, exactly, or a refusal: ``Mode(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> answers = ["yes"] * 200 + ["no"] * 90
    >>> snugdp.mode(answers, categories=["yes", "no"], epsilon=1, delta=1e-6).value
    'yes'
    """
    return Mode[Label]._answer(data, **options)


@takes(Vote)
def vote(data: object, **options: Unpack[VoteKeywords[Label]]) -> Outcome[Label]:
    """The winner after noise on every count: ``Vote(...).release(data)``.

    Examples
    --------
    >>> import snugdp
    >>> snugdp.vote(["cat"] * 80 + ["dog"] * 10, candidates=["cat", "dog", "fox"], epsilon=2).value
    'cat'
    """
    return Vote[Label]._answer(data, **options)
