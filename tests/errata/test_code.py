"""Arithmetic evidence for C1..C13: statements about public code, as read; the code itself is not run here."""

import math

import numpy as np
import pytest
from scipy import special

from tests.mechanisms.noisy_votes import largest_loss, log_probabilities

from .numerics import Array, gnss_rdp, normal_pair_delta, phi_cdf, phi_inv, renyi, root, theorem6


def test_c1_fixed_order_puts_a_floor_under_the_curve() -> None:
    delta = 1e-5
    assert math.log(2 / delta) / (22 - 1) == pytest.approx(0.58124, abs=5e-6)
    assert math.log(2 / delta) / (100 - 1) < 0.13  # what a free order would allow


def test_c2_margin_without_the_factor_two() -> None:
    delta2 = 5e-6
    failure = phi_cdf(-math.sqrt(math.log(2 / delta2)))
    assert failure == pytest.approx(1.64e-4, rel=5e-3)
    assert failure / (delta2 / 2) == pytest.approx(65.7, abs=0.1)
    assert phi_cdf(-math.sqrt(2 * math.log(2 / delta2))) <= delta2 / 2
    assert phi_cdf(-phi_inv(1 - delta2 / 2)) <= delta2 / 2 * (1 + 1e-9)


def _smoothness(sigma: float, alpha: float) -> tuple[float, float]:
    """Largest |log SS/SS'|/beta, two classes, 400 votes: moves towards the tie only, and all moves."""
    beta, cap = 0.2 / alpha, alpha / sigma**2
    gaps = np.arange(0, 401, 2)
    loss = np.full(gaps.size, cap)
    for i in range(gaps.size - 1, -1, -1):
        lq = min(float(special.log_ndtr(-gaps[i] / (math.sqrt(2) * sigma))), math.log(0.5))
        value = theorem6(lq, sigma, alpha)
        if value is None or value >= cap:
            break
        loss[i] = value
    flat = int(np.sum(loss == cap))
    low = np.append(loss[1:], 0.0)
    high = np.concatenate(([loss[0]], loss[:-1]))
    local = np.maximum(high - loss, loss - low)

    def published(i: int) -> float:
        if i >= flat:
            return max(math.exp(-beta * d) * float(local[i - d]) for d in range(i + 1))
        return max(math.exp(-beta * d) * float(local[i + d]) for d in range(flat + 1 - i))

    def enveloped(i: int) -> float:
        return float(np.max(np.exp(-beta * np.abs(np.arange(gaps.size) - i)) * local))

    def steepest(values: Array) -> float:
        return float(np.max(np.abs(np.diff(np.log(values))))) / beta

    n = gaps.size
    return steepest(np.array([published(i) for i in range(n)])), steepest(np.array([enveloped(i) for i in range(n)]))


def test_c3_conditions_checked_at_another_noise_level() -> None:
    assert _smoothness(40.0, 22.0)[0] <= 1 + 1e-9  # where the conditions were checked
    assert _smoothness(13.79, 22.0)[0] > 10  # where the noise was used


def test_c4_doubled_votes_quadruple_the_loss() -> None:
    sigma, alpha = 20.0, 8.0
    one, two = math.sqrt(2), 2 * math.sqrt(2)  # L2 shift of one and of two moved votes
    assert (alpha * two**2 / (2 * sigma**2)) / (alpha * one**2 / (2 * sigma**2)) == pytest.approx(4.0)
    votes = [52, 48]
    single = largest_loss(votes, sigma, alpha)[0]
    base = log_probabilities(votes, sigma)
    double = max(renyi(base, log_probabilities(v, sigma), alpha) for v in ([50, 50], [54, 46]))
    assert double / single == pytest.approx(3.86, abs=5e-3)


def test_c5_low_consensus_range() -> None:
    low, high = 2 * 120, 2 * 170
    assert (low, high) == (240, 340)
    assert low > 150  # no query of the experiment satisfies the announced "below 150"


def test_c6_parameters_tuned_on_private_votes() -> None:
    # a scale chosen by looking at the data (1 on X, 2 on X') is itself a release
    assert normal_pair_delta(0.0, 2.0, 0.0, 1.0, 1.0) == pytest.approx(0.1967, abs=5e-5)
    assert normal_pair_delta(0.0, 1.0, 0.0, 1.0, 1.0) == 0.0


def test_c7_halved_standard_deviation() -> None:
    assert 2 * phi_cdf(0.5) - 1 == pytest.approx(0.383, abs=5e-4)
    assert 2 * phi_cdf(1.0) - 1 == pytest.approx(0.683, abs=5e-4)


def _published_gnss(alpha: float, beta: float, s: float) -> float:
    return alpha * math.exp(2 * beta) / s**2 + (beta * alpha - 0.5 * math.log(1 - 2 * alpha * beta)) / (alpha - 1)


def test_c8_smooth_sensitivity_formula_below_the_truth() -> None:
    for product, s, true, formula in ((0.49, 9.8, 2.692, 0.356), (0.45, 15.0, 0.427, 0.178)):
        beta = product / 22
        assert gnss_rdp(22.0, beta, s) == pytest.approx(true, abs=5e-4)
        assert _published_gnss(22.0, beta, s) == pytest.approx(formula, abs=5e-4)
        # the larger value is attained: closed form of two normals, SS' = e^-beta SS
        r = math.exp(-beta)
        c = 1 - 22 + 22 * r**2
        attained = 22 * r**2 / (2 * s**2 * c) + (math.log(c) - 2 * 22 * math.log(r)) / (2 * (1 - 22))
        assert attained == pytest.approx(true, abs=5e-4)
    crossings = {(22, 3): 0.268, (22, 10): 0.293, (22, 15): 0.325, (22, 30): 0.421}
    crossings |= {(43, 3): 0.258, (43, 10): 0.265, (43, 15): 0.273, (43, 30): 0.318}
    for (alpha, s), expected in crossings.items():
        found = root(
            lambda x, a=alpha, t=s: gnss_rdp(a, x / a, t) - _published_gnss(a, x / a, t),  # type: ignore[misc]
            0.1,
            0.49,
        )
        assert found == pytest.approx(expected, abs=5.1e-4)


def test_c9_smooth_sensitivity_is_not_smooth() -> None:
    for sigma, alpha, expected in ((13.79, 22.0, 13.9), (30.29, 42.96, 10.6), (20.98, 22.0, 2.30)):
        published, enveloped = _smoothness(sigma, alpha)
        assert published == pytest.approx(expected, rel=5e-3)
        assert enveloped <= 1 + 1e-9


def test_c10_log_of_a_sum_loses_small_values() -> None:
    x, y = math.log1p(-1e-20), math.log(2e-20)
    top = max(x, y)
    plain = top + math.log(math.exp(x - top) + math.exp(y - top))
    assert plain <= 0  # a "loss" that is not even positive
    stable = math.log1p(math.expm1(x) + math.exp(y))
    assert stable == pytest.approx(1e-20)


def test_c11_logarithm_of_an_underflow() -> None:
    z = -400 / (math.sqrt(2) * 7)
    assert phi_cdf(z) == 0.0
    with pytest.raises(ValueError):
        math.log(phi_cdf(z))
    assert float(special.log_ndtr(z)) == pytest.approx(-820.9, abs=0.05)


def test_c12_expected_cost_is_no_bound() -> None:
    votes, sigma, sigma_t, threshold, alpha = [60, 40], 3.0, 20.0, 60.0, 20.0

    def joint(v: list[int]) -> Array:
        p = phi_cdf((max(v) - threshold) / sigma_t)
        return np.append(log_probabilities(v, sigma) + math.log(p), math.log1p(-p))

    exact = max(renyi(joint(votes), joint(v), alpha) for v in ([59, 41], [61, 39]))
    answered = phi_cdf((60 - threshold) / sigma_t)
    expected_cost = alpha / (2 * sigma_t**2) + answered * largest_loss(votes, sigma, alpha)[0]
    assert exact == pytest.approx(1.630, abs=5e-3)
    assert expected_cost == pytest.approx(0.878, abs=5e-3)
    # joint bound: worst of the three possible moves of the largest count
    loss = largest_loss(votes, sigma, alpha)[0]
    bound = 0.0
    for top in (59, 60, 61):
        q = phi_cdf((top - threshold) / sigma_t)
        moment = (1 - answered) ** alpha * (1 - q) ** (1 - alpha)
        moment += answered**alpha * q ** (1 - alpha) * math.exp((alpha - 1) * loss)
        bound = max(bound, math.log(moment) / (alpha - 1))
    assert exact <= bound


def test_c13_adaptive_posterior_sampling_code() -> None:
    delta = 1e-6
    assert phi_cdf(-math.sqrt(math.log(6 / delta))) == pytest.approx(3.9e-5, rel=5e-3)
    assert phi_cdf(-math.sqrt(math.log(6 / delta))) > 30 * delta
    # norm cap sqrt(2 sqrt(n)/(lam + lambda_min)) on 1000 rows (1, 1), lam = 10
    cap, norm = math.sqrt(2 * math.sqrt(1000) / 1010), 1000 / 1010
    assert cap == pytest.approx(0.25, abs=5e-4)
    assert norm == pytest.approx(0.990, abs=5e-4)
    assert norm > cap
