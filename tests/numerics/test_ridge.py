"""Certified functions of exact moments: right within their accuracy, total, and as sensitive as claimed."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snugdp.accounting.output.posterior import log_lipschitz_sensitivity
from snugdp.numerics import ridge
from snugdp.numerics.ridge import log_lipschitz, smallest_eigenvalue, solution
from tests.effort import often, repeated

Whole = NDArray[np.int64]
ONE = Fraction(1)


def moments(rows: Whole, target: Whole) -> tuple[list[list[int]], list[int]]:
    exact, answers = rows.astype(object), target.astype(object)
    d = rows.shape[1]
    if not len(rows):
        return [[0] * d for _ in range(d)], [0] * d
    return (exact.T @ exact).tolist(), (exact.T @ answers).tolist()


def tables() -> Iterator[tuple[Whole, Whole]]:
    """Random and degenerate tables: empty, one row, equal columns, huge and tiny entries, all zero."""
    rng = np.random.default_rng(2)
    for d in (1, 2, 5, 11):
        for n in (0, 1, d, 3 * d):
            for size in (1, 1000, 1 << 20):
                X = rng.integers(-size, size + 1, (n, d))
                yield X, rng.integers(-size, size + 1, n)
                yield np.repeat(X[:, :1], d, axis=1), rng.integers(-size, size + 1, n)
        yield np.zeros((3, d), dtype=np.int64), np.zeros(3, dtype=np.int64)


def test_within_their_accuracy() -> None:
    for X, y in tables():
        gram, cross = moments(X, y)
        unit, lam = Fraction(1, 1 << 20), Fraction(1, 3)
        size = 1 + float(np.abs(np.array(gram, dtype=np.float64)).max()) * float(unit)
        G = np.array(gram, dtype=np.float64) * float(unit)
        for accuracy in (Fraction(1, 10), Fraction(1, 10**6)):
            least = smallest_eigenvalue(gram, unit, accuracy)
            assert least >= 0
            assert abs(float(least) - np.linalg.eigvalsh(G)[0]) <= float(accuracy) + 1e-12 * size
        theta = np.linalg.solve(G + float(lam) * np.eye(len(cross)), np.array(cross, dtype=np.float64) * float(unit))
        found = solution(gram, cross, unit, lam, Fraction(1, 10**12))
        assert np.allclose(np.array(found, dtype=np.float64), theta, rtol=1e-7, atol=1e-7)
        value = log_lipschitz(
            gram, cross, unit=unit, ridge=lam, y_bound=ONE, x_bound=ONE * 2, accuracy=Fraction(1, 1 << 40)
        )
        assert float(value) == pytest.approx(math.log(1 + 2 * float(np.linalg.norm(theta))), abs=1e-7)


def test_an_exact_eigenvalue_is_met_without_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a guess that says nothing, the search on balls finds eigenvalues that are known in whole numbers."""
    monkeypatch.setattr(ridge, "_float_guess", lambda gram: (Fraction(0), [1] + [0] * (len(gram) - 1)))
    accuracy = Fraction(1, 10**9)
    cases: list[tuple[list[list[int]], Fraction]] = [
        ([[7]], Fraction(7)),
        ([[1, 1], [1, 1]], Fraction(0)),
        ([[4, 0], [0, 4]], Fraction(4)),
        ([[2, 1], [1, 2]], Fraction(1)),
        ([[0, 0, 0], [0, 0, 0], [0, 0, 5]], Fraction(0)),
        ([[5, 0, 0], [0, 3, 0], [0, 0, 4]], Fraction(3)),
        ([[10**30, 0], [0, 10**30]], Fraction(10**30)),
    ]
    for gram, exact in cases:
        assert abs(smallest_eigenvalue(gram, ONE, accuracy) - exact) <= accuracy


def test_misleading_floats_do_not_mislead(monkeypatch: pytest.MonkeyPatch) -> None:
    gram = [[20, 2], [2, 9]]
    exact = (29 - math.sqrt(121 + 16)) / 2
    for guess in (Fraction(-5), Fraction(1), Fraction(8), Fraction(10**6)):
        monkeypatch.setattr(ridge, "_float_guess", lambda gram, guess=guess: (guess, [1, 1]))
        assert float(smallest_eigenvalue(gram, ONE, Fraction(1, 10**8))) == pytest.approx(exact, abs=1.1e-8)


def test_a_failed_decomposition_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(matrix: Any) -> Any:
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(np.linalg, "eigh", fails)
    assert abs(smallest_eigenvalue([[2, 1], [1, 2]], ONE, Fraction(1, 1000)) - 1) <= Fraction(1, 1000)


def test_numbers_beyond_floats() -> None:
    big = 10**400
    assert abs(smallest_eigenvalue([[2 * big, 0], [0, big]], ONE, Fraction(big, 100)) - big) <= Fraction(big, 100)
    assert solution([[big]], [big], ONE, Fraction(1), Fraction(1, 10**6))[0] == pytest.approx(1, abs=1e-6)


def _value(gram: list[list[int]], cross: list[int], unit: Fraction, lam: Fraction, bits: int = 60) -> Fraction:
    return log_lipschitz(gram, cross, unit=unit, ridge=lam, y_bound=ONE, x_bound=ONE, accuracy=Fraction(1, 1 << bits))


@pytest.mark.slow
@repeated
def test_sensitivities_over_random_and_degenerate_neighbours() -> None:
    """Rows within the unit ball, on a grid of 1/64; the last one is the difference. The paper's bound fails."""
    rng = np.random.default_rng(4)
    unit, printed = Fraction(1, 64**2), 0.0
    for trial in range(often(800, 3000)):
        d, n = int(rng.integers(1, 4)), int(rng.integers(1, 7))
        X = rng.normal(size=(n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X[rng.uniform(size=n) < 0.2] = 0
        if trial % 5 == 0:
            X[:] = X[0]
        rows, target = np.trunc(64 * X).astype(np.int64), 64 * rng.choice([-1, 0, 1, 1], n)
        lam = Fraction(float(10 ** rng.uniform(-2, 1.5)))
        (G, c), (K, k) = moments(rows, target), moments(rows[:-1], target[:-1])
        accuracy = Fraction(1, 1 << 30)
        least, other = (smallest_eigenvalue(gram, unit, accuracy) for gram in (G, K))
        assert abs(least - other) <= 1 + 2 * accuracy
        moved = abs(_value(G, c, unit, lam) - _value(K, k, unit, lam))
        for held in (least, other):  # a lower bound on the eigenvalue of either data set will do
            low = max(held - 2 * accuracy, Fraction(0))
            assert moved <= log_lipschitz_sensitivity(1, lam, low) + Fraction(1, 1 << 50)
        printed = max(printed, float(moved - log_lipschitz_sensitivity(1, lam, least, removal=False)))
    assert printed > 0.05


@pytest.mark.parametrize(
    ("gram", "cross", "lam"),
    [
        ([[13, -4], [-4, 4]], [4, -7], Fraction(3)),  # a coefficient that is exactly 0, by cancellation
        ([[4, 0], [0, 4]], [0, 8], Fraction(1)),
        ([[2, 1], [1, 2]], [0, 0], Fraction(1)),
    ],
)
def test_coefficients_that_are_exactly_zero(gram: list[list[int]], cross: list[int], lam: Fraction) -> None:
    """The square of a ball around 0 must be a number: as a power it is none, and the search would never end."""
    theta = np.linalg.solve(np.array(gram) + float(lam) * np.eye(2), np.array(cross))
    found = _value(gram, cross, ONE, lam, 20)
    assert float(found) == pytest.approx(np.log(1 + np.linalg.norm(theta)), abs=1e-5)


def test_random_small_tables_with_zeros() -> None:
    rng = np.random.default_rng(5)
    for _ in range(150):
        rows = rng.integers(-3, 4, (3, 3))
        gram = (rows.T @ rows).tolist()
        theta = rng.integers(-1, 2, 3)
        cross = ((rows.T @ rows + 2 * np.eye(3, dtype=int)) @ theta).tolist()
        found = _value(gram, cross, ONE, Fraction(2), 20)
        assert float(found) == pytest.approx(np.log(1 + np.linalg.norm(theta)), abs=1e-5)
