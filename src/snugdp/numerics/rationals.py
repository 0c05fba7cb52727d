"""Numbers that a person typed, kept exactly as typed."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

Real: TypeAlias = int | float | str | Decimal | Fraction

_MAX_CHARACTERS = 400  # characters of a number given as text: beyond this it is not a number a person typed
_MAX_POWER_OF_TEN = 5000  # powers of ten: beyond this the exact number is too long to write out
_ROOT_BITS = 48  # of a root that is rounded up, such as a standard deviation
_EXPONENT = re.compile(r"[eE]([-+]?[0-9_]+)\s*$")


def rational(value: Real, name: str) -> Fraction:
    """The exact rational that ``value`` is written as: 0.1 is one tenth, not the nearest binary number.

    >>> rational(0.1, "epsilon") + rational(0.2, "epsilon") == rational(0.3, "epsilon")
    True
    """
    if type(value) is Fraction:  # as most are: nothing to read, and they never change
        return value
    if type(value) is int:
        return Fraction(value)
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not a boolean")
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        raise ValueError(f"{name} is longer than {_MAX_CHARACTERS} characters; give a shorter decimal or fraction")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    try:
        if abs(_power_of_ten(value)) <= _MAX_POWER_OF_TEN:
            return Fraction(value if isinstance(value, (str, Decimal)) else repr(float(value)))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        pass
    raise ValueError(f'{name} must be a finite number, such as 0.5, "1/3" or Decimal("1e-6")')


def typed_up(value: Fraction) -> float:
    """The smallest float that is not below ``value``, whether it is read in binary or as it is printed.

    >>> typed_up(Fraction(3, 10)), typed_up(Fraction(1, 10))
    (0.30000000000000004, 0.1)
    """
    return _raised(float_up(value), value, lambda number: min(readings(number)))


def typed_down(value: Fraction) -> float:
    """The largest float that is not above ``value``, whether it is read in binary or as it is printed."""
    return -typed_up(-value)


def written_up(value: Fraction) -> float:
    """The smallest float that prints as a decimal that is not below ``value``: for files, which hold decimals.

    >>> written_up(Fraction(3, 10)), written_up(Fraction(1, 3))
    (0.3, 0.33333333333333337)
    """
    return _raised(_nearest(value), value, lambda number: Fraction(repr(number)))


def _raised(number: float, value: Fraction, reading: Callable[[float], Fraction]) -> float:
    """The first float from ``number`` on whose reading is not below ``value``."""
    while math.isfinite(number) and reading(number) < value:
        number = math.nextafter(number, math.inf)
    return number


def readings(number: float) -> tuple[Fraction, Fraction]:
    """The two exact values that a finite float may stand for: its bits, and the decimal it prints as.

    ``rational`` reads the decimal; other programs read the bits. A safe answer must be safe for both.
    """
    return Fraction(number), Fraction(repr(number))


def float_up(value: Fraction) -> float:
    """The smallest float that is not below ``value``."""
    nearest = _nearest(value)
    if math.isinf(nearest):
        return math.inf if nearest > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above ``value``."""
    return -float_up(-value)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _power_of_ten(value: str | Decimal | float) -> int:
    """How far from the units the written number reaches: 0 unless it carries an exponent."""
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return exponent if isinstance(exponent, int) else 0
    written = _EXPONENT.search(value) if isinstance(value, str) else None
    return int(written.group(1)) if written else 0


def root_above(square: Fraction) -> Fraction:
    """A rational that is not below the root of a positive rational, and above it by less than 2**-46 of it.

    >>> root_above(Fraction(4)) - 2 < Fraction(1, 2**46), root_above(Fraction(2)) ** 2 >= 2
    (True, True)
    """
    size = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    unit = Fraction(2) ** (size - _ROOT_BITS)
    return (math.isqrt(math.ceil(square / unit**2) - 1) + 1) * unit
