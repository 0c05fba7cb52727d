"""Inverse problems of selection: floats find the crossing, balls prove a point on its safe side.

What floats do is of no consequence for what is promised: only a point at which the bound has been proved is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from flint import arb

from snugdp.accounting.selection.tradeoff import Base
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import readings

_SLACKS = (1e-9, 1e-7, 1e-5, 1e-3, 0.03)
_STEPS = 100
_NOTHING = 1e-300
_SMALLEST = 1e-12
_HIGHEST = 1000.0  # an epsilon beyond which nothing is looked for


class Bound(Protocol):
    """A bound on delta as a function of epsilon >= 0, in floats and in balls."""

    def guess(self, epsilon: float) -> float: ...  # noqa: D102

    def balls(self, epsilon: Fraction) -> arb: ...  # noqa: D102


def at(bound: Bound, epsilon: Fraction) -> float:
    """The bound at one epsilon, rounded up, at most 1."""
    return min(1.0, balls.above(lambda: bound.balls(epsilon)))


def holds(bound: Bound, epsilon: Fraction, goal: Fraction) -> bool:
    """Whether the bound is proved to be at most ``goal``."""
    return balls.at_most(lambda: bound.balls(epsilon), goal, most=2 * balls.FIRST)


def smallest(bound: Bound, goal: Fraction) -> float:
    """About the smallest epsilon >= 0 at which the bound is proved to be at most ``goal``; infinite if none is."""
    aim, low, high = float(goal), 0.0, 1.0
    if bound.guess(0.0) <= aim and holds(bound, Fraction(0), goal):
        return 0.0
    while bound.guess(high) > aim:
        low, high = high, 2 * high
        if high > _HIGHEST:
            return math.inf
    high = roots.bisect(lambda epsilon: bound.guess(epsilon) > aim, low, high, 60)[1]
    for slack in _SLACKS:
        found = high * (1 + slack)
        if holds(bound, min(readings(found)), goal):
            return found
    return math.inf


def largest(
    quick: Callable[[float], Base],
    certain: Callable[[Fraction], Base],
    bounds: Callable[[Base], list[Bound]],
    budget: tuple[Fraction, Fraction],
    high: float,
    *,
    close: float = 1e-10,
) -> float:
    """About the largest scale up to ``high`` at which the bounds are proved to fit the budget; 0 if none is found."""
    level, goal = budget

    def gap(scale: float) -> float:
        found = max(bound.guess(float(level)) for bound in bounds(quick(scale)))
        return math.log(max(found, _NOTHING)) - math.log(max(float(goal), _NOTHING))

    low = _crossing(gap, high, close)
    for slack in _SLACKS if low else ():
        found = low * (1 - slack)
        if all(holds(bound, level, goal) for bound in bounds(certain(max(readings(found))))):
            return found
    return 0.0


def _crossing(gap: Callable[[float], float], high: float, close: float) -> float:
    """The largest scale up to ``high`` at which the gap is not positive, nearly; 0 if there is none."""
    if high <= 0 or (above := gap(high)) <= 0:
        return high
    low = high
    while (below := gap(low)) > 0:
        low, high, above = low / 4, low, below
        if low < _SMALLEST:
            return 0.0
    for step in range(_STEPS):
        if high - low <= close * high:
            break
        part = 0.5 if step % 3 == 2 else below / (below - above)
        scale = low * (high / low) ** min(max(part, 1e-4), 1 - 1e-4)
        here = gap(scale)
        if here <= 0:
            low, below, above = scale, here, above / 2  # the end that stays counts for less: the Illinois rule
        else:
            high, above, below = scale, here, below / 2
    return low
