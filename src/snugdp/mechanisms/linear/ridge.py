"""The ridge methods: one posterior sample, or the solution plus noise, as sharp as the data are certified to allow.

The paper's OPS-PTR with corrected constants, whose noise is that of the least curved direction, so other methods are
better on most tables; and OutPert-PTR, its baseline with honest accounting: the same test, then plain noise. Proofs:
``posterior.proof.md``, ``output.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter

import numpy as np

from snugdp.accounting.output.posterior import leverages, output_sensitivity, rho_guess, rho_max
from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit, Method, check_rows
from snugdp.mechanisms.linear.ridge_test import (
    LARGEST,
    SHARES,
    RidgeCertificate,
    RidgeTest,
    Setting,
    Split,
    moments_of,
    proposed,
    rule,
)
from snugdp.noise import Gaussian, Noise, grid_below
from snugdp.numerics.rationals import Real, rational
from snugdp.numerics.ridge import solution
from snugdp.propose.forecast import Accuracy, Forecast, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rows import Rows

POSTERIOR, OUTPUT = theorem("linear-posterior/1"), theorem("linear-output/1")

_DIGITS = 12  # of the strength: a four-thousandth of the noise buys a quick proof
_BITS = 60  # of gamma: rounded down
_FINER = 12  # bits of the grid beyond the usual: directions with more rows have less noise than the bound says
_CLOSE = Fraction(1, 1 << 20)  # the error of theta*, as a part of its sensitivity


class RidgeMethod(Method):
    """What both have in common: a test, and a mechanism that follows its certificate."""

    design: Design
    budget: Budget
    _test: RidgeTest
    _mechanism: Sampler | NoisySolution

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, test, release or refuse. The outcome's certificate is a ``RidgeCertificate``."""
        data = moments_of(self.design, rows)
        return certify_and_release(self.plan(), self._test, self._mechanism, data, context)

    def _steps(self, noise: StepNoise) -> tuple[Step, ...]:
        return (*self._test.steps(), Step("release", StepKind.RELEASE, noise, self._test.split.costs()[2]))


class PosteriorSampling(RidgeMethod):
    """theta ~ N(theta*, (gamma H)^-1), H = X'X + ridge I, theta* = H^-1 X'y; a ``Method``.

    ``gamma``: ``None`` for the largest that the certificate allows; a number is tested, and refused if it is too large.
    ``ridge``: a number; ``None`` for one at which the test says something; ``"adaptive"`` for the least forecast error
    at the released curvature; ``"balanced"`` for that without a test of the curvature, from ``rows``, a public guess of
    their number; or a sequence of numbers, of which the one with the least forecast error is taken.
    ``test_shares``: parts of the budget (of mu squared) for the curvature and for the residual.
    The ``noise`` of the fit is an upper bound, 1/sqrt(gamma (ridge + curvature)): curved directions have less.

    Guarantee: (epsilon, delta) of the budget, for one row more or less, with certificate, gamma, ridge and theta all
    released (``posterior.proof.md``, Theorem 1).
    """

    _mechanism: Sampler

    def __init__(
        self,
        design: Design,
        budget: Budget,
        *,
        ridge: Real | str | Sequence[Real] | None = None,
        gamma: Real | None = None,
        test_shares: tuple[Real, Real] = SHARES,
        rows: int | None = None,
    ) -> None:
        check_rows(rows)
        design.require_single_rows("a posterior sample")
        first, second = test_shares
        self.design, self.budget, self.rows = design, budget, rows
        split = Split.of(budget, (0 if isinstance(ridge, str) and ridge == "balanced" else first, second), slack=True)
        self.gamma = None if gamma is None else rational(gamma, "gamma")
        if self.gamma is not None and self.gamma <= 0:
            raise ValueError("gamma must be above 0, or None for the largest that the data allow")
        self._test = RidgeTest(design, split, rule(ridge, Setting(design, split, rows)))
        self._mechanism = Sampler(design, split, self.gamma)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        noise = StepNoise("posterior-sample" if self.gamma is None else "posterior-sample-or-refusal", "posterior")
        return Plan(
            POSTERIOR.title,
            POSTERIOR,
            self._steps(noise),
            {} if self.gamma is None else {"gamma": float(self.gamma)},
            Forecast() if self.rows is None else _expected(self.forecast(self.rows), self.rows),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for about so many rows, spread evenly over all directions; infinite where it is a refusal."""
        found = self._test.expected(rows)
        gamma = self._mechanism.likely(found)
        if not gamma:
            return Accuracy(math.inf, math.inf)
        square = float(self.design.x_bound**2)
        variance = 1 / (gamma * (found.ridge + rows * square / self.design.entries))
        return Accuracy(math.sqrt(variance), square * variance)


@dataclass(frozen=True)
class Sampler:
    """The release: the largest gamma that the certificate allows, or the proposed one if it does."""

    design: Design
    split: Split
    gamma: Fraction | None

    def allowed(self, certificate: RidgeCertificate) -> Fraction | None:
        """The precision to sample with, from released numbers alone; None to refuse."""
        if not certificate.residual < LARGEST:
            return None
        curvature, ridge, residual = certificate.exact()
        sides = leverages(self.design.x_bound**2, ridge, curvature)
        rho = rho_max(*sides, self.split.mu_release_squared, self.split.slack, _DIGITS)  # 4.
        most = _down((rho / residual) ** 2)
        if self.gamma is None:
            return most or None  # 5.
        return self.gamma if self.gamma <= most else None

    def draw(self, data: Secret[Moments], certificate: RidgeCertificate, noise: Noise) -> Fit | None:
        """One sample, rounded to a public grid."""
        gamma = self.allowed(certificate)
        if gamma is None:
            return None
        curvature, ridge, _ = certificate.exact()
        size = 1 / math.sqrt(gamma * (ridge + curvature))
        theta = noise.at("release").posterior(  # 6.
            data.map(Moments.gram),
            data.map(Moments.cross),
            unit=self.design.unit**2,
            ridge=ridge,
            precision=gamma,
            grid=grid_below(Fraction(size)) - _FINER,
        )
        released = {
            "ridge": certificate.ridge,
            "gamma": float(gamma),
            "curvature": certificate.curvature,
            "residual": certificate.residual,
        }
        return Fit(np.array([float(value) for value in theta]), size, released)

    def likely(self, certificate: RidgeCertificate) -> float:
        """About what ``allowed`` says, quickly and in floats; 0 to refuse."""
        if not certificate.residual < LARGEST:
            return 0.0
        sides = leverages(self.design.x_bound**2, certificate.ridge, certificate.curvature)
        mu, slack = math.sqrt(self.split.mu_release_squared), float(self.split.slack)
        most = (rho_guess(float(sides[0]), float(sides[1]), mu, slack) / certificate.residual) ** 2
        if self.gamma is None:
            return most
        return float(self.gamma) if self.gamma <= most else 0.0


def _down(value: Fraction) -> Fraction:
    """The number rounded down to some sixty bits."""
    shift = value.denominator.bit_length() - value.numerator.bit_length() + _BITS
    return Fraction(math.floor(value * Fraction(2) ** shift)) / Fraction(2) ** shift


def _expected(accuracy: Accuracy, rows: int) -> Forecast:
    if math.isinf(accuracy.noise):
        return noted("refusal-expected", rows=rows)
    return noted("scaled-noise", rows=rows, noise=accuracy.noise)


class OutputPerturbation(RidgeMethod):
    """theta* + Gaussian noise, theta* = (X'X + ridge I)^-1 X'y; a ``Method``.

    ``ridge``: a number, or ``None`` for one at which the test says something. ``test_shares``: parts of the budget (of
    mu squared) for the curvature and for the residual.

    Guarantee: (epsilon, delta) of the budget, for one row more or less, or one person with up to ``design.max_rows``
    rows, with the certificate and theta released (``output.proof.md``, Theorem 1).
    """

    _mechanism: NoisySolution

    def __init__(
        self, design: Design, budget: Budget, *, ridge: Real | None = None, test_shares: tuple[Real, Real] = SHARES
    ) -> None:
        self.design, self.budget = design, budget
        split = Split.of(budget, test_shares, slack=False)
        number = None if ridge is None else proposed(ridge)
        self._test = RidgeTest(design, split, rule(number, Setting(design, split)))
        self._mechanism = NoisySolution(design, split.mu_release)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        steps = self._steps(StepNoise("ridge-solution", "gaussian"))
        return Plan(OUTPUT.title, OUTPUT, steps, budget=self.budget, unit=self.design.protects)

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for about so many rows, spread evenly over all directions."""
        noise = float(self._mechanism.sigma(self._test.expected(rows))[0])
        return Accuracy(noise, float(self.design.x_bound**2) * noise**2)


@dataclass(frozen=True)
class NoisySolution:
    """The release: noise for the farthest that one person can move the solution, by the certificate."""

    design: Design
    mu: Fraction

    def sigma(self, certificate: RidgeCertificate) -> tuple[Fraction, Fraction]:
        """The deviation of the noise, and the error allowed in theta*."""
        curvature, ridge, residual = certificate.exact()
        rows = self.design.max_rows
        sensitivity = output_sensitivity(self.design.x_bound, ridge, curvature, residual, rows)  # 4.
        close = sensitivity * _CLOSE
        return (sensitivity + 2 * close) / self.mu, close

    def draw(self, data: Secret[Moments], certificate: RidgeCertificate, noise: Noise) -> Fit | None:
        """The noisy solution; a bound beyond all reason is a refusal."""
        if not certificate.residual < LARGEST:
            return None
        sigma, close = self.sigma(certificate)
        unit, ridge = self.design.unit**2, Fraction(certificate.ridge)
        theta = data.map(lambda moments: solution(moments.gram(), moments.cross(), unit, ridge, close))  # 5.
        law, grid = Gaussian(sigma), grid_below(sigma)
        release = noise.at("release")
        entries = [release.add(theta.map(itemgetter(i)), law, grid=grid) for i in range(self.design.entries)]  # 6.
        released = {"ridge": certificate.ridge, "curvature": certificate.curvature, "residual": certificate.residual}
        return Fit(np.array([float(value) for value in entries]), float(sigma), released)
