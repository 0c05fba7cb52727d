"""Runs of objective perturbation, for robust losses, generalised linear models and softmax; which a budget affords.

Proofs: ``robust.proof.md``, ``glm.proof.md`` (Theorem 1 of each) and ``softmax.proof.md`` (Theorem 2), whose line
numbers the comments carry: they are the same in all three. How much noise and how small a ridge a budget affords is
public: Theorems 2 and 3 of ``robust.proof.md``, Theorem 2 of ``glm.proof.md`` and of ``softmax.proof.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.accounting.objective import corners, glm, linear, multiclass, removal
from snugdp.accounting.objective.multiclass import SoftmaxBound, SoftmaxRun
from snugdp.accounting.objective.run import CLASS_C, Kind, RunCost, smallest_ridge, within
from snugdp.accounting.objective.run import Unit as Neighbour
from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.linear.base import Design, Fit, of_design
from snugdp.mechanisms.objective.minimiser import PerturbedLoss, check_objective
from snugdp.noise import Gaussian, Noise
from snugdp.propose.forecast import Accuracy, Forecast, Note
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber, LogCosh, Loss, PseudoHuber, Softmax
from snugdp.tables.rows import Rows

Robust: TypeAlias = LogCosh | PseudoHuber | Huber
Point: TypeAlias = tuple[Fraction, ...]

_TARGET_BITS = 17  # of a coefficient below the bound on a target: a cell is far below the noise
_BEND_BITS = 20  # of x . theta below the scale on which the loss bends
_MEAN_CURVATURE = 0.6  # forecasts: the mean second derivative, as a part of the largest
_MIN_TARGET_CELLS = 1 << 12

_SMALLER_KAPPAS = [1 - Fraction(k, 256) for k in (0, 1, 2, 4, 8, 16, 32, 64, 128, 192)]  # of one that did not fit
_COMPANY_KAPPAS = [Fraction(round(3200 * 0.99**k), 1000) for k in range(410)]  # of epsilon
_COMPOSABLE_KAPPA = Fraction(2)  # over m: half the ridge for a tenth more noise
_SOFTMAX_KAPPA = Fraction(1, 6)  # of epsilon: what the determinant costs
_CORNER_KAPPA = Fraction(2, 11)  # of epsilon, where it is followed level by level
_ONE = Fraction(1)  # the most it is for persons
_ATTEMPTS = 40


@dataclass(frozen=True)
class ObjectiveRun(ABC):
    """One run: the minimiser of the losses + ridge/2 |theta - centre|**2 + b . theta, on a public grid.

    ``m``: the largest gradient of a row, or of all rows of a person, over the deviation of b. What it costs, subclasses
    say.

    Guarantee: ``cost``, when one row comes or goes, whatever the rows hold and for any centre that is public or was
    released before: Theorem 1 of the subclass's proof. Where the design has a weight, when one person comes or goes
    whose rows weigh at most so much together (``persons.proof.md``, Theorem 1).
    """

    design: Design
    loss: Loss | Softmax
    m: Fraction
    ridge: Fraction

    def __post_init__(self) -> None:
        if self.m <= 0 or self.ridge <= 0:
            raise ValueError("m and ridge must be greater than 0")
        if self.design.weight is None:
            self.design.require_single_rows("objective perturbation without weights")
        check_objective(self.design, self.loss, self.ridge)

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of b: B L0 / m, rounded up; for persons W times that, W their weight."""
        return self.loss.slope * _ratio(self.design, self.m)  # 1

    @property
    def kappa(self) -> Fraction:
        """c0 B squared over the ridge, exactly; for persons W times that."""
        return as_kappa(self.design, self.loss, self.ridge)

    @property
    @abstractmethod
    def run(self) -> RunCost | SoftmaxRun:
        """What accounting needs to know, exactly, for the sigma in use."""

    @property
    def cost(self) -> Cost:
        """One atom, and the little that its levels do not follow."""
        run = self.run
        return Cost(atoms=(run.atom,), delta=run.failure)

    @property
    @abstractmethod
    def grid(self) -> int:
        """Coefficients are multiples of 2**grid."""

    @property
    def noise_at_most(self) -> float:
        """No coefficient has more noise than this, in the root mean square; with many rows it has far less."""
        return float(self.sigma / self.ridge)

    def noise_for(self, rows: int) -> float:
        """About the noise of a coefficient for so many rows, spread evenly over all directions."""
        curvature = _MEAN_CURVATURE * float(self.loss.curvature * self.design.x_squared) * rows / self.design.entries
        return float(self.sigma) / (float(self.ridge) + curvature)

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for so many rows, spread evenly over all directions."""
        noise = self.noise_for(rows)
        return Accuracy(noise, noise**2 * float(self.design.x_squared))

    def draw(self, rows: Secret[Rows], noise: Noise, centre: Sequence[Fraction] | None = None) -> Point:
        """The exact minimiser, rounded to the grid; of a softmax model class by class."""
        problem = rows.map(
            lambda r: PerturbedLoss(of_design(r, self.design), self.design, self.loss, self.ridge, centre)
        )
        return tuple(noise.minimiser(problem, Gaussian(self.sigma), grid=self.grid))  # 2, 3

    @property
    def released(self) -> dict[str, float]:
        """The public numbers of the run."""
        names = ("ridge", "sigma", "m", "noise_at_most")
        whose = {} if self.design.weight is None else {"max_rows": float(self.design.weight)}
        return {**{name: float(getattr(self, name)) for name in names}, **whose}


@dataclass(frozen=True)
class Perturbation(ObjectiveRun):
    """A run with a robust loss, for a line.

    ``kind``: which bound. ``"class_t"`` (log-cosh, pseudo-Huber) pays nothing for the ridge down to a limit that the
    budget sets; ``"sign_changing"``, always that of Huber, holds for any ridge; ``"class_t_sharp"`` follows the loss of
    a removal level by level.

    Guarantee: ``cost``, when one row comes or goes, whatever the targets are and for any centre that is public or was
    released before (``robust.proof.md``, Theorem 1). It does not depend on the scale of the loss.
    """

    loss: Robust
    kind: Kind = "class_t"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.loss, Huber):
            object.__setattr__(self, "kind", "sign_changing")

    @property
    def run(self) -> RunCost:
        """What accounting needs to know, exactly, for the sigma in use."""
        return run_cost(self.design, self.m, self.kappa, self.kind)

    @property
    def grid(self) -> int:
        """Coefficients are multiples of 2**grid: about 2**-17 of the bound on a target over that on a row."""
        return _exponent(self.design.y_bound / self.design.x_bound) - _TARGET_BITS

    @property
    def released(self) -> dict[str, float]:
        """The public numbers of the run."""
        return {"tau": float(self.loss.slope), **super().released}


@dataclass(frozen=True)
class GLMRun(ObjectiveRun):
    """A run for a generalised linear model.

    ``composable``: the cost as that of one Gaussian release, for a loss whose slope never changes its sign; otherwise
    it is one atom.

    Guarantee: ``cost``, when one row comes or goes, whatever the rows hold and for any centre that is public or was
    released before (``glm.proof.md``, Theorem 1).
    """

    loss: Loss
    composable: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels(self.design)
        if self.composable:
            check_composable(self.loss)

    @property
    def run(self) -> RunCost:
        """What accounting needs to know, exactly, for the sigma in use."""
        return run_cost(self.design, self.m, self.kappa, self.loss.kind)

    @property
    def cost(self) -> Cost:
        """One atom, or one Gaussian part."""
        return _glm_cost(self.run, self.composable)

    @property
    def grid(self) -> int:
        """Coefficients are multiples of 2**grid."""
        rate = self.loss.log_lipschitz or self.loss.curvature / self.loss.slope
        return _exponent(1 / (rate * self.design.x_bound)) - _BEND_BITS


@dataclass(frozen=True)
class SoftmaxModel(ObjectiveRun):
    """A run for one softmax model of several classes.

    ``bound``: how a removal is followed (``SoftmaxRun``).

    Guarantee: ``cost``, when one row comes or goes (``softmax.proof.md``, Theorem 2).
    """

    loss: Softmax
    bound: SoftmaxBound = "trace"

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of b: the root of 2 times B / m, rounded up; for persons W times that."""
        return smallest_ridge(self.design.together * root_above(2 * self.design.x_squared), self.m, 44)  # 1

    @property
    def run(self) -> SoftmaxRun:
        """What accounting needs to know, exactly, for the sigma in use."""
        square = 2 * self.design.together**2 * self.design.x_squared / self.sigma**2
        return SoftmaxRun(square, self.kappa, self.loss.classes, unit_of(self.design), self.bound)

    @property
    def grid(self) -> int:
        """Coefficients are multiples of 2**grid."""
        return _exponent(1 / self.design.x_bound) - _BEND_BITS

    def noise_for(self, rows: int) -> float:
        """About the noise of a coefficient for so many rows, spread evenly over directions and classes."""
        each = rows / self.design.entries / self.loss.classes
        return float(self.sigma) / (float(self.ridge) + _MEAN_CURVATURE * float(self.design.x_squared) * each)


@lru_cache(maxsize=512)
def _glm_cost(run: RunCost, composable: bool) -> Cost:
    return Cost(mu_squared=run.gaussian_squared) if composable else Cost(atoms=(run.atom,), delta=run.failure)


def coefficients_of(
    runs: Sequence[ObjectiveRun], rows: Secret[Rows], noise: Noise, centre: Sequence[Fraction] | None = None
) -> NDArray[np.float64]:
    """What the runs release, one after the other: a row for each run, or for each class of a softmax model."""
    drawn = [[float(value) for value in run.draw(rows, noise, centre)] for run in runs]
    return np.concatenate(drawn).reshape(-1, runs[0].design.entries)


def fit_of(theta: NDArray[np.float64], released: Mapping[str, float]) -> Fit:
    """What runs released. The noise of a coefficient depends on the rows and is not: only a bound on it is known."""
    return Fit(theta if len(theta) > 1 else theta[0], None, dict(released))


def robust_line(noise: float) -> Forecast:
    """What is estimated with a robust loss, and the largest noise of a coefficient."""
    return Forecast(notes=(Note("robust-line"), Note("scaled-noise-at-most", {"noise": noise})))


def total_cost(runs: Sequence[ObjectiveRun]) -> Cost:
    """What several runs cost together."""
    return sum((run.cost for run in runs[1:]), runs[0].cost)


def check_labels(design: Design) -> None:
    """Refuse a grid on which labels and counts cannot be told apart."""
    if design.row_map.target_limit < _MIN_TARGET_CELLS:
        raise ValueError("the grid is too coarse for labels: leave out bits, or give at least 12")


def check_composable(loss: Loss) -> None:
    """Refuse a loss without a Gaussian cost."""
    if loss.kind not in CLASS_C:
        raise ValueError("a composable cost is proved only for losses whose slope never changes its sign")


def run_cost(design: Design, m: Fraction, kappa: Fraction, kind: Kind) -> RunCost:
    """What accounting needs to know of a run, exactly, for the sigma in use."""
    return RunCost(m_squared(design, m), kappa, kind, unit=unit_of(design))


def unit_of(design: Design) -> Neighbour:
    """What neighbours differ in."""
    return "row" if design.weight is None else "person"


def m_squared(design: Design, m: Fraction) -> Fraction:
    """(W B L0 / sigma) squared, exactly, for the sigma in use: not above m squared, and the same for every L0."""
    return design.together**2 * design.x_squared / _ratio(design, m) ** 2


def _ratio(design: Design, m: Fraction) -> Fraction:
    """Sigma over the slope L0: W B / m, rounded up. W is 1 for single rows, and what those of a person weigh."""
    return smallest_ridge(design.together * design.x_bound, m, 44)


def as_kappa(design: Design, loss: Loss | Softmax, ridge: Fraction) -> Fraction:
    """W c0 B squared over the ridge."""
    return loss.c0 * design.together * design.x_squared / ridge


def as_ridge(design: Design, loss: Loss | Softmax, kappa: Fraction) -> Fraction:
    """The smallest ridge of few digits with at most this kappa."""
    return smallest_ridge(loss.c0 * design.together * design.x_squared, kappa)


def root_below(square: Fraction) -> Fraction:
    """The square root, rounded down."""
    return Fraction(math.isqrt(math.floor(square * 4**60)), 2**60)


def root_above(square: Fraction) -> Fraction:
    """The square root, rounded up."""
    return Fraction(math.isqrt(math.ceil(square * 4**60)) + 1, 2**60)


def _exponent(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


# --- which runs a budget affords: the line numbers are those of Theorem 2 of glm.proof.md ---


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
    if design.weight is not None:
        if len(m) > 1:
            raise ValueError(
                'two runs are for one row of each person: use max_rows=1, or another rule than "two_stage"'
            )
        return (_person_ridge(design, budget, squares[0], mu),)
    limit = linear.largest_kappa(budget.epsilon, budget.delta, squares, list(parts), mu**2)
    last = smallest_ridge(design.x_squared, limit * parts[-1])
    return tuple(last * parts[-1] / part for part in parts)


def least_sharp_ridge(design: Design, budget: Budget, m: Fraction, mu: Fraction) -> tuple[Fraction, bool]:
    """The smallest ridge of one run of class T beside a Gaussian release mu, and whether it needs the sharp bound.

    Guarantee: with this ridge all of it fits the budget (``robust.proof.md``, Theorem 3; for persons, whose bound is
    sharp already, ``persons.proof.md``, Theorem 2).
    """
    if design.weight is not None:
        return _person_ridge(design, budget, m_squared(design, m), mu), False
    plain = least_ridges(design, budget, [m], mu, [Fraction(1)])[0]
    limit = removal.largest_kappa(budget.epsilon, budget.delta, m_squared(design, m), mu**2)
    if not limit or (ridge := smallest_ridge(design.x_squared, limit)) >= plain:
        return plain, False
    run = RunCost(m_squared(design, m), design.x_squared / ridge, "class_t_sharp")
    if not within(budget.epsilon, budget.delta, [run], mu**2):
        return plain, False
    return ridge, True


def _person_ridge(design: Design, budget: Budget, square: Fraction, mu: Fraction) -> Fraction:
    """The smallest ridge of one run of class T for persons beside a Gaussian release mu."""
    limit = glm.largest_kappa(budget.epsilon, budget.delta, square, "class_t", mu**2, unit="person")
    return smallest_ridge(design.together * design.x_squared, limit)


@lru_cache(maxsize=256)
def lone_run(design: Design, budget: Budget, loss: Loss, ridge: Fraction | None = None) -> GLMRun:
    """The run that a budget affords on its own, with the smallest ridge; for bounded curvature, with this ridge.

    Guarantee: its cost fits the budget (``glm.proof.md``, Theorem 2).
    """
    unit = unit_of(design)
    if loss.kind == "sign_changing":
        lam = as_ridge(design, loss, budget.epsilon / 4) if ridge is None else ridge
        kappa = as_kappa(design, loss, lam)
        m = _afforded(glm.calibrate(budget.epsilon, budget.delta, loss.kind, kappa=kappa, unit=unit))
        return GLMRun(design, loss, m, lam)
    m = _afforded(glm.calibrate(budget.epsilon, budget.delta, loss.kind, unit=unit))  # 1
    limit = glm.free_kappa(budget.epsilon, m**2, loss.kind, unit)
    runs = (GLMRun(design, loss, m, as_ridge(design, loss, part * limit)) for part in _SMALLER_KAPPAS)
    return _first_fitting(runs, budget, Cost())


@lru_cache(maxsize=256)
def company_run(design: Design, budget: Budget, loss: Loss, m: Fraction, mu_squared: Fraction) -> GLMRun:
    """The run of this m with the smallest ridge at which it fits the budget beside a Gaussian part.

    Guarantee: both together fit the budget (``glm.proof.md``, Theorem 2).
    """
    company = Cost(mu_squared=mu_squared)

    def run(part: Fraction) -> GLMRun:
        return GLMRun(design, loss, m, as_ridge(design, loss, part * budget.epsilon))

    first = bisect_left(_COMPANY_KAPPAS, True, key=lambda part: (run(part).cost + company).fits(budget))
    return _first_fitting(map(run, _COMPANY_KAPPAS[first:]), budget, company)


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
    design: Design,
    budget: Budget,
    loss: Softmax,
    ridge: Fraction | None = None,
    *,
    mu_squared: Fraction = Fraction(0),
    bound: SoftmaxBound = "corners",
) -> SoftmaxModel:
    """The run with the least noise at this ridge, beside a Gaussian part.

    ``bound``: ``"corners"`` stands for the better of the two bounds.

    Guarantee: both together fit the budget (``softmax.proof.md``, Theorem 2).
    """
    mu = root_above(mu_squared) if mu_squared else Fraction(0)
    sharp = None if bound == "trace" or design.weight is not None else _sharp_run(design, budget, loss, ridge, mu)
    if sharp is not None:
        return sharp
    most = budget.epsilon * _SOFTMAX_KAPPA if design.weight is None else min(budget.epsilon * _SOFTMAX_KAPPA, _ONE)
    lam = as_ridge(design, loss, most) if ridge is None else ridge
    kappa = as_kappa(design, loss, lam)
    unit = unit_of(design)
    m = _afforded(multiclass.softmax(budget.epsilon, budget.delta, loss.classes, kappa, mu=mu, unit=unit))
    run = SoftmaxModel(design, loss, m, lam)
    if not _both_fit(run, budget, mu_squared):
        raise _nothing()
    return run


def _sharp_run(
    design: Design, budget: Budget, loss: Softmax, ridge: Fraction | None, mu: Fraction
) -> SoftmaxModel | None:
    """As ``softmax_run``, removals followed level by level; nothing where that is no gain."""
    lam = as_ridge(design, loss, budget.epsilon * _CORNER_KAPPA) if ridge is None else ridge
    kappa, levels = as_kappa(design, loss, lam), (budget.epsilon, budget.delta)

    def run(m: float) -> SoftmaxModel:
        return SoftmaxModel(design, loss, Fraction(m), lam, "corners")

    def fits(m: float) -> bool:
        own = run(m).run
        return corners.usable(own.m_squared, own.kappa, own.classes) and _both_fit(run(m), budget, mu**2)

    m = multiclass.softmax_by_corners(*levels, loss.classes, kappa, mu=mu, fits=fits)
    plain = multiclass.softmax(*levels, loss.classes, kappa, mu=mu)
    return run(m) if m > plain else None


def _both_fit(run: SoftmaxModel, budget: Budget, mu_squared: Fraction) -> bool:
    return (run.cost + Cost(mu_squared=mu_squared)).fits(budget)


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
