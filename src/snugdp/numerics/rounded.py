"""How far sums of rounded Gaussian noise reach: which counts are clear of it.

Noise on counts is ``round(sigma Z)``. Where sigma is small its tail is not that of a normal law: one deviation may be
far less than a row, and the first row is exceeded as often as half a row is by ``sigma Z``. So what counts as clear is
computed from the probabilities of whole numbers. Nothing of privacy rests on it.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_LARGE = 2.0  # a deviation from which on sums are as good as normal: what rounding adds is in their variance
_REACH = 9.0  # deviations: further out is noise less than once in 1e19 draws
_ROUNDING = 1 / 12  # the variance that rounding adds


def clear(cells: int, sigma: float, deviations: float) -> float:
    """What a sum of so many counts exceeds by noise alone no more often than a normal variable does so many deviations.

    ``sigma``: of the noise of each count, before it is rounded. Exactly so where sigma is below 2; from there on by the
    normal law of the same variance, with half a row for the step.

    >>> clear(1, 0.2, 2.0), clear(1, 0.2, 4.0)  # half a row is 2.5 deviations, one and a half 7.5
    (0.0, 1.0)
    >>> round(clear(4, 45.0, 2.0), 2)
    180.5
    """
    if sigma >= _LARGE:
        return deviations * math.sqrt(cells * (sigma**2 + _ROUNDING)) + 0.5
    return float(_quantile(cells, sigma, deviations))


def all_clear(cells: Floats | int, sigma: Floats | float, deviations: float) -> Floats:
    """The same for each of several deviations, one row for each, and for sums of several lengths."""
    lengths, spreads = np.atleast_1d(np.asarray(cells)), np.atleast_1d(np.asarray(sigma, dtype=np.float64))
    sizes, place = np.unique(lengths, return_inverse=True)
    values, row = np.unique(spreads, return_inverse=True)
    table = np.array([[clear(int(size), value, deviations) for size in sizes] for value in values.tolist()])
    chosen: Floats = table.reshape(len(values), len(sizes))[row][:, place]
    return chosen


def exceeded(cells: int, sigma: float, rows: float) -> float:
    """How likely the noise on a sum of so many counts is to be above ``rows``, by the exact law."""
    law = _law(cells, sigma)
    middle = len(law) // 2
    return math.fsum(law[min(max(middle + math.floor(rows) + 1, 0), len(law)) :].tolist())


@cache
def _quantile(cells: int, sigma: float, deviations: float) -> int:
    """The least whole number, from 0 on, that a sum of noise exceeds no more often than that."""
    rare = NormalDist().cdf(-deviations)
    law = _law(cells, sigma)
    above = np.cumsum(law[::-1])[::-1]  # from the rarest on: P[S >= k]
    beyond = above[len(law) // 2 + 1 :]
    return int(np.argmax(np.append(beyond, 0.0) <= rare))


@cache
def _law(cells: int, sigma: float) -> Floats:
    """The probabilities of whole numbers, those of 0 in the middle, for a sum of so many rounded variables."""
    if cells > 1:
        half = _law(cells // 2, sigma)
        both = np.convolve(half, half)
        return np.convolve(both, _law(1, sigma)) if cells % 2 else both
    edges = (np.arange(math.ceil(_REACH * sigma) + 2) - 0.5) / (sigma * math.sqrt(2))
    upper = np.array([math.erfc(edge) / 2 for edge in edges.tolist()])  # P[Z' >= k]
    tail = upper[1:-1] - upper[2:]
    return np.concatenate([tail[::-1], [1 - 2 * upper[1]], tail])
