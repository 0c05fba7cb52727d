"""Integer noise: thresholds by exact sums, and the theorem about the Gaussian DP of discrete noise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from snugdp.accounting import discrete, gaussian, pairs
from snugdp.numerics import balls
from tests.effort import often, repeated

from .hockey import Array, hockey_stick

tails = st.floats(-200, -0.31).map(lambda x: 10.0**x)


def _law(variance: Fraction, reach: int, bits: int) -> list[arb]:
    """P[Z = 0..reach], from a plain sum at high precision."""
    with balls.precision(bits):
        half = [(-balls.ball(Fraction(z * z) / (2 * variance))).exp() for z in range(4 * reach + 200)]
        total = half[0] + 2 * sum(half[1:], arb(0))
        return [x / total for x in half[: reach + 1]]


@pytest.mark.parametrize("variance", [Fraction(1, 20), Fraction(1, 4), Fraction(1), Fraction(5, 2), Fraction(64)])
def test_steps_between_quantiles_shrink_from_the_centre(variance: Fraction) -> None:
    """Theorem 1 and Corollary 3, far into the tails."""
    with balls.precision(1200):
        reach = int(12 * math.sqrt(variance)) + 8
        a = [discrete._quantile(variance, k + 1) for k in range(reach)]
        steps = [2 * a[0], *(high - low for low, high in pairwise(a))]
        width = 1 / balls.ball(variance).sqrt()
        assert all(far < near for near, far in pairwise(steps))
        assert all(step > width for step in steps)
        assert all(a[k] > (k + arb(0.5)) * width for k in range(reach))


def test_a_truncated_normal_is_widest_when_centred() -> None:
    t = np.linspace(-1, 1, 20_001)
    for half in (0.1, 0.7, 3.0):
        x, last = half * t, math.inf
        for c in np.linspace(0, 12, 60):
            f = np.exp(c * x - x**2 / 2 - c * half)
            f /= f.sum()
            variance = float((f * x**2).sum() - (f * x).sum() ** 2)
            assert variance <= last * (1 + 1e-9)
            last = variance


@repeated
@settings(max_examples=often(10, 30), deadline=None)
@given(st.floats(0.3, 15), st.integers(1, 9))
def test_the_parameter_is_sufficient_and_necessary(sigma: float, distance: int) -> None:
    mu = discrete.discrete_gaussian_mu(sigma, distance)
    z = np.arange(-300, 301)
    p: Array = np.exp(-(z**2) / (2 * sigma**2))
    p /= p.sum()
    q = np.roll(p, distance)
    centre = (distance - 2 * (distance // 2)) * distance / (2 * sigma**2)
    levels = [centre, -centre, *np.linspace(-4, 6, 40)]
    for epsilon in levels:
        assert hockey_stick(p, q, float(epsilon)) <= gaussian.delta(mu, float(epsilon)) + 1e-12
    cdf = np.cumsum(p)
    k = 300 + distance // 2  # the test that decides: is the outcome beyond half the distance
    assert mu == pytest.approx(norm.isf(p[k + 1 :].sum()) - norm.ppf(cdf[k - distance]), rel=1e-9)


def test_claiming_the_continuous_parameter_is_refuted() -> None:
    for sigma, ratio in ((1, 1.79), (2, 1.23), (4, 1.059), (8, 1.017)):
        grid = [Fraction(k, 100) / sigma for k in range(1, 501, 4)]
        worst = max(pairs.discrete_gaussian(sigma**2, 1, e) / gaussian.delta(Fraction(1, sigma), e) for e in grid)
        assert worst == pytest.approx(ratio, rel=0.02)


def test_parameter_of_extreme_scales() -> None:
    assert discrete.discrete_gaussian_mu("1e9") == pytest.approx(1e-9, rel=1e-13)
    assert discrete.discrete_gaussian_mu("1e9", 10**6) == pytest.approx(1e-3, rel=1e-12)
    assert discrete.discrete_gaussian_mu(5000, 100) == pytest.approx(0.02, rel=1e-8)
    assert discrete.discrete_gaussian_mu(1000, 500) == pytest.approx(
        discrete.discrete_gaussian_mu("1000.001", 500), rel=2e-6
    )
    assert 199 < discrete.discrete_gaussian_mu("0.01") < 200
    assert discrete.discrete_gaussian_mu(1, 0) == 0


@pytest.mark.slow
@repeated
@settings(max_examples=often(12, 40), deadline=None)
@given(st.floats(0.2, 40), tails)
def test_gaussian_threshold_is_the_smallest(sigma: float, delta: float) -> None:
    tau, passing = discrete.discrete_gaussian_threshold(sigma, delta)
    p = _law(Fraction(repr(sigma)) ** 2, 40 * int(sigma + 1), 1600)
    goal = Fraction(repr(delta))
    with balls.precision(1600):
        upto = sum(p[1:tau], arb(0)) if tau > 0 else arb(0)
        exact = (1 - p[0]) / 2 - upto if tau > 0 else (1 + p[0]) / 2
        assert exact <= balls.ball(min(Fraction(passing), goal))
        assert passing == pytest.approx(float(exact), rel=1e-12)
        if tau > 0:
            assert exact + p[tau - 1] > balls.ball(goal)


def test_gaussian_threshold_of_large_scale_is_continued_safely() -> None:
    below, above = (discrete.discrete_gaussian_threshold(s, "1e-9").tau for s in (1000, "1000.0001"))
    assert 0 <= above - below <= 1
    assert discrete.discrete_gaussian_threshold("1e7", "1e-300").tau == pytest.approx(1e7 * norm.isf(1e-300), rel=1e-6)


@repeated
@settings(max_examples=often(26, 80), deadline=None)
@given(st.floats(1e-3, 20), tails)
def test_laplace_thresholds(epsilon: float, delta: float) -> None:
    rate, goal = Fraction(repr(epsilon)), Fraction(repr(delta))
    tau, passing = discrete.discrete_laplace_threshold(epsilon, delta)
    with balls.precision(1000):
        p = (-balls.ball(rate)).exp()
        exact = p**tau / (1 + p)
        assert exact <= balls.ball(min(Fraction(passing), goal))
        assert tau == 0 or p ** (tau - 1) / (1 + p) > balls.ball(goal)
        flat = discrete.laplace_threshold(epsilon, delta)
        for reading in (Fraction(flat), Fraction(repr(flat))):
            assert (-balls.ball(rate * reading)).exp() / 2 <= balls.ball(goal)
        assert (-balls.ball(rate * Fraction(flat)) * (1 - arb(1e-13))).exp() / 2 > balls.ball(goal) or flat == 0


def test_the_continuous_constant_is_wrong_for_integers() -> None:
    p = math.exp(-1)  # the tail has 1/(1 + p) in place of 1/2
    exponents = [x / 997 for x in range(1, 997)]
    assert any(math.exp(-math.ceil(math.log(1 / (2 * 10**-x)))) / (1 + p) > 10**-x for x in exponents if 10**-x < 0.5)


def test_thresholds_of_extreme_rates() -> None:
    assert discrete.discrete_laplace_threshold("1e-8", "0.6").tau == 0
    assert discrete.discrete_laplace_threshold("1e-300", "1e-9").tau > 10**300
    assert discrete.laplace_threshold(1, "0.7") == 0.0
    assert discrete.discrete_gaussian_threshold("0.05", "0.1").tau == 1


@pytest.mark.parametrize("delta", [0, 1, -1, 2])
def test_bad_tail_probabilities_are_refused(delta: int) -> None:
    with pytest.raises(ValueError, match="delta must be above 0 and below 1"):
        discrete.discrete_laplace_threshold(1, delta)
    with pytest.raises(ValueError, match="delta must be above 0 and below 1"):
        discrete.discrete_gaussian_threshold(1, delta)


def test_bad_scales_are_refused() -> None:
    with pytest.raises(ValueError, match="sigma must be above 0"):
        discrete.discrete_gaussian_mu(0)
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        discrete.laplace_threshold(0, "0.1")
