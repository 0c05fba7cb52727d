"""Propose, test and release for generalised linear models: what the test and the release may spend.

Everything is fixed by public numbers before the test is seen, the Renyi order too: choosing an order or a shape of
noise by the outcome of the test can double the delta. Proofs: glm.proof.md, Theorem 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import positive, probability, tail_quantile
from snugdp.accounting.output.glm import Constants, ShapedNoise, displacement, root_down
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational

PROOF = "accounting/output/glm.proof.md#theorem-4"

ORDERS = (
    *(1 + Fraction(n, 10) for n in range(1, 21)),
    *(3 + Fraction(n, 4) for n in range(1, 69)),
    *(20 + Fraction(n, 2) for n in range(1, 89)),
    *(Fraction(n) for n in range(68, 257, 4)),
    *(Fraction(n) for n in range(272, 1025, 16)),
)


@dataclass(frozen=True)
class TestedRelease:
    """How a budget is divided between a test of the curvature and the release that relies on it.

    Guarantee: a test of parameter mu1 and a release of parameter mu2 (isotropic noise), or of divergence ``divergence``
    at the public ``order`` (shaped noise, and its fallback), are (epsilon, delta)-DP together, whatever the outcome,
    if the test overrates the curvature with probability at most ``failure`` (glm.proof.md, Theorem 4).

    >>> plan = TestedRelease.of(1, "1e-6")
    >>> plan.order, round(float(plan.divergence), 5), round(plan.release_mu, 4)
    (Fraction(22, 1), 0.4393, 0.2171)
    """

    __test__ = False  # for tools that collect tests by name

    epsilon: Fraction
    delta: Fraction
    failure: Fraction
    test_squared: Fraction
    release_squared: Fraction
    order: Fraction
    divergence: Fraction

    @classmethod
    def of(
        cls,
        epsilon: Real,
        delta: Real,
        *,
        test_share: Real = Fraction(3, 20),
        failure_share: Real = Fraction(1, 10),
        order: Real | None = None,
    ) -> TestedRelease:
        """The plan: ``test_share`` of mu^2 for the test, ``failure_share`` of delta for its failures."""
        level, goal = positive(epsilon, "epsilon"), probability(delta, "delta")
        share, lost = _share(test_share, "test_share"), _share(failure_share, "failure_share") * goal
        if not goal:
            raise ValueError("delta must be above 0: a test that may fail needs a failure probability")
        whole = Fraction(gaussian.mu(level, goal - lost)) ** 2
        test = share * whole
        orders = ORDERS if order is None else (rational(order, "order"),)
        budgets = {a: _budget(a, level, goal - lost, test) for a in orders}
        best = max(budgets, key=lambda a: budgets[a] / a)
        return cls(level, goal, lost, test, whole - test, best, budgets[best])

    @property
    def test_mu(self) -> float:
        """mu1, rounded down."""
        return root_down(self.test_squared)

    @property
    def release_mu(self) -> float:
        """mu2, rounded down."""
        return root_down(self.release_squared)

    def test_noise(self, change: Fraction, values: int) -> float:
        """The deviation of the test's noise for ``values`` curvatures, each of sensitivity ``change``; rounded up."""
        return balls.above(lambda: balls.ball(change**2 * values / self.test_squared).sqrt())

    def margin(self, change: Fraction, values: int = 1) -> float:
        """What is taken off each noisy curvature, so that one of them is overrated with probability ``failure``.

        >>> round(TestedRelease.of(1, "1e-6").margin(Fraction(1)), 1)
        57.0
        """
        tail = self.failure / values
        square = change**2 * values / self.test_squared
        return balls.above(lambda: balls.ball(square).sqrt() * tail_quantile(tail))

    def isotropic(self, constants: Constants, ridge: Real, curvature: Real, models: int = 1) -> float:
        """The deviation of isotropic noise for each of ``models`` releases, given a certified curvature; rounded up."""
        return self._deviation(constants, ridge, curvature, self.release_squared / models)

    def fallback(self, constants: Constants, ridge: Real, curvature: Real) -> float:
        """The deviation of isotropic noise with the order and the divergence of the shaped noise; rounded up."""
        if self.divergence <= 0:
            raise ValueError("no divergence is left at this order: use isotropic noise, or a larger delta")
        return self._deviation(constants, ridge, curvature, 2 * self.divergence / self.order)

    def gamma(self, constants: Constants, ridge: Real, curvature: Real) -> float | None:
        """The largest gamma of shaped noise (gamma H)^(-1/2), rounded down; none where only the fallback is proved."""
        shape = ShapedNoise(
            self.order, gaussian.nonnegative(curvature, "curvature"), positive(ridge, "ridge"), constants.gradient,
            constants.ratio, constants.change,
        )  # fmt: skip
        return shape.largest_gamma(self.divergence)

    def _deviation(self, constants: Constants, ridge: Real, curvature: Real, mu_squared: Fraction) -> float:
        farthest = Fraction(displacement(curvature, ridge, constants.gradient, constants.ratio))
        return balls.above(lambda: balls.ball(farthest) / balls.ball(mu_squared).sqrt())


def _budget(order: Fraction, epsilon: Fraction, delta: Fraction, test_squared: Fraction) -> Fraction:
    """r(a) = epsilon + log(delta a)/(a - 1) - log(1 - 1/a) - a mu1^2/2, rounded down."""

    def less() -> arb:
        logs = balls.ball(delta * order).log() / balls.ball(order - 1) - balls.ball(1 - 1 / order).log()
        return balls.ball(order * test_squared / 2 - epsilon) - logs

    return -balls.rational_above(less)


def _share(value: Real, name: str) -> Fraction:
    share = rational(value, name)
    if not 0 < share < 1:
        raise ValueError(f"{name} must be above 0 and below 1")
    return share
