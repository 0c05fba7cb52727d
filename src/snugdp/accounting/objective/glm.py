"""Objective perturbation for generalised linear models: how much noise a budget asks for, and how little ridge.

m, kappa, kinds of losses and units are those of run.py. Statements and proofs: glm.proof.md, persons.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import nonnegative, positive, probability
from snugdp.accounting.objective.persons import guess_kappa, guess_m
from snugdp.accounting.objective.run import CONSTANT_SIGN, Kind, RunCost, Unit, log_det, pseudo_huber_kappa, within
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, float_down, readings

_ZERO = Fraction(0)
_OF_A_GUESS = (1.0, 0.9998, 0.998, 0.99, 0.97, 0.93, 0.85, 0.7, 0.4)
_OF_ALONE = tuple(Fraction(part, 16) for part in (15, 14, 13, 12, 10, 8, 6, 4, 2))
_HALVINGS, _CLOSE = 3, 1024
_NEAR_MOST = 0.999  # from here on a guess may well be what all of the budget affords


def calibrate(
    epsilon: Real,
    delta: Real,
    kind: Kind = "logistic",
    *,
    kappa: Real | None = None,
    mu: Real = 0,
    runs: int = 1,
    unit: Unit = "row",
) -> float:
    """The largest m of each of ``runs`` equal runs beside a Gaussian part ``mu``; rounded down, 0 if there is none.

    Without ``kappa``: what the adding of a row allows. It is the m of a Gaussian mechanism (of half the delta where the
    slope changes its sign), and ``largest_kappa`` says how small the ridge may be. With ``kappa`` given: an m at which
    the whole is proved to be (epsilon, delta)-DP.

    >>> round(calibrate(1, "1e-6"), 9), round(calibrate(1, "1e-6", kappa="1.2"), 5)
    (0.236704381, 0.23578)
    """
    level, goal, rest = positive(epsilon, "epsilon"), probability(delta, "delta"), nonnegative(mu, "mu") ** 2
    affordable = [gaussian.mu(level, goal if kind in CONSTANT_SIGN else goal / 2 ** _count(runs))]
    if kappa is not None and kind in ("constant_sign", "sign_changing"):
        size = nonnegative(kappa, "kappa")
        left = level - runs * (log_det(size) if unit == "row" else size)
        affordable.append(gaussian.mu(left, goal) if left > 0 else 0.0)
    square = Fraction(min(affordable)) ** 2
    if unit == "person" and kind in CONSTANT_SIGN:
        square = min(square, 2 * level)
    room = (square - rest) / _count(runs)
    if room <= 0:
        return 0.0
    most = math.sqrt(float_down(room)) * (1 - 2.0**-50)
    if kappa is None:
        return most
    return _calibrated(level, goal, RunCost(_ZERO, nonnegative(kappa, "kappa"), kind, unit=unit), (rest, runs, most))


@lru_cache(maxsize=256)
def _calibrated(epsilon: Fraction, delta: Fraction, run: RunCost, company: tuple[Fraction, int, float]) -> float:
    """The m of runs that are otherwise like this one, beside (mu squared, runs), at most the given one."""
    rest, runs, most = company

    def fits(m: float) -> bool:
        many = [[replace(run, m_squared=value**2)] * runs for value in readings(m)]
        return all(within(epsilon, delta, some, rest) for some in many)

    if run.person and runs == 1:
        guess = guess_m(run.person, float(epsilon), float(delta), math.sqrt(rest), most)
        if guess < most * _NEAR_MOST or not fits(most):
            found = float(_near(lambda m: fits(float(m)), guess))
            return found or roots.largest_up_to(fits, most)
        return most
    return roots.largest_up_to(fits, most)


@lru_cache(maxsize=256)
def largest_kappa(
    epsilon: Fraction,
    delta: Fraction,
    m_squared: Fraction,
    kind: Kind = "logistic",
    mu_squared: Fraction = _ZERO,
    *,
    unit: Unit = "row",
) -> Fraction:
    """About the largest kappa at which one run and a Gaussian part are proved to be (epsilon, delta)-DP; 0 if none is.

    >>> round(float(largest_kappa(Fraction(1), Fraction(1, 10**6), Fraction(1, 18))), 2)
    1.23
    """

    def fits(kappa: Fraction) -> bool:
        return within(epsilon, delta, [RunCost(m_squared, kappa, kind, unit=unit)], mu_squared)

    free = free_kappa(epsilon, m_squared, kind, unit) if not mu_squared else _ZERO
    person = RunCost(m_squared, epsilon, kind, unit=unit).person
    if person:
        guess = guess_kappa(person, float(epsilon), float(delta), math.sqrt(mu_squared))
        alone = free_kappa(epsilon, m_squared, kind, unit)  # where nothing is guessed: a part of what a run alone has
        parts = (part * alone for part in ((free / alone,) if free else _OF_ALONE) if alone)
        return max(_near(fits, guess), next((_short(part) for part in parts if fits(_short(part))), _ZERO))
    for low in (free, _short(epsilon / 2**10)):
        if low and fits(low):
            return roots.largest_near(fits, low, short_mean)
    return _ZERO


def _near(fits: Callable[[Fraction], bool], guess: float) -> Fraction:
    """Nearly the largest number that fits, from a guess on downwards; 0 if none is found."""
    before = None
    for part in _OF_A_GUESS:
        kappa = _short(Fraction(guess * part))
        if fits(kappa):
            return (
                kappa
                if before is None
                else roots.bisect(fits, kappa, before, _HALVINGS, middle=short_mean, near=_CLOSE)[0]
            )
        before = kappa
    return _ZERO


def free_kappa(epsilon: Fraction, m_squared: Fraction, kind: Kind = "logistic", unit: Unit = "row") -> Fraction:
    """The kappa with e_c = epsilon: one run alone is then no worse than its addition; exact or rounded down.

    For ``logistic`` it is epsilon + m^2/2: the ridge may be as small as c0 B^2 / (epsilon + m^2/2). A person costs m^2
    of that.
    """
    if unit == "person":
        slope = (RunCost(m_squared, epsilon, kind, unit=unit).critical_loss - m_squared / 2) / epsilon
        bounded = kind in ("constant_sign", "sign_changing")
        return _ZERO if bounded else max(_ZERO, (epsilon - m_squared / 2) / slope)
    grown = _grown(epsilon)
    if kind == "logistic":
        return epsilon + m_squared / 2
    if kind in ("class_c", "tamed_poisson"):
        return min(grown, epsilon + m_squared / 2)
    if kind == "log_cosh":
        return min(grown, epsilon / 2 + m_squared / 4)
    if kind == "pseudo_huber":
        return pseudo_huber_kappa(m_squared, epsilon)
    return _ZERO


def _grown(epsilon: Fraction) -> Fraction:
    """exp(epsilon) - 1, rounded down."""
    if epsilon > 30:
        return Fraction(10**13)
    return -balls.rational_above(lambda: -balls.ball(epsilon).expm1())


def short_mean(low: Fraction, high: Fraction) -> Fraction:
    """About the middle, with few digits."""
    return _short((low + high) / 2)


def _short(value: Fraction) -> Fraction:
    """The same with 40 binary digits, rounded down."""
    step = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - 40)
    return math.floor(value / step) * step


def _count(runs: int) -> int:
    if not isinstance(runs, int) or not 1 <= runs <= 1024:
        raise ValueError("runs must be a whole number from 1 to 1024")
    return runs
