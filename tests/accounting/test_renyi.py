"""Renyi curves by quadrature and optimisation; the conversion attacked with random pairs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from snugdp.accounting import gaussian, renyi
from tests.effort import often, repeated

from .hockey import Array, hockey_stick, pure_pair

orders = st.floats(1.05, 60)


def _divergence(p: Array, q: Array, alpha: float) -> float:
    return float(np.log((p**alpha * q ** (1 - alpha)).sum()) / (alpha - 1))


@pytest.mark.parametrize("alpha", [1.1, 2.0, 7.5, 30.0])
@pytest.mark.parametrize("loss", [0.1, 1.0, 3.0])
def test_laplace_by_quadrature(alpha: float, loss: float) -> None:
    def integrand(x: float) -> float:
        return math.exp(-alpha * abs(x) - (1 - alpha) * abs(x - loss)) / 2

    pieces = ((-60, 0), (0, loss), (loss, loss + 60))
    integral = sum(quad(integrand, low, high, epsabs=0, epsrel=1e-12)[0] for low, high in pieces)
    assert renyi.laplace(alpha, loss) == pytest.approx(math.log(integral) / (alpha - 1), rel=1e-8)


@repeated
@settings(max_examples=often(13, 40), deadline=None)
@given(orders, st.floats(0.01, 5), st.integers(0, 10**6))
def test_pure_curve_is_never_exceeded(alpha: float, epsilon: float, seed: int) -> None:
    p, q = pure_pair(np.random.default_rng(seed), epsilon, 5)
    bound = renyi.pure(alpha, epsilon)
    assert _divergence(p, q, alpha) <= bound * (1 + 1e-9) + 1e-12
    assert bound <= epsilon * (1 + 1e-12)
    w = math.exp(epsilon)
    coin = np.array([w, 1]) / (1 + w)
    assert bound == pytest.approx(_divergence(coin, coin[::-1], alpha), rel=1e-7)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(1.05, 40), st.floats(0.001, 0.5), st.floats(0.5, 30))
def test_smooth_gaussian_is_the_worst_ratio(alpha: float, beta: float, sigma: float) -> None:
    value = renyi.smooth_gaussian(alpha, beta, sigma)
    if alpha * -math.expm1(-2 * beta) >= 1:
        assert value == math.inf
        return
    r = np.exp(np.linspace(-beta, beta, 2001))
    c = 1 - alpha + alpha * r**2
    each = alpha * np.minimum(1, r) ** 2 / (2 * sigma**2 * c) + (np.log(c) - 2 * alpha * np.log(r)) / (2 * (1 - alpha))
    assert value == pytest.approx(each.max(), rel=1e-7, abs=1e-13)


def test_smooth_gaussian_by_quadrature() -> None:
    alpha, beta, sigma = 5.0, 0.05, 2.0
    s = math.exp(-beta)  # the neighbour's scale relative to ours, and the shift it allows
    x = np.linspace(-60, 60, 400_001)
    log_p, log_q = -((x / sigma) ** 2) / 2, -(((x - s) / (sigma * s)) ** 2) / 2 - math.log(s)
    integrand = np.exp(alpha * log_p + (1 - alpha) * log_q) / (sigma * math.sqrt(2 * math.pi))
    exact = math.log(integrand.sum() * (x[1] - x[0])) / (alpha - 1)
    assert renyi.smooth_gaussian(alpha, beta, sigma) == pytest.approx(exact, rel=1e-9)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(orders, st.integers(0, 10**6), st.floats(-1, 5))
def test_conversion_is_never_exceeded(alpha: float, seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(6)) * rng.uniform(0.5, 1), rng.dirichlet(np.ones(6))
    rho = max(0.0, _divergence(p, q, alpha))
    assert hockey_stick(p, q, epsilon) <= renyi.delta(alpha, rho, epsilon) * (1 + 1e-9)


def test_conversion_is_reached() -> None:
    """The extremal sub-probability: all of its ratio at alpha/(alpha-1) exp(epsilon)."""
    alpha, epsilon = 4.0, 1.0
    x = alpha / (alpha - 1) * math.exp(epsilon)
    p, q = np.array([0.2 * x, 0.0]), np.array([0.2, 0.8])
    rho = math.log(0.2 * x**alpha) / (alpha - 1)
    assert hockey_stick(p, q, epsilon) == pytest.approx(renyi.delta(alpha, rho, epsilon), rel=1e-12)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(orders, st.floats(0, 5), st.floats(-15, -0.1).map(lambda x: 10.0**x))
def test_the_two_conversions_are_inverse(alpha: float, rho: float, delta: float) -> None:
    level = renyi.epsilon(alpha, rho, delta)
    if level > 0:
        assert renyi.delta(alpha, rho, level) == pytest.approx(delta, rel=1e-9)
    else:
        assert renyi.delta(alpha, rho, 0) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_best_order_agrees_with_dp_accounting(mu: float) -> None:
    grid = [float(order) for order in renyi.ORDERS]
    curve = [order * mu**2 / 2 for order in grid]
    ours = renyi.best_epsilon(lambda a: renyi.gaussian(a, mu), "1e-6")
    theirs, _ = rdp_privacy_accountant.compute_epsilon(np.array(grid), np.array(curve), 1e-6)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert gaussian.epsilon(mu, "1e-6") <= ours <= 1.2 * gaussian.epsilon(mu, "1e-6")
    assert gaussian.delta(mu, 3) <= renyi.best_delta(lambda a: renyi.gaussian(a, mu), 3)


def test_compose_adds() -> None:
    total = renyi.compose(lambda a: renyi.gaussian(a, 1), lambda a: renyi.pure(a, "0.5"), lambda a: renyi.laplace(a, 1))
    order = Fraction(5, 2)
    parts = renyi.gaussian(order, 1), renyi.pure(order, "0.5"), renyi.laplace(order, 1)
    assert total(order) == pytest.approx(sum(parts), rel=1e-15)
    assert Fraction(total(order)) >= sum(Fraction(repr(x)) for x in parts)
    assert renyi.compose(lambda _: math.inf, lambda a: renyi.gaussian(a, 1))(order) == math.inf
    assert renyi.best_epsilon(lambda _: math.inf, "1e-6") == math.inf
    assert renyi.best_delta(lambda _: math.inf, 1) == 1.0


def test_tested_release_adds_the_failure() -> None:
    plain = renyi.delta(8, "0.75", 2)
    assert renyi.tested_delta(8, "0.5", "0.25", 0, 2) == plain
    assert renyi.tested_delta(8, "0.5", "0.25", "1e-3", 2) == pytest.approx(plain + 1e-3, rel=1e-13)


def test_tested_release_is_never_exceeded() -> None:
    """Random tests and mechanisms on two data sets; the first passes rarely when its divergence is too large."""
    rng = np.random.default_rng(3)
    alpha, limit, failure, closest = 3.0, 0.4, 0.05, 0.0
    for _ in range(400):
        t, t2 = pure_pair(rng, 0.6, 2)
        m, m2 = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        good = _divergence(m, m2, alpha) <= limit
        if not good:
            t = np.array([1 - failure, failure]) if rng.random() < 0.5 else np.array([1.0, 0.0])
            t2 = np.array([1 - failure, failure])
        p, q = np.append(t[1] * m, t[0]), np.append(t2[1] * m2, t2[0])
        release = max(0.0, _divergence(np.clip(t, 1e-300, 1), t2, alpha))
        for epsilon in (0.0, 0.2, 1.0):
            bound = renyi.tested_delta(alpha, limit, release, failure, epsilon)
            exact = hockey_stick(p, q, epsilon)
            assert exact <= bound * (1 + 1e-9)
            closest = max(closest, exact / bound)
    assert closest > 0.2


def test_bad_orders_are_refused() -> None:
    for alpha in (1, "0.5", -2):
        with pytest.raises(ValueError, match="must be above 1"):
            renyi.gaussian(alpha, 1)
    with pytest.raises(ValueError, match="sigma must be above 0"):
        renyi.smooth_gaussian(2, "0.1", 0)
    assert renyi.epsilon(2, 1, 0) == math.inf
