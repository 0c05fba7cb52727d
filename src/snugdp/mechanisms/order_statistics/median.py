"""The lower median of one column when one row may come or go, so that the number of rows is private."""

from __future__ import annotations

import math

from snugdp.mechanisms.order_statistics import windows
from snugdp.mechanisms.order_statistics.windows import Bound, Distance, Number, Ordered


def value(ordered: Ordered, lower: Number) -> Number:
    """The lower median, the row of rank ceil(n / 2); ``lower`` when there is no row.

    >>> import numpy as np
    >>> value(np.array([3, 5, 9, 9]), 0)
    5
    """
    return windows.value_at(ordered, (ordered.size + 1) // 2, lower, lower)


def distance(ordered: Ordered, lower: Number, upper: Number, beta: Bound) -> Distance:
    """How many rows must come or go before one more can move the lower median by more than ``beta``.

    Formal guarantee: exact, hence 1-Lipschitz in the add/remove relation, and 0 exactly where the local
    sensitivity exceeds ``beta`` (median.proof.md, Theorem 1). Rows: ordered and within the bounds.

    >>> import numpy as np
    >>> distance(np.array([0, 0, 0, 3]), 0, 7, 0)
    2
    >>> distance(np.array([], dtype=np.int64), 0, 7, 3)
    0
    """
    windows.check_range(ordered, lower, upper)
    exceeds = windows.above(ordered, beta)
    size = ordered.size

    def bad(k: int) -> bool:
        start = (size - k) // 2  # 2
        right = windows.value_at(ordered, start + k + 1, lower, upper)
        return exceeds(right - windows.value_at(ordered, start, lower, upper))  # 3

    if not bad(size):  # 1
        return math.inf
    return windows.least(bad, size)  # 4
