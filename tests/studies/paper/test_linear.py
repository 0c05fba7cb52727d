"""The paper's formulas for regression are what the paper prints, and each fails where ``docs/errata.md`` says so."""

import ast
import inspect
import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from snugdp import Exact, Simulation
from snugdp.mechanisms.linear.base import Design
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rowmap import RowMap
from snugdp_studies.paper import linear
from snugdp_studies.paper.linear import (
    NotPrivateFit,
    NotPrivateSums,
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
from snugdp_studies.paper.pate import experiment

DELTA = 1e-6


@pytest.mark.parametrize("module", [linear, experiment])
def test_every_public_name_says_that_it_is_not_private(module: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(module))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert all(name.startswith(("not_private_", "NotPrivate", "_")) for name in names)


@pytest.mark.parametrize(("epsilon", "lam_star"), [(4.0, 100.0), (4.0, 2.5), (1.0, 30.0)])
def test_the_formula_of_one_sample(epsilon: float, lam_star: float) -> None:
    """As printed; that it is no bound is shown in ``tests/errata`` (L1)."""
    for gamma, lipschitz in ((1.0, 2.0), (0.1, 1.5), (20.0, 1.0)):
        log, square = math.log(2 / DELTA), gamma * lipschitz**2
        printed = math.sqrt(square * log / lam_star) + square / (2 * (lam_star + 1)) + (1 + log) / (2 * lam_star)
        assert not_private_ops_epsilon(gamma, lipschitz, lam_star, DELTA) == pytest.approx(printed, rel=1e-12)
        # rows twice as long with lambda four times as large are the same problem; the formula sees another one
        scaled = not_private_ops_epsilon(gamma, 2 * lipschitz, 4 * lam_star, DELTA, bound=2)
        assert scaled != pytest.approx(printed, rel=1e-3)
    gamma = not_private_ops_gamma(epsilon, 1.9, lam_star, DELTA)
    assert not gamma or not_private_ops_epsilon(gamma, 1.9, lam_star, DELTA) == pytest.approx(epsilon, rel=1e-12)


def test_there_may_be_no_gamma() -> None:
    assert not_private_ops_gamma(4.0, 2.0, 100.0, DELTA) > 0
    assert not_private_ops_gamma(0.1, 2.0, 10.0, DELTA) == 0.0
    assert not_private_ops_gamma(4.0, math.inf, 1e3, DELTA) == 0.0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_scales_are_as_printed(epsilon: float) -> None:
    """L2, L3 and L4."""
    log, unit = math.log(6 / DELTA), math.log(1 + 1 / 4) / (epsilon / 4)
    assert not_private_release_scales(epsilon, DELTA).noise == pytest.approx(math.sqrt(log) / (epsilon / 4))
    assert not_private_lipschitz_sensitivity(4.0) == pytest.approx(0.2231, abs=5e-5)
    meant = not_private_lipschitz_scales(epsilon, DELTA, 4.0)
    assert meant.noise == pytest.approx(unit * math.sqrt(log))
    assert meant.margin == pytest.approx(unit * math.sqrt(2 * log * math.log(2 / DELTA)))


def test_the_stopping_probability_is_as_meant() -> None:
    meant = not_private_selection(1, DELTA)
    assert 1 > meant.tau > 0
    assert meant.cap == pytest.approx(4353, abs=1)
    assert 3 * meant.epsilon + 3 * math.sqrt(2 * meant.delta) == pytest.approx(1.0)
    assert math.sqrt(2 * meant.delta) * meant.cap + DELTA / 2 == pytest.approx(DELTA)
    grid = not_private_grid()
    assert len(grid) == 30
    assert [grid[0], grid[-1]] == pytest.approx([2.5, 2.5**10])


def test_adaops_as_in_its_public_code() -> None:
    """C13."""
    shift, noise = math.sqrt(math.log(6 / DELTA)), not_private_release_scales(1.0, DELTA).noise
    assert not_private_adaops_lambda_min(100.0, 1.0, DELTA, 0.0) == pytest.approx(100 - noise * shift)
    assert not_private_adaops_lambda_min(100.0, 1.0, DELTA, shift + 0.001) > 100  # as often as a normal exceeds it
    cap = not_private_adaops_norm_cap(1000, 1010.0)
    assert cap == pytest.approx(0.25, abs=5e-3)
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


def reproduced(table: tuple[Secret[Moments], Design], noise: Any) -> NotPrivateFit:
    sums = NotPrivateSums.of_moments(*table, noise)
    return not_private_ops_ptr(sums, table[1], 50.0, epsilon=4.0, delta=DELTA, noise=noise)


def test_a_reproduction_is_stamped_and_needs_a_seed() -> None:
    table = moments_of(*data())
    assert repr(reproduced(table, Simulation(1))).startswith("NOT PRIVATE")
    assert repr(reproduced(table, Simulation(1))) == repr(reproduced(table, Simulation(1)))
    with pytest.raises(ValueError, match="NOT PRIVATE"):
        reproduced(table, Exact())


def test_a_reproduction_follows_the_printed_steps() -> None:
    X, y = data()
    table, ridge, epsilon = moments_of(X, y), 50.0, 4.0
    hessian = X.T @ X + ridge * np.eye(3)
    theta = np.linalg.solve(hessian, X.T @ y)
    lowest = float(np.linalg.eigvalsh(X.T @ X)[0])
    lengths, bounds = [], []
    for k in range(600):
        fit = reproduced(table, Simulation(k))
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
