"""Trade-off curves as lines: what is known of one run, whatever its mechanism, in both orders of the neighbours.

A curve for the ordered pair (Q, Q') is a list of proved hockey sticks: H_a(Q||Q') <= d for some a >= 1 (``ahead``) and
H_a(Q'||Q) <= r for some a >= 1 (``back``). Each is a line below the trade-off function L, so their maximum is a convex
lower bound of L, and swapping the lists gives the other order. All numbers are floats that mean what their bits say.
Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from flint import arb

from snugdp.accounting.gaussian import cdf, nonnegative, probability
from snugdp.accounting.selection.run_counts import Floats
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, float_up

FARTHEST = 12.0  # deviations of a Gaussian loss that are followed; beyond, the last stick holds
FINE = 96  # sticks for each deviation
COARSE = 240  # sticks of a cost that is not a plain Gaussian
_BITS = 96

Sticks = tuple[Floats, Floats]  # factors a >= 1, increasing, and bounds on H_a, decreasing and convex


@dataclass(frozen=True, eq=False)
class TradeoffCurve:
    """One ordered pair: ``ahead`` bounds H_a(Q||Q'), ``back`` bounds H_a(Q'||Q)."""

    ahead: Sticks
    back: Sticks

    @property
    def swapped(self) -> TradeoffCurve:
        """The other order."""
        return TradeoffCurve(self.back, self.ahead)


@dataclass(frozen=True, eq=False)
class Base:
    """One run, as accounting sees it: a curve for each order that must be looked at.

    ``mu`` is set where the run is a Gaussian pair with a failure mass: the Renyi accounting needs it.
    """

    curves: tuple[TradeoffCurve, ...]
    mu: Fraction | None = None
    failure: Fraction = Fraction(0)


Family = Callable[[Fraction], Base]


def gaussian(mu: Real, failure: Real = 0) -> Base:
    """A run that is mu-Gaussian DP except for a failure of probability ``failure``.

    >>> float(gaussian("0.1").curves[0].ahead[1][0])  # the total variation distance, 2 Phi(mu/2) - 1
    0.039877611676...
    """
    size, lost = nonnegative(mu, "mu"), probability(failure, "failure")
    if size == 0:
        sticks = np.array([1.0]), np.array([float_up(lost)])
    else:
        factors = _factors(float(size))
        with balls.precision(_BITS):
            exact, rest = balls.ball(size), balls.ball(lost)
            bounds = [up(gaussian_stick(exact, arb(a)) + rest) for a in factors.tolist()]
        sticks = hull(factors, np.array(bounds))
    return Base((TradeoffCurve(sticks, sticks),), size, lost)


def float_gaussian(mu: float, failure: float = 0.0) -> Base:
    """``gaussian`` in floats, for searches: nothing is promised."""
    from scipy.special import ndtr

    factors = _factors(mu)
    start = mu / 2 - np.log(factors) / mu
    bounds: Floats = np.minimum.accumulate(np.maximum(ndtr(start) - factors * ndtr(start - mu), 0.0)) + failure
    sticks = factors, bounds
    return Base((TradeoffCurve(sticks, sticks),), Fraction(mu), Fraction(failure))


def one_order(base: Base) -> Base:
    """The first order of the neighbours alone."""
    return replace(base, curves=base.curves[:1])


def hull(factors: Floats, bounds: Floats) -> Sticks:
    """The lower convex hull of sticks, as far as it decreases: what is left out is implied, up to rounding."""
    kept: list[tuple[float, float]] = []
    for a, d in zip(factors.tolist(), bounds.tolist(), strict=True):
        if kept and d >= kept[-1][1]:
            continue
        while len(kept) > 1 and _above(kept[-2], kept[-1], (a, d)):
            kept.pop()
        kept.append((a, d))
    return np.array([a for a, _ in kept]), np.array([d for _, d in kept])


def up(value: arb) -> float:
    """A float not below a ball of numbers between 0 and 1, quickly; at most 1."""
    guess = float(value.mid()) * (1 + 2.0**-50)
    if not (guess > 0 and arb(guess) >= value):
        guess = balls.upper(value)
    return min(1.0, max(0.0, guess))


def _above(before: tuple[float, float], here: tuple[float, float], after: tuple[float, float]) -> bool:
    """Whether the middle point lies on or above the chord."""
    return (here[1] - before[1]) * (after[0] - before[0]) >= (after[1] - before[1]) * (here[0] - before[0])


def _factors(mu: float) -> Floats:
    """exp(epsilon) for epsilon evenly spaced from 0 to as far as the loss is followed."""
    reach = min(mu * (FARTHEST + mu / 2), 600.0)
    factors: Floats = np.exp(np.linspace(0.0, reach, math.ceil(FINE * FARTHEST)))
    return np.unique(factors)


def gaussian_stick(mu: arb, a: arb) -> arb:
    """H_a of a Gaussian pair, as a ball."""
    start = mu / 2 - a.log() / mu
    return (cdf(start) - a * cdf(start - mu)).max(arb(0))
