"""Corners of a softmax removal: the atom against exact laws, samples and a quadrature; what it allows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from snugdp import Budget, Cost
from snugdp.accounting.objective import corners, multiclass
from snugdp.accounting.objective.multiclass import SoftmaxRun
from tests.accounting.atoms import claimed, exact
from tests.accounting.objective.corner_laws import corner
from tests.accounting.objective.perturbed import Array
from tests.accounting.objective.test_multiclass import log_density
from tests.effort import often, repeated


def survival(run: SoftmaxRun, t: Fraction) -> float:
    return float(sum((branch.weight for branch in run.atom.remove if branch.shift > t), Fraction(0)))


@pytest.mark.parametrize(("classes", "m", "kappa"), [(3, 0.22, 0.2121), (4, 0.7, 0.5), (5, 0.115, 0.078)])
def test_levels_are_above_a_quadrature_and_not_far(classes: int, m: float, kappa: float) -> None:
    run = SoftmaxRun(exact(m) ** 2, exact(kappa), classes, bound="corners")
    for deviations in (1.5, 3.0, 4.5):
        target = m * m / 2 + deviations * m
        t = max(branch.shift for branch in run.atom.remove if branch.shift <= target)
        vertices = (classes - 1) * ndtr(-(float(t) - m * m / 2) / m)
        rare = corner(float(t), classes, m, kappa, 120)
        # the vertices of two classes at once are counted twice on the right: far out that does not matter
        if deviations > 2:
            assert (vertices + rare) * 0.98 < survival(run, t)
        assert survival(run, t) < (vertices + rare) * 1.3


@pytest.mark.parametrize(("m", "kappa"), [(0.6, 0.3), (1.0, 1.5), (0.3, 0.4)])
def test_removals_by_quadrature(m: float, kappa: float) -> None:
    """The exact densities of three classes and one feature, with ties between the other classes too."""
    rng = np.random.default_rng(int(10 * m))
    ridge, sigma = 1 / kappa, math.sqrt(2) / m
    run = SoftmaxRun(exact(m) ** 2, exact(kappa), 3, bound="corners")
    largest = 0.0
    for trial in range(often(3, 8, 40)):
        centre = rng.normal(size=2) * sigma / ridge * (0 if trial == 0 else 2)
        if trial in (1, 2):  # the row's class is impossible: the two others tie, or one of them wins
            centre = np.array([[0.0, 6.0], [6.0, 6.0]][trial - 1]) * sigma / ridge
        others = [(float(rng.uniform(-1, 1)), int(rng.integers(3))) for _ in range(trial % 3)]
        side = np.linspace(-9, 9, 161) * sigma / ridge
        grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) + centre
        cell = (side[1] - side[0]) ** 2
        q, p = (np.exp(log_density(rows, grid, centre, ridge, sigma)) * cell for rows in (others, [*others, (1.0, 2)]))
        for e in (-0.5, 0.0, 0.3, 1.0, 2.0):
            found = float(np.maximum(p - math.exp(e) * q, 0).sum())
            bound = claimed(e, run.atom.remove)
            assert found <= bound * 1.002 + 1e-6
            if e > 0:
                largest = max(largest, found / bound)
    assert largest > 0.2


@repeated
def test_the_loss_of_a_removal_is_below_its_maximum() -> None:
    """Lemma 1 at random points: any rows, classes and features, and noise that fits the point."""
    rng = np.random.default_rng(3)
    for _ in range(often(150, 2000)):
        classes, width = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        theta = rng.normal(size=(classes, width)) * rng.choice([0.1, 1.0, 4.0])
        sigma, ridge = rng.uniform(0.5, 6), rng.uniform(0.3, 8)
        rows = rng.normal(size=(int(rng.integers(1, 4)), width))
        rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
        labels = rng.integers(classes, size=len(rows))
        found, bound = removal_loss(rows, labels, theta, float(sigma), float(ridge))
        assert found <= bound + 1e-9


def removal_loss(
    rows: Array, labels: NDArray[np.int64], theta: Array, sigma: float, ridge: float
) -> tuple[float, float]:
    """Of the last row: the log-density ratio at theta, and the maximum of Lemma 1. Rows have norm 1 at most."""
    x, y = rows[-1], int(labels[-1])
    b = noise_at(rows, labels, theta, ridge)
    loss = -float((b**2).sum()) / (2 * sigma**2) + log_det(rows, theta, ridge)
    less = noise_at(rows[:-1], labels[:-1], theta, ridge)
    loss += float((less**2).sum()) / (2 * sigma**2) - log_det(rows[:-1], theta, ridge)
    m, kappa, xi = math.sqrt(2) / sigma, 1 / ridge, b @ x / (sigma * np.linalg.norm(x))
    losses = m * m / 2 + m / math.sqrt(2) * (xi - xi[y])
    losses[y] = 0.0
    return loss, corners.sparsemax(losses.tolist(), max(0.0, kappa - m * m / 4))


def noise_at(rows: Array, labels: NDArray[np.int64], theta: Array, ridge: float) -> Array:
    scores = rows @ theta.T
    p = np.exp(scores - scores.max(axis=1, keepdims=True)) if len(rows) else np.zeros((0, len(theta)))
    p /= p.sum(axis=1, keepdims=True)
    noise: Array = -ridge * theta + (np.eye(len(theta))[labels] - p).T @ rows
    return noise


def log_det(rows: Array, theta: Array, ridge: float) -> float:
    curve = ridge * np.eye(theta.size)
    for x in rows:
        p = np.exp(theta @ x - (theta @ x).max())
        p /= p.sum()
        curve += np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
    return float(np.linalg.slogdet(curve)[1])


@pytest.mark.parametrize(("classes", "mu"), [(3, 0), (10, "0.1")])
def test_calibration_by_corners(classes: int, mu: str | int) -> None:
    kappa, budget = Fraction(1, 6), Budget(1, "1e-6")
    m = multiclass.softmax_by_corners(1, "1e-6", classes, kappa, mu=mu)
    assert m > 1.08 * multiclass.softmax(1, "1e-6", classes, kappa, mu=mu)
    run = SoftmaxRun(exact(m) ** 2, kappa, classes, bound="corners")
    assert (Cost(mu=mu, delta=run.failure) + Cost(atoms=(run.atom,))).fits(budget)
    more = SoftmaxRun((exact(m) * Fraction(102, 100)) ** 2, kappa, classes, bound="corners")
    assert not (Cost(mu=mu) + Cost(atoms=(more.atom,))).fits(budget)


def test_a_gaussian_release_of_the_same_size_costs_no_more() -> None:
    """Few rows are served by sums instead of a run: Corollary 2."""
    m = 0.3
    atom = SoftmaxRun(exact(m) ** 2, Fraction(1, 5), 3, bound="corners").atom
    for e in np.linspace(-2, 2, 17):
        gaussian = float(ndtr(m / 2 - e / m) - math.exp(e) * ndtr(-m / 2 - e / m))
        for branches in (atom.add, atom.remove):
            assert gaussian <= claimed(float(round(e, 3)), branches) + 1e-12


@pytest.mark.parametrize(("m", "kappa"), [(0.02, 0.0182), (0.17, 0.1818), (0.6, 0.7272)])
def test_levels_that_are_put_together_are_above_and_not_far(m: float, kappa: float) -> None:
    """Corollary 4, alone and beside a Gaussian part."""
    levels = SoftmaxRun(exact(m) ** 2, exact(kappa), 10, bound="corners").atom.remove
    fewer = corners.fewer_levels(levels)
    assert len(fewer) < 150 < len(levels) / 2
    assert sum(branch.weight for branch in fewer) == sum(branch.weight for branch in levels)
    for t in [branch.shift for branch in levels][::7]:
        beyond = [sum(branch.weight for branch in side if branch.shift > t) for side in (levels, fewer)]
        assert beyond[0] <= beyond[1]
    for mu in (Fraction(0), exact(m) ** 2 / 3):
        for e in (-m, m, 3 * m, 5 * m):
            found = [claimed(round(e, 4), side, mu) for side in (levels, fewer)]
            assert found[0] <= found[1] <= 1.15 * found[0]


def test_fewer_classes_cost_no_more() -> None:
    """Corollary 5: what is found is paid for by the most classes of its case."""
    m, kappa = exact(0.3), Fraction(1, 5)
    atoms = [SoftmaxRun(m**2, kappa, classes, bound="corners").atom for classes in (3, 4, 10)]
    for e in (-0.5, 0.0, 0.3, 1.0, 1.5):
        for direction in ("add", "remove"):
            found = [claimed(e, getattr(atom, direction)) for atom in atoms]
            assert found == sorted(found)


def test_what_is_out_of_range_is_refused() -> None:
    assert multiclass.softmax_by_corners(1, "1e-6", 2, "0.2") == 0
    assert multiclass.softmax_by_corners(1, "1e-6", 5, 0) == 0
    assert multiclass.softmax_by_corners(1, "1e-6", 5, 100) == 0
    assert multiclass.softmax_by_corners(1, "1e-6", 10, 5) == 0
    assert multiclass.softmax_by_corners(10, "1e-100", 1000, 5) == 0
    with pytest.raises(ValueError, match="out of range"):
        corners.corner_atom(Fraction(1), Fraction(1, 8), 3)
    with pytest.raises(ValueError, match="for rows"):
        SoftmaxRun(Fraction(1, 25), Fraction(1, 6), 3, "person", "corners")


def test_what_is_not_followed_is_a_failure() -> None:
    run = SoftmaxRun(Fraction(1, 20), Fraction(1, 6), 3, bound="corners")
    assert run.failure == corners.TAIL > 0
    assert sum(branch.weight for branch in run.atom.remove) >= 1
