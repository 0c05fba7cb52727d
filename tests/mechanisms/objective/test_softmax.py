"""Softmax by objective perturbation: sums with proved errors, exact minimisers, exact deltas, refusals."""

import math
import pickle
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from flint import arb, fmpq
from sklearn.linear_model import LogisticRegression

from snugdp import Budget, Simulation
from snugdp.mechanisms.objective.adaptive import AdaptiveGLM, recommended
from snugdp.mechanisms.objective.glm import GLMObjective
from snugdp.mechanisms.objective.minimiser import PerturbedLoss
from snugdp.mechanisms.objective.perturbation import SoftmaxModel
from snugdp.noise import Exact
from snugdp.numerics.balls import precision
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Logistic, Softmax
from snugdp.tables.passes.derivatives.softmax import SoftmaxGradient, softmax
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema
from tests.accounting.objective.glm_laws import Classifier
from tests.accounting.objective.perturbed import deltas
from tests.accounting.objective.test_multiclass import log_density
from tests.effort import sampled
from tests.mechanisms.objective.tables import BUDGET, DESIGN, LINE, LINE_DESIGN, SCHEMA, frame, images, secret
from tests.tables.passes.derivatives.test_gradient import distance

LIMIT = 1 << 20


def strange(n: int, seed: int) -> pd.DataFrame:
    table = frame(n, seed, "class")
    table.iloc[:4] = [[math.nan, 1.0, 0.3], [math.inf, -math.inf, math.nan], [1e308, 5e-324, 7.0], [0, 0, -0.4]]
    return table


def folded(work: SoftmaxGradient, table: pd.DataFrame) -> Any:
    return work.fold(work.empty(), nw.from_native(table, eager_only=True))


# --- the pass ---


@sampled(2)
@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("size", [1, 40, 20_000])
def test_every_row_is_within_the_proved_error(level: int, size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(4):
        theta = [Fraction(int(v), 2**20) for v in rng.integers(-size * 2**20, size * 2**20 + 1, 5)]
        theta[1] = theta[0] + Fraction(1, 2**19)  # two classes that are hard to tell apart
        work = SoftmaxGradient(LINE, theta, 5, level=level)
        for t, w in rng.integers(-LIMIT, LIMIT + 1, (40 if level == 0 else 8, 2)).tolist():
            state = work.empty()
            work.add(state, np.array([[float(t)]]), np.array([float(w)]))
            found, error = work.gradient(state)
            mine = round((w / LIMIT + 1) * 2)
            with precision(400):
                u = [arb(fmpq(*(value * Fraction(t, LIMIT)).as_integer_ratio())) for value in theta]
                total = sum(((v - max(u, key=float)).exp() for v in u), arb(0))
                square = arb(0)
                for k, (v, value) in enumerate(zip(u, found, strict=True)):
                    true = ((v - max(u, key=float)).exp() / total - (k == mine)) * arb(fmpq(t, LIMIT))
                    off = true - arb(fmpq(*value.as_integer_ratio()))
                    square += off * off
                assert square.upper().sqrt() <= arb(fmpq(*error.as_integer_ratio())), (theta, t, w)


def test_levels_agree_and_errors_shrink_also_for_points_that_floats_cannot_hold() -> None:
    rng, table = np.random.default_rng(3), strange(60, 1)
    theta = [Fraction(int(v), 2**70) for v in rng.integers(-(2**62), 2**62, 9)]
    results = [(w := SoftmaxGradient(SCHEMA, theta, 3, level=level)).gradient(folded(w, table)) for level in range(3)]
    for (rough, error), (fine, small) in pairwise(results):
        assert small < error / 2**40
        assert distance(rough, fine) <= error + small
    far = SoftmaxGradient(SCHEMA, [value * 2**40 for value in theta], 3)
    assert far.slope_bits == 100


@pytest.mark.parametrize("level", [0, 1])
def test_every_order_and_partition_gives_the_same_sums(level: int, tmp_path: Path) -> None:
    table = strange(400, 2)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=90)
    theta = [Fraction(k - 4, 8) for k in range(9)]
    work = pickle.loads(pickle.dumps(SoftmaxGradient(SCHEMA, theta, 3, level=level, hessian=True)))
    whole = folded(work, table)
    parts = [folded(work, table[i::3]) for i in (1, 2, 0)]
    merged = work.merge(work.merge(parts[0], parts[1]), work.unpack(work.pack(parts[2])))
    assert merged.sums == whole.sums == Rows(str(tmp_path / "rows.parquet"), SCHEMA).state(work).sums
    assert np.allclose(merged.second, whole.second, rtol=1e-9, atol=1e-3)
    held = Rows(table, SCHEMA)
    assert held.images() is not None
    assert held.state(work).sums == whole.sums
    with pytest.raises(ValueError, match="not statistics"):
        SoftmaxGradient(SCHEMA, theta, 3, level=level + 2).unpack(work.pack(whole))


def test_the_hessian_is_the_derivative_of_the_gradient() -> None:
    table, step = frame(50, 4, "class"), Fraction(1, 2**12)
    theta = [Fraction(k - 4, 8) for k in range(9)]
    at = SoftmaxGradient(SCHEMA, theta, 3, level=0, hessian=True)
    second = at.second(folded(at, table))
    for j in range(9):
        ends = []
        for sign in (1, -1):
            work = SoftmaxGradient(SCHEMA, [v + sign * step * (i == j) for i, v in enumerate(theta)], 3)
            ends.append(np.array([float(v) for v in work.gradient(folded(work, table))[0]]))
        assert np.allclose((ends[0] - ends[1]) / (2 * float(step)), second[j], atol=1e-4)
    assert softmax(np.array([[800.0, 0.0, -800.0]])).sum() == 1.0


# --- the minimiser and its law ---


def test_without_noise_it_is_the_minimiser_of_scikit_learn() -> None:
    table = frame(500, 5, "class")
    X, y = images(table)
    model = SoftmaxModel(DESIGN, Softmax(3), Fraction(10**9), Fraction(2))
    found = np.array([float(v) for v in model.draw(secret(table), Exact())]).reshape(3, 3)
    true = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, np.rint(y))
    assert np.allclose(found, true.coef_, atol=5e-5)


@pytest.mark.slow
def test_what_comes_out_has_the_law_of_the_theorem() -> None:
    """With two classes the difference of coefficients is a logistic model of rows that are sqrt(2) times as long."""
    table = pd.DataFrame({"a": [1.0, -1.0, 0.5], "y": [1.0, 1.0, -1.0]})
    model = SoftmaxModel(LINE_DESIGN, Softmax(2), Fraction(1, 2), Fraction(2))
    rows = [math.sqrt(2), -math.sqrt(2), -math.sqrt(0.5)]  # times their labels
    law = Classifier(rows, [0.0] * 3, "logistic", 1.0, 2.0, float(model.sigma))
    noise = Simulation(5)
    drawn = np.array([[float(v) for v in model.draw(secret(table, LINE), noise)] for _ in range(100)])
    tilts = np.array([law.tilt(float(theta)) for theta in (drawn[:, 1] - drawn[:, 0]) / math.sqrt(2)])
    assert abs(tilts.mean()) < 0.35
    assert 0.65 < (tilts**2).mean() < 1.5
    across = (drawn[:, 1] + drawn[:, 0]) / math.sqrt(2) * 2 / float(model.sigma)
    assert 0.65 < (across**2).mean() < 1.5


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_two_classes_leak_no_more_than_the_budget(epsilon: float) -> None:
    model = GLMObjective(LINE_DESIGN, Budget(epsilon, 1e-5), losses=(Softmax(2),)).run
    found = []
    for force in np.linspace(-30, 30, 31):
        ridge = float(model.ridge)
        less = Classifier([], [], "logistic", 1.0, ridge, float(model.sigma), float(force) / ridge)
        more = less.more(math.sqrt(2))
        found += [*deltas(less, more, [epsilon]), *deltas(more, less, [epsilon])]
    assert 1e-7 < max(found) <= 1e-5


@pytest.mark.slow
def test_three_classes_leak_no_more_than_the_budget() -> None:
    model = GLMObjective(LINE_DESIGN, Budget(1, 1e-3), losses=(Softmax(3),)).run
    ridge, sigma = float(model.ridge), float(model.sigma)
    reach = (6 * sigma + 8) / ridge
    axis = np.linspace(-reach, reach, 201)
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    area, found = (axis[1] - axis[0]) ** 2, []
    for labels in ([], [0, 0, 0], [0, 1, 2], [1] * 6):
        less, more = (
            np.exp(log_density([(1.0, label) for label in rows], theta, np.zeros(2), ridge, sigma))
            for rows in (labels, [*labels, 0])
        )
        assert less.sum() * area == pytest.approx(1, abs=1e-4)
        found += [
            float(np.maximum(one - math.e * other, 0).sum() * area) for one, other in ((less, more), (more, less))
        ]
    assert 1e-6 < max(found) <= 1e-3


# --- the methods ---


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_plans_fit_and_use_up_the_budget(epsilon: float, classes: int) -> None:
    budget = Budget(epsilon, 1e-6)
    for make in (GLMObjective, AdaptiveGLM):
        method = make(DESIGN, budget, losses=(Softmax(classes),))
        assert method.plan().cost.fits(budget)
        assert method.cost == method.plan().cost
        assert method.cost.delta_at(epsilon) > 0.95e-6
        assert method.forecast(10_000).noise < method.forecast(10).noise
    model = GLMObjective(DESIGN, budget, losses=(Softmax(classes),)).run
    assert model.run.m_squared * model.sigma**2 == 2 * DESIGN.x_squared
    assert model.run.kappa * model.ridge == DESIGN.x_squared


def test_a_start_that_is_of_no_use_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = SoftmaxModel(DESIGN, Softmax(3), Fraction(10**9), Fraction(4)), Rows(frame(40, 0, "class"), SCHEMA)
    good = model.draw(Secret(rows), Exact())
    monkeypatch.setattr(PerturbedLoss, "solve", lambda self, b: np.array([math.nan]))
    assert all(
        abs(a - b) <= 2 * Fraction(2) ** model.grid
        for a, b in zip(model.draw(Secret(rows), Exact()), good, strict=True)
    )


@pytest.mark.parametrize(
    ("schema", "theta", "words"),
    [
        (SCHEMA, [Fraction(1)] * 8, "9 entries"),
        (SCHEMA, [Fraction(1, 3)] * 9, "dyadic"),
        (Schema({"x": Number(0, 1)}), [Fraction(1)] * 6, "target"),
    ],
)
def test_bad_points_are_refused_in_public(schema: Schema, theta: list[Fraction], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SoftmaxGradient(schema, theta, 3)


@pytest.mark.parametrize(
    ("classes", "rows", "name"),
    [(2, None, "AdaptiveGLM"), (2, 5, "GLMObjective"), (3, None, "AdaptiveGLM"), (3, 5, "GLMObjective")],
)
def test_what_is_recommended_depends_on_public_numbers(classes: int, rows: int | None, name: str) -> None:
    method = recommended(DESIGN, BUDGET, losses=(Logistic(),) if classes == 2 else (Softmax(classes),), rows=rows)
    assert type(method).__name__ == name
    assert method.plan().cost.fits(BUDGET)
