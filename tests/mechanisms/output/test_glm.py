"""The minimiser plus noise: certified points and Hessians, sensitivities attacked through the code, exact deltas."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtr
from scipy.stats import norm

from snugdp import Budget, BudgetExceededError, MemoryLedger, Refused, Simulation
from snugdp.accounting import gaussian
from snugdp.accounting.output.glm import ShapedNoise, displacement
from snugdp.mechanisms.output.glm import CurvatureCertificate, OutputGLM, SettledPoint, Shape
from snugdp.noise import Gaussian
from snugdp.numerics.ridge import smallest_eigenvalue
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, Loss, PseudoHuber, SoftHinge, TamedPoisson
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Schema
from tests.effort import often, repeated, sampled
from tests.mechanisms.objective.tables import BUDGET, DESIGN, LINE, LINE_DESIGN, SCHEMA, frame, images

LOSSES: list[Loss] = [Logistic(), SoftHinge("0.5"), PseudoHuber("0.4"), LogCosh("0.4"), TamedPoisson(3, 2)]
SHAPES: list[Shape] = ["iso", "hessian"]


def settled(method: OutputGLM, table: pd.DataFrame, schema: Schema = SCHEMA) -> SettledPoint:
    return method._settled(Rows(table, schema), method.ridges[0])


def floats(point: SettledPoint) -> tuple[np.ndarray, np.ndarray]:
    return np.array([float(v) for v in point.theta]), np.array([[float(v * point.unit) for v in r] for r in point.gram])


# --- points and Hessians ---


def test_the_point_has_a_small_gradient_and_the_matrix_is_its_hessian() -> None:
    method, table = OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge="1.5"), frame(300)
    theta, hessian = floats(settled(method, table))
    X, y = images(table)
    y = np.sign(y)
    p = expit(-y * (X @ theta))
    assert np.linalg.norm(-X.T @ (y * p) + 1.5 * theta) <= float(method.tolerance) * (1 + 1e-6)
    assert np.allclose(hessian, (X.T * (p * (1 - p))) @ X, rtol=1e-12)


def test_streamed_tables_give_the_same_hessian_at_points_as_good(tmp_path: Path) -> None:
    table = frame(2000, 4)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    method = OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=1)
    memory = settled(method, table)
    disk = method._settled(Rows(str(tmp_path / "rows.parquet"), SCHEMA), Fraction(1))
    assert np.allclose(floats(memory)[0], floats(disk)[0], atol=1e-6)
    assert np.allclose(floats(memory)[1], floats(disk)[1], rtol=1e-5)


@pytest.mark.slow
def test_a_start_that_is_of_no_use_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from snugdp.mechanisms.objective import minimiser

    method, table = OutputGLM(DESIGN, BUDGET, loss=SoftHinge("0.2"), ridge=1), frame(20)
    good = floats(settled(method, table))[0]
    monkeypatch.setattr(minimiser.PerturbedLoss, "solve", lambda self, b: np.array([math.nan] * 3))
    assert np.allclose(floats(settled(method, table))[0], good, atol=1e-4)
    monkeypatch.setattr(minimiser.PerturbedLoss, "correct", lambda self, theta, residual: residual * math.inf)
    assert np.allclose(floats(settled(method, table))[0], good, atol=1e-4)


# --- sensitivities ---


def chain(loss: Loss, seed: int, steps: int) -> list[pd.DataFrame]:
    """Tables that grow by one row: typical ones, longest ones, and ones against the model so far."""
    rng = np.random.default_rng(seed)
    rows: list[list[float]] = []
    tables = []
    for step in range(steps):
        x = rng.uniform(-1, 1, 2) if rng.random() < 0.4 else rng.choice([-1.0, 1.0], 2)
        far = 1.0 if (step // 9) % 2 else float(rng.choice([-1.0, 1.0]))
        rows.append([*x, far if rng.random() < 0.8 else -far])
        tables.append(pd.DataFrame(rows, columns=["a", "b", "y"]))
    return tables


@sampled(6)
@repeated
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_one_row_moves_curvature_and_minimiser_as_little_as_is_claimed(loss: Loss) -> None:
    """Both directions of every pair in long chains, through the code that is released."""
    worst_curvature = worst_move = 0.0
    for ridge, seed in (("0.05", 1), ("0.5", 2), ("5", 3)):
        method = OutputGLM(DESIGN, BUDGET, loss=loss, ridge=ridge)
        points = [settled(method, table) for table in chain(loss, seed, often(12, 24))]
        values = [smallest_eigenvalue(point.gram, point.unit, method.close) for point in points]
        for (one, low), (other, high) in zip(
            zip(points, values, strict=True), zip(points[1:], values[1:], strict=True), strict=False
        ):
            moved = abs(high - low)
            assert moved <= method.sensitivity
            worst_curvature = max(worst_curvature, float(moved / method.sensitivity))
            gap = math.dist(floats(one)[0], floats(other)[0])
            for value in (low, high):
                safe = max(Fraction(0), value - 2 * method.close)
                limit = displacement(safe, Fraction(ridge), method.constants.gradient, method.constants.ratio)
                assert gap <= limit
                worst_move = max(worst_move, gap / limit)
    assert worst_curvature > 0.05
    assert worst_move > 0.25


@pytest.mark.slow
def test_many_random_neighbours_of_one_coefficient_come_close_to_the_bound() -> None:
    rng, worst = np.random.default_rng(5), 0.0
    for _ in range(5):
        method = OutputGLM(LINE_DESIGN, BUDGET, loss=Logistic(), ridge=float(10 ** rng.uniform(-2, 0.5)))
        rows = np.column_stack([np.ones(40), np.where(rng.random(40) < rng.uniform(0.5, 1), 1.0, -1.0)])
        last: Fraction | None = None
        for n in range(1, 41):
            point = settled(method, pd.DataFrame(rows[:n], columns=["a", "y"]), LINE)
            value = smallest_eigenvalue(point.gram, point.unit, method.close)
            if last is not None:
                assert abs(value - last) <= method.sensitivity
                worst = max(worst, float(abs(value - last) / method.sensitivity))
            last = value
    assert worst > 0.3


# --- exact deltas of the whole algorithm, one coefficient ---


def exact_delta(method: OutputGLM, one: SettledPoint, other: SettledPoint, epsilon: float, slack: float = 0.0) -> float:
    """Test and release together: over the noisy curvature, and for each over the released coefficient."""
    (theta, matrix), (theta2, matrix2) = floats(one), floats(other)
    low, high = matrix[0, 0], matrix2[0, 0]
    deviation = method._plan.test_noise(method.sensitivity, 1)
    margin = method._plan.margin(method.sensitivity, 1)
    s = np.linspace(low - 7 * deviation, low + 9 * deviation, 81)
    weight = norm.pdf(s, low, deviation) * (s[1] - s[0])
    ratio = norm.logpdf(s, high, deviation) - norm.logpdf(s, low, deviation)
    total, ridge, t = 0.0, float(method.ridges[0]), np.linspace(-12, 12, 1201)
    for at, mass, tilt in zip(s, weight, ratio, strict=True):
        bound = Fraction(max(0.0, at - margin + slack))
        gamma = method._gamma(method.ridges[0], bound) if method.shape == "hessian" else None
        if gamma is None:
            first = second = method._deviation(method.ridges[0], bound)
        else:
            first, second = 1 / math.sqrt(gamma * (low + ridge)), 1 / math.sqrt(gamma * (high + ridge))
        values = theta[0] + first * t
        p = norm.pdf(t) * (t[1] - t[0])
        q = np.exp(epsilon + tilt + norm.logpdf(values, theta2[0], second) - norm.logpdf(values, theta[0], first))
        total += mass * float((p * np.maximum(0, 1 - q)).sum())
    return total + float(ndtr(-9))


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_pair_of_neighbours_leaks_more_than_the_budget(shape: Shape) -> None:
    budget = Budget(1, 1e-5)
    method = OutputGLM(LINE_DESIGN, budget, loss=Logistic(), ridge=5, shape=shape)
    found = []
    forced = [[0.01, -1.0]] * 4000  # hardly any curvature, and the new row against them
    for rows in (forced, [[1.0, 1.0]] * 30 + [[1.0, -1.0]] * 2, [[1.0, 1.0]] * 900 + [[1.0, -1.0]] * 700):
        for new in ([1.0, -1.0], [1.0, 1.0]):
            less, more = (settled(method, pd.DataFrame(r, columns=["a", "y"]), LINE) for r in (rows, [*rows, new]))
            found += [exact_delta(method, less, more, 1.0), exact_delta(method, more, less, 1.0)]
    assert max(found) <= 1e-5
    assert max(found) > 5e-8


def test_without_its_margin_the_test_would_not_do() -> None:
    method = OutputGLM(LINE_DESIGN, Budget(1, 1e-5), loss=Logistic(), ridge="0.05")
    rows = [[1.0, 1.0]] * 40
    less, more = (settled(method, pd.DataFrame(r, columns=["a", "y"]), LINE) for r in (rows, [*rows, [1.0, -1.0]]))
    margin = method._plan.margin(method.sensitivity, 1)
    assert exact_delta(method, less, more, 1.0) <= 1e-5
    assert exact_delta(method, less, more, 1.0, slack=2 * margin) > 1e-5


# --- releases ---


@sampled(6)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_it_never_refuses_and_its_certificate_holds(loss: Loss, shape: Shape) -> None:
    method = OutputGLM(DESIGN, BUDGET, loss=loss, shape=shape)
    assert method.plan().cost.fits(BUDGET)
    for n in (0, 1, 200):
        outcome = method.fit(Secret(Rows(frame(n), SCHEMA)), ReleaseContext(budget=BUDGET))
        assert outcome.value is not None
        certificate = outcome.certificate
        assert isinstance(certificate, CurvatureCertificate)
        assert outcome.value.released["ridge"] == certificate.ridge
        assert outcome.value.noise is not None
        for place, bound in enumerate(certificate.curvatures):
            point = method._settled(Rows(frame(n), SCHEMA), method.ridges[place])
            assert bound <= float(np.linalg.eigvalsh(floats(point)[1])[0]) + 1e-9


def test_shaped_noise_has_the_shape_of_the_hessian() -> None:
    method = OutputGLM(DESIGN, Budget(4, 1e-6), loss=Logistic(), ridge=1, shape="hessian")
    rows = Secret(Rows(frame(8000), SCHEMA))
    theta, hessian = floats(settled(method, frame(8000)))
    points, drawn = method.settle(rows), []
    for seed in range(60):
        fit = method.draw(points, method.certify(points, Simulation(seed)), Simulation(1000 + seed))
        drawn.append((fit.theta - theta) * math.sqrt(fit.released["gamma"]))
    square = np.linalg.cholesky(hessian + np.eye(3)).T
    white = np.array(drawn) @ square.T
    assert np.allclose(np.cov(white.T), np.eye(3), atol=0.8)
    assert abs(white.mean()) < 0.25
    exact = method.fit(rows, ReleaseContext(budget=Budget(4, 1e-6))).value
    assert exact is not None
    assert np.linalg.norm(square @ (exact.theta - theta)) * math.sqrt(exact.released["gamma"]) < 7


@pytest.mark.parametrize("ridge", ["0.3", "1/3", 7])
def test_the_middle_of_the_shaped_law_is_the_point_exactly(ridge: Any) -> None:
    """The linear system that is handed over has the point as its solution, whatever the units are."""
    seen: dict[str, Any] = {}

    class Shown(Simulation):
        def posterior(self, gram: Any, cross: Any, **public: Any) -> list[Fraction]:
            seen.update(gram=gram._value, cross=cross._value, **public)
            return super().posterior(gram, cross, **public)

    method = OutputGLM(DESIGN, Budget(4, 1e-3), loss=SoftHinge("0.3"), ridge=ridge, shape="hessian")
    table = frame(3000)
    point = settled(method, table)
    method._shaped(Secret(point), method.ridges[0], Fraction(1, 3), {"curvature": 1.0}, Shown(1))
    for row, right, entry in zip(seen["gram"], seen["cross"], point.theta, strict=True):
        left = sum(a * b for a, b in zip(row, point.theta, strict=True)) * seen["unit"] + method.ridges[0] * entry
        assert left == right * seen["unit"]
    assert float(seen["gram"][0][0] * seen["unit"]) == pytest.approx(floats(point)[1][0, 0], rel=1e-12)
    assert seen["ridge"] == method.ridges[0]


def test_what_is_drawn_has_the_divergence_that_the_certificate_affords() -> None:
    """The precision that noise is asked for, through the theorem: rows with their intercept have length root 2."""
    seen: list[Fraction] = []

    class Shown(Simulation):
        def posterior(self, gram: Any, cross: Any, **public: Any) -> list[Fraction]:
            seen.append(public["precision"])
            return super().posterior(gram, cross, **public)

    method = OutputGLM(DESIGN, Budget(4, 1e-3), loss=Logistic(), ridge=1, shape="hessian")
    certificate = method.fit(Secret(Rows(frame(3000), SCHEMA)), ReleaseContext(Shown(1))).certificate
    assert isinstance(certificate, CurvatureCertificate)
    assert DESIGN.x_squared == 2
    root, split = Fraction(math.sqrt(2)), method._plan
    noise = ShapedNoise(split.order, Fraction(certificate.curvature), Fraction(1), root, root, Fraction(2))
    drawn = noise.divergence(seen[0])
    assert 0.999 * float(split.divergence) < drawn <= float(split.divergence)


def test_more_rows_mean_less_noise_and_a_smaller_ridge() -> None:
    noises = []
    for n in (300, 5000, 60_000):
        method = OutputGLM(DESIGN, BUDGET, loss=Logistic(), rows=n)
        outcome = method.fit(Secret(Rows(frame(n), SCHEMA)), ReleaseContext(Simulation(2)))
        assert outcome.value is not None
        noises.append(outcome.value.noise or 0.0)
        assert method.forecast(n).noise < 1
    assert noises[0] > 2 * noises[1] > 4 * noises[2]


def test_iso_is_charged_as_a_gaussian_and_shaped_as_a_whole() -> None:
    iso, shaped = (OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=1, shape=shape).plan().cost for shape in SHAPES)
    assert iso.mu_squared > 0
    assert iso.epsilon == 0
    assert (shaped.mu_squared, shaped.epsilon, shaped.delta) == (Fraction(0), Fraction(1), Fraction(1, 10**6))
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    method = OutputGLM(DESIGN, BUDGET, loss=Logistic(), shape="hessian")
    assert not method.fit(Secret(Rows(frame(50), SCHEMA)), ReleaseContext(ledger=ledger)).refused
    with pytest.raises(Exception, match="budget"):
        method.fit(Secret(Rows(frame(50), SCHEMA)), ReleaseContext(ledger=ledger))


def test_the_noise_of_the_test_covers_all_ridges_and_errors() -> None:
    one = OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=1)
    four = OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=[1, 2, 4, 8])
    laws: list[Gaussian] = []

    class Shown(Simulation):
        def add(self, value: Any, law: Any, **rest: Any) -> Fraction:
            laws.append(law)
            return super().add(value, law, **rest)

    for method in (one, four):
        points = Secret([settled(replace_ridge(method, ridge), frame(50)) for ridge in method.ridges])
        method.certify(points, Shown(1))
    share = Fraction(3, 20) * Fraction(gaussian.mu(1, Fraction(9, 10**7))) ** 2
    assert all(law.sigma == laws[1].sigma for law in laws[1:])
    assert float(laws[1].sigma / laws[0].sigma) == pytest.approx(2, rel=1e-6)
    assert float(laws[0].sigma ** 2 * share) == pytest.approx(float(one.sensitivity) ** 2, rel=1e-9)
    assert laws[0].sigma ** 2 * share >= one.sensitivity**2
    assert method.sensitivity > DESIGN.x_squared


def replace_ridge(method: OutputGLM, ridge: Fraction) -> OutputGLM:
    return OutputGLM(method.design, method.budget, loss=method.loss, ridge=ridge)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OutputGLM(DESIGN, Budget(1), loss=Logistic()), "delta > 0"),
        (lambda: OutputGLM(DESIGN, Budget(1, 1e-6, "replace"), loss=Logistic()), "add_remove"),
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Huber(1)), "smooth"),
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=0), "ridge must be"),
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=1e-20), "between 1e-15"),
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=[]), "up to 4"),
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Logistic(), ridge=[1, 2, 3, 4, 5]), "up to 4"),
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Logistic(), shape="round"), "iso"),  # type: ignore[arg-type]
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Logistic(), test_share=1), "test_share"),
        (lambda: OutputGLM(DESIGN, BUDGET, loss=Logistic(), rows=-3), "whole number above 0"),
    ],
)
def test_bad_numbers_are_refused_in_public(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_rows_of_another_design_are_a_private_failure() -> None:
    method = OutputGLM(LINE_DESIGN, BUDGET, loss=Logistic(), ridge=1)
    ledger = MemoryLedger(BUDGET.epsilon, BUDGET.delta, composition="tight")
    outcome = method.fit(Secret(Rows(frame(5), SCHEMA)), ReleaseContext(ledger=ledger))
    assert isinstance(outcome, Refused)  # paid for, and without a reason
    assert ledger.spent == method.plan().cost
    with pytest.raises(BudgetExceededError):  # before a row is read
        method.fit(Secret(Rows(frame(5), SCHEMA)), ReleaseContext(ledger=ledger))
