"""Perturbed losses: the released cell against 400-bit solutions, on fair and on extreme tables; few readings."""

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.minimiser import PerturbedLoss, check_objective
from snugdp.noise import Exact, Gaussian, Simulation
from snugdp.noise.exact.minimiser import Tilted
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.tables.losses.losses import Huber, LogCosh, Loss, PseudoHuber
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema
from tests.effort import often, repeated, sampled
from tests.noise.exact.test_minimiser import known_draw, rounded

LOSSES: list[Loss] = [LogCosh("0.25"), PseudoHuber("0.1"), Huber("0.3"), LogCosh("0.001")]


def schema(d: int) -> Schema:
    return Schema({**{f"x{j}": Number(-1, 1) for j in range(d)}, "y": Number(-1, 1)}, target="y")


def table(seed: int, n: int, d: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = X @ rng.normal(size=d) / (2 * d) + 0.1 * rng.standard_t(2, size=n)
    return pl.DataFrame({**{f"x{j}": X[:, j] for j in range(d)}, "y": y})


def make(frame: pl.DataFrame, loss: Loss, ridge: Fraction, centre: Sequence[Fraction] | None = None) -> PerturbedLoss:
    public = schema(frame.width - 1)
    return PerturbedLoss(Rows(frame, public), Design.of(public), loss, ridge, centre)


def images(frame: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64], Fraction]:
    import narwhals as nw

    public = schema(frame.width - 1)
    X, y = public.vectors(nw.from_native(frame, eager_only=True))
    row_map = Design.of(public).row_map
    V, w = row_map.integers(X, y)
    return V, w, row_map.unit


def reference(
    frame: pl.DataFrame, loss: Loss, ridge: Fraction, b: list[Fraction], start: list[float]
) -> list[Fraction]:
    """Newton's method at 120 digits from a float start, by formulas of its own."""
    V, w, unit = images(frame)
    with mpmath.workdps(120):
        X = [[mpmath.mpf(int(v)) * unit.numerator / unit.denominator for v in row] for row in V.tolist()]
        y = [mpmath.mpf(int(v)) * unit.numerator / unit.denominator for v in w.tolist()]
        c, lam = number(loss.slope), number(ridge)
        theta, tilt, d = mpmath.matrix(start), mpmath.matrix([number(v) for v in b]), V.shape[1]
        for _ in range(12):
            g, H = lam * theta + tilt, lam * mpmath.eye(d)
            for x, target in zip(X, y, strict=True):
                v = (mpmath.fdot(x, theta) - target) / c
                psi, second = derivatives(loss, v)
                for i in range(d):
                    g[i] += c * psi * x[i]
                    for j in range(d):
                        H[i, j] += second * x[i] * x[j]
            theta -= mpmath.lu_solve(H, g)
            if mpmath.norm(g) < mpmath.mpf(10) ** -100:
                break
        assert mpmath.norm(g) < mpmath.mpf(10) ** -90
        return [Fraction(int(mpmath.nint(value * mpmath.mpf(2) ** 300)), 2**300) for value in theta]


def derivatives(loss: Loss, v: Any) -> tuple[Any, Any]:
    if isinstance(loss, Huber):
        return (v, mpmath.mpf(1)) if abs(v) <= 1 else (mpmath.sign(v), mpmath.mpf(0))
    if isinstance(loss, PseudoHuber):
        return v / mpmath.sqrt(1 + v * v), (1 + v * v) ** mpmath.mpf(-1.5)
    return mpmath.tanh(v), mpmath.sech(v) ** 2


def number(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


@sampled(6)
@pytest.mark.parametrize("grid", [-16, -60, -150])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_released_cell_is_that_of_a_400_bit_solution(loss: Loss, grid: int) -> None:
    for seed, (n, d, ridge) in enumerate([(40, 2, Fraction(1, 2)), (7, 1, Fraction(3)), (25, 3, Fraction(1, 50))]):
        frame = table(seed, n, d)
        draws, exact = known_draw(seed, d + 1)
        sigma = Fraction(2, 3)
        one = make(frame, loss, ridge)
        cells = Tilted(one, draws, sigma, grid).cells()
        b = [sigma * value for value in exact]
        start = one.solve(np.array([float(value) for value in b])).tolist()
        assert cells == rounded(reference(frame, loss, ridge, b, start), grid)


@sampled(4)
@pytest.mark.parametrize("kind", ["zero", "far", "nan", "stale"])
def test_a_useless_solver_costs_time_only(kind: str) -> None:
    class Useless(PerturbedLoss):
        def solve(self, b: NDArray[np.float64]) -> NDArray[np.float64]:
            return b * {"zero": 0.0, "far": 1e9, "nan": math.nan, "stale": 0.0}[kind]

        def correct(self, theta: Sequence[Fraction], residual: NDArray[np.float64]) -> NDArray[np.float64]:
            return -0.3 * residual if kind == "stale" else super().correct(theta, residual)

    frame, public = table(3, 30, 2), schema(2)
    for loss in (LogCosh("0.25"), Huber("0.1")):
        draws, _ = known_draw(11, 3)
        again, _ = known_draw(11, 3)
        fair = Tilted(make(frame, loss, Fraction(2)), draws, Fraction(1), -30).cells()
        useless = Useless(Rows(frame, public), Design.of(public), loss, Fraction(2))
        assert Tilted(useless, again, Fraction(1), -30).cells() == fair


def test_a_centre_shifts_what_the_ridge_pulls_to() -> None:
    frame = table(1, 0, 2)
    draws, exact = known_draw(1, 3)
    centre = [Fraction(1, 3), Fraction(-7), Fraction(5, 2)]
    cells = Tilted(make(frame, LogCosh(1), Fraction(1, 7), centre), draws, Fraction(2), -40).cells()
    assert cells == rounded([m - 14 * value for m, value in zip(centre, exact, strict=True)], -40)


def extreme() -> dict[str, pl.DataFrame]:
    rng = np.random.default_rng(0)
    line = np.linspace(-1, 1, 300)
    columns = {
        "empty": (np.empty((0, 2)), np.empty(0)),
        "one row": (np.ones((1, 2)), np.ones(1)),
        "zeros": (np.zeros((200, 2)), np.zeros(200)),
        "missing": (np.full((50, 2), math.nan), np.full(50, math.nan)),
        "infinite": (np.full((50, 2), math.inf), np.full(50, -math.inf)),
        "same row": (np.full((500, 2), 0.7), np.full(500, -0.4)),
        "fits exactly": (np.stack([line, line], axis=1), line / 2),
        "separated": (np.stack([np.sign(line), line], axis=1), np.sign(line)),
        "outliers": (rng.uniform(-1, 1, (300, 2)), rng.choice([-1.0, 1.0], 300)),
        "tiny": (rng.uniform(-1, 1, (300, 2)) * 1e-9, rng.uniform(-1, 1, 300)),
        "huge": (rng.standard_cauchy((300, 2)) * 1e300, rng.standard_cauchy(300) * 1e300),
    }
    types = {"x0": pl.Float64, "x1": pl.Float64, "y": pl.Float64}
    return {k: pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "y": y}, schema=types) for k, (X, y) in columns.items()}


@sampled(6)
@repeated
@pytest.mark.parametrize("kind", extreme())
def test_extreme_tables_and_settings_neither_raise_nor_warn(kind: str) -> None:
    frame = extreme()[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every, turn = often(2, 1), list(extreme()).index(kind)  # in make test two losses for each table
        losses = (LogCosh("0.25"), Huber("0.001"), PseudoHuber("0.001"), LogCosh("0.000001"))
        for loss in losses[turn % every :: every]:
            for ridge, sigma in ((4, 2), (Fraction(1, 10**6), 1), (10**9, 1), (Fraction(1, 10**12), 10**8)):
                one = make(frame, loss, Fraction(ridge))
                released = Exact().minimiser(Secret(one), Gaussian(sigma), grid=-16)
                assert len(released) == 3
                assert all((value * 2**16).denominator == 1 for value in released)


@pytest.mark.parametrize("room", ["none", "little"])
def test_tables_that_are_not_kept_in_memory_give_the_same(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table(8, 9000, 2)

    def cells() -> list[int]:
        return Tilted(make(frame, LogCosh("0.25"), Fraction(2)), known_draw(4, 3)[0], Fraction(1), -30).cells()

    expected = cells()
    if room == "none":
        monkeypatch.setattr(Rows, "images", lambda self: None)
    else:
        monkeypatch.setattr("snugdp.tables.rows.MAX_BYTES", 60_000)
    assert cells() == expected


def test_few_readings_and_the_first_level_decides() -> None:
    frame = table(5, 20_000, 4)
    one = make(frame, LogCosh("0.25"), Fraction(4))
    for _ in range(20):
        before = one.sweeps
        Exact().minimiser(Secret(one), Gaussian(2), grid=-16)
        assert one.sweeps - before <= 2  # exact ones
    theta = [Fraction(value) for value in one.solve(np.zeros(5)).tolist()]
    gradient, error = one.gradient(theta, 0)
    radius = (sum(abs(value) for value in gradient) + error) / one.modulus
    assert 2 * 5 * radius * 2**16 < Fraction(1, 10**4)  # about the chance of a second level


def test_simulated_noise_gives_the_float_solution() -> None:
    one = make(table(5, 200, 2), LogCosh("0.25"), Fraction(4))
    released = Simulation(3).minimiser(Secret(one), Gaussian(2), grid=-20)
    b = np.random.default_rng(3).normal(0.0, 2.0, 3)
    np.testing.assert_allclose([float(value) for value in released], one.solve(b), atol=2.0**-20)


def test_a_table_that_vanishes_is_a_private_failure(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table(1, 50, 2).write_parquet(path)
    rows = Rows(path, schema(2))
    path.write_bytes(b"")
    secret = Secret(rows).map(lambda held: PerturbedLoss(held, Design.of(schema(2)), LogCosh(1), Fraction(1)))
    with pytest.raises(PrivateComputationError) as caught:
        Exact().minimiser(secret, Gaussian(1), grid=-10)
    assert caught.value.__context__ is None


def test_public_mistakes_are_refused() -> None:
    design = Design.of(schema(2))
    with pytest.raises(ValueError, match="ridge"):
        check_objective(design, LogCosh(1), Fraction(0), [Fraction(0)] * 3)
    with pytest.raises(ValueError, match="3 entries"):
        check_objective(design, LogCosh(1), Fraction(1), [Fraction(0)] * 2)
    with pytest.raises(TypeError, match="LogCosh"):
        check_objective(design, object(), Fraction(1), [Fraction(0)] * 3)  # type: ignore[arg-type]
    assert repr(make(table(1, 3, 2), LogCosh(1), Fraction(1))) == "<private perturbedloss>"
