"""Evidence for the errata G1..G9 (generalised linear models)."""

import math

import numpy as np
import pytest
from scipy import special

from .numerics import gdp_delta, gdp_mu, logistic_fit, normal_pair_delta, phi_cdf, root, sigmoid

DELTA = 1e-6


def _curvature(u: float) -> float:
    """Second derivative of the logistic loss."""
    return sigmoid(u) * sigmoid(-u)


def _remark(alpha: float, gamma: float, delta: float) -> float:
    """The printed data-dependent eps for logistic regression."""
    log = math.log(2 / delta)
    return 1.25 / alpha * (1 + log) + gamma / alpha + math.sqrt(gamma / alpha * log)


def test_g1_data_dependent_theorem_is_false() -> None:
    n, lam = 200_000, 1e-3
    positive = round(n * sigmoid(5.0))
    th, h = logistic_fit(positive, n - positive, lam)
    gamma = 0.25 * h
    tt, hh = logistic_fit(positive, n - positive + 1, lam)
    swapped, hs = logistic_fit(positive - 1, n - positive + 1, lam)
    for delta, expected, replaced in ((1e-6, 2.01, 2.32), (1e-10, 90.5, 112.0)):
        eps = _remark(h, gamma, delta)
        s, ss = (gamma * h) ** -0.5, (gamma * hh) ** -0.5
        assert normal_pair_delta(th, s, tt, ss, eps) / delta == pytest.approx(expected, rel=5e-3)
        # replacing one record, the relation of the preliminaries
        value = normal_pair_delta(th, s, swapped, (gamma * hs) ** -0.5, eps) / delta
        assert value == pytest.approx(replaced, rel=5e-3)
    assert _remark(h, gamma, 1e-6) == pytest.approx(2.169, abs=5e-4)
    # the root with the factor two is enough here
    log = math.log(2 / DELTA)
    eps = 1.25 / h * (1 + log) + gamma / h + math.sqrt(2 * gamma / h * log)
    assert normal_pair_delta(th, (gamma * h) ** -0.5, tt, (gamma * hh) ** -0.5, eps) < DELTA


def test_g2_lambda_min_noise_is_too_small() -> None:
    for eps, expected in ((0.5, 1.62), (1.0, 3.66), (2.0, 9.34), (4.0, 30.1)):
        ratio = gdp_delta((eps / 2) / math.sqrt(math.log(4 / DELTA)), eps / 2) / (DELTA / 2)
        assert ratio == pytest.approx(expected, rel=3e-3)
        assert gdp_delta(gdp_mu(eps / 2, DELTA / 2) * (1 - 1e-9), eps / 2) <= DELTA / 2


def test_g3_chi_and_log_determinant() -> None:
    # |theta - theta*|_H sqrt(gamma) is chi with d degrees of freedom
    log = math.log(2 / DELTA)
    tails = [float(special.gammaincc(d / 2, log / 2)) for d in (1, 2, 10, 100)]
    assert tails[0] == pytest.approx(1.395e-4, rel=1e-3)
    assert tails[2] == pytest.approx(0.151, abs=5e-4)
    assert tails[3] == pytest.approx(1.0, abs=1e-9)
    # d = 100 unit rows e_j, theta = 5 everywhere, |v| = 1: the log determinant moves by 9.87, not by R|v| = 1
    d, length = 100, 1.0
    step = length / math.sqrt(d)
    change = d * math.log(_curvature(5.0) / _curvature(5.0 + step))
    assert change == pytest.approx(9.87, abs=5e-3)
    assert change > length
    # the relative change in Frobenius norm is what stays bounded: (e^z - 1)/z R |v|_H / sqrt(alpha), z = R|v|
    lam = 1e-3
    alpha = _curvature(5.0) + lam
    relative = (_curvature(5.0) - _curvature(5.0 + step)) / alpha
    frobenius = math.sqrt(d) * relative
    v_h = length * math.sqrt(alpha)
    assert frobenius <= math.expm1(length) / length * v_h / math.sqrt(alpha)
    assert frobenius < 1.0 < change


def test_g4_strong_convexity_at_the_optimum_only() -> None:
    lam = 0.01
    th, h = logistic_fit(20, 1, lam)
    tt, _ = logistic_fit(20, 0, lam)
    assert 1 / h == pytest.approx(1.011, abs=5e-4)  # L / alpha
    assert tt - th == pytest.approx(2.869, abs=5e-4)
    # repaired displacement bound: mu (1 - e^{-Rt})/R + lam t = G
    mu = h - lam
    bound = root(lambda t: mu * (1 - math.exp(-t)) + lam * t - 1, 0.0, 200.0)
    assert bound == pytest.approx(3.957, abs=5e-4)
    assert tt - th <= bound
    # adding a point of the same kind obeys it too
    for positive, negative in ((20, 2), (21, 1), (19, 1)):
        other, _ = logistic_fit(positive, negative, lam)
        assert abs(other - th) <= bound


def test_g5_no_mean_value_theorem_for_matrices() -> None:
    # two rows e_1, e_2, segment from (0,0) to (4,1): the two diagonal entries ask for different points
    def average(end: float) -> float:
        return (sigmoid(end) - 0.5) / end

    first = root(lambda t: _curvature(t) - average(4.0), 0.0, 4.0) / 4.0
    second = root(lambda t: _curvature(t) - average(1.0), 0.0, 1.0)
    assert first == pytest.approx(0.4535, abs=5e-5)
    assert second == pytest.approx(0.5651, abs=5e-5)
    gap = min(
        max(abs(_curvature(4 * t) - average(4.0)), abs(_curvature(t) - average(1.0))) for t in np.linspace(0, 1, 2001)
    )
    assert gap > 1e-3
    # what is true and enough: the average dominates (1-e^{-z})/z times the Hessian at either end
    z = 4.0
    kappa = (1 - math.exp(-z)) / z
    for end, values in ((4.0, (_curvature(0.0), _curvature(4.0))), (1.0, (_curvature(0.0), _curvature(1.0)))):
        assert all(average(end) >= kappa * value for value in values)


def test_g6_factor_two_of_self_concordance() -> None:
    # f'' = e^{2Ru} has f''' = 2R f'': allowed by the definition; the lemma claims a ratio of at most e^{R|v|}
    r, v = 1.0, 1.0
    ratio = math.exp(2 * r * (0.0 + v)) / math.exp(0.0)
    assert ratio == pytest.approx(7.389, abs=5e-4)
    assert ratio > math.exp(r * v) == pytest.approx(2.718, abs=5e-4)
    # with |l'''| <= R0 l'' the lemma is right: logistic, R0 = 1
    grid = np.linspace(-12, 12, 400)
    curvature = np.array([_curvature(float(u)) for u in grid])
    slopes = np.abs(np.diff(np.log(curvature))) / np.diff(grid)
    assert float(slopes.max()) <= 1.0


def test_g7_terms_lost_on_the_way() -> None:
    alpha, gamma, log = 10.0, 1.0, math.log(2 / DELTA)
    beta = 0.25
    e = math.exp(1 / alpha)
    per_instance = (e - 1 + 4 * beta / alpha) * (1 + log) + e * (gamma / (2 * alpha) + math.sqrt(gamma / alpha * log))
    assert per_instance == pytest.approx(4.568, abs=5e-4)
    assert _remark(alpha, gamma, DELTA) == pytest.approx(3.243, abs=5e-4)  # claimed to follow from it
    # P(|W| <= sqrt(log(2/delta))) <= delta is reversed, and the other tail is 140 delta
    cut = math.sqrt(log)
    assert 2 * phi_cdf(cut) - 1 == pytest.approx(0.99986, abs=5e-6)
    assert 2 * phi_cdf(-cut) / DELTA == pytest.approx(139.5, abs=0.1)
    assert 2 * phi_cdf(-math.sqrt(2 * log)) < DELTA


def test_g8_sensitivity_of_the_smallest_eigenvalue() -> None:
    rng = np.random.default_rng(8)
    worst = 0.0
    for _ in range(700):
        positive, negative = int(10 ** rng.uniform(0, 4)), int(10 ** rng.uniform(-0.5, 4))
        lam = 10 ** rng.uniform(-4, 2)  # no condition lam >= R L
        _, h = logistic_fit(positive, negative, lam)
        for a, b in ((positive + 1, negative), (positive, negative + 1)):
            _, other = logistic_fit(a, b, lam)
            worst = max(worst, abs(h - other))  # both signs
            assert abs(h - other) <= 1.0
    assert worst > 0.97
    _, h = logistic_fit(1e5, 1, 1e-3)
    _, other = logistic_fit(1e5, 2, 1e-3)
    assert other - h == pytest.approx(0.9993, abs=5e-5)
    # the stated constant for logistic regression
    assert 2 * 1 * 1 + 0.25 == 2.25


def test_g9_exact_composition_doubles_the_budget_of_the_release() -> None:
    expected = {0.5: (0.0625, 0.1138), 1.0: (0.1198, 0.2171), 4.0: (0.4352, 0.7693)}
    for eps, (split, composed) in expected.items():
        assert gdp_mu(eps / 2, DELTA / 2) == pytest.approx(split, abs=5e-5)
        total = gdp_mu(eps, 0.9 * DELTA)
        assert math.sqrt(0.85) * total == pytest.approx(composed, abs=5e-5)
        # test (15 % of mu^2), release (85 %) and a failure of delta/10: (eps, delta), not (eps, 2 delta)
        whole = math.hypot(math.sqrt(0.15) * total, math.sqrt(0.85) * total)
        assert 0.1 * DELTA + gdp_delta(whole, eps) <= DELTA * (1 + 1e-9)
