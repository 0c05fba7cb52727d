"""Several classes: exact laws in two dimensions against the atoms of softmax, and products of exact pairs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from snugdp import Budget, Cost
from snugdp.accounting import gaussian
from snugdp.accounting.composition import Branch
from snugdp.accounting.objective import glm, multiclass
from snugdp.accounting.objective.multiclass import SoftmaxRun
from snugdp.accounting.objective.persons import TAIL
from snugdp.accounting.objective.run import RunCost, Unit, within
from tests.accounting.atoms import claimed, exact
from tests.accounting.objective.glm_laws import Classifier
from tests.accounting.objective.perturbed import Array, loss
from tests.effort import sampled

NONE = Fraction(0)
BASIS = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2.0], [6.0]])  # orthogonal to equal coefficients


def log_density(rows: list[tuple[float, int]], grid: Array, centre: Array, ridge: float, sigma: float) -> Array:
    """Of the softmax minimiser, three classes and one feature, on a grid of coefficients in the basis."""
    b = -ridge * (grid - centre)
    curve = np.tile(ridge * np.eye(2), (len(grid), 1, 1))
    for x, label in rows:
        scores = np.exp(x * (grid @ BASIS) - np.max(x * (grid @ BASIS), axis=1, keepdims=True))
        p = scores / scores.sum(axis=1, keepdims=True)
        b += x * (np.eye(3)[label] - p) @ BASIS.T
        spread = np.einsum("ni,ij->nij", p, np.eye(3)) - np.einsum("ni,nj->nij", p, p)
        curve += x * x * (BASIS @ spread @ BASIS.T)
    found: Array = (
        -(b**2).sum(axis=1) / (2 * sigma**2) + np.log(np.linalg.det(curve)) - math.log(2 * math.pi * sigma**2)
    )
    return found


@sampled(6)
@pytest.mark.parametrize(("m", "kappa"), [(0.6, 0.3), (1.0, 1.5), (0.3, 0.4), (1.5, 0.5)])
def test_softmax_by_quadrature(m: float, kappa: float) -> None:
    rng = np.random.default_rng(int(10 * m))
    ridge, sigma = 1 / kappa, math.sqrt(2) / m
    run = SoftmaxRun(exact(m) ** 2, exact(kappa), 3)
    largest = 0.0
    for trial in range(4):
        centre = rng.normal(size=2) * sigma / ridge * (0 if trial == 0 else 2)
        others = [(float(rng.uniform(-1, 1)), int(rng.integers(3))) for _ in range(trial % 3)]
        side = np.linspace(-9, 9, 201) * sigma / ridge
        grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) + centre
        cell = (side[1] - side[0]) ** 2
        small, big = (
            np.exp(log_density(rows, grid, centre, ridge, sigma)) * cell for rows in (others, [*others, (1.0, 0)])
        )
        assert small.sum() == pytest.approx(1, abs=1e-3)
        for e in (-1.0, -0.2, 0.0, 0.3, 1.0, 2.0):
            for p, q, branches in ((small, big, run.atom.add), (big, small, run.atom.remove)):
                found = float(np.maximum(p - math.exp(e) * q, 0).sum())
                assert found <= claimed(e, branches) * 1.002 + 1e-6
                if e > 0:
                    largest = max(largest, found / claimed(e, branches))
    assert largest > 0.3


def test_softmax_additions_reach_the_number_of_other_classes() -> None:
    """Far out, each other class leaks its own Gaussian delta: a claim without the factor would be false."""
    m, kappa, e = 1.0, 0.05, 4.0
    ridge, sigma = 1 / kappa, math.sqrt(2) / m
    side = np.linspace(-9, 9, 401) * sigma / ridge
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    cell, nobody = (side[1] - side[0]) ** 2, np.zeros(2)
    far = 400.0  # a large coefficient of a tiny row would do the same: p is at a vertex wherever b points
    small = np.exp(log_density([], grid, nobody, ridge, sigma)) * cell
    b = -ridge * grid
    scores = far * (b @ BASIS)
    p = np.eye(3)[np.argmax(-scores, axis=1)]
    moved = b + (np.eye(3)[0] - p) @ BASIS.T
    big = np.exp(-(moved**2).sum(axis=1) / (2 * sigma**2)) * ridge**2 / (2 * math.pi * sigma**2) * cell
    found = float(np.maximum(small - math.exp(e) * big, 0).sum())
    assert gaussian.delta(m, e) * 1.2 < found <= claimed(e, SoftmaxRun(exact(m) ** 2, exact(kappa), 3).atom.add) * 1.02


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_softmax_calibration(classes: int) -> None:
    kappa = Fraction(1, 5)
    for mu in (0, "0.02"):
        m = multiclass.softmax(1, "1e-6", classes, kappa, mu=mu)
        cost = Cost(mu=mu) + Cost(atoms=(SoftmaxRun(exact(m) ** 2, kappa, classes).atom,))
        assert cost.fits(Budget(1, "1e-6"))
        more = Cost(mu=mu) + Cost(atoms=(SoftmaxRun((exact(m) * Fraction(102, 100)) ** 2, kappa, classes).atom,))
        assert not more.fits(Budget(1, "1e-6"))
    assert multiclass.softmax(1, "1e-6", classes, 10) == 0  # the determinant alone is too much
    assert SoftmaxRun(Fraction(1), Fraction(1, 4), classes).shift == 0


@pytest.mark.slow
def test_several_classes_by_quadrature() -> None:
    """The sum of the losses of three exact runs against the Gaussian cost of three."""
    m, kappa, epsilon, classes = 0.4, 1.2, 2.0, 3
    run = RunCost(exact(m) ** 2, exact(kappa))
    mu = math.sqrt(classes * run.gaussian_squared)
    t = np.linspace(-8, 8, 161)
    weights = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])
    for centre in (-12.0, -6.0, -2.0, 0.0):
        nobody = Classifier([], [], "logistic", 1.0, 1 / kappa, 1 / m, centre)
        one = nobody.more(1.0)
        for p, q in ((one, nobody), (nobody, one)):
            losses = loss(p, q, p.points(t))
            sums = np.add.outer(np.add.outer(losses, losses), losses)
            leak = np.maximum(-np.expm1(np.minimum(epsilon - sums, 0.0)), 0.0)
            found = float(np.einsum("ijk,i,j,k->", leak, weights, weights, weights))
            assert found <= gaussian.delta(mu, epsilon) * 1.01


@pytest.mark.slow
def test_the_corollary_for_one_run_does_not_compose() -> None:
    """Ten runs at the limit for one: the total is far above what the noise of a Gaussian release would give."""
    classes, epsilon, delta = 10, Fraction(1), Fraction(1, 10**6)
    m = exact(glm.calibrate(epsilon, delta, runs=classes))
    runs = Cost(atoms=(RunCost(m**2, epsilon + m**2 / 2, levels=8).atom,) * classes)
    assert not runs.fits(Budget(epsilon, delta))
    assert Cost(mu_squared=classes * RunCost(m**2, m).gaussian_squared).fits(Budget(epsilon, delta))


def test_persons_pay_for_the_trace() -> None:
    """Softmax for persons: shifts of kappa (K - 1)/K, and exp of that times K - 1 branches; two classes by levels."""
    run = SoftmaxRun(Fraction(1, 25), Fraction(1, 6), 10, "person")
    assert run.shift == Fraction(3, 20)
    assert run.atom.add == (Branch(Fraction(1, 25), Fraction(0)),) * 9
    assert run.atom.remove == (Branch(Fraction(1, 25), run.shift),) * math.ceil(9 * math.exp(0.15))
    assert run.failure == 0
    pair = SoftmaxRun(Fraction(1, 25), Fraction(1, 6), 2, "person")
    assert pair.atom == RunCost(Fraction(1, 25), Fraction(1, 12), "constant_sign", unit="person").atom
    assert pair.failure == TAIL
    units: tuple[Unit, ...] = ("row", "person")
    for unit in units:
        m = multiclass.softmax(1, "1e-6", 4, Fraction(1, 6), mu="0.05", unit=unit)
        four = SoftmaxRun(Fraction(m) ** 2, Fraction(1, 6), 4, unit)
        assert within(Fraction(1), Fraction(1, 10**6), [four], Fraction(1, 400))
        assert 0.17 < m < 0.2
    with pytest.raises(ValueError, match="too small for a softmax model of persons"):
        SoftmaxRun(Fraction(1), Fraction(5), 3, "person")
