"""What a function returned, as a number: every Python object has an image, and none is asked what it thinks of that.

A private computation may return a float on one table and a ``numpy.float32``, ``None`` or a number beyond the floats on
its neighbour. Whether that works must not depend on the type, or the type is a release that nobody paid for. So equal
numbers have one image, whatever their type, and what is no number has one too.
"""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

MAX_SIZE_BITS = 1 << 18  # powers of two: beyond the end a number counts as infinite, below its inverse as 0
_END = Fraction(2) ** MAX_SIZE_BITS
_POWERS_OF_TEN = 10**5  # beyond MAX_SIZE_BITS, in decimals, which write such numbers with few digits
_NO_NUMBER = math.nan


def number(value: object) -> Fraction | float:
    """The exact number that ``value`` is, or plus or minus infinity; NaN for what is no number. Never raises.

    Numbers are those of Python (int, float, bool, Fraction, Decimal, complex without an imaginary part), those of
    numpy, its arrays without dimensions too, and whole numbers of other libraries, which have an ``__index__``.

    >>> [number(value) for value in (True, 0.5, np.float32(0.5), Decimal("0.5"), 2 + 0j)]
    [Fraction(1, 1), Fraction(1, 2), Fraction(1, 2), Fraction(1, 2), Fraction(2, 1)]
    >>> [number(value) for value in (None, "1", 1j, [1], Decimal("sNaN"), Decimal("-inf"))]
    [nan, nan, nan, nan, nan, -inf]
    """
    try:
        return _bounded(_exact(value))
    except KeyboardInterrupt:
        raise
    except BaseException:  # what cannot be read is not a number
        return _NO_NUMBER


def finite(value: object) -> Fraction:
    """The same for noise, which needs a finite number: 0 for what is no number, and the farthest one for infinity.

    Two numbers are never farther apart afterwards than before, but for 2**-MAX_SIZE_BITS where one of them became 0.

    >>> finite(np.float16(3)), finite(None), finite(10**400) == 10**400, finite(-math.inf) < -(10**400)
    (Fraction(3, 1), Fraction(0, 1), True, True)
    """
    found = number(value)
    if isinstance(found, Fraction):
        return found
    return Fraction(0) if math.isnan(found) else _END if found > 0 else -_END


def _exact(value: Any) -> Fraction | float:
    """By the type alone: methods that a subclass has changed are not called."""
    kind = type(value)
    if kind is Fraction:
        return Fraction(value)
    if issubclass(kind, np.ndarray):
        return _inside(value)
    if issubclass(kind, complex | np.complexfloating):
        plain = complex.__add__(value, 0) if issubclass(kind, complex) else value
        return _exact(plain.real) if plain.imag == 0 else _NO_NUMBER
    if issubclass(kind, int):
        return Fraction(int.__int__(value))
    if issubclass(kind, float):
        return _binary(float.__float__(value))
    if issubclass(kind, np.floating):
        return _binary(np.longdouble(value))
    if issubclass(kind, np.bool_):
        return Fraction(bool(value))
    if issubclass(kind, Decimal):
        return _decimal(Decimal(value))
    if issubclass(kind, Fraction):
        return Fraction(Fraction.numerator.fget(value), Fraction.denominator.fget(value))  # type: ignore[attr-defined]
    if issubclass(kind, np.timedelta64):  # which numpy counts among the whole numbers
        return _NO_NUMBER
    return Fraction(operator.index(value))


def _inside(array: Any) -> Fraction | float:
    """The only entry of an array without dimensions; a masked one is missing."""
    bare = np.ndarray.view(array, np.ndarray)
    if bare.ndim or (isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any()):
        return _NO_NUMBER
    inside = bare[()]
    return _NO_NUMBER if isinstance(inside, np.ndarray) else _exact(inside)


def _binary(value: Any) -> Fraction | float:
    return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)


def _decimal(value: Decimal) -> Fraction | float:
    if value.is_nan():
        return _NO_NUMBER
    if value.is_finite() and (not value or value.adjusted() < -_POWERS_OF_TEN):
        return Fraction(0)
    if value.is_infinite() or value.adjusted() > _POWERS_OF_TEN:
        return -math.inf if value.is_signed() else math.inf
    return Fraction(value)


def _bounded(value: Fraction | float) -> Fraction | float:
    """Numbers of a size that can be worked with: a decimal of ten characters may need more memory than there is."""
    if isinstance(value, float):
        return value
    size = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(size) < MAX_SIZE_BITS:  # 2**(size - 1) < |value| < 2**(size + 1)
        return value
    if abs(value) > _END:
        return math.inf if value > 0 else -math.inf
    return value if abs(value) >= 1 / _END else Fraction(0)
