"""Which runs of objective perturbation a budget affords: how much noise, and how small a ridge.

All of it is public. Proofs: Theorems 2 and 3 of ``robust.proof.md``, Theorem 2 of ``glm.proof.md``, whose line numbers
the comments carry, and Theorem 2 of ``softmax.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from snugdp.accounting import gaussian
from snugdp.accounting.objective import glm, linear, multiclass, removal
from snugdp.accounting.objective.run import RunCost, smallest_ridge, within
from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.perturbation import (
    GLMRun,
    SoftmaxModel,
    as_kappa,
    as_ridge,
    check_composable,
    m_squared,
    root_above,
    root_below,
)
from snugdp.tables.losses.losses import Loss, Softmax

_SMALLER_KAPPAS = [1 - Fraction(k, 256) for k in (0, 1, 2, 4, 8, 16, 32, 64, 128, 192)]  # of one that did not fit
_COMPANY_KAPPAS = [Fraction(k, 20) for k in (21, 20, 19, 18, 17, 16, 15, 14, 12, 10, 8, 6, 4, 2, 1)]  # of epsilon
_COMPOSABLE_KAPPA = Fraction(2)  # over m: half the ridge for a tenth more noise
_SOFTMAX_KAPPA = Fraction(1, 6)  # of epsilon: what the determinant costs
_ATTEMPTS = 40


def affordable(
    budget: Budget, runs: Sequence[Fraction], gaussian_part: Fraction = Fraction(0)
) -> tuple[tuple[Fraction, ...], Fraction]:
    """The m of runs of class T, and the mu of a Gaussian release beside them, by their shares of M squared.

    Guarantee: with ridges of at least ``least_ridges``, all of it together fits the budget.

    >>> (m,), mu = affordable(Budget(1, 1e-6), [Fraction(99, 100)], Fraction(1, 100))
    >>> round(float(m), 4), round(float(mu), 4)
    (0.2279, 0.0229)
    """
    total = gaussian.mu(budget.epsilon, budget.delta / 2 ** len(runs))
    if total <= 0 or sum(runs) + gaussian_part > 1:
        raise ValueError("the budget is too small: delta must be greater than 0, and shares at most 1 together")
    return shared(total, runs, gaussian_part)


def shared(total: float, runs: Sequence[Fraction], rest: Fraction) -> tuple[tuple[Fraction, ...], Fraction]:
    """Roots of the shares of the square, rounded down."""
    square = Fraction(total) ** 2
    return tuple(root_below(share * square) for share in runs), root_below(rest * square)


def least_ridges(
    design: Design, budget: Budget, m: Sequence[Fraction], mu: Fraction, parts: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    """The smallest ridges of runs of class T of these m, beside a Gaussian release mu; kappas in proportion to parts.

    Guarantee: with these ridges, or larger ones, all of it fits the budget (``robust.proof.md``, Theorem 2).
    """
    squares = [m_squared(design, size) for size in m]
    limit = linear.largest_kappa(budget.epsilon, budget.delta, squares, list(parts), mu**2)
    last = smallest_ridge(design.x_squared, limit * parts[-1])
    return tuple(last * parts[-1] / part for part in parts)


def least_sharp_ridge(design: Design, budget: Budget, m: Fraction, mu: Fraction) -> tuple[Fraction, bool]:
    """The smallest ridge of one run of class T beside a Gaussian release mu, and whether it needs the sharp bound.

    Guarantee: with this ridge all of it fits the budget (``robust.proof.md``, Theorem 3).
    """
    plain = least_ridges(design, budget, [m], mu, [Fraction(1)])[0]
    limit = removal.largest_kappa(budget.epsilon, budget.delta, m_squared(design, m), mu**2)
    if not limit or (ridge := smallest_ridge(design.x_squared, limit)) >= plain:
        return plain, False
    run = RunCost(m_squared(design, m), design.x_squared / ridge, "class_t_sharp")
    if not within(budget.epsilon, budget.delta, [run], mu**2):
        return plain, False
    return ridge, True


@lru_cache(maxsize=256)
def lone_run(design: Design, budget: Budget, loss: Loss, ridge: Fraction | None = None) -> GLMRun:
    """The run that a budget affords on its own, with the smallest ridge; for bounded curvature, with this ridge.

    Guarantee: its cost fits the budget (``glm.proof.md``, Theorem 2).
    """
    if loss.kind == "sign_changing":
        lam = as_ridge(design, loss, budget.epsilon / 4) if ridge is None else ridge
        kappa = as_kappa(design, loss, lam)
        return GLMRun(design, loss, _afforded(glm.calibrate(budget.epsilon, budget.delta, loss.kind, kappa=kappa)), lam)
    m = _afforded(glm.calibrate(budget.epsilon, budget.delta, loss.kind))  # 1
    limit = glm.free_kappa(budget.epsilon, m**2, loss.kind)
    runs = (GLMRun(design, loss, m, as_ridge(design, loss, part * limit)) for part in _SMALLER_KAPPAS)
    return _first_fitting(runs, budget, Cost())


def company_run(design: Design, budget: Budget, loss: Loss, m: Fraction, mu_squared: Fraction) -> GLMRun:
    """The run of this m with the smallest ridge at which it fits the budget beside a Gaussian part.

    Guarantee: both together fit the budget (``glm.proof.md``, Theorem 2).
    """
    runs = (GLMRun(design, loss, m, as_ridge(design, loss, part * budget.epsilon)) for part in _COMPANY_KAPPAS)
    return _first_fitting(runs, budget, Cost(mu_squared=mu_squared))


def _first_fitting(runs: Iterable[GLMRun], budget: Budget, company: Cost) -> GLMRun:
    for run in runs:
        if (run.cost + company).fits(budget):  # 2
            return run
    raise _nothing()


@lru_cache(maxsize=256)
def gaussian_runs(
    design: Design, square: Fraction, losses: tuple[Loss, ...], ridge: Fraction | None = None
) -> tuple[GLMRun, ...]:
    """Runs, one for each loss, whose costs are Gaussian; together mu squared is at most ``square``.

    All losses are one but for the class, and no cost depends on which class it is. Without a ridge, kappa is twice m.
    """
    loss, each = losses[0], square / len(losses)
    check_composable(loss)
    m = Fraction(math.sqrt(each) * (1 - 2.0**-40))
    for _ in range(_ATTEMPTS):  # 3
        lam = as_ridge(design, loss, _COMPOSABLE_KAPPA * m) if ridge is None else ridge
        run = GLMRun(design, loss, m, lam, composable=True)
        spent = run.cost.mu_squared
        if spent <= each:
            return tuple(replace(run, loss=loss) for loss in losses)
        m = m * Fraction(math.sqrt(each / spent) * (1 - 2.0**-20))
    raise _nothing()


@lru_cache(maxsize=64)
def softmax_run(
    design: Design, budget: Budget, loss: Softmax, ridge: Fraction | None = None, mu_squared: Fraction = Fraction(0)
) -> SoftmaxModel:
    """The run with the least noise at this ridge, beside a Gaussian part.

    Guarantee: both together fit the budget (``softmax.proof.md``, Theorem 2).
    """
    lam = as_ridge(design, loss, budget.epsilon * _SOFTMAX_KAPPA) if ridge is None else ridge
    mu = root_above(mu_squared) if mu_squared else Fraction(0)
    kappa = as_kappa(design, loss, lam)
    m = _afforded(multiclass.softmax(budget.epsilon, budget.delta, loss.classes, kappa, mu=mu))
    run = SoftmaxModel(design, loss, m, lam)
    if not (run.cost + Cost(mu_squared=mu_squared)).fits(budget):
        raise _nothing()
    return run


def gaussian_square(budget: Budget) -> Fraction:
    """The largest mu squared of one Gaussian release, rounded down."""
    return _afforded(gaussian.mu(budget.epsilon, budget.delta)) ** 2


def nothing_left(beside: Fraction) -> ValueError:
    """For a budget that affords no fit, alone or beside a Gaussian release of mu squared ``beside``."""
    if beside:
        return ValueError(
            "the budget is too small beside the selection: give a larger epsilon, or a smaller selection_share"
        )
    return ValueError("the budget is too small: give a larger epsilon or delta")


def _afforded(value: float) -> Fraction:
    if not value > 0:
        raise _nothing()
    return Fraction(value)


def _nothing() -> ValueError:
    return ValueError("the budget is too small: give a larger epsilon or delta, or a larger ridge")
