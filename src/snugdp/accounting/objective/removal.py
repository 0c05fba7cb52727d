"""Removing a row under objective perturbation, sharply: the loss as a convex function of one normal deviate.

For a loss of class T the determinant costs nothing where the gradient is large, and the gradient costs nothing where
the determinant is large. The best of both worlds for an attacker is a maximum over one number; here it is taken
exactly, instead of at its two ends. That allows a regulariser about a third smaller. Proof: removal.proof.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.accounting import composition
from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.gaussian import cdf
from snugdp.numerics import balls, roots

MAX_DEVIATE = 14  # deviations; beyond them the loss is not followed
TAIL = Fraction(1, 2**146)  # P[t > 14] is below this: it counts as a failure
_LEVELS_PER_DEVIATION = 32  # levels of the loss for each deviation, about
_HALVINGS = 40
_SLACK = (0.9995, 0.998, 0.99, 0.97, 0.9, 0.8)
_BITS = 40

_CLOSE = 2.0**-53

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, Floats)


@lru_cache(maxsize=64)
def sharp_atom(m_squared: Fraction, kappa: Fraction) -> Atom:
    """The atom of a run of class T: *add* as ever, *remove* by levels of its loss; beside it, ``TAIL`` may fail.

    Guarantee: with a failure of TAIL it is a cost of the run (removal.proof.md, Theorem 1).

    >>> atom = sharp_atom(Fraction(1, 16), Fraction(1, 2))
    >>> [float(branch.shift) for branch in atom.remove[:2]], float(atom.remove[0].weight) > 0.5
    ([0.40625, 0.4140625], True)
    """
    if not (_usable(m_squared) and kappa > 0):
        raise ValueError("m and kappa are out of range for the sharp bound: use the plain one")
    whole = Branch(m_squared, Fraction(0))
    return Atom((whole, whole), _levels(m_squared, kappa))


def largest_kappa(epsilon: Fraction, delta: Fraction, m_squared: Fraction, mu_squared: Fraction) -> Fraction:
    """About the largest kappa at which a run of class T and a Gaussian part mu are proved to fit; 0 if none is found.

    >>> round(float(largest_kappa(Fraction(1), Fraction(1, 10**6), Fraction(1, 20), Fraction(0))), 2)
    0.82
    """
    if not _usable(m_squared):
        return Fraction(0)
    guess = _guess(float(epsilon), float(delta), math.sqrt(m_squared), math.sqrt(mu_squared))
    for slack in _SLACK:
        kappa = Fraction(math.floor(guess * slack * 2**_BITS), 2**_BITS)
        if kappa > 0 and fits(epsilon, delta, m_squared, kappa, mu_squared):
            return kappa
    return Fraction(0)


def _usable(m_squared: Fraction) -> bool:
    """Beyond this the levels would be too many, or too coarse for floats to find them."""
    return 2.0**-60 < m_squared < 256


def fits(epsilon: Fraction, delta: Fraction, m_squared: Fraction, kappa: Fraction, mu_squared: Fraction) -> bool:
    """Whether the run and the Gaussian part together are proved to be (epsilon, delta)-DP."""
    atoms = (sharp_atom(m_squared, kappa),)
    return composition.at_most(mu_squared=mu_squared, failure=TAIL, atoms=atoms, epsilon=epsilon, delta=delta)


def _levels(m_squared: Fraction, kappa: Fraction) -> tuple[Branch, ...]:
    """Where the deviate lies, how likely that is, and the most that the loss is there: multiples of a dyadic step."""
    m, k = math.sqrt(m_squared), float(kappa)
    step = _step(m)
    lowest, highest = _loss(np.array([0.0, MAX_DEVIATE]), m, k).tolist()
    shifts = [step * level for level in range(math.ceil(lowest / step), math.ceil(highest / step) + 2)]
    guesses = _inverse(np.array([float(shift) for shift in shifts]), m, k)
    branches, before = [], arb(0)
    with balls.precision(2 * balls.FIRST):
        for shift, guess in zip(shifts, guesses.tolist(), strict=True):
            end = _certified(guess, shift, m_squared, kappa)  # line 1
            if end is None:
                continue
            below = cdf(balls.ball(end))
            weight = balls.exact((below - before).upper())  # line 2
            if weight > 0:
                branches.append(Branch(Fraction(0), shift, min(Fraction(1), weight)))
            before = below
            if end >= MAX_DEVIATE:
                return _whole(branches)
    raise ValueError("m and kappa are out of range for the sharp bound: use the plain one")


def _whole(branches: list[Branch]) -> tuple[Branch, ...]:
    """The chances of an atom add up to at least 1: what lies beyond the last point goes to the last branch too."""
    missing = 1 - sum((branch.weight for branch in branches), Fraction(0))
    if missing <= 0:
        return tuple(branches)
    last = branches[-1]
    return (*branches[:-1], Branch(last.mu_squared, last.shift, last.weight + missing))


def _step(m: float) -> Fraction:
    return Fraction(2) ** math.floor(math.log2(m / _LEVELS_PER_DEVIATION))


def _certified(guess: float, shift: Fraction, m_squared: Fraction, kappa: Fraction) -> Fraction | None:
    """A point up to which the loss is proved to be at most ``shift``, close to the guess."""
    for back in (1e-6, 1e-3, 0.02):
        end = min(max(guess - back, 0.0), float(MAX_DEVIATE))
        if _loss_ball(end, m_squared, kappa) <= balls.ball(shift):
            return Fraction(end)
    return None


def _loss_ball(t: float, m_squared: Fraction, kappa: Fraction) -> arb:
    """An upper bound on the largest of g(s) = m t sqrt(s) + m^2 s/2 + log(1 + (1 - s) kappa): a tangent from above."""
    s = arb(_maximum_at(t, math.sqrt(m_squared), float(kappa)))
    square, k = balls.ball(m_squared), balls.ball(kappa)
    root, drift, inside = s.sqrt(), square.sqrt() * arb(t), 1 + (1 - s) * k
    value = drift * root + square * s / 2 + inside.log()
    slope = drift / (2 * root) + square / 2 - k / inside
    return value + (slope * (1 - s)).max(-slope * s)


def _maximum_at(t: float, m: float, k: float) -> float:
    """As ``_maximiser``, for one number, which is not 0."""
    root, step = 1.0, 1.0
    while step > _CLOSE:
        value, slope = _slope(root, t, m, k)
        step = min(value / slope, root) if value < 0 and slope < 0 else 0.0
        root -= step
    return max(root * root, 2.0**-60)


def _maximiser(t: Floats, m: float, k: float) -> Floats:
    """Where g is largest, nearly: Newton's method from 1 for the root of s, which never goes too far (``_slope``)."""
    root, step = np.ones_like(t), np.ones_like(t)
    while step.max() > _CLOSE:
        value, slope = _slope(root, t, m, k)
        down = (value < 0) & (slope < 0)  # where the one is below 0, so is the other, but for rounding
        step = np.minimum(np.where(down, value, 0.0) / np.where(down, slope, -1.0), root)
        root = root - step
    return root * root


def _slope(root: Number, t: Number, m: float, k: float) -> tuple[Number, Number]:
    """The slope of g times a positive factor, a cubic in the root of s, concave, not below 0 at 0; its derivative."""
    rise, inside = m / 2 * (t + m * root), 1 + k - k * root * root
    return rise * inside - k * root, m * m / 2 * inside - 2 * k * rise * root - k


def _loss(t: Floats, m: float, k: float) -> Floats:
    s = _maximiser(t, m, k)
    return m * t * np.sqrt(s) + m * m * s / 2 + np.log1p((1 - s) * k)


def _inverse(levels: Floats, m: float, k: float) -> Floats:
    """The deviate at which the loss reaches each level: by interpolation on a fine table."""
    table = np.linspace(0.0, MAX_DEVIATE + 1.0, 30_001)
    return np.interp(levels, _loss(table, m, k), table)


def _guess(epsilon: float, delta: float, m: float, mu: float) -> float:
    """The largest kappa in floats, with the loss rounded up to levels as in ``_levels``: nothing is promised."""
    step = float(_step(m))
    t = np.linspace(0.0, MAX_DEVIATE, 4001)
    density = np.exp(-t * t / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])

    def fits(k: float) -> bool:
        left = epsilon - np.ceil(_loss(t, m, k) / step) * step
        return float(density @ gaussian_deltas(mu, left)) + 0.5 * float(gaussian_deltas(mu, left[:1])[0]) <= delta

    return roots.bisect(fits, 0.0, 100 * epsilon, _HALVINGS)[0]


def gaussian_deltas(mu: float, epsilon: Floats) -> Floats:
    """The delta of a Gaussian part at every epsilon, in floats: for guesses, nothing is promised."""
    if mu <= 0:
        return np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0)
    from scipy.special import ndtr

    values: Floats = ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)
    return np.maximum(values, 0.0)
