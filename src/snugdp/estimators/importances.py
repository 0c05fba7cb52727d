"""How far each column moves the answer of a linear model between its bounds. Post-processing of released numbers.

The mean size of contributions would be that of private rows. The range of an effect is public: between the bounds that
were declared, or, where they were found, between the ends that nearly all rows were seen in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from snugdp.estimators.coefficients import kinds_of, scales_of
from snugdp.tables.found import Flag, FoundColumn, FoundNumber
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, Number, Spline
from snugdp.tables.schema.schema import Coefficients, Layout, entry_names

_REACH = 3.0  # scales from the centre of a number that was found, at most, as for knots


def importances_of(layout: Layout, every: Coefficients) -> dict[str, float]:
    """By column, the largest first. ``every``: coefficients with an entry for every level and knot."""
    found, kinds = scales_of(layout), kinds_of(layout)
    given = dict(zip(every.names, every.values.tolist(), strict=True))
    ranges = {name: _range(name, kind, given, found.get(name)) for name, kind in kinds.items()}
    return dict(sorted(ranges.items(), key=lambda item: -item[1]))


def _range(name: str, kind: Column, given: Mapping[str, float], found: FoundColumn | None) -> float:
    if isinstance(kind, Boolean):
        return abs(given.get(name, 0.0))
    values = [given.get(entry, 0.0) for entry in entry_names(name, kind)]
    if isinstance(kind, Category | Spline):
        others = [0.0] if len(values) == 1 else []  # rows that are not in the only level
        return max([*values, *others]) - min([*values, *others])
    first, *turns = values
    pairs = zip(turns[::2], turns[1::2], strict=True) if isinstance(kind, Date) else ()
    return abs(first) * _width(kind, found) + sum(2 * math.hypot(*pair) for pair in pairs)


def _width(kind: Number | Date, found: FoundColumn | None) -> float:
    """From end to end."""
    if not isinstance(found, FoundNumber) or found.flag is Flag.PUBLIC:
        return float(2 * kind.half)
    reach = _REACH * found.scale
    first, last = found.hull or (found.lower, found.upper)
    return max(min(last, found.centre + reach) - max(first, found.centre - reach), 0.0)
