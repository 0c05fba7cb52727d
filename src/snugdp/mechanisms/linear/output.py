"""The ridge solution plus Gaussian noise, as little as the data are certified to need. Proof: ``output.proof.md``.

OutPert-PTR, the paper's baseline with honest accounting: the same test as posterior sampling, then plain noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter

import numpy as np

from snugdp.accounting.output.posterior import output_sensitivity
from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.linear.ridge_rules import Setting, proposed, steady
from snugdp.mechanisms.linear.ridge_test import LARGEST, SHARES, RidgeCertificate, RidgeTest, Split, moments_of
from snugdp.noise import Gaussian, Noise, grid_below
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real
from snugdp.numerics.ridge import solution
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import Purse
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.moments import Moments
from snugdp.tables.rows import Rows

THEOREM = theorem("linear-output/1")

_CLOSE = Fraction(1, 1 << 20)  # the error of theta*, as a part of its sensitivity


class OutputPerturbation:
    """theta* + Gaussian noise, theta* = (X'X + ridge I)^-1 X'y; a ``Method``.

    ``ridge``: a number, or ``None`` for one at which the test says something. ``test_shares``: parts of the budget (of
    mu squared) for the curvature and for the residual.

    Guarantee: (epsilon, delta) of the budget, for one row more or less, with the certificate and theta released
    (``output.proof.md``, Theorem 1).
    """

    def __init__(
        self,
        design: Design,
        budget: Budget,
        *,
        ridge: Real | None = None,
        test_shares: tuple[Real, Real] = SHARES,
    ) -> None:
        split = Split.of(budget, test_shares, slack=False)
        setting = Setting(design, split)
        fixed = None if ridge is None else proposed(ridge)
        self.design, self.budget = design, budget
        self._test = RidgeTest(design, split, lambda found: steady(setting, found) if fixed is None else fixed)
        self._mechanism = NoisySolution(design, _mu(split))

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        noise = StepNoise("ridge-solution", "gaussian")
        release = Step("release", StepKind.RELEASE, noise, self._test.split.costs()[2])
        return Plan(THEOREM.title, THEOREM, (*self._test.steps(), release), budget=self.budget)

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for about so many rows, spread evenly over all directions."""
        noise = float(self._mechanism.sigma(self._test.expected(rows))[0])
        return Accuracy(noise, float(self.design.x_bound**2) * noise**2)

    def fit(self, rows: Secret[Rows], purse: Purse) -> Outcome[Fit]:
        """Pay, test, release. The outcome's certificate is a ``RidgeCertificate``."""
        data = moments_of(self.design, rows)
        return certify_and_release(self.plan(), self._test, self._mechanism, data, purse)


@dataclass(frozen=True)
class NoisySolution:
    """The release: noise for the farthest that one row can move the solution, by the certificate."""

    design: Design
    mu: Fraction

    def sigma(self, certificate: RidgeCertificate) -> tuple[Fraction, Fraction]:
        """The deviation of the noise, and the error allowed in theta*."""
        curvature, ridge, residual = certificate.exact()
        sensitivity = output_sensitivity(self.design.x_bound, ridge, curvature, residual)  # 4.
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
        released = {
            "ridge": certificate.ridge,
            "curvature": certificate.curvature,
            "residual": certificate.residual,
        }
        return Fit(np.array([float(value) for value in entries]), float(sigma), released)


def _mu(split: Split) -> Fraction:
    return Fraction(balls.below(lambda: balls.ball(split.mu_release_squared).sqrt()))
