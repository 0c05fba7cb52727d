"""The statistics in one call each: they make a query and release it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike, Outcome
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.clips import Clip
from snugdp.queries.statistics.counts import Count, Sum
from snugdp.queries.statistics.histogram import Histogram, HistogramCounts
from snugdp.queries.statistics.moments import Mean, Proportion, StandardDeviation, Variance
from snugdp.queries.statistics.pairs import Correlation, Covariance
from snugdp.tables.schema.kinds import Category


def count(
    data: object,
    *,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """How many rows there are, or entries in a column: ``Count(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/joint.proof.md``).

    Parameters
    ----------
    data : array-like or table
        A column, or a table: a frame, the path of a file, DuckDB, Spark.
    column, epsilon, delta, neighbours
        As in ``Count``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> 900 < float(snugdp.count(range(1000), epsilon=1).value) < 1100
    True
    """
    return Count._answer(locals())


def sum(
    data: object,
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    clip: Clip = "auto",
    rows: int | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """The private sum of a column: ``Sum(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/joint.proof.md``;
    where numbers are clipped in private ``clipping.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column, or the table that holds it: a frame, the path of a file, DuckDB, Spark.
    bounds, column, epsilon, delta, neighbours, clip, rows
        As in ``Sum``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> 4500 < float(snugdp.sum([5.0] * 1000, bounds=(0, 10), epsilon=1).value) < 5500
    True
    """
    return Sum._answer(locals())


def mean(
    data: object,
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    clip: Clip = "auto",
    rows: int | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """The private mean of a column: ``Mean(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``;
    where numbers are clipped in private ``clipping.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column, or the table that holds it: a frame, the path of a file, DuckDB, Spark.
    bounds, column, epsilon, delta, neighbours, clip, rows
        As in ``Mean``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [20 + i % 21 for i in range(5000)]
    >>> 29 < float(snugdp.mean(ages, bounds=(0, 1000), epsilon=1).value) < 31
    True
    """
    return Mean._answer(locals())


def variance(
    data: object,
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    clip: Clip = "auto",
    rows: int | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """The private variance of a column: ``Variance(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``;
    where numbers are clipped in private ``clipping.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column, or the table that holds it: a frame, the path of a file, DuckDB, Spark.
    bounds, column, epsilon, delta, neighbours, clip, rows
        As in ``Variance``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [20 + i % 21 for i in range(5000)]
    >>> 20 < float(snugdp.variance(ages, bounds=(0, 100), epsilon=1).value) < 55
    True
    """
    return Variance._answer(locals())


def standard_deviation(
    data: object,
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    clip: Clip = "auto",
    rows: int | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """The private standard deviation of a column: ``StandardDeviation(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``;
    where numbers are clipped in private ``clipping.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column, or the table that holds it: a frame, the path of a file, DuckDB, Spark.
    bounds, column, epsilon, delta, neighbours, clip, rows
        As in ``StandardDeviation``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [20 + i % 21 for i in range(5000)]
    >>> 4 < float(snugdp.standard_deviation(ages, bounds=(0, 100), epsilon=1).value) < 8
    True
    """
    return StandardDeviation._answer(locals())


def covariance(
    data: object,
    *,
    bounds: tuple[tuple[Real, Real], tuple[Real, Real]] | None = None,
    columns: tuple[str, str] | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    rows: int | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """The private covariance of two columns: ``Covariance(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``).

    Parameters
    ----------
    data : pair of array-likes, or table
        Two columns of equal length, or the table that holds the ``columns``.
    bounds, columns, epsilon, delta, neighbours, rows
        As in ``Covariance``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> height, weight = [150 + i % 50 for i in range(5000)], [50 + i % 50 for i in range(5000)]
    >>> bounds = (100, 250), (0, 200)
    >>> 150 < float(snugdp.covariance((height, weight), bounds=bounds, epsilon=1).value) < 270
    True
    """
    return Covariance._answer(locals())


def correlation(
    data: object,
    *,
    bounds: tuple[tuple[Real, Real], tuple[Real, Real]] | None = None,
    columns: tuple[str, str] | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    rows: int | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """The private correlation of two columns: ``Correlation(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``).

    Parameters
    ----------
    data : pair of array-likes, or table
        Two columns of equal length, or the table that holds the ``columns``.
    bounds, columns, epsilon, delta, neighbours, rows
        As in ``Correlation``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> height, weight = [150 + i % 50 for i in range(5000)], [50 + i % 50 for i in range(5000)]
    >>> bounds = (150, 200), (50, 100)
    >>> float(snugdp.correlation((height, weight), bounds=bounds, epsilon=2).value) > 0.9
    True
    """
    return Correlation._answer(locals())


def proportion(
    data: object,
    *,
    values: Sequence[Hashable] | Category | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    rows: int | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Estimate]:
    """The private share of rows that are true, or have listed values: ``Proportion(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column, or the table that holds it: a frame, the path of a file, DuckDB, Spark.
    values, column, epsilon, delta, neighbours, rows
        As in ``Proportion``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is an ``Estimate``.

    Examples
    --------
    >>> import snugdp
    >>> commute = ["train", "bus", "car"] * 500
    >>> 0.28 < float(snugdp.proportion(commute, values=["car"], epsilon=1).value) < 0.38
    True
    """
    return Proportion._answer(locals())


def histogram(
    data: object,
    *,
    edges: Sequence[Real] | None = None,
    bins: int | None = None,
    bounds: tuple[Real, Real] | None = None,
    values: Sequence[Hashable] | Category | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[HistogramCounts]:
    """The private number of rows in every cell: ``Histogram(...).release(data)``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/joint.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column, or the table that holds it: a frame, the path of a file, DuckDB, Spark.
    edges, bins, bounds, values, column, epsilon, delta, neighbours
        As in ``Histogram``.
    ledger, noise
        As in ``median``.

    Returns
    -------
    Outcome
        Its value is a ``HistogramCounts``.

    Examples
    --------
    >>> import snugdp
    >>> commute = ["train", "bus", "car"] * 500
    >>> 450 < snugdp.histogram(commute, values=["train", "bus", "car"], epsilon=1).value.counts[0] < 550
    True
    """
    return Histogram._answer(locals())
