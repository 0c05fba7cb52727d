"""Evidence for the errata P1..P4 (principal components)."""

import math

import numpy as np
import pytest

from .numerics import Array, gdp_delta, gdp_mu, phi_inv, root

DELTA = 1e-6


def _top(c: Array, k: int = 1) -> tuple[Array, float]:
    """Projector on the k leading eigenvectors and the k-th gap."""
    values, vectors = np.linalg.eigh(c)
    v = vectors[:, -k:]
    return v @ v.T, float(values[-k] - values[-k - 1])


def _tight(gap: float) -> float:
    """Sensitivity of the projector, add/remove."""
    return math.sqrt(2) * math.sin(math.asin(1 / gap) / 2)


def test_p1_implied_sensitivity_is_loose() -> None:
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(1500):
        p = int(rng.integers(2, 6))
        k = int(rng.integers(1, p))
        q, _ = np.linalg.qr(rng.normal(size=(p, p)))
        spectrum = np.sort(rng.uniform(0, 3, p))
        spectrum[-k:] += rng.uniform(1.05, 12)
        c = q @ np.diag(spectrum) @ q.T
        a, b = q[:, -k], q[:, -k - 1]
        x = (a + b) / math.sqrt(2) if rng.random() < 0.5 else q @ rng.dirichlet(np.ones(p)) ** 0.5
        x = x / np.linalg.norm(x)
        proj, gap = _top(c, k)
        if gap <= 1:
            continue
        other, _ = _top(c + np.outer(x, x), k)
        distance = float(np.linalg.norm(proj - other))
        worst = max(worst, distance / _tight(gap))
        assert distance <= _tight(gap) * (1 + 1e-9)
    assert worst > 0.9
    for gap in (10.0, 100.0, 1000.0):
        assert math.sqrt(2) / (gap - 2) / _tight(gap) == pytest.approx(2 * gap / (gap - 2), rel=3e-3)
    assert 1000 * _tight(1000.0) == pytest.approx(0.7071, abs=5e-5)
    assert 1000 * _tight(500.0) == pytest.approx(1.4142, abs=5e-5)  # replace


def test_p2_classical_constant_fails_for_large_eps() -> None:
    # Rows: 1001 times v1 and one more, replaced. The basis is turned by 45 degrees so that the change of the
    # projector lies on the diagonal, where the noise has no slack.
    v1, v2 = np.array([1.0, 1.0]) / math.sqrt(2), np.array([1.0, -1.0]) / math.sqrt(2)
    base = 1001 * np.outer(v1, v1)
    x, z = (v1 - v2) / math.sqrt(2), (v1 + v2) / math.sqrt(2)
    proj, gap = _top(base + np.outer(x, x))
    other, _ = _top(base + np.outer(z, z))
    change = proj - other
    upper = math.sqrt(change[0, 0] ** 2 + change[1, 1] ** 2 + change[0, 1] ** 2)  # what is released
    assert upper == pytest.approx(math.sqrt(2) * math.sin(math.asin(2 / gap) / 2), rel=1e-5)

    def ratio(eps: float) -> float:
        sigma = 2 * math.sqrt(math.log(1.25 / DELTA)) / (eps * (gap - 2))
        return gdp_delta(upper / sigma, eps) / DELTA

    assert ratio(1.0) < 0.01
    assert ratio(8.0) < 1
    assert ratio(10.0) == pytest.approx(1.79, abs=5e-3)
    assert ratio(20.0) == pytest.approx(152.4, abs=0.1)
    # the constant alone: sqrt(2 log(1.25/delta))/eps is false from 8.78 on at delta = 1e-6
    constant = root(lambda e: gdp_delta(e / math.sqrt(2 * math.log(1.25 / DELTA)), e) - DELTA, 1.0, 20.0)
    assert constant == pytest.approx(8.782, abs=1e-3)
    for eps in (1.0, 10.0, 20.0):
        sigma = upper / gdp_mu(eps, DELTA)
        assert gdp_delta(upper / sigma * (1 - 1e-9), eps) <= DELTA


def test_p3_upper_triangle_noise_wastes_root_two() -> None:
    rng = np.random.default_rng(3)
    p = 40
    iid = p + p * (p - 1)  # expected squared Frobenius norm in units of sigma^2
    symmetrised = p + p * (p - 1) / 2
    assert math.sqrt(iid / symmetrised) == pytest.approx(1.397, abs=5e-4)  # to sqrt 2 for large p
    # both give the same worst-case mu: directions of change with unit Frobenius norm
    for _ in range(300):
        m = rng.normal(size=(3, 3))
        m = (m + m.T) / 2
        m /= np.linalg.norm(m)
        diagonal = float(np.sum(np.diag(m) ** 2))
        off = float(np.sum(np.triu(m, 1) ** 2))
        assert math.sqrt(diagonal + off) <= 1 + 1e-12  # iid upper triangle, variance sigma^2
        assert math.sqrt(diagonal + off / 0.5) == pytest.approx(1.0)  # (A+A')/2: exactly isotropic
        assert diagonal + off / 0.25 >= 1 - 1e-12
    swap = np.array([[0.0, 1.0], [1.0, 0.0]]) / math.sqrt(2)
    assert float(np.sum(np.triu(swap, 1) ** 2)) / 0.5 == pytest.approx(1.0)
    assert float(np.sum(np.triu(swap, 1) ** 2)) == pytest.approx(0.5)  # mu smaller by sqrt 2: the waste


def test_p4_choosing_k_needs_no_repeated_runs() -> None:
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(800):
        p = int(rng.integers(2, 8))
        a = rng.normal(size=(int(rng.integers(1, 12)), p))
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        x = rng.normal(size=p)
        x /= np.linalg.norm(x)
        shift = np.linalg.eigvalsh(a.T @ a + np.outer(x, x)) - np.linalg.eigvalsh(a.T @ a)
        assert float(shift.min()) >= -1e-9
        assert float(shift.sum()) == pytest.approx(1.0)
        worst = max(worst, float(np.linalg.norm(shift)))
        assert np.linalg.norm(shift) <= 1 + 1e-9  # the whole spectrum costs as much as one eigenvalue
    assert worst > 0.95
    # margin for certifying ten gaps at once against the fixed-k margin
    fail = DELTA / 10
    ten = math.sqrt(2) * phi_inv(1 - fail / 10)
    one = math.sqrt(1 + 0.3**2) * phi_inv(1 - fail)
    assert ten / one == pytest.approx(1.46, abs=5e-3)
    # a third of eps per run is what selection leaves
    assert gdp_mu(1.0, DELTA) / gdp_mu(1 / 3, 6.6e-21) > 6
