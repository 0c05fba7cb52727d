"""The derivatives of the losses once more: how far floats are off at most, and as balls of any precision."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from snugdp.numerics.balls import ball
from snugdp.numerics.rationals import rational
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, Loss, OneAgainst, PseudoHuber, SoftHinge, TamedPoisson

_FLOAT_ERROR, _COUNT_ERROR = Fraction(3), Fraction(8)
_CURVATURE_ERROR, _COUNT_CURVATURE_ERROR = Fraction(8), Fraction(12)
_ONE = arb(1)


def float_error(loss: Loss) -> Fraction:
    """How far a slope from floats, rounded to 51 bits of its bound, is off at most, in units of 2**-51 of the bound.

    Guarantee: for an argument that was rounded once (``tables/passes/derivatives/gradient.proof.md``, Lemma 2).
    """
    return _float_errors(loss)[0]


def curvature_error(loss: Loss) -> Fraction:
    """As ``float_error``, for the second derivative over its bound: the square of what ``Loss.parts`` gives.

    Guarantee: for an argument that was rounded once (``tables/passes/derivatives/hessian.proof.md``, Lemma 1).
    """
    error = _float_errors(loss)[1]
    if error is None:
        raise TypeError("the second derivative of the loss must be continuous: Logistic, SoftHinge, TamedPoisson, ...")
    return error


def _float_errors(loss: Loss) -> tuple[Fraction, Fraction | None]:
    """Of the slope, and of the second derivative if it is continuous."""
    loss = _plain(loss)
    if isinstance(loss, SoftHinge):
        h = rational(loss.h, "h")
        return _FLOAT_ERROR + 1 / (8 * h), _CURVATURE_ERROR + 1 / (4 * h)
    if isinstance(loss, TamedPoisson):
        return _COUNT_ERROR, _COUNT_CURVATURE_ERROR
    if isinstance(loss, LogCosh | PseudoHuber | Logistic):
        return _FLOAT_ERROR, _CURVATURE_ERROR
    if isinstance(loss, Huber):
        return _FLOAT_ERROR, None
    raise TypeError(
        "the loss must be one of LogCosh, PseudoHuber, Huber, Logistic, SoftHinge, TamedPoisson, OneAgainst"
    )


def slope_ball(loss: Loss, exponent: int) -> Callable[[int], arb]:
    """The first derivative over its bound at a whole number times 2**exponent; at the precision of this moment.

    For counts, without what the count takes off.
    """
    loss = _plain(loss)
    if isinstance(loss, TamedPoisson):
        part = ball(loss.curvature / loss.slope)
        place = _tamed(loss, exponent)
        return lambda whole: part * _held(place(whole))
    if loss.classifies:
        place = _label_argument(loss, exponent)
        return lambda whole: _falling(place(whole))
    unit = ball(Fraction(2) ** exponent / loss.slope)
    if isinstance(loss, Huber):
        return lambda whole: (arb(whole) * unit).min(_ONE).max(-_ONE)
    if isinstance(loss, PseudoHuber):
        return lambda whole: _scaled(arb(whole) * unit)
    return lambda whole: (arb(whole) * unit).tanh()


def curvature_ball(loss: Loss, exponent: int) -> Callable[[int], arb]:
    """The second derivative over its bound, in the same way."""
    loss = _plain(loss)
    if isinstance(loss, TamedPoisson):
        place = _tamed(loss, exponent)
        return lambda whole: (-abs(place(whole))).exp()
    if loss.classifies:
        place = _label_argument(loss, exponent)
        return lambda whole: _square(1 / (place(whole) / 2).cosh())
    unit = ball(Fraction(2) ** exponent / loss.slope)
    if isinstance(loss, PseudoHuber):
        return lambda whole: 1 / _cube((1 + _square(arb(whole) * unit)).sqrt())
    return lambda whole: _square(1 / (arb(whole) * unit).cosh())


def _plain(loss: Loss) -> Loss:
    return loss.loss if isinstance(loss, OneAgainst) else loss


def _label_argument(loss: Loss, exponent: int) -> Callable[[int], arb]:
    """What the exponential is taken of: u, or (u - 1) / h."""
    width = rational(loss.h, "h") if isinstance(loss, SoftHinge) else Fraction(1)
    unit, shift = ball(Fraction(2) ** exponent / width), ball(1 / width if isinstance(loss, SoftHinge) else Fraction(0))
    return lambda whole: arb(whole) * unit - shift


def _tamed(loss: TamedPoisson, exponent: int) -> Callable[[int], arb]:
    """How far u is beyond the logarithm of the rate."""
    unit, turn = ball(Fraction(2) ** exponent), ball(loss.curvature).log()
    return lambda whole: arb(whole) * unit - turn


def _held(v: arb) -> arb:
    """exp(v) up to 0, and 2 - exp(-v) beyond."""
    if v < 0:
        return v.exp()
    beyond = 2 - (-v).exp()
    return beyond if v > 0 else beyond.union(v.exp())


def _falling(z: arb) -> arb:
    """The value -1 / (1 + exp(z))."""
    if z < 0:
        return -1 / (1 + z.exp())
    small = (-z).exp()
    return -small / (1 + small)


def _scaled(v: arb) -> arb:
    return v / (1 + v * v).sqrt()


def _square(v: arb) -> arb:
    return v * v


def _cube(v: arb) -> arb:
    return v * v * v
