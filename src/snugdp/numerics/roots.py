"""Inverse problems: a float guess at the crossing, then a proof that the float returned is safe."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeAlias, TypeVar

from flint import arb

from snugdp.numerics import balls
from snugdp.numerics.rationals import float_down, readings

Number = TypeVar("Number", float, Fraction)
Curve: TypeAlias = Callable[[Fraction], arb]  # a ball at the present precision; positive, monotone where used

_STEPS = 200
_NEAR = 2**9  # ``largest_near`` stops at this relative distance


def mean(low: Number, high: Number) -> Number:
    """The middle of an interval."""
    return (low + high) / 2


def float_mean(low: Fraction, high: Fraction) -> Fraction:
    """A float in the middle."""
    return Fraction(float_down((low + high) / 2))


def bisect(
    good: Callable[[Number], bool],
    low: Number,
    high: Number,
    steps: int = _STEPS,
    *,
    middle: Callable[[Number, Number], Number] = mean,
    near: int | None = None,
) -> tuple[Number, Number]:
    """Ends around the point where ``good`` turns from true, at low, to false, at high.

    Each but the first two was looked at. It stops after so many steps, when nothing lies between the ends, or when they
    are as near as a ``near``-th of the lower one.

    >>> bisect(lambda x: x * x <= 2, 0.0, 2.0)
    (1.414213562373095, 1.4142135623730951)
    """
    for _ in range(steps):
        at = middle(low, high)
        if not low < at < high or (near is not None and near * (high - low) <= low):
            break
        low, high = (at, high) if good(at) else (low, at)
    return low, high


def largest_near(good: Callable[[Number], bool], low: Number, middle: Callable[[Number, Number], Number]) -> Number:
    """Nearly the largest good number; ``low`` is known to be good, and only what is good is returned."""
    high = 2 * low
    while good(high):
        low, high = high, 2 * high
        if high > 2**40:
            return low
    return bisect(good, low, high, middle=middle, near=_NEAR)[0]


def largest_up_to(good: Callable[[float], bool], most: float) -> float:
    """Nearly the largest good float up to ``most``; 0 if none of its halves down to a thousandth is good."""
    if good(most):
        return most
    low = most / 2
    while low > most / 2**10 and not good(low):
        low /= 2
    return bisect(good, low, 2 * low, near=_NEAR)[0] if low > most / 2**10 else 0.0


def smallest(curve: Curve, target: Fraction, low: float, high: float) -> float:
    """A float x, near the smallest in [low, high], with ``curve(x) <= target`` proved; curve nonincreasing.

    The caller knows curve(low) > target and expects curve(high) <= target. Infinite if nothing is proved.
    A curve that falls and later rises is allowed if it falls below the target once between low and high.
    """
    if math.isinf(high):
        return math.inf
    guess = crossing(curve, target, low, high)
    found = _nudged(lambda x: _holds(curve, target, x), guess, math.inf)
    if found > high and _holds(curve, target, high):
        return high
    return found


def largest(curve: Curve, target: Fraction, low: float) -> float:
    """A float x >= 0, near the largest, with ``curve(x) <= target`` proved; curve nondecreasing.

    The caller knows curve(low) <= target, up to rounding. Zero if nothing is proved.
    """
    high = 2 * low or math.ulp(0.0)
    while _holds(curve, target, high):
        low, high = high, 2 * high
        if math.isinf(high):
            return low
    guess = crossing(curve, target, low, high)
    return max(0.0, _nudged(lambda x: x <= 0 or _holds(curve, target, x), guess, -math.inf))


def _holds(curve: Curve, target: Fraction, x: float) -> bool:
    """Whether curve <= target is proved at both readings of the float."""
    return all(balls.at_most(partial(curve, value), target) for value in readings(x))


def _nudged(good: Callable[[float], bool], start: float, towards: float) -> float:
    """The start moved by 1, 2, 4, ... floats towards the safe side, until it is good."""
    step, x = 1, start
    while math.isfinite(x) and not good(x):
        x += math.copysign(step * math.ulp(x), towards)
        step *= 2
    return x


def crossing(curve: Curve, target: Fraction, low: float, high: float) -> float:
    """Where log curve crosses log target between two floats (Chandrupatla's bracketing method)."""
    gap_low, gap_high = _gap(curve, target, low), _gap(curve, target, high)
    if gap_low * gap_high >= 0:
        return low if abs(gap_low) < abs(gap_high) else high
    a, b, c, fa, fb, fc, t = high, low, low, gap_high, gap_low, gap_low, 0.5
    for _ in range(_STEPS):
        x = a + t * (b - a)
        fx = _gap(curve, target, x)
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, b, fc, fb = b, a, fb, fa
        a, fa = x, fx
        best = a if abs(fa) < abs(fb) else b
        if fx == 0 or abs(b - a) <= 4 * math.ulp(best):
            return best
        t = _fraction(a, b, c, fa=fa, fb=fb, fc=fc)
        margin = 2 * math.ulp(best) / abs(b - a)
        t = min(max(t, margin), 1 - margin)
    return best


def _fraction(a: float, b: float, c: float, /, *, fa: float, fb: float, fc: float) -> float:
    """How far from a to b to look next: inverse quadratic interpolation where it is safe, else the middle."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if phi**2 < xi and (1 - phi) ** 2 < 1 - xi:
        first = fa / (fb - fa) * fc / (fb - fc)
        second = (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        return first + second
    return 0.5


def _gap(curve: Curve, target: Fraction, x: float) -> float:
    """The logarithm of curve(x)/target, kept finite."""

    def ratio() -> arb:
        return curve(Fraction(x)) / balls.ball(target)

    value = balls.enclose(ratio)
    with balls.precision(balls.FIRST):
        if not value > 0:
            return -1e6
        gap = float(value.log().mid())
    return min(max(gap, -1e6), 1e6)
