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

from .hockey import Array, from_loss, hockey_stick

levels = st.floats(-5, 8)


@settings(max_examples=80, deadline=None)
@given(st.floats(-3, 3), st.floats(0.1, 5), levels)
def test_gaussian_pair_by_quadrature(mean: float, variance: float, epsilon: float) -> None:
    exact = from_loss(lambda t: (t - mean) ** 2 / (2 * variance) - t**2 / 2 + math.log(variance) / 2, epsilon)
    assert pairs.gaussian_pair(mean, variance, epsilon) == pytest.approx(exact, rel=1e-6, abs=1e-11)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 3), st.floats(0.05, 20), st.floats(-4, 4))
def test_gaussian_pair_is_dual(mean: float, variance: float, epsilon: float) -> None:
    swapped = pairs.gaussian_pair(mean, variance, epsilon, swapped=True)
    dual = -math.expm1(epsilon) + math.exp(epsilon) * pairs.gaussian_pair(mean, variance, -epsilon)
    assert swapped == pytest.approx(dual, abs=1e-13 * math.exp(abs(epsilon)))


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), levels)
def test_two_outcomes_by_sum(p: float, q: float, epsilon: float) -> None:
    exact = hockey_stick(np.array([p, 1 - p]), np.array([q, 1 - q]), epsilon)
    assert pairs.two_outcomes(p, q, epsilon) == pytest.approx(exact, abs=1e-14 * math.exp(abs(epsilon)))
    assert pairs.two_outcomes(p, q, epsilon) >= -math.expm1(min(epsilon, 0))


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 6), st.floats(-8, 8))
def test_laplace_agrees_with_dp_accounting(loss: float, epsilon: float) -> None:
    reference = LaplacePrivacyLoss(1 / loss).get_delta_for_epsilon(epsilon)
    assert pairs.laplace(loss, epsilon) == pytest.approx(reference, abs=1e-12)


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=40, deadline=None)
@given(st.floats(0.02, 2), st.floats(0, 2), st.floats(-3, 5))
def test_objective_profiles_by_quadrature(m: float, limit: float, epsilon: float) -> None:
    assert pairs.objective_add(m, epsilon) == pytest.approx(
        from_loss(lambda t: m * np.abs(t) + m**2 / 2, epsilon), rel=2e-6, abs=1e-10
    )
    assert pairs.objective_remove(m, limit, epsilon) == pytest.approx(
        from_loss(lambda t: np.maximum(m * t + m**2 / 2, limit), epsilon), rel=2e-6, abs=1e-10
    )
    assert pairs.objective_remove_general(m, limit, epsilon) == pytest.approx(
        from_loss(lambda t: limit + np.maximum(m * t + m**2 / 2, 0), epsilon), rel=2e-6, abs=1e-10
    )
    assert pairs.objective_add(m, epsilon) <= min(1, 2 * gaussian.delta(m, epsilon)) * (1 + 1e-12)


def test_objective_constants() -> None:
    assert pairs.objective_limit("0.25", "0.7") == Fraction("1.36875")
    assert pairs.objective_limit(2, "0.7") == Fraction("0.7")
    assert pairs.objective_beta("0.5") >= math.log(1.5)
    assert pairs.objective_beta("0.5") == pytest.approx(math.log(1.5), rel=1e-15)


def _exact_minimiser_profile(m: float, kappa: float, epsilon: float, rows: int) -> tuple[float, float]:
    """One feature, log-cosh loss, y = 0 and x = B = tau = 1: the true density of the minimiser, by quadrature."""
    sigma, ridge = 1 / m, 1 / kappa
    theta = np.linspace(-40 * sigma / ridge, 40 * sigma / ridge, 400_001)

    def law(n: int) -> tuple[Array, Array]:
        b = -(n * np.tanh(theta) + ridge * theta)
        slope = ridge + n * (1 - np.tanh(theta) ** 2)
        return b, slope

    (b0, s0), (b1, s1) = law(rows), law(rows + 1)
    step = theta[1] - theta[0]
    p = np.exp(-(b0**2) / (2 * sigma**2)) * s0 / (sigma * math.sqrt(2 * math.pi)) * step
    q = np.exp(-(b1**2) / (2 * sigma**2)) * s1 / (sigma * math.sqrt(2 * math.pi)) * step
    return hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)


@pytest.mark.parametrize(("m", "kappa"), [(0.3, 0.2), (0.3, 0.5), (1.0, 0.6), (2.0, 1.5)])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_objective_profiles_cover_the_true_minimiser(m: float, kappa: float, rows: int) -> None:
    for epsilon in (-0.5, 0.0, 0.5, 1.0, 2.0):
        add, remove = _exact_minimiser_profile(m, kappa, epsilon, rows)
        limit, beta = pairs.objective_limit(m, kappa), pairs.objective_beta(kappa)
        assert add <= pairs.objective_add(m, epsilon) + 1e-6
        assert remove <= pairs.objective_remove(m, limit, epsilon) + 1e-6
        assert remove <= pairs.objective_remove_general(m, beta, epsilon) + 1e-6


def test_bad_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="variance must be above 0"):
        pairs.gaussian_pair(0, 0, 1)
    with pytest.raises(ValueError, match="variance must be above 0"):
        pairs.discrete_gaussian(-1, 1, 1)
    with pytest.raises(ValueError, match="both probabilities"):
        pairs.two_outcomes("1.1", "0.5", 1)
    with pytest.raises(ValueError, match="loss must be at least 0"):
        pairs.laplace(-1, 1)
