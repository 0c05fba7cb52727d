"""Total-variation charges: grids counted by hand, and a charge that is really paid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from snugdp.accounting import variation

from .hockey import hockey_stick


@pytest.mark.parametrize(("deviation", "grid"), [(1.0, 1 / 16), (0.1, 0.25), (0.01, 1.0)])
def test_a_gaussian_on_a_fixed_grid(deviation: float, grid: float) -> None:
    """The mass within the error of a boundary, for the worst mean, against the bound."""
    error, boundaries = 1e-6, (np.arange(-400, 400) + 0.5) * grid
    worst = 0.0
    for mean in np.linspace(0, grid, 101):
        low, high = (boundaries - error - mean) / deviation, (boundaries + error - mean) / deviation
        worst = max(worst, float((norm.cdf(high) - norm.cdf(low)).sum()))
    bound = variation.unimodal(error, grid, [variation.gaussian_peak(deviation)])
    assert 0.5 * bound < worst <= bound
    wide = variation.bounded_density(
        error, grid, 1, density=variation.gaussian_peak(deviation), radius=9 * deviation, tail="1e-17"
    )
    assert worst <= wide


@given(st.integers(1, 6), st.integers(0, 12), st.fractions(0, 3))
def test_an_offset_on_a_lattice_by_counting(dimension: int, bits: int, moved: Fraction) -> None:
    """Every offset is tried: how many separate two points that far apart along one axis."""
    start = Fraction(1, 7)
    offsets = [Fraction(k, 1 << bits) for k in range(1 << bits)]
    apart = sum(math.floor(start + o) != math.floor(start + moved + o) for o in offsets)
    bound = variation.random_offset(moved, dimension, 1, offset_bits=bits)
    assert Fraction(apart, 1 << bits) <= Fraction(bound)


def test_teeth_defeat_a_density_bound_alone() -> None:
    """Uniform teeth at every boundary of a long interval: small density, boundary mass one."""
    error, grid, radius = Fraction(1, 1000), Fraction(1), 500
    density = 1 / (2 * error * 2 * radius)
    assert density == 0.5
    assert variation.unimodal(error, grid, [density]) < 0.01
    assert variation.bounded_density(error, grid, 1, density=density, radius=radius, tail=0) == 1.0


@given(st.floats(0, 3), st.floats(0, 0.1), st.floats(0, 0.05))
def test_the_charge_is_never_exceeded(epsilon: float, delta: float, tau: float) -> None:
    w = math.exp(epsilon)
    p = np.array([delta + (1 - delta) * w / (1 + w), (1 - delta) / (1 + w)])
    shift = np.array([tau, -tau])
    q = np.array([(p[0] - delta) / w, 1 - (p[0] - delta) / w])
    moved_p, moved_q = p + shift, q - shift
    if (moved_p >= 0).all() and (moved_q >= 0).all():
        bound = variation.charge(epsilon, delta, tau)
        exact = hockey_stick(moved_p, moved_q, epsilon)
        assert exact <= bound + 1e-14
        if tau:
            assert exact == pytest.approx(bound, abs=1e-12)


def test_solver_error_is_a_bound() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        a = rng.normal(size=(4, 4))
        hessian = a @ a.T + 0.3 * np.eye(4)
        point = rng.normal(size=4)
        gradient = float(np.linalg.norm(hessian @ point))
        assert np.linalg.norm(point) <= variation.solver_error(gradient, "1e-12", "0.3")
    assert variation.solver_error(0, 0, 1, noise_lattice=1, dimension=4) == 1.0


def test_failures_add_and_everything_is_at_most_one() -> None:
    assert variation.random_offset(1, 1, "0.1") == 1.0
    assert variation.charge(100, 0, "0.1") == 1.0
    assert variation.unimodal(0, 1, [1, 2], failure="0.25") == 0.25
    assert variation.random_offset(0, 1, 1, failure="0.25") == 0.25
    assert variation.bounded_density(0, 1, 3, density=1, radius=1, tail="0.125", failure="0.25") == 0.625


def test_bad_values_are_refused() -> None:
    with pytest.raises(ValueError, match="grid must be above 0"):
        variation.random_offset(1, 1, 0)
    with pytest.raises(ValueError, match="dimension must be at least 1"):
        variation.random_offset(1, 0, 1)
    with pytest.raises(ValueError, match="offset_bits must be at least 0"):
        variation.random_offset(1, 1, 1, offset_bits=-1)
    with pytest.raises(ValueError, match="convexity must be above 0"):
        variation.solver_error(1, 1, 0)
    with pytest.raises(ValueError, match="deviation must be above 0"):
        variation.gaussian_peak(0)
