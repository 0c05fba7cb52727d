"""One run of objective perturbation, and what a budget affords. Proof: ``robust.proof.md``.

The numbers in the comments are those of the proof's Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.objective import linear as accounting
from snugdp.accounting.objective import removal
from snugdp.accounting.objective.linear import Run
from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.minimiser import PerturbedLoss, check_objective
from snugdp.mechanisms.objective.scale import of_design
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber, LogCosh, PseudoHuber
from snugdp.tables.rows import Rows

Robust: TypeAlias = LogCosh | PseudoHuber | Huber
Point: TypeAlias = tuple[Fraction, ...]

_FINE = 17  # binary digits of a coefficient below the bound on a target: a cell is far below the noise


@dataclass(frozen=True)
class Perturbation:
    """One run: the minimiser of loss + ridge/2 |theta - centre|**2 + b . theta, on a public grid.

    ``m``: largest gradient of a row over the deviation of b. A loss of class T (log-cosh, pseudo-Huber) pays nothing
    for the ridge down to a limit that the budget sets; ``general`` asks for the bound that holds for any ridge, and
    ``sharp`` for the one that follows the loss of a removal level by level.

    Guarantee: ``cost``, when one row comes or goes, whatever the targets are and for any centre that is public or was
    released before (``robust.proof.md``, Theorem 1). It does not depend on the scale of the loss.
    """

    design: Design
    loss: Robust
    m: Fraction
    ridge: Fraction
    general: bool = False
    sharp: bool = False

    def __post_init__(self) -> None:
        if self.m <= 0 or self.ridge <= 0:
            raise ValueError("m and ridge must be greater than 0")
        check_objective(self.design, self.loss, self.ridge, (Fraction(0),) * self.design.entries)
        if isinstance(self.loss, Huber) and not self.general:
            object.__setattr__(self, "general", True)

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of b: B tau / m, rounded up."""
        return self.loss.slope * _ratio(self.design, self.m)  # 1

    @property
    def kappa(self) -> Fraction:
        """B squared over the ridge, exactly."""
        return self.design.x_squared / self.ridge

    @property
    def run(self) -> Run:
        """What accounting needs to know, exactly, for the sigma in use."""
        return Run(m_squared(self.design, self.m), self.kappa, self.general, self.sharp and not self.general)

    @property
    def cost(self) -> Cost:
        """One atom, and the little that its levels do not follow."""
        run = self.run
        return Cost(atoms=(run.atom,), delta=run.failure)

    @property
    def grid(self) -> int:
        """Coefficients are multiples of 2**grid: about 2**-17 of the bound on a target over that on a row."""
        reach = self.design.y_bound / self.design.x_bound
        return reach.numerator.bit_length() - reach.denominator.bit_length() - _FINE

    @property
    def noise_at_most(self) -> float:
        """No coefficient has more noise than this, in the root mean square; with many rows it has far less."""
        return float(self.sigma / self.ridge)

    def draw(self, rows: Secret[Rows], noise: Noise, centre: Sequence[Fraction] | None = None) -> Point:
        """The exact minimiser, rounded to the grid."""
        middle = (Fraction(0),) * self.design.entries if centre is None else tuple(centre)
        problem = rows.map(
            lambda r: PerturbedLoss(of_design(r, self.design), self.design, self.loss, self.ridge, middle)
        )
        return tuple(noise.minimiser(problem, Gaussian(self.sigma), grid=self.grid))  # 2, 3


def fit_of(run: Perturbation, theta: Point, more: Mapping[str, float] | None = None) -> Fit:
    """What a run released. The noise of a coefficient depends on the rows and is not: only a bound on it is known."""
    numbers = {
        "tau": float(run.loss.slope),
        "ridge": float(run.ridge),
        "sigma": float(run.sigma),
        "m": float(run.m),
        "noise_at_most": run.noise_at_most,
    }
    return Fit(np.array([float(value) for value in theta]), None, {**numbers, **(more or {})})


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
        raise ValueError("the budget affords nothing: delta must be greater than 0, and shares at most 1 together")
    return shared(total, runs, gaussian_part)


def least_ridges(
    design: Design, budget: Budget, m: Sequence[Fraction], mu: Fraction, parts: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    """The smallest ridges of runs of class T of these m, beside a Gaussian release mu; kappas in proportion to parts.

    Guarantee: with these ridges, or larger ones, all of it fits the budget (``robust.proof.md``, Theorem 2).
    """
    squares = [m_squared(design, size) for size in m]
    limit = accounting.largest_kappa(budget.epsilon, budget.delta, squares, list(parts), mu**2)
    last = accounting.smallest_ridge(design.x_squared, limit * parts[-1])
    return tuple(last * parts[-1] / part for part in parts)


def least_sharp_ridge(design: Design, budget: Budget, m: Fraction, mu: Fraction) -> tuple[Fraction, bool]:
    """The smallest ridge of one run of class T beside a Gaussian release mu, and whether it needs the sharp bound.

    Guarantee: with this ridge all of it fits the budget (``robust.proof.md``, Theorem 3).
    """
    plain = least_ridges(design, budget, [m], mu, [Fraction(1)])[0]
    limit = removal.largest_kappa(budget.epsilon, budget.delta, m_squared(design, m), mu**2)
    if not limit or (ridge := accounting.smallest_ridge(design.x_squared, limit)) >= plain:
        return plain, False
    run = Run(m_squared(design, m), design.x_squared / ridge, sharp=True)
    if not accounting.within(budget.epsilon, budget.delta, [run], mu**2):
        return plain, False
    return ridge, True


def shared(total: float, runs: Sequence[Fraction], rest: Fraction) -> tuple[tuple[Fraction, ...], Fraction]:
    """Roots of the shares of the square, rounded down."""
    square = Fraction(total) ** 2
    return tuple(root_below(share * square) for share in runs), root_below(rest * square)


def m_squared(design: Design, m: Fraction) -> Fraction:
    """(B tau / sigma) squared, exactly, for the sigma that is used: not above m squared, and the same for every tau."""
    return design.x_squared / _ratio(design, m) ** 2


def _ratio(design: Design, m: Fraction) -> Fraction:
    """Sigma over tau: B / m, rounded up."""
    return accounting.smallest_ridge(design.x_bound, m, 44)


def root_below(square: Fraction) -> Fraction:
    """The square root, rounded down."""
    return Fraction(math.isqrt(math.floor(square * 4**60)), 2**60)
