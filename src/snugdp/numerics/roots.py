"""Inverse problems: a float guess at the crossing, then a proof that the float returned is safe."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from flint import arb

from snugdp.numerics import balls
from snugdp.numerics.rationals import readings

Curve: TypeAlias = Callable[[Fraction], arb]  # a ball at the present precision; positive, monotone where used

_STEPS = 200


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
