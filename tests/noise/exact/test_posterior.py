"""The exact posterior draw: its refinement, its edges, and what it refuses. Its law is in test_sites.py."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from snugdp.noise import Exact, Noise, Simulation
from snugdp.noise.exact import posterior
from snugdp.noise.exact.filtered import draw
from snugdp.noise.exact.posterior import rounded_posterior
from snugdp.noise.exact.shapes import HALF_NORMAL
from snugdp.numerics.balls import precision as working
from snugdp.numerics.matrices import backward, cholesky, definite, forward
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws.sources import normals_p
from tests.effort import often, repeated

ALPHA = 1e-9  # false alarms of one statistic
UNIT, RIDGE, GAMMA = Fraction(1, 1 << 20), Fraction(1, 100), Fraction(5, 2)
GRID = -24


def table(d: int, n: int = 40, seed: int = 1) -> tuple[list[list[int]], list[int]]:
    rng = np.random.default_rng(seed)
    rows = np.trunc(rng.normal(size=(n, d)) * 300).astype(np.int64)
    target = np.trunc(rng.normal(size=n) * 500).astype(np.int64)
    return (rows.T @ rows).tolist(), (rows.T @ target).tolist()


def whitened(draws: NDArray[np.float64], gram: list[list[int]], cross: list[int]) -> NDArray[np.float64]:
    """The draws in coordinates where they are independent standard normals, if the law is right."""
    A = np.array(gram) * float(UNIT) + float(RIDGE) * np.eye(len(cross))
    mean = np.linalg.solve(A, np.array(cross) * float(UNIT))
    white: NDArray[np.float64] = (draws - mean) @ np.linalg.cholesky(float(GAMMA) * A)
    return white


def drawn(
    n: int, d: int, start: int | None = None, grid: int = GRID
) -> tuple[NDArray[np.float64], list[list[int]], list[int]]:
    gram, cross = table(d)
    draws = [
        rounded_posterior(gram, cross, unit=UNIT, ridge=RIDGE, precision=GAMMA, grid=grid, start=start)
        for _ in range(n)
    ]
    return np.array(draws, dtype=np.float64), gram, cross


@pytest.mark.slow
@repeated
def test_the_law_is_the_same_when_every_draw_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid is finer than the 64 bits that are drawn at first, and precision starts low."""
    attempts: list[int] = []
    enclosure = posterior._enclosure

    def counted(*args: object, **named: object) -> object:
        attempts.append(1)
        return enclosure(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(posterior, "_enclosure", counted)
    draws, gram, cross = drawn(often(1200, 3000), 3, start=8, grid=-100)
    assert len(attempts) >= 4 * len(draws)
    white = whitened(draws, gram, cross)
    assert min(normals_p(white).values()) > ALPHA
    assert normals_p((0.9 if often(0, 1) else 0.85) * white)["scale"] < ALPHA


def test_refinement_reads_on_in_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bits fixed, the answer does not depend on where the precision starts."""
    gram, cross = table(5)
    batch = draw(HALF_NORMAL, 5)
    monkeypatch.setattr(posterior, "draw", lambda shape, n: batch)

    def at(start: int) -> list[Fraction]:
        return rounded_posterior(gram, cross, unit=UNIT, ridge=RIDGE, precision=GAMMA, grid=GRID, start=start)

    assert at(4) == at(64) == at(500)


@pytest.mark.parametrize("d", [1, 9, 10, 11, 23])
def test_degenerate_tables_have_draws(d: int) -> None:
    zero = [[0] * d for _ in range(d)]
    same = [[1 << 40] * d for _ in range(d)]  # rank one
    for gram in (zero, same, [[3 << 90] * d for _ in range(d)]):
        for ridge in (Fraction(1), Fraction(1, 10**12), Fraction(10**9, 7)):
            answer = Exact().posterior(
                Secret(gram), Secret([1 << 30] * d), unit=UNIT, ridge=ridge, precision=GAMMA, grid=GRID
            )
            assert all((value / Fraction(2) ** GRID).denominator == 1 for value in answer)
            assert len(answer) == d


def test_the_mean_of_a_sharp_draw_is_the_exact_solution() -> None:
    """With no noise to speak of, rounding the draw is rounding the solution in rationals."""
    gram, cross = [[5, 2], [2, 9]], [7, -3]
    answer = rounded_posterior(gram, cross, unit=Fraction(1), ridge=Fraction(1), precision=Fraction(10**60), grid=GRID)
    exact = [Fraction(7 * 10 + 3 * 2, 56), Fraction(-3 * 6 - 2 * 7, 56)]
    step = Fraction(2) ** GRID
    assert answer == [step * ((value / step + Fraction(1, 2)).__floor__()) for value in exact]


@pytest.mark.parametrize("noise", [Exact(), Simulation(1)], ids=["exact", "simulation"])
@pytest.mark.parametrize("name", ["unit", "ridge", "precision"])
def test_public_numbers_are_checked_before_anything_is_opened(noise: Noise, name: str) -> None:
    numbers = {"unit": Fraction(1), "ridge": Fraction(1), "precision": Fraction(1)}
    closed: Secret[list[list[int]]] = Secret([])
    with pytest.raises(ValueError, match=f"{name} must be above zero"):
        noise.posterior(closed, Secret([]), **{**numbers, name: Fraction(0)}, grid=0)
    with pytest.raises(TypeError, match=f"{name} must be a Fraction"):
        noise.posterior(closed, Secret([]), **{**numbers, name: 1.0}, grid=0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="grid must be a whole number"):
        noise.posterior(closed, Secret([]), **numbers, grid=True)


@pytest.mark.parametrize("d", [1, 2, 9, 10, 11, 20, 31])
def test_ball_cholesky_encloses(d: int) -> None:
    rng = np.random.default_rng(d)
    whole = rng.integers(-50, 50, size=(d, d))
    lower = np.tril(whole)
    np.fill_diagonal(lower, np.abs(np.diag(lower)) + 1)
    square = lower @ lower.T
    right = rng.integers(-9, 9, size=d)
    with working(200):
        factor = cholesky([[arb(int(x)) for x in row] for row in square])
        assert factor is not None
        assert all(factor[i][j].contains(int(lower[i, j])) for i in range(d) for j in range(i + 1))
        once = forward(factor, [arb(int(x)) for x in lower @ right])
        assert all(ball.contains(int(x)) for ball, x in zip(once, right, strict=True))
        twice = backward(factor, [arb(int(x)) for x in lower.T @ right])
        assert all(ball.contains(int(x)) for ball, x in zip(twice, right, strict=True))
        assert all(ball.rad() < 1e-20 for ball in twice)


def test_definite_is_never_wrong() -> None:
    rng = np.random.default_rng(8)
    seen = set()
    with working(80):
        for _ in range(400):
            d = int(rng.integers(1, 14))
            half = rng.integers(-3, 4, size=(d, d))
            matrix = half @ half.T - int(rng.integers(-2, 12)) * np.eye(d, dtype=np.int64)
            least = np.linalg.eigvalsh(matrix)[0]
            answer = definite([[arb(int(x)) for x in row] for row in matrix])
            seen.add(answer)
            assert answer is not True or least > 1e-9
            assert answer is not False or least < -1e-9
    assert {True, False} <= seen
