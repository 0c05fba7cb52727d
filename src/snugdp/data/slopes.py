"""The slopes of the losses once more: how far floats are off at most, and as balls of any precision."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from snugdp.accounting.balls import ball
from snugdp.accounting.rational import rational
from snugdp.data.losses import Huber, LogCosh, Logistic, Loss, PseudoHuber, SoftHinge

PROOF = "data/passes_fine.proof.md#lemma-2"

_FLOAT_ERROR = Fraction(3)


def float_error(loss: Loss) -> Fraction:
    """How far a slope from floats, rounded to 51 bits of its bound, is off at most, in units of 2**-51 of the bound.

    Guarantee: for an argument that was rounded once (``passes_fine.proof.md``, Lemma 2).
    """
    if isinstance(loss, SoftHinge):
        return _FLOAT_ERROR + 1 / (8 * rational(loss.h, "h"))
    if isinstance(loss, LogCosh | PseudoHuber | Huber | Logistic):
        return _FLOAT_ERROR
    raise TypeError("the loss must be one of LogCosh, PseudoHuber, Huber, Logistic, SoftHinge")


def slope_ball(loss: Loss, mantissa: int, exponent: int) -> arb:
    """The first derivative over its bound at mantissa * 2**exponent, at the present precision."""
    u = arb((mantissa, exponent))
    if isinstance(loss, SoftHinge):
        u = (u - 1) / ball(rational(loss.h, "h"))
    if loss.classifies:
        return -1 / (1 + u.exp()) if u < 0 else -(-u).exp() / (1 + (-u).exp())
    v = u / ball(loss.slope)
    if isinstance(loss, Huber):
        return v.min(arb(1)).max(arb(-1))
    if isinstance(loss, PseudoHuber):
        return v / (1 + v * v).sqrt()
    return v.tanh()
