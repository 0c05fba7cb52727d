"""What a draw costs on a pair of data sets, from the change of its private inputs alone: exact rational numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from snugdp.audit.equality import equal
from snugdp.noise import DiscreteGaussian, Gaussian, Gumbel, Law
from snugdp.noise.exact.weighted import Groups
from snugdp.noise.recording import Site, private_inputs

_ZERO = Fraction(0)
_FAR = (1, 64)  # dyadic, and far beyond what is ever released
_AXES = 4
_ROUND = Fraction(1, 2**40)  # of a square root


@dataclass(frozen=True)
class LossPart:
    """The part of one draw. ``other``: it has neither, and its loss depends on what was drawn.

    ``gumbel``: its pure part is the range of an exponential mechanism.
    """

    method: str
    mu_squared: Fraction = _ZERO
    epsilon: Fraction | float = _ZERO
    other: bool = False
    gumbel: bool = False


def part(here: Site, there: Site) -> LossPart:
    """What this draw costs between the two data sets.

    Sums and decisions: the change over the scale of the noise. A contest: how far apart the changes of its scores are,
    for Laplace and Gumbel noise; their squares, for Gaussian noise. What is shown as it is costs nothing or everything.
    """
    one, two = private_inputs(here), private_inputs(there)
    method, law = here.method, here.drawn
    if method == "reveal":
        return LossPart(method, epsilon=_ZERO if equal(one[0], two[0]) else math.inf)
    if method in ("choice", "stopping", "scatter"):
        return LossPart(method)
    if method == "weighted_choice":
        return LossPart(method, epsilon=here.number("rate") * _spread(*one, *two), gumbel=True)
    if law is None or method in ("minimiser", "keys_above") or len(one) > 1:
        same = method != "minimiser" and all(equal(a, b) for a, b in zip(one, two, strict=True))
        return LossPart(method, other=not same)
    if method in ("argmax", "argmaxes"):
        rows = zip(_rows(method, one[0]), _rows(method, two[0]), strict=True)
        return _sum(method, law, [_contest(law, a, b) for a, b in rows])
    return _sum(method, law, [_change(a, b) for a, b in zip(_values(one[0]), _values(two[0]), strict=True)])


def _sum(method: str, law: Law, changes: Sequence[Fraction | float]) -> LossPart:
    """Of changes (squares of changes, for a contest of Gaussian noise), by the scale of the noise."""
    if any(isinstance(change, float) for change in changes):  # infinite
        return LossPart(method, epsilon=math.inf)
    exact = [Fraction(change) for change in changes]
    if isinstance(law, Gaussian | DiscreteGaussian):
        variance = law.sigma**2 if isinstance(law, Gaussian) else law.variance
        squares = exact if method.startswith("argmax") else [change * change for change in exact]
        return LossPart(method, mu_squared=sum(squares, _ZERO) / variance)
    return LossPart(method, epsilon=sum(exact, _ZERO) / law.scale, gumbel=isinstance(law, Gumbel))


def tilt(here: Site, there: Site) -> Fraction:
    """How far the gradient of a minimised function moves, squared, over the variance of the noise on it.

    The largest of some points: where it was minimised, and far out along the axes, where slopes are at their bounds.
    """
    (one,), (two,) = private_inputs(here), private_inputs(there)
    assert isinstance(here.drawn, Gaussian)
    axes = [
        [Fraction(sign * far * (i == axis)) for i in range(one.dimension)] for axis, sign, far in _far(one.dimension)
    ]
    found: list[Fraction] = [_moved(one, two, at) for at in (list(here.answer), *axes)]
    return max(found) / here.drawn.sigma**2


def _far(dimension: int) -> Iterable[tuple[int, int, int]]:
    return product(range(min(dimension, _AXES)), (-1, 1), _FAR)


def _moved(one: Any, two: Any, at: list[Fraction]) -> Fraction:
    """The square of the change of the gradient at a point, less what may be the error of its norm."""
    (first, close), (second, near) = one.gradient(at, 1), two.gradient(at, 1)
    square = sum(((a - b) ** 2 for a, b in zip(first, second, strict=True)), _ZERO)
    change = Fraction(math.sqrt(square)) * (1 - _ROUND) - close - near
    left: Fraction = max(change, _ZERO)
    return left * left


def _contest(law: Law, scores: Sequence[Any], others: Sequence[Any]) -> Fraction:
    changes = [Fraction(a) - Fraction(b) for a, b in zip(scores, others, strict=True)]
    if isinstance(law, Gaussian):
        return sum((change * change for change in changes), _ZERO)
    return max(changes) - min(changes)


def _spread(one: Groups, two: Groups) -> Fraction | float:
    """How far apart the changes of the levels are over all positions; infinite where their weights differ."""
    first, second = one.whole().nonempty(), two.whole().nonempty()
    starts = np.unique(
        np.concatenate([first.first, first.first + first.count, second.first, second.first + second.count])
    )
    (level, base), (other, weight) = _at(first, starts), _at(second, starts)
    if base != weight:
        return math.inf
    changes = [a - b for a, b in zip(level, other, strict=True) if a is not None and b is not None]
    return Fraction(max(changes, default=0) - min(changes, default=0))


def _at(groups: Groups, starts: Any) -> tuple[list[int | None], list[int]]:
    """The level and the weight of these positions; groups that overlap must agree in the level."""
    levels: list[int | None] = [None] * len(starts)
    base = [0] * len(starts)
    begin = np.searchsorted(starts, groups.first).tolist()
    end = np.searchsorted(starts, groups.first + groups.count).tolist()
    for low, high, level, weight in zip(begin, end, groups.level.tolist(), groups.weight.tolist(), strict=True):
        for place in range(low, high):
            if levels[place] not in (None, level):
                raise ValueError("the audit compares groups that agree in the level where they overlap")
            levels[place] = level
            base[place] += 1 << weight
    return levels, base


def _change(one: Any, two: Any) -> Fraction | float:
    finite = [not isinstance(value, float) or math.isfinite(value) for value in (one, two)]
    if all(finite):
        return abs(Fraction(one) - Fraction(two))
    return _ZERO if not any(finite) and one == two else math.inf


def _values(value: Any) -> Iterable[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return value if isinstance(value, list | tuple) else [value]


def _rows(method: str, scores: Any) -> list[Any]:
    return [list(scores)] if method == "argmax" else list(scores.tolist())
