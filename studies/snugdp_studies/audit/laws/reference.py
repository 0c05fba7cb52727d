"""The declared laws once more, in floats and from textbook formulas: what samples are compared with.

Nothing here is used by a release, so a slip in ``noise/laws.py`` cannot hide behind the same slip here.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import special

from snugdp.audit.density.laws import contest, scale_of
from snugdp.noise import Continuous, DiscreteGaussian, DiscreteLaplace, Gaussian, Gumbel, Laplace, Law, recording

Floats = NDArray[np.float64]

_FAR = 45.0  # spreads: what is beyond has less than 1e-19 of any law here
_STEP = 2.0**-10  # of the differences that stand for derivatives
_EULER = 0.5772156649015329
_GUMBEL_INFORMATION = math.pi**2 / 6 + (1 - _EULER) ** 2


def spread(law: Law) -> float:
    """The scale of the law, or its standard deviation."""
    return float(scale_of(law))


def scaled(law: Law, factor: float) -> Law:
    """The same law, ``factor`` times as wide.

    >>> scaled(Laplace(2), 1.5)
    Laplace(scale=Fraction(3, 1))
    """
    return recording.scaled(law, Fraction(factor))


def information(law: Law) -> float:
    """What one draw says about the logarithm of the scale: 2 for a Gaussian, 1 for a Laplace law."""
    if isinstance(law, Gumbel):
        return _GUMBEL_INFORMATION
    return 2.0 if isinstance(law, Gaussian | DiscreteGaussian) else 1.0


def below(law: Continuous, x: Floats) -> Floats:
    """P[Z <= x]."""
    z = np.asarray(x, dtype=np.float64) / spread(law)
    if isinstance(law, Gaussian):
        return np.asarray(special.ndtr(z))
    with np.errstate(over="ignore"):
        if isinstance(law, Gumbel):
            return np.exp(-np.exp(-z))
        half = np.exp(-np.abs(z)) / 2
        return np.where(z < 0, half, 1 - half)


def density(law: Continuous, x: Floats) -> Floats:
    """The density at x."""
    z = np.asarray(x, dtype=np.float64) / spread(law)
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(law, Gaussian):
            shape = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        elif isinstance(law, Gumbel):
            shape = np.exp(-z - np.exp(-z))
        else:
            shape = np.exp(-np.abs(z)) / 2
    found: Floats = shape / spread(law)
    return found


def scores(law: Continuous, x: Floats) -> tuple[Floats, Floats]:
    """What each draw says about the scale and about the place: derivatives of the logarithm of the density.

    Both have mean 0 under the law; the first has variance ``information``.
    """
    z = np.asarray(x, dtype=np.float64) / spread(law)
    if isinstance(law, Gaussian):
        return z * z - 1, z
    if isinstance(law, Gumbel):
        slope = -np.expm1(-z)
        return z * slope - 1, slope
    return np.abs(z) - 1, np.sign(z)


def other_shape(law: Continuous) -> Continuous:
    """A law of the same variance and of another shape: what a test of shape must find out."""
    if isinstance(law, Laplace):
        return Gaussian(law.scale * Fraction(math.sqrt(2)))
    if isinstance(law, Gumbel):
        return Gaussian(law.scale * Fraction(math.pi / math.sqrt(6)))
    return Laplace(law.sigma / Fraction(math.sqrt(2)))


def centre(law: Continuous) -> float:
    """The mean of the law."""
    return _EULER * spread(law) if isinstance(law, Gumbel) else 0.0


def cells(law: Law) -> tuple[NDArray[np.int64], Floats]:
    """Whole numbers, and their probabilities under the law or, if it is continuous, under the law rounded."""
    far = math.ceil(_FAR * spread(law)) + 3
    m = np.arange(-far, far + 1)
    if isinstance(law, DiscreteLaplace):
        weights = np.exp(-np.abs(m) / spread(law))
    elif isinstance(law, DiscreteGaussian):
        weights = np.exp(-m * m / (2 * float(law.variance)))
    else:
        lower = np.diff(below(law, np.append(m, far + 1) - 0.5))
        if isinstance(law, Gumbel):
            return m, lower
        weights = np.where(m <= 0, lower, lower[::-1])  # from the side where differences are exact
    return m, np.asarray(weights / weights.sum(), dtype=np.float64)


def cell_scores(law: Law) -> tuple[NDArray[np.int64], Floats, Floats]:
    """The cells, their probabilities, and what a draw in each of them says about the scale."""
    m, chances = cells(law)
    wide, narrow = (_at(scaled(law, 1 + sign * _STEP), m) for sign in (1, -1))
    usable = chances > 1e-25
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(usable, (wide - narrow) / (2 * _STEP * chances), 0.0)
    return m, chances, score - float(score @ chances)


def tail(law: Law, x: float) -> float:
    """P[Z >= x]."""
    if isinstance(law, DiscreteLaplace | DiscreteGaussian):
        m, chances = cells(law)
        return float(chances[m >= x].sum())
    if isinstance(law, Gumbel):
        return -math.expm1(-math.exp(-x / spread(law)))
    return float(below(law, np.array([-x]))[0])


def winning(values: Sequence[float], law: Continuous) -> Floats:
    """How often each of the values is the largest, after each has got noise of its own.

    >>> [round(chance, 9) for chance in winning([0, 3], Gumbel(1)).tolist()]
    [0.047425873, 0.952574127]
    """
    at = np.asarray(values, dtype=np.float64) / spread(law)
    return np.exp(contest(tuple((at - at.max()).tolist()), type(law).__name__))


def _at(law: Law, m: NDArray[np.int64]) -> Floats:
    """The probabilities of these cells."""
    have, chances = cells(law)
    found = np.zeros(len(m))
    inside = np.isin(m, have)
    found[inside] = chances[np.searchsorted(have, m[inside])]
    return found
