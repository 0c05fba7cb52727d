"""Amounts as text for people: never less than was spent, never more than is left, and exact where that is short.

No float takes part: what is rounded is an exact rational, by whole numbers.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

_SHORT = 10  # digits: a decimal that has no more is printed as it is
_PRECISE = 128  # bits of an irrational root


def printed_up(value: Fraction, digits: int = 6) -> str:
    """An amount that was spent or is promised: the decimal itself if it is short, otherwise rounded up.

    >>> printed_up(Fraction("1.0000004")), printed_up(Fraction(1, 3)), printed_up(Fraction(1, 10**6))
    ('1.0000004', '0.333334', '1e-06')
    """
    return _text(decimal_up(value, digits))


def printed_down(value: Fraction, digits: int = 6) -> str:
    """An amount that is left: the decimal itself if it is short, otherwise rounded down, and not to 0.

    >>> printed_down(Fraction(2, 3)), printed_down(Fraction(1, 3**500))
    ('0.666666', '2.75025e-239')
    """
    return _text(decimal_up(-value, digits).copy_negate()) if value else "0"


def decimal_up(value: Fraction, digits: int) -> Decimal:
    """The value itself if it has a short decimal, otherwise the next decimal above it with so many digits.

    >>> decimal_up(Fraction(2, 3), 2), decimal_up(Fraction(-2, 3), 2)
    (Decimal('0.67'), Decimal('-0.66'))
    """
    if not value:
        return Decimal(0)
    size = _power_of_ten(abs(value))
    whole = value / Fraction(10) ** (size - _SHORT + 1)
    if whole.denominator == 1:
        return _decimal(whole.numerator, size - _SHORT + 1)
    return _decimal(math.ceil(value / Fraction(10) ** (size - digits + 1)), size - digits + 1)


def root_up(square: Fraction) -> Fraction:
    """The square root if it is rational, otherwise a little more: by less than 2**-120 of it.

    >>> root_up(Fraction(9, 100)), root_up(Fraction(2)) ** 2 > 2
    (Fraction(3, 10), True)
    """
    low = root_down(square)
    return low if low**2 == square else low + _unit(square)


def root_down(square: Fraction) -> Fraction:
    """The square root if it is rational, otherwise a little less: by less than 2**-120 of it."""
    over, under = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if over**2 == square.numerator and under**2 == square.denominator:
        return Fraction(over, under)
    unit = _unit(square)
    return math.isqrt(math.floor(square / unit**2)) * unit


def _unit(square: Fraction) -> Fraction:
    return Fraction(2) ** ((square.numerator.bit_length() - square.denominator.bit_length()) // 2 - _PRECISE)


def _power_of_ten(value: Fraction) -> int:
    """The place of the first digit: 0 for 1 to 9."""
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    size = math.floor((bits - 1) * math.log10(2)) - 1
    while Fraction(10) ** (size + 1) <= value:
        size += 1
    return size


def _decimal(whole: int, power: int) -> Decimal:
    """The number whole * 10**power. Nothing here hangs on the context of ``decimal``, which may round."""
    kept = str(abs(whole)).rstrip("0")
    return Decimal((int(whole < 0), tuple(map(int, kept)), power + len(str(abs(whole))) - len(kept)))


def _text(value: Decimal) -> str:
    """As ``%g`` writes it, with all digits that there are."""
    sign, digits, _ = value.as_tuple()
    size = value.adjusted()
    if -5 < size < max(6, len(digits)):
        return f"{value:f}"
    first, *more = map(str, digits)
    return f"{'-' * sign}{first}{'.' * bool(more)}{''.join(more)}e{size:+03d}"
