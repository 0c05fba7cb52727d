"""Losses of linear models: first and second derivative, scaled to their bounds, and the constants that privacy needs.

Everything is made of additions, multiplications, divisions and roots, which IEEE arithmetic rounds correctly: the
same bits on every machine and at every place of an array. Library exponentials promise neither. The constants are
proved in ``losses.proof.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from snugdp.noise.exact.coins import MAX_EXPONENT, exp_neg
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.scaling import MAX_CLASSES

Kind: TypeAlias = Literal["logistic", "log_cosh", "pseudo_huber", "tamed_poisson", "sign_changing"]

_SCALES = Fraction(1, 10**6), Fraction(10**6)


class Loss(Protocol):
    """A convex function of one number u, with bounded first and second derivatives.

    ``classifies``: u = y * (x . theta) with y = 1 where the target lies above the middle and -1 elsewhere (see
    ``labels``); otherwise u = x . theta - y, or u = x . theta for counts (see ``shares``). With p the size of the first
    derivative over ``slope``, ``kind`` says how the second derivative is bounded:

    ``"logistic"``: the first derivative never changes its sign, and l'' <= c0 p (1 - p). The others change it:
    ``"log_cosh"``: l'' <= c0 (1 - p**2); ``"pseudo_huber"``: c0 (1 - p**2)**(3/2); ``"tamed_poisson"``: c0 (1 - p);
    ``"sign_changing"``: by ``curvature`` alone, and there may be no ``log_lipschitz``.
    """

    def __hash__(self) -> int:
        """Losses are frozen."""

    @property
    def classifies(self) -> bool:
        """Whether the target is a label."""

    @property
    def kind(self) -> Kind:
        """How the second derivative follows from the first."""

    @property
    def slope(self) -> Fraction:
        """The largest absolute first derivative: L0."""

    @property
    def curvature(self) -> Fraction:
        """The largest second derivative: b0."""

    @property
    def c0(self) -> Fraction:
        """The constant of ``kind``."""

    @property
    def log_lipschitz(self) -> Fraction | None:
        """How fast the logarithm of the second derivative changes at most: R0; none if that is not bounded."""

    @property
    def curvature_bound(self) -> Fraction | None:
        """The largest R0 |l'| + l'': D0."""

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """The first derivative over ``slope``, and the root of the second over ``curvature``; elementwise."""


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-u)).

    >>> [float(part) for part in Logistic().parts(np.array(0.0))]
    [-0.5, 1.0]
    """

    kind: ClassVar[Kind] = "logistic"
    classifies = True
    slope = Fraction(1)
    curvature = Fraction(1, 4)
    c0 = Fraction(1)
    log_lipschitz = Fraction(1)
    curvature_bound = Fraction(1)

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """-1 / (1 + exp(u)), and the root of 4 exp(u) / (1 + exp(u))**2."""
        half, e = _exponentials(np.abs(u) * 0.5)
        return np.where(u >= 0, e, 1.0) / -(1.0 + e), 2.0 * half / (1.0 + e)


@dataclass(frozen=True)
class SoftHinge:
    """h log(1 + exp((1 - u) / h)): a hinge, rounded off over a width h."""

    h: Real = 1
    kind: ClassVar[Kind] = "logistic"
    classifies = True
    slope = Fraction(1)

    def __post_init__(self) -> None:
        _check_scale(self.h, "h")

    @property
    def c0(self) -> Fraction:
        """1 / h."""
        return 1 / rational(self.h, "h")

    @property
    def curvature(self) -> Fraction:
        """1 / (4 h)."""
        return self.c0 / 4

    @property
    def log_lipschitz(self) -> Fraction:
        """1 / h."""
        return self.c0

    @property
    def curvature_bound(self) -> Fraction:
        """1 / h."""
        return self.c0

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """As for the logistic loss at (u - 1) / h."""
        return Logistic().parts((u - 1.0) / float(rational(self.h, "h")))


class _LossConstants:
    """What a loss takes from another one. These are no fields: they are not part of a question that a ledger keeps."""

    kind: Kind
    slope: Fraction
    curvature: Fraction
    c0: Fraction
    log_lipschitz: Fraction
    curvature_bound: Fraction


@dataclass(frozen=True)
class OneAgainst(_LossConstants):
    """One class against all others: a loss for labels, where the target is the code of one of several classes.

    The targets of K classes are -1, -1 + 2 / (K - 1), ..., 1.
    """

    loss: Logistic | SoftHinge
    place: int
    classes: int
    classifies = True

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Logistic | SoftHinge):
            raise TypeError("one class against others needs a loss for labels: Logistic or SoftHinge")
        _check_classes(self.classes)
        if not 0 <= self.place < self.classes:
            raise ValueError("place is one of 0, 1, ..., classes - 1")
        for name in _LossConstants.__annotations__:
            object.__setattr__(self, name, getattr(self.loss, name))

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """Those of the loss."""
        return self.loss.parts(u)


@dataclass(frozen=True)
class Softmax:
    """log(sum_k exp(x . theta_k)) - x . theta_y: one model for all classes. Targets are codes, as for ``OneAgainst``.

    The constants are those of a row of norm 1: ``slope`` is not below the length of its gradient, the root of 2;
    ``curvature`` bounds its Hessian, and ``c0`` is what kappa is made of (``objective/softmax.proof.md``).
    """

    classes: int
    slope = Fraction(2)
    curvature = Fraction(1, 2)
    c0 = Fraction(1)

    def __post_init__(self) -> None:
        _check_classes(self.classes)


@dataclass(frozen=True)
class _Robust:
    """Squares near zero, absolute values far out: ``c`` is where the one becomes the other."""

    c: Real = 1
    classifies = False
    curvature = Fraction(1)
    c0 = Fraction(1)

    def __post_init__(self) -> None:
        _check_scale(self.c, "c")

    @property
    def slope(self) -> Fraction:
        """The slope far out: c."""
        return rational(self.c, "c")


@dataclass(frozen=True)
class PseudoHuber(_Robust):
    """c**2 (sqrt(1 + (u / c)**2) - 1): squares near zero, absolute values far out."""

    kind: ClassVar[Kind] = "pseudo_huber"
    curvature_bound = Fraction(3, 2)

    @property
    def log_lipschitz(self) -> Fraction:
        """3 / (2 c)."""
        return Fraction(3, 2) / self.slope

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """The values v / r and r**(-3/2) with v = u / c, r = sqrt(1 + v**2)."""
        v = u / float(self.slope)
        r = np.sqrt(1.0 + v * v)
        return v / r, 1.0 / (r * np.sqrt(r))


@dataclass(frozen=True)
class Huber(_Robust):
    """u**2 / 2 up to c, c |u| - c**2 / 2 beyond. Its second derivative jumps there, from its bound to 0."""

    kind: ClassVar[Kind] = "sign_changing"
    log_lipschitz = None
    curvature_bound = None

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """The value v = u / c clipped to [-1, 1], and 1 where it is not clipped."""
        v = u / float(self.slope)
        return np.minimum(np.maximum(v, -1.0), 1.0), np.where(np.abs(v) <= 1.0, 1.0, 0.0)


@dataclass(frozen=True)
class LogCosh(_Robust):
    """c**2 log cosh(u / c): squares near zero, absolute values far out."""

    kind: ClassVar[Kind] = "log_cosh"
    curvature_bound = Fraction(2)

    @property
    def log_lipschitz(self) -> Fraction:
        """2 / c."""
        return 2 / self.slope

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """tanh(u / c) and 1 / cosh(u / c)."""
        v = u / float(self.slope)
        half, e = _exponentials(np.abs(v))
        return np.copysign((1.0 - e) / (1.0 + e), v), 2.0 * half / (1.0 + e)


@dataclass(frozen=True)
class TamedPoisson:
    """exp(u) - y u as long as exp(u) is at most ``rate``, and then with a second derivative that falls again.

    For counts y from 0 to ``most``: a scaled target of -1 stands for 0 and one of 1 for ``most``. Beyond u = log(rate)
    the second derivative is rate**2 exp(-u), so rates up to ``rate`` are fitted as usual, and those beyond are held
    back below twice that.
    """

    most: Real
    rate: Real
    kind: ClassVar[Kind] = "tamed_poisson"
    classifies = False

    def __post_init__(self) -> None:
        _check_scale(self.most, "most")
        _check_scale(self.rate, "rate")

    @cached_property
    def slope(self) -> Fraction:
        """The larger of ``most`` and twice ``rate``."""
        return max(rational(self.most, "most"), 2 * self.curvature)

    @cached_property
    def curvature(self) -> Fraction:
        """The rate up to which the loss is that of Poisson."""
        return rational(self.rate, "rate")

    @property
    def c0(self) -> Fraction:
        """As large as the slope."""
        return self.slope

    @property
    def log_lipschitz(self) -> Fraction:
        """1."""
        return Fraction(1)

    @property
    def curvature_bound(self) -> Fraction:
        """As large as the slope."""
        return self.slope

    @cached_property
    def _turn(self) -> float:
        """The float nearest to log(rate)."""
        ball = balls.enclose(lambda: balls.ball(self.curvature).log())
        return float(balls.exact(ball.mid()))

    def parts(self, u: Floats) -> tuple[Floats, Floats]:
        """The first derivative without the count, and the root of exp(-|u - log(rate)|)."""
        v = u - self._turn
        half, e = _exponentials(np.abs(v) * 0.5)
        return float(self.curvature / self.slope) * np.where(v > 0, 2.0 - e, e), half


def counts(loss: Loss) -> bool:
    """Whether the target is a count: it is taken off the first derivative (``shares``) and not off the argument."""
    return isinstance(loss, TamedPoisson)


def labels(loss: Loss, w: Floats, limit: int) -> Floats:
    """The label, 1 or -1, of each target: a whole number of cells, at most ``limit`` in size.

    >>> labels(Logistic(), np.array([-4.0, 0.0, 4.0]), 4).tolist()
    [-1.0, -1.0, 1.0]
    >>> labels(OneAgainst(Logistic(), 1, 3), np.array([-4.0, 0.0, 4.0]), 4).tolist()
    [-1.0, 1.0, -1.0]
    """
    mine = codes(w, limit, loss.classes) == loss.place if isinstance(loss, OneAgainst) else w > 0
    return np.where(mine, 1.0, -1.0)


def codes(w: Floats, limit: int, classes: int) -> Floats:
    """Which of the classes, 0, 1, ..., each target stands for: the nearest code.

    >>> codes(np.array([-4.0, -2.0, 4.0]), 4, 3).tolist()
    [0.0, 0.0, 2.0]
    """
    return np.rint((w / float(limit) + 1.0) * (0.5 * (classes - 1)))


def shares(loss: Loss, w: Floats, limit: int) -> Floats:
    """What each count takes off the first derivative over ``slope``; zero for a loss without counts."""
    if not isinstance(loss, TamedPoisson):
        return np.zeros_like(w)
    return float(rational(loss.most, "most") / (2 * loss.slope)) * (1.0 + w / float(limit))


def exact_share(loss: Loss, w: int, limit: int) -> Fraction:
    """As ``shares``, for one target and exactly."""
    if not isinstance(loss, TamedPoisson):
        return Fraction(0)
    return rational(loss.most, "most") / (2 * loss.slope) * (1 + Fraction(w, limit))


def _exponentials(a: Floats) -> tuple[Floats, Floats]:
    """exp(-a) and its square for a >= 0; beyond 60 the first counts as exp(-60)."""
    half = exp_neg(np.minimum(np.atleast_1d(a), MAX_EXPONENT)).reshape(np.shape(a))
    return half, half * half


def _check_classes(classes: int) -> None:
    if not 2 <= classes <= MAX_CLASSES:
        raise ValueError(f"there must be 2 to {MAX_CLASSES} classes")


def _check_scale(scale: Real, name: str) -> None:
    if not _SCALES[0] <= rational(scale, name) <= _SCALES[1]:
        raise ValueError(f"{name} must be between 1e-6 and 1e6")
