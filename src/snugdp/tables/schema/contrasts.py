"""What coefficients mean: contrasts with a reference level, and standard deviations as units. Post-processing.

A category has an entry for every level, and these add up to the constant: raise all levels and lower the intercept, and
nothing changes but for rows in no level. So the coefficients of levels, and the intercept, are not identified; their
differences are. ``identified`` writes the same linear function with a reference level that has no entry of its own:

- the intercept is the answer for a row in the reference levels of all categories, with all other entries 0;
- the coefficient of another level is how much more the answer is for it than for the reference level;
- ``city=(none)`` is the same for rows in none of the levels, which are missing, or "other": how much more than for the
  reference level. Where hardly any row is in none, the data say little about it, and it is mostly the prior.

A category with one level is compared with rows that are not in it, and keeps its entry.

The knots of a spline are like levels: they are compared with the first of them, the lower bound of the number. Rows at
none of them are those whose number is missing: where these have an entry, it says all: ``age is missing``.

Without an intercept levels do not add up to anything, and there is nothing to identify.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import sub

import numpy as np
from numpy.typing import NDArray

from snugdp.tables.found import Flag, FoundColumn, FoundNumber
from snugdp.tables.schema.kinds import Category, Column, Spline
from snugdp.tables.schema.missing import entry_name
from snugdp.tables.schema.schema import Coefficients, entry_names

NO_LEVEL = "(none)"


def identified(coefficients: Coefficients, columns: Mapping[str, Column]) -> Coefficients:
    """The same linear function, which has an intercept, relative to the reference level of every category.

    Levels whose entries a model did not choose have the coefficient 0, as they have in the model.

    >>> linear = Coefficients(("age", "city=Rome", "city=Oslo"), np.array([2.0, 1.0, 4.0]), 10.0)
    >>> identified(linear, {"city": Category(["Rome", "Oslo"])})
    Coefficients(names=('age', 'city=Oslo', 'city=(none)'), values=array([ 2.,  3., -1.]), intercept=11.0)
    """
    given = dict(zip(coefficients.names, coefficients.values.tolist(), strict=True))
    constant = sum(given.get(levels.reference, 0.0) for levels in _compared(given, columns))
    found = _contrasts(coefficients.names, coefficients.values, columns, sub)
    return Coefficients(tuple(found), np.array(list(found.values())), coefficients.intercept + constant)


def deviations(names: Sequence[str], noise: NDArray[np.float64], columns: Mapping[str, Column]) -> NDArray[np.float64]:
    """Those of the contrasts, from the deviations of all entries, whose noise is independent; that of the knots of a
    spline is correlated, which makes their differences less noisy than is said here.

    >>> deviations(["city=Rome", "city=Oslo"], np.array([3.0, 4.0]), {"city": Category(["Rome", "Oslo"])}).tolist()
    [5.0, 3.0]
    """
    return np.array(list(_contrasts(names, noise, columns, math.hypot).values()))


def no_level(column: str) -> str:
    """The name of the entry that is 1 for rows in none of the levels."""
    return f"{column}={NO_LEVEL}"


def _contrasts(
    names: Sequence[str],
    values: NDArray[np.float64],
    columns: Mapping[str, Column],
    apart: Callable[[float, float], float],
) -> dict[str, float]:
    """What belongs to the contrasts by name; ``apart``: from what belongs to a level and to its reference."""
    given = dict(zip(names, values.tolist(), strict=True))
    for levels in _compared(given, columns):
        given = levels.contrasted(given, apart)
    return given


@dataclass(frozen=True)
class _ComparedLevels:
    """The entries of a category or a spline. ``none``: what the entry of rows in none of them is called."""

    entries: tuple[str, ...]
    reference: str
    none: str

    @classmethod
    def of(cls, name: str, column: Category | Spline, given: Collection[str]) -> _ComparedLevels:
        """Those of a column: of a spline, rows in none of them are those that are missing."""
        entries, none, gap = tuple(entry_names(name, column)), no_level(name), entry_name(name)
        if isinstance(column, Spline):
            return cls(entries, entries[0], gap if gap in given else none)
        return cls(entries, f"{name}={column.baseline}", none)

    def contrasted(self, given: Mapping[str, float], apart: Callable[[float, float], float]) -> dict[str, float]:
        """All coefficients, these as differences from the reference, at the place of the first of them."""
        base = given.get(self.reference, 0.0)
        others = [entry for entry in self.entries if entry != self.reference and (entry in given or base)]
        levels = {entry: apart(given.get(entry, 0.0), base) for entry in others}
        none = {self.none: apart(given.get(self.none, 0.0), base)}
        found: dict[str, float] = {}
        for name, value in given.items():
            found |= {**levels, **none} if name in self.entries else none if name == self.none else {name: value}
        return found


def _compared(given: Collection[str], columns: Mapping[str, Column]) -> Iterator[_ComparedLevels]:
    """The levels of all columns that have several, and some in the model."""
    for name, column in columns.items():
        if isinstance(column, Category | Spline):
            levels = _ComparedLevels.of(name, column, given)
            if len(levels.entries) > 1 and any(entry in given for entry in levels.entries):
                yield levels


def standardised(
    coefficients: Coefficients, found: Mapping[str, FoundColumn], target: str | None = None
) -> Coefficients:
    """The same linear function in standard deviations, of the numbers and of the target, as far as they were found.

    A coefficient of a number says by how many deviations of the target the answer grows with one deviation of the
    number; levels, booleans and parts of dates stay as they are on their side. The intercept is the answer at the
    centres of all numbers, from the centre of the target. Between public bounds nobody looked for a deviation: half of
    the range is the unit, and the middle is the centre.

    >>> age, income = FoundNumber(0, 100, centre=40, scale=20), FoundNumber(0, 9000, centre=3000, scale=1000)
    >>> linear = Coefficients(("age",), np.array([25.0]), 2000.0)
    >>> standardised(linear, {"age": age, "income": income}, "income")
    Coefficients(names=('age',), values=array([0.5]), intercept=0.0)
    """
    centres, scales = np.array([_units(found.get(name)) for name in coefficients.names]).reshape(-1, 2).T
    centre, scale = _units(found.get(target) if target is not None else None)
    at_centres = coefficients.intercept + float(coefficients.values @ centres)
    return replace(coefficients, values=coefficients.values * scales / scale, intercept=(at_centres - centre) / scale)


def _units(column: FoundColumn | None) -> tuple[float, float]:
    if not isinstance(column, FoundNumber):
        return 0.0, 1.0
    if column.flag is Flag.PUBLIC:
        return (column.lower + column.upper) / 2, (column.upper - column.lower) / 2
    return column.centre, column.scale
