"""The test of the ridge methods: how curved the data are, and how large a residual can be, released as safe bounds.

Proof: ``posterior.proof.md``, Lemmas 2 and 3, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from snugdp.accounting import gaussian
from snugdp.accounting.output.posterior import log_lipschitz_sensitivity
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.mechanisms.linear.base import Design
from snugdp.noise import Gaussian, Noise, grid_below
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, float_down, rational
from snugdp.numerics.ridge import log_lipschitz, smallest_eigenvalue
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.moments import Moments
from snugdp.tables.rows import Rows

Rule: TypeAlias = Callable[[Fraction], Fraction]  # from the released curvature to the regulariser: public

_CLOSE = Fraction(1, 1 << 20)  # the error of a statistic, as a part of its sensitivity
CURVATURE, RESIDUAL = "test-curvature", "test-residual"  # steps
SHARES: tuple[Real, Real] = (Fraction(1, 20), Fraction(1, 10))
LARGEST = 1e100  # a residual beyond this is no bound at all: refused
_WIDEST = 10**30  # bounds of a design between its inverse and this, so that no float overflows
_SLACK, _FAILURE = Fraction(1, 10), Fraction(1, 20)  # parts of delta


@dataclass(frozen=True)
class RidgeCertificate:
    """What the test released, and the regulariser that follows from it.

    ``curvature``: a lower bound on the smallest eigenvalue of X'X; ``residual``: an upper bound on |y - x'theta*| for
    every row that there is or could be. Each holds except with its own failure probability.
    """

    curvature: float
    ridge: float
    residual: float

    def exact(self) -> tuple[Fraction, Fraction, Fraction]:
        """The three numbers as fractions."""
        return Fraction(self.curvature), Fraction(self.ridge), Fraction(self.residual)


@dataclass(frozen=True)
class Split:
    """How a budget is divided: mu of the two tests and (squared) of the release, failures, slack. Exact numbers."""

    mu_curvature: Fraction
    mu_residual: Fraction
    mu_release_squared: Fraction
    slack: Fraction
    fail_curvature: Fraction
    fail_residual: Fraction
    neighbours: Neighbours

    @classmethod
    def of(cls, budget: Budget, shares: tuple[Real, Real], *, slack: bool) -> Split:
        """The split with these shares of mu squared for the two tests; a share of 0 leaves out the first test."""
        first, second = (rational(share, "test_shares") for share in shares)
        if first < 0 or second <= 0 or first + second >= 1:
            raise ValueError("test_shares are two parts of the budget, at least 0 and above 0, with a sum below 1")
        require(budget)
        failures = (budget.delta * _FAILURE if first else Fraction(0), budget.delta * _FAILURE)
        spare = budget.delta * _SLACK if slack else Fraction(0)
        total = Fraction(gaussian.mu(budget.epsilon, budget.delta - sum(failures) - spare)) ** 2
        mus = [_root(total * share) for share in (first, second)]
        rest = total - mus[0] ** 2 - mus[1] ** 2
        return cls(mus[0], mus[1], rest, spare, *failures, budget.neighbours)

    def costs(self) -> tuple[Cost, Cost, Cost]:
        """Of the two tests and of the release."""
        parts = (
            (self.mu_curvature**2, self.fail_curvature),
            (self.mu_residual**2, self.fail_residual),
            (self.mu_release_squared, self.slack),
        )
        curvature, residual, release = (Cost(mu_squared=m, delta=d, neighbours=self.neighbours) for m, d in parts)
        return curvature, residual, release


def require(budget: Budget) -> None:
    """Refuse a budget that no theorem here speaks of."""
    if budget.neighbours is not Neighbours.ADD_REMOVE:
        raise ValueError(
            'ridge methods are proved for neighbours="add_remove" alone: make the budget with it, as in '
            'Budget(1, 1e-6, neighbours="add_remove")'
        )
    if budget.delta <= 0:
        raise ValueError("ridge methods need delta > 0, such as 1e-6: their tests are Gaussian")


@dataclass(frozen=True)
class RidgeTest:
    """Releases a ``RidgeCertificate``: the curvature first, then the residual at the regulariser chosen from it.

    Guarantee: posterior.proof.md, Lemma 3. ``split`` names the costs and failures.
    """

    design: Design
    split: Split
    rule: Rule

    def __post_init__(self) -> None:
        for bound in (self.design.x_bound, self.design.y_bound):
            if not Fraction(1, _WIDEST) < bound < _WIDEST:
                raise ValueError("the bounds of features and target must lie between 1e-30 and 1e30: change the units")

    @property
    def square(self) -> Fraction:
        """A bound on the squared norm of a row."""
        return self.design.x_bound**2

    def certify(self, data: Secret[Moments], noise: Noise) -> RidgeCertificate:
        """One draw of both bounds."""
        curvature = self._curvature(data, noise)
        ridge = self.rule(curvature)  # 2.
        return RidgeCertificate(float(curvature), float(ridge), self._residual(data, curvature, ridge, noise))

    def _curvature(self, data: Secret[Moments], noise: Noise) -> Fraction:
        if not self.split.mu_curvature:
            return Fraction(0)
        unit, close = self.design.unit**2, self.square * _CLOSE
        value = data.map(lambda moments: smallest_eigenvalue(moments.gram(), unit, close))
        sigma, grid, margin = spread(self.square, close, self.split.mu_curvature, self.split.fail_curvature)
        noisy = noise.at(CURVATURE).add(value, Gaussian(sigma), grid=grid)  # 1.
        return Fraction(max(0.0, float_down(noisy - margin)))

    def _residual(self, data: Secret[Moments], curvature: Fraction, ridge: Fraction, noise: Noise) -> float:
        sensitivity = log_lipschitz_sensitivity(self.square, ridge, curvature)
        close, design = sensitivity * _CLOSE, self.design
        value = data.map(
            lambda moments: log_lipschitz(
                moments.gram(),
                moments.cross(),
                unit=design.unit**2,
                ridge=ridge,
                y_bound=design.y_bound,
                x_bound=design.x_bound,
                accuracy=close,
            )
        )
        sigma, grid, margin = spread(sensitivity, close, self.split.mu_residual, self.split.fail_residual)
        upper = noise.at(RESIDUAL).add(value, Gaussian(sigma), grid=grid) + margin  # 3.
        return balls.above(lambda: balls.exp(balls.ball(upper)))

    def steps(self) -> tuple[Step, ...]:
        """The tests of the plan."""
        curvature, residual, _ = self.split.costs()
        last = Step(RESIDUAL, StepKind.TEST, StepNoise("log-residual", "gaussian"), residual)
        if not self.split.mu_curvature:
            return (last,)
        sigma, _, margin = spread(Fraction(1), _CLOSE, self.split.mu_curvature, self.split.fail_curvature)
        size, shift = float(sigma * self.square), float(margin * self.square)
        noise = StepNoise("smallest-eigenvalue", "gaussian", size, params={"margin": shift})
        return Step(CURVATURE, StepKind.TEST, noise, curvature), last

    def expected(self, rows: int) -> RidgeCertificate:
        """What the test says, about, of so many rows that are spread evenly over all directions."""
        design, curvature = self.design, Fraction(0)
        if self.split.mu_curvature:
            _, _, margin = spread(self.square, Fraction(0), self.split.mu_curvature, self.split.fail_curvature)
            curvature = max(curvature, rows * self.square / design.entries - margin)
        ridge = self.rule(curvature)
        sensitivity = log_lipschitz_sensitivity(self.square, ridge, curvature)
        _, _, margin = spread(sensitivity, Fraction(0), self.split.mu_residual, self.split.fail_residual)
        size = 2 * float(design.y_bound) * math.exp(min(float(margin), 700.0))
        return RidgeCertificate(float(curvature), float(ridge), size)


def spread(sensitivity: Fraction, close: Fraction, mu: Fraction, failure: Fraction) -> tuple[Fraction, int, Fraction]:
    """Deviation and grid of the noise for a number with error ``close``, and the margin of a bound made with it."""
    sigma = (sensitivity + 2 * close) / mu
    grid = grid_below(sigma)
    return sigma, grid, Fraction(gaussian.threshold(sigma, failure)) + Fraction(2) ** (grid - 1) + close


def moments_of(design: Design, rows: Secret[Rows]) -> Secret[Moments]:
    """The exact moments, read before anything is paid, of rows that were mapped as the design says."""

    def read(table: Rows) -> Moments:
        if row_map(table.schema, table.bits) != design.row_map:
            raise ValueError("the table was opened with another schema than the method was made for")
        return table.moments()

    return rows.map(read)


def _root(square: Fraction) -> Fraction:
    return Fraction(balls.below(lambda: balls.ball(square).sqrt())) if square else Fraction(0)
