"""One run of objective perturbation: for robust losses, for generalised linear models and for softmax models.

Proofs: ``robust.proof.md``, ``glm.proof.md`` (Theorem 1 of each) and ``softmax.proof.md`` (Theorem 2), whose line
numbers the comments carry: they are the same in all three.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting.objective.multiclass import SoftmaxRun
from snugdp.accounting.objective.run import CLASS_C, Kind, RunCost, smallest_ridge
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.linear.base import Design, Fit, of_design
from snugdp.mechanisms.objective.minimiser import PerturbedLoss, check_objective
from snugdp.noise import Gaussian, Noise
from snugdp.propose.forecast import Accuracy
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber, LogCosh, Loss, PseudoHuber, Softmax
from snugdp.tables.rows import Rows

Robust: TypeAlias = LogCosh | PseudoHuber | Huber
Point: TypeAlias = tuple[Fraction, ...]

_TARGET_BITS = 17  # of a coefficient below the bound on a target: a cell is far below the noise
_BEND_BITS = 20  # of x . theta below the scale on which the loss bends
_MEAN_CURVATURE = 0.6  # forecasts: the mean second derivative, as a part of the largest
_MIN_TARGET_CELLS = 1 << 12


@dataclass(frozen=True)
class ObjectiveRun(ABC):
    """One run: the minimiser of the losses + ridge/2 |theta - centre|**2 + b . theta, on a public grid.

    ``m``: the largest gradient of a row over the deviation of b. What it costs, subclasses say.

    Guarantee: ``cost``, when one row comes or goes, whatever the rows hold and for any centre that is public or was
    released before: Theorem 1 of the subclass's proof.
    """

    design: Design
    loss: Loss | Softmax
    m: Fraction
    ridge: Fraction

    def __post_init__(self) -> None:
        if self.m <= 0 or self.ridge <= 0:
            raise ValueError("m and ridge must be greater than 0")
        check_objective(self.design, self.loss, self.ridge)

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of b: B L0 / m, rounded up."""
        return self.loss.slope * _ratio(self.design, self.m)  # 1

    @property
    def kappa(self) -> Fraction:
        """c0 B squared over the ridge, exactly."""
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
        return {name: float(getattr(self, name)) for name in names}


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
        return RunCost(m_squared(self.design, self.m), self.kappa, self.kind)

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
        return RunCost(m_squared(self.design, self.m), self.kappa, self.loss.kind)

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

    Guarantee: ``cost``, when one row comes or goes (``softmax.proof.md``, Theorem 2).
    """

    loss: Softmax

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of b: the root of 2 times B / m, rounded up."""
        return smallest_ridge(root_above(2 * self.design.x_squared), self.m, 44)  # 1

    @property
    def run(self) -> SoftmaxRun:
        """What accounting needs to know, exactly, for the sigma in use."""
        return SoftmaxRun(2 * self.design.x_squared / self.sigma**2, self.kappa, self.loss.classes)

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
    return Cost(mu_squared=run.gaussian_squared) if composable else Cost(atoms=(run.atom,))


def coefficients_of(
    runs: Sequence[ObjectiveRun], rows: Secret[Rows], noise: Noise, centre: Sequence[Fraction] | None = None
) -> NDArray[np.float64]:
    """What the runs release, one after the other: a row for each run, or for each class of a softmax model."""
    drawn = [[float(value) for value in run.draw(rows, noise, centre)] for run in runs]
    return np.concatenate(drawn).reshape(-1, runs[0].design.entries)


def fit_of(theta: NDArray[np.float64], released: Mapping[str, float]) -> Fit:
    """What runs released. The noise of a coefficient depends on the rows and is not: only a bound on it is known."""
    return Fit(theta if len(theta) > 1 else theta[0], None, dict(released))


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


def m_squared(design: Design, m: Fraction) -> Fraction:
    """(B L0 / sigma) squared, exactly, for the sigma that is used: not above m squared, and the same for every L0."""
    return design.x_squared / _ratio(design, m) ** 2


def _ratio(design: Design, m: Fraction) -> Fraction:
    """Sigma over the slope L0: B / m, rounded up."""
    return smallest_ridge(design.x_bound, m, 44)


def as_kappa(design: Design, loss: Loss | Softmax, ridge: Fraction) -> Fraction:
    """c0 B squared over the ridge."""
    return loss.c0 * design.x_squared / ridge


def as_ridge(design: Design, loss: Loss | Softmax, kappa: Fraction) -> Fraction:
    """The smallest ridge of few digits with at most this kappa."""
    return smallest_ridge(loss.c0 * design.x_squared, kappa)


def root_below(square: Fraction) -> Fraction:
    """The square root, rounded down."""
    return Fraction(math.isqrt(math.floor(square * 4**60)), 2**60)


def root_above(square: Fraction) -> Fraction:
    """The square root, rounded up."""
    return Fraction(math.isqrt(math.ceil(square * 4**60)) + 1, 2**60)


def _exponent(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()
