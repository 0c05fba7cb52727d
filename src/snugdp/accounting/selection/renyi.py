"""Papernot and Steinke's Renyi bounds for selection from Gaussian runs: quoted, for comparison.

Statements: selection.proof.md, section "Quoted".
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import nonnegative
from snugdp.accounting.selection.counts import Poisson
from snugdp.accounting.selection.run_counts import BALLS, Floats, Law, NegativeBinomial
from snugdp.accounting.selection.tradeoff import Base
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational


class Renyi:
    """Papernot and Steinke's bound for a Gaussian run, converted at the best order."""

    def __init__(self, base: Base, law: Law) -> None:
        if base.mu is None or base.failure:
            raise ValueError("the Renyi accounting needs a Gaussian run without a failure mass: use C2")
        if not isinstance(law, NegativeBinomial | Poisson):
            raise ValueError("the Renyi accounting knows the negative binomial and the Poisson laws: use C2")  # noqa: TRY004
        self.mu, self.law = base.mu, law

    def _order(self, epsilon: float) -> Fraction:
        """About the best order: the exponent of the conversion is nearly convex in its logarithm."""
        orders = 1 + np.geomspace(1e-3, 1e7, 4000)
        half, law = float(self.mu**2) / 2, self.law
        if isinstance(law, NegativeBinomial):
            extra: float | Floats = float(1 + law.eta) * _other(float(law.gamma), float(self.mu))
        else:
            loss = np.log1p(1 / (orders - 1))
            mu = max(float(self.mu), 1e-300)
            extra = float(law.runs) * (_phi(mu / 2 - loss / mu) - np.exp(loss) * _phi(-mu / 2 - loss / mu))
        logs = (orders - 1) * (orders * half + extra - epsilon + np.log1p(-1 / orders)) - np.log(orders)
        return Fraction(float(orders[int(np.argmin(logs))]))

    def guess(self, epsilon: float) -> float:
        """The bound in floats: nothing is promised."""
        with balls.precision(balls.FIRST):
            return min(1.0, float(self.balls(Fraction(epsilon)).mid()))

    def balls(self, epsilon: Fraction) -> arb:
        """The bound as a ball at the present precision."""
        order = self._order(float(epsilon))
        if isinstance(self.law, NegativeBinomial):
            rho = tnb_ball(self.law, self.mu, order, _hat(self.law, self.mu))
        else:
            rho = poisson_ball(self.law, self.mu, order)
        shrink = balls.ball(1 - 1 / order).log() + rho - balls.ball(epsilon)
        return balls.exp(balls.ball(order - 1) * shrink) / balls.ball(order)


def renyi_tnb(law: NegativeBinomial, mu: Real, order: Real, other: Real) -> float:
    """The Renyi divergence, at ``order``, of selection from Gaussian runs; any ``other`` order >= 1; rounded up."""
    size, alpha, hat = nonnegative(mu, "mu"), _order(order), rational(other, "other")
    if hat < 1:
        raise ValueError("the other order must be at least 1")
    return balls.above(lambda: tnb_ball(law, size, alpha, hat))


def renyi_poisson(law: Poisson, mu: Real, order: Real) -> float:
    """The Renyi divergence, at ``order``, of selection from a Poisson number of Gaussian runs; rounded up."""
    size, alpha = nonnegative(mu, "mu"), _order(order)
    return balls.above(lambda: poisson_ball(law, size, alpha))


def tnb_ball(law: NegativeBinomial, mu: Fraction, order: Fraction, hat: Fraction) -> arb:
    """e(l) + (1 + eta)(1 - 1/h) e(h) + (1 + eta) log(1/gamma)/h + log(m)/(l - 1), e(l) = l mu^2/2."""
    own = balls.ball(mu**2 / 2 * (order + (1 + law.eta) * (hat - 1)))
    search = -balls.ball((1 + law.eta) / hat) * balls.ball(law.gamma).log()
    mean: arb = law.mean_in(BALLS)
    return own + search + mean.log() / balls.ball(order - 1)


def poisson_ball(law: Poisson, mu: Fraction, order: Fraction) -> arb:
    """e(l) + m delta(log(1 + 1/(l - 1))) + log(m)/(l - 1)."""
    size, a = balls.ball(mu), balls.ball(1 + 1 / (order - 1))
    start = size / 2 - a.log() / size if mu else arb(0)
    stick = (gaussian.cdf(start) - a * gaussian.cdf(start - size)).max(arb(0)) if mu else arb(0)
    mean = balls.ball(law.runs)
    return balls.ball(order * mu**2 / 2) + mean * stick + mean.log() / balls.ball(order - 1)


def _hat(law: NegativeBinomial, mu: Fraction) -> Fraction:
    if mu == 0:
        return Fraction(10**12)
    return max(Fraction(1), Fraction(math.sqrt(-2 * math.log(law.gamma)) / float(mu)).limit_denominator(10**6))


def _other(gamma: float, mu: float) -> float:
    hat = max(1.0, math.sqrt(-2 * math.log(gamma)) / max(mu, 1e-12))
    return (hat - 1) * mu**2 / 2 - math.log(gamma) / hat


def _phi(x: Floats) -> Floats:
    from scipy.special import ndtr

    found: Floats = ndtr(x)
    return found


def _order(value: Real) -> Fraction:
    order = rational(value, "order")
    if order <= 1:
        raise ValueError("the order of a Renyi divergence must be above 1")
    return order
