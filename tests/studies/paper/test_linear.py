"""The paper's formulas for regression are what the paper prints, and each fails where ``docs/errata.md`` says so."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from snugdp import Exact, Simulation
from snugdp.accounting import gaussian, pairs
from snugdp.mechanisms.linear.base import Design
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.moments import Moments
from snugdp.tables.rowmap import RowMap
from snugdp_studies.paper import linear
from snugdp_studies.paper.linear import (
    not_private_adaops_lambda_min,
    not_private_adaops_norm_cap,
    not_private_grid,
    not_private_lipschitz_scales,
    not_private_lipschitz_sensitivity,
    not_private_ops_epsilon,
    not_private_ops_gamma,
    not_private_ops_ptr,
    not_private_ops_ptr_selection,
    not_private_release_scales,
    not_private_selection,
)
from tests.errata.numerics import normal_pair_delta, normal_pair_eps, phi_cdf

DELTA = 1e-6


def ridge_fit(ys: list[float], lam: float) -> tuple[float, float]:
    """Solution and Hessian for rows (1, y)."""
    hessian = len(ys) + lam
    return sum(ys) / hessian, hessian


def gamma_for(ys: list[float], lam: float, epsilon: float) -> float:
    theta, hessian = ridge_fit(ys, lam)
    gamma = not_private_ops_gamma(epsilon, 1 + abs(theta), hessian, DELTA)
    assert not_private_ops_epsilon(gamma, 1 + abs(theta), hessian, DELTA) == pytest.approx(epsilon, rel=1e-12)
    return gamma


def laws(ys: list[float], lam: float, gamma: float) -> tuple[float, float]:
    theta, hessian = ridge_fit(ys, lam)
    return theta, (gamma * hessian) ** -0.5


def test_every_public_name_says_that_it_is_not_private() -> None:
    tree = ast.parse(Path(linear.__file__).read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert all(name.startswith(("not_private_", "NotPrivate", "_")) for name in names)


def test_the_sample_formula_is_exceeded_by_one_more_row() -> None:
    ys, lam = [1.0] * 98, 2.0
    gamma = gamma_for(ys, lam, 4.0)
    (one, s), (two, t) = laws(ys, lam, gamma), laws([*ys, -1.0], lam, gamma)
    assert normal_pair_eps(one, s, two, t, DELTA) == pytest.approx(4.54, abs=5e-3)
    assert normal_pair_delta(one, s, two, t, 4.0) == pytest.approx(1.24e-5, rel=5e-3)
    # the library's own, certified, account of the same pair
    assert pairs.gaussian_pair((two - one) / s, (t / s) ** 2, 4) > 12 * DELTA


def test_the_sample_formula_is_exceeded_by_one_row_less() -> None:
    ys, lam = [1.0, -1.0], 0.5
    gamma = gamma_for(ys, lam, 4.0)
    (one, s), (two, t) = laws(ys, lam, gamma), laws(ys[:1], lam, gamma)
    assert normal_pair_eps(two, t, one, s, DELTA) == pytest.approx(9.08, abs=5e-3)


def test_the_sample_formula_mixes_units() -> None:
    """Rows twice as long with lambda four times as large are the same problem; the formula sees another one."""
    gamma, lipschitz, lam_star = 1.0, 2.0, 1.0
    assert not_private_ops_epsilon(gamma, 2 * lipschitz, 4 * lam_star, DELTA, bound=2) != pytest.approx(
        not_private_ops_epsilon(gamma, lipschitz, lam_star, DELTA), rel=1e-3
    )


def test_there_may_be_no_gamma() -> None:
    assert not_private_ops_gamma(0.1, 2.0, 10.0, DELTA) == 0.0
    assert not_private_ops_gamma(4.0, math.inf, 1e3, DELTA) == 0.0


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.5, 0.90), (1.0, 1.91), (2.0, 4.32), (4.0, 11.04), (8.0, 35.6)])
def test_the_noise_of_lambda_min_is_too_small(epsilon: float, ratio: float) -> None:
    mu = 1 / not_private_release_scales(epsilon, DELTA).noise
    assert gaussian.delta(mu, epsilon / 4) / (DELTA / 3) == pytest.approx(ratio, rel=6e-3)


def test_the_margin_of_delta_does_not_cover_its_noise_as_printed() -> None:
    printed, meant = (not_private_lipschitz_scales(1.0, DELTA, 10.0, misprints=literal) for literal in (True, False))
    assert printed.noise / meant.noise == pytest.approx(620, abs=0.5)
    assert printed.margin == meant.margin
    assert phi_cdf(-printed.margin / printed.noise) == pytest.approx(0.4965, abs=5e-5)
    assert phi_cdf(-meant.margin / meant.noise) < DELTA / 2


def test_the_sensitivity_lemma_is_exceeded_by_one_row_less() -> None:
    ys, lam = [1.0, 1.0, -1.0], 1.0
    before, after = (math.log(1 + abs(ridge_fit(rows, lam)[0])) for rows in (ys, ys[:2]))
    assert not_private_lipschitz_sensitivity(4.0) == pytest.approx(0.2231, abs=5e-5)
    assert abs(before - after) == pytest.approx(0.2877, abs=5e-5)


def test_the_stopping_probability_as_printed_is_none() -> None:
    printed, meant = not_private_selection(1, DELTA), not_private_selection(1, DELTA, misprints=False)
    assert printed.tau > 1 > meant.tau > 0
    assert printed.cap == pytest.approx(4.84, abs=5e-3)
    assert meant.cap == pytest.approx(4353, abs=1)
    assert meant.delta == pytest.approx(6.6e-21, rel=5e-3)
    assert 3 * meant.epsilon + 3 * math.sqrt(2 * meant.delta) == pytest.approx(1.0)
    assert math.sqrt(2 * meant.delta) * meant.cap + DELTA / 2 == pytest.approx(DELTA)
    grid = not_private_grid()
    assert len(grid) == 30
    assert grid[0] == pytest.approx(2.5)
    assert grid[-1] == pytest.approx(2.5**10)


def test_adaops_fails_too_often_and_caps_too_low() -> None:
    shift = math.sqrt(math.log(6 / DELTA))
    noise = not_private_release_scales(1.0, DELTA).noise
    assert not_private_adaops_lambda_min(100.0, 1.0, DELTA, 0.0) == pytest.approx(100 - noise * shift)
    assert not_private_adaops_lambda_min(100.0, 1.0, DELTA, shift + 0.001) > 100  # as often as a normal exceeds it
    assert phi_cdf(-shift) == pytest.approx(3.9e-5, rel=0.01)
    assert phi_cdf(-shift) > 30 * DELTA
    cap, norm = not_private_adaops_norm_cap(1000, 1010.0), ridge_fit([1.0] * 1000, 10.0)[0]
    assert cap == pytest.approx(0.25, abs=5e-3)
    assert norm == pytest.approx(0.99, abs=5e-3)
    assert not_private_adaops_norm_cap(1001, 1010.0) != cap  # the number of rows shows in it


def moments_of(X: np.ndarray, y: np.ndarray) -> tuple[Secret[Moments], Design]:
    design = Design(RowMap(X.shape[1], 1, 1))
    moments = Moments(design.row_map.limits)
    for V, w in design.row_map.blocks(X, y):
        moments.add(V, V, w)
    return Secret(moments), design


def data(rows: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.clip(X @ np.array([0.5, -0.3, 0.1]) + 0.05 * rng.normal(size=rows), -1, 1)


def test_a_reproduction_is_stamped_and_needs_a_seed() -> None:
    moments, design = moments_of(*data())
    fit = not_private_ops_ptr(moments, design, ridge=50, epsilon=4, delta=DELTA, noise=Simulation(1), misprints=False)
    assert repr(fit).startswith("NOT PRIVATE")
    again = not_private_ops_ptr(moments, design, ridge=50, epsilon=4, delta=DELTA, noise=Simulation(1), misprints=False)
    assert repr(again) == repr(fit)
    with pytest.raises(ValueError, match="NOT PRIVATE"):
        not_private_ops_ptr(moments, design, ridge=50, epsilon=4, delta=DELTA, noise=Exact())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ridge"):
        not_private_ops_ptr(moments, design, ridge=0, epsilon=4, delta=DELTA, noise=Simulation(1))


def test_a_reproduction_follows_the_printed_steps() -> None:
    X, y = data()
    moments, design = moments_of(X, y)
    ridge, epsilon = 50.0, 4.0
    hessian = X.T @ X + ridge * np.eye(3)
    theta = np.linalg.solve(hessian, X.T @ y)
    lowest = float(np.linalg.eigvalsh(X.T @ X)[0])
    lengths, bounds = [], []
    for k in range(600):
        fit = not_private_ops_ptr(
            moments, design, ridge=ridge, epsilon=epsilon, delta=DELTA, noise=Simulation(k), misprints=False
        )
        assert fit.theta is not None
        off = fit.theta - theta
        lengths.append(fit.gamma * float(off @ hessian @ off))
        bounds.append(fit.lambda_min)
        spent = not_private_ops_epsilon(fit.gamma, fit.lipschitz, ridge + fit.lambda_min, DELTA / 3)
        assert spent == pytest.approx(epsilon / 2, rel=1e-9)
        assert fit.lipschitz >= 1 + float(np.linalg.norm(theta)) - 1e-6
    scales = not_private_release_scales(epsilon, DELTA)
    assert np.mean(lengths) == pytest.approx(3, rel=0.1)  # chi-square with three degrees of freedom
    assert np.mean(bounds) == pytest.approx(lowest - scales.margin, abs=scales.noise / 5)
    assert np.std(bounds) == pytest.approx(scales.noise, rel=0.1)


def test_with_its_misprints_the_release_of_delta_is_useless() -> None:
    moments, design = moments_of(*data())
    fits = [
        not_private_ops_ptr(moments, design, ridge=50, epsilon=1, delta=DELTA, noise=Simulation(k)) for k in range(40)
    ]
    low = sum(fit.lipschitz < 1 for fit in fits)  # below every possible value: the bound fails about half the time
    assert 10 < low < 30
    assert any(fit.theta is None or fit.gamma < 1e-12 for fit in fits)


def test_the_experiment_of_the_paper_runs() -> None:
    X, y = data(6000)
    moments, design = moments_of(X, y)
    fit = not_private_ops_ptr_selection(
        moments, design, (X[:200], y[:200]), epsilon=4, delta=DELTA, noise=Simulation(3)
    )
    assert fit.theta is not None
    assert any(fit.ridge == value for value in not_private_grid())
    assert np.mean((X @ fit.theta - y) ** 2) < np.mean(y**2)
    with pytest.raises(ValueError, match="leaves nothing"):
        not_private_ops_ptr_selection(moments, design, (X[:9], y[:9]), epsilon=1e-12, delta=0.5, noise=Simulation(3))
    small = not_private_ops_ptr_selection(
        moments, design, (X[:9], y[:9]), epsilon=1e-3, delta=DELTA, noise=Simulation(3), ridges=[2.5]
    )
    assert small.theta is None
    assert "no gamma" in repr(small)
    assert design.x_squared <= Fraction(1)
