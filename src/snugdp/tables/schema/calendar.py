"""What comes round again in a date, such as the month: steps of a turn, and their sines and cosines.

Sines come from a table with an entry for every step: a library that computes them for a whole block may round the same
angle in two ways, by its place in the block.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from snugdp.tables.cells.cell import DAY
from snugdp.tables.schema.kinds import PARTS


def steps(part: str, microseconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many steps of its turn a part has made, from 0 on: January, Monday, midnight, the first of January.

    >>> noon = np.array([43_200_000_000])  # of the first of January 1970, a Thursday
    >>> [int(steps(part, noon)[0]) for part in PARTS]
    [0, 3, 12, 0]
    """
    day = microseconds // DAY
    if part == "weekday":
        return np.asarray((day + 3) % 7)
    if part == "hour":
        return np.asarray((microseconds - day * DAY) // (DAY // 24))
    months = day.astype("datetime64[D]").astype("datetime64[M]")
    if part == "month":
        return np.asarray(months.astype(np.int64) % 12)
    return np.asarray(day - months.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64))


@cache
def turn(part: str, limit: float) -> NDArray[np.float64]:
    """The sine and the cosine of every step of a turn, no pair longer than ``limit``; the last column is 0."""
    count = PARTS[part]
    table = np.zeros((2, count + 1))
    for step in range(count):
        angle = 2 * math.pi * step / count
        pair = [limit * math.sin(angle), limit * math.cos(angle)]
        while sum(Fraction(entry) ** 2 for entry in pair) > Fraction(limit) ** 2:
            pair = [math.nextafter(entry, 0.0) for entry in pair]
        table[:, step] = pair
    return table
