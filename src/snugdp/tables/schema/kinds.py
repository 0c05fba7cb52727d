"""What a column may hold: numbers between public bounds, one of a public list of values, or yes and no."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import narwhals as nw

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.cells import Names, labelled, numeric

DType: TypeAlias = nw.dtypes.DType
HOW_TO_GET_BOUNDS = (
    "Write down what is known without these data (an age lies between 0 and 120), or estimate bounds privately with "
    "snugdp.private_bounds(...) or the command 'snugdp bounds FILE', which spends budget; "
    "the minimum and maximum of the data are private"
)
_MIN_WIDTH, _MAX_BOUND = Fraction(1, 10**290), Fraction(10**290)


@dataclass(frozen=True)
class Number:
    """A number between public bounds.

    Rows beyond them count as the bound; missing and invalid rows count as the middle.

    Parameters
    ----------
    lower, upper : Real
        The bounds; public.

    Examples
    --------
    >>> Number(0, 120).middle
    Fraction(60, 1)
    """

    lower: Real
    upper: Real

    def __post_init__(self) -> None:
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound is None:
                raise ValueError(f"the {name} bound is missing. {HOW_TO_GET_BOUNDS}")
        low, high = rational(self.lower, "the lower bound"), rational(self.upper, "the upper bound")
        if low >= high:
            raise ValueError("the lower bound must be less than the upper bound")
        if not (high - low > _MIN_WIDTH and max(abs(low), abs(high)) < _MAX_BOUND):
            raise ValueError("bounds must be between -1e290 and 1e290, and more than 1e-290 apart")
        if Fraction(float(low)) >= Fraction(float(high)):
            raise ValueError("the bounds are so close that no floating-point number lies between them")

    @property
    def middle(self) -> Fraction:
        """Half way between the bounds."""
        return (rational(self.lower, "the lower bound") + rational(self.upper, "the upper bound")) / 2

    @property
    def half(self) -> Fraction:
        """Half the width."""
        return rational(self.upper, "the upper bound") - self.middle

    def fits(self, dtype: DType) -> bool:
        """Whether a column of this declared type can be read so."""
        return numeric(dtype)


@dataclass(frozen=True)
class Category:
    """One of a public list of values. Rows with other values are in no category.

    Parameters
    ----------
    values : sequence
        All values that count: all text, all numbers or all booleans.

    Examples
    --------
    >>> Category(["red", "blue"]).values
    ('red', 'blue')
    """

    values: Sequence[Hashable]

    def __post_init__(self) -> None:
        if not isinstance(self.values, list | tuple):
            raise TypeError("values must be a list, known without the data")
        if not self.values:
            raise ValueError("values is empty: list what the column may hold, from outside the data")
        kinds = {_kind(value) for value in self.values}
        if len(kinds) != 1 or None in kinds:
            raise TypeError("values must be all text, all numbers or all booleans")
        object.__setattr__(self, "values", tuple(Names(self.values, "the values of a category").names))

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

    def fits(self, dtype: DType) -> bool:
        """Whether a column of this declared type can be read so."""
        return numeric(dtype)


Column: TypeAlias = Number | Category | Boolean


def described(column: Column) -> str:
    """What the column holds, for error messages."""
    return {Number: "numbers", Boolean: "booleans"}.get(type(column), "categories")


def type_name(dtype: DType) -> str:
    """A declared type in a word: some types carry labels, and pandas takes those from the rows."""
    return type(dtype).__name__


def _kind(value: Hashable) -> str | None:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number" if math.isfinite(value) else None
    return "text" if isinstance(value, str) else None
