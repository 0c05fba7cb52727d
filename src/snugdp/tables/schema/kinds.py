"""What a column may hold: numbers and dates between bounds, one of a list of values, or yes and no.

Bounds and values are public. Where they are left out the column is *open*: a fit finds them privately.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TypeAlias

import narwhals as nw
import numpy as np

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.cells import Names, dated, inferred, labelled, numeric
from snugdp.tables.cells.cell import DAY, moment, text

DType: TypeAlias = nw.dtypes.DType
Instant: TypeAlias = Real | date
HOW_TO_GET_BOUNDS = (
    "Write down what is known without these data (an age lies between 0 and 120), or estimate bounds privately with "
    "snugdp.private_bounds(...) or the command 'snugdp bounds FILE', which spends budget; "
    "the minimum and maximum of the data are private"
)
PARTS = {"month": 12, "weekday": 7, "hour": 24, "day_of_year": 366}  # how many steps make a turn
_MIN_WIDTH, _MAX_BOUND = Fraction(1, 10**290), Fraction(10**290)
_ENDS = ("lower", "upper")


class Interval:
    """What numbers and dates have in common: a lower and an upper end, either of which may be open."""

    def end(self, which: str) -> Fraction | None:
        """The ``lower`` or the ``upper`` bound, exactly; None where it is open."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Whether a bound is not declared."""
        return any(getattr(self, which) is None for which in _ENDS)

    @property
    def middle(self) -> Fraction:
        """Half way between the bounds."""
        low, high = self._ends
        return (low + high) / 2

    @property
    def half(self) -> Fraction:
        """Half the width."""
        low, high = self._ends
        return (high - low) / 2

    @property
    def _ends(self) -> tuple[Fraction, Fraction]:
        low, high = self.end("lower"), self.end("upper")
        if low is None or high is None:
            raise ValueError(f"the {'lower' if low is None else 'upper'} bound is missing. {HOW_TO_GET_BOUNDS}")
        return low, high

    def _check_ends(self) -> None:
        low, high = (self.end(which) for which in _ENDS)
        if any(bound is not None and abs(bound) >= _MAX_BOUND for bound in (low, high)):
            raise ValueError("bounds must be between -1e290 and 1e290, and more than 1e-290 apart")
        if low is None or high is None:
            return
        if low >= high:
            raise ValueError("the lower bound must be less than the upper bound")
        if high - low <= _MIN_WIDTH:
            raise ValueError("bounds must be between -1e290 and 1e290, and more than 1e-290 apart")
        if Fraction(float(low)) >= Fraction(float(high)):
            raise ValueError("the bounds are so close that no floating-point number lies between them")


@dataclass(frozen=True)
class Number(Interval):
    """A number between bounds.

    Rows beyond them count as the bound; missing and invalid rows count as the middle.

    Parameters
    ----------
    lower, upper : Real, optional
        The bounds; public. One that is left out is found privately.

    Examples
    --------
    >>> Number(0, 120).middle
    Fraction(60, 1)
    >>> Number(lower=0).is_open
    True
    """

    lower: Real | None = None
    upper: Real | None = None

    def __post_init__(self) -> None:
        self._check_ends()

    def end(self, which: str) -> Fraction | None:
        """The ``lower`` or the ``upper`` bound, exactly; None where it is open."""
        bound: Real | None = getattr(self, which)
        return None if bound is None else rational(bound, f"the {which} bound")

    @property
    def bounds(self) -> tuple[Real, Real]:
        """Both bounds as they were given."""
        if self.lower is None or self.upper is None:
            raise ValueError(f"the {'lower' if self.lower is None else 'upper'} bound is missing. {HOW_TO_GET_BOUNDS}")
        return self.lower, self.upper

    def fits(self, dtype: DType) -> bool:
        """Whether a column of this declared type can be read so."""
        return numeric(dtype)


@dataclass(frozen=True)
class Spline(Number):
    """A number between bounds whose effect is a curve instead of a straight line: one column of an additive model.

    The curve is a linear spline on even knots, and fits of it shrink towards smooth curves. Rows beyond the bounds
    count as the bound; a missing or invalid number has no effect at all.

    Parameters
    ----------
    lower, upper : Real
        The bounds; public.
    cells : int, default=16
        How many pieces the curve has, from 1 to 64.

    Examples
    --------
    >>> Spline(0, 120, cells=4).knots
    (0.0, 30.0, 60.0, 90.0, 120.0)
    """

    cells: int = field(default=16, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_open:
            raise ValueError(f"a spline needs both bounds, as in Spline(0, 120). {HOW_TO_GET_BOUNDS}")
        if isinstance(self.cells, bool) or not isinstance(self.cells, int | np.integer) or not 1 <= self.cells <= 64:
            raise ValueError("cells must be a whole number from 1 to 64")
        object.__setattr__(self, "cells", int(self.cells))

    @property
    def knots(self) -> tuple[float, ...]:
        """Where the pieces meet, the bounds included."""
        low, high = self._ends
        return tuple(float(low + (high - low) * place / self.cells) for place in range(self.cells + 1))


@dataclass(frozen=True)
class Undeclared(Number):
    """A column whose kind nobody declared, as in a CSV file: what it holds, and between which bounds, is found in
    private. Until then it is read as numbers.

    Examples
    --------
    >>> Undeclared().is_open
    True
    """

    def __post_init__(self) -> None:
        if (self.lower, self.upper) != (None, None):
            raise ValueError("bounds are for numbers and dates: declare the column as one of them")

    def fits(self, dtype: DType) -> bool:
        """Whether a column of this declared type can be read so."""
        return numeric(inferred(dtype)) or dated(dtype)


@dataclass(frozen=True)
class Category:
    """One of a list of values. Rows with other values are in no category.

    Parameters
    ----------
    values : sequence, optional
        All values that count: all text, all numbers or all booleans; public. Left out, they are found privately.
    reference : str, float or bool, optional
        The value that others are compared with in coefficients; the first one, unless another is declared.

    Examples
    --------
    >>> Category(["red", "blue"]).values
    ('red', 'blue')
    >>> Category(["red", "blue"], reference="blue").baseline, Category().is_open
    ('blue', True)
    """

    values: Sequence[Hashable] | None = None
    reference: Hashable | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.reference is not None and _kind(self.reference) is None:
            raise TypeError("reference must be one of the values: text, a number or a boolean")
        if self.values is None:
            return
        if not isinstance(self.values, list | tuple):
            raise TypeError("values must be a list, known without the data")
        if not self.values:
            raise ValueError(
                "values is empty: list what the column may hold, from outside the data, or leave values out to have "
                "them found privately"
            )
        kinds = {_kind(value) for value in self.values}
        if len(kinds) != 1 or None in kinds:
            raise TypeError("values must be all text, all numbers or all booleans")
        names = Names(self.values, "the values of a category")
        object.__setattr__(self, "values", tuple(names.names))
        if self.reference is not None:
            place = names.index(self.reference)
            if place < 0:
                raise ValueError("reference must be one of the values")
            object.__setattr__(self, "reference", names.names[place])

    @property
    def is_open(self) -> bool:
        """Whether the values are not declared."""
        return self.values is None

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The declared values."""
        if self.values is None:
            raise ValueError(
                'the values of a category are not declared: list them, as in Category(["red", "blue"]), from outside '
                "the data"
            )
        return tuple(self.values)

    @property
    def baseline(self) -> Hashable:
        """The reference level: the one declared, or the first value."""
        return self.levels[0] if self.reference is None else self.reference

    def fits(self, dtype: DType) -> bool:
        """Whether a column of this declared type can be read so."""
        return labelled(dtype)


@dataclass(frozen=True)
class Boolean:
    """A boolean: True, 1, "true", "t", "yes" and "y", or False, 0, "false", "f", "no" and "n". All else is missing.

    Examples
    --------
    >>> Boolean().fits(nw.Boolean())
    True
    """

    @property
    def is_open(self) -> bool:
        """Never: there is nothing to find."""
        return False

    def fits(self, dtype: DType) -> bool:
        """Whether a column of this declared type can be read so."""
        return numeric(dtype)


@dataclass(frozen=True)
class Date(Interval):
    """A date or a time, as a number of days since the start of 1970 in UTC, between bounds.

    Dates, times with and without a zone, and ISO 8601 text are read; a zone is converted to UTC, and what has none is
    taken to be in UTC. Rows beyond the bounds count as the bound; all else is missing and counts as the middle.

    Parameters
    ----------
    lower, upper : date, datetime, str or Real, optional
        The bounds: dates, ISO 8601 text, or numbers of days; public. One that is left out is found privately.
    parts : sequence of {"month", "weekday", "hour", "day_of_year"}, optional
        What comes round again: for each of them a sine and a cosine are entries too, in UTC. They need no bounds, and
        are 0 where the date is missing.

    Examples
    --------
    >>> Date("2020-01-01", "2030-01-01").middle
    Fraction(40177, 2)
    >>> Date(parts=["weekday"]).is_open
    True
    """

    lower: Instant | None = None
    upper: Instant | None = None
    parts: Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        for which in _ENDS:
            object.__setattr__(self, which, _instant(getattr(self, which)))
        if isinstance(self.parts, str) or not isinstance(self.parts, Sequence):
            raise TypeError('parts must be a list, such as ["month", "weekday"]')
        unknown = [part for part in self.parts if part not in PARTS]
        if unknown or len(set(self.parts)) != len(self.parts):
            raise ValueError(f"parts must be some of {', '.join(PARTS)}, each of them once")
        object.__setattr__(self, "parts", tuple(self.parts))
        self._check_ends()

    def end(self, which: str) -> Fraction | None:
        """The ``lower`` or the ``upper`` bound in days, exactly; None where it is open."""
        bound = getattr(self, which)
        if bound is None:
            return None
        found = moment(bound) if isinstance(bound, str) else None
        if found is not None:
            return Fraction(found, DAY)
        try:
            return rational(bound, f"the {which} bound")
        except (TypeError, ValueError):
            pass
        raise ValueError(f'the {which} bound must be a date, such as "2024-03-01", or a number of days since 1970')

    def fits(self, dtype: DType) -> bool:
        """Whether a column of this declared type can be read so."""
        return dated(dtype)


Column: TypeAlias = Number | Category | Boolean | Date
_DESCRIBED: dict[type, str] = {
    Number: "numbers", Spline: "numbers", Undeclared: "numbers, dates or text", Category: "categories",
    Boolean: "booleans", Date: "dates",
}  # fmt: skip


def described(column: Column) -> str:
    """What the column holds, for error messages."""
    return _DESCRIBED[type(column)]


def _instant(bound: object) -> object:
    """A bound of a date as it is kept: ISO 8601 text, or a number of days."""
    if not isinstance(bound, str | date | np.datetime64):
        return bound
    found = moment(bound)
    if found is None:
        return str(bound)  # a number as text, or refused
    return text(datetime(1970, 1, 1) + timedelta(microseconds=found))


def _kind(value: Hashable) -> str | None:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number" if math.isfinite(value) else None
    return "text" if isinstance(value, str) else None
