"""Regression from noisy sums: AdaSSP, sufficient statistics refined by clipped gradients, and gradient descent.

Proofs: ``sufficient.proof.md``, ``descent.proof.md``. Everything is Gaussian: mu**2 is split between the releases and
adds up exactly. What follows a release is a function of released numbers, so it needs no proof and may be done in
floats.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import index
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.accounting.gaussian import positive
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit, Method
from snugdp.mechanisms.linear.noisy_sums import (
    Gradients,
    affordable,
    check_gradients,
    hold,
    noisy_cross,
    noisy_gradient,
    noisy_gram,
)
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Accuracy, Forecast, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import grouped
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber
from snugdp.tables.rows import Rows

ADASSP, THEOREM, DESCENT = theorem("linear-adassp/1"), theorem("linear-statistics/1"), theorem("linear-descent/1")
_GRAM, _CROSS, _GRADIENTS = "gram", "cross", "gradients"  # steps

Floats: TypeAlias = NDArray[np.float64]
Ridge: TypeAlias = Real | Sequence[Real]

PATH = (0.0, *(float(value) for value in np.geomspace(0.3, 3e5, 60)))  # ridges to choose from, in units of B**2
_CLIP = Fraction(1, 4)  # of the bound on the target
_SMALLEST_CLIP = Fraction(1, 10**6)  # that the loss accepts
_MAX_RATE = 100
_MAX_STEPS = 10_000
_MAX_COEFFICIENT = 2.0**100  # of a coefficient: gradients are taken at points up to here
_TYPICAL_ROWS = 10_000  # of the line in a plan that says what to expect


@dataclass(frozen=True, eq=False)
class NoisySums(Method):
    """What the methods have in common. ``first_step``: the step in whose name the schema is read.

    ``mu_squared``: what may be spent on a single row. A person moves every sum by as much as ``design.max_rows`` rows
    at most, so the plan costs its square times as much.
    """

    design: Design
    budget: Budget
    mu_squared: Fraction = field(init=False, repr=False)
    first_step: ClassVar[str] = _GRAM

    def __post_init__(self) -> None:
        rows = self.design.max_rows
        object.__setattr__(self, "mu_squared", affordable(self.design, self.budget) ** 2 / rows**2)  # line 9

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay and release; there is nothing to test. Rows of another schema are refused before the charge."""
        gradients = Gradients.of(rows, self.design, context.noise.at(self.first_step))
        return release(self.plan(), _Drawing(self, gradients), rows, context)

    @abstractmethod
    def draw(self, rows: Secret[Rows], gradients: Gradients, noise: Noise) -> Fit:
        """All releases, and the fit that follows from them."""

    def _for_persons(self, plan: Plan) -> Plan:
        """The plan of persons, from that of single rows."""
        steps = tuple(replace(step, cost=grouped(step.cost, self.design.max_rows)) for step in plan.steps)  # line 9
        return replace(plan, steps=steps, unit=self.design.protects)

    def _expected(self, rows: int = _TYPICAL_ROWS) -> Forecast:
        return noted("scaled-noise", rows=rows, noise=self.forecast(rows).noise)


@dataclass(frozen=True)
class _Drawing:
    """A method as the mechanism of one table."""

    method: NoisySums
    gradients: Gradients

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        return self.method.draw(data, self.gradients, noise)


@dataclass(frozen=True, eq=False)
class AdaSSP(NoisySums):
    """Ridge regression on noisy sufficient statistics, with a ridge that follows the noise.

    X'X and X'y get half of mu**2 each. The smallest eigenvalue is read off the noisy matrix, which is free, instead of
    being released by itself. ``ridge``: a public ridge in the units of the scaled rows; by default as large as the
    noise of the matrix, less the smallest eigenvalue.

    Guarantee: the plan's cost, under add/remove, for all tables (``sufficient.proof.md``, Theorem 1).
    """

    _: KW_ONLY
    ridge: Real | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ridge is not None:
            _ridge(self.ridge)

    @property
    def _gram_sd(self) -> float:
        return 1 / math.sqrt(self.mu_squared / 2)

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
        steps = _statistics_steps(self.mu_squared / 2, self.mu_squared / 2)
        floor = self._floor * FitUnits.of(self.design).x ** 2
        proposal = {"smallest eigenvalue": floor} if self.ridge is None else {"ridge": float(_ridge(self.ridge))}
        return self._for_persons(Plan(ADASSP.title, ADASSP, steps, proposal, self._expected(), self.budget))

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and predictions as large as the targets."""
        spectrum = even_spectrum(rows, self.design)
        return forecast_of(
            solution_noise(spectrum, self._ridge_at(spectrum.lowest), self._gram_sd, self._gram_sd, 1.0), self.design
        )

    def draw(self, rows: Secret[Rows], gradients: Gradients, noise: Noise) -> Fit:
        """X'X and X'y, and the solution (lines 1 to 5)."""
        half, design, units = self.mu_squared / 2, self.design, FitUnits.of(self.design)
        spectrum = NoisySpectrum.of(gram_floats(noisy_gram(rows, design, half, noise.at(_GRAM)), design))
        right = cross_floats(noisy_cross(rows, design, half, noise.at(_CROSS)), design)
        ridge = self._ridge_at(spectrum.lowest)
        own = spectrum.solve(right, ridge)  # line 5
        size = float(np.linalg.norm(own))
        variances = solution_noise(spectrum, ridge, self._gram_sd, self._gram_sd, size)
        released = {"ridge": ridge * units.x**2, "lowest": spectrum.lowest * units.x**2}
        return Fit(units.theta(own), spectrum.deviations(variances) * units.y / units.x, released)


@dataclass(frozen=True, eq=False)
class SufficientStatistics(NoisySums):
    """Noisy sufficient statistics, then a few Newton steps with clipped residuals, all from one table.

    X'X gets 0.3 of mu**2, X'y 0.2, the ``refinements`` share 0.5; without refinements it is 0.6 and 0.4. ``ridge``: in
    the units of the scaled rows; by default the size of the noise in X'X. ``clip``: where residuals are clipped; by
    default a quarter of the bound on the target. ``validation``: public (X, y) in the units of the scaled rows, from
    outside the table; then the ridge is chosen on ``ridge``, a list, and the clip is the error found there. Both
    choices look at released numbers only.

    Guarantee: the plan's cost, under add/remove, for all tables (``sufficient.proof.md``, Theorem 2).
    """

    _: KW_ONLY
    refinements: int = 2
    clip: Real | None = None
    ridge: Ridge | None = None
    validation: tuple[ArrayLike, ArrayLike] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gradients(self.design)
        steps = whole_number(self.refinements, "refinements", 0)
        object.__setattr__(self, "refinements", steps)
        Huber(self._clip_at(None))  # refuses a bad clip
        if len(self._ridges) > 1 and self._validation is None:
            raise ValueError("a list of ridges needs validation=(X, y), public rows to choose on; or give one ridge")

    @cached_property
    def _shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of mu**2: X'X, X'y, and each refinement."""
        whole = self.mu_squared
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
        if error is None or self.clip is not None:
            return _clip(self.clip, self.design)
        return max(_SMALLEST_CLIP, min(bound, Fraction(error))) if math.isfinite(error) else bound

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        gram, cross, gradient = self._shares
        steps = _statistics_steps(gram, cross)
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
        return self._for_persons(Plan(THEOREM.title, THEOREM, steps, proposal, self._expected(), self.budget))

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and predictions as large as the targets."""
        gram_sd, cross_sd, gradient_sd = self._deviations
        spectrum = even_spectrum(rows, self.design)
        ridge = self._ridges[0] if len(self._ridges) == 1 else gram_sd * math.sqrt(2 * self.design.entries)
        clip = float(self._clip_at(None)) / FitUnits.of(self.design).y
        variances = solution_noise(spectrum, ridge, gram_sd, cross_sd, 1.0)
        for _ in range(self.refinements):
            variances = refined_noise(variances, spectrum, ridge, gradient_sd * clip)
        return forecast_of(variances, self.design)

    def draw(self, rows: Secret[Rows], gradients: Gradients, noise: Noise) -> Fit:
        """X'X and X'y, and the solution after its refinements (lines 1 to 8)."""
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
        return Fit(units.theta(own), spectrum.deviations(variances) * units.y / units.x, released)

    def _choose(self, spectrum: NoisySpectrum, start: Floats, right: Floats) -> tuple[Floats, float, float | None]:
        """A step from ``start``, the ridge it was made with, and the error on public rows where there are any."""
        if self._validation is None:
            return start + spectrum.solve(right, self._ridges[0]), self._ridges[0], None
        candidates = start[:, None] + spectrum.path(right, self._ridges)
        errors = self._validation.errors(FitUnits.of(self.design).theta(candidates))
        best = int(np.argmin(errors))
        return candidates[:, best], self._ridges[best], float(errors[best])


@dataclass(frozen=True, eq=False)
class NoisyDescent(NoisySums):
    """Gradient descent from 0; the answer is the mean over the last half of the path.

    ``rows``: a public guess of the number of rows, for the length of a step; a wrong guess costs accuracy, never
    privacy. ``steps``: each is one pass over the table. ``clip``: where residuals are clipped; by default a quarter of
    the bound on the target. ``rate``: the length of a step, 1 being a Newton step on rows spread evenly over all
    directions; rows are not, and real tables want less.

    Guarantee: the plan's cost, under add/remove, for all tables (``descent.proof.md``, Theorem 1).
    """

    _: KW_ONLY
    rows: int
    steps: int = 100
    clip: Real | None = None
    rate: Real = 0.25
    first_step: ClassVar[str] = _GRADIENTS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gradients(self.design)
        object.__setattr__(self, "rows", whole_number(self.rows, "rows", 1, most=None))
        object.__setattr__(self, "steps", whole_number(self.steps, "steps", 1))
        Huber(self._clip)  # refuses a bad clip
        if positive(self.rate, "rate") > _MAX_RATE:
            raise ValueError(f"rate must be at most {_MAX_RATE}; 0.25 is typical")

    @cached_property
    def _clip(self) -> Fraction:
        return _clip(self.clip, self.design)

    @property
    def _rate(self) -> float:
        return float(positive(self.rate, "rate"))

    @property
    def _step(self) -> float:
        return self._rate * self.design.entries / self.rows

    @property
    def _deviation(self) -> float:
        """Of the noise of a gradient, in units of the bounds."""
        return math.sqrt(self.steps / self.mu_squared) * float(self._clip) / FitUnits.of(self.design).y

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        cost = Cost(mu_squared=self.mu_squared, neighbours=self.budget.neighbours)
        scale = math.sqrt(self.steps / self.mu_squared)
        noise = StepNoise("gradient", "gaussian", scale, "row", times=self.steps)
        proposal = {"steps": self.steps, "clip": float(self._clip), "rate": self._rate, "rows": self.rows}
        step = Step(_GRADIENTS, StepKind.RELEASE, noise, cost)
        expected = self._expected(self.rows)
        return self._for_persons(Plan(DESCENT.title, DESCENT, (step,), proposal, expected, self.budget))

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly."""
        each = whole_number(rows, "rows", 1, most=None) / self.design.entries
        keep = min(1.0, max(-1.0, 1.0 - self._step * each))  # of an error, by one step; a longer step only oscillates
        late = self.steps - self.steps // 2
        weights, after = np.zeros(self.steps), 0.0
        for t in reversed(range(self.steps)):  # what the noise of step t is in the mean of the last ``late`` points
            after = keep * after + (1.0 / late if t >= self.steps - late else 0.0)
            weights[t] = after
        variance = float(weights @ weights) * (self._step * self._deviation) ** 2
        return forecast_of(np.full(self.design.entries, variance), self.design)

    def draw(self, rows: Secret[Rows], gradients: Gradients, noise: Noise) -> Fit:
        """One noisy gradient after the other (``descent.proof.md``)."""
        units, share = FitUnits.of(self.design), self.mu_squared / self.steps
        own: Floats = np.zeros(self.design.entries)  # line 1
        total = np.zeros(self.design.entries)
        hold(rows)
        for t in range(self.steps):
            work = gradients.at(units.theta(own).tolist(), self._clip)  # line 2
            cells = noisy_gradient(rows, work, share, noise.at(_GRADIENTS))  # line 3
            own = own - self._step * gradient_floats(cells, self._clip, work.limits.target, self.design, units)
            if t >= self.steps // 2:
                total += own
        mean = total / (self.steps - self.steps // 2)  # line 4
        released = {"clip": float(self._clip), "rate": self._rate}
        return Fit(units.theta(mean), None, released)


def _statistics_steps(gram: Fraction, cross: Fraction) -> tuple[Step, ...]:
    return tuple(
        Step(name, StepKind.RELEASE, StepNoise(name, "gaussian", 1 / math.sqrt(share), "row"), Cost(mu_squared=share))
        for name, share in ((_GRAM, gram), (_CROSS, cross))
    )


def _clip(clip: Real | None, design: Design) -> Fraction:
    """Where residuals are clipped: as given, or a part of the bound on the target."""
    return _CLIP * design.y_bound if clip is None else positive(clip, "clip")


def _ridge(value: Real) -> float:
    ridge = rational(value, "ridge")
    if not 0 <= ridge <= Fraction(10) ** 100:
        raise ValueError("ridge must be at least 0, and at most 1e100")
    return float(ridge)


# --- from noisy sums to coefficients: public numbers in, public numbers out; nothing below touches a row ---
# Rows are counted in units of their bound B, targets in units of their bound B_y: a row adds at most 1 to every sum.


@dataclass(frozen=True, eq=False)
class NoisySpectrum:
    """The eigenvalues of a symmetric matrix, those below 0 set to 0, and its eigenvectors.

    ``lowest``: the smallest eigenvalue as it was.

    >>> NoisySpectrum.of([[1.0, 0.0], [0.0, -1.0]]).solve(np.array([2.0, 2.0]), 1.0).tolist()
    [1.0, 2.0]
    """

    values: Floats
    vectors: Floats
    lowest: float

    @classmethod
    def of(cls, matrix: ArrayLike) -> NoisySpectrum:
        """Of a noisy Gram matrix, which may have lost its positive eigenvalues."""
        values, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
        return cls(np.maximum(values, 0.0), vectors, float(values[0]))

    def inverse(self, ridge: float) -> Floats:
        """The eigenvalues of (A + ridge I)^-1; 0 where A + ridge I has none."""
        return inverse(self.values + ridge)

    def solve(self, right: Floats, ridge: float) -> Floats:
        """(A + ridge I)^-1 right."""
        solved: Floats = self.vectors @ (self.inverse(ridge) * (self.vectors.T @ right))
        return solved

    def deviations(self, variances: Floats) -> Floats:
        """Of every entry of a vector with independent noise of such variances along the eigenvectors."""
        return np.asarray(np.sqrt(self.vectors**2 @ variances))

    def path(self, right: Floats, ridges: Sequence[float]) -> Floats:
        """The solutions for many ridges, one in each column."""
        solved: Floats = self.vectors @ (
            inverse(self.values[:, None] + np.asarray(ridges)) * (self.vectors.T @ right)[:, None]
        )
        return solved


def inverse(values: Floats) -> Floats:
    """The inverse of positive numbers, and 0 of 0: a direction about which nothing is known gets no coefficient."""
    positive = values > 1e-300
    return np.where(positive, 1.0 / np.where(positive, values, 1.0), 0.0)


@dataclass(frozen=True)
class FitUnits:
    """The units of the scaled rows, and those in which a row adds at most 1."""

    x: float
    y: float

    @classmethod
    def of(cls, design: Design) -> FitUnits:
        """Those of a design."""
        bits, limits = design.row_map.bits, design.row_map.limits
        return cls(math.ldexp(math.sqrt(limits.norm_squared), -bits), math.ldexp(float(limits.target), -bits))

    def theta(self, own: Floats) -> Floats:
        """Coefficients for the scaled rows: finite, and not beyond where gradients can be taken."""
        theta = np.nan_to_num(own * (self.y / self.x), nan=0.0, posinf=_MAX_COEFFICIENT, neginf=-_MAX_COEFFICIENT)
        return np.clip(theta, -_MAX_COEFFICIENT, _MAX_COEFFICIENT)


def gram_floats(cells: list[list[int]], design: Design) -> Floats:
    """A Gram matrix in units of the bound."""
    bound = design.row_map.limits.norm_squared
    return np.array([[entry / bound for entry in row] for row in cells])


def cross_floats(cells: list[int], design: Design) -> Floats:
    """X'y in units of the bounds."""
    limits = design.row_map.limits
    return np.array([entry / limits.target for entry in cells]) / math.sqrt(limits.norm_squared)


def gradient_floats(cells: list[int], clip: Fraction, slope: int, design: Design, units: FitUnits) -> Floats:
    """A gradient with clipped residuals in units of the bounds; ``slope`` cells stand for the clip."""
    root = math.sqrt(design.row_map.limits.norm_squared)
    return np.array([entry / slope for entry in cells]) / root * (float(clip) / units.y)


@dataclass(frozen=True, eq=False)
class Validation:
    """Public rows and targets, in the units of the scaled rows, on which a choice may be made for free."""

    rows: Floats
    target: Floats

    @classmethod
    def of(cls, pair: tuple[ArrayLike, ArrayLike], design: Design) -> Validation:
        """Read and checked."""
        try:
            given, answers = pair
            rows, target = np.asarray(given, dtype=np.float64), np.asarray(answers, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("validation must be a pair (X, y) of public arrays of numbers") from None
        if rows.ndim != 2 or rows.shape[1] != design.entries or target.shape != rows.shape[:1] or not len(target):
            raise ValueError(
                f"validation must be a matrix of {design.entries} columns, scaled as the rows and with the constant if "
                "there is an intercept, and a vector of as many targets"
            )
        if not (np.abs(rows) <= 1e100).all() or not (np.abs(target) <= 1e100).all():
            raise ValueError("the validation rows and targets must be finite, and at most 1e100 in size")
        return cls(rows, target)

    def errors(self, thetas: Floats) -> Floats:
        """The root mean squared error of the coefficients in each column; infinite where it is not a number."""
        with np.errstate(all="ignore"):
            errors = np.sqrt(np.mean((self.rows @ thetas - self.target[:, None]) ** 2, axis=0))
        return np.where(np.isfinite(errors), errors, np.inf)


def solution_noise(spectrum: NoisySpectrum, ridge: float, gram_sd: float, cross_sd: float, size: float) -> Floats:
    """Variances, along the eigenvectors, of a solution of length ``size``: to first order in the noise.

    The noise of the matrix moves the right-hand side by W theta, and half of the square of its deviation counts.
    """
    return (cross_sd**2 + gram_sd**2 * size**2 / 2) * spectrum.inverse(ridge) ** 2


def refined_noise(before: Floats, spectrum: NoisySpectrum, ridge: float, gradient_sd: float) -> Floats:
    """Variances after a refinement: what was there shrinks by what the ridge had taken, and new noise comes."""
    weights = spectrum.inverse(ridge)
    return before * (ridge * weights) ** 2 + (gradient_sd * weights) ** 2


def even_spectrum(rows: int, design: Design) -> NoisySpectrum:
    """Of so many rows of full length, spread evenly over all directions."""
    d = design.entries
    each = whole_number(rows, "rows", 1, most=None) / d
    return NoisySpectrum(np.full(d, each), np.eye(d), each)


def forecast_of(variances: Floats, design: Design) -> Accuracy:
    """In the units of the scaled rows: a row of full length in a random direction sees B times the noise."""
    units = FitUnits.of(design)
    own = typical(variances)
    return Accuracy(own * units.y / units.x, (own * units.y) ** 2)


def typical(variances: Floats) -> float:
    """The root of the mean."""
    return float(np.sqrt(np.mean(variances)))


def whole_number(value: int, name: str, least: int, most: int | None = _MAX_STEPS) -> int:
    """A number of steps or rows, checked."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number") from None
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        limit = "" if most is None else f", and at most {most}"
        raise ValueError(f"{name} must be a whole number of at least {least}{limit}")
    return number
