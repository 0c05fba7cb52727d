"""Quantiles of one column when one row may be replaced: how far the data are from a large sensitivity."""

from __future__ import annotations

from snugdp.mechanisms.order_statistics import windows
from snugdp.mechanisms.order_statistics.windows import Bound, Distance, Number, Ordered


def value(ordered: Ordered, rank: int, lower: Number) -> Number:
    """The rank-th smallest row, counted from 1; ``lower`` when there is no row.

    >>> import numpy as np
    >>> value(np.array([3, 5, 9]), 2, 0)
    5
    """
    if ordered.size == 0:
        return lower
    _check_rank(ordered, rank)
    return windows.value_at(ordered, rank, lower, lower)


def distance(ordered: Ordered, rank: int, lower: Number, upper: Number, beta: Bound) -> Distance:
    """How many rows must be replaced before one more replacement can move the quantile by more than ``beta``.

    Formal guarantee: exact, hence 1-Lipschitz in the replace relation, and 0 exactly where the local
    sensitivity exceeds ``beta`` (quantile.proof.md, Theorem 1). Rows: ordered and within the bounds.

    >>> import numpy as np
    >>> distance(np.array([1, 1, 3]), 1, 0, 7, 5)
    2
    >>> distance(np.array([1, 1, 3]), 1, 0, 7, 7)
    inf
    """
    windows.check_range(ordered, lower, upper)
    exceeds = windows.above(ordered, beta)
    if ordered.size == 0:
        return float("inf")
    _check_rank(ordered, rank)
    return windows.window_distance(ordered, lower, upper, first=rank - 1, span=1, exceeds=exceeds)


def _check_rank(ordered: Ordered, rank: int) -> None:
    if not 1 <= rank <= ordered.size:
        raise ValueError("the rank must lie between 1 and the number of rows")
