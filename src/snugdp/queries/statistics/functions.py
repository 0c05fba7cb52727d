"""The statistics in one call each: they make a query and release it."""

from __future__ import annotations

from typing import Unpack

from snugdp.core.outcome import Outcome
from snugdp.queries.docstrings import takes
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.clips import ClipKeywords
from snugdp.queries.statistics.counts import Count, CountKeywords, Sum
from snugdp.queries.statistics.histogram import Histogram, HistogramCounts, HistogramKeywords
from snugdp.queries.statistics.moments import Mean, Proportion, ProportionKeywords, StandardDeviation, Variance
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
def mean(data: object, **options: Unpack[ClipKeywords]) -> Outcome[Estimate]:
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
