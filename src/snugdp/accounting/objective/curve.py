"""Objective perturbation with a loss whose slope keeps its sign: the curve of deltas, and three ways to use it.

The curve bounds delta at every epsilon when a row, or a person, is removed. It is turned into an atom (the Gaussian
mechanism plus a few small constants) or into the parameter of one Gaussian mechanism. Statements and proofs:
glm.proof.md, for persons persons.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import arb

from snugdp.accounting.composition import Branch
from snugdp.accounting.gaussian import cdf, delta_ball
from snugdp.numerics import balls, roots

MAX_LEVELS = 64
MAX_RATIO = 50  # the largest e_c/m that is followed: beyond it two points remain
MAX_LOSS = 500  # and the largest e_c: floats find the points
_BITS = 128
_GRID = 4  # losses are multiples of e_c/(4 levels), so that those of equal runs add up to few sums
_TABLE = 4097
_MIN_DELTA = Fraction(1, 2**4000)

Point = tuple[Fraction, Fraction]
Knot = tuple[Fraction, arb]
Convex = tuple[list[Branch], arb]


@dataclass(frozen=True)
class RemovalCurve:
    """Deltas of a removal: at most ``points`` in between, and those of a Gaussian mechanism m at every other epsilon.

    ``points`` are (epsilon, delta), epsilon rising from above 0 to the last; between them a bound is the straight line
    in exp(epsilon). From the last point on it is the Gaussian curve itself, and for rows up to 0 as well. For persons
    ``at_zero`` is the delta at epsilon 0, of both directions, which is above the Gaussian one.
    """

    m_squared: Fraction
    points: tuple[Point, ...]
    at_zero: Fraction | None = None

    @property
    def removal(self) -> tuple[Branch, ...]:
        """The branches of a removal: the Gaussian one, and constants with the weights of glm.proof.md, Lemma 4."""
        with balls.precision(_BITS):
            constants, _ = convex_branches(self._knots(), self._delta, self._mass)
        return (Branch(self.m_squared, Fraction(0)), *constants)

    @property
    def addition(self) -> tuple[Branch, ...]:
        """The branches of an addition: the Gaussian one, and weights at loss 0, for persons at m^2/2 as well.

        glm.proof.md, Lemma 4; persons.proof.md, Theorem 4.
        """
        weight, knots = arb(0), self._knots()
        with balls.precision(_BITS):
            excess = self._excess
            for (low, r_low), (high, r_high) in pairwise(knots):
                width = _exp(high) - _exp(low)
                start = r_low - self._delta(low) - excess if low else arb(0)
                rise = (r_high - r_low) / width + self._mass(low)
                if low:
                    weight = weight.max(start / (_exp(low) - 1))
                weight = weight.max((start + rise * width) / (_exp(high) - 1))
            both = (Branch(self.m_squared, Fraction(0)), *self.near_zero)
            gained = sum((branch.weight for branch in both[1:]), Fraction(0))
            return (*both, *weighted(Fraction(0), weight - balls.ball(gained)))

    @property
    def _excess(self) -> arb:
        """How far the delta at 0 is above that of the Gaussian mechanism."""
        return arb(0) if self.at_zero is None else balls.ball(self.at_zero) - self._delta(Fraction(0))

    @property
    def near_zero(self) -> list[Branch]:
        """The constant m^2/2 of an addition, whose weight makes up for what lies above the Gaussian curve at 0."""
        if self.at_zero is None:
            return []
        half = self.m_squared / 2
        with balls.precision(_BITS):
            return weighted(half, self._excess / (1 - _exp(-half)))

    def below_gaussian(self, square: Fraction) -> bool:
        """Whether the curve is proved to lie below that of a Gaussian mechanism of mu^2 = ``square``."""
        if square < self.m_squared:
            return False
        if not self.points or square == self.m_squared:
            return not self.points
        with balls.precision(_BITS):
            pieces = list(pairwise(self._knots()))
            if self.at_zero is not None:  # an addition, up to where it is Gaussian
                half = self.m_squared / 2
                pieces.append(((Fraction(0), balls.ball(self.at_zero)), (half, self._delta(half))))
            return all(_segment_below(square, *ends) for ends in pieces)

    def gaussian_squared(self) -> Fraction:
        """About the smallest square of a mu such that the run is mu-Gaussian DP; an error if none is found."""
        if not self.points:
            return self.m_squared
        guess = self._guess() if self.points[-1][0] <= MAX_LOSS else 0.0
        for more in (2.0**-12, 2.0**-8, 2.0**-5, 0.5) if guess else ():
            square = Fraction(guess * (1 + more)) ** 2
            if self.below_gaussian(square):
                return square
        raise ValueError("kappa is too large relative to m for a Gaussian bound: use a larger ridge")

    def _guess(self) -> float:
        """The smallest mu whose curve lies above this one, in floats."""
        from scipy.special import ndtr

        ends, values = np.array([[float(e), float(r.mid())] for e, r in self._knots()]).T
        x = np.unique(np.concatenate([np.exp(ends), np.linspace(1.0, math.exp(ends[-1]), 1024)]))
        e, line = np.log(x), np.interp(x, np.exp(ends), values)
        least = math.sqrt(self.m_squared)

        def too_small(mu: float) -> bool:
            return not np.all(ndtr(mu / 2 - e / mu) - x * ndtr(-mu / 2 - e / mu) >= line)

        return roots.bisect(too_small, least, 64 * least, 40)[1]

    def _knots(self) -> list[Knot]:
        """The points as balls, with the one at 0; at both ends the Gaussian delta itself."""
        if not self.points:
            return []
        last = self.points[-1][0]
        inner = [(e, balls.ball(r)) for e, r in self.points[:-1]]
        first = self._delta(Fraction(0)) if self.at_zero is None else balls.ball(self.at_zero)
        return [(Fraction(0), first), *inner, (last, self._delta(last))]

    def _delta(self, epsilon: Fraction) -> arb:
        with balls.precision(_BITS):
            return delta_ball(self.m_squared, epsilon)

    def _mass(self, epsilon: Fraction) -> arb:
        """Minus the slope of the Gaussian curve in exp(epsilon), epsilon >= 0."""
        return _second(self.m_squared, epsilon) if self.m_squared else arb(0)


def convex_branches(knots: Sequence[Knot], base: Callable[[Fraction], arb], mass: Callable[[Fraction], arb]) -> Convex:
    """Constants that lie above a broken line in exp(epsilon) less a convex function ``base`` of slope -``mass``.

    The second is minus the slope of all of them before the first knot. (glm.proof.md, Lemma 4b.)
    """
    branches, steepness, height = list[Branch](), arb(0), arb(0)
    for (low, r_low), (high, r_high) in zip(reversed(knots[:-1]), reversed(knots[1:]), strict=True):
        width = _exp(high) - _exp(low)
        line, left, right = (r_low - r_high) / width, mass(low), mass(high)
        fall = line - right  # the slope at the right end
        if left > right:  # or less, where the sum so far is higher than that end: above two tangents
            end = r_low - base(low)
            meet = (r_high - base(high) + fall * width - end) / (left - right)
            over = ((end - (line - left) * meet - height) / (width - meet)).max((end - height) / width)
            fall = fall.min(over) if over.is_finite() else fall
        if not fall <= steepness:
            steeper = steepness.max(fall)
            branches += weighted(high, (steeper - steepness) * _exp(high))
            steepness = steeper
        height += steepness * width
    return branches, steepness


def plain_curve(m_squared: Fraction, limit: Fraction) -> RemovalCurve:
    """The curve known at 0 and at the critical loss only."""
    if not limit:
        return RemovalCurve(m_squared, ())
    return RemovalCurve(m_squared, ((limit, gaussian_above(m_squared, limit)),))


@lru_cache(maxsize=256)
def logistic_curve(m_squared: Fraction, kappa: Fraction, levels: int = MAX_LEVELS) -> RemovalCurve:
    """The curve for a loss of logistic type, at about ``levels`` points.

    Guarantee: glm.proof.md, Theorem 3. Where e_c is many times m, or m is 0, the plain curve.

    >>> curve = logistic_curve(Fraction(1, 16), Fraction(1, 2))
    >>> len(curve.points), float(curve.points[-1][0]), round(float(curve.gaussian_squared()), 3)
    (57, 0.46875, 0.075)
    """
    limit = max(Fraction(0), kappa - m_squared / 2)
    if not limit or limit > MAX_LOSS or limit**2 > MAX_RATIO**2 * m_squared:
        return plain_curve(m_squared, limit)
    tops = losses_up_to(limit, levels)
    ends = _ends(tops, m_squared, kappa, limit)
    deltas = _integrals(tops, ends, m_squared)
    if m_squared < kappa**2 < 16 * m_squared:  # beyond, it is never the smaller one
        deltas = [min(one, gaussian_above(kappa**2, top)) for one, top in zip(deltas, tops, strict=True)]
    with balls.precision(_BITS):
        start = rounded_up(delta_ball(m_squared, Fraction(0)))
    return RemovalCurve(m_squared, hull(start, list(zip(tops, deltas, strict=True))))


def losses_up_to(limit: Fraction, levels: int) -> list[Fraction]:
    """About ``levels`` losses up to the limit, denser where the Gaussian curve falls faster, on an even grid."""
    places = {math.ceil(_GRID * levels * math.sqrt(place / levels)) for place in range(1, levels + 1)}
    return [limit * place / (_GRID * levels) for place in sorted(places)]


def _ends(tops: list[Fraction], m_squared: Fraction, kappa: Fraction, limit: Fraction) -> list[Fraction]:
    """Gaussian losses up to which the loss of a removal is proved to be at most each of ``tops`` (line 1)."""
    m2, k = float(m_squared), float(kappa)
    y = np.linspace(0.0, 1.0, _TABLE)[1:]  # sqrt(1 - 4u): the maximiser u as a function of a, the other way round
    a = y * (k / (1 + k * (1 - y * y) / 4) - m2 / 2)
    a, y = a[a > 0], y[a > 0]
    psi = np.log1p(k * (1 - y * y) / 4) - m2 * (1 - y * y) / 8 - a * (1 - y) / 2
    losses = np.concatenate([-a[::-1], a])
    guesses = np.interp([float(top) for top in tops], np.concatenate([psi[::-1], a + psi]), losses).tolist()
    ends: list[Fraction] = []
    for top, guess in zip(tops, guesses, strict=True):
        ends.append(top if top >= limit else -2 * limit)  # at -2 e_c the loss is 0 (Lemma 3): a safe default
        for back in (2.0**-30, 2.0**-20, 2.0**-12, 2.0**-7) if top < limit else ():
            end = Fraction(guess - back * float(limit))
            at = Fraction(float(np.interp(abs(float(end)), a, y)))
            if _largest_loss(end, at, m_squared, kappa) <= balls.ball(top):
                ends[-1] = end
                break
    return ends


def _largest_loss(gaussian: Fraction, y: Fraction, m_squared: Fraction, kappa: Fraction) -> arb:
    """An upper bound on Lbar at a Gaussian loss: max(loss, 0) + psi(|loss|), by the tangent at u = (1 - y^2)/4."""
    with balls.precision(_BITS):
        a, root, u = balls.ball(abs(gaussian)), balls.ball(y), (1 - y * y) / 4
        inside = balls.ball(1 + kappa * u)
        value = inside.log() - balls.ball(m_squared * u / 2) - a * (1 - root) / 2
        slope = balls.ball(kappa) / inside - balls.ball(m_squared / 2) - a / root
        psi = value + (slope * balls.ball(Fraction(1, 4) - u)).max(-slope * balls.ball(u))
        return balls.ball(max(gaussian, Fraction(0))) + psi


def _integrals(tops: list[Fraction], ends: list[Fraction], m_squared: Fraction) -> list[Fraction]:
    """E(1 - exp(e - L))_+ at every e of ``tops``, L the broken line through (end, top), Gaussian beyond (line 2)."""
    found: list[Fraction] = []
    with balls.precision(_BITS):
        m = balls.ball(m_squared).sqrt()

        def tail(loss: Fraction, slope: Fraction) -> arb:
            return cdf(-(balls.ball(loss - m_squared / 2) / m + balls.ball(slope) * m))

        one, none = Fraction(1), Fraction(0)
        mass, weight = tail(ends[-1], none), tail(ends[-1], one)
        for place in range(len(tops) - 1, -1, -1):
            top = tops[place]
            found.append(rounded_up(mass - _exp(top) * weight))
            if place and ends[place - 1] < ends[place]:
                slope = (top - tops[place - 1]) / (ends[place] - ends[place - 1])
                start = tops[place - 1] - slope * ends[place - 1]
                factor = balls.exp(balls.ball(-start + (slope**2 - slope) * m_squared / 2))
                weight += factor * (tail(ends[place - 1], slope) - tail(ends[place], slope))
                mass += tail(ends[place - 1], none) - tail(ends[place], none)
            elif place:
                ends[place - 1] = ends[place]
    return found[::-1]


def hull(start: Fraction, points: list[Point]) -> tuple[Point, ...]:
    """The points that the lower convex hull in exp(epsilon) needs, chosen in floats: any choice is a bound.

    ``start``: the delta at 0, where it begins.
    """
    kept: list[Point] = [(Fraction(0), start)]
    for point in points:
        while len(kept) > 1 and _above_line(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return tuple(kept[1:])


def _above_line(left: Point, middle: Point, right: Point) -> bool:
    (a, ra), (b, rb), (c, rc) = left, middle, right
    near, far = math.expm1(b - a), math.expm1(c - a)
    return float((ra - rb) / ra) * far <= float((ra - rc) / ra) * near


def _segment_below(square: Fraction, left: Knot, right: Knot, halvings: int = 5) -> bool:
    """Whether a straight line in exp(epsilon) is proved to lie below the Gaussian curve between its ends (line 3)."""
    (low, r_low), (high, r_high) = left, right
    if not (r_low <= delta_ball(square, low) and r_high <= delta_ball(square, high)):
        return False
    first, second = [_first(square, e) for e in (low, high)], [_second(square, e) for e in (low, high)]
    tilt, meet = (r_high - r_low) / (_exp(high) - _exp(low)), (first[0] - first[1]) / (second[0] - second[1])
    if r_low + tilt * (meet - _exp(low)) <= first[0] - second[0] * meet:
        return True
    middle = (low + high) / 2
    between = middle, r_low + tilt * (_exp(middle) - _exp(low))
    return halvings > 0 and all(
        _segment_below(square, *ends, halvings - 1) for ends in ((left, between), (between, right))
    )


def _first(square: Fraction, epsilon: Fraction) -> arb:
    return cdf(balls.ball(square / 2 - epsilon) / balls.ball(square).sqrt())


def _second(square: Fraction, epsilon: Fraction) -> arb:
    return cdf(balls.ball(-square / 2 - epsilon) / balls.ball(square).sqrt())


def weighted(shift: Fraction, weight: arb) -> list[Branch]:
    """Branches of one shift with this weight in all, each of at most 1; none if it is not above 0."""
    most = rounded_up(weight)
    if most <= 0:
        return []
    count = math.ceil(most)
    return [Branch(Fraction(0), shift, most / count)] * count


def _exp(epsilon: Fraction) -> arb:
    return balls.exp(balls.ball(epsilon))


def rounded_up(value: arb) -> Fraction:
    """The upper end, with few digits; 0 if it is negative, and never smaller than 2^-4000 otherwise."""
    with balls.precision(balls.FIRST):
        end = value.upper()
        if end <= 0:
            return Fraction(0)
        return _MIN_DELTA if end < balls.ball(_MIN_DELTA) else balls.exact(end)


def gaussian_above(square: Fraction, epsilon: Fraction) -> Fraction:
    """The delta of a Gaussian mechanism of mu^2 = ``square``, rounded up."""
    with balls.precision(_BITS):
        return rounded_up(delta_ball(square, epsilon))
