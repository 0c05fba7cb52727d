"""A point with a provably small gradient, and the Hessian there: what output perturbation of a GLM starts from.

All of it is private. Proof: ``glm.proof.md``, Lemma 1, whose line numbers the comments carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.mechanisms.objective.minimiser import PerturbedLoss
from snugdp.noise.exact.minimiser import norm_above
from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.passes.hessian import HessianEnclosure

_HALVINGS = 8


class SettledPoint(PrivateState):
    """A point, and the Hessian of the losses there as whole numbers of ``unit``. Private."""

    __slots__ = ("gram", "theta", "unit")

    def __init__(self, theta: list[Fraction], gram: list[list[int]], unit: Fraction) -> None:
        self.theta, self.gram, self.unit = theta, gram, unit


@dataclass(frozen=True)
class _PointAt:
    theta: list[Fraction]
    gradient: list[Fraction]
    size: Fraction
    error: Fraction


def settled(problem: PerturbedLoss, tol: Fraction, close: Fraction, fine: int) -> SettledPoint:
    """A point with a gradient of at most ``tol``, and the Hessian there within ``close`` in the Frobenius norm.

    The point is a vector of multiples of 2**-fine.

    Guarantee: for all rows (``glm.proof.md``, Lemma 1). It ends for all rows, and how long it takes depends on
    them.
    """
    theta = small_gradient(problem, tol, fine)
    level = 0
    while True:
        work = HessianEnclosure(problem.gradient_pass(theta, level, hessian=False))
        state = problem.rows.state(work)
        if work.error(state) <= close:  # 5
            return SettledPoint(theta, work.gram(state), work.unit)
        level += 1


def small_gradient(problem: PerturbedLoss, tol: Fraction, fine: int) -> list[Fraction]:
    """Multiples of 2**-fine at which the gradient is at most ``tol``, errors included."""
    found = problem.solve(np.zeros(problem.dimension))
    usable = found.shape == (problem.dimension,) and bool(np.isfinite(found).all())
    start = [Fraction(value) for value in found.tolist()] if usable else [Fraction(0)] * problem.dimension
    level, at = 0, _evaluate(problem, _rounded(start, fine), 0)  # 1
    while at.size + at.error > tol:  # 2
        moved = _moved(problem, at, level, fine) if at.size > 4 * at.error else None  # 3
        if moved is None:
            level += 1  # 4
            moved = _evaluate(problem, at.theta, level)
        at = moved
    return at.theta


def _evaluate(problem: PerturbedLoss, theta: Sequence[Fraction], level: int) -> _PointAt:
    gradient, error = problem.gradient(theta, level)
    return _PointAt(list(theta), gradient, norm_above(gradient), error)


def _rounded(theta: Sequence[Fraction], fine: int) -> list[Fraction]:
    return [Fraction(round(value * 2**fine), 2**fine) for value in theta]


def _moved(problem: PerturbedLoss, at: _PointAt, level: int, fine: int) -> _PointAt | None:
    """A point with a clearly smaller gradient: a part of a Newton step, or a step of plain descent."""
    scale = Fraction(2) ** (at.size.numerator.bit_length() - at.size.denominator.bit_length())
    with np.errstate(all="ignore"):
        change = problem.correct(at.theta, np.array([float(value / scale) for value in at.gradient]))
    for halving in range(_HALVINGS if bool(np.isfinite(change).all()) else 0):
        part = Fraction(1, 1 << halving)
        steps = [part * scale * Fraction(value) for value in change.tolist()]
        target = [value + step for value, step in zip(at.theta, steps, strict=True)]
        new = _evaluate(problem, _rounded(target, fine), level)
        if new.size <= (1 - part / 4) * at.size:
            return new
    return _descended(problem, at, level, fine)


def _descended(problem: PerturbedLoss, at: _PointAt, level: int, fine: int) -> _PointAt | None:
    size = problem.smoothness.numerator.bit_length() - problem.smoothness.denominator.bit_length() + 1
    steepest = Fraction(2) ** size
    target = [value - slope / steepest for value, slope in zip(at.theta, at.gradient, strict=True)]
    new = _evaluate(problem, _rounded(target, fine), level)
    return new if new.size <= (1 - problem.modulus / (4 * steepest)) * at.size else None
