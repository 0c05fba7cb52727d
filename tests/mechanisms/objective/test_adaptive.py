"""The scale of a line's loss: what moves it, and that no cost depends on it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from snugdp import Budget, LinearRegression, Simulation
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.adaptive import Adaptive, Sizes
from tests.mechanisms.objective.tables import SCHEMA

DESIGN, BUDGET, BESIDE = Design.of(SCHEMA), Budget(1, 1e-6), Fraction(1, 100)
SIZES = Sizes(2000.0, 0.05, 1.2)


@pytest.mark.parametrize(("skew", "times"), [(1.0, 1), (1.5, 1), (2.0, 1.5), (2.5, 2), (9.0, 2), (math.inf, 2)])
def test_skewed_targets_have_a_larger_scale_at_the_same_cost(skew: float, times: float) -> None:
    usual, other = Adaptive(DESIGN, BUDGET, BESIDE), Adaptive(DESIGN, BUDGET, BESIDE, skew)
    step = DESIGN.y_bound / 4096
    assert abs(other.tau(SIZES) - Fraction(times) * usual.tau(SIZES)) <= 2 * step
    assert other.plan().cost == usual.plan().cost
    one, run = usual._run(usual.tau(SIZES)), other._run(other.tau(SIZES))
    assert run.cost == one.cost
    assert (run.m, run.kappa) == (one.m, one.kappa), "noise and ridge follow the scale"
    assert other.tau(Sizes(2000.0, 1.0, 9.0)) <= 2 * DESIGN.y_bound


def test_without_bounds_the_line_of_a_skewed_target_is_near_its_mean() -> None:
    """Where what was seen of it is longer on one side; a robust line at the usual scale is far below."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 4))
    y = np.exp(0.4 * X[:, 0] - 0.3 * X[:, 1]) * rng.gamma(1.5, 1, 4000)
    model = LinearRegression(1, 1e-6, noise=Simulation(5)).fit(X, y)
    found = model.predict(X)
    assert model._layout.target_skew > 1.5
    assert found.min() >= 0, "no target below 0 was seen, and many near it"
    assert abs(found.mean() / y.mean() - 1) < 0.08  # at the usual scale 0.1
