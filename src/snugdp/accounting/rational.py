"""Numbers that a person typed, kept exactly as typed."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

Real: TypeAlias = int | float | str | Decimal | Fraction

_LONGEST = 400  # characters of a number given as text: beyond this it is not a number a person typed


def rational(value: Real, name: str) -> Fraction:
    """The exact rational that ``value`` is written as: 0.1 is one tenth, not the nearest binary number.

    >>> rational(0.1, "epsilon") + rational(0.2, "epsilon") == rational(0.3, "epsilon")
    True
    """
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not a truth value")
    if isinstance(value, str) and len(value) > _LONGEST:
        raise ValueError(f"{name} is longer than {_LONGEST} characters; give a shorter decimal or fraction")
    if isinstance(value, (Fraction, int)):
        return Fraction(value)
    try:
        if isinstance(value, (str, Decimal)):
            return Fraction(value)
        return Fraction(repr(float(value)))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        pass
    raise ValueError(f'{name} must be a finite number, such as 0.5, "1/3" or Decimal("1e-6")')


def float_up(value: Fraction) -> float:
    """The smallest float that is not below ``value``."""
    nearest = _nearest(value)
    if math.isinf(nearest):
        return math.inf if nearest > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above ``value``."""
    nearest = _nearest(value)
    if math.isinf(nearest):
        return sys.float_info.max if nearest > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
