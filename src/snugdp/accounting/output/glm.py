"""Generalised linear models whose minimiser is released with noise: how far one row moves it, and what that costs.

Nothing here needs a condition on the ridge. Every answer is rounded to the safe side; the curvature ``mu`` may be any
lower bound on the smallest eigenvalue of the data's Hessian at the minimiser. Everything else is fixed by public
numbers before a test of the curvature is seen, the Renyi order too: choosing an order or a shape of noise by the
outcome of the test can double the delta. Proofs: glm.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from flint import arb

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import nonnegative, positive, probability, tail_quantile
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, float_down, rational, readings

ORDERS = (
    *(1 + Fraction(n, 10) for n in range(1, 21)),
    *(3 + Fraction(n, 4) for n in range(1, 69)),
    *(20 + Fraction(n, 2) for n in range(1, 89)),
    *(Fraction(n) for n in range(68, 257, 4)),
    *(Fraction(n) for n in range(272, 1025, 16)),
)


@dataclass(frozen=True)
class LossConstants:
    """Of a loss l(u): ``slope`` = sup |l'|, ``curvature`` = sup l'', ``ratio`` the Lipschitz constant of log l'', and
    ``joint`` = sup (ratio |l'| + l''). All exact or rounded up.

    >>> LossConstants(Fraction(1), Fraction(1, 4), Fraction(1), Fraction(1)).at(2)  # of the logistic loss
    Constants(gradient=Fraction(2, 1), curvature=Fraction(1, 1), ratio=Fraction(2, 1), change=Fraction(4, 1))
    """

    slope: Fraction
    curvature: Fraction
    ratio: Fraction
    joint: Fraction

    def at(self, x_bound: Real, rows: int = 1) -> Constants:
        """For rows with |x| <= x_bound, so many of which come or go together."""
        size = positive(x_bound, "x_bound")
        square = rows * size**2
        return Constants(rows * size * self.slope, square * self.curvature, size * self.ratio, square * self.joint)


@dataclass(frozen=True)
class Constants:
    """Of a model: bounds on the ``gradient`` (G) and ``curvature`` (beta) of the rows that come or go together, usually
    one; the ``ratio`` R, the ``change`` Delta.

    ``change`` is the sensitivity of the smallest eigenvalue of the Hessian at the minimiser.
    """

    gradient: Fraction
    curvature: Fraction
    ratio: Fraction
    change: Fraction

    def with_tolerance(self, tolerance: Real) -> Constants:
        """For points whose gradient is at most ``tolerance``, instead of exact minimisers."""
        tol = nonnegative(tolerance, "tolerance")
        return replace(self, gradient=self.gradient + 2 * tol, change=self.change + 2 * self.ratio * tol)


def displacement(mu: Real, ridge: Real, gradient: Real, ratio: Real) -> float:
    """The farthest that one row moves the minimiser: the root t of mu (1 - exp(-R t))/R + ridge t = G; rounded up.

    Guarantee: glm.proof.md, Lemma 1. Falls with mu, so a lower bound of mu is safe.

    >>> displacement(0, 1, 1, 1), round(displacement(10, 1, 1, 1), 9)
    (1.0, 0.094874122)
    """
    low, lam = nonnegative(mu, "mu"), positive(ridge, "ridge")
    size, rate = positive(gradient, "gradient"), positive(ratio, "ratio")
    if not low:
        return balls.above(lambda: balls.ball(size / lam))

    def enough(t: Fraction) -> bool:
        return balls.at_most(lambda: -_pull(t, low, lam, rate), -size)

    found = _root(float(low), float(lam), float(size), float(rate))
    step = math.ulp(found)
    while not all(enough(value) for value in readings(found)):
        found, step = found + step, 2 * step
    return found


@dataclass(frozen=True)
class ShapedNoise:
    """Theorem 3 at one order and one certified curvature: affine in gamma."""

    order: Fraction
    mu: Fraction
    ridge: Fraction
    gradient: Fraction
    ratio: Fraction
    change: Fraction

    def __post_init__(self) -> None:
        if self.order <= 1:
            raise ValueError("order, of a Renyi divergence, must be above 1")

    def divergence(self, gamma: Fraction) -> float:
        """The bound at gamma, rounded up."""
        if not self._proves():
            return math.inf
        return balls.above(lambda: balls.ball(gamma) * self._mean() + self._shape())

    def largest_gamma(self, budget: Fraction) -> float | None:
        """The largest gamma whose divergence is at most ``budget``, rounded down; none if there is no positive one."""
        if budget <= 0 or not self._proves():
            return None

        def room() -> arb:
            return (balls.ball(budget) - self._shape()) / self._mean()

        if not balls.at_most(lambda: -room(), Fraction(0)):
            return None
        gamma = balls.below(room)
        return gamma if gamma > 0 else None

    def _reach(self) -> Fraction:
        """R s(mu), rounded up."""
        return self.ratio * Fraction(displacement(self.mu, self.ridge, self.gradient, self.ratio))

    def _tau(self) -> arb:
        return balls.exp(balls.ball(self._reach())) * balls.ball(self.change / (self.ridge + self.mu))

    def _proves(self) -> bool:
        worst = max(Fraction(1), self.order - 1)
        return self._reach() < 700 and balls.at_most(lambda: balls.ball(worst) * self._tau(), 1 - Fraction(1, 2**60))

    def _mean(self) -> arb:
        """The coefficient of gamma."""
        z, tau = balls.ball(self._reach()), self._tau()
        kappa = -(-z).expm1() / z
        alpha, less = self.ridge + self.mu, balls.ball(self.order - 1)
        scale = balls.ball(self.order * self.gradient**2 / (2 * alpha))
        return scale / kappa**2 * (1 + tau) / (1 - less * tau)

    def _shape(self) -> arb:
        """What the two shapes differ by."""
        tau, less = self._tau(), balls.ball(self.order - 1)
        return (-(-less * tau).log1p() - less * tau) / (2 * less) + (-tau - (-tau).log1p()) / 2


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
        orders = _likely(level, goal - lost, test) if order is None else (rational(order, "order"),)
        budgets = {a: _budget(a, level, goal - lost, test) for a in orders}
        best = max(budgets, key=lambda a: budgets[a] / a)
        return cls(level, goal, lost, test, whole - test, best, budgets[best])

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
            self.order, nonnegative(curvature, "curvature"), positive(ridge, "ridge"), constants.gradient,
            constants.ratio, constants.change,
        )  # fmt: skip
        return shape.largest_gamma(self.divergence)

    def _deviation(self, constants: Constants, ridge: Real, curvature: Real, mu_squared: Fraction) -> float:
        farthest = Fraction(displacement(curvature, ridge, constants.gradient, constants.ratio))
        return balls.above(lambda: balls.ball(farthest) / balls.ball(mu_squared).sqrt())


def _likely(epsilon: Fraction, delta: Fraction, test_squared: Fraction) -> tuple[Fraction, ...]:
    """Those of ``ORDERS`` whose budget is the largest for its order, by floats; more of them where that is open."""
    try:
        level, log_delta, test = float(epsilon), math.log(delta), float(test_squared)
    except (OverflowError, ValueError):  # no float is so large or so small
        return ORDERS
    a = np.array(ORDERS, dtype=float)
    rates = (level + (log_delta + np.log(a)) / (a - 1) - np.log1p(-1 / a) - a * test / 2) / a
    open_by = 1e-9 * (1 + level - log_delta + a[-1] * test)  # a million times the errors of floats
    return tuple(order for order, rate in zip(ORDERS, rates, strict=True) if rate >= rates.max() - open_by)


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


def _pull(t: Fraction, mu: Fraction, ridge: Fraction, ratio: Fraction) -> arb:
    return balls.ball(mu / ratio) * -balls.ball(-ratio * t).expm1() + balls.ball(ridge * t)


def _root(mu: float, ridge: float, gradient: float, ratio: float) -> float:
    """The root in floats, by halving."""
    ends = gradient / (ridge + mu), gradient / ridge
    return roots.bisect(lambda t: mu / ratio * -math.expm1(-ratio * t) + ridge * t < gradient, *ends)[1]


def root_down(square: Fraction) -> float:
    """The root of a rational, rounded down."""
    root = math.sqrt(float_down(square))
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root
