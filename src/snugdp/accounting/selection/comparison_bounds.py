"""Weaker accountings of selection, for comparison and for what is known of a run in one form only.

The closed form of C1, its corollary for (epsilon, delta)-DP runs, Liu and Talwar's theorem as the paper quotes it, and
Papernot and Steinke's Renyi bounds. Statements: selection.proof.md; the last are quoted there, not proved.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from flint import arb

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import nonnegative, positive, probability
from snugdp.accounting.selection.laws import BALLS, FLOATS, Floats, Law, NegativeBinomial, Poisson
from snugdp.accounting.selection.tradeoff import Base, Chords, TradeoffCurve, TradeoffLines
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, rational


class ComparisonBound(NamedTuple):
    """An (epsilon, delta), both rounded up."""

    epsilon: float
    delta: float


class Closed:
    """C1 with rho bounded in closed form, by one stick of the other order (Corollary 4)."""

    def __init__(self, curve: TradeoffCurve, law: Law) -> None:
        self.law, self.lines, self.other = law, TradeoffLines(curve), TradeoffLines(curve.swapped)
        if isinstance(law, NegativeBinomial):
            self.factor = self._balance(float(1 / law.gamma - 1))
        elif isinstance(law, Poisson):
            self.factor = 1.0
        else:
            raise ValueError("there is no closed form for this law: use C1")  # noqa: TRY004

    def _balance(self, odds: float) -> float:
        """Where the factor a and 1 + odds H_a meet: the first grows, the second falls."""

        def below(a: float) -> bool:
            return a <= 1 + odds * float(self.other.stick(np.array([a]))[0])

        return roots.bisect(below, 1.0, float(self.other.alpha[-1]), 100)[1]

    def _rho(self) -> arb:
        bound = Chords(self.other).stick(arb(self.factor))
        if isinstance(self.law, NegativeBinomial):
            bound = arb(self.factor).max(1 + balls.ball(1 / self.law.gamma - 1) * bound)
        rho: arb = self.law.rho(bound, BALLS)
        return rho

    @cached_property
    def _rho_float(self) -> float:
        with balls.precision(balls.FIRST):
            return float(self._rho().mid())

    def guess(self, epsilon: float) -> float:
        """The bound in floats: nothing is promised."""
        alpha = math.exp(epsilon) / self._rho_float
        return float(self.law.mean_in(FLOATS) * self.lines.stick(np.array([alpha]))[0])

    def balls(self, epsilon: Fraction) -> arb:
        """The bound as a ball at the present precision."""
        alpha = balls.exp(balls.ball(epsilon)) / self._rho()
        mean: arb = self.law.mean_in(BALLS)
        return mean * Chords(self.lines).stick(alpha)


class Corollary:
    """Three times the epsilon, 1/gamma times the delta, where the run's delta is small enough (Corollary 5)."""

    def __init__(self, curve: TradeoffCurve, law: Law) -> None:
        self.gamma, self.orders = _geometric(law), (TradeoffLines(curve), TradeoffLines(curve.swapped))

    def guess(self, epsilon: float) -> float:
        """The bound in floats: nothing is promised."""
        d = max(float(lines.stick(np.array([math.exp(epsilon / 3)]))[0]) for lines in self.orders)
        small = d <= float(self.gamma / (1 - self.gamma)) * math.expm1(epsilon / 3)
        return d / float(self.gamma) if small else 1.0

    def balls(self, epsilon: Fraction) -> arb:
        """The bound as a ball at the present precision."""
        alpha = balls.exp(balls.ball(epsilon / 3))
        first, second = (Chords(lines).stick(alpha) for lines in self.orders)
        d = first.max(second)
        small = balls.ball(1 / self.gamma - 1) * d <= alpha - 1
        return d / balls.ball(self.gamma) if small else arb(1)


class QuotedBound:
    """Liu and Talwar's theorem as the paper quotes it, half of delta going to the cut of the number of runs."""

    def __init__(self, curve: TradeoffCurve, law: Law) -> None:
        self.tau, self.orders = _geometric(law), (TradeoffLines(curve), TradeoffLines(curve.swapped))

    def _split(self, epsilon: float) -> tuple[float, float]:
        """The run's epsilon at which 3 e + 3 sqrt(2 d) is epsilon, and the delta_2 that is half of the total."""
        low, high = 0.0, epsilon / 3
        for _ in range(80):
            e = (low + high) / 2
            low, high = (e, high) if 3 * e + 3 * math.sqrt(2 * self._run(e)) <= epsilon else (low, e)
        size = max(math.sqrt(2 * self._run(low)) / float(self.tau), 1e-280)
        below, above = math.log(1e-300), -1.001
        for _ in range(80):
            log = (below + above) / 2
            below, above = (log, above) if math.exp(log) < -size * log else (below, log)
        return low * (1 - 1e-13), math.exp(above)

    def _run(self, epsilon: float) -> float:
        return max(float(lines.stick(np.array([math.exp(epsilon)]))[0]) for lines in self.orders)

    def guess(self, epsilon: float) -> float:
        """The bound in floats: nothing is promised."""
        e, cut = self._split(epsilon)
        root = math.sqrt(2 * self._run(e))
        return min(1.0, root * math.log(1 / cut) / float(self.tau) + cut) if e > 0 else 1.0

    def balls(self, epsilon: Fraction) -> arb:
        """The bound as a ball at the present precision."""
        e, cut = (Fraction(value) for value in self._split(float(epsilon)))
        alpha = balls.exp(balls.ball(e))
        first, second = (Chords(lines).stick(alpha) for lines in self.orders)
        root = (2 * first.max(second)).sqrt()
        if not balls.ball(3 * e) + 3 * root <= balls.ball(epsilon):
            return arb(1)
        return root * -balls.ball(cut).log() / balls.ball(self.tau) + balls.ball(cut)


def corollary(epsilon: Real, delta: Real, gamma: Real) -> ComparisonBound:
    """What a geometric number of (epsilon, delta)-DP runs costs: e + 2 max(e, log(1 + (1 - gamma) d/gamma)), d/gamma.

    >>> round(corollary("0.904", "1e-5", "0.02").epsilon, 6)
    2.712
    """
    e, d, g = nonnegative(epsilon, "epsilon"), probability(delta, "delta"), _share(gamma)
    total = balls.above(lambda: balls.ball(e) + 2 * balls.ball(e).max(balls.ball(1 + (1 - g) * d / g).log()))
    return ComparisonBound(total, min(1.0, balls.above(lambda: balls.ball(d / g))))


def liu_talwar(epsilon: Real, delta: Real, tau: Real, delta_2: Real) -> tuple[float, ComparisonBound]:
    """The largest number of runs T = ln(1/delta_2)/tau, and (3 e + 3 sqrt(2 d), sqrt(2 d) T + delta_2)."""
    e, d, rate = nonnegative(epsilon, "epsilon"), probability(delta, "delta"), _share(tau)
    cut = positive(delta_2, "delta_2")
    if cut > Fraction(9, 25):
        raise ValueError("delta_2 must be at most 0.36: the theorem is proved up to 1/e")
    most = balls.above(lambda: -balls.ball(cut).log() / balls.ball(rate))
    root = balls.above(lambda: balls.ball(2 * d).sqrt())
    total = balls.above(lambda: balls.ball(3 * e + 3 * Fraction(root)))
    return most, ComparisonBound(
        total, min(1.0, balls.above(lambda: balls.ball(Fraction(root) * Fraction(most) + cut)))
    )


def _geometric(law: Law) -> Fraction:
    if isinstance(law, NegativeBinomial) and law.eta == 1:
        return law.gamma
    raise ValueError("this accounting is for the geometric law")


def _share(value: Real) -> Fraction:
    number = rational(value, "gamma")
    if not 0 < number < 1:
        raise ValueError("gamma must be above 0 and below 1")
    return number


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
