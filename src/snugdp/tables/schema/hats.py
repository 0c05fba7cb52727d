"""Splines of a number: hat functions on even knots, in coordinates in which a rough curve is a long one.

A curve is piecewise linear between the knots, and a linear function of the hats. With D the first differences, the hats
are written in the coordinates of the upper triangular R with R'R = I + smooth D'D: a ridge on the coefficients is then
one on the values at the knots and on their differences, and noise falls on rough curves more than on smooth ones. Half
of the length is that of a straight line, so that a line costs little more than it does alone. No row is longer than the
longest knot (``hats.proof.md``).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SLACK = 1 + 2.0**-44  # far above the rounding of the map, so that no row is longer than it may be
_STRAIGHT = 0.5  # of the squared length of a knot at the end: the straight line
_SMOOTH = 4.0  # of what is left
_LEVEL = 1 / 16  # of what is left, how much of a curve's mean stays: a model has a constant of its own


@lru_cache(maxsize=64)
def smooth_factor(cells: int, smooth: float = 1.0) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The diagonal of R, and what stands right of it. R'R = I + smooth D'D has three diagonals, so R has two.

    In plain floats, in one order: the same on every machine.

    >>> [[round(value, 4) for value in part] for part in smooth_factor(2)]
    [[1.4142, 1.5811, 1.2649], [-0.7071, -0.6325]]
    """
    diagonal, beside = list[float](), list[float]()
    for knot in range(cells + 1):
        left = beside[-1] if beside else 0.0
        own = 1.0 + smooth * ((knot > 0) + (knot < cells)) - left * left
        diagonal.append(math.sqrt(own))
        if knot < cells:
            beside.append(-smooth / diagonal[-1])
    return tuple(diagonal), tuple(beside)


@lru_cache(maxsize=64)
def knot_images(cells: int, smooth: float = 1.0) -> Floats:
    """The images of the knots, one in each row: those of R^-1, scaled so that the longest is a hair shorter than 1.

    hats.proof.md, Lemma 1: the image of a value between two knots lies between theirs, so it is no longer.

    >>> knot_images(2).round(4).tolist()
    [[0.8944, 0.4, 0.2], [0.0, 0.8, 0.4], [0.0, 0.0, 1.0]]
    """
    diagonal, beside = smooth_factor(cells, smooth)
    size = cells + 1
    inverse = np.zeros((size, size))
    for row in range(size):
        entry = 1.0 / diagonal[row]
        inverse[row, row] = entry
        for column in range(row + 1, size):
            entry = -entry * beside[column - 1] / diagonal[column]
            inverse[row, column] = entry
    return _scaled(inverse)


@lru_cache(maxsize=64)
def curve_images(cells: int) -> Floats:
    """The images of the knots of a curve that is mostly straight, one in each row; the longest a hair shorter than 1.

    Their products are those of a line and of a smooth curve without most of its mean, half of each: the rows of a
    triangular factor of that matrix.

    >>> curve_images(2).round(4).tolist()
    [[1.0, 0.0, 0.0], [-0.018, 0.5191, 0.0], [-0.7482, -0.0606, 0.6607]]
    """
    size, smooth = cells + 1, knot_images(cells, _SMOOTH).tolist()
    products = [[math.fsum(a * b for a, b in zip(one, other, strict=True)) for other in smooth] for one in smooth]
    mean = math.fsum(math.fsum(row) for row in products) / size**2
    rest = [[value - (1 - _LEVEL) * mean for value in row] for row in products]
    most = max(rest[knot][knot] for knot in range(size))
    line = [(2 * knot - cells) / cells for knot in range(size)]
    factor = np.zeros((size, size))
    for row in range(size):
        for column in range(row + 1):
            whole = _STRAIGHT * line[row] * line[column] + (1 - _STRAIGHT) * rest[row][column] / most
            done = math.fsum(a * b for a, b in zip(factor[row, :column], factor[column, :column], strict=True))
            factor[row, column] = math.sqrt(whole - done) if row == column else (whole - done) / factor[column, column]
    return _scaled(factor)


def _scaled(rows: Floats) -> Floats:
    """So that the longest is a hair shorter than 1."""
    longest = max(math.fsum(entry * entry for entry in row) for row in rows.tolist())
    images: Floats = rows / (math.sqrt(longest) * _SLACK)
    images.flags.writeable = False
    return images
