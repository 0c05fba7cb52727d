"""Amounts as text: never on the side that promises more, exact where that is short, whatever their size."""

import decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.numerics.printed import decimal_up, printed_down, printed_up, root_down, root_up
from snugdp.numerics.rationals import written_up

EXACT = Fraction(1, 10**5)  # six digits
whole = st.integers(1, 10**30)
ratios = st.builds(Fraction, whole, whole)
amounts = st.one_of(
    ratios,
    st.builds(lambda value, power: value * Fraction(10) ** power, ratios, st.integers(-700, 700)),
    st.decimals(min_value=0, allow_nan=False, allow_infinity=False, places=12).filter(bool).map(Fraction),
    st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False).map(Fraction),
)


@given(amounts)
def test_what_is_printed_is_on_the_safe_side_and_near(value: Fraction) -> None:
    above, below = Fraction(printed_up(value)), Fraction(printed_down(value))
    assert 0 < below <= value <= above
    assert above - value <= value * EXACT
    assert value - below <= value * EXACT
    assert Fraction(printed_up(-value)) == -below
    assert Fraction(printed_down(-value)) == -above


@given(amounts, st.integers(1, 9))
def test_it_has_so_many_digits_or_is_the_number_itself(value: Fraction, digits: int) -> None:
    shown = decimal_up(value, digits)
    assert Fraction(shown) == value or len(shown.as_tuple().digits) <= digits
    assert value <= Fraction(shown) <= value * (1 + Fraction(10) ** (1 - digits))


@given(st.integers(1, 10**10 - 1), st.integers(-400, 400))
def test_short_decimals_are_printed_as_they_are(whole: int, power: int) -> None:
    value = whole * Fraction(10) ** power
    assert Fraction(printed_up(value)) == Fraction(printed_down(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0"), ("1", "1"), ("0.5", "0.5"), ("100", "100"), ("1e-6", "1e-06"), ("0.0001", "0.0001"),
        ("1e6", "1e+06"), ("1234567", "1234567"), ("1.0000004", "1.0000004"), ("1.00000004e-6", "1.00000004e-06"),
        ("4e-6", "4e-06"), ("1e-5000", "1e-5000"), ("1/3", "0.333334"), ("99999.99999999", "100000"),
        ("0.99999999999", "1"),
    ],
)  # fmt: skip
def test_what_people_read(value: str, text: str) -> None:
    assert printed_up(Fraction(value)) == text


def test_the_context_of_decimals_does_not_round() -> None:
    with decimal.localcontext(decimal.Context(prec=2, rounding=decimal.ROUND_DOWN)):
        assert printed_up(Fraction("1.0000004")) == "1.0000004"
        assert printed_up(Fraction(1, 3)) == "0.333334"
        assert printed_down(Fraction(2, 3)) == "0.666666"


@given(amounts)
def test_roots_are_exact_or_on_their_side(value: Fraction) -> None:
    assert root_up(value**2) == root_down(value**2) == value
    low, high = root_down(value), root_up(value)
    assert low**2 <= value <= high**2
    assert high - low <= high / 2**120


@given(amounts.filter(lambda value: value < 10**300))
def test_a_float_for_a_file_prints_as_no_less(value: Fraction) -> None:
    found = Fraction(repr(written_up(value)))
    assert value <= found <= value * (1 + Fraction(1, 2**51)) + Fraction(1, 10**323)


@given(st.floats(min_value=0, allow_infinity=False, allow_nan=False))
def test_a_float_that_was_typed_stays_itself(value: float) -> None:
    assert written_up(Fraction(repr(value))) == value
