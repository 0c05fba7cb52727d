"""Generalised linear models whose minimiser is released with noise: how far one row moves it, given its curvature.

Nothing here needs a condition on the ridge. Every answer is rounded to the safe side; the curvature ``mu`` may be any
lower bound on the smallest eigenvalue of the data's Hessian at the minimiser. Proofs: glm.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb

from snugdp.accounting.gaussian import nonnegative, positive
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, float_down, rational, readings

PROOF = "accounting/output/glm.proof.md#theorem-3"


@dataclass(frozen=True)
class LossConstants:
    """Of a loss l(u): ``slope`` = sup |l'|, ``curvature`` = sup l'', ``ratio`` the Lipschitz constant of log l'', and
    ``joint`` = sup (ratio |l'| + l''). All exact or rounded up.

    >>> LossConstants.logistic().at(2)
    Constants(gradient=Fraction(2, 1), curvature=Fraction(1, 1), ratio=Fraction(2, 1), change=Fraction(4, 1))
    """

    slope: Fraction
    curvature: Fraction
    ratio: Fraction
    joint: Fraction

    @classmethod
    def logistic(cls) -> LossConstants:
        """Of log(1 + exp(-u))."""
        return cls(Fraction(1), Fraction(1, 4), Fraction(1), Fraction(1))

    @classmethod
    def softplus_hinge(cls, h: Real) -> LossConstants:
        """Of h log(1 + exp((1 - u)/h))."""
        width = positive(h, "h")
        return cls(Fraction(1), 1 / (4 * width), 1 / width, 1 / width)

    @classmethod
    def pseudo_huber(cls, c: Real) -> LossConstants:
        """Of c^2 (sqrt(1 + (u/c)^2) - 1)."""
        scale = positive(c, "c")
        return cls(scale, Fraction(1), Fraction(3, 2) / scale, Fraction(3, 2))

    @classmethod
    def log_cosh(cls, c: Real) -> LossConstants:
        """Of c^2 log cosh(u/c)."""
        scale = positive(c, "c")
        return cls(scale, Fraction(1), 2 / scale, Fraction(2))

    @classmethod
    def tamed_poisson(cls, largest: Real, cap: Real) -> LossConstants:
        """Of exp(u) - y u up to u = cap, and its continuation with l'' = exp(2 cap - u); y from 0 to ``largest``."""
        top, level = nonnegative(largest, "largest"), rational(cap, "cap")
        grown = balls.rational_above(lambda: balls.exp(balls.ball(level)))
        slope = max(top, 2 * grown)
        return cls(slope, grown, Fraction(1), slope)

    @classmethod
    def softmax(cls) -> LossConstants:
        """Of the softmax loss, any number of classes (isotropic noise only: glm.proof.md, Corollary 2)."""
        root = balls.rational_above(lambda: arb(2).sqrt())
        return cls(root, Fraction(1, 2), root, Fraction(5, 2))

    def at(self, x_bound: Real) -> Constants:
        """For rows with |x| <= x_bound."""
        size = positive(x_bound, "x_bound")
        return Constants(size * self.slope, size**2 * self.curvature, size * self.ratio, size**2 * self.joint)


@dataclass(frozen=True)
class Constants:
    """Of a model: bounds on one row's ``gradient`` (G) and ``curvature`` (beta), the ``ratio`` R, the ``change`` Delta.

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

    def replacing(self) -> Constants:
        """For neighbours with one row changed; before any tolerance."""
        return replace(self, gradient=2 * self.gradient, change=2 * self.change)


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


def hessian_rdp(order: Real, gamma: Real, *, mu: Real, ridge: Real, gradient: Real, ratio: Real, change: Real) -> float:
    """The Renyi divergence of a release with noise (gamma H)^(-1/2), certified data set first; rounded up.

    Guarantee: glm.proof.md, Theorem 3, for one row more and for one row less. Infinite where it proves nothing.

    >>> round(hessian_rdp(2, 1, mu=400, ridge=1, gradient=1, ratio=1, change=1), 9)
    0.00251566
    """
    shape = ShapedNoise(
        rational(order, "order"), nonnegative(mu, "mu"), positive(ridge, "ridge"), positive(gradient, "gradient"),
        positive(ratio, "ratio"), positive(change, "change"),
    )  # fmt: skip
    return shape.divergence(nonnegative(gamma, "gamma"))


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
