"""Bins of the score of two classes: where they are follows from the noisy centre and spread of all scores.

Scores are logits, log(p / (1 - p)), in whole cells. Bins of equal width on the scale of probabilities would lump most
rows together where one class is rare or a model is sure of itself. The line numbers are those of ``scores.proof.md``.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from snugdp.mechanisms.scores.curves import distribution
from snugdp.mechanisms.scores.images import CELLS, AnswerScale, Floats, Integers

_HALF_CELL = 12 / CELLS
LOGITS = AnswerScale(_HALF_CELL - 12, _HALF_CELL + 12)  # 0 is on the border of two cells
EVEN = CELLS // 2  # the first cell of probabilities from 1/2 on
BINS = 11  # each more adds its noise to the area; fewer than this and the slopes within bins are missed
REACH = CELLS // 4  # cells: the largest distance from the centre that counts
_WIDTH = 0.45  # of a bin, in mean distances from the centre
_TAIL = 1.2  # how fast the tails fall, in widths of a bin
_LEAST_STEP, _MOST_STEP = CELLS // 400, CELLS // 10


def centre_sums(counts: Integers) -> list[int]:
    """The sums of the cells of all rows, and of what is left to the largest; ``counts``: rows by cell."""
    cells = np.arange(CELLS + 1)
    return [int((counts * cells).sum()), int((counts * (CELLS - cells)).sum())]


def spread_sums(counts: Integers, centre: int) -> list[int]:
    """The sums of the distances from the centre, as parts of ``REACH`` in cells, and of what is left."""
    distance = np.minimum(np.abs(np.arange(CELLS + 1) - centre), REACH) * (CELLS // REACH)
    return [int((counts * distance).sum()), int((counts * (CELLS - distance)).sum())]


def noisy_share(sums: list[int]) -> float:
    """The mean of t, from the noisy sums of t and 1 - t; 1/2 where there may be no rows."""
    total = sum(sums)
    return min(max(sums[0] / total, 0.0), 1.0) if total > 0 else 0.5


def edges_of(centre: int, spread: float) -> tuple[int, ...]:
    """The edges of all bins, in cells, from a released centre and mean distance: 1/2 is always one of them.

    >>> edges_of(2048, 200.0)
    (1688, 1778, 1868, 1958, 2048, 2138, 2228, 2318, 2408, 2498)
    >>> edges_of(1000, 100.0)[-3:]
    (1148, 1193, 2048)
    """
    step = min(max(round(_WIDTH * spread), _LEAST_STEP), _MOST_STEP)
    middle = round((centre - EVEN) / step)
    lines = [EVEN + step * (middle + place) for place in range(-(BINS // 2) + 1, BINS // 2)]
    lines.append(EVEN if EVEN not in lines else lines[-1] + step)
    return tuple(sorted(lines))


def bin_of(edges: tuple[int, ...]) -> Integers:
    """The bin of every cell."""
    return np.searchsorted(np.array(edges), np.arange(CELLS + 1), side="right").astype(np.int64)


def shares_below(common: tuple[int, ...], edges: tuple[int, ...]) -> Floats:
    """The share of the rows of these noisy counts that lie below every cell: from 0 to 1.

    Within a bin the density is a straight line, by the counts beside it; towards the ends it falls exponentially.
    """
    below, cells = distribution(common), np.arange(CELLS + 1)
    step = min(b - a for a, b in pairwise(edges))
    shares, found = np.diff(below), np.empty(CELLS + 1)
    for place, own in enumerate(shares):
        low = edges[place - 1] if place else None
        high = edges[place] if place < len(edges) else None
        inside = (cells >= (low or 0)) & (cells < (high or CELLS + 1))
        if low is not None and high is not None and high - low <= 2 * step:
            x = (cells[inside] + 0.5 - low) / (high - low)
            slope = min(max((shares[place + 1] - shares[place - 1]) / 2, -2 * own), 2 * own)
            part = own * x + slope * (x**2 - x) / 2
        elif low is None or (high is not None and low < edges[0]):
            part = own * np.exp(-(edges[0] - cells[inside]) / (_TAIL * step))
        else:
            part = own * (1 - np.exp(-(cells[inside] - low) / (_TAIL * step)))
        found[inside] = below[place] + part
    return np.clip(found, 0.0, 1.0)


def probabilities(edges: tuple[int, ...]) -> tuple[float, ...]:
    """The edges as probabilities, with 0 and 1 at the ends."""
    width = (LOGITS.upper - LOGITS.lower) / CELLS
    return (0.0, *(1 / (1 + math.exp(-(edge - EVEN) * width)) for edge in edges), 1.0)
