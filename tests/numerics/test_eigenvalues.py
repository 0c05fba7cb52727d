"""The certified spectrum: its error bound holds exactly, also where floats fail, and a false certificate is caught."""

import math
from fractions import Fraction
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest
from flint import fmpz_mat

from snugdp.numerics import eigenvalues
from snugdp.numerics.eigenvalues import ACCURACY, Spectrum, departure, norm_above, shifted, spectrum, to_grid, whole

COARSE = Fraction(1, 8)


def gram(rng: np.random.Generator, rows: int, entries: int, size: int = 1000) -> list[list[int]]:
    X = rng.integers(-size, size + 1, (rows, entries))
    product: list[list[int]] = (X.T @ X).tolist()
    return product


def exact(matrix: list[list[int]], unit: int) -> list[Fraction]:
    """Eigenvalues to 60 digits."""
    with mp.workdps(80):
        found = sorted(mp.eigsy(mp.matrix([[mp.mpf(int(v)) for v in row] for row in matrix]), eigvals_only=True))
        return [Fraction(str(mp.nstr(value / unit, 60))) for value in reversed(found)]


def error(found: Spectrum, matrix: list[list[int]], unit: int) -> float:
    """The Euclidean distance of the eigenvalues from the true ones."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(found.values, exact(matrix, unit), strict=True)))


def spoiled(rng: np.random.Generator, size: float) -> Any:
    """A decomposition whose vectors are turned by about ``size``."""
    honest = np.linalg.eigh

    def eigh(matrix: Any) -> Any:
        values, vectors = honest(matrix)
        turn = rng.normal(size=vectors.shape) * size
        return values, vectors @ np.linalg.qr(np.eye(len(vectors)) + turn - turn.T)[0]

    return eigh


@pytest.mark.parametrize("entries", [1, 2, 3, 6])
def test_eigenvalues_are_within_the_accuracy(entries: int) -> None:
    rng = np.random.default_rng(entries)
    for rows in (0, 1, 3, 40):
        matrix = gram(rng, rows, entries)
        found = spectrum(matrix, 10**6)
        assert error(found, matrix, 10**6) <= ACCURACY
        assert found.values == sorted(found.values, reverse=True)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("accuracy", [ACCURACY, COARSE])
def test_bad_floats_are_found_out_and_mended(monkeypatch: pytest.MonkeyPatch, size: float, accuracy: Fraction) -> None:
    rng = np.random.default_rng(7)
    monkeypatch.setattr(np.linalg, "eigh", spoiled(rng, size))
    for scale in (1, 10**12):  # as if there were so many times more rows
        matrix = [[scale * value for value in row] for row in gram(rng, 30, 5)]
        found = spectrum(matrix, 10**6, accuracy)
        assert error(found, matrix, 10**6) <= accuracy


def test_a_false_certificate_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same attack on a mutant that never refines."""
    rng = np.random.default_rng(7)
    monkeypatch.setattr(np.linalg, "eigh", spoiled(rng, 1e-3))
    monkeypatch.setattr(eigenvalues, "_certified", lambda *_: True)
    matrix = gram(rng, 30, 5)
    assert error(spectrum(matrix, 10**4), matrix, 10**4) > ACCURACY


def fail(matrix: Any) -> Any:
    raise np.linalg.LinAlgError


@pytest.mark.parametrize("broken", [fail, lambda m: (m[0], np.full(m.shape, np.nan)), lambda m: (m[0], 0 * m)])
def test_without_floats_it_takes_longer(monkeypatch: pytest.MonkeyPatch, broken: Any) -> None:
    monkeypatch.setattr(np.linalg, "eigh", broken)
    rng = np.random.default_rng(3)
    matrix = gram(rng, 50, 6)
    found = spectrum(matrix, 10**6)
    assert error(found, matrix, 10**6) <= ACCURACY


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 0], [0, 0]],
        [[5]],
        [[7, 0, 0], [0, 7, 0], [0, 0, 7]],
        [[10**300, 1], [1, 10**299]],
        [[10**400, 10**399], [10**399, 10**400]],
        [[0, 3], [3, 0]],
        [[-5, 1], [1, 2]],
        [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
    ],
)
def test_strange_matrices_have_a_spectrum(matrix: list[list[int]]) -> None:
    found = spectrum(matrix, 1)
    with mp.workdps(900):
        truth = sorted(mp.eigsy(mp.matrix([[mp.mpf(v) for v in row] for row in matrix]), eigvals_only=True))[::-1]
        for value, true in zip(found.values, truth, strict=True):
            assert abs(mp.mpf(value.numerator) / value.denominator - true) <= mp.mpf(1) / 2**14


def test_the_decomposition_is_what_the_proof_says() -> None:
    """C = U (D + R) U': recomputed here from the vectors, in floats of the residual."""
    rng = np.random.default_rng(4)
    matrix, unit = gram(rng, 100, 8), 10**6
    found = spectrum(matrix, unit)
    V = np.array([[float(Fraction(v, 1 << found._bits)) for v in row] for row in found._vectors])
    C, D = np.array(matrix) / unit, np.diag([float(value) for value in found.values])
    assert np.linalg.norm(V.T @ V - np.eye(8)) < 1e-14
    assert np.linalg.norm(V.T @ C @ V - D) < 1e-10
    assert np.linalg.norm(C - V @ D @ V.T) < 1e-10
    for k in (1, 4, 8):
        P = np.array(found.projector(k, 50), dtype=float) / 2**50
        assert np.abs(P - V[:, :k] @ V[:, :k].T).max() < 1e-14
        rough = np.array(found.projector(k, 3), dtype=float) / 2**3
        assert np.abs(rough - P).max() <= 2**-4 + 1e-12


def test_gap_and_spread_are_those_of_the_values() -> None:
    found = spectrum([[9, 0, 0], [0, 4, 0], [0, 0, 1]], 1)
    assert float(found.gap(1)) == pytest.approx(5, abs=1e-9)
    assert float(found.spread(2)) == pytest.approx(6.5 - 1, abs=1e-9)


def test_bounds_of_norms_and_grids() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        matrix = rng.integers(-(10**6), 10**6, (4, 4)).tolist()
        assert norm_above(matrix) ** 2 >= sum(v * v for row in matrix for v in row)
        shift = int(rng.integers(1, 12))
        rounded = shifted(fmpz_mat(matrix), shift)
        assert all(
            abs(Fraction(v, 2**shift) - r) <= Fraction(1, 2)
            for row, out in zip(matrix, rounded, strict=True)
            for v, r in zip(row, out, strict=True)
        )
        vectors = np.linalg.qr(rng.normal(size=(4, 4)))[0] * rng.uniform(0.5, 1)
        grid = to_grid(vectors, 50)
        V = np.array(whole(grid), dtype=float) / 2**50
        assert np.abs(V - vectors).max() <= 2**-50
        assert float(departure(grid, 50)) >= np.linalg.norm(V.T @ V - np.eye(4)) - 1e-12
    assert shifted(fmpz_mat([[3]]), -2) == [[12]]


def test_nothing_of_it_shows() -> None:
    found = spectrum([[4217, 0], [0, 1]], 1)
    assert "4217" not in repr(found) + str(found) + f"{found}"
    with pytest.raises(TypeError):
        bool(found)


@pytest.mark.slow
def test_two_hundred_entries() -> None:
    rng = np.random.default_rng(6)
    X = rng.integers(-(2**17), 2**17, (400, 200)).astype(float)
    matrix = [[int(value) for value in row] for row in X.T @ X]
    found = spectrum(matrix, 2**40)
    assert np.allclose([float(v) for v in found.values], np.linalg.eigvalsh(X.T @ X)[::-1] / 2**40, atol=1e-9)
