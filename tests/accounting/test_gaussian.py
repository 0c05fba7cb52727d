"""Gaussian DP: brackets proved again at higher precision, extreme arguments, and an independent library."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from snugdp.accounting import gaussian
from snugdp.numerics import balls
from snugdp.numerics.rationals import rational, readings
from tests.effort import often, repeated

mus = st.floats(1e-6, 60)
levels = st.floats(-30, 200)
goals = st.floats(-300, -0.001).map(lambda x: 10.0**x)


def _exact(mu: Fraction, epsilon: Fraction, bits: int = 3000) -> arb:
    """delta_G straight from its definition, at a precision beyond any cancellation of the tests."""
    with balls.precision(bits):
        m, e = balls.ball(mu), balls.ball(epsilon)

        def phi(x: arb) -> arb:
            return (-x / arb(2).sqrt()).erfc() / 2

        return phi(m / 2 - e / m) - e.exp() * phi(-m / 2 - e / m)


def _close_above(value: float, truth: arb, slack: float = 1e-14) -> bool:
    with balls.precision(3000):
        low, high = (balls.ball(x) for x in sorted(readings(value)))
        return bool(low >= truth and high <= truth * (1 + arb(slack)))


@repeated
@settings(max_examples=often(50, 150), deadline=None)
@given(mus, levels)
def test_delta_is_the_upper_end_and_tight(mu: float, epsilon: float) -> None:
    value, truth = gaussian.delta(mu, epsilon), _exact(rational(mu, ""), rational(epsilon, ""))
    if value > 1e-300:
        assert _close_above(value, truth)
    else:
        with balls.precision(3000):
            assert balls.ball(min(readings(value))) >= truth


@pytest.mark.parametrize(
    ("mu", "epsilon"), [("1e-300", 0), ("1e-20", "1e-20"), ("1e-8", "3e-7"), ("0.1", "3.6"), ("50", "3100")]
)
def test_delta_keeps_its_digits_through_cancellation(mu: str, epsilon: str | int) -> None:
    assert _close_above(gaussian.delta(mu, epsilon), _exact(Fraction(mu), Fraction(epsilon), 8000))


def test_delta_at_the_ends_of_its_range() -> None:
    assert gaussian.delta(0, 0) == 0
    assert gaussian.delta(0, 5) == 0
    assert gaussian.delta(0, "-0.5") == pytest.approx(-math.expm1(-0.5), rel=1e-15)
    assert gaussian.delta("1e300", 1) == gaussian.delta(1, "-1e300") == gaussian.delta("1e300", "1e599") == 1.0
    assert gaussian.delta("1e-300", "1e300") == math.ulp(0.0)
    assert gaussian.delta("1e10", Fraction(10**20, 2)) == pytest.approx(0.5 - 1e-10 / math.sqrt(2 * math.pi), rel=1e-14)
    assert gaussian.delta("1e200", Fraction(10**400, 2)) == pytest.approx(0.5, rel=1e-14)
    assert gaussian.delta(2000, 2_000_000 + 60_000) == pytest.approx(norm.sf(30), rel=0.02)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(0.01, 20), st.floats(-5, 20))
def test_delta_agrees_with_dp_accounting(mu: float, epsilon: float) -> None:
    reference = GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
    assert gaussian.delta(mu, epsilon) == pytest.approx(reference, rel=1e-9, abs=1e-14)


@repeated
@settings(max_examples=often(26, 80), deadline=None)
@given(mus, goals)
def test_epsilon_is_proved_and_tight(mu: float, delta: float) -> None:
    value, size, goal = gaussian.epsilon(mu, delta), rational(mu, ""), rational(delta, "")
    with balls.precision(3000):
        for reading in readings(value):
            assert _exact(size, reading) <= balls.ball(goal)
        if value > 0:
            step = Fraction(1, 10**14) * max(Fraction(1), Fraction(mu))
            assert _exact(size, max(Fraction(0), Fraction(value) * (1 - Fraction(1, 10**14)) - step)) > balls.ball(goal)


@repeated
@settings(max_examples=often(26, 80), deadline=None)
@given(st.floats(0, 100), goals)
def test_mu_is_proved_and_tight(epsilon: float, delta: float) -> None:
    value, level, goal = gaussian.mu(epsilon, delta), rational(epsilon, ""), rational(delta, "")
    with balls.precision(3000):
        for reading in readings(value):
            assert _exact(reading, level) <= balls.ball(goal)
        assert _exact(Fraction(value) * (1 + Fraction(1, 10**14)), level) > balls.ball(goal)


def test_inverse_problems_at_the_ends() -> None:
    assert gaussian.epsilon(1, 0) == math.inf
    assert gaussian.epsilon(0, 0) == 0.0
    assert gaussian.epsilon(1, "0.9") == 0.0
    assert gaussian.mu(3, 0) == 0.0
    assert gaussian.mu(0, "1e-300") == pytest.approx(1e-300 * math.sqrt(2 * math.pi), rel=1e-13)
    assert gaussian.epsilon("1e100", "0.5") == pytest.approx(5e199, rel=1e-13)
    assert gaussian.epsilon("1e300", "0.5") == math.inf
    assert gaussian.mu("1e6", "0.999") == pytest.approx(1417.30787882, rel=1e-10)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(1e-3, 1e6), goals)
def test_threshold_is_passed_with_at_most_delta(sigma: float, delta: float) -> None:
    value = gaussian.threshold(sigma, delta)
    assert value == pytest.approx(sigma * norm.isf(delta), rel=1e-11, abs=1e-11 * sigma)
    with balls.precision(3000):
        for reading in readings(value):
            assert gaussian.cdf(-balls.ball(reading / rational(sigma, ""))) <= balls.ball(rational(delta, ""))


def test_threshold_of_certainty() -> None:
    assert gaussian.threshold(1, 0) == math.inf
    assert gaussian.threshold(0, 0) == 0.0
    assert gaussian.threshold(2, "0.5") == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("bad", [math.nan, math.inf, "one", "1e999999999"])
def test_what_is_not_a_number_is_refused(bad: float | str) -> None:
    with pytest.raises(ValueError, match="mu must be a finite number"):
        gaussian.delta(bad, 1)
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        gaussian.delta(1, bad)


def test_values_outside_the_range_are_refused() -> None:
    with pytest.raises(ValueError, match="mu must be at least 0"):
        gaussian.delta(-1, 1)
    for delta in (-0.1, 1, 1.5):
        with pytest.raises(ValueError, match="delta must be at least 0 and below 1"):
            gaussian.epsilon(1, delta)
    with pytest.raises(ValueError, match="epsilon must be at least 0"):
        gaussian.mu(-1, "1e-6")
    with pytest.raises(TypeError, match="boolean"):
        gaussian.mu(True, "1e-6")


def test_calibration_is_quick() -> None:
    gaussian.mu(1, "1e-6")
    begin = time.process_time()
    for _ in range(20):
        gaussian.mu(1, "1e-6")
        gaussian.epsilon("0.5", "1e-9")
    assert (time.process_time() - begin) / 40 < 0.05  # about 1 ms on an idle core
