"""The test of the ridge methods: how curved the data are, and how large a residual can be, released as safe bounds.

And the rules by which the regulariser follows from the first bound, so that the second one says something.

Proof: ``posterior.proof.md``, Lemmas 2 and 3, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.output.posterior import log_lipschitz_sensitivity, rho_guess
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.mechanisms.linear.base import Design, check_budget, of_design
from snugdp.noise import Gaussian, Noise, grid_below
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, float_down, rational
from snugdp.numerics.ridge import log_lipschitz, smallest_eigenvalue
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rows import Rows

Rule: TypeAlias = Callable[[Fraction], Fraction]  # from the released curvature to the regulariser: public

_CLOSE = Fraction(1, 1 << 20)  # the error of a statistic, as a part of its sensitivity
CURVATURE, RESIDUAL = "test-curvature", "test-residual"  # steps
SHARES: tuple[Real, Real] = (Fraction(1, 20), Fraction(1, 10))
LARGEST = 1e100  # a residual beyond this is no bound at all: refused
_MAX_BOUND = 10**30  # bounds of a design between its inverse and this, so that no float overflows
_SLACK, _FAILURE = Fraction(1, 10), Fraction(1, 20)  # parts of delta
_OVERSHOOT = 0.5  # how far the bound on log residuals may lie above them, in logarithms
_ROUGH = 11  # halvings for a forecast: a hundredth
_MAX_RIDGE = 2.0**24  # regularisers that are looked at, beside the squared norm of a row
_ZOOMS = 3
_NODES = 9


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
            raise ValueError(
                "test_shares must be two shares of the budget: one at least 0, one above 0, both together below 1"
            )
        check_budget(budget)
        failures = (budget.delta * _FAILURE if first else Fraction(0), budget.delta * _FAILURE)
        spare = budget.delta * _SLACK if slack else Fraction(0)
        total = Fraction(gaussian.mu(budget.epsilon, budget.delta - sum(failures) - spare)) ** 2
        mus = [_root(total * share) for share in (first, second)]
        rest = total - mus[0] ** 2 - mus[1] ** 2
        return cls(mus[0], mus[1], rest, spare, *failures, budget.neighbours)

    @property
    def mu_release(self) -> Fraction:
        """Of the release, rounded down."""
        return _root(self.mu_release_squared)

    def costs(self) -> tuple[Cost, Cost, Cost]:
        """Of the two tests and of the release."""
        parts = (
            (self.mu_curvature**2, self.fail_curvature),
            (self.mu_residual**2, self.fail_residual),
            (self.mu_release_squared, self.slack),
        )
        curvature, residual, release = (Cost(mu_squared=m, delta=d, neighbours=self.neighbours) for m, d in parts)
        return curvature, residual, release


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
            if not Fraction(1, _MAX_BOUND) < bound < _MAX_BOUND:
                raise ValueError("the bounds of features and target must lie between 1e-30 and 1e30: change the units")

    @property
    def square(self) -> Fraction:
        """The most that one person adds to an eigenvalue: a bound on the squared norm of a row, for each of them."""
        return self.design.curvature

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
            curvature = max(curvature, rows * design.x_bound**2 / design.entries - margin)
        ridge = self.rule(curvature)
        sensitivity = log_lipschitz_sensitivity(self.square, ridge, curvature)
        _, _, margin = spread(sensitivity, Fraction(0), self.split.mu_residual, self.split.fail_residual)
        size = 2 * float(design.y_bound) * math.exp(min(float(margin), 700.0))
        return RidgeCertificate(float(curvature), float(ridge), size)


@lru_cache(maxsize=64)
def spread(sensitivity: Fraction, close: Fraction, mu: Fraction, failure: Fraction) -> tuple[Fraction, int, Fraction]:
    """Deviation and grid of the noise for a number with error ``close``, and the margin of a bound made with it."""
    sigma = (sensitivity + 2 * close) / mu
    grid = grid_below(sigma)
    return sigma, grid, Fraction(gaussian.threshold(sigma, failure)) + Fraction(2) ** (grid - 1) + close


def moments_of(design: Design, rows: Secret[Rows]) -> Secret[Moments]:
    """The exact moments, read before anything is paid, of rows that were mapped as the design says."""
    return rows.map(lambda table: of_design(table, design).moments())


def _root(square: Fraction) -> Fraction:
    return Fraction(balls.below(lambda: balls.ball(square).sqrt())) if square else Fraction(0)


# --- how the regulariser is chosen: from public numbers and the released curvature alone (Lemma 3 takes any rule) ---


@dataclass(frozen=True)
class Setting:
    """What a rule may know: the design, the split of the budget, a public guess of the number of rows."""

    design: Design
    split: Split
    rows: int | None = None

    @property
    def square(self) -> float:
        """The most that one person adds to an eigenvalue."""
        return float(self.design.curvature)

    def log_margin(self, ridge: float, curvature: float) -> float:
        """How far the released bound on log residuals lies above them, at the middle of its noise."""
        z = gaussian.threshold(1, self.split.fail_residual)
        sensitivity = math.log1p(self.square / (ridge + max(curvature - self.square, 0.0)))
        return sensitivity * z / float(self.split.mu_residual)

    def strength(self, ridge: float, curvature: float) -> float:
        """About how strong a sample may be; 0 for a refusal."""
        added = self.square / (ridge + curvature)
        removed = min(added, self.square / (ridge + self.square))
        mu, slack = math.sqrt(self.split.mu_release_squared), float(self.split.slack)
        return rho_guess(added, removed, mu, slack, _ROUGH)

    def error(self, ridge: float, curvature: float, rho: float) -> float:
        """About the sum of squared errors of predictions that noise and shrinking cause; infinite for a refusal.

        Coefficients are taken to be of the size B_y / B, and all directions to hold equally many of ``rows``; without
        a guess of rows, the worst number of them.
        """
        if not rho:
            return math.inf
        size = float(self.design.y_bound)
        residual = 2 * size * math.exp(min(self.log_margin(ridge, curvature), 300.0))
        noise = self.design.entries * (residual / rho) ** 2
        shrunk = size**2 / self.square * ridge
        if self.rows is None:
            return noise + shrunk / 4
        share = max(curvature, self.rows * self.square / self.design.entries)
        return noise * share / (share + ridge) + shrunk * share * ridge / (share + ridge) ** 2


def rule(ridge: Real | str | Sequence[Real] | None, setting: Setting) -> Rule:
    """The rule that a user's ``ridge`` names, checked."""
    if ridge is None:
        return lambda curvature: steady(setting, curvature)
    if ridge in ("adaptive", "balanced"):
        if ridge == "balanced" and setting.rows is None:
            raise ValueError('ridge="balanced" needs rows=..., a public guess of the number of rows')
        return lambda curvature: searched(setting, curvature)
    if isinstance(ridge, Sequence) and not isinstance(ridge, str):
        proposals = tuple(proposed(value) for value in ridge)
        if not proposals:
            raise ValueError("ridge has no numbers to choose from: give at least one")
        return lambda curvature: best(setting, curvature, proposals)
    number = proposed(ridge)
    return lambda curvature: number


def proposed(ridge: Real) -> Fraction:
    """A regulariser as typed, as near as a float is."""
    try:
        number = rational(ridge, "ridge")
    except ValueError:
        raise ValueError(
            'ridge must be a number, "balanced", "adaptive", or a sequence of numbers to choose from'
        ) from None
    if not Fraction(1, 10**40) < number < 10**40:
        raise ValueError("ridge must be above 0, such as 10, and between 1e-40 and 1e40")
    return Fraction(float(number))


def steady(setting: Setting, curvature: Fraction) -> Fraction:
    """The regulariser at which the bound on residuals overshoots by a factor of about 1.6; at least B squared."""
    z = gaussian.threshold(1, setting.split.fail_residual)
    needed = setting.square / math.expm1(_OVERSHOOT * float(setting.split.mu_residual) / z)
    rest = max(float(curvature) - setting.square, 0.0)
    return Fraction(max(needed - rest, setting.square))


@lru_cache(maxsize=256)
def best(setting: Setting, curvature: Fraction, proposals: tuple[Fraction, ...]) -> Fraction:
    """The proposal with the least forecast error; of equal ones, the largest."""
    ordered, known = sorted(proposals, reverse=True), float(curvature)
    strengths = _strengths(setting, [float(ridge) for ridge in ordered], known)
    errors = [setting.error(float(ridge), known, rho) for ridge, rho in zip(ordered, strengths, strict=True)]
    return ordered[errors.index(min(errors))]


def _strengths(setting: Setting, ridges: Sequence[float], curvature: float) -> list[float]:
    """The strength at every ridge, the largest first; for many ridges from a few of them: it hardly bends."""
    if len(ridges) <= _NODES:
        return [setting.strength(ridge, curvature) for ridge in ridges]
    nodes = np.geomspace(ridges[-1], ridges[0], _NODES)
    known = [setting.strength(float(ridge), curvature) for ridge in nodes]
    if not all(known):
        return [setting.strength(ridge, curvature) for ridge in ridges]
    found: list[float] = np.exp(np.interp(np.log(ridges), np.log(nodes), np.log(known))).tolist()
    return found


@lru_cache(maxsize=256)
def searched(setting: Setting, curvature: Fraction) -> Fraction:
    """About the regulariser with the least forecast error: a grid, and finer ones around the best."""
    low, high = math.log(setting.square / 16), math.log(setting.square * _MAX_RIDGE)
    for _ in range(_ZOOMS):
        step = (high - low) / 8
        grid = tuple(Fraction(math.exp(low + step * i)) for i in range(9))
        found = best(setting, curvature, grid)
        low, high = math.log(found) - step, math.log(found) + step
    return found
