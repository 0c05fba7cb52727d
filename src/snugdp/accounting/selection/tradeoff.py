"""Trade-off curves as lines: what is known of one run, whatever its mechanism, in both orders of the neighbours.

A curve for the ordered pair (Q, Q') is a list of proved hockey sticks: H_a(Q||Q') <= d for some a >= 1 (``ahead``) and
H_a(Q'||Q) <= r for some a >= 1 (``back``). Each is a line below the trade-off function L, so their maximum is a convex
lower bound of L, and swapping the lists gives the other order. All numbers are floats that mean what their bits say.
Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.accounting.gaussian import cdf, nonnegative, probability
from snugdp.accounting.selection.run_counts import Floats, Law
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, float_up

FARTHEST = 12.0  # deviations of a Gaussian loss that are followed; beyond, the last stick holds
FINE = 96  # sticks for each deviation
_BITS = 96

Indices = NDArray[np.intp]
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


@dataclass(frozen=True, eq=False)
class TradeoffLines:
    """The lines L(x) >= (x - d)/alpha of a curve, alpha increasing, and where they meet."""

    curve: TradeoffCurve

    @cached_property
    def alpha(self) -> Floats:
        """Factors, below 1 for what is known of the other order."""
        return np.concatenate([1 / self.back[0], self.ahead[0]])

    @cached_property
    def d(self) -> Floats:
        """Bounds on H_alpha."""
        return np.concatenate([1 - (1 - self.back[1]) / self.back[0], self.ahead[1]])

    @cached_property
    def ahead(self) -> Sticks:
        """The sticks of the order itself; of two bounds on the same H_1 the larger is left out."""
        a, d = self.curve.ahead
        keep = slice(1, None) if self._twice and d[0] > self.curve.back[1][0] else slice(None)
        return a[keep], d[keep]

    @cached_property
    def back(self) -> Sticks:
        """The sticks of the other order, from the largest factor down."""
        a, r = self.curve.back
        keep = slice(1, None) if self._twice and r[0] >= self.curve.ahead[1][0] else slice(None)
        return a[keep][::-1], r[keep][::-1]

    @property
    def _twice(self) -> bool:
        return bool(self.curve.ahead[0][0] == 1 == self.curve.back[0][0])

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        """B(z) = 1 - L(1 - z) <= s z + c, the last line being B <= 1."""
        (a, r), (b, d) = self.back, self.ahead
        return np.concatenate([a, 1 / b, [0.0]]), np.concatenate([r, 1 - (1 - d) / b, [1.0]])

    @cached_property
    def corners(self) -> Floats:
        """The z at which each line hands over to the next."""
        s, c = self._slopes
        gap = np.maximum(s[:-1] - s[1:], 1e-300)
        return np.maximum.accumulate(np.clip((c[1:] - c[:-1]) / gap, 0.0, 1.0))

    @cached_property
    def _low(self) -> Floats:
        """The x at which each line of ``ahead`` hands over to the one before it, increasing."""
        a, d = self.ahead
        return np.maximum.accumulate((d[:-1] + a[:-1] * (d[:-1] - d[1:]) / (a[1:] - a[:-1]))[::-1])

    def grid(self, law: Law, points: int) -> Floats:
        """Points z from 1 down to 0."""
        parts = [self.corners, law.grid(points), np.geomspace(1e-15, 1.0, points // 5), np.array([0.0, 1.0])]
        return np.unique(np.concatenate(parts))[::-1]

    def upper(self, z: Floats) -> tuple[Indices, Floats, Floats]:
        """For every cell of the grid: a line of B, and its values at the upper and the lower end."""
        line = np.searchsorted(self.corners, (z[:-1] + z[1:]) / 2)
        s, c = (part[line] for part in self._slopes)
        return line, s * z[:-1] + c, s * z[1:] + c

    def at(self, x: Floats) -> Indices:
        """For every x the line that is highest there, nearly."""
        top = len(self.alpha) - 1
        low = top - np.searchsorted(self._low, x)
        high = np.searchsorted(self.corners, 1 - x)
        beyond = x > (self._low[-1] if len(self._low) else 0.0)
        return np.minimum(np.where(beyond, high, low), top)

    def stick(self, alpha: Floats) -> Floats:
        """H_alpha by chords between the lines."""
        found: Floats = np.interp(alpha, np.concatenate([[0.0], self.alpha]), np.concatenate([[1.0], self.d]))
        return found


class Chords:
    """The lines of a curve as balls, and the profile between them."""

    def __init__(self, lines: TradeoffLines) -> None:
        (a, r), (b, d) = ([[arb(x) for x in part.tolist()] for part in side] for side in (lines.back, lines.ahead))
        self.nodes = lines.alpha.tolist()
        self.alpha = [*(1 / x for x in a), *b]
        self.d = [*(1 - (1 - y) / x for x, y in zip(a, r, strict=True)), *d]
        self.slope = [*a, *(1 / x for x in b), arb(0)]
        self.offset = [*r, *(1 - (1 - y) / x for x, y in zip(b, d, strict=True)), arb(1)]

    def stick(self, alpha: arb) -> arb:
        """A bound on H_alpha: the chord between two lines around alpha; beyond the last, that one."""
        alpha = alpha.lower()  # H does not increase in alpha, and a point is easier to place than a ball
        right = bisect_left(self.nodes, float(alpha.mid()))
        while right < len(self.alpha) and not alpha <= self.alpha[right]:
            right += 1
        left = min(right, len(self.alpha)) - 1
        while left >= 0 and not self.alpha[left] <= alpha:
            left -= 1
        if right == len(self.alpha):
            return self.d[left] if left >= 0 else arb(1)
        a, d = (self.alpha[left], self.d[left]) if left >= 0 else (arb(0), arb(1))
        part = (alpha - a) / (self.alpha[right] - a)
        return d + part * (self.d[right] - d)

    def bound(self, alpha: arb | None, stick: arb, x: arb, line: int) -> arb:
        """A bound on max over s <= x of s - alpha L(s), from the profile, from one line, and x itself."""
        if alpha is None:
            return x
        least = stick.min(x)
        if alpha <= self.alpha[line]:
            part = alpha / self.alpha[line]
            least = least.min(x - part * (x - self.d[line]))
        return least
