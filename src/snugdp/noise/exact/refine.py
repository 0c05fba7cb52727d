"""Exact decisions about real numbers: reveal random bits until the answer is certain.

A uniform real is an infinite string of bits of which a prefix has been read. Every quantity computed from
the prefix is a ball that holds the true value whatever the unread bits are, so a decision that is the same
all over the ball is the decision on the true value. The proof is in ``refine.proof.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from flint import arb

from snugdp.noise.exact import entropy
from snugdp.numerics.balls import ball as exactly
from snugdp.numerics.balls import precision

__all__ = ["GUARD", "START", "Bits", "below", "exactly", "floor", "negative", "precision", "refine"]

B = TypeVar("B")
D = TypeVar("D")

START = 64  # bits revealed before the first attempt
GUARD = 16  # working bits beyond the revealed ones


class Bits:
    """A uniform real of (0, 1): ``count`` of its bits are read, as the integer ``value``; the rest are lazy.

    >>> uniform = Bits()
    >>> bool(0 < uniform.ball(64)) or uniform.value == 0
    True
    >>> uniform.count
    64
    """

    __slots__ = ("count", "value")

    def __init__(self, value: int = 0, count: int = 0) -> None:
        self.value = value
        self.count = count

    def extend(self, count: int) -> None:
        """Read on until at least ``count`` bits are known. What was read before never changes."""
        if count > self.count:
            self.value = self.value << (count - self.count) | entropy.bits(count - self.count)
            self.count = count

    def ball(self, count: int) -> arb:
        """A ball that holds the real for every continuation of its first ``count`` bits (or more)."""
        self.extend(count)
        return arb(2 * self.value + 1, 1) * _power(-self.count - 1)


@lru_cache(maxsize=64)
def _power(exponent: int) -> arb:
    """A power of two, exactly."""
    return arb((1, exponent))


def refine(expression: Callable[[int], B], decide: Callable[[B], D | None], start: int = START) -> D:
    """The decision on ``expression``, at the precision it needs.

    ``expression(p)`` encloses one fixed real function of the random bits, using at least their first ``p``;
    ``decide`` answers only if the answer is the same all over the enclosure, and says None otherwise.

    Guarantee: the result is the decision on the true real value, so it has exactly the law of that decision
    (``refine.proof.md``, Theorem 1). There is no last attempt: a cap would fail depending on the data.
    """
    revealed = start  # line 1
    while True:
        with precision(revealed + GUARD):
            decision = decide(expression(revealed))  # line 2
        if decision is not None:
            return decision  # line 3
        revealed *= 2  # line 4


def below(uniform: Bits, target: Callable[[int], arb]) -> bool:
    """Whether the uniform real is below the target: a coin of exactly that probability."""
    return refine(lambda p: uniform.ball(p) - target(p), negative)


def negative(ball: arb) -> bool | None:
    """Whether the number in the ball is below zero, if that is certain."""
    if ball < 0:
        return True
    return False if ball > 0 else None


def floor(ball: arb) -> int | None:
    """The integer part of the number in the ball, if it is certain."""
    whole = ball.floor().unique_fmpz()
    return None if whole is None else int(whole)
