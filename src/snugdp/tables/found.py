"""What was found about columns in private: bounds, centre, scale, levels, and how much is missing. Released.

It is kept in models, shown in reports, and used again for other fits at no cost.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import compress
from typing import TypeAlias

from snugdp.tables.cells import Names
from snugdp.tables.keyed import EqualByKey
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, Number
from snugdp.tables.schema.missing import restricted
from snugdp.tables.schema.schema import Schema


class Flag(StrEnum):
    """How a column was found."""

    PUBLIC = "public"  # its bounds or values were given
    NOT_FOUND = "not found"  # too few rows: the column is left out
    COARSE = "to a factor of 2"  # on the first grid alone
    FOUND = "found"
    CONSTANT = "one value"  # all but a few rows hold one value, as far as can be told


@dataclass(frozen=True)
class FoundNumber:
    """Bounds, centre and scale of a number. ``missing``: the share of rows without one; None where that is not known.

    ``hull``: where rows were seen; the bounds reach further out, for those that were not. A column that was not found
    has bounds all the same, which say nothing.
    """

    lower: float
    upper: float
    centre: float
    scale: float
    flag: Flag = Flag.FOUND
    missing: float | None = None
    hull: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        numbers = (self.lower, self.upper, self.centre, self.scale)
        if not (all(map(math.isfinite, numbers)) and self.lower <= self.centre <= self.upper and self.scale > 0):
            raise ValueError("a centre lies between finite bounds, and a scale is above 0")


@dataclass(frozen=True)
class FoundLevels:
    """The levels of a category that were seen often enough, and their shares of the rows; others are "other"."""

    values: tuple[Hashable, ...]
    shares: tuple[float, ...]
    flag: Flag = Flag.FOUND
    missing: float | None = None

    def __post_init__(self) -> None:
        if len(self.values) != len(self.shares):
            raise ValueError("every level has a share")
        if not all(0 <= share <= 1 for share in (*self.shares, self.missing or 0)):
            raise ValueError("a share lies between 0 and 1")

    def at(self, kept: Sequence[bool]) -> FoundLevels:
        """Some of the levels: the others are "other"."""
        return replace(self, values=tuple(compress(self.values, kept)), shares=tuple(compress(self.shares, kept)))

    def kind(self, reference: Hashable | None = None) -> Category | None:
        """The category with these levels; the reference that was declared, if it is one of them."""
        if not self.values:
            return None
        several = len({isinstance(value, str) for value in self.values}) > 1
        values = tuple(map(str, self.values)) if several else self.values  # cells are read the same either way
        known = reference is not None and Names(values, "levels").index(reference) >= 0
        return Category(values, reference=reference if known else None)


FoundColumn: TypeAlias = FoundNumber | FoundLevels


@dataclass(frozen=True, eq=False)
class FoundBounds(EqualByKey):
    """What was found about the columns of a table, public once it is released: it may be used again at no cost.

    Parameters
    ----------
    declared : Schema
        What was known before: the columns that are used, the target, and the bounds and values that are public.
    columns : mapping of str to FoundNumber or FoundLevels
        What is known of every number and category; also ``bounds[name]``.
    rows : float
        About how many rows there are.
    radius : float
        The length to which standardised rows are shortened.
    answers : (float, float), optional
        The range of the target to which predictions are clipped.

    Examples
    --------
    >>> declared = Schema({"age": Number(0, 120)})
    >>> found = FoundBounds(declared, {"age": FoundNumber(20, 80, 50, 15)}, 1000, 2)
    >>> found["age"].upper
    80
    """

    declared: Schema
    columns: Mapping[str, FoundColumn]
    rows: float
    radius: float
    answers: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not all(0 < number < math.inf for number in (self.rows, self.radius)):
            raise ValueError("the number of rows and the radius are above 0")
        absent = [name for name, kind in self.declared.columns.items() if not self._knows(name, kind)]
        if absent:
            raise ValueError(f'the bounds do not cover the column "{absent[0]}"')

    def _knows(self, name: str, kind: Column) -> bool:
        """A number or a date by its bounds, a category by its levels; there is nothing to know of a boolean."""
        found = self.columns.get(name)
        if isinstance(kind, Number | Date):
            return isinstance(found, FoundNumber)
        return isinstance(kind, Boolean) or isinstance(
            found, FoundLevels if isinstance(kind, Category) else FoundColumn
        )

    def __getitem__(self, name: str) -> FoundColumn:
        return self.columns[name]

    def get(self, name: str) -> FoundColumn | None:
        """What is known of a column, or nothing."""
        return self.columns.get(name)

    @property
    def schema(self) -> Schema:
        """The schema with these bounds and values; columns that were not found are left out.

        >>> FoundBounds(Schema({"age": Number()}), {"age": FoundNumber(20, 80, 50, 15)}, 1000, 2).schema.columns
        {'age': Number(lower=20, upper=80)}
        """
        columns = self.kinds
        return replace(self.declared, columns=columns, missing=restricted(self.declared.missing, columns))

    @property
    def kinds(self) -> dict[str, Column]:
        """The columns with these bounds and values, without those that were not found."""
        columns = {name: self._closed(name, kind) for name, kind in self.declared.columns.items()}
        return {name: kind for name, kind in columns.items() if kind is not None}

    def _closed(self, name: str, kind: Column) -> Column | None:
        found = self.columns.get(name)
        if found is None or found.flag is Flag.PUBLIC:
            return kind
        if found.flag is Flag.NOT_FOUND:
            return None
        if isinstance(found, FoundLevels):
            return found.kind(getattr(kind, "reference", None))
        if isinstance(kind, Date):
            return Date(found.lower, found.upper, parts=kind.parts)
        return Number(found.lower, found.upper)

    def __repr__(self) -> str:
        from snugdp.tables.found_lines import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from snugdp.tables.found_lines import as_html

        return as_html(self)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.declared, tuple(self.columns.items()), self.rows, self.radius, self.answers


@dataclass(frozen=True)
class FoundCap:
    """A cap that was found in private, for a small part of the budget. It may be used again at no cost.

    Parameters
    ----------
    cap : Fraction
        As much as so many rows, all in one cell and at the largest value, a person may contribute.
    largest : int
        The public bound: the last of the caps among which it was drawn.
    lost : Fraction
        So many rows, as far as can be told, were cut off from a count on average, and are added to it again; 0 where
        nothing is added.

    Examples
    --------
    >>> float(FoundCap(Fraction(12), 1024).cap)
    12.0
    """

    cap: Fraction
    largest: int
    lost: Fraction = Fraction(0)
