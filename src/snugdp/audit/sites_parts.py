"""What a draw costs on a pair of data sets, from the change of its private inputs alone: exact rational numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from snugdp.audit.alike import alike
from snugdp.noise import DiscreteGaussian, Gaussian, Law
from snugdp.noise.witness import Site, private_inputs

_ZERO = Fraction(0)


@dataclass(frozen=True)
class Part:
    """The part of one draw. ``other``: it has neither, and its loss depends on what was drawn."""

    method: str
    mu_squared: Fraction = _ZERO
    epsilon: Fraction | float = _ZERO
    other: bool = False


def part(here: Site, there: Site) -> Part:
    """What this draw costs between the two data sets.

    Sums and decisions: the change over the scale of the noise. A contest: how far apart the changes of its scores are,
    for Laplace and Gumbel noise; their squares, for Gaussian noise. What is shown as it is costs nothing or everything.
    """
    one, two = private_inputs(here), private_inputs(there)
    method, law = here.method, here.drawn
    if method == "reveal":
        return Part(method, epsilon=_ZERO if alike(one[0], two[0]) else math.inf)
    if method in ("choice", "stopping", "scatter"):
        return Part(method)
    if law is None or method == "minimiser" or len(one) > 1:
        same = method != "minimiser" and all(alike(a, b) for a, b in zip(one, two, strict=True))
        return Part(method, other=not same)
    if method in ("argmax", "argmaxes"):
        rows = zip(_rows(method, one[0]), _rows(method, two[0]), strict=True)
        return _sum(method, law, [_contest(law, a, b) for a, b in rows])
    return _sum(method, law, [_change(a, b) for a, b in zip(_values(one[0]), _values(two[0]), strict=True)])


def _sum(method: str, law: Law, changes: Sequence[Fraction | float]) -> Part:
    """Of changes (squares of changes, for a contest of Gaussian noise), by the scale of the noise."""
    if any(isinstance(change, float) for change in changes):  # infinite
        return Part(method, epsilon=math.inf)
    exact = [Fraction(change) for change in changes]
    if isinstance(law, Gaussian | DiscreteGaussian):
        variance = law.sigma**2 if isinstance(law, Gaussian) else law.variance
        squares = exact if method.startswith("argmax") else [change * change for change in exact]
        return Part(method, mu_squared=sum(squares, _ZERO) / variance)
    return Part(method, epsilon=sum(exact, _ZERO) / law.scale)


def _contest(law: Law, scores: Sequence[Any], others: Sequence[Any]) -> Fraction:
    changes = [Fraction(a) - Fraction(b) for a, b in zip(scores, others, strict=True)]
    if isinstance(law, Gaussian):
        return sum((change * change for change in changes), _ZERO)
    return max(changes) - min(changes)


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
