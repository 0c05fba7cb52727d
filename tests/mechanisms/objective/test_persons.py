"""Perturbed objectives for persons: exact laws of small tables, with and without each person, against the plan."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from snugdp import Boolean, Budget, Number, Schema, Simulation, Unit
from snugdp.accounting.objective.multiclass import SoftmaxRun
from snugdp.mechanisms.inference.line import WhitenedLine
from snugdp.mechanisms.inference.mean import WhitenedMean
from snugdp.mechanisms.linear.base import Design, Method, of_design, one_of_each
from snugdp.mechanisms.objective.adaptive import Adaptive, AdaptiveGLM
from snugdp.mechanisms.objective.glm import GLMObjective
from snugdp.mechanisms.objective.minimiser import PerturbedLoss
from snugdp.mechanisms.objective.perturbation import (
    GLMRun,
    ObjectiveRun,
    Perturbation,
    SoftmaxModel,
    affordable,
    as_ridge,
    gaussian_runs,
    gaussian_square,
    least_sharp_ridge,
    lone_run,
    softmax_run,
)
from snugdp.mechanisms.objective.robust import ObjectivePerturbation
from snugdp.mechanisms.objective.standardised import StandardisedClasses, StandardisedGLM
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import LogCosh, Logistic, OneAgainst, Softmax, TamedPoisson
from snugdp.tables.passes.base import row_map
from tests.accounting.objective.person_laws import Floats, allowed, hockey
from tests.effort import often, repeated, sampled
from tests.mechanisms.objective.person_tables import (
    People,
    Weighed,
    in_the_plane,
    on_a_line,
    weighed_rows,
    weight_of,
    worst_person,
)

BUDGETS = (Budget(1, Fraction(1, 10**4)), Budget(3, Fraction(1, 10**3)))
LEEWAY = 4e-6  # of sums over squares in the plane


@cache
def schema(loss: str, plane: bool) -> Schema:
    target = Number(-1, 1) if loss == "line" else Boolean()
    return Schema({"x": Number(-1, 1), "y": target}, "y", intercept=plane)


@cache
def run_for(loss: str, plane: bool, budget: Budget, weight: int, tau: Fraction) -> ObjectiveRun:
    """What a budget affords on its own."""
    design = Design(row_map(schema(loss, plane)), weight)
    if loss == "labels":
        return lone_run(design, budget, Logistic())
    (m,), _ = affordable(budget, [Fraction(1)])
    ridge, _ = least_sharp_ridge(design, budget, m, Fraction(0))
    return Perturbation(design, LogCosh(tau), m, ridge)


def people(random: np.random.Generator) -> People:
    return {f"p{k}": worst_person(random, int(random.integers(1, 7))) for k in range(int(random.integers(1, 4)))}


def as_labels(rows: People) -> People:
    return {who: [(x, float(y > 0)) for x, y in some] for who, some in rows.items()}


def largest_excess(run: ObjectiveRun, budget: Budget, pair: tuple[Floats, Floats], leeway: float) -> float:
    """Both directions: how far the budget's delta is used; what the atom allows at other losses is checked."""
    epsilon = float(budget.epsilon)
    losses = np.array([epsilon, 0.3 * epsilon, 0.0, -0.5, 1.4 * epsilon])
    (atom,) = run.cost.atoms
    found = []
    for first, second, branches in ((*pair, atom.remove), (*pair[::-1], atom.add)):
        lost = hockey(first, second, losses)
        assert np.all(lost <= allowed(branches, losses) * (1 + 1e-9) + leeway)
        found.append(lost[0])
    return float(max(found) / float(budget.delta))


@sampled(4)
@repeated
@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("loss", ["line", "labels"])
def test_with_and_without_each_person_of_small_tables(loss: str, plane: bool) -> None:
    """Every neighbouring pair of random tables of one to three persons at the ends of their bounds."""
    random, used = np.random.default_rng(5), []
    for _ in range(often(2, 6, 90) if plane else often(4, 12, 160)):
        budget, weight = BUDGETS[int(random.integers(often(1, 2)))], int(random.choice([1, 2, 3]))
        run = run_for(loss, plane, budget, weight, Fraction(random.choice([0.0625, 0.25, 1.0])))
        whole = people(random) if loss == "line" else as_labels(people(random))
        for who in whole:
            rest = {name: rows for name, rows in whole.items() if name != who}
            seen = [Weighed.of(some, schema(loss, plane), weight) for some in (whole, rest)]
            assert 0 < weight_of(seen[0]) - weight_of(seen[1]) <= weight
            law = in_the_plane if plane else on_a_line
            used.append(largest_excess(run, budget, law(run, (seen[0], seen[1])), LEEWAY if plane else 1e-13))
    assert max(used) <= 1 + (LEEWAY / 1e-4 if plane else 1e-9)


@sampled(24)
@pytest.mark.parametrize("weight", [1, 2, 5])
@pytest.mark.parametrize("loss", ["line", "labels"])
def test_the_noise_is_used_up_by_a_person_at_the_end(loss: str, weight: int) -> None:
    """Nine equal rows at the end of their bounds: less noise, by a part in a hundred, would not do."""
    budget = BUDGETS[0]
    run = run_for(loss, False, budget, weight, Fraction(1, 512))
    far = {"labels": 0.0, "line": -1.0}[loss]
    seen = [Weighed.of(some, schema(loss, False), weight) for some in ({"new": [(1.0, far)] * 9}, {})]
    assert weight_of(seen[0]) == weight
    pair = on_a_line(run, (seen[0], seen[1]))
    used = largest_excess(run, budget, pair, 1e-13)
    assert used <= 1 + 1e-9
    if loss == "line":  # removed: one Gaussian shift; added, twice that where the slope changes its sign
        assert used > 0.45
    else:
        assert used > 0.6


@repeated
def test_softmax_with_and_without_a_person() -> None:
    """Three classes on a line of features, by densities in space; a person with all three labels, and with one."""
    line = np.linspace(-6.0, 6.0, often(49, 65, 97))
    b = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    volume = (line[1] - line[0]) ** 3 / (2 * math.pi) ** 1.5
    without = np.exp(-(b**2).sum(axis=1) / 2) * volume
    for m, kappa in ((0.8, 0.4), (1.2, 1.0)):
        sigma, lam = math.sqrt(2) / m, 1 / kappa
        run = SoftmaxRun(Fraction(m) ** 2, Fraction(kappa), 3, "person")
        losses = np.array([-0.5, 0.0, 0.3, 1.0, 2.0, 3.0])
        for labels, weights, x in (((0, 1, 2), (0.4, 0.3, 0.3), (1, 1, -1)), ((0, 0), (0.5, 0.5), (1, 1))):
            theta = -b * sigma / lam  # an empty table
            moved, hessian = b * sigma, np.tile(lam * np.eye(3), (len(b), 1, 1))
            for label, a, sign in zip(labels, weights, x, strict=True):
                p = np.exp(sign * theta - (sign * theta).max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                moved = moved - a * sign * (p - np.eye(3)[label])
                hessian += a * (p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :])
            there = np.exp(-((moved / sigma) ** 2).sum(axis=1) / 2) * np.linalg.det(hessian) / lam**3 * volume
            assert there.sum() == pytest.approx(1, abs=2e-3)
            for first, second, branches in ((there, without, run.atom.remove), (without, there, run.atom.add)):
                assert np.all(hockey(first, second, losses) <= allowed(branches, losses) + 1e-3)
                assert hockey(first, second, losses)[1] > 0.05 * allowed(branches, losses)[1]


@pytest.mark.slow
def test_the_minimiser_is_that_of_the_weighted_losses() -> None:
    """Exact gradients of weighted losses against floats, and the minimum where they vanish."""
    random, kind = np.random.default_rng(2), schema("line", True)
    whole = {f"p{k}": worst_person(random, int(random.integers(1, 6))) for k in range(40)}
    rows, seen = weighed_rows(whole, kind, 2), Weighed.of(whole, kind, 2)
    run = run_for("line", True, BUDGETS[0], 2, Fraction(1, 4))
    problem = PerturbedLoss(of_design(rows, run.design), run.design, run.loss, run.ridge)
    theta = [Fraction(1, 4), Fraction(-3, 8)]
    at = np.array([0.25, -0.375])
    p = np.tanh((seen.X @ at - seen.y) / 0.25)
    expected = 0.25 * (seen.a * p) @ seen.X + float(run.ridge) * at
    for level in (0, 1):
        values, error = problem.gradient(theta, level)
        np.testing.assert_allclose([float(value) for value in values], expected, rtol=1e-9)
        assert 0 <= error < 1e-6
    found = problem.solve(np.zeros(2))
    p = np.tanh((seen.X @ found - seen.y) / 0.25)
    assert np.abs(0.25 * (seen.a * p) @ seen.X + float(run.ridge) * found).max() < 1e-7
    assert problem.smoothness >= run.ridge + weight_of(seen) * run.loss.curvature * run.design.x_squared


METHODS: list[Callable[[Design, Budget], Method]] = [
    Adaptive,
    partial(ObjectivePerturbation, rule="scale"),
    partial(AdaptiveGLM, losses=(Logistic(),)),
    partial(AdaptiveGLM, losses=(Softmax(3),)),
    partial(StandardisedGLM, losses=(Logistic(),), beside=Fraction(1, 300)),
    partial(StandardisedClasses, loss=Logistic(), together=True, classes=5, beside=Fraction(1, 300)),
    partial(GLMObjective, losses=(TamedPoisson(5, 2),)),
    partial(AdaptiveGLM, losses=tuple(OneAgainst(Logistic(), k, 3) for k in range(3))),
]


@pytest.mark.slow
@repeated
def test_plans_for_persons_fit_the_budget_and_scale_with_the_weight() -> None:
    """Noise and ridge are the weight times those of weight 1; m and what is spent are the same."""
    budget, rows = Budget(1, Fraction(1, 10**6)), row_map(schema("line", True))
    for make in METHODS[:: often(3, 1)]:
        first, second, row = (make(design, budget) for design in (Design(rows, 1), Design(rows, 2), Design(rows)))
        plans = [each.plan() for each in (first, second)]
        assert [plan.unit for plan in plans] == [Unit.PERSON] * 2
        assert row.plan().unit is Unit.ROW
        assert plans[0].cost == plans[1].cost
        assert plans[0].cost.fits(budget)
        assert plans[1].proposal["ridge"] == 2 * plans[0].proposal["ridge"]
        assert plans[1].proposal["m"] == plans[0].proposal["m"]
    design = Design(rows, 2)
    for run in (
        *gaussian_runs(design, gaussian_square(budget), (Logistic(),)),
        softmax_run(design, budget, Softmax(4)),
    ):
        assert run.cost.fits(budget)


@pytest.mark.parametrize("weight", [1, 2, 4])
def test_noise_and_kappa_are_those_of_a_row_times_the_weight(weight: int) -> None:
    rows, m, ridge = row_map(schema("line", True)), Fraction(1, 5), Fraction(7)
    both = Design(rows, weight), Design(rows)
    pairs: list[list[ObjectiveRun]] = [
        [Perturbation(one, LogCosh("0.25"), m, ridge) for one in both],
        [GLMRun(one, Logistic(), m, ridge) for one in both],
        [SoftmaxModel(one, Softmax(4), m, ridge) for one in both],
    ]
    for person, row in pairs:
        assert person.sigma == weight * row.sigma
        assert person.kappa == weight * row.kappa
        assert person.run.m_squared == row.run.m_squared <= m**2
        assert (person.run.unit, row.run.unit) == ("person", "row")
        assert as_ridge(person.design, person.loss, m) == weight * as_ridge(row.design, row.loss, m)


def test_rows_of_another_weight_are_refused() -> None:
    """And looks are at one row of each person."""
    kind = schema("line", True)
    rows = weighed_rows({"p": [(0.1, 0.1), (0.2, 0.3), (0.3, 0.3)], "q": [(0.5, 0.5)]}, kind, 2)
    design = Design(row_map(kind), 2)
    assert of_design(rows, design) is rows
    assert one_of_each(rows, design).moments().count() == 2
    for other in (Design(row_map(kind)), Design(row_map(kind), 1), Design(row_map(kind), 3)):
        with pytest.raises(ValueError, match="do not have the design"):
            of_design(rows, other)
    with pytest.raises(ValueError, match="do not have the design"):
        of_design(rows.one, design)
    assert of_design(rows.one, Design(row_map(kind))) is rows.one


def test_what_no_theorem_covers_is_refused() -> None:
    design, budget = Design(row_map(schema("line", True)), 2), Budget(1, Fraction(1, 10**6))
    with pytest.raises(ValueError, match='another rule than "two_stage"'):
        ObjectivePerturbation(design, budget, rule="two_stage")
    for how in ({"general": True, "ridge": 3}, {"loss": "huber"}):
        with pytest.raises(ValueError, match="one row of each person"):
            ObjectivePerturbation(design, budget, **how)
    with pytest.raises(ValueError, match="weigh 1 at least"):
        Design(design.row_map, 0)


def test_several_rows_of_a_person_without_weights_are_refused() -> None:
    """Noise and ridge are those of a single row, and the plan would speak of persons."""
    design, budget = Design(row_map(schema("line", True)), max_rows=3), Budget(1, Fraction(1, 10**6))
    made: tuple[Any, ...] = (Adaptive, ObjectivePerturbation, WhitenedLine, WhitenedMean)
    for make in made:
        with pytest.raises(ValueError, match=r"max_rows=3: .* is not proved"):
            make(design, budget)
    losses: tuple[Any, ...] = ((Logistic(),), (Softmax(3),))
    for given in losses:
        with pytest.raises(ValueError, match=r"max_rows=3: .* is not proved"):
            AdaptiveGLM(design, budget, losses=given)
    for whitened in made[2:]:  # knows no weights either
        with pytest.raises(ValueError, match=r"max_rows=2: .* is not proved"):
            whitened(Design(design.row_map, 2), budget)


@pytest.mark.slow
def test_a_person_with_many_rows_counts_no_more_than_others() -> None:
    """The release with hardly any noise is that of the weighted rows."""
    kind = schema("line", True)
    whole: People = {f"p{k}": [(k % 5 / 5, 0.5)] for k in range(400)}
    whole["often"] = [(k % 5 / 5, -1.0) for k in range(4000)]
    fit = Adaptive(Design(row_map(kind), 1), Budget(8, Fraction(1, 100)))
    found = fit.fit(Secret(weighed_rows(whole, kind, 1)), ReleaseContext(Simulation(3))).value
    assert found is not None
    assert abs(found.theta[-1] - 0.5) < 0.1
    assert found.released["max_rows"] == 1.0
