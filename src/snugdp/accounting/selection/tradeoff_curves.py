"""Trade-off curves from what is known of a run: a cost, two finite laws, or the polygon itself.

Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np
from flint import arb

from snugdp.accounting import composition
from snugdp.accounting.composition import Atom
from snugdp.accounting.gaussian import nonnegative
from snugdp.accounting.selection.tradeoff import (
    FARTHEST,
    Base,
    Sticks,
    TradeoffCurve,
    gaussian,
    gaussian_stick,
    hull,
    up,
)
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, float_up, rational

COARSE = 240  # sticks of a cost that is not a plain Gaussian
COARSEST = 80  # and of one with atoms of many branches, which take long to evaluate
_FEW = 8


class Parts(Protocol):
    """The numbers of a ``snugdp.Cost``."""

    @property
    def mu_squared(self) -> Fraction: ...  # noqa: D102
    @property
    def epsilon(self) -> Fraction: ...  # noqa: D102
    @property
    def delta(self) -> Fraction: ...  # noqa: D102
    @property
    def variation(self) -> Fraction: ...  # noqa: D102
    @property
    def atoms(self) -> tuple[Atom, ...]: ...  # noqa: D102


def as_base(run: Base | Parts) -> Base:
    """A run as curves, from whatever describes it."""
    return run if isinstance(run, Base) else of_cost(run)


def of_cost(cost: Parts, sticks: int | None = None) -> Base:
    """A run of this ``snugdp.Cost``; for one with atoms both directions are followed.

    >>> from snugdp import Cost
    >>> len(of_cost(Cost(mu="0.1", epsilon="0.2")).curves)
    1
    """
    if not (cost.epsilon or cost.variation or cost.atoms):
        square = cost.mu_squared
        size = Fraction(balls.above(lambda: balls.ball(square).sqrt()))
        return gaussian(size, cost.delta)
    add = _profile(cost, "add", sticks)
    if all(atom.add == atom.remove for atom in cost.atoms):
        return Base((TradeoffCurve(add, add),))
    remove = _profile(cost, "remove", sticks)
    return Base((TradeoffCurve(add, remove), TradeoffCurve(remove, add)))


def of_cost_one_way(cost: Parts, sticks: int | None = None) -> Base:
    """A run that has this cost with the data set first that a test has certified; nothing is said of the other order.

    What that order may lose follows from the first one, but a failure counts as many times as its factor says
    (selection.proof.md, Lemma 2b).

    >>> from snugdp import Cost
    >>> float(of_cost_one_way(Cost(epsilon=1, delta="0.01")).curves[0].back[1][-1])  # e times as much
    0.027182818284590...
    """
    if cost.atoms:
        return Base(
            tuple(
                TradeoffCurve(_profile(cost, side, sticks), _followed(cost, side, sticks)) for side in ("add", "remove")
            )
        )
    if not cost.delta:
        return of_cost(cost, sticks)
    return Base(
        tuple(TradeoffCurve(curve.ahead, _raised(curve.back, cost.delta)) for curve in of_cost(cost, sticks).curves)
    )


def of_pair(p: Sequence[Real], q: Sequence[Real]) -> Base:
    """A run with finitely many outcomes and these two laws on neighbouring data sets; both orders."""
    first, second = _normal(p), _normal(q)
    if len(first) != len(second):
        raise ValueError("the two laws must list the same outcomes")
    curve = TradeoffCurve(_finite(first, second), _finite(second, first))
    return Base((curve, curve.swapped))


def of_vertices(points: Sequence[tuple[Real, Real]]) -> Base:
    """A run with this trade-off function: the convex polygon through the points (x, L(x)), x from 0 to 1.

    L(x) is the least probability, under the second law, of an event of probability x under the first.
    """
    vertices = [(rational(x, "x"), rational(y, "L(x)")) for x, y in points]
    if len(vertices) < 2 or any(vertices[0]) or vertices[-1][0] != 1:
        raise ValueError("a trade-off function goes from (0, 0) to (1, L(1)), in at least two points")
    p = [b[0] - a[0] for a, b in pairwise(vertices)]
    q = [b[1] - a[1] for a, b in pairwise(vertices)]
    if min(p) <= 0 or min(q) < 0 or vertices[-1][1] > 1:
        raise ValueError("x must increase, L(x) must not decrease, and L(1) must be at most 1")
    if any(a[1] * b[0] > b[1] * a[0] for a, b in pairwise(zip(p, q, strict=True))):
        raise ValueError("L must be convex")
    return of_pair([*p, 0], [*q, 1 - vertices[-1][1]])


def _profile(cost: Parts, side: str, sticks: int | None) -> Sticks:
    """Sticks of one direction of a cost, at factors not below exp(epsilon)."""
    if cost.mu_squared and not cost.atoms:
        return _plain(cost, _epsilons(cost, (), sticks))
    atoms = tuple(_one_sided(atom, side) for atom in cost.atoms)
    epsilons = _epsilons(cost, atoms, sticks)
    bounds = [_delta(cost, atoms, epsilon) for epsilon in epsilons]
    return hull(np.array([_factor(epsilon) for epsilon in epsilons]), np.array(bounds))


def _plain(cost: Parts, epsilons: list[Fraction]) -> Sticks:
    """The same for a cost without atoms, by Theorem T at the factors themselves."""
    factors = np.unique(np.exp([float(epsilon) for epsilon in epsilons]))
    bounds = []
    with balls.precision(balls.FIRST):
        mu, w = balls.ball(cost.mu_squared).sqrt(), balls.exp(balls.ball(cost.epsilon))
        failure, variation = balls.ball(cost.delta), balls.ball(cost.variation)
        for a in map(arb, factors.tolist()):
            mixed = (w * gaussian_stick(mu, a / w) + gaussian_stick(mu, a * w)) / (1 + w)
            bounds.append(up(mixed + failure + (1 + a) * variation))
    return hull(factors, np.array(bounds))


def _raised(sticks: Sticks, failure: Fraction) -> Sticks:
    """The sticks of the other order where the failure is known of the first one only: a f instead of f."""
    factors, bounds = sticks
    with balls.precision(balls.FIRST):
        lost, pairs = balls.ball(failure), zip(factors.tolist(), bounds.tolist(), strict=True)
        raised = [up(arb(d) + (arb(a) - 1) * lost) for a, d in pairs]
    return hull(factors, np.array(raised))


def _followed(cost: Parts, side: str, sticks: int | None) -> Sticks:
    """The sticks of the other order from those of this one at factors below 1: H_a back is 1 - a (1 - H_1/a)."""
    atoms = tuple(_one_sided(atom, side) for atom in cost.atoms)
    epsilons = _epsilons(cost, atoms, sticks)
    bounds = [Fraction(_delta(cost, atoms, -epsilon)) for epsilon in epsilons]
    with balls.precision(balls.FIRST):
        found = [up(1 - balls.exp(balls.ball(e)) * balls.ball(1 - d)) for e, d in zip(epsilons, bounds, strict=True)]
    return hull(np.array([_factor(epsilon) for epsilon in epsilons]), np.array(found))


def _delta(cost: Parts, atoms: tuple[Atom, ...], epsilon: Fraction) -> float:
    return composition.delta(
        mu_squared=cost.mu_squared,
        pure=cost.epsilon,
        failure=cost.delta,
        variation=cost.variation,
        atoms=atoms,
        epsilon=epsilon,
    )


def _factor(epsilon: Fraction) -> float:
    return balls.above(lambda: balls.exp(balls.ball(epsilon)))


def _one_sided(atom: Atom, side: str) -> Atom:
    branches = atom.add if side == "add" else atom.remove
    return Atom(branches, branches)


def _epsilons(cost: Parts, atoms: tuple[Atom, ...], sticks: int | None) -> list[Fraction]:
    """Where to look at the profile of a cost: evenly as far as its loss reaches, and where it may have a kink."""
    spread = cost.mu_squared + sum((max(b.mu_squared for b in atom.add) for atom in atoms), Fraction(0))
    shift = cost.epsilon + sum((max(b.shift for b in atom.add) for atom in atoms), Fraction(0))
    if not spread and not atoms:
        return [Fraction(0), shift]
    reach = float(shift) + math.sqrt(spread) * (FARTHEST + math.sqrt(spread) / 2)
    many = any(len(atom.add) > _FEW for atom in atoms)
    count = sticks or (COARSEST if many else COARSE)
    even = {Fraction(round(2**20 * min(reach, 600.0) * i / count), 2**20) for i in range(count + 1)}
    return sorted(even | {cost.epsilon, shift})


def _normal(p: Sequence[Real]) -> list[Fraction]:
    """A law as exact rationals; what rounding took from its sum is given back in proportion."""
    masses = [nonnegative(value, "a probability") for value in p]
    total = sum(masses, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise ValueError("the probabilities of a law must have the sum 1")
    return [value / total for value in masses]


def _finite(p: list[Fraction], q: list[Fraction]) -> Sticks:
    """H_a(P||Q) at the likelihood ratios that are at least 1, where it bends: exact, rounded up."""
    ratios = {Fraction(1), *(x / y for x, y in zip(p, q, strict=True) if y and x > y)}
    at = [Fraction(float_up(ratio)) for ratio in sorted(ratios)]
    bounds = [sum((max(Fraction(0), x - a * y) for x, y in zip(p, q, strict=True)), Fraction(0)) for a in at]
    return hull(np.array([float(a) for a in at]), np.array([min(1.0, float_up(d)) for d in bounds]))
