"""What layouts have in common: matrices of numbers, and layouts that read the rows of another one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.schema.kinds import Column, DType, Number, type_name
from snugdp.tables.schema.scaling import Floats
from snugdp.tables.schema.schema import Coefficients, Layout

MAX_BLOCK_CELLS = 1 << 20
_MAX_BOUND = Fraction(10**290)


class WrappedLayout:
    """A layout with the columns, the target and the constant of another one. ``layout`` is a field of the subclass."""

    layout: Layout

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns that are read, with their bounds or values."""
        return self.layout.columns

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        return self.layout.features

    @property
    def target(self) -> str | None:
        """The column to be predicted."""
        return self.layout.target

    @property
    def target_bound(self) -> int:
        """A bound on the size of a scaled target."""
        return self.layout.target_bound

    @property
    def target_units(self) -> tuple[float, float]:
        """The middle of the target, and how many of its units a scaled target of 1 is."""
        return self.layout.target_units

    @property
    def intercept(self) -> bool:
        """Whether a constant 1 is the last entry of every vector."""
        return self.layout.intercept

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare the names and declared types of a table with what is expected."""
        self.layout.check(types)


class NumberLayout:
    """Columns of numbers and a bounded number as the target. The annotated names are fields of the subclass."""

    names: tuple[str, ...]
    y_bound: Real | tuple[Real, ...]
    intercept: bool
    norm = 1
    target_bound = 1

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        return (*self.names, "intercept") if self.intercept else self.names

    @cached_property
    def target(self) -> str:
        """A name for the target that no column has."""
        name = "y"
        while name in self.names:
            name += "_"
        return name

    @cached_property
    def aim(self) -> Number:
        """The bounds of the target."""
        if isinstance(self.y_bound, tuple | list | np.ndarray):
            if len(self.y_bound) != 2:
                raise ValueError("y_bound must be a number b, for targets in [-b, b], or a pair (low, high)")
            return Number(*self.y_bound)
        bound = rational(self.y_bound, "y_bound")
        if bound <= 0:
            raise ValueError("y_bound must be greater than 0, or a pair (low, high)")
        return Number(-bound, bound)

    @property
    def target_units(self) -> tuple[float, float]:
        """The middle of the target, and how many of its units a scaled target of 1 is."""
        return float(self.aim.middle), float(self.aim.half)

    @property
    def entry(self) -> Number:
        """The bounds that messages and engines see for every entry."""
        return Number(-1, 1)

    def per_entry(self, half: float) -> Floats | float:
        """A coefficient of 1, if a scaled target of 1 is ``half`` units, for entries in the user's units."""
        raise NotImplementedError

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """All columns, the target last."""
        return {**dict.fromkeys(self.names, self.entry), self.target: self.aim}

    def check(self, types: Mapping[str, DType]) -> None:
        """Whether all columns hold numbers, by their declared types."""
        for name, column in self.columns.items():
            if name in types and not column.fits(types[name]):
                raise TypeError(
                    f'column "{name}" must hold numbers, not {type_name(types[name])}; convert it, or describe the '
                    "table by a schema"
                )

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of scaled rows (one coefficient for every name in ``features``) in the user's units."""
        given, (middle, half) = one_for_each(theta, self.features), self.target_units
        constant = half * given[-1] if self.intercept else 0.0
        return Coefficients(self.names, self.per_entry(half) * given[: len(self.names)], float(middle + constant))


def one_for_each(theta: ArrayLike, features: tuple[str, ...]) -> Floats:
    """The coefficients, one for each of the features."""
    given = np.asarray(theta, dtype=np.float64)
    if given.shape != (len(features),):
        raise ValueError(f"theta must have {len(features)} entries, one for each of the features")
    return given


def is_bound(value: Real, name: str) -> bool:
    """Whether a bound is above 0 and far from where floats end."""
    return 1 / _MAX_BOUND < rational(value, name) < _MAX_BOUND
