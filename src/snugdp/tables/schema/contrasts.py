"""What coefficients mean: contrasts with a reference level, and standard deviations as units. Post-processing.

A category has an entry for every level, and these add up to the constant: raise all levels and lower the intercept, and
nothing changes but for rows in no level. So the coefficients of levels, and the intercept, are not identified; their
differences are. ``identified`` writes the same linear function with a reference level that has no entry of its own:

- the intercept is the answer for a row in the reference levels of all categories, with all other entries 0;
- the coefficient of another level is how much more the answer is for it than for the reference level;
- ``city=(none)`` is the same for rows in none of the levels, which are missing, or "other": how much more than for the
  reference level. Where hardly any row is in none, the data say little about it, and it is mostly the prior.

A category with one level is compared with rows that are not in it, and keeps its entry.

The knots of a spline are like levels: they are compared with the first of them, the lower bound of the number.

Without an intercept levels do not add up to anything, and there is nothing to identify.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import sub

import numpy as np
from numpy.typing import NDArray

from snugdp.tables.found import Flag, FoundColumn, FoundNumber
from snugdp.tables.schema.kinds import Category, Column, Spline
from snugdp.tables.schema.schema import Coefficients, entry_names

NO_LEVEL = "(none)"


def identified(coefficients: Coefficients, columns: Mapping[str, Column]) -> Coefficients:
    """The same linear function, which has an intercept, relative to the reference level of every category.

    Levels whose entries a model did not choose have the coefficient 0, as they have in the model.

    >>> linear = Coefficients(("age", "city=Rome", "city=Oslo"), np.array([2.0, 1.0, 4.0]), 10.0)
    >>> identified(linear, {"city": Category(["Rome", "Oslo"])})
    Coefficients(names=('age', 'city=Oslo', 'city=(none)'), values=array([ 2.,  3., -1.]), intercept=11.0)
    """
    given = _contrasts(coefficients.names, coefficients.values, columns, sub)
    constant = sum(
        given.get(no_level(name), 0.0) for name, kind in columns.items() if isinstance(kind, Category | Spline)
    )
    return Coefficients(tuple(given), np.array(list(given.values())), coefficients.intercept - constant)


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
    for name, column in columns.items():
        if not isinstance(column, Category | Spline):
            continue
        entries = entry_names(name, column)
        reference = f"{name}={column.baseline}" if isinstance(column, Category) else entries[0]
        if len(entries) > 1 and any(entry in given for entry in entries):
            given = _contrasted(given, entries, reference, no_level(name), apart)
    return given


def _contrasted(
    given: Mapping[str, float],
    entries: list[str],
    reference: str,
    none: str,
    apart: Callable[[float, float], float],
) -> dict[str, float]:
    """All coefficients, those of one category as differences from its reference, at the place of its first entry."""
    base = given.get(reference, 0.0)
    others = [entry for entry in entries if entry != reference and (entry in given or base)]
    levels = {entry: apart(given.get(entry, 0.0), base) for entry in others}
    found: dict[str, float] = {}
    for name, value in given.items():
        found |= {**levels, none: apart(0.0, base)} if name in entries else {name: value}
    return found


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
