"""The trimmed mean of one column when one row may be replaced."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from snugdp.mechanisms.order_statistics import windows
from snugdp.mechanisms.order_statistics.windows import Bound, Distance, Number, Ordered

_HALF = 32  # bits: with fewer than 2**31 rows neither half of the sum can leave int64


def total(ordered: Ordered, trim: int) -> int:
    """The exact sum of the rows that remain when the ``trim`` smallest and largest are dropped.

    >>> total(np.array([-5, 1, 2, 2**53]), 1)
    3
    """
    kept = ordered[trim : trim + remaining(ordered, trim)]
    if kept.dtype.kind != "i":
        raise TypeError("an exact sum needs integer rows: round them to a public grid first")
    whole = kept.astype(np.int64, copy=False)
    high, low = int((whole >> _HALF).sum()), int((whole & (2**_HALF - 1)).sum())  # 1
    return (high << _HALF) + low


def remaining(ordered: Ordered, trim: int) -> int:
    """How many rows the trimmed mean averages over: public, because the number of rows is.

    >>> remaining(np.array([1, 2, 3]), 1)
    1
    """
    if not 0 <= 2 * trim < ordered.size:
        raise ValueError("twice the trimmed rows must be fewer than the rows")
    return int(ordered.size - 2 * trim)


def distance(ordered: Ordered, trim: int, lower: Number, upper: Number, beta: Bound) -> Distance:
    """How many rows must be replaced before one more can move the trimmed mean by more than ``beta``.

    Formal guarantee: exact, hence 1-Lipschitz in the replace relation, and 0 exactly where the local
    sensitivity exceeds ``beta`` (trimmed_mean.proof.md, Theorem 1). Integer rows are compared exactly:
    the sensitivity of ``total`` exceeds the whole number ``total_bound``. Rows: ordered, within the bounds.

    >>> distance(np.array([1, 4, 5, 6, 9]), 1, 0, 10, Fraction(5, 3))
    1
    """
    windows.check_range(ordered, lower, upper)
    count = remaining(ordered, trim)
    if ordered.dtype.kind == "i" and beta < math.inf:
        exceeds = windows.above(ordered, total_bound(beta, count))  # 2
    else:
        ratio = windows.above(ordered, beta)
        exceeds = lambda width: ratio(width / count)  # noqa: E731
    return windows.window_distance(ordered, lower, upper, first=trim, span=count, exceeds=exceeds)  # 3


def total_bound(beta: Bound, count: int) -> int:
    """The largest whole sensitivity of the total that keeps that of the mean within ``beta``.

    >>> total_bound(Fraction(5, 3), 4)
    6
    """
    return math.floor(Fraction(beta) * count)
