"""The best that somebody can do who looks at every answer before choosing the next charge: value iteration on a grid.

A pair of neighbours is described by the loss of what was seen so far. ``x`` is epsilon minus that loss; a stop is
worth (1 - e^x)+, and the value at x = epsilon is the delta of the whole. Charges are the worst of their cost: a
Gaussian pair, a coin, an open failure, the largest alternative of an atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp import Cost
from snugdp.accounting.composition import Branch

Values: TypeAlias = NDArray[np.float64]

STEP = 1000  # grid points per unit of loss; pure parts must be multiples
GRID = np.arange(-2 * STEP, 4 * STEP + 1) / STEP


class Rule(Protocol):
    """A stop rule: ``after`` gives the rule for a charge, ``covers`` says whether the total is accepted."""

    def after(self, before: Cost, total: Cost) -> Rule: ...

    def covers(self, total: Cost) -> bool: ...


Menu: TypeAlias = Callable[[Rule, Cost, int], Iterable[Cost]]


def seen(cost: Cost, values: Values) -> Values:
    """The value before one charge, from the value after it: its loss moves x down."""
    kernel = np.ones(1)  # weights of the losses -n/STEP .. n/STEP
    if cost.mu_squared:
        kernel = np.convolve(kernel, normal(float(cost.mu_squared)))
    if cost.epsilon:
        places = cost.epsilon * STEP
        assert places.denominator == 1
        coin = np.zeros(2 * int(places) + 1)
        coin[0], coin[-1] = 1 / (1 + math.exp(cost.epsilon)), 1 / (1 + math.exp(-cost.epsilon))
        kernel = np.convolve(kernel, coin)
    for atom in cost.atoms:
        kernel = np.convolve(kernel, largest(*atom.remove))
    reach = len(kernel) // 2
    before = 1 - np.exp(GRID[0] - np.arange(reach, 0, -1) / STEP)
    wide = np.concatenate([before, values, np.full(reach, values[-1])])
    failure = float(cost.delta)
    after: Values = failure + (1 - failure) * np.convolve(wide, kernel, mode="valid")
    return after


def normal(square: float) -> Values:
    """The loss of a Gaussian pair."""
    mu = math.sqrt(square)
    reach = math.ceil((square / 2 + 9 * mu) * STEP)
    places = np.arange(-reach, reach + 1) / STEP
    weights: Values = np.exp(-(((places - square / 2) / mu) ** 2) / 2)
    whole: Values = weights / weights.sum()
    return whole


def largest(whole: Branch, constant: Branch) -> Values:
    """The larger of a Gaussian loss and a constant: an atom of class T, when a row is removed."""
    kernel, place = normal(float(whole.mu_squared)), constant.shift * STEP
    assert place.denominator == 1
    low = len(kernel) // 2 + int(place)
    kernel = np.pad(kernel, max(0, low + 1 - len(kernel)))
    low = len(kernel) // 2 + int(place)
    kernel[low] += kernel[:low].sum()
    kernel[:low] = 0
    return kernel


def on_grid(cost: Cost) -> Cost:
    """The same cost with its pure part rounded down to the grid."""
    return replace(cost, epsilon=Fraction(math.floor(cost.epsilon * STEP), STEP))


def value(rule: Rule, total: Cost, menu: Menu, rounds: int) -> Values:
    """The value of the game after ``total``, at every x of the grid."""
    best: Values = np.maximum(0.0, 1 - np.exp(GRID))
    if not rounds:
        return best
    for cost in map(on_grid, menu(rule, total, rounds)):
        then = total + cost
        judge = rule.after(total, then)
        if judge.covers(then):
            best = np.maximum(best, seen(cost, value(judge, then, menu, rounds - 1)))
    return best


def delta(values: Values, epsilon: float) -> float:
    """The value at the start."""
    return float(np.interp(epsilon, GRID, values))
