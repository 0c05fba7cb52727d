"""How far sums of discrete Laplace noise reach: which counts are clear of it. Proof: ``columns.proof.md``, Lemma 2."""

from __future__ import annotations

import math
from functools import cache

_STEPS = 60  # of a search by halving


def tail(cells: int, reach: float) -> float:
    """How likely a sum of so many Laplace variables of scale 1 is to exceed ``reach``, at least 0.

    >>> tail(1, 0.0), tail(1, math.log(5)) == 0.1
    (0.5, True)
    """
    terms = (
        math.comb(power, part) * reach ** (power - part) * _moment(cells, part) / math.factorial(power)
        for power in range(cells)
        for part in range(power + 1)
    )
    return math.exp(-reach) * math.fsum(terms)


def _moment(cells: int, power: int) -> float:
    """The mean of G**power exp(-G), G a gamma variable of this shape."""
    return float(math.prod(range(cells, cells + power))) / 2.0 ** (cells + power)


@cache
def quantile(cells: int, rare: float) -> float:
    """What such a sum exceeds with probability at most ``rare``, below 1/2."""
    low, high = 0.0, 2.0 * cells - 4 * math.log(rare)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(cells, middle) > rare else (low, middle)
    return high


def clear(cells: int, scale: float, rare: float) -> float:
    """What a sum of so many discrete Laplace variables of this scale exceeds with probability at most ``rare``."""
    return scale * quantile(cells, rare) + cells
