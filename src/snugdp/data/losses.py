"""Losses of linear models, as the passes need them: first and second derivative, scaled to their bounds.

Everything is made of additions, multiplications, divisions and roots, which IEEE arithmetic rounds correctly: the
same bits on every machine and at every place of an array. Library exponentials promise neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from snugdp.accounting.rational import Real, rational
from snugdp.data.rowmap import Floats
from snugdp.noise.coins import LARGEST_EXPONENT, exp_neg

_SCALES = Fraction(1, 10**6), Fraction(10**6)


class Loss(Protocol):
    """A convex function of one number u, with bounded first and second derivatives.

    ``classifies``: u = y * (x . theta) with y = 1 where the target lies above the middle and -1 elsewhere; otherwise
    u = x . theta - y. ``slope`` and ``curvature`` are the largest first and second derivative.
    """

    @property
    def classifies(self) -> bool:
        """Whether the target is a label."""
        ...

    @property
    def slope(self) -> Fraction:
        """The largest absolute first derivative."""
        ...

    @property
    def curvature(self) -> Fraction:
        """The largest second derivative."""
        ...

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """The first derivative over ``slope``, and the root of the second over ``curvature``; elementwise."""
        ...


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-u)).

    >>> [float(part) for part in Logistic().parts(np.array(0.0))]
    [-0.5, 1.0]
    """

    classifies = True
    slope = Fraction(1)
    curvature = Fraction(1, 4)

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """-1 / (1 + exp(u)), and the root of 4 exp(u) / (1 + exp(u))**2."""
        half, e = _exponentials(np.abs(u) * 0.5)
        return np.where(u >= 0, e, 1.0) / -(1.0 + e), 2.0 * half / (1.0 + e)


@dataclass(frozen=True)
class SoftHinge:
    """h log(1 + exp((1 - u) / h)): a hinge, rounded off over a width h."""

    h: Real = 1
    classifies = True
    slope = Fraction(1)

    def __post_init__(self) -> None:
        _check_scale(self.h, "h")

    @property
    def curvature(self) -> Fraction:
        """1 / (4 h)."""
        return 1 / (4 * rational(self.h, "h"))

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """As for the logistic loss at (u - 1) / h."""
        return Logistic().parts((u - 1.0) / float(rational(self.h, "h")))


@dataclass(frozen=True)
class _Robust:
    """Squares near zero, absolute values far out: ``c`` is where the one becomes the other."""

    c: Real = 1
    classifies = False
    curvature = Fraction(1)

    def __post_init__(self) -> None:
        _check_scale(self.c, "c")

    @property
    def slope(self) -> Fraction:
        """The slope far out: c."""
        return rational(self.c, "c")


@dataclass(frozen=True)
class PseudoHuber(_Robust):
    """c**2 (sqrt(1 + (u / c)**2) - 1): squares near zero, absolute values far out."""

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """The values v / r and r**(-3/2) with v = u / c, r = sqrt(1 + v**2)."""
        v = u / float(self.slope)
        r = np.sqrt(1.0 + v * v)
        return v / r, 1.0 / (r * np.sqrt(r))


@dataclass(frozen=True)
class Huber(_Robust):
    """u**2 / 2 up to c, c |u| - c**2 / 2 beyond. Its second derivative jumps there."""

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """The value v = u / c clipped to [-1, 1], and 1 where it is not clipped."""
        v = u / float(self.slope)
        return np.minimum(np.maximum(v, -1.0), 1.0), np.where(np.abs(v) <= 1.0, 1.0, 0.0)


@dataclass(frozen=True)
class LogCosh(_Robust):
    """c**2 log cosh(u / c): squares near zero, absolute values far out."""

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """tanh(u / c) and 1 / cosh(u / c)."""
        v = u / float(self.slope)
        half, e = _exponentials(np.abs(v))
        return np.copysign((1.0 - e) / (1.0 + e), v), 2.0 * half / (1.0 + e)


def _exponentials(a: Floats) -> tuple[Floats, Floats]:
    """exp(-a) and its square for a >= 0; beyond 60 the first counts as exp(-60)."""
    half = exp_neg(np.minimum(np.atleast_1d(a), LARGEST_EXPONENT)).reshape(np.shape(a))
    return half, half * half


def _check_scale(scale: Real, name: str) -> None:
    if not _SCALES[0] <= rational(scale, name) <= _SCALES[1]:
        raise ValueError(f"{name} must be between 1e-6 and 1e6")
