"""Evidence for the errata T1..T8 (PATE)."""

import math

import numpy as np
import pytest
from scipy import special

from tests.mechanisms.noisy_votes import largest_loss

from .numerics import cks, gnss_rdp, laplace_tail, log_q, phi_cdf, phi_inv, theorem6


def test_t1_restated_theorem_mixes_the_two_noise_levels() -> None:
    votes, sigma = [208, 192], 1.5
    lq = log_q(votes, sigma)
    for alpha, literal, corrected, exact in ((1.05, 1.20e-12, 2.62e-11, 2.04e-11), (1.5, 3.34e-12, 2.83e-11, 2.05e-11)):
        assert theorem6(lq, sigma, alpha, sigma2=15.0, check=False) == pytest.approx(literal, rel=5e-3)
        assert theorem6(lq, sigma, alpha) == pytest.approx(corrected, rel=5e-3)
        assert largest_loss(votes, sigma, alpha)[0] == pytest.approx(exact, rel=5e-3)
        assert literal < exact < corrected
    # in the other direction (sigma_1 = 48.6, sigma_2 = 15) the misprint is loose by 3.6
    lq = log_q([250, 100, 50, 0, 0, 0, 0, 0, 0, 0], 48.5693)
    literal_value, value = theorem6(lq, 48.5693, 8.0, sigma2=15.0), theorem6(lq, 48.5693, 8.0)
    assert literal_value is not None
    assert value is not None
    assert literal_value / value == pytest.approx(3.60, abs=5e-3)
    # missing condition mu_2 > 1: ten equal votes, sigma = 2: a negative number is raised to the power mu_2
    mu2 = 2.0 * math.sqrt(-math.log(0.9))
    assert mu2 == pytest.approx(0.649, abs=5e-4)
    assert (mu2 + 1) / mu2 * mu2 / (mu2 - 1) == pytest.approx(-4.70, abs=5e-3)
    # with sigma_1 in eps_2, -log q > eps_2 is the same condition as mu_2 > 1
    for s in (0.5, 2.0, 10.0):
        for minus_log_q in np.geomspace(1e-3, 50, 200):
            m = s * math.sqrt(minus_log_q)
            assert (minus_log_q > m / s**2) == (m > 1)


def test_t2_theorem_is_one_sided() -> None:
    for votes, sigma, alpha, bound, forward, reverse in (
        ([110, 90], 3.0, 4.0, 9.170e-4, 5.772e-4, 2.746e-3),
        ([130, 70], 3.0, 16.0, 4.185e-2, 1.444e-2, 1.332e-1),
    ):
        assert theorem6(log_q(votes, sigma), sigma, alpha) == pytest.approx(bound, rel=1e-3)
        assert largest_loss(votes, sigma, alpha) == pytest.approx((forward, reverse), rel=1e-3)
        assert forward <= bound < reverse


def test_t3_informal_theorem_needs_a_bound_on_the_order() -> None:
    votes, sigma = [300, 200, 100], 10.0
    exact = largest_loss(votes, sigma, 50.0)[0]
    claimed = math.exp(-2 * 50 / sigma**2) / 50
    assert exact == pytest.approx(0.460, abs=5e-4)
    assert claimed == pytest.approx(0.00736, abs=5e-6)
    # at the order (n_1 - n_2)/4 it holds
    assert largest_loss(votes, sigma, 25.0)[0] == pytest.approx(0.00167, abs=5e-6)
    assert math.exp(-2 * 25 / sigma**2) / 25 == pytest.approx(0.0243, abs=5e-5)
    # and the full theorem covers order 50
    full = theorem6(log_q(votes, sigma), sigma, 50.0)
    assert full == pytest.approx(0.497, abs=5e-4)


def _gaussian_renyi(m: float, s1: float, s2: float, alpha: float) -> float:
    """Order-alpha divergence of N(0,s1^2) from N(m,s2^2), by quadrature."""
    x = np.linspace(-30 * s1 * alpha**0.5, 30 * s1 * alpha**0.5, 400_001)
    lp = -(x**2) / (2 * s1**2) - math.log(s1)
    lq = -((x - m) ** 2) / (2 * s2**2) - math.log(s2)
    total = float(special.logsumexp(alpha * lp + (1 - alpha) * lq)) + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
    return total / (alpha - 1)


def test_t4_smooth_sensitivity_release_costs_more_above_its_order() -> None:
    sigma, order = 15.0, 42.96
    beta = 0.2 / order
    assert 1 / (2 * beta) == pytest.approx(107.4)  # the range the lemma allows
    for alpha, value, claim in ((60.0, 0.2997, 0.2711), (80.0, 0.6850, 0.3600)):
        exact = gnss_rdp(alpha, beta, sigma)
        assert exact == pytest.approx(value, abs=5e-5)
        assert (alpha + 1) / sigma**2 == pytest.approx(claim, abs=5e-5)
        # attained: SS = 1, SS' = e^-beta, f - f' = e^-beta
        r = math.exp(-beta)
        assert _gaussian_renyi(r, sigma, sigma * r, alpha) == pytest.approx(exact, rel=1e-6)
        # the statement of the lemma, with the release of log SS
        assert exact + alpha / (2 * sigma**2) > (3 * alpha + 2) / (2 * sigma**2)
    assert gnss_rdp(order, beta, sigma) == pytest.approx(0.1584, abs=5e-5)
    assert gnss_rdp(order, beta, sigma) < (order + 1) / sigma**2


def test_t5_total_probability_without_weights() -> None:
    # A independent fair coins: Pr[A] = 1/2, the printed sum of conditional probabilities is 1
    given_e = given_not_e = 0.5
    weight = 0.25
    assert weight * given_e + (1 - weight) * given_not_e == 0.5
    assert given_e + given_not_e == 1.0
    delta2 = 5e-6
    tight, printed = phi_inv(1 - delta2 / 2), math.sqrt(2 * math.log(2 / delta2))
    assert tight == pytest.approx(4.565, abs=5e-4)
    assert printed == pytest.approx(5.079, abs=5e-4)
    # the conclusion holds with either margin: two tails of delta_2/2
    assert 2 * phi_cdf(-printed) <= 2 * phi_cdf(-tight) <= delta2 * (1 + 1e-9)


def test_t6_stated_delta_holds_by_a_single_conversion() -> None:
    delta = 1e-5
    assert 3 * delta / 2 == pytest.approx(1.5 * delta)
    eps_hat, eps_prime = 1.0, 1.0
    alpha = 2 * math.log(2 / delta) / eps_hat + 1
    sigma_s = math.sqrt((3 * alpha + 2) / eps_hat)
    beta = 0.2 / alpha
    tau = eps_prime - math.log(2 / delta) / (alpha - 1)  # tested RDP level
    test_rdp = gnss_rdp(alpha, beta, sigma_s) + alpha / (2 * sigma_s**2)
    assert test_rdp <= (3 * alpha + 2) / (2 * sigma_s**2) == pytest.approx(eps_hat / 2)
    total = tau + test_rdp + cks(alpha, delta / 2)
    assert total <= eps_prime + eps_hat / 2
    assert total == pytest.approx(1.257, abs=5e-4)
    for eps_hat in (0.1, 0.5, 2.0, 5.0, 10.0):
        alpha = 2 * math.log(2 / delta) / eps_hat + 1
        sigma_s = math.sqrt((3 * alpha + 2) / eps_hat)
        assert gnss_rdp(alpha, 0.2 / alpha, sigma_s) <= (alpha + 1) / sigma_s**2


def test_t7_circular_smooth_sensitivity_and_swapped_test() -> None:
    # Line 5 asks for the sensitivity of the upper bound, which contains sigma_s k e^mu with e^mu ~ SS itself:
    # S = LS + sigma_s k (e^beta - 1) S.
    k, sigma_s = math.sqrt(2 * math.log(2 / 5e-6)), 15.0
    factors = {order: sigma_s * k * math.expm1(0.2 / order) for order in (42.96, 22.0, 10.0)}
    assert factors[42.96] == pytest.approx(0.3555, abs=5e-4)
    assert 1 / (1 - factors[42.96]) == pytest.approx(1.552, abs=5e-3)  # literal over intended sensitivity
    assert factors[10.0] > 1  # no solution at all
    # 0/1 swapped: the printed test runs on bad data with probability 1 - delta/2
    assert 1 - laplace_tail(math.log(1e6), 1.0) > 0.999999


def test_t8_number_of_queries_in_the_figure() -> None:
    sigma, delta = 13.7858, 1e-5

    def formula(queries: int) -> float:
        return 2 * math.sqrt(queries * math.log(1 / delta)) / sigma + queries / sigma**2

    assert formula(100) == pytest.approx(5.4487, abs=5e-5)  # the published value
    assert formula(200) == pytest.approx(8.014, abs=5e-4)  # what the caption announces
