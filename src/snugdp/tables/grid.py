"""Public grids on which one-dimensional data become exact integers: of powers of two, or of multiples of a step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.rationals import Real, rational

Ends: TypeAlias = tuple[Real | None, Real | None]  # of a column: None where an end is not public

_BLOCK = 1 << 14  # rows at a time, so that they stay in the cache
_MIN_CELLS = 1 << 10  # cells between the bounds
_BITS = 52  # the largest bound has this many bits on the grid: float resolution, and exact as a float
_TOO_CLOSE = "the bounds are too close together for their size: subtract a public constant first"


class CellRange(ABC):
    """Whole numbers ``lower..upper``, the cells between public bounds, each of the size ``unit``.

    ``beyond``: so many cells at the lower and the upper end, of a grid that is open there, hold no answer.
    """

    lower: int
    upper: int
    beyond: tuple[int, int] = (0, 0)

    @abstractmethod
    def cells(self, values: NDArray[np.floating[Any]], missing: int | None) -> NDArray[np.int64]:
        """Row by row the nearest cell; what is not a number becomes ``missing``, or is left out without it."""

    @property
    @abstractmethod
    def unit(self) -> Fraction:
        """The size of one cell."""

    @property
    def width(self) -> int:
        """The length of the interval, in cells."""
        return self.upper - self.lower

    def nearest(self, value: Real, name: str) -> int:
        """The cell of a public number inside the bounds."""
        cell = round(rational(value, name) / self.unit)
        if not self.lower <= cell <= self.upper:
            raise ValueError(f"{name} must lie within the bounds")
        return cell

    def number(self, cells: int | Fraction) -> float:
        """Back to the user's units, clipped to the bounds."""
        return float(min(max(Fraction(cells), Fraction(self.lower)), Fraction(self.upper)) * self.unit)

    def distance(self, low: int, high: int) -> float:
        """Between two cells, in the user's units."""
        return float((high - low) * self.unit)


@dataclass(frozen=True)
class Grid(CellRange):
    """Integers ``lower..upper`` in units of 2**exponent: the public image of the interval [lo, hi]."""

    exponent: int
    lower: int
    upper: int

    @classmethod
    def between(cls, bounds: tuple[Real, Real] | None) -> Grid:
        """The grid for public bounds. They must come from outside the data.

        >>> Grid.between((0, 1)).upper == 2**52
        True
        """
        low, high = check_bounds(bounds)
        largest = max(abs(low), abs(high))
        exponent = exponent_above(largest) - _BITS
        unit = Fraction(2) ** exponent
        grid = cls(exponent, math.ceil(low / unit), math.floor(high / unit))
        if grid.width < _MIN_CELLS:
            raise ValueError(_TOO_CLOSE)
        return grid

    @classmethod
    def across(cls, bounds: tuple[Real, Real] | None, bits: int) -> Grid:
        """A grid of about 2**bits cells from bound to bound, for sums of powers. The ends are rounded outwards.

        >>> Grid.across((0, 100), 16).width
        51200
        """
        low, high = check_bounds(bounds)
        unit = Fraction(2) ** (exponent_above(high - low) - bits)
        grid = cls(exponent_above(high - low) - bits, math.floor(low / unit), math.ceil(high / unit))
        if max(abs(grid.lower), abs(grid.upper)) > 1 << _BITS:
            raise ValueError(_TOO_CLOSE)
        return grid

    @property
    def unit(self) -> Fraction:
        """The size of one cell."""
        return Fraction(2) ** self.exponent

    def integers(self, values: NDArray[np.floating[Any]], missing: int) -> NDArray[np.int64]:
        """Row by row: scale (exactly), round to even, clip to the bounds; what is not a number becomes ``missing``."""
        cells = np.empty(values.shape, dtype=np.int64)
        scale = math.ldexp(1.0, -self.exponent)
        with np.errstate(all="ignore"):  # a warning would depend on private values
            for start in range(0, len(values), _BLOCK):
                block = np.multiply(values[start : start + _BLOCK], scale, dtype=np.float64)  # not in single precision
                if missing != self.lower:
                    np.copyto(block, float(missing), where=np.isnan(block))
                np.rint(block, out=block)
                np.fmin(np.fmax(block, self.lower, out=block), self.upper, out=block)  # not a number: the lower end
                cells[start : start + _BLOCK] = block
        return cells

    def cells(self, values: NDArray[np.floating[Any]], missing: int | None) -> NDArray[np.int64]:
        """As ``integers``; without ``missing``, what is not a number is left out."""
        return self.integers(values, missing) if missing is not None else self.integers(known(values), self.lower)


@dataclass(frozen=True)
class StepGrid(CellRange):
    """Multiples of a public step between public bounds: cell k is the number k times the step."""

    step: Fraction
    lower: int
    upper: int
    beyond: tuple[int, int] = (0, 0)

    @property
    def unit(self) -> Fraction:
        """The step."""
        return self.step

    @classmethod
    def over(cls, ends: Ends, step: Real) -> StepGrid:
        """The grid where an end or both are not public: it reaches 2**52 steps from 0, and answers half as far.

        >>> StepGrid.over((0, None), 1).beyond == (0, 2**51)
        True
        """
        unit, (low, high) = rational(step, "step"), ends
        most = unit * (1 << _BITS)
        if any(abs(rational(end, "a bound")) > most / 4 for end in ends if end is not None):
            raise ValueError("a bound without the other one must be below 2**50 steps in size; give both")
        grid = cls.between((-most if low is None else low, most if high is None else high), unit)
        far = 1 << (_BITS - 1)
        return cls(unit, grid.lower, grid.upper, (far if low is None else 0, far if high is None else 0))

    @classmethod
    def between(cls, bounds: tuple[Real, Real] | None, step: Real) -> StepGrid:
        """The grid for public bounds and a public spacing of the values.

        >>> StepGrid.between((0, 120), 1)
        StepGrid(step=Fraction(1, 1), lower=0, upper=120, beyond=(0, 0))
        """
        (low, high), unit = check_bounds(bounds), rational(step, "step")
        if unit <= 0:
            raise ValueError("the step must be greater than 0; leave it out where values have no public spacing")
        grid = cls(unit, math.ceil(low / unit), math.floor(high / unit))
        if grid.width < 1:
            raise ValueError("there must be at least two multiples of the step between the bounds")
        if max(abs(grid.lower), abs(grid.upper)) > 1 << _BITS:
            raise ValueError("the step is too small for these bounds: leave it out, and the finest grid is used")
        return grid

    def cells(self, values: NDArray[np.floating[Any]], missing: int | None) -> NDArray[np.int64]:
        """Row by row: the nearest multiple, clipped to the bounds; what is not a number becomes ``missing``, if given.

        Without ``missing`` it is left out.
        """
        with np.errstate(all="ignore"):  # a warning would depend on private values
            kept = known(values) if missing is None else values
            scaled = np.rint(kept.astype(np.float64, copy=False) / float(self.unit))  # not in single precision
            np.copyto(scaled, float(self.lower if missing is None else missing), where=np.isnan(scaled))
            return np.fmin(np.fmax(scaled, self.lower), self.upper).astype(np.int64)


def known(values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Those that are numbers."""
    there = ~np.isnan(values)
    return values if there.all() else values[there]


def check_bounds(bounds: tuple[Real, Real] | None) -> tuple[Fraction, Fraction]:
    """Public bounds as exact numbers, or what is wrong with them."""
    advice = "give public bounds such as bounds=(0, 120), from outside the data"
    if bounds is None:
        raise ValueError(f"bounds are required: {advice}; the minimum and maximum of the data are private")
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair (lower, upper): {advice}") from None
    low, high = rational(lower, "the lower bound"), rational(upper, "the upper bound")
    if low >= high:
        raise ValueError(f"the lower bound must be less than the upper bound: {advice}")
    if not Fraction(1, 10**290) < max(abs(low), abs(high)) < Fraction(10**290):
        raise ValueError("bounds must be between 1e-290 and 1e290 in size")
    return low, high


def exponent_above(value: Fraction, power: int = 1) -> int:
    """The smallest e with value <= 2**(power * e)."""
    e = (value.numerator.bit_length() - value.denominator.bit_length()) // power - 1
    while Fraction(2) ** (power * e) < value:
        e += 1
    return e
