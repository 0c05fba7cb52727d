"""Generalised linear models by objective perturbation: exact minimisers, the law of what comes out, exact deltas."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from snugdp import Budget, MemoryLedger, Simulation
from snugdp.accounting.objective.run import Kind
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.adaptive import AdaptiveGLM, stretched_design
from snugdp.mechanisms.objective.glm import GLMObjective
from snugdp.mechanisms.objective.perturbation import GLMRun, ObjectiveRun
from snugdp.mechanisms.objective.scale import MeanRow, RowRadius
from snugdp.noise import Exact
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.tables.layouts.affine import AffineLayout, AffineRows, undo_affine
from snugdp.tables.losses.losses import (
    Huber,
    LogCosh,
    Logistic,
    Loss,
    OneAgainst,
    PseudoHuber,
    SoftHinge,
    Softmax,
    TamedPoisson,
)
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure
from snugdp.tables.rows import Rows
from tests.accounting.objective.glm_laws import Classifier, Counts
from tests.accounting.objective.perturbed import Law, deltas
from tests.effort import sampled
from tests.mechanisms.objective.tables import BUDGET, DESIGN, LINE, LINE_DESIGN, SCHEMA, frame, images, secret

LOSSES: list[Loss] = [
    Logistic(), SoftHinge("0.5"), TamedPoisson(6, 3), LogCosh("0.3"), PseudoHuber("0.3"), Huber("0.3")
]  # fmt: skip


# --- the exact minimiser ---


@pytest.mark.parametrize("place", [None, 0, 1, 2])
def test_without_noise_it_is_the_minimiser_of_scikit_learn(place: int | None) -> None:
    table = frame(400, 1, "label" if place is None else "class")
    X, y = images(table)
    loss: Loss = Logistic() if place is None else OneAgainst(Logistic(), place, 3)
    labels = y > 0 if place is None else np.rint(y + 1) == place
    run = GLMRun(DESIGN, loss, Fraction(10**9), Fraction(2))
    found = np.array([float(value) for value in run.draw(secret(table), Exact())])
    model = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, solver="newton-cholesky", max_iter=1000)
    assert np.allclose(found, model.fit(X, labels).coef_[0], atol=3 * 2.0**run.grid)


def test_without_noise_counts_have_their_maximum_likelihood() -> None:
    table = frame(400, 2, "count")
    X, y = images(table)
    counts = 3 * (y + 1)
    theta, ridge = np.zeros(3), 2.0
    for _ in range(50):  # rates stay below 20, so the loss is that of Poisson
        rate = np.exp(X @ theta)
        theta -= np.linalg.solve((X.T * rate) @ X + ridge * np.eye(3), X.T @ (rate - counts) + ridge * theta)
    run = GLMRun(DESIGN, TamedPoisson(6, 20), Fraction(10**9), Fraction(2))
    found = [float(value) for value in run.draw(secret(table), Exact())]
    assert np.allclose(found, theta, atol=3 * 2.0**run.grid)


@sampled(2)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_loss_can_be_minimised_exactly_with_its_noise(loss: Loss) -> None:
    method = GLMObjective(DESIGN, BUDGET, losses=(loss,))
    outcome = method.fit(secret(frame(60)), ReleaseContext(budget=BUDGET))
    assert outcome.value is not None
    assert all((Fraction(value) / Fraction(2) ** method.run.grid).denominator == 1 for value in outcome.value.theta)


def test_streamed_tables_have_the_same_sums_as_tables_in_memory(tmp_path: Path) -> None:
    table = frame(3000, 3, "class")
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    theta = (Fraction(3, 4), Fraction(-1, 8), Fraction(1, 3).limit_denominator(1) + Fraction(1, 2))
    for loss in (Logistic(), OneAgainst(Logistic(), 2, 3), TamedPoisson(6, 2)):
        memory, disk = Rows(table, SCHEMA), Rows(str(tmp_path / "rows.parquet"), SCHEMA)
        assert memory.images() is not None
        work = GradientEnclosure(SCHEMA, theta, loss)
        assert memory.state(work).sums == disk.state(work).sums
    moved = [AffineRows(rows, (0.125, -0.25), 3.0, 2) for rows in (memory, disk)]
    work = GradientEnclosure(moved[0].schema, theta, Logistic())
    assert moved[0].state(work).sums == moved[1].state(work).sums


# --- the law and its privacy ---


@pytest.mark.slow
def test_what_comes_out_has_the_law_of_the_theorem() -> None:
    table = pd.DataFrame({"a": [1.0, -1.0, 0.5], "y": [1.0, 1.0, -1.0]})
    run = GLMRun(LINE_DESIGN, Logistic(), Fraction(1, 2), Fraction(2))
    law = Classifier([1.0, -1.0, -0.5], [0.0] * 3, "logistic", 1.0, 2.0, float(run.sigma))  # labels times rows
    noise = Simulation(7)
    tilts = np.array([law.tilt(float(run.draw(secret(table, LINE), noise)[0])) for _ in range(120)])
    assert abs(tilts.mean()) < 0.3
    assert 0.7 < (tilts**2).mean() < 1.4
    assert abs(replace(law, sigma=law.sigma * 0.75).tilt(1.0)) > abs(law.tilt(1.0))


def pairs(seed: int, kind: str) -> list[tuple[list[float], list[float], float, float]]:
    """Small rows that shift the minimiser, and one row that comes or goes."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(24):
        n = int(rng.integers(0, 30))
        x = rng.uniform(-1, 1, n) * rng.choice([0.05, 0.3, 1.0])
        y = rng.choice([-1.0, 1.0], n) if kind == "logistic" else rng.integers(0, 4, n).astype(float)
        new_x, new_y = rng.choice([-1.0, 1.0, 0.7]), rng.choice([-1.0, 1.0] if kind == "logistic" else [0, 3])
        found.append((x.tolist(), y.tolist(), float(new_x), float(new_y)))
    for force in (-60, -20, 20, 60):  # many rows that hold the minimiser far out, then one against them
        row = math.copysign(1.0, force), 1.0 if kind == "logistic" else 3.0
        found.append(([row[0]] * abs(force), [row[1]] * abs(force), 1.0, 1.0))
    return found


def law_of(run: ObjectiveRun, kind: str, x: list[float], y: list[float], factor: float = 1.0) -> Law:
    ridge, sigma = float(run.ridge), float(run.sigma) * factor
    if kind == "logistic":
        return Classifier([a * b for a, b in zip(x, y, strict=True)], [0.0] * len(x), kind, 1.0, ridge, sigma)
    return Counts(x, y, kind, math.log(run.loss.curvature), ridge, sigma)


def worst(run: ObjectiveRun, epsilon: float, kind: str, factor: float = 1.0) -> float:
    top = 0.0
    for x, y, new_x, new_y in pairs(1, kind):
        less, more = (law_of(run, kind, *rows, factor) for rows in ((x, y), ([*x, new_x], [*y, new_y])))
        top = max(top, *deltas(less, more, [epsilon]), *deltas(more, less, [epsilon]))
    return top


@pytest.mark.slow
@sampled(8)
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_no_pair_of_neighbours_leaks_more_than_the_budget(kind: str, epsilon: float) -> None:
    budget = Budget(epsilon, 1e-5)
    loss: Loss = Logistic() if kind == "logistic" else TamedPoisson(3, 2)
    run = GLMObjective(LINE_DESIGN, budget, losses=(loss,)).run
    found = worst(run, epsilon, kind)
    assert found <= 1e-5 * (1 + 1e-6)
    assert found > 1e-5 * (0.9 if kind == "logistic" else 0.4)  # the bound is not loose either
    assert worst(run, epsilon, kind, factor=0.8) > 1e-5


@pytest.mark.slow
def test_a_ridge_below_the_limit_would_leak() -> None:
    """One row of full size, and small rows that only shift: the limit is needed."""
    run = GLMObjective(LINE_DESIGN, Budget(1, 1e-6), losses=(Logistic(),)).run
    found = {}
    for part in (1, 1 / 3):
        nobody = Classifier([], [], "logistic", 1.0, float(run.ridge) * part, float(run.sigma))
        shifted = [replace(nobody, centre=float(force) / nobody.ridge) for force in np.linspace(-40, 40, 161)]
        found[part] = max(deltas(less.more(1.0), less, [1.0])[0] for less in shifted)
    assert found[1] <= 1e-6 * (1 + 1e-6)
    assert found[1 / 3] > 5e-6


@pytest.mark.slow
def test_composable_runs_are_gaussian_at_every_epsilon() -> None:
    method = GLMObjective(LINE_DESIGN, BUDGET, losses=(Logistic(),), composable=True)
    cost = method.plan().cost
    assert not cost.atoms
    assert cost.fits(BUDGET)
    assert isinstance(method.run, GLMRun)
    assert method.run.run.gaussian_squared == cost.mu_squared
    for epsilon in (-0.5, 0.0, 0.2, 0.5, 1.0):
        assert worst(method.run, epsilon, "logistic") <= cost.delta_at(epsilon) * (1 + 1e-9)


# --- plans and limits ---


@sampled(24)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_plan_fits_and_uses_up_the_budget(loss: Loss, epsilon: float) -> None:
    budget = Budget(epsilon, 1e-6)
    method = GLMObjective(DESIGN, budget, losses=(loss,))
    assert method.plan().cost.fits(budget)
    assert method.plan().cost.delta_at(epsilon) > 0.99e-6
    sharp = method.run.run
    assert sharp.m_squared == DESIGN.x_squared * loss.slope**2 / method.run.sigma**2
    assert sharp.kappa == loss.c0 * DESIGN.x_squared / method.run.ridge
    assert method.plan().theorem.id == "glm-objective/1"


def test_the_logistic_run_has_the_noise_of_one_gaussian_release_and_the_ridge_of_the_corollary() -> None:
    run = GLMObjective(DESIGN, BUDGET, losses=(Logistic(),)).run
    assert float(run.m) == pytest.approx(0.23670, abs=1e-5)
    assert float(run.ridge) == pytest.approx(2 / (1 + 0.2367**2 / 2), rel=1e-4)


@pytest.mark.parametrize("loss", [Logistic(), SoftHinge("0.5"), TamedPoisson(6, 3), LogCosh("0.3")], ids=str)
def test_a_ridge_below_the_limit_is_refused_and_the_limit_is_named(loss: Loss) -> None:
    with pytest.raises(ValueError, match="ridge must be at least") as refused:
        GLMObjective(DESIGN, BUDGET, losses=(loss,), ridge=1e-3)
    named = str(refused.value).split("at least ")[1].split(" ")[0]
    assert GLMObjective(DESIGN, BUDGET, losses=(loss,), ridge=named).plan().cost.fits(BUDGET)
    larger = GLMObjective(DESIGN, BUDGET, losses=(loss,), ridge=Fraction(named) * 3)
    assert larger.run.ridge == Fraction(named) * 3
    assert larger.run.m == GLMObjective(DESIGN, BUDGET, losses=(loss,)).run.m


def test_few_rows_ask_for_more_ridge() -> None:
    many, few = (GLMObjective(DESIGN, BUDGET, losses=(Logistic(),), rows=n).run for n in (10_000, 20))
    assert many == GLMObjective(DESIGN, BUDGET, losses=(Logistic(),)).run
    assert few.ridge > 1.5 * many.ridge
    assert few.m == many.m


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GLMObjective(DESIGN, Budget(1), losses=(Logistic(),)), "delta > 0"),
        (lambda: GLMObjective(DESIGN, Budget(1, 1e-6, "replace"), losses=(Logistic(),)), "add_remove"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=(Logistic(),), ridge=0), "ridge must be"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=(Logistic(),), rows=0), "whole number above 0"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=(LogCosh(1),), composable=True), "never changes its sign"),
        (lambda: GLMObjective(Design.of(SCHEMA, 8), BUDGET, losses=(Logistic(),)), "too coarse"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=(Huber(1),), ridge="0.001"), "too small"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=against(1)), "2 to 1000"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=against(3), ridge=-1), "ridge must be"),
        (lambda: AdaptiveGLM(DESIGN, BUDGET, losses=()), "at least one loss"),
        (lambda: AdaptiveGLM(DESIGN, BUDGET, losses=(Logistic(), Logistic())), "OneAgainst"),
        (lambda: AdaptiveGLM(DESIGN, BUDGET, losses=(Huber(1),)), "GLMObjective"),
        (lambda: AdaptiveGLM(DESIGN, Budget(1), losses=(Logistic(),)), "delta > 0"),
        (lambda: GLMObjective(DESIGN, Budget(1), losses=(Softmax(3),)), "delta > 0"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=(Softmax(1),)), "2 to 1000"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=(Softmax(3),), ridge=0), "ridge must be"),
        (lambda: GLMObjective(DESIGN, BUDGET, losses=(Softmax(3),), ridge="0.001"), "too small"),
        (lambda: AdaptiveGLM(DESIGN, Budget(1, 1e-6, "replace"), losses=(Softmax(3),)), "add_remove"),
        (lambda: AffineLayout(SCHEMA, (0.0,), 1.0, 2), "2 entries"),
        (lambda: AffineLayout(LINE, (0.5,), 1.0, 2), "constant"),
        (lambda: AffineLayout(SCHEMA, (0.0, 0.0), 0.0, 2), "stretch"),
    ],
)
def test_bad_numbers_are_refused_in_public(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@sampled(2)
@pytest.mark.parametrize("make", [GLMObjective, AdaptiveGLM])
@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=str)
def test_rows_of_another_design_are_refused_like_a_private_failure(make: Any, loss: Any) -> None:
    method = make(LINE_DESIGN, BUDGET, losses=(loss,))
    assert method.fit(secret(frame(5)), ReleaseContext(budget=BUDGET)).refused
    with pytest.raises(PrivateComputationError):
        method.fit(secret(frame(5)), ReleaseContext(Simulation(1)))


def test_kinds_of_losses_are_those_of_accounting() -> None:
    assert {loss.kind for loss in LOSSES} <= set(get_args(Kind))


# --- several classes ---


def against(classes: int) -> tuple[OneAgainst, ...]:
    return tuple(OneAgainst(Logistic(), place, classes) for place in range(classes))


@sampled(2)
@pytest.mark.parametrize("make", [GLMObjective, AdaptiveGLM])
@pytest.mark.parametrize(("losses", "right"), [(against(3), 0.6), ((Softmax(3),), 0.7)], ids=["ovr", "softmax"])
def test_fits_tell_classes_apart_and_are_charged(make: Any, losses: Any, right: float) -> None:
    budget, table = Budget(4, 1e-6), frame(4000, 5, "class")
    method = make(DESIGN, budget, losses=losses)
    assert method.cost.fits(budget)
    assert method.cost.delta_at(4) > 0.95e-6
    fit = method.fit(secret(table), ReleaseContext(Simulation(3))).value
    assert fit is not None
    assert fit.theta.shape == (3, 3)
    X, y = images(table)
    assert np.mean(np.argmax(X @ fit.theta.T, axis=1) == y + 1) > right
    ledger = MemoryLedger(4, 1e-6)
    assert not method.fit(secret(frame(50, 5, "class")), ReleaseContext(ledger=ledger)).refused
    with pytest.raises(Exception, match="budget"):
        method.fit(secret(table), ReleaseContext(ledger=ledger))


# --- the private reach ---


@sampled(12)
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize(
    "losses", [(Logistic(),), (TamedPoisson(6, 3),), tuple(OneAgainst(Logistic(), k, 3) for k in range(3))]
)
def test_the_default_fits_the_budget_and_its_parts_are_what_they_cost(losses: tuple[Loss, ...], epsilon: float) -> None:
    budget = Budget(epsilon, 1e-6)
    for design in (DESIGN, LINE_DESIGN):
        method = AdaptiveGLM(design, budget, losses=losses)
        assert method.plan().cost.fits(budget)
        assert method.plan().cost == method.cost
        assert method.cost.delta_at(epsilon) > 0.9e-6
        assert len(method.plan().steps) == (3 if design is DESIGN else 2)
        assert method.forecast(10_000).noise < method.forecast(100).noise


def test_the_default_follows_rows_that_are_far_smaller_than_their_bounds() -> None:
    rng = np.random.default_rng(0)
    a, b = 0.3 + 0.1 * rng.uniform(-1, 1, (2, 3000))
    u = 40 * (a - 0.3) - 20 * (b - 0.3)
    table = pd.DataFrame({"a": a, "b": b, "y": np.where(rng.random(3000) < 1 / (1 + np.exp(-u)), 1.0, -1.0)})
    X, y = images(table)

    def loss_of(method: Any, seed: int) -> float:
        outcome = method.fit(secret(table), ReleaseContext(Simulation(seed)))
        return float(np.mean(np.logaddexp(0, -y * (X @ outcome.value.theta))))

    plain, reach = GLMObjective(DESIGN, BUDGET, losses=(Logistic(),)), AdaptiveGLM(DESIGN, BUDGET, losses=(Logistic(),))
    losses = [(loss_of(plain, seed), loss_of(reach, seed)) for seed in range(5)]
    assert np.mean([b for _, b in losses]) < 0.75 * np.mean([a for a, _ in losses])
    found: Any = reach.fit(secret(table), ReleaseContext(Simulation(1))).certificate
    assert np.allclose(found.centre, np.array([0.3, 0.3]) / math.sqrt(2), atol=0.05)
    assert found.radius < 0.2
    assert found.rows == pytest.approx(3000, rel=0.2)


def test_moving_and_stretching_are_undone() -> None:
    rng = np.random.default_rng(1)
    X, centre = rng.uniform(-0.5, 0.5, (20, 2)), (0.1, -0.2)
    theta = rng.normal(size=(4, 3))
    stretched = np.hstack([(X - centre) * 2.5, np.ones((20, 1))])
    plain = np.hstack([X, np.ones((20, 1))])
    assert np.allclose(stretched @ theta.T, plain @ undo_affine(theta, centre, 2.5).T)
    layout = AffineLayout(SCHEMA, centre, 2.5, 2)
    assert np.allclose(
        layout.coefficients(theta[0]).values, SCHEMA.coefficients(undo_affine(theta[0], centre, 2.5)).values
    )
    assert stretched_design(DESIGN).row_map == Design.of(layout).row_map  # type: ignore[arg-type]


def test_one_row_moves_the_sum_by_its_norm_and_one_bin_by_one() -> None:
    table = frame(40, 8)
    table.iloc[3] = [1.0, -1.0, 1.0]
    table.iloc[4] = [math.nan, math.inf, 1.0]
    less = table.drop(index=3)
    centre, limit = (0.25, -0.125), float(DESIGN.x_bound / DESIGN.unit)

    class Shown(Simulation):
        """Keeps what noise would be added to."""

        def add_integers(self, values: Any, law: Any) -> list[int]:
            self.seen = (list(values.map(list)._value), law)
            return super().add_integers(values, law)

    for draw in (
        lambda rows, noise: MeanRow(DESIGN, Fraction(1, 10)).draw(rows, noise),
        lambda rows, noise: RowRadius(Fraction(1, 10)).draw(rows, noise, centre),
    ):
        seen = []
        for data in (table, less):
            noise = Shown(1)
            draw(secret(data), noise)
            seen.append(noise.seen)
        gap = math.dist(seen[0][0], seen[1][0])
        assert 0 < gap <= float(seen[0][1].sigma) / 10 * (1 + 1e-12)
        assert gap == 1 or gap == pytest.approx(limit, rel=1e-3)


@sampled(6)
@pytest.mark.parametrize("losses", [(Logistic(),), (TamedPoisson(3, 2),), against(3), (Softmax(3),)], ids=str)
def test_room_is_left_for_a_release_beside_it(losses: Any) -> None:
    beside = Cost(mu_squared=Fraction(1, 100))
    method = AdaptiveGLM(DESIGN, BUDGET, losses=losses, beside=beside.mu_squared)
    assert (method.plan().cost + beside).fits(BUDGET)
    assert not (AdaptiveGLM(DESIGN, BUDGET, losses=losses).plan().cost + beside).fits(BUDGET)
    with pytest.raises(ValueError, match="too small"):
        AdaptiveGLM(DESIGN, BUDGET, losses=losses, beside=Fraction(100))
