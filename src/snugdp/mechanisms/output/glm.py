"""Generalised linear models: the minimiser plus noise, as little as the data are certified to need (GLM-PTR).

A private test bounds the smallest eigenvalue of the Hessian from below, for one ridge or a few; then the minimiser is
released with noise that is the same in all directions, or shaped by the Hessian. It never refuses. Proof:
``glm.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np

from snugdp.accounting.gaussian import positive
from snugdp.accounting.output.glm import Constants, LossConstants, TestedRelease
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit, check_budget, check_rows, of_design
from snugdp.mechanisms.objective.minimiser import PerturbedLoss, check_objective
from snugdp.mechanisms.objective.perturbation import as_ridge, check_labels
from snugdp.noise import Gaussian, Noise, grid_below
from snugdp.noise.exact.minimiser import norm_above
from snugdp.numerics.rationals import Real, float_down
from snugdp.numerics.ridge import smallest_eigenvalue
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Loss
from snugdp.tables.passes.derivatives.hessian import HessianEnclosure
from snugdp.tables.rows import Rows

THEOREM = theorem("glm-output/1")

Shape: TypeAlias = Literal["iso", "hessian"]

_RELATIVE_ERROR = Fraction(1, 1 << 20)  # errors, as parts of what they are errors of
_MAX_RIDGES = 4  # ridges to choose from: more cost more than they bring
_GUESSED_ROWS, _GUESSED_LENGTH = 10_000, 3.0  # guesses: of the number of rows, and of |theta| times the bound on a row
_EXTRA_BITS = 12  # bits of the grid beyond the usual: directions with more curvature have less noise
_WEIGHT_BITS = 200  # the public unit of a Hessian: finer than any level that is reached
_POINT_BITS = 190  # bits of a point, and some more for steep losses: enough for 2**75 rows
_MAX_RIDGE = 10**15
_MEAN_CURVATURE = 0.6  # forecasts: the mean second derivative, as a part of the largest
_HALVINGS = 8  # of a Newton step


@dataclass(frozen=True)
class CurvatureCertificate:
    """What the test released: for each of the ``ridges`` a lower bound on the smallest eigenvalue of the Hessian.

    All of them hold together, but for the failure probability of the test. ``place``: the ridge that was chosen.
    """

    ridges: tuple[float, ...]
    curvatures: tuple[float, ...]
    place: int

    @property
    def ridge(self) -> float:
        """The ridge that was chosen."""
        return self.ridges[self.place]

    @property
    def curvature(self) -> float:
        """The bound at the ridge that was chosen."""
        return self.curvatures[self.place]


@dataclass(frozen=True)
class OutputGLM:
    """The minimiser of the losses + ridge/2 |theta|**2, plus noise as small as a private test allows; a ``Method``.

    ``ridge``: a number, or up to four to choose from by what the test says of each; ``None`` for three made from
    ``rows``, a public guess of their number. ``shape``: ``"iso"`` for noise that is the same in all directions,
    ``"hessian"`` for noise shaped by the Hessian where that is proved. ``test_share``: the test's part of mu squared.

    Guarantee: (epsilon, delta) of the budget for one row more or less, or one person with up to ``design.max_rows``
    rows, with the certificate, the ridge and theta all released (``glm.proof.md``, Theorem 1). ``plan().cost`` is that;
    for ``"iso"`` it is a Gaussian cost.
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    loss: Loss
    ridge: Real | Sequence[Real] | None = None
    shape: Shape = "iso"
    test_share: Real = Fraction(3, 20)
    rows: int | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_labels(self.design)
        if self.loss.log_lipschitz is None:
            raise ValueError("output perturbation needs a loss with a smooth second derivative: not Huber")
        if self.shape not in ("iso", "hessian"):
            raise ValueError('shape must be "iso" or "hessian"')
        check_rows(self.rows)
        for one in self.ridges:
            check_objective(self.design, self.loss, one)
        if self.shape == "hessian" and self._plan.divergence <= 0:
            raise ValueError('this budget leaves nothing for shaped noise: use shape="iso", or a larger delta')
        if not self.plan().cost.fits(self.budget):
            raise ValueError("the plan costs more than the budget")

    @cached_property
    def _plan(self) -> TestedRelease:
        return TestedRelease.of(self.budget.epsilon, self.budget.delta, test_share=self.test_share)

    @cached_property
    def ridges(self) -> tuple[Fraction, ...]:
        """The ridges to choose from."""
        ridge = self.ridge
        if ridge is None:
            low = as_ridge(self.design, self.loss, self.budget.epsilon)
            step = float(self._exact.gradient) / (self._plan.release_mu * self._length)
            high = max(low, Fraction(round((2 * self._trace * step**2) ** (1 / 3) * 256), 256))  # best without a test
            return tuple(sorted({low, Fraction(round(math.sqrt(low * high) * 256) + 1, 256), high}))
        given = list(ridge) if isinstance(ridge, Sequence) and not isinstance(ridge, str) else [ridge]
        if not 1 <= len(given) <= _MAX_RIDGES:
            raise ValueError(f"give one ridge, or up to {_MAX_RIDGES} to choose from")
        ridges = tuple(positive(one, "ridge") for one in given)
        if not all(Fraction(1, _MAX_RIDGE) < one < _MAX_RIDGE for one in ridges):
            raise ValueError("a ridge must be between 1e-15 and 1e15")
        return ridges

    @property
    def _trace(self) -> float:
        """About the largest trace of the Hessian, for as many rows as are guessed."""
        return (self.rows or _GUESSED_ROWS) * float(self._exact.curvature / self.design.max_rows)

    @property
    def _length(self) -> float:
        """About |theta|."""
        return _GUESSED_LENGTH / float(self.design.x_bound)

    @cached_property
    def _exact(self) -> Constants:
        """G, beta, R, Delta of exact minimisers."""
        loss = self.loss
        if loss.log_lipschitz is None or loss.curvature_bound is None:
            raise TypeError("output perturbation needs a loss with a bounded and log-Lipschitz second derivative")
        constants = LossConstants(loss.slope, loss.curvature, loss.log_lipschitz, loss.curvature_bound)
        return constants.at(self.design.x_bound, self.design.max_rows)

    @property
    def tolerance(self) -> Fraction:
        """No gradient at a point that is used is larger."""
        return self._exact.gradient * _RELATIVE_ERROR

    @cached_property
    def constants(self) -> Constants:
        """The same for points with a gradient of at most ``tolerance``."""
        return self._exact.with_tolerance(self.tolerance)  # 1

    @cached_property
    def close(self) -> Fraction:
        """The error of a Hessian in the Frobenius norm, at most."""
        return min(self._exact.change, *self.ridges) * _RELATIVE_ERROR

    @property
    def sensitivity(self) -> Fraction:
        """How far one person moves a computed smallest eigenvalue at most, errors included."""
        return self.constants.change + 4 * self.close

    @property
    def fine(self) -> int:
        """Points are multiples of 2**-fine."""
        beta = self._exact.curvature
        wide = max(Fraction(1), beta / min(self.ridges))
        steep = wide * beta * (math.isqrt(self.design.entries) + 1) / self._exact.gradient
        return _POINT_BITS + max(0, steep.numerator.bit_length() - steep.denominator.bit_length() + 1)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        split, count = self._plan, len(self.ridges)
        deviation, margin = split.test_noise(self.sensitivity, count), split.margin(self.sensitivity, count)
        test = StepNoise("smallest-curvature", "gaussian", deviation, times=count, params={"margin": margin})
        if self.shape == "iso":
            costs = Cost(mu_squared=split.test_squared, delta=split.failure), Cost(mu_squared=split.release_squared)
        else:  # one divergence for all outcomes, which is no Gaussian cost: charged as a whole
            costs = Cost(epsilon=split.epsilon, delta=split.delta), Cost()
        steps = (
            Step("test", StepKind.TEST, test, costs[0]),
            Step("release", StepKind.RELEASE, StepNoise(f"minimiser-{self.shape}", "gaussian"), costs[1]),
        )
        proposal = {"ridge": float(self.ridges[0])} if count == 1 else {}
        return Plan(THEOREM.title, THEOREM, steps, proposal, budget=self.budget, unit=self.design.protects)

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions."""
        square = float(self.design.x_squared)
        curvature = _MEAN_CURVATURE * float(self.loss.curvature) * rows * square / self.design.entries
        margin = self._plan.margin(self.sensitivity, len(self.ridges))
        found = [max(0.0, curvature - margin)] * len(self.ridges)
        noise = self._deviation(self.ridges[self._choose(found)], Fraction(found[0]))
        return Accuracy(noise, noise**2 * square)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, test, release. The outcome's certificate is a ``CurvatureCertificate``."""
        once = _Settling(self)
        return certify_and_release(self.plan(), once, once, rows, context)

    def settle(self, rows: Secret[Rows]) -> Secret[list[SettledPoint]]:
        """The minimiser for every ridge, and its curvature. Private."""
        return rows.map(lambda table: [self._settled(of_design(table, self.design), one) for one in self.ridges])

    def _settled(self, rows: Rows, ridge: Fraction) -> SettledPoint:
        problem = PerturbedLoss(rows, self.design, self.loss, ridge)
        return settled(problem, self.tolerance, self.close, self.fine)  # 2

    def certify(self, data: Secret[list[SettledPoint]], noise: Noise) -> CurvatureCertificate:
        """One draw of the bounds, and the ridge that they recommend."""
        count, close = len(self.ridges), self.close
        law = Gaussian(Fraction(self._plan.test_noise(self.sensitivity, count)))
        grid = grid_below(law.sigma)
        margin = Fraction(self._plan.margin(self.sensitivity, count)) + Fraction(2) ** (grid - 1) + 2 * close
        bounds = []
        for place in range(count):
            point = data.map(itemgetter(place))
            value = point.map(lambda found: smallest_eigenvalue(found.gram, found.unit, close))
            noisy = noise.at("test").add(value, law, grid=grid)  # 3
            bounds.append(max(0.0, float_down(noisy - margin)))
        ridges = tuple(float(one) for one in self.ridges)
        return CurvatureCertificate(ridges, tuple(bounds), self._choose(bounds))  # 4

    def _choose(self, curvatures: Sequence[float]) -> int:
        """The ridge with the least forecast of noise and shrinkage: a function of released and public numbers."""

        def excess(place: int) -> float:
            ridge, curvature = self.ridges[place], Fraction(curvatures[place])
            gamma = self._gamma(ridge, curvature) if self.shape == "hessian" else None
            flat = self._trace * self._deviation(ridge, curvature) ** 2 / 2
            return (self.design.entries / (2 * gamma) if gamma else flat) + float(ridge) * self._length**2 / 2

        return min(range(len(curvatures)), key=excess)

    def _deviation(self, ridge: Fraction, curvature: Fraction) -> float:
        """Of noise that is the same in all directions."""
        make = self._plan.isotropic if self.shape == "iso" else self._plan.fallback
        return make(self.constants, ridge, curvature)

    def _gamma(self, ridge: Fraction, curvature: Fraction) -> float | None:
        """Of shaped noise, for a Hessian with its error."""
        part = self.close / ridge
        wider = Constants(
            self.constants.gradient * (1 + part),
            self.constants.curvature,
            self.constants.ratio,
            (self.constants.change + 2 * self.close) / (1 - part),
        )
        return self._plan.gamma(wider, ridge, curvature)

    def draw(self, data: Secret[list[SettledPoint]], certificate: CurvatureCertificate, noise: Noise) -> Fit:
        """The minimiser at the chosen ridge, with noise."""
        ridge, curvature = self.ridges[certificate.place], Fraction(certificate.curvature)
        point = data.map(itemgetter(certificate.place))
        released = {"ridge": certificate.ridge, "curvature": certificate.curvature}
        gamma = self._gamma(ridge, curvature) if self.shape == "hessian" else None
        if gamma is not None:
            return self._shaped(point, ridge, Fraction(gamma), released, noise)
        sigma = Fraction(self._deviation(ridge, curvature))
        law, grid = Gaussian(sigma), grid_below(sigma)
        theta = point.map(lambda found: found.theta)
        fresh = noise.at("release")
        entries = [fresh.add(theta.map(itemgetter(j)), law, grid=grid) for j in range(self.design.entries)]  # 5
        return Fit(np.array([float(value) for value in entries]), float(sigma), {**released, "sigma": float(sigma)})

    def _shaped(
        self, point: Secret[SettledPoint], ridge: Fraction, gamma: Fraction, released: dict[str, float], noise: Noise
    ) -> Fit:
        """Normal around the point, with gamma times the Hessian (and the ridge) as its precision."""
        size = 1 / math.sqrt(gamma * (ridge + Fraction(released["curvature"])))
        cell = self.loss.curvature * self.design.unit**2 / 2**_WEIGHT_BITS
        unit = cell / 2**self.fine / (ridge / cell).denominator
        theta = noise.at("release").posterior(  # 6
            point.map(lambda found: _gram(found, unit)),
            point.map(lambda found: _cross(found, unit, ridge)),
            unit=unit,
            ridge=ridge,
            precision=gamma,
            grid=grid_below(Fraction(size)) - _EXTRA_BITS,
        )
        return Fit(np.array([float(value) for value in theta]), size, {**released, "gamma": float(gamma)})


def _gram(found: SettledPoint, unit: Fraction) -> list[list[int]]:
    """The Hessian of the losses in cells of a public unit, exactly."""
    ratio = found.unit / unit
    if ratio.denominator != 1:  # levels stop long before the public unit does
        raise ArithmeticError("the Hessian is finer than the public unit")
    return [[value * ratio.numerator for value in row] for row in found.gram]


def _cross(found: SettledPoint, unit: Fraction, ridge: Fraction) -> list[int]:
    """(Hessian + ridge) theta in the same cells, exactly: what makes theta the middle of the law."""
    images = [
        found.unit * sum(value * entry for value, entry in zip(row, found.theta, strict=True)) for row in found.gram
    ]
    whole = [(image + ridge * entry) / unit for image, entry in zip(images, found.theta, strict=True)]
    if any(value.denominator != 1 for value in whole):
        raise ArithmeticError("the middle of the law is finer than the public unit")
    return [value.numerator for value in whole]


class _Settling:
    """The method on rows: minimisers are looked for after the charge, once, and serve the test and the release."""

    _points: Secret[list[SettledPoint]]

    def __init__(self, method: OutputGLM) -> None:
        self._method = method

    def certify(self, data: Secret[Rows], noise: Noise) -> CurvatureCertificate:
        self._points = self._method.settle(data)
        return self._method.certify(self._points, noise)

    def draw(self, data: Secret[Rows], certificate: CurvatureCertificate, noise: Noise) -> Fit:
        return self._method.draw(self._points, certificate, noise)


# --- a point with a provably small gradient, and the Hessian there; the line numbers are those of Lemma 1 ---


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
