"""The slopes of the losses once more: how far floats are off at most, and as balls of any precision."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from snugdp.accounting.balls import ball
from snugdp.accounting.rational import rational
from snugdp.data.losses import Huber, LogCosh, Logistic, Loss, PseudoHuber, SoftHinge

PROOF = "data/passes_fine.proof.md#lemma-2"

_FLOAT_ERROR = Fraction(3)
_ONE = arb(1)


def float_error(loss: Loss) -> Fraction:
    """How far a slope from floats, rounded to 51 bits of its bound, is off at most, in units of 2**-51 of the bound.

    Guarantee: for an argument that was rounded once (``passes_fine.proof.md``, Lemma 2).
    """
    if isinstance(loss, SoftHinge):
        return _FLOAT_ERROR + 1 / (8 * rational(loss.h, "h"))
    if isinstance(loss, LogCosh | PseudoHuber | Huber | Logistic):
        return _FLOAT_ERROR
    raise TypeError("the loss must be one of LogCosh, PseudoHuber, Huber, Logistic, SoftHinge")


def slope_ball(loss: Loss, exponent: int) -> Callable[[int], arb]:
    """The first derivative over its bound at a whole number times 2**exponent; at the precision of this moment."""
    if loss.classifies:
        width = rational(loss.h, "h") if isinstance(loss, SoftHinge) else Fraction(1)
        unit, shift = (
            ball(Fraction(2) ** exponent / width),
            ball(1 / width if isinstance(loss, SoftHinge) else Fraction(0)),
        )
        return lambda whole: _falling(arb(whole) * unit - shift)
    unit = ball(Fraction(2) ** exponent / loss.slope)
    if isinstance(loss, Huber):
        return lambda whole: (arb(whole) * unit).min(_ONE).max(-_ONE)
    if isinstance(loss, PseudoHuber):
        return lambda whole: _scaled(arb(whole) * unit)
    return lambda whole: (arb(whole) * unit).tanh()


def _falling(z: arb) -> arb:
    """The value -1 / (1 + exp(z))."""
    if z < 0:
        return -1 / (1 + z.exp())
    small = (-z).exp()
    return -small / (1 + small)


def _scaled(v: arb) -> arb:
    return v / (1 + v * v).sqrt()
