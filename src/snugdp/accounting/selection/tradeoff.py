"""Trade-off curves as lines: what is known of one run, whatever its mechanism, in both orders of the neighbours.

A curve for the ordered pair (Q, Q') is a list of proved hockey sticks: H_a(Q||Q') <= d for some a >= 1 (``ahead``) and
H_a(Q'||Q) <= r for some a >= 1 (``back``). Each is a line below the trade-off function L, so their maximum is a convex
lower bound of L, and swapping the lists gives the other order. All numbers are floats that mean what their bits say.
Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.accounting import composition
from snugdp.accounting.composition import Atom
from snugdp.accounting.gaussian import cdf, nonnegative, probability
from snugdp.accounting.selection.laws import Floats, Law
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, float_up, rational

MAX_DEVIATIONS = 12.0  # deviations of a Gaussian loss that are followed; beyond, the last stick holds
STICKS_PER_DEVIATION = 96  # sticks for each deviation
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
    return _gaussian(nonnegative(mu, "mu"), probability(failure, "failure"))


@lru_cache(maxsize=32)
def _gaussian(size: Fraction, lost: Fraction) -> Base:
    if size == 0:
        sticks = np.array([1.0]), np.array([float_up(lost)])
    else:
        factors = _factors(float(size))
        with balls.precision(_BITS):
            exact, rest = balls.ball(size), balls.ball(lost)
            bounds = [up(gaussian_stick(exact, arb(a)) + rest) for a in factors.tolist()]
        sticks = hull(factors, np.array(bounds))
    for part in sticks:
        part.flags.writeable = False  # it is given to others too
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
    reach = min(mu * (MAX_DEVIATIONS + mu / 2), 600.0)
    factors: Floats = np.exp(np.linspace(0.0, reach, math.ceil(STICKS_PER_DEVIATION * MAX_DEVIATIONS)))
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
        ends = pairwise(zip([arb(0), *self.alpha], [arb(1), *self.d], strict=True))
        self._chords = [(a, d, b - a, e - d) for (a, d), (b, e) in ends]  # left end, width, rise

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
        if left + 1 == right:
            a, d, width, rise = self._chords[right]
            return d + (alpha - a) / width * rise
        a, d = (self.alpha[left], self.d[left]) if left >= 0 else (arb(0), arb(1))
        part = (alpha - a) / (self.alpha[right] - a)
        return d + part * (self.d[right] - d)

    def bound(self, alpha: arb | None, stick: arb, x: arb, line: int, above: arb) -> arb:
        """A bound on max over s <= x of s - alpha L(s), from the profile, from one line, and x itself.

        ``above``: x less the d of that line.
        """
        if alpha is None:
            return x
        least = stick.min(x)
        corner = self.alpha[line]
        return least.min(x - alpha / corner * above) if alpha <= corner else least


# --- curves from what is known of a run: a cost, two finite laws, or the polygon itself ---


COARSE = 240  # sticks of a cost that is not a plain Gaussian
COARSEST = 80  # and of one with atoms of many branches, which take long to evaluate
_MAX_DIRECT_BRANCHES = 8


class Parts(Protocol):
    """The numbers of a ``snugdp.Cost``."""

    @property
    def mu_squared(self) -> Fraction: ...  # noqa: D102
    @property
    def epsilon(self) -> Fraction: ...  # noqa: D102
    @property
    def delta(self) -> Fraction: ...  # noqa: D102
    @property
    def variation(self) -> Fraction: ...  # noqa: D102
    @property
    def atoms(self) -> tuple[Atom, ...]: ...  # noqa: D102


def as_base(run: Base | Parts) -> Base:
    """A run as curves, from whatever describes it."""
    return run if isinstance(run, Base) else of_cost(run)


def of_cost(cost: Parts, sticks: int | None = None) -> Base:
    """A run of this ``snugdp.Cost``; for one with atoms both directions are followed.

    >>> from snugdp import Cost
    >>> len(of_cost(Cost(mu="0.1", epsilon="0.2")).curves)
    1
    """
    if not (cost.epsilon or cost.variation or cost.atoms):
        square = cost.mu_squared
        size = Fraction(balls.above(lambda: balls.ball(square).sqrt()))
        return gaussian(size, cost.delta)
    add = _profile(cost, "add", sticks)
    if all(atom.add == atom.remove for atom in cost.atoms):
        return Base((TradeoffCurve(add, add),))
    remove = _profile(cost, "remove", sticks)
    return Base((TradeoffCurve(add, remove), TradeoffCurve(remove, add)))


def of_cost_one_way(cost: Parts, sticks: int | None = None) -> Base:
    """A run that has this cost with the data set first that a test has certified; nothing is said of the other order.

    What that order may lose follows from the first one, but a failure counts as many times as its factor says
    (selection.proof.md, Lemma 2b).

    >>> from snugdp import Cost
    >>> float(of_cost_one_way(Cost(epsilon=1, delta="0.01")).curves[0].back[1][-1])  # e times as much
    0.027182818284590...
    """
    if cost.atoms:
        return Base(
            tuple(
                TradeoffCurve(_profile(cost, side, sticks), _followed(cost, side, sticks)) for side in ("add", "remove")
            )
        )
    if not cost.delta:
        return of_cost(cost, sticks)
    return Base(
        tuple(TradeoffCurve(curve.ahead, _raised(curve.back, cost.delta)) for curve in of_cost(cost, sticks).curves)
    )


def float_of_cost(cost: Parts, *, one_way: bool = False) -> Base:
    """``of_cost``, or ``of_cost_one_way``, in floats where a run is Gaussian but for a failure: nothing is promised.

    Beyond the range of a mu that floats follow well, and for other runs, it is the one or the other itself.
    """
    if cost.epsilon or cost.variation or cost.atoms or not 2.0**-60 < cost.mu_squared < 2.0**60:
        return of_cost_one_way(cost) if one_way else of_cost(cost)
    failure = float(cost.delta)
    base = float_gaussian(math.sqrt(cost.mu_squared), failure)
    if not (one_way and failure):
        return base
    factors, bounds = base.curves[0].ahead
    return Base((TradeoffCurve((factors, bounds), hull(factors, np.minimum(bounds + (factors - 1) * failure, 1.0))),))


def of_pair(p: Sequence[Real], q: Sequence[Real]) -> Base:
    """A run with finitely many outcomes and these two laws on neighbouring data sets; both orders."""
    first, second = _normal(p), _normal(q)
    if len(first) != len(second):
        raise ValueError("the two laws must list the same outcomes")
    curve = TradeoffCurve(_finite(first, second), _finite(second, first))
    return Base((curve, curve.swapped))


def of_vertices(points: Sequence[tuple[Real, Real]]) -> Base:
    """A run with this trade-off function: the convex polygon through the points (x, L(x)), x from 0 to 1.

    L(x) is the least probability, under the second law, of an event of probability x under the first.
    """
    vertices = [(rational(x, "x"), rational(y, "L(x)")) for x, y in points]
    if len(vertices) < 2 or any(vertices[0]) or vertices[-1][0] != 1:
        raise ValueError("a trade-off function goes from (0, 0) to (1, L(1)), in at least two points")
    p = [b[0] - a[0] for a, b in pairwise(vertices)]
    q = [b[1] - a[1] for a, b in pairwise(vertices)]
    if min(p) <= 0 or min(q) < 0 or vertices[-1][1] > 1:
        raise ValueError("x must increase, L(x) must not decrease, and L(1) must be at most 1")
    if any(a[1] * b[0] > b[1] * a[0] for a, b in pairwise(zip(p, q, strict=True))):
        raise ValueError("L must be convex")
    return of_pair([*p, 0], [*q, 1 - vertices[-1][1]])


def _profile(cost: Parts, side: str, sticks: int | None) -> Sticks:
    """Sticks of one direction of a cost, at factors not below exp(epsilon)."""
    if cost.mu_squared and not cost.atoms:
        return _plain(cost, _epsilons(cost, (), sticks))
    atoms = tuple(_one_sided(atom, side) for atom in cost.atoms)
    epsilons = _epsilons(cost, atoms, sticks)
    bounds = [_delta(cost, atoms, epsilon) for epsilon in epsilons]
    return hull(np.array([_factor(epsilon) for epsilon in epsilons]), np.array(bounds))


def _plain(cost: Parts, epsilons: list[Fraction]) -> Sticks:
    """The same for a cost without atoms, by Theorem T at the factors themselves."""
    factors = np.unique(np.exp([float(epsilon) for epsilon in epsilons]))
    bounds = []
    with balls.precision(balls.FIRST):
        mu, w = balls.ball(cost.mu_squared).sqrt(), balls.exp(balls.ball(cost.epsilon))
        failure, variation = balls.ball(cost.delta), balls.ball(cost.variation)
        for a in map(arb, factors.tolist()):
            mixed = (w * gaussian_stick(mu, a / w) + gaussian_stick(mu, a * w)) / (1 + w)
            bounds.append(up(mixed + failure + (1 + a) * variation))
    return hull(factors, np.array(bounds))


def _raised(sticks: Sticks, failure: Fraction) -> Sticks:
    """The sticks of the other order where the failure is known of the first one only: a f instead of f."""
    factors, bounds = sticks
    with balls.precision(balls.FIRST):
        lost, pairs = balls.ball(failure), zip(factors.tolist(), bounds.tolist(), strict=True)
        raised = [up(arb(d) + (arb(a) - 1) * lost) for a, d in pairs]
    return hull(factors, np.array(raised))


def _followed(cost: Parts, side: str, sticks: int | None) -> Sticks:
    """The sticks of the other order from those of this one at factors below 1: H_a back is 1 - a (1 - H_1/a)."""
    atoms = tuple(_one_sided(atom, side) for atom in cost.atoms)
    epsilons = _epsilons(cost, atoms, sticks)
    bounds = [Fraction(_delta(cost, atoms, -epsilon)) for epsilon in epsilons]
    with balls.precision(balls.FIRST):
        found = [up(1 - balls.exp(balls.ball(e)) * balls.ball(1 - d)) for e, d in zip(epsilons, bounds, strict=True)]
    return hull(np.array([_factor(epsilon) for epsilon in epsilons]), np.array(found))


def _delta(cost: Parts, atoms: tuple[Atom, ...], epsilon: Fraction) -> float:
    return composition.delta(
        mu_squared=cost.mu_squared,
        pure=cost.epsilon,
        failure=cost.delta,
        variation=cost.variation,
        atoms=atoms,
        epsilon=epsilon,
    )


def _factor(epsilon: Fraction) -> float:
    return balls.above(lambda: balls.exp(balls.ball(epsilon)))


def _one_sided(atom: Atom, side: str) -> Atom:
    branches = atom.add if side == "add" else atom.remove
    return Atom(branches, branches)


def _epsilons(cost: Parts, atoms: tuple[Atom, ...], sticks: int | None) -> list[Fraction]:
    """Where to look at the profile of a cost: evenly as far as its loss reaches, and where it may have a kink."""
    spread = cost.mu_squared + sum((max(b.mu_squared for b in atom.add) for atom in atoms), Fraction(0))
    shift = cost.epsilon + sum((max(b.shift for b in atom.add) for atom in atoms), Fraction(0))
    if not spread and not atoms:
        return [Fraction(0), shift]
    reach = float(shift) + math.sqrt(spread) * (MAX_DEVIATIONS + math.sqrt(spread) / 2)
    many = any(len(atom.add) > _MAX_DIRECT_BRANCHES for atom in atoms)
    count = sticks or (COARSEST if many else COARSE)
    even = {Fraction(round(2**20 * min(reach, 600.0) * i / count), 2**20) for i in range(count + 1)}
    return sorted(even | {cost.epsilon, shift})


def _normal(p: Sequence[Real]) -> list[Fraction]:
    """A law as exact rationals; what rounding took from its sum is given back in proportion."""
    masses = [nonnegative(value, "a probability") for value in p]
    total = sum(masses, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise ValueError("the probabilities of a law must have the sum 1")
    return [value / total for value in masses]


def _finite(p: list[Fraction], q: list[Fraction]) -> Sticks:
    """H_a(P||Q) at the likelihood ratios that are at least 1, where it bends: exact, rounded up."""
    ratios = {Fraction(1), *(x / y for x, y in zip(p, q, strict=True) if y and x > y)}
    at = [Fraction(float_up(ratio)) for ratio in sorted(ratios)]
    bounds = [sum((max(Fraction(0), x - a * y) for x, y in zip(p, q, strict=True)), Fraction(0)) for a in at]
    return hull(np.array([float(a) for a in at]), np.array([min(1.0, float_up(d)) for d in bounds]))
