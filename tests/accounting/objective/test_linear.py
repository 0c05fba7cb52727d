"""Objective perturbation against its exact law on neighbours: no claim is exceeded, and none can be lowered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from snugdp.accounting import gaussian
from snugdp.accounting.objective import linear
from snugdp.accounting.objective.run import RunCost, critical_loss, log_det, smallest_ridge, within
from snugdp.numerics.rationals import Real, rational
from tests.accounting.atoms import add_profile, composed, exact, remove_profile
from tests.accounting.hockey import NODES, WEIGHTS
from tests.accounting.objective.perturbed import CLASS_T, LEEWAY, Array, Law, deltas, loss, nobody, random_pair, slopes
from tests.effort import often, repeated, sampled

Rows = tuple[Array, Array]


def largest(epsilon: float, m: float, kappa: float, kind: str = "logcosh") -> float:
    """The largest delta over single rows that go, at various targets."""
    empty = nobody(kind, m, kappa)
    return max(deltas(empty.more(1.0, float(y)), empty, [epsilon], 150)[0] for y in np.arange(0, 40, 1.0))


def kappa_limit(
    epsilon: Real, delta: Real, m: Sequence[Real], mu: Real = 0, weights: Sequence[Real] = (1, 1, 1)
) -> Fraction:
    squares = [rational(value, "m") ** 2 for value in m]
    parts = [rational(weight, "weight") for weight in weights[: len(m)]]
    budget = rational(epsilon, "epsilon"), rational(delta, "delta")
    return linear.largest_kappa(*budget, squares, parts, rational(mu, "mu") ** 2)


def kappa_alone(epsilon: Real, m: float | Fraction) -> Fraction:
    """The largest kappa of one run on its own (linear.proof.md, Corollary 1)."""
    level = rational(epsilon, "epsilon")
    return min(level, level / 2 + Fraction(m) ** 2 / 4)


# --- the theorem, against exact laws ---


@sampled(3)
@repeated
@pytest.mark.parametrize("kind", [*CLASS_T, "huber"])
def test_random_neighbours_stay_within_the_calibration(kind: str) -> None:
    rng = np.random.default_rng(CLASS_T.index(kind) if kind in CLASS_T else 2)
    for _ in range(often(8, 24, 45)):
        epsilon, delta = float(np.exp(rng.uniform(np.log(0.1), np.log(8)))), float(10 ** rng.uniform(-9, -2))
        if kind == "huber":
            kappa = float(np.expm1(epsilon) * rng.uniform(0.01, 0.9))
            m = linear.calibrate_general(epsilon, delta, [kappa])
        else:
            m = linear.calibrate(epsilon, delta)
            kappa = float(kappa_alone(epsilon, m)) * float(rng.choice([1, 1, rng.uniform(0.01, 1)]))
        one, other = random_pair(rng, kind, m, kappa)
        for p, q in ((one, other), (other, one)):
            assert deltas(p, q, [epsilon])[0] <= delta * LEEWAY


@repeated
@pytest.mark.parametrize("kind", [*CLASS_T, "huber"])
def test_random_neighbours_stay_below_the_whole_curve(kind: str) -> None:
    rng = np.random.default_rng(10 + len(kind))
    for _ in range(often(4, 16)):
        m, kappa = float(rng.uniform(0.05, 1.5)), float(np.exp(rng.uniform(-4, 1)))
        one, other = random_pair(rng, kind, m, kappa)
        levels = [-1.0, -0.1, 0.0, *(kappa * rng.uniform(0, 4, 4) + m * rng.uniform(0, 4, 4)).tolist()]
        limit = float(critical_loss("class_t", Fraction(m) ** 2, Fraction(kappa)))
        beta = float(log_det(Fraction(kappa)))
        for level, add, remove in zip(levels, deltas(one, other, levels), deltas(other, one, levels), strict=True):
            slack = 1e-12 + (LEEWAY - 1)
            assert add <= add_profile(m, level) + slack
            assert remove <= remove_profile(m, 0, beta, level) + slack
            if kind in CLASS_T:
                assert remove <= remove_profile(m, limit, 0, level) + slack


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (1.0, 1e-6), (4.0, 1e-6), (8.0, 1e-2)])
def test_nobody_against_one_row_reaches_the_claim_and_breaks_a_lower_one(epsilon: float, delta: float) -> None:
    m = linear.calibrate(epsilon, delta)
    kappa = float(kappa_alone(epsilon, m))
    assert kappa == pytest.approx(float(kappa_limit(epsilon, delta, [m])), rel=1e-12)
    empty = nobody("logcosh", m, kappa)
    reached = deltas(empty, empty.more(1.0, 0.0), [epsilon])[0]
    assert 0.999 * delta <= reached <= delta * LEEWAY
    less_noise = nobody("logcosh", m / 0.95, kappa)
    assert deltas(less_noise, less_noise.more(1.0, 0.0), [epsilon])[0] > 1.9 * delta
    without_factor_2 = nobody("logcosh", gaussian.mu(epsilon, delta), kappa)
    assert deltas(without_factor_2, without_factor_2.more(1.0, 0.0), [epsilon])[0] > 1.9 * delta


@pytest.mark.slow
@sampled(4)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (0.5, 1e-9), (1.0, 1e-6)])
def test_a_ridge_below_the_limit_breaks_the_claim(epsilon: float, delta: float) -> None:
    m = linear.calibrate(epsilon, delta)
    kappa = float(kappa_alone(epsilon, m))
    assert largest(epsilon, m, kappa) <= delta * LEEWAY
    assert largest(epsilon, m, 2.2 * kappa) > 2 * delta
    assert largest(epsilon, m, 3 * kappa) > 50 * delta
    m_general = linear.calibrate_general(epsilon, delta, [0.8 * math.expm1(epsilon)])
    assert largest(epsilon, m_general, 0.8 * math.expm1(epsilon)) <= delta * LEEWAY


def test_huber_is_not_of_class_t() -> None:
    """Removing a row where the second derivative jumps costs the determinant at full slope."""
    epsilon, delta = 1.0, 1e-6
    m = linear.calibrate(epsilon, delta)
    empty = nobody("huber", m, float(kappa_alone(epsilon, m)))
    assert largest(epsilon, empty.tau / empty.sigma, 1 / empty.ridge, "huber") > 10 * delta


@sampled(3)
@repeated
@pytest.mark.parametrize("kind", [*CLASS_T, "huber"])
def test_two_coefficients_by_quadrature(kind: str) -> None:
    rng, epsilon, delta = np.random.default_rng(3), 1.0, 1e-3
    for case in range(often(1, 3)):
        kappa = 0.4
        m = linear.calibrate_general(epsilon, delta, [kappa]) if kind == "huber" else linear.calibrate(epsilon, delta)
        X, y = rng.standard_normal((3, 2)), rng.standard_normal(3)
        X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        X[-1], y[-1] = (np.array([1.0, 0.0]), 0.0) if case == 0 else (X[-1], y[-1])
        for held, gone in (((X[:-1], y[:-1]), (X, y)), ((X, y), (X[:-1], y[:-1]))):
            assert quadrature(kind, held, gone, epsilon, (m, kappa)) <= delta * 1.001
        if case == 0 and kind == "logcosh":
            empty = (X[:0], y[:0])
            assert quadrature(kind, empty, (X[-1:], y[-1:]), epsilon, (m, kappa)) > 0.8 * delta


def quadrature(kind: str, held: Rows, gone: Rows, epsilon: float, at: tuple[float, float]) -> float:
    """E(1 - exp(epsilon - L))_+ over the two-dimensional tilt: solve for every node, then two densities."""
    m, kappa = at
    t = np.linspace(-6, 6, 81)
    weights = np.multiply.outer(*[np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])] * 2).ravel()
    b = np.array(list(product(t, t))) / m
    theta = np.zeros_like(b)
    for _ in range(30):
        gradient, hessian = derivatives(kind, held, theta, kappa)
        step = np.linalg.solve(hessian, (gradient + b)[:, :, None])[:, :, 0]
        theta = theta - step * np.minimum(1, 3 / np.maximum(np.linalg.norm(step, axis=1), 1e-12))[:, None]
    densities = []
    for rows in (held, gone):
        gradient, hessian = derivatives(kind, rows, theta, kappa)
        densities.append(-((gradient * m) ** 2).sum(axis=1) / 2 + np.log(np.linalg.det(hessian)))
    return float((weights * np.maximum(0, -np.expm1(epsilon - (densities[0] - densities[1])))).sum())


def derivatives(kind: str, rows: Rows, theta: Array, kappa: float) -> tuple[Array, Array]:
    X, y = rows
    slope, curve = slopes(kind, y - theta @ X.T)
    hessian = np.einsum("ki,ia,ib->kab", curve, X, X) + np.eye(2) / kappa
    return theta / kappa - slope @ X, hessian


# --- composition ---


@pytest.mark.slow
@sampled(3)
@pytest.mark.parametrize(("epsilon", "delta", "mu"), [(1.0, 1e-6, 0.03), (4.0, 1e-6, 0.2), (0.5, 1e-4, 0.05)])
def test_with_a_gaussian_part(epsilon: float, delta: float, mu: float) -> None:
    """The exact pairs of one row, composed with a Gaussian release by quadrature over its loss."""
    m = linear.calibrate(epsilon, delta, mu=mu)
    kappa = kappa_limit(epsilon, delta, [Fraction(m)], mu=mu)
    assert composed(epsilon, [RunCost(Fraction(m) ** 2, kappa, "class_t").atom], exact(mu) ** 2) <= delta
    z, weights = NODES[20_000:180_000:2000], WEIGHTS[20_000:180_000:2000] * 2000
    empty = nobody("logcosh", m, float(kappa))
    levels = (epsilon - mu**2 / 2 - mu * z).tolist()
    found = [
        float(np.dot(weights, deltas(p, q, levels, 200)))
        for y in (0.0, 6.0)
        for p, q in ((empty, empty.more(1.0, y)), (empty.more(1.0, y), empty))
    ]
    assert 0.97 * delta <= max(found) <= delta * 1.0001


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("target", [0.0, 10.0])
def test_two_runs_one_around_the_other(target: float) -> None:
    """The second run is centred at the outcome of the first: an integral over it, of exact second runs."""
    epsilon, delta, weights = 1.0, 1e-4, [0.3, 0.7]
    total = gaussian.mu(epsilon, delta / 4) * (1 - 1e-12)
    for shrink, holds in ((1.0, True), (0.7, False)):
        m = [total * math.sqrt(weight) / shrink for weight in weights]
        kappa = kappa_limit(epsilon, delta, [size * shrink for size in m], weights=["1/4", 1])
        empty = nobody("logcosh", m[0], float(kappa) / 4)
        somebody = empty.more(1.0, target)
        second = (float(kappa), m[1])
        found = max(in_turn(p, q, epsilon, second) for p, q in ((empty, somebody), (somebody, empty)))
        assert (found <= delta * 1.001) is holds


def in_turn(p: Law, q: Law, epsilon: float, second: tuple[float, float]) -> float:
    t = np.linspace(-6.5, 6.5, 45)
    weights = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])
    points = p.points(t)
    left = (epsilon - loss(p, q, points)).tolist()
    kappa, m = second

    def around(law: Law, point: float) -> Law:
        return replace(law, centre=point, ridge=1 / kappa, tau=0.5, sigma=0.5 / m)

    inner = [
        deltas(around(p, point), around(q, point), [level], 120)[0]
        for point, level in zip(points.tolist(), left, strict=True)
    ]
    return float(np.dot(weights, inner))


def test_without_a_margin_a_gaussian_part_breaks_the_limit() -> None:
    m = Fraction(linear.calibrate(1, 1e-6, mu=0.03))
    alone = kappa_alone(1, m)
    assert kappa_limit(1, 1e-6, [m], mu=0.03) < alone
    assert composed(1.0, [RunCost(m**2, alone, "class_t").atom], exact(0.03) ** 2) > 1e-3


@sampled(4)
@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-2)])
def test_calibration_is_safe_and_tight(runs: int, epsilon: float, delta: float) -> None:
    mu = 0.2 * gaussian.mu(epsilon, delta)
    m = Fraction(linear.calibrate(epsilon, delta, mu=mu, runs=runs))
    small = RunCost(m**2, Fraction(1, 10**9), "class_t")
    assert composed(epsilon, [small.atom] * runs, exact(mu) ** 2) <= delta
    larger = RunCost((m * (1 + Fraction(1, 10**9))) ** 2, Fraction(1, 10**9), "class_t")
    assert composed(epsilon, [larger.atom] * runs, exact(mu) ** 2) > delta
    kappa = kappa_limit(epsilon, delta, [m] * runs, mu=mu)
    for factor, fits in ((1, True), (1 + Fraction(1, 10**6), False)):
        again = [RunCost(m**2, kappa * factor, "class_t")] * runs
        assert within(Fraction(repr(epsilon)), Fraction(repr(delta)), again, Fraction(repr(mu)) ** 2) is fits


def test_runs_of_unequal_size_share_one_limit() -> None:
    limit = kappa_limit(1, 1e-6, ["0.08", "0.2"], mu="0.02", weights=["1/4", 1])
    runs = [RunCost(Fraction(8, 100) ** 2, limit / 4, "class_t"), RunCost(Fraction(1, 25), limit, "class_t")]
    assert within(Fraction(1), Fraction(1, 10**6), runs, Fraction(4, 10**4))
    assert kappa_limit(1, 1e-6, ["0.3"]) == 0  # too little noise for any ridge


def test_general_calibration_is_safe_and_tight() -> None:
    cases: list[tuple[list[float], list[str], str]] = [([0.05], ["1"], "0"), ([0.04, 0.15], ["0.15", "0.83"], "0.02")]
    for kappas, shares, part in cases:
        total = Fraction(linear.calibrate_general(1, 1e-6, kappas, shares=shares, mu_share=part))
        for factor, fits in ((1, True), (1 + Fraction(1, 10**6), False)):
            square = (total * factor) ** 2
            runs = [
                RunCost(Fraction(s) * square, Fraction(repr(k)), "sign_changing")
                for s, k in zip(shares, kappas, strict=True)
            ]
            assert within(Fraction(1), Fraction(1, 10**6), runs, Fraction(part) * square) is fits
    assert linear.calibrate_general(1, 1e-6, [1.8]) == 0


# --- the rest ---


def test_smallest_ridge_is_on_the_safe_side() -> None:
    for square, kappa in ((Fraction(2), Fraction(1, 3)), (Fraction(10**9, 7), Fraction(3, 10**7))):
        ridge = smallest_ridge(square, kappa)
        assert 0 <= kappa - square / ridge <= kappa / 10**8


@pytest.mark.parametrize(
    "call",
    [
        lambda: linear.calibrate(0, 1e-6),
        lambda: linear.calibrate(1, 1),
        lambda: linear.calibrate(1, 1e-6, runs=0),
        lambda: smallest_ridge(Fraction(1), Fraction(0)),
    ],
)
def test_bad_numbers_are_refused(call: object) -> None:
    with pytest.raises(ValueError, match=r"must|no ridge"):
        call()  # type: ignore[operator]
