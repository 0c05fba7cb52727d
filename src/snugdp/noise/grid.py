"""How fine a grid to release on: public, from the spread of the noise alone."""

from __future__ import annotations

from fractions import Fraction

_FINE = 20  # bits below the spread of the noise: rounding then costs less than a millionth of it


def grid_below(spread: Fraction) -> int:
    """An exponent g with 2**g between a 2**-20 and a 2**-22 part of the spread.

    >>> grid_below(Fraction(1))
    -21
    """
    return spread.numerator.bit_length() - spread.denominator.bit_length() - _FINE - 1
