"""Bisection: the ends lie around the turn, and only what is good is returned."""

import math
from fractions import Fraction

import pytest

from snugdp.numerics import roots


@pytest.mark.parametrize("turn", [1e-9, 0.3, 1.0, 1.9999])
def test_the_ends_are_neighbours_around_the_turn(turn: float) -> None:
    low, high = roots.bisect(lambda x: x < turn, 0.0, 2.0)
    assert low < turn <= high
    assert high == math.nextafter(low, math.inf)


def test_it_stops_after_so_many_steps_or_when_near() -> None:
    seen: list[float] = []

    def good(x: float) -> bool:
        seen.append(x)
        return True

    assert roots.bisect(good, 0.0, 1.0, 5) == (0.96875, 1.0)
    assert seen == [0.5, 0.75, 0.875, 0.9375, 0.96875]
    low, high = roots.bisect(lambda x: x <= Fraction(1, 3), Fraction(1, 4), Fraction(1), near=8)
    assert low <= Fraction(1, 3) < high
    assert 8 * (high - low) <= low


@pytest.mark.parametrize("most", [0.7, 100.0])
def test_the_largest_good_number_is_nearly_found_and_good(most: float) -> None:
    found = roots.largest_up_to(lambda x: x <= 0.7, most)
    assert 0.7 * (1 - 2**-8) < found <= 0.7
    assert roots.largest_up_to(lambda x: x <= most / 2**12, most) == 0.0
    near = roots.largest_near(lambda x: x <= most, Fraction(1, 7), roots.float_mean)
    assert most * (1 - 2**-8) < near <= most
