"""Balls: numbers with a proved error bound, evaluated as precisely as the answer needs.

A ball is a midpoint and a radius (Arb, through python-flint), and every operation encloses the exact result.
The working precision is one setting for the whole process, so every use of balls goes through
``precision``, which holds a lock; the functions below use it and can be called from any thread.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx, fmpq

from snugdp.numerics.rationals import typed_down, typed_up

Function: TypeAlias = Callable[[], arb]  # evaluated at whatever precision is set

FIRST = 96  # bits of working precision to begin with
MAX_WORKING_BITS = 1 << 14  # bits beyond which the enclosure at hand is used: still proved, no longer tight
ENOUGH = 62  # bits of relative accuracy: more than a float holds
NOTHING = arb((1, -(1 << 70)), (1, -(1 << 70)))  # encloses every number between 0 and exp(-2^80)
_DEEPEST = arb((-1, 80))
_MIN_FLOAT = arb((1, -1100))  # below every positive float


class _Turn:
    """The lock on Arb's precision, which belongs to the whole process.

    A fork waits for the lock, so that a child never starts with a precision that another thread has set, and the
    child gets a lock of its own.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=lambda: self.lock.acquire(),
                after_in_parent=lambda: self.lock.release(),
                after_in_child=self.renew,
            )

    def renew(self) -> None:
        self.lock = threading.RLock()


_turn = _Turn()


class precision:  # noqa: N801  # called like a function, thousands of times a second: a generator is slower
    """Work with balls of ``bits`` bits; other threads wait, and the precision found is put back.

    >>> with precision(200):
    ...     third = ball(Fraction(1, 3))
    >>> third.rel_accuracy_bits() > 190
    True
    """

    __slots__ = ("_before", "_bits", "_lock")

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def __enter__(self) -> None:
        self._lock = _turn.lock
        self._lock.acquire()
        self._before, ctx.prec = ctx.prec, self._bits

    def __exit__(self, *raised: object) -> None:
        ctx.prec = self._before
        self._lock.release()


def ball(value: Fraction) -> arb:
    """The ball around a rational, at the present precision."""
    return arb(fmpq(value.numerator, value.denominator))


def enclose(function: Function, bits: int = ENOUGH) -> arb:
    """``function()`` at growing precision, until it is known to ``bits`` bits or is below every float."""
    working = FIRST
    while True:
        with precision(working):
            value = function()
            if working >= MAX_WORKING_BITS or _known(value, bits):
                return value
        working *= 2


def _known(value: arb, bits: int) -> bool:
    if not value.is_finite():
        return False
    return bool(value.rel_accuracy_bits() >= bits or value.abs_upper() < _MIN_FLOAT)


def at_most(function: Function, bound: Fraction, most: int = 4096) -> bool:
    """Whether ``function() <= bound`` is proved. An answer that stays open counts as no."""
    working = FIRST
    while working <= most:
        with precision(working):
            value, limit = function(), ball(bound)
            if value <= limit:
                return True
            if value > limit:
                return False
        working *= 2
    return False


def upper(value: arb) -> float:
    """A float that is not below any number in the ball, read in binary or as printed."""
    with precision(2 * FIRST):
        end = value.upper()
        if not end.is_finite():
            return -math.inf if end < 0 else math.inf
        if abs(end) < _MIN_FLOAT:
            return math.ulp(0.0) if end > 0 else 0.0
        if abs(end) > arb((1, 1100)):
            return math.inf if end > 0 else typed_up(Fraction(-(1 << 1100)))
        return typed_up(exact(end))


def lower(value: arb) -> float:
    """A float that is not above any number in the ball, read in binary or as printed."""
    with precision(2 * FIRST):
        end = value.lower()
        if not end.is_finite():
            return math.inf if end > 0 else -math.inf
        if abs(end) < _MIN_FLOAT:
            return -math.ulp(0.0) if end < 0 else 0.0
        if abs(end) > arb((1, 1100)):
            return -math.inf if end < 0 else typed_down(Fraction(1 << 1100))
        return typed_down(exact(end))


def exact(point: arb) -> Fraction:
    """The rational that a ball of radius zero stands for."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def above(function: Function) -> float:
    """The upper end, as a float, of ``function()`` known to a float's accuracy.

    >>> above(lambda: arb(2).sqrt())
    1.4142135623730951
    """
    return upper(enclose(function))


def below(function: Function) -> float:
    """The lower end, as a float, of ``function()`` known to a float's accuracy."""
    return lower(enclose(function))


def rational_above(function: Function, bits: int = ENOUGH) -> Fraction:
    """A rational that is not below ``function()`` and agrees with it to ``bits`` bits."""
    value = enclose(function, bits)
    with precision(bits + FIRST):
        return exact(value.upper())


def integer_above(function: Function) -> int:
    """The smallest integer that is not below ``function()``, or the next one."""
    size = abs(math.ceil(rational_above(function))).bit_length()
    return math.ceil(rational_above(function, size + 16))


def exp(x: arb) -> arb:
    """The exponential, with a bound in place of numbers too small for the exponent to be written."""
    return NOTHING if x < _DEEPEST else x.exp()
