"""Ranges and Gaussian parts: inverse to each other, on the safe side, and no pair of that range is above its curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from snugdp.accounting import gaussian
from snugdp.accounting.bounded_range import mu_squared, range_at
from snugdp.numerics import balls
from tests.accounting.hockey import hockey_stick

RANGES = [Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2), Fraction(2), Fraction(30), Fraction(400)]


@pytest.mark.parametrize("loss_range", RANGES, ids=float)
def test_inverse_to_each_other_and_rounded_against_us(loss_range: Fraction) -> None:
    square = mu_squared(loss_range)
    back = range_at(square)
    assert abs(back / loss_range - 1) < Fraction(1, 10**13)
    assert range_at(square * (1 - Fraction(1, 10**12))) < loss_range, "not larger than it must be"
    with balls.precision(300):  # the condition of Theorem 1, exactly
        half = balls.ball(square / 4).sqrt()
        assert (gaussian.cdf(half) / gaussian.cdf(-half)).log() >= balls.ball(loss_range / 2) - arb((1, -200))


@pytest.mark.parametrize("loss_range", [Fraction(1, 10), Fraction(1), Fraction(4)], ids=float)
def test_two_points_touch_the_gaussian_curve(loss_range: Fraction) -> None:
    """The worst pair of this range is below the curve everywhere, and above that of a smaller mu somewhere."""
    e, mu = float(loss_range), math.sqrt(mu_squared(loss_range))
    touched = False
    for place in range(1, 40):
        q = 1 / (1 + math.exp(e * (place - 20) / 10))
        p = q * math.exp(e) / (1 - q + q * math.exp(e))
        for epsilon in (-1.0, -0.3, 0.0, 0.3, 1.0):
            pair = hockey_stick(np.array([p, 1 - p]), np.array([q, 1 - q]), epsilon)
            assert pair <= gaussian.delta(mu, epsilon) + 1e-12
            touched = touched or pair > gaussian.delta(0.98 * mu, epsilon)
    assert touched


def test_small_ranges_cost_less_than_half_more() -> None:
    assert float(mu_squared(Fraction(1, 1000))) ** 0.5 * 1000 == pytest.approx(math.sqrt(math.pi / 8), rel=1e-6)


@pytest.mark.parametrize("function", [mu_squared, range_at])
def test_nothing_is_free(function: Callable[[Fraction], Fraction]) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        function(Fraction(0))
