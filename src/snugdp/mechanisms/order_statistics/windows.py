"""Widest windows of an ordered column: the search that the quantile and the trimmed mean share."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ordered: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
Number: TypeAlias = int | float
Bound: TypeAlias = int | float | Fraction
Distance: TypeAlias = int | float  # a whole number of rows, or math.inf

_BLOCK = 1 << 15  # windows compared at a time, so that the differences stay in the processor's cache


def window_distance(
    ordered: Ordered, lower: Number, upper: Number, *, first: int, span: int, exceeds: Callable[[Number], bool]
) -> Distance:
    """The least k for which a window of ``span + k`` steps, from a rank in first - k..first + 1, is too wide.

    Ranks run from 0 (``lower``) over 1..n (the rows) to n + 1 (``upper``). See quantile.proof.md, Lemma 1.

    >>> window_distance(np.array([1, 1, 3]), 0, 7, first=0, span=1, exceeds=lambda width: width > 5)
    2
    """
    most = ordered.size + 1 - span
    if not exceeds(upper - lower):  # 1
        return math.inf

    def bad(k: int) -> bool:
        return exceeds(_widest(ordered, lower, upper, (first - k, first + 1), span + k))

    return least(bad, most)  # 3


def least(bad: Callable[[int], bool], most: int) -> int:
    """The smallest k in 0..most with ``bad(k)``, where ``bad`` never turns back and ``bad(most)`` is known.

    >>> least(lambda k: k >= 5, 1000)
    5
    """
    reach = 0
    while reach < most and not bad(reach):
        reach = min(2 * reach + 1, most)
    return bisect_left(range(reach), True, lo=(reach + 1) // 2, key=bad)


def value_at(ordered: Ordered, rank: int, lower: Number, upper: Number) -> Number:
    """The value of a rank, with ``lower`` before the first row and ``upper`` after the last.

    >>> [value_at(np.array([4, 6]), rank, 0, 9) for rank in range(4)]
    [0, 4, 6, 9]
    """
    if rank < 1:
        return lower
    if rank > ordered.size:
        return upper
    value: Number = ordered[rank - 1].item()
    return value


def above(ordered: Ordered, beta: Bound) -> Callable[[Number], bool]:
    """The question ``width > beta``: exact for integer rows, in floating point for the others.

    >>> above(np.array([1, 2]), Fraction(7, 2))(4)
    True
    """
    if not beta >= 0:
        raise ValueError("beta must be a number that is not negative")
    if ordered.dtype.kind == "i" and beta < math.inf:
        whole = math.floor(beta)
        return lambda width: width > whole
    return lambda width: width > beta


def check_range(ordered: Ordered, lower: Number, upper: Number) -> None:
    """Refuse what the comparisons are not exact for."""
    if ordered.ndim != 1 or ordered.dtype not in (np.int64, np.float64):
        raise TypeError("the rows must be one column of int64 or float64")
    if not lower <= upper:
        raise ValueError("lower must not exceed upper")
    if ordered.dtype.kind == "i" and max(-lower, upper) > 2**62:
        raise ValueError("integer bounds must lie within 2**62 of zero, so that differences cannot overflow")


def _widest(ordered: Ordered, lower: Number, upper: Number, starts: tuple[int, int], length: int) -> Number:
    """The widest window of ``length`` steps that starts at one of these ranks, within ranks 0..n + 1."""
    size = ordered.size
    start, stop = max(starts[0], 0), min(starts[1], size + 1 - length)
    widths = [  # 2: the two windows that may touch an end
        value_at(ordered, rank + length, lower, upper) - value_at(ordered, rank, lower, upper) for rank in {start, stop}
    ]
    for rank in range(max(start, 1), min(stop, size - length) + 1, _BLOCK):
        count = min(_BLOCK, min(stop, size - length) + 1 - rank)
        left, right = ordered[rank - 1 :][:count], ordered[rank - 1 + length :][:count]
        widths.append((right - left).max().item())
    return max(widths)
