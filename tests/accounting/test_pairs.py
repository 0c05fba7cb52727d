"""Hockey sticks of single pairs, against quadrature, brute force and another accountant."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import DiscreteGaussianPrivacyLoss, LaplacePrivacyLoss
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.accounting import gaussian, pairs
from tests.effort import often, repeated

from .hockey import from_loss, hockey_stick

levels = st.floats(-5, 8)


@repeated
@settings(max_examples=often(26, 80), deadline=None)
@given(st.floats(-3, 3), st.floats(0.1, 5), levels)
def test_gaussian_pair_by_quadrature(mean: float, variance: float, epsilon: float) -> None:
    exact = from_loss(lambda t: (t - mean) ** 2 / (2 * variance) - t**2 / 2 + math.log(variance) / 2, epsilon)
    assert pairs.gaussian_pair(mean, variance, epsilon) == pytest.approx(exact, rel=1e-6, abs=1e-11)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(0, 3), st.floats(0.05, 20), st.floats(-4, 4))
def test_gaussian_pair_is_dual(mean: float, variance: float, epsilon: float) -> None:
    swapped = pairs.gaussian_pair(mean, variance, epsilon, swapped=True)
    dual = -math.expm1(epsilon) + math.exp(epsilon) * pairs.gaussian_pair(mean, variance, -epsilon)
    assert swapped == pytest.approx(dual, abs=1e-13 * math.exp(abs(epsilon)))


@repeated
@settings(max_examples=often(13, 40), deadline=None)
@given(st.floats(0, 3), st.floats(0.1, 5), levels, st.floats(0, 2))
def test_gaussian_pair_grows_with_the_mean(mean: float, variance: float, epsilon: float, more: float) -> None:
    here, there = (pairs.gaussian_pair(m, variance, epsilon) for m in (mean, mean + more))
    assert here <= there * (1 + 1e-13)
    assert here >= -math.expm1(min(epsilon, 0))


def test_gaussian_pair_with_nearly_equal_variances() -> None:
    for epsilon in ("0.5", "3", "-0.2"):
        middle = gaussian.delta("0.7", epsilon)
        for variance in (1 - Fraction(1, 10**12), 1 + Fraction(1, 10**12)):
            assert pairs.gaussian_pair("0.7", variance, epsilon) == pytest.approx(middle, rel=1e-8)
    assert pairs.gaussian_pair(0, 1, 0) == 0
    assert pairs.gaussian_pair(0, "1.00001", "0.001") == 0
    assert pairs.gaussian_pair("0.2", "1.01", 1) == pytest.approx(9.90610771531397e-11, rel=1e-10)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), levels)
def test_two_outcomes_by_sum(p: float, q: float, epsilon: float) -> None:
    exact = hockey_stick(np.array([p, 1 - p]), np.array([q, 1 - q]), epsilon)
    assert pairs.two_outcomes(p, q, epsilon) == pytest.approx(exact, abs=1e-14 * math.exp(abs(epsilon)))
    assert pairs.two_outcomes(p, q, epsilon) >= -math.expm1(min(epsilon, 0))


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(0.01, 6), st.floats(-8, 8))
def test_laplace_agrees_with_dp_accounting(loss: float, epsilon: float) -> None:
    reference = LaplacePrivacyLoss(1 / loss).get_delta_for_epsilon(epsilon)
    assert pairs.laplace(loss, epsilon) == pytest.approx(reference, abs=1e-12)


@repeated
@settings(max_examples=often(13, 40), deadline=None)
@given(st.floats(0.3, 12), st.integers(1, 6), st.floats(-2, 6))
def test_discrete_gaussian_by_sum(sigma: float, distance: int, epsilon: float) -> None:
    z = np.arange(-400, 401)
    p = np.exp(-(z**2) / (2 * sigma**2))
    p /= p.sum()
    q = np.exp(-((z - distance) ** 2) / (2 * sigma**2))
    q /= q.sum()
    value = pairs.discrete_gaussian(Fraction(repr(sigma)) ** 2, distance, epsilon)
    assert value == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-9, abs=1e-13)
    assert value <= gaussian.delta(_group_mu(sigma, distance), epsilon) * (1 + 1e-12)


def _group_mu(sigma: float, distance: int) -> float:
    from snugdp.accounting import discrete

    return discrete.discrete_gaussian_mu(sigma, distance)


def test_discrete_gaussian_agrees_with_dp_accounting() -> None:
    for sigma in (1.5, 4.0):
        loss = DiscreteGaussianPrivacyLoss(sigma)
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            reference = loss.get_delta_for_epsilon(epsilon)
            assert pairs.discrete_gaussian(Fraction(repr(sigma)) ** 2, 1, epsilon) == pytest.approx(reference, rel=1e-6)


def test_discrete_gaussian_of_large_variance_is_continued_safely() -> None:
    below, above = (pairs.discrete_gaussian(v, 1000, 1) for v in (10**6, 10**6 + 1))
    assert above == pytest.approx(below, rel=1e-5)
    assert pairs.discrete_gaussian(10**20, 10**10, 1) == pytest.approx(gaussian.delta(1, 1), rel=1e-12)
    assert pairs.discrete_gaussian(4, 0, 1) == 0


def test_bad_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="variance must be above 0"):
        pairs.gaussian_pair(0, 0, 1)
    with pytest.raises(ValueError, match="variance must be above 0"):
        pairs.discrete_gaussian(-1, 1, 1)
    with pytest.raises(ValueError, match="both probabilities"):
        pairs.two_outcomes("1.1", "0.5", 1)
    with pytest.raises(ValueError, match="loss must be at least 0"):
        pairs.laplace(-1, 1)
