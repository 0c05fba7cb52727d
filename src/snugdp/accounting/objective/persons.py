"""Objective perturbation for persons with several rows: what one release costs when all rows of a person come or go.

m and kappa are those of one row times W, the most that the weights of a person's rows add up to. What a person adds is
paid for as by one row of weight W; taking a person away costs a little more ridge than that (growth.py). Statements and
proofs: persons.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from flint import arb

from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.gaussian import cdf, delta_ball
from snugdp.accounting.objective import curve as curves
from snugdp.accounting.objective.curve import RemovalCurve
from snugdp.accounting.objective.growth import MAX_DEVIATE, Family, Floats, Growth, removal_deltas
from snugdp.numerics import balls, roots

TAIL = Fraction(1, 2**146)  # the delta of a removal that levels do not follow
_BITS = 128
_LEVELS_PER_DEVIATION = 32
_CELLS_PER_LOSS = 12  # cells of a path for each unit of its loss, about
_MIN_CELLS, _MAX_CELLS = 2, 32
_MAX_LEVELS = 4096
_LEAST_KAPPA = Fraction(1, 1024)  # of m squared: a smaller kappa is taken for this one
_BEYOND = 0.25  # deviations beyond the last that is followed
_HALVINGS = 40
_DEVIATES = np.linspace(-10.0, 10.0, 1025)


@dataclass(frozen=True)
class PersonLoss:
    """One objective perturbation, whose neighbours differ in all rows of one person.

    ``family``: the bound on the curvature of the loss (``Growth``). ``constant_sign``: the slope of a row's loss never
    changes its sign; with the families ``logistic`` and ``linear`` there is then a curve.

    Guarantee: ``atom``, with a probability ``failure`` of no guarantee, is the cost of the run for any number of rows a
    person, whatever they hold, if their weights add up to at most W (persons.proof.md, Theorems 3 to 5).

    >>> loss = PersonLoss("class_t", False, Fraction(1, 20), Fraction(6, 10))
    >>> float(loss.critical_loss), len(loss.atom.add), len(loss.atom.remove) > 100
    (1.225, 2, True)
    """

    family: Family
    constant_sign: bool
    m_squared: Fraction
    kappa: Fraction
    levels: int = curves.MAX_LEVELS

    @cached_property
    def growth(self) -> Growth:
        """How fast events become more likely."""
        return Growth(self.family, self.m_squared, max(self.kappa, _LEAST_KAPPA * self.m_squared))

    @property
    def critical_loss(self) -> Fraction:
        """From here on a removal is no worse than a Gaussian release; kappa for a loss with bounded curvature only."""
        critical = self.growth.critical_loss
        return self.kappa if critical is None else critical

    @property
    def _class_c(self) -> bool:
        return self.constant_sign and self.family in ("logistic", "linear")

    @cached_property
    def is_followed(self) -> bool:
        """Whether levels follow a removal: not where they are too many, if the critical loss says enough."""
        return self.constant_sign or self.growth.critical_loss is None or bool(_level_losses(self.growth))

    @property
    def failure(self) -> Fraction:
        """The delta that the levels of a removal do not follow."""
        return Fraction(0) if self._class_c or not self.is_followed else TAIL

    @property
    def curve(self) -> RemovalCurve:
        """The deltas of a removal (a loss with a slope of constant sign, l'' <= c0 (1 - p) at least)."""
        if not self._class_c:
            raise ValueError("there is no curve for a loss whose slope may change its sign: use the atom")
        return _curve(self)

    @property
    def atom(self) -> Atom:
        """What the run costs, for any company."""
        return _atom(self)

    @property
    def at_zero(self) -> Fraction:
        """A delta at epsilon 0, in both directions: m phi(0), or 2 G_m(0) where the slope may change its sign."""
        if self.constant_sign:
            return balls.rational_above(lambda: (balls.ball(self.m_squared) / (2 * arb.pi())).sqrt())
        return min(Fraction(1), balls.rational_above(lambda: 2 * delta_ball(self.m_squared, Fraction(0))))


@lru_cache(maxsize=256)
def _curve(loss: PersonLoss) -> RemovalCurve:
    """The removal curve at some losses up to the critical one (Theorem 4)."""
    limit, square = loss.critical_loss, loss.m_squared
    tops = curves.losses_up_to(limit, loss.levels) if limit <= curves.MAX_LOSS else [limit]
    found = [*_deltas(loss.growth, tops[:-1], loss.at_zero), (limit, curves.gaussian_above(square, limit))]
    if square < loss.kappa**2 < 16 * square:
        found = [(top, min(delta, curves.gaussian_above(loss.kappa**2, top))) for top, delta in found]
    return RemovalCurve(square, curves.hull(loss.at_zero, found), loss.at_zero)


@lru_cache(maxsize=256)
def _atom(loss: PersonLoss) -> Atom:
    whole = Branch(loss.m_squared, Fraction(0))
    if loss._class_c:
        if loss.kappa**2 <= loss.m_squared:
            return Atom((whole,), (whole,))
        return Atom(loss.curve.addition, loss.curve.removal)
    if not loss.constant_sign:
        return Atom((whole, whole), _levels(loss) if loss.is_followed else (whole, _beyond(loss)))
    curve = RemovalCurve(loss.m_squared, (), loss.at_zero)
    return Atom((whole, *curve.near_zero, *curves.weighted(Fraction(0), _lower_half(loss.m_squared))), _levels(loss))


def _beyond(loss: PersonLoss) -> Branch:
    """The constant at the critical loss (Theorem 3, without levels)."""
    return Branch(Fraction(0), loss.critical_loss)


def _lower_half(m_squared: Fraction) -> arb:
    with balls.precision(_BITS):
        return cdf(-balls.ball(m_squared).sqrt() / 2)


def _levels(loss: PersonLoss) -> tuple[Branch, ...]:
    """Constants that lie above the deltas of a removal at every epsilon, but for TAIL (Theorem 3)."""
    followed = _level_losses(loss.growth)
    if not followed:
        raise ValueError("m and kappa are out of range for persons: use a larger ridge, or more noise")
    levels = [Fraction(0), *followed]
    (_, start), *found = _deltas(loss.growth, levels, loss.at_zero)
    if found[-1][1] > TAIL:
        raise ValueError("m and kappa are out of range for persons: use a larger ridge, or more noise")
    points = curves.hull(start, found)
    with balls.precision(_BITS):
        knots = [(Fraction(0), balls.ball(start)), *((loss, balls.ball(delta)) for loss, delta in points)]
        constants, steepness = curves.convex_branches(knots, lambda _: arb(0), lambda _: arb(0))
        constants += curves.weighted(Fraction(0), 1 - balls.ball(start) - steepness)  # the piece from 0 to 1
    return tuple(_whole(constants))


def _whole(branches: list[Branch]) -> list[Branch]:
    """The weights of an atom add up to at least 1: what is missing goes to the largest loss."""
    missing = 1 - sum((branch.weight for branch in branches), Fraction(0))
    if missing <= 0:
        return branches
    first = branches[0]
    return [Branch(first.mu_squared, first.shift, first.weight + missing), *branches[1:]]


def _level_losses(growth: Growth) -> list[Fraction]:
    """Multiples of a dyadic step, from the smallest loss of a path to one beyond all that is followed; not too many."""
    with np.errstate(all="ignore"):
        return _multiples(growth)


def _multiples(growth: Growth) -> list[Fraction]:
    m = math.sqrt(growth.m_squared)
    step = Fraction(2) ** math.floor(math.log2(m / _LEVELS_PER_DEVIATION))
    times, deviates = growth.path
    late = np.interp(-(MAX_DEVIATE + _BEYOND), -deviates, times) - 1
    highest = growth.rates(growth.deviates(np.array([late]), 64)).mean()
    if not highest <= curves.MAX_LOSS:
        return []
    first, last = max(1, math.ceil(_lowest(growth) / step)), math.ceil(highest / step) + 1
    if last - first > _MAX_LEVELS:
        return []
    return [step * level for level in range(first, last + 1)]


def _lowest(growth: Growth) -> float:
    """The smallest loss of a path."""
    return float(growth.rates(growth.path[1][-1:])[0])


def _deltas(growth: Growth, losses: list[Fraction], most: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Losses and upper bounds on the delta of a removal there, at most ``most``."""
    if not losses:
        return []
    largest = min(losses[-1], growth.known_from)
    cells = min(max(math.ceil(_CELLS_PER_LOSS * largest), _MIN_CELLS), _MAX_CELLS)
    deltas = removal_deltas(growth, losses, cells)
    return [(loss, min(most, curves.rounded_up(delta))) for loss, delta in zip(losses, deltas, strict=True)]


def guess_kappa(loss: PersonLoss, epsilon: float, delta: float, mu: float) -> float:
    """About the largest kappa at which a removal fits beside a Gaussian part mu, in floats: nothing is promised."""

    def fits(kappa: float) -> bool:
        return _about(replace(loss, kappa=Fraction(kappa)), epsilon, mu) <= delta

    return roots.bisect(fits, 2.0**-20 * epsilon, 64 * epsilon, _HALVINGS)[0]


def guess_m(loss: PersonLoss, epsilon: float, delta: float, mu: float, most: float) -> float:
    """About the largest m up to ``most`` at which a removal fits beside a Gaussian part mu, in floats, likewise."""

    def fits(m: float) -> bool:
        return _about(replace(loss, m_squared=Fraction(m) ** 2), epsilon, mu) <= delta

    return most if fits(most) else roots.bisect(fits, 2.0**-10 * most, most, _HALVINGS)[0]


def _about(loss: PersonLoss, epsilon: float, mu: float) -> float:
    """The delta of a removal beside a Gaussian part mu, in floats."""
    density = np.exp(-(_DEVIATES**2) / 2) / math.sqrt(2 * math.pi) * (_DEVIATES[1] - _DEVIATES[0])
    left = epsilon - mu * _DEVIATES - mu**2 / 2 if mu else np.full_like(_DEVIATES, epsilon)
    with np.errstate(all="ignore"):
        return float(density @ _profile(loss, left))


def _profile(loss: PersonLoss, losses: Floats) -> Floats:
    """The deltas of a removal at any losses, in floats; lines in exp(loss) below those of paths."""
    start, low = float(loss.at_zero), _lowest(loss.growth)
    at = float(loss.growth.profile(np.array([low]))[0])
    x = np.exp(np.minimum(losses, low))
    line = np.interp(x, [0.0, 1.0, float(np.exp(low))], [1.0, start, min(at, start)])
    return np.where(losses < low, line, np.minimum(loss.growth.profile(losses), start))
