"""Regression from noisy sufficient statistics: AdaSSP, and statistics refined by clipped gradients.

Proof: ``sufficient.proof.md``. Everything is Gaussian: mu**2 is split between the releases and adds up exactly. What
follows a release is a function of released numbers, so it needs no proof and may be done in floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import positive
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.linear.noisy_sums import (
    Drawing,
    Gradients,
    affordable,
    check_gradients,
    hold,
    noisy_cross,
    noisy_gradient,
    noisy_gram,
)
from snugdp.mechanisms.linear.spectral import (
    FitUnits,
    Floats,
    NoisySpectrum,
    Validation,
    cross_floats,
    even_spectrum,
    expectation,
    forecast_of,
    gradient_floats,
    gram_floats,
    refined_noise,
    solution_noise,
    typical,
    whole_number,
)
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber
from snugdp.tables.rows import Rows

ADASSP, THEOREM = theorem("linear-adassp/1"), theorem("linear-statistics/1")
_GRAM, _CROSS, _GRADIENTS = "gram", "cross", "gradients"  # steps

Ridge: TypeAlias = Real | Sequence[Real]

PATH = (0.0, *(float(value) for value in np.geomspace(0.3, 3e5, 60)))  # ridges to choose from, in units of B**2
_CLIP = Fraction(1, 4)  # of the bound on the target
_SMALLEST_CLIP = Fraction(1, 10**6)  # that the loss accepts
_TYPICAL_ROWS = 10_000  # of the line in a plan that says what to expect


def adassp_scales(epsilon: Real, delta: Real, shares: Sequence[Real], x_bound: Real, y_bound: Real) -> dict[str, float]:
    """The deviations of the noise when mu**2 is shared between lambda_min, X'X and X'y. For reading, not for releases.

    >>> {name: round(value, 4) for name, value in adassp_scales(1, 1e-6, [0.04, 0.48, 0.48], 1, 1).items()}
    {'mu': 0.2367, 'sd_lambda_min': 21.1234, 'sd_gram': 6.0978, 'sd_xty': 6.0978}
    """
    mu, b, b_y = gaussian.mu(epsilon, delta), float(positive(x_bound, "x_bound")), float(positive(y_bound, "y_bound"))
    lowest, gram, cross = (mu * math.sqrt(positive(share, "a share")) for share in shares)
    return {"mu": mu, "sd_lambda_min": b * b / lowest, "sd_gram": b * b / gram, "sd_xty": b * b_y / cross}


@dataclass(frozen=True, eq=False)
class AdaSSP:
    """Ridge regression on noisy sufficient statistics, with a ridge that follows the noise.

    X'X and X'y get half of mu**2 each. The smallest eigenvalue is read off the noisy matrix, which is free, instead of
    being released by itself. ``ridge``: a public ridge in the units of the scaled rows; by default as large as the
    noise of the matrix, less the smallest eigenvalue.

    Guarantee: the plan's cost, under add/remove, for all tables (``sufficient.proof.md``, Theorem 1).
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    ridge: Real | None = None

    def __post_init__(self) -> None:
        if self._mu_squared <= 0:  # reading it also refuses a bad budget or design
            raise ValueError("the budget is too small: give a larger epsilon or delta")
        if self.ridge is not None:
            _ridge(self.ridge)

    @cached_property
    def _mu_squared(self) -> Fraction:
        return affordable(self.design, self.budget) ** 2

    @property
    def _gram_sd(self) -> float:
        return 1 / math.sqrt(self._mu_squared / 2)

    @property
    def _floor(self) -> float:
        """What the noisy matrix is unlikely to be off by, in every direction at once."""
        d = self.design.entries
        return self._gram_sd * math.sqrt(d * math.log(2 * d * d / 0.05))

    def _ridge_at(self, lowest: float) -> float:
        if self.ridge is not None:
            return _ridge(self.ridge) / FitUnits.of(self.design).x ** 2
        return max(0.0, self._floor - max(0.0, lowest))

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        steps = _statistics_steps(self.design, self._mu_squared / 2, self._mu_squared / 2)
        floor = self._floor * FitUnits.of(self.design).x ** 2
        proposal = {"smallest eigenvalue": floor} if self.ridge is None else {"ridge": float(_ridge(self.ridge))}
        expect = expectation(self.forecast(_TYPICAL_ROWS), _TYPICAL_ROWS)
        return Plan(ADASSP.title, ADASSP, steps, proposal, expect, self.budget)

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for a table of about so many rows, spread evenly; predictions as large as the targets."""
        spectrum = even_spectrum(rows, self.design)
        return forecast_of(
            solution_noise(spectrum, self._ridge_at(spectrum.lowest), self._gram_sd, self._gram_sd, 1.0), self.design
        )

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay and release; there is nothing to test."""
        Gradients.of(rows, self.design, context.noise.at(_GRAM))  # the same schema, or refused before the charge
        return release(self.plan(), Drawing(self._draw), rows, context)

    def _draw(self, rows: Secret[Rows], noise: Noise) -> Fit:
        half, design, units = self._mu_squared / 2, self.design, FitUnits.of(self.design)
        spectrum = NoisySpectrum.of(gram_floats(noisy_gram(rows, design, half, noise.at(_GRAM)), design))
        right = cross_floats(noisy_cross(rows, design, half, noise.at(_CROSS)), design)
        ridge = self._ridge_at(spectrum.lowest)
        own = spectrum.solve(right, ridge)  # line 5
        size = float(np.linalg.norm(own))
        variances = solution_noise(spectrum, ridge, self._gram_sd, self._gram_sd, size)
        released = {"ridge": ridge * units.x**2, "lowest": spectrum.lowest * units.x**2}
        return Fit(units.theta(own), typical(variances) * units.y / units.x, released)


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Noisy sufficient statistics, then a few Newton steps with clipped residuals, all from one table.

    X'X gets 0.3 of mu**2, X'y 0.2, the ``refinements`` share 0.5; without refinements it is 0.6 and 0.4. ``ridge``: in
    the units of the scaled rows; by default the size of the noise in X'X. ``clip``: where residuals are clipped; by
    default a quarter of the bound on the target. ``validation``: public (X, y) in the units of the scaled rows, from
    outside the table; then the ridge is chosen on ``ridge``, a list, and the clip is the error found there. Both
    choices look at released numbers only.

    Guarantee: the plan's cost, under add/remove, for all tables (``sufficient.proof.md``, Theorem 2).
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    refinements: int = 2
    clip: Real | None = None
    ridge: Ridge | None = None
    validation: tuple[ArrayLike, ArrayLike] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self._mu_squared <= 0:  # reading it also refuses a bad budget or design
            raise ValueError("the budget is too small: give a larger epsilon or delta")
        check_gradients(self.design)
        steps = whole_number(self.refinements, "refinements", 0)
        object.__setattr__(self, "refinements", steps)
        Huber(self._clip_at(None))  # refuses a bad clip
        if len(self._ridges) > 1 and self._validation is None:
            raise ValueError("a list of ridges needs validation=(X, y), public rows to choose on; or give one ridge")

    @cached_property
    def _mu_squared(self) -> Fraction:
        return affordable(self.design, self.budget) ** 2

    @cached_property
    def _shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of mu**2: X'X, X'y, and each refinement."""
        whole = self._mu_squared
        if not self.refinements:
            return whole * 3 / 5, whole * 2 / 5, Fraction(0)
        return whole * 3 / 10, whole / 5, whole / 2 / self.refinements

    @cached_property
    def _deviations(self) -> tuple[float, float, float]:
        """Of the noise of X'X, of X'y, and of a gradient over its clip; in units of the bounds."""
        gram, cross, gradient = self._shares
        return 1 / math.sqrt(gram), 1 / math.sqrt(cross), 1 / math.sqrt(gradient) if gradient else 0.0

    @cached_property
    def _validation(self) -> Validation | None:
        return None if self.validation is None else Validation.of(self.validation, self.design)

    @cached_property
    def _ridges(self) -> tuple[float, ...]:
        """In units of B**2."""
        unit = FitUnits.of(self.design).x ** 2
        if isinstance(self.ridge, Sequence | np.ndarray) and not isinstance(self.ridge, str):
            if not len(self.ridge):
                raise ValueError("the list of ridges is empty: give at least one number")
            return tuple(_ridge(value) / unit for value in self.ridge)
        if self.ridge is not None:
            return (_ridge(self.ridge) / unit,)
        return (self._deviations[0] * math.sqrt(2 * self.design.entries),) if self._validation is None else PATH

    def _clip_at(self, error: float | None) -> Fraction:
        """The clip as given; else the error on public rows, at most the bound on the target; else a quarter of it."""
        bound = self.design.y_bound
        if self.clip is not None:
            return positive(self.clip, "clip")
        if error is None:
            return _CLIP * bound
        return max(_SMALLEST_CLIP, min(bound, Fraction(error))) if math.isfinite(error) else bound

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        gram, cross, gradient = self._shares
        steps = _statistics_steps(self.design, gram, cross)
        if self.refinements:
            relation = self.budget.neighbours
            cost = Cost(mu_squared=gradient * self.refinements, neighbours=relation)
            noise = StepNoise("gradient", "gaussian", self._deviations[2], "row", times=self.refinements)
            steps = (*steps, Step(_GRADIENTS, StepKind.RELEASE, noise, cost))
        proposal: dict[str, float] = {"refinements": self.refinements}
        if len(self._ridges) == 1:
            proposal["ridge"] = self._ridges[0] * FitUnits.of(self.design).x ** 2
        if self._validation is None or self.clip is not None:
            proposal["clip"] = float(self._clip_at(None))
        expect = expectation(self.forecast(_TYPICAL_ROWS), _TYPICAL_ROWS)
        return Plan(THEOREM.title, THEOREM, steps, proposal, expect, self.budget)

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for a table of about so many rows, spread evenly; predictions as large as the targets."""
        gram_sd, cross_sd, gradient_sd = self._deviations
        spectrum = even_spectrum(rows, self.design)
        ridge = self._ridges[0] if len(self._ridges) == 1 else gram_sd * math.sqrt(2 * self.design.entries)
        clip = float(self._clip_at(None)) / FitUnits.of(self.design).y
        variances = solution_noise(spectrum, ridge, gram_sd, cross_sd, 1.0)
        for _ in range(self.refinements):
            variances = refined_noise(variances, spectrum, ridge, gradient_sd * clip)
        return forecast_of(variances, self.design)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay and release; there is nothing to test."""
        gradients = Gradients.of(rows, self.design, context.noise.at(_GRAM))
        return release(self.plan(), Drawing(lambda table, noise: self._draw(table, gradients, noise)), rows, context)

    def _draw(self, rows: Secret[Rows], gradients: Gradients, noise: Noise) -> Fit:
        design, units = self.design, FitUnits.of(self.design)
        gram, cross, share = self._shares
        if self.refinements:
            hold(rows)
        spectrum = NoisySpectrum.of(gram_floats(noisy_gram(rows, design, gram, noise.at(_GRAM)), design))
        right = cross_floats(noisy_cross(rows, design, cross, noise.at(_CROSS)), design)
        own, ridge, error = self._choose(spectrum, np.zeros(design.entries), right)  # line 5
        clip = self._clip_at(error)
        size = float(np.linalg.norm(own))
        variances = solution_noise(spectrum, ridge, self._deviations[0], self._deviations[1], size)
        for _ in range(self.refinements):
            work = gradients.at(units.theta(own).tolist(), clip)  # line 6
            cells = noisy_gradient(rows, work, share, noise.at(_GRADIENTS))
            downhill = -gradient_floats(cells, clip, work.limits.target, design, units)
            own, ridge, _ = self._choose(spectrum, own, downhill)  # line 8
            variances = refined_noise(variances, spectrum, ridge, self._deviations[2] * float(clip) / units.y)
        released = {"ridge": ridge * units.x**2, "clip": float(clip), "lowest": spectrum.lowest * units.x**2}
        return Fit(units.theta(own), typical(variances) * units.y / units.x, released)

    def _choose(self, spectrum: NoisySpectrum, start: Floats, right: Floats) -> tuple[Floats, float, float | None]:
        """A step from ``start``, the ridge it was made with, and the error on public rows where there are any."""
        if self._validation is None:
            return start + spectrum.solve(right, self._ridges[0]), self._ridges[0], None
        candidates = start[:, None] + spectrum.path(right, self._ridges)
        errors = self._validation.errors(FitUnits.of(self.design).theta(candidates))
        best = int(np.argmin(errors))
        return candidates[:, best], self._ridges[best], float(errors[best])


def _statistics_steps(design: Design, gram: Fraction, cross: Fraction) -> tuple[Step, ...]:
    parts = ((_GRAM, "gram", gram), (_CROSS, "cross", cross))
    return tuple(
        Step(
            name,
            StepKind.RELEASE,
            StepNoise(on, "gaussian", 1 / math.sqrt(share), "row"),
            Cost(mu_squared=share),
        )
        for name, on, share in parts
    )


def _ridge(value: Real) -> float:
    ridge = rational(value, "ridge")
    if not 0 <= ridge <= Fraction(10) ** 100:
        raise ValueError("ridge must be at least 0, and at most 1e100")
    return float(ridge)
