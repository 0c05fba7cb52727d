"""One run of objective perturbation for a generalised linear model. Proof: ``glm.proof.md``.

The numbers in the comments are those of the proof's Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting.objective import glm, linear
from snugdp.accounting.objective.glm import SharpRun
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.minimiser import PerturbedLoss, check_objective
from snugdp.mechanisms.objective.scale import of_design
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Loss
from snugdp.tables.rows import Rows

Point: TypeAlias = tuple[Fraction, ...]

_FINE = 20  # binary digits of x . theta below the scale on which the loss bends
_CURVED = 0.6  # forecasts: the mean second derivative, as a part of the largest


@dataclass(frozen=True)
class GLMRun:
    """One run: the minimiser of the losses + ridge/2 |theta - centre|**2 + b . theta, on a public grid.

    ``m``: the largest gradient of a row over the deviation of b. ``composable``: the cost as that of one Gaussian
    release, for a loss whose slope never changes its sign; otherwise it is one atom.

    Guarantee: ``cost``, when one row comes or goes, whatever the rows hold and for any centre that is public or was
    released before (``glm.proof.md``, Theorem 1).
    """

    design: Design
    loss: Loss
    m: Fraction
    ridge: Fraction
    composable: bool = False

    def __post_init__(self) -> None:
        if self.m <= 0 or self.ridge <= 0:
            raise ValueError("m and ridge must be greater than 0")
        check_glm(self.design)
        check_objective(self.design, self.loss, self.ridge, (Fraction(0),) * self.design.entries)
        if self.composable and self.loss.kind not in glm.CLASS_C:
            raise ValueError("a composable cost is proved only for losses whose slope never changes its sign")

    @property
    def _ratio(self) -> Fraction:
        """Sigma over the slope: B / m, rounded up."""
        return linear.smallest_ridge(self.design.x_bound, self.m, 44)

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of b: B L0 / m, rounded up."""
        return self.loss.slope * self._ratio  # 1

    @property
    def kappa(self) -> Fraction:
        """c0 B squared over the ridge, exactly."""
        return self.loss.c0 * self.design.x_squared / self.ridge

    @property
    def run(self) -> SharpRun:
        """What accounting needs to know, exactly, for the sigma in use."""
        return SharpRun(self.design.x_squared / self._ratio**2, self.kappa, self.loss.kind)

    @property
    def cost(self) -> Cost:
        """One atom, or one Gaussian part."""
        return _cost(self.run, self.composable)

    @property
    def grid(self) -> int:
        """Coefficients are multiples of 2**grid."""
        rate = self.loss.log_lipschitz or self.loss.curvature / self.loss.slope
        reach = 1 / (rate * self.design.x_bound)
        return reach.numerator.bit_length() - reach.denominator.bit_length() - _FINE

    @property
    def noise_at_most(self) -> float:
        """No coefficient has more noise than this, in the root mean square; with many rows it has far less."""
        return float(self.sigma / self.ridge)

    def noise_for(self, rows: int) -> float:
        """About the noise of a coefficient for so many rows, spread evenly over all directions."""
        curvature = _CURVED * float(self.loss.curvature * self.design.x_squared) * rows / self.design.entries
        return float(self.sigma) / (float(self.ridge) + curvature)

    def draw(self, rows: Secret[Rows], noise: Noise, centre: Sequence[Fraction] | None = None) -> Point:
        """The exact minimiser, rounded to the grid."""
        middle = (Fraction(0),) * self.design.entries if centre is None else tuple(centre)
        problem = rows.map(
            lambda r: PerturbedLoss(of_design(r, self.design), self.design, self.loss, self.ridge, middle)
        )
        return tuple(noise.minimiser(problem, Gaussian(self.sigma), grid=self.grid))  # 2, 3

    @property
    def released(self) -> dict[str, float]:
        """The public numbers of the run."""
        return {
            "ridge": float(self.ridge),
            "sigma": float(self.sigma),
            "m": float(self.m),
            "noise_at_most": self.noise_at_most,
        }


@lru_cache(maxsize=512)
def _cost(run: SharpRun, composable: bool) -> Cost:
    return Cost(mu_squared=run.gaussian_squared) if composable else Cost(atoms=(run.atom,))


def fit_of(theta: Sequence[Fraction], released: Mapping[str, float]) -> Fit:
    """What a run released."""
    return Fit(floats(theta), None, dict(released))


def floats(theta: Sequence[Fraction]) -> NDArray[np.float64]:
    """Released coefficients as floats."""
    return np.array([float(value) for value in theta])


def check_glm(design: Design) -> None:
    """Refuse a grid on which labels and counts cannot be told apart."""
    if design.row_map.target_limit < 1 << 12:
        raise ValueError("the grid is too coarse for labels: leave out bits, or give at least 12")


def check_budget(budget: Budget) -> None:
    """Refuse a budget that no theorem here speaks of."""
    if budget.neighbours is not Neighbours.ADD_REMOVE:
        raise ValueError('this method is proved for neighbours="add_remove" only: give the budget that relation')
    if not budget.delta:
        raise ValueError("this method has Gaussian noise and needs delta > 0, such as 1e-6")


def as_kappa(design: Design, loss: Loss, ridge: Fraction) -> Fraction:
    """c0 B squared over the ridge."""
    return loss.c0 * design.x_squared / ridge


def as_ridge(design: Design, loss: Loss, kappa: Fraction) -> Fraction:
    """The smallest ridge of few digits with at most this kappa."""
    return linear.smallest_ridge(loss.c0 * design.x_squared, kappa)


def root_above(square: Fraction) -> Fraction:
    """The square root, rounded up."""
    return Fraction(math.isqrt(math.ceil(square * 4**60)) + 1, 2**60)
