"""How fast an event may become more likely while the rows of a person are added: removing a person, in proved bounds.

While the weight of a person's rows grows from 0 to 1, the probability of an event grows at a rate that depends on that
probability alone: J, concave. Tangents of J along any path turn that into a bound on delta at one epsilon; a path that
is nearly the worst one makes it sharp. Statements and proofs: persons.proof.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from snugdp.accounting.gaussian import cdf, delta_ball, density
from snugdp.numerics import balls

Family: TypeAlias = Literal["class_t", "logistic", "linear", "bounded"]
Floats: TypeAlias = NDArray[np.float64]

CELLS = 256  # of a path for one delta
MAX_DEVIATE = 14  # deviations; what lies beyond is not followed
_BITS = 96
_UNIT = 1 << 30  # points of a path are multiples of 1/_UNIT
_TABLE = 8193
_HALVINGS = 52
_MIN_DEVIATIONS = -8.0  # deviations: below, a path is not followed
_MAX_DEVIATIONS = 30.0  # deviations: where no path goes
_CLOSE = 1e-10  # how much of a loss is left for the rounding of its path

_Piece: TypeAlias = tuple[fmpq, fmpq, fmpq]
_ONE, _NONE, _QUARTER = fmpq(1), fmpq(0), fmpq(1, 4)  # rationals that are quicker than fractions

# The largest loss rate over kappa, a polynomial in tau = m t/kappa on each piece: where the piece begins, coefficients.
_PIECES: dict[Family, tuple[tuple[int | None, _Piece], ...]] = {
    "class_t": ((None, (_ONE, _NONE, _NONE)), (0, (_ONE, _NONE, _QUARTER)), (2, (_NONE, _ONE, _NONE))),
    "logistic": (
        (None, (_NONE, _NONE, _NONE)),
        (-1, (_QUARTER, fmpq(1, 2), _QUARTER)),
        (1, (_NONE, _ONE, _NONE)),
    ),
    "linear": ((None, (_ONE, _NONE, _NONE)), (1, (_NONE, _ONE, _NONE))),
    "bounded": ((None, (_ONE, _NONE, _NONE)), (0, (_ONE, _ONE, _NONE))),
}
_STARTS = {family: [start for start, _ in pieces if start is not None] for family, pieces in _PIECES.items()}


@dataclass(frozen=True)
class Growth:
    """The growth J of a removal: the largest part of the loss rate that an event of a given probability can hold.

    ``class_t``: l'' <= c0 (1 - p^2), ``logistic``: c0 p (1 - p), ``linear``: c0 (1 - p), ``bounded``: c0, each with
    p = |l'|/L0. m = W L0 B / sigma and kappa = W c0 B^2 / ridge hold the total weight W of a person, kappa > 0.
    """

    family: Family
    m_squared: Fraction
    kappa: Fraction

    def __post_init__(self) -> None:
        if self.m_squared <= 0 or self.kappa <= 0:
            raise ValueError("m and kappa must be greater than 0")

    @property
    def critical_loss(self) -> Fraction | None:
        """From this loss on a removal is no worse than a Gaussian release: e_c, or None if there is no such loss."""
        start, coefficients = _PIECES[self.family][-1]
        return start * self.kappa + self.m_squared / 2 if start and not coefficients[0] else None

    @property
    def known_from(self) -> Fraction:
        """From this loss on a bound on the delta of a removal has a closed form."""
        return self.kappa + self.m_squared / 2 if self.critical_loss is None else self.critical_loss

    def known(self, loss: Fraction) -> arb:
        """That bound: the delta of a Gaussian release; with bounded curvature only, of one that loses kappa before."""
        lost = self.kappa if self.critical_loss is None else Fraction(0)
        with balls.precision(_BITS):
            return balls.exp(balls.ball(lost)) * delta_ball(self.m_squared, loss - lost)

    def rate(self, tau: fmpq) -> fmpq:
        """The largest loss rate at the deviate t = kappa tau/m, exactly."""
        return self._rate(self._place(tau), tau)

    def _rate(self, place: int, tau: fmpq) -> fmpq:
        constant, slope, square = _PIECES[self.family][place][1]
        return self._kappa * (constant + tau * (slope + tau * square))

    def total(self, tau: fmpq) -> arb:
        """J at the probability Phi(-kappa tau/m): the integral of the rate from there on, as a ball."""
        place = self._place(tau)
        return self._integral(place, *self._tails(tau)) + self._rest[place]

    def tangent(self, tau: fmpq) -> tuple[fmpq, arb]:
        """The tangent of J at the probability Phi(-kappa tau/m): J <= offset + rate * probability. (rate, offset)."""
        place, (c, tail, height) = self._place(tau), self._tails(tau)
        rate = self._rate(place, tau)
        return rate, self._integral(place, c, tail, height) + self._rest[place] - arb(rate) * tail

    def _place(self, tau: fmpq) -> int:
        return bisect_right(_STARTS[self.family], tau)

    def _tails(self, tau: fmpq) -> tuple[arb, arb, arb]:
        """The deviate, the probability beyond it and the density there."""
        c = arb(tau) * self._unit
        return c, cdf(-c), density(c)

    def _integral(self, place: int, c: arb, tail: arb, height: arb) -> arb:
        """Of the polynomial of a piece from c to infinity."""
        constant, slope, square = self._coefficients[place]
        return (constant + square) * tail + (slope + square * c) * height

    @cached_property
    def _coefficients(self) -> tuple[tuple[arb, arb, arb], ...]:
        """The polynomial of each piece, in the deviate."""
        with balls.precision(2 * _BITS):
            k, m, squared = balls.ball(self.kappa), self._m, balls.ball(self.m_squared)
            pieces = [map(arb, piece) for _, piece in _PIECES[self.family]]
            return tuple((k * constant, m * slope, squared / k * square) for constant, slope, square in pieces)

    @cached_property
    def _kappa(self) -> fmpq:
        return fmpq(self.kappa.numerator, self.kappa.denominator)

    @cached_property
    def _m(self) -> arb:
        with balls.precision(2 * _BITS):
            return balls.ball(self.m_squared).sqrt()

    @cached_property
    def _unit(self) -> arb:
        with balls.precision(2 * _BITS):
            return balls.ball(self.kappa) / self._m

    @cached_property
    def _rest(self) -> tuple[arb, ...]:
        """For each piece, what has to be added to its integral from a point on: that of all later ones."""
        pieces, found = _PIECES[self.family], [arb(0)]
        with balls.precision(2 * _BITS):
            for place in range(len(pieces) - 1, 0, -1):
                tails = self._tails(fmpq(pieces[place][0] or 0))
                found.append(found[-1] + self._integral(place, *tails) - self._integral(place - 1, *tails))
        return tuple(reversed(found))

    # --- floats: where a path that is nearly the worst one goes. Nothing below has to be right for the bounds. ---

    @property
    def _scale(self) -> float:
        return math.sqrt(self.m_squared) / float(self.kappa)

    def rates(self, deviates: Floats) -> Floats:
        """The largest loss rate, in floats."""
        tau = deviates * self._scale
        pieces = _PIECES[self.family]
        place = sum((tau >= float(start or 0)).astype(int) for start, _ in pieces[1:])
        constant, slope, square = (np.array([_float(piece[i]) for _, piece in pieces])[place] for i in range(3))
        found: Floats = float(self.kappa) * (constant + slope * tau + square * tau * tau)
        return found

    def speeds(self, deviates: Floats) -> Floats:
        """J over the normal density, in floats: how fast the deviate falls along a path."""
        from scipy.special import erfcx

        def moments(at: Floats | float, height: Floats | float) -> list[Floats]:
            mills = math.sqrt(math.pi / 2) * erfcx(np.asarray(at) / math.sqrt(2))
            return [height * mills, np.asarray(height), height * (at + mills)]

        scale, pieces, total = self._scale, _PIECES[self.family], np.zeros_like(deviates)
        ends = [*(float(start or 0) / scale for start, _ in pieces[1:]), math.inf]
        for (start, coefficients), end in zip(pieces, ends, strict=True):
            begin = deviates if start is None else np.maximum(deviates, float(start) / scale)
            inside = begin < end
            low = moments(begin, np.exp((deviates - begin) * (deviates + begin) / 2))
            fall = np.where(inside, (deviates - end) * (deviates + end) / 2, 0.0) if math.isfinite(end) else -math.inf
            high = moments(min(max(end, -_MAX_DEVIATIONS), _MAX_DEVIATIONS), np.exp(fall))
            for power, coefficient in enumerate(coefficients):
                part = float(self.kappa) * _float(coefficient) * scale**power * (low[power] - high[power])
                total += np.where(inside, part, 0.0)
        return total

    @cached_property
    def path(self) -> tuple[Floats, Floats]:
        """The one path that all others are parts of: times, rising, and the deviates there, falling."""
        m, k = math.sqrt(self.m_squared), float(self.kappa)
        lowest = min((float(start) for start, _ in _PIECES[self.family] if start is not None), default=0.0)
        bottom = max(_MIN_DEVIATIONS, min(lowest * k / m, float(MAX_DEVIATE))) - 1.0
        deviates = np.linspace(MAX_DEVIATE + 1.0 + 2 * m + k, bottom, _TABLE)
        slowness = 1 / self.speeds(deviates)
        steps = (slowness[1:] + slowness[:-1]) / 2 * -np.diff(deviates)
        return np.concatenate([[0.0], np.cumsum(steps)]), deviates

    def profile(self, losses: Floats) -> Floats:
        """About the deltas of a removal at losses between those of paths, in floats."""
        from scipy.special import ndtr

        times, deviates = self.path
        rates = self.rates(deviates)
        sums = np.concatenate([[0.0], np.cumsum((rates[1:] + rates[:-1]) / 2 * np.diff(times))])
        starts = np.linspace(times[0], times[-1], _TABLE)
        along = np.interp(starts + 1, times, sums) + rates[-1] * np.maximum(starts + 1 - times[-1], 0)
        loss = along - np.interp(starts, times, sums)
        before, after = (ndtr(-np.interp(at, times, deviates)) for at in (starts, starts + 1))
        deltas = np.maximum.accumulate(after - np.exp(loss) * before)
        found: Floats = np.interp(losses, loss[::-1], deltas[::-1])
        return found

    def deviates(self, starts: Floats, cells: int) -> Floats:
        """Deviates in the middle of each cell of the paths of duration 1 from these times on."""
        middles = (np.arange(cells) + 0.5) / cells
        return np.interp(starts[:, None] + middles, *self.path)

    def starts(self, losses: Floats, cells: int) -> Floats:
        """When paths with these losses begin, in floats; the last time for losses that no path has."""
        low, high = np.zeros_like(losses), np.full_like(losses, self.path[0][-1])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self.rates(self.deviates(middle, cells)).mean(axis=1) > losses * (1 - _CLOSE)
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high


@dataclass(frozen=True)
class LinearBound:
    """A bound P[S | person there] <= delta + exp(loss) P[S | not there] on the probability of every event S."""

    loss: Fraction
    delta: arb

    def at(self, loss: Fraction) -> arb:
        """A delta at another loss: the same at larger ones; at smaller ones by a line in exp(loss) to 1 at 0."""
        if loss >= self.loss:
            return self.delta
        with balls.precision(_BITS):
            return 1 - (1 - self.delta) * balls.exp(balls.ball(loss - self.loss))


def bound_along(growth: Growth, deviates: Floats) -> LinearBound:
    """The bound by tangents of J at these deviates, one after the other for equal times, whatever they are (line 1)."""
    step, unit = fmpq(1, len(deviates)), math.sqrt(growth.m_squared) / float(growth.kappa) * _UNIT
    loss, later, delta = _NONE, arb(1), arb(0)
    with balls.precision(_BITS):
        for deviate in reversed(deviates.tolist()):
            rate, offset = growth.tangent(fmpq(round(deviate * unit), _UNIT))
            gained = arb(rate * step).expm1()
            delta += offset * later * (gained / arb(rate) if rate else arb(step))
            loss, later = loss + rate * step, later * (1 + gained)
    return LinearBound(Fraction(int(loss.p), int(loss.q)), delta)


def _float(value: fmpq) -> float:
    return int(value.p) / int(value.q)


def removal_deltas(growth: Growth, losses: Sequence[Fraction], cells: int = CELLS) -> list[arb]:
    """Upper bounds on the delta of a removal at each of these losses, which are at least 0 (line 2).

    Guarantee: persons.proof.md, Theorem 2. From the critical loss on it is the delta of a Gaussian release.

    >>> growth = Growth("class_t", Fraction(1, 20), Fraction(6, 10))
    >>> [f"{float(delta.mid()):.3g}" for delta in removal_deltas(growth, [Fraction(1), Fraction(2)])]
    ['3.86e-07', '1.23e-20']
    """
    known = growth.known_from
    starts = growth.starts(np.array([float(loss) for loss in losses if loss < known]), cells)
    paths = iter(growth.deviates(starts, cells))
    return [growth.known(loss) if loss >= known else bound_along(growth, next(paths)).at(loss) for loss in losses]
