"""A public grid for columns without bounds: as fine for small numbers as for large ones, on both sides of zero."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.grid import CellRange, Ends, known

LOWEST, HIGHEST = -20, 60  # exponents: below 2**LOWEST cells are of one size, and 2**HIGHEST is the last
_BITS = 45  # a doubling has 2**45 cells
_FRACTION, _BIAS = 52, 1023  # of a float
_FINEST = math.ldexp(1.0, _BITS - LOWEST)  # cells of a unit, near 0
_FIRST = (_BIAS + LOWEST - 1) << _BITS
_LAST = (HIGHEST - LOWEST + 1) << _BITS


@dataclass(frozen=True)
class WideGrid(CellRange):
    """Numbers from -2**60 to 2**60: 2**45 cells in every doubling from 2**-20 on, and as many from 0 to there.

    Where an end is open, the last doubling is ``beyond``: answers are below 2**59 in size.

    >>> grid = WideGrid()
    >>> grid.cells(np.array([0.0, 2.0**-20, 1.0, -1.0, np.inf]), None) / 2**45
    array([  0.,   1.,  21., -21.,  81.])
    >>> grid.number(21 << 45), grid.number(-(81 << 45)) == -(2.0**60)
    (1.0, True)
    """

    lower: int = -_LAST
    upper: int = _LAST
    beyond: tuple[int, int] = (1 << _BITS, 1 << _BITS)

    @classmethod
    def over(cls, ends: Ends) -> WideGrid:
        """From one public end to the other, of which one or both are None: there is none."""
        (low, high), whole = ends, cls()
        lower = whole.lower if low is None else whole.nearest(low, "the lower bound")
        upper = whole.upper if high is None else whole.nearest(high, "the upper bound")
        if not whole.lower + 2 * whole.beyond[0] < upper or not lower < whole.upper - 2 * whole.beyond[1]:
            raise ValueError("a bound without the other one must be below 2**58 in size; give both")
        below, above = (far if end is None else 0 for end, far in zip(ends, whole.beyond, strict=True))
        return cls(lower, upper, (below, above))

    @property
    def unit(self) -> Fraction:
        """The size of the smallest cells."""
        return 1 / Fraction(_FINEST)

    def nearest(self, value: Real, name: str) -> int:
        """The cell of a public number; of one beyond the ends, the end."""
        return int(self.cells(np.array([float(rational(value, name))]), None)[0])

    def number(self, cells: int | Fraction) -> float:
        """Back to the user's units, clipped to the ends."""
        cell = min(max(round(cells), self.lower), self.upper)
        doublings, place = divmod(abs(cell), 1 << _BITS)
        size = place / _FINEST if doublings == 0 else math.ldexp(1 + place / (1 << _BITS), LOWEST + doublings - 1)
        return math.copysign(size, cell) if cell else 0.0

    def distance(self, low: int, high: int) -> float:
        """Between two cells."""
        return self.number(high) - self.number(low)

    def integers(self, values: NDArray[np.floating[Any]], missing: int) -> NDArray[np.int64]:
        """Row by row: the nearest cell, clipped to the ends; what is not a number becomes ``missing``."""
        with np.errstate(all="ignore"):  # a warning would depend on private values
            wide = values.astype(np.float64, copy=False)
            size = np.abs(wide)
            bits = np.ascontiguousarray(size).view(np.int64)
            large = ((bits + (1 << (_FRACTION - _BITS - 1))) >> (_FRACTION - _BITS)) - _FIRST  # rounds into exponents
            small = np.rint(np.fmin(size, 1.0) * _FINEST).astype(np.int64)
            place = np.minimum(np.where(size < math.ldexp(1.0, LOWEST), small, large), _LAST)
            cells = np.clip(np.where(np.signbit(wide), -place, place), self.lower, self.upper)
            return np.where(np.isnan(wide), missing, cells)

    def cells(self, values: NDArray[np.floating[Any]], missing: int | None) -> NDArray[np.int64]:
        """As ``integers``; without ``missing``, what is not a number is left out."""
        return self.integers(values, missing) if missing is not None else self.integers(known(values), self.lower)
