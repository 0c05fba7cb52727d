"""The exact rounded minimiser: against rational solutions, with adversarial gradients and useless solvers; its law."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from snugdp.noise import Exact, Gaussian, Laplace, Simulation
from snugdp.noise.exact.deviate import Deviate
from snugdp.noise.exact.minimiser import Tilted, norm_above
from snugdp.noise.exact.refine import Bits
from snugdp.secrecy.secret import PrivateComputationError, Secret
from tests.effort import sampled

KNOWN = 6000  # bits of a draw that a test knows


@dataclass
class Quadratic:
    """theta'A theta / 2 - c'theta with rational A, c; the gradient is off by as much as it says, in a bad direction."""

    A: list[list[Fraction]]
    c: list[Fraction]
    modulus: Fraction
    start: Any = None
    step: Any = None
    errors: bool = True
    levels: list[int] = field(default_factory=list)

    @property
    def dimension(self) -> int:
        return len(self.c)

    @property
    def smoothness(self) -> Fraction:
        return sum((abs(value) for row in self.A for value in row), Fraction(0))

    def solve(self, b: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.start is not None:
            return np.asarray(self.start(b))
        A = np.array([[float(value) for value in row] for row in self.A])
        return np.linalg.solve(A, np.array([float(value) for value in self.c]) - b)

    def gradient(self, theta: Sequence[Fraction], level: int) -> tuple[list[Fraction], Fraction]:
        self.levels.append(level)
        error = Fraction(1, 2 ** (30 << level)) if self.errors else Fraction(0)
        shift = error if len(self.levels) % 2 else -error
        value = [
            sum((a * t for a, t in zip(row, theta, strict=True)), -c) for row, c in zip(self.A, self.c, strict=True)
        ]
        return [value[0] + shift, *value[1:]], error

    def correct(self, theta: Sequence[Fraction], residual: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.step is not None:
            return np.asarray(self.step(residual))
        A = np.array([[float(value) for value in row] for row in self.A])
        return -np.linalg.solve(A, residual)


def problem(seed: int, d: int, **options: Any) -> Quadratic:
    rng = np.random.default_rng(seed)
    root = rng.integers(-3, 4, (d, d))
    ridge = Fraction(int(rng.integers(1, 9)), 4)
    A = [
        [Fraction(int(v)) + (ridge if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(root @ root.T)
    ]
    return Quadratic(A, [Fraction(int(v), 7) for v in rng.integers(-9, 10, d)], ridge, **options)


def known_draw(seed: int, d: int) -> tuple[list[Deviate], list[Fraction]]:
    """Draws of which thousands of bits are read already, and their values to that many bits."""
    rng = np.random.default_rng(seed)
    values = [int.from_bytes(rng.bytes(KNOWN // 8), "big") for _ in range(d)]
    whole, negative = rng.integers(0, 3, d).tolist(), (rng.random(d) < 0.5).tolist()
    draws = [Deviate(n, k, Bits(v >> (KNOWN - 64), 64)) for n, k, v in zip(negative, whole, values, strict=True)]
    for one, value in zip(draws, values, strict=True):
        one.fraction.__class__ = type("KnownBits", (Bits,), {"__slots__": (), "extend": reading(value)})
    exact = [
        (-1 if n else 1) * (k + Fraction(2 * v + 1, 2 << KNOWN))
        for n, k, v in zip(negative, whole, values, strict=True)
    ]
    return draws, exact


def reading(value: int) -> Any:
    def extend(self: Bits, count: int) -> None:
        assert count <= KNOWN, "the test does not know so many bits"
        if count > self.count:
            self.value, self.count = value >> (KNOWN - count), count

    return extend


def solution(problem: Quadratic, b: list[Fraction]) -> list[Fraction]:
    d = problem.dimension
    A = fmpq_mat(d, d, [fmpq(v.numerator, v.denominator) for row in problem.A for v in row])
    right = [c - t for c, t in zip(problem.c, b, strict=True)]
    found = A.solve(fmpq_mat(d, 1, [fmpq(v.numerator, v.denominator) for v in right]))
    return [Fraction(int(found[i, 0].p), int(found[i, 0].q)) for i in range(d)]


def rounded(theta: list[Fraction], grid: int) -> list[int]:
    return [math.floor(value / Fraction(2) ** grid + Fraction(1, 2)) for value in theta]


NASTY: dict[str, dict[str, Any]] = {
    "fair": {},
    "zero start": {"start": lambda b: 0 * b},
    "far start": {"start": lambda b: 0 * b + 1e12},
    "no number": {"start": lambda b: b * math.nan},
    "wrong shape": {"start": lambda b: np.zeros(len(b) + 1)},
    "no step": {"step": lambda r: 0 * r},
    "wrong step": {"start": lambda b: 0 * b, "step": lambda r: r},
    "infinite step": {"start": lambda b: 0 * b, "step": lambda r: r / 0.0},
    "short step": {"start": lambda b: 0 * b, "step": lambda r: -0.01 * r},
}


@sampled(8)
@pytest.mark.parametrize("grid", [3, -10, -45, -100, -333])
@pytest.mark.parametrize("kind", NASTY)
def test_the_cell_is_that_of_the_exact_solution(kind: str, grid: int) -> None:
    slow = "step" in kind  # plain descent takes as many steps as there are digits, times the condition
    if slow and grid < (-45 if kind == "no step" else -10):
        return
    for seed in range(2 if slow else 4):
        d = 1 + seed % 3
        one = problem(seed, d, **NASTY[kind])
        draws, exact = known_draw(seed + 100, d)
        sigma = Fraction(seed + 1, 3)
        cells = Tilted(one, draws, sigma, grid).cells()
        assert cells == rounded(solution(one, [sigma * value for value in exact]), grid)
        assert max(one.levels) >= (3 if grid == -333 else 1 if grid < -30 else 0)


def test_a_minimiser_close_to_a_boundary_is_refined_and_still_right() -> None:
    """The solution is put a 2**-150 away from a boundary, on either side."""
    for side in (-1, 1):
        draws, exact = known_draw(7, 1)
        tilt = exact[0] / 3
        c = tilt + 2 * (Fraction(5, 2) + Fraction(side, 2**150))
        one = Quadratic([[Fraction(2)]], [c], Fraction(2))
        assert Tilted(one, draws, Fraction(1, 3), 0).cells() == [3 if side > 0 else 2]
        assert max(one.levels) >= 2


def test_without_errors_only_bits_of_the_draw_are_missing() -> None:
    one = problem(3, 3, errors=False)
    draws, exact = known_draw(9, 3)
    assert Tilted(one, draws, Fraction(5), -200).cells() == rounded(solution(one, [5 * v for v in exact]), -200)


def test_failures_tell_nothing() -> None:
    @dataclass
    class Broken(Quadratic):
        def solve(self, b: NDArray[np.float64]) -> NDArray[np.float64]:
            raise ValueError("somebody's value")

    broken = problem(1, 2)
    secret = Secret(Broken(broken.A, broken.c, broken.modulus))
    for source in (Exact(), Simulation(1)):
        with pytest.raises(PrivateComputationError) as caught:
            source.minimiser(secret, Gaussian(1), grid=0)
        assert caught.value.__context__ is None
        assert "somebody" not in str(caught.value)


def test_public_mistakes_are_refused_before_anything_happens() -> None:
    one = problem(1, 2)
    for source in (Exact(), Simulation(1)):
        with pytest.raises(TypeError, match="Gaussian"):
            source.minimiser(Secret(one), Laplace(1), grid=0)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="grid"):
            source.minimiser(Secret(one), Gaussian(1), grid=0.5)  # type: ignore[arg-type]
    assert one.levels == []


def test_norms_are_bounds_from_above() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = Fraction(2) ** int(rng.integers(-400, 400))
        values = [size * Fraction(int(v), 1 + int(w)) for v, w in rng.integers(0, 10**6, (3, 2))]
        square, norm = sum(v * v for v in values), norm_above(values)
        assert norm**2 >= square
        assert (norm * (1 - Fraction(1, 2**40))) ** 2 <= square
    assert norm_above([Fraction(0)]) == 0
