"""Sums by class before a softmax run: costs that no outcome changes, exact sensitivities, rules from any sums."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from snugdp import Budget, Cost, Simulation
from snugdp.accounting.objective.multiclass import SoftmaxRun
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.adaptive import AdaptiveGLM, stretched_design
from snugdp.mechanisms.objective.class_means import ClassMeans, ClassStart, ClassSums, SlopeSearch
from snugdp.mechanisms.objective.standardised import StandardisedClasses, StandardisedGLM
from snugdp.tables.losses.losses import Logistic, Softmax
from snugdp.tables.passes.derivatives.class_means import STEEPNESS_CELLS, SteepnessPass
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows
from tests.mechanisms.objective.tables import BUDGET, DESIGN, LINE_DESIGN, SCHEMA, frame, secret

MEANS = ClassMeans.read(np.array([[30.0, 0.0, 40.0], [0.0, 30.0, 40.0], [-30.0, -30.0, 40.0]]), 0.1, 1.0)


class Shown(Simulation):
    """Keeps what gets noise, and which."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seen: list[tuple[list[int], Fraction]] = []
        self.runs: list[Fraction] = []

    def add_integers(self, values: Any, law: Any) -> Any:
        values.map(lambda known: self.seen.append((known, law.sigma)))
        return super().add_integers(values, law)

    def minimiser(self, problem: Any, law: Any, **more: Any) -> Any:
        self.runs.append(law.sigma)
        return super().minimiser(problem, law, **more)


def lost(noise: Shown, other: Shown) -> list[float]:
    """How far apart the means of the noise are, in its deviations: mu of every release."""
    assert [law for _, law in noise.seen] == [law for _, law in other.seen]
    return [math.dist(one, two) / float(law) for (one, law), (two, _) in zip(noise.seen, other.seen, strict=True)]


# --- what is released, beside neighbours ---


@pytest.mark.parametrize("row", [[1.0, -1.0, 1.0], [1e300, 1e300, -1.0], [0.0, 0.0, 0.0], [0.3, -0.2, 0.7]])
def test_one_row_moves_each_release_by_no_more_than_it_costs(row: list[float]) -> None:
    mu, table = Fraction(1, 10), frame(50, 1, "class")
    more = table.copy()
    more.loc[len(more)] = row
    sums, slope = ClassSums(DESIGN, mu, 3), SlopeSearch(DESIGN, Fraction(1, 2))
    kept = [Shown(3) for _ in range(4)]
    for data, one, two in ((table, *kept[:2]), (more, *kept[2:])):
        sums.draw(secret(data), one)
        slope.draw(secret(data), two, replace(MEANS, rows=1e9), 0.8)
    assert 0 < lost(kept[0], kept[2])[0] <= float(mu)
    assert len(kept[1].seen) == 4
    assert all(sigma == STEEPNESS_CELLS * slope.deviation for _, sigma in kept[1].seen)
    assert math.hypot(*(STEEPNESS_CELLS / float(sigma) for _, sigma in kept[1].seen)) <= 0.5
    assert abs(kept[1].seen[0][0][0] - kept[3].seen[0][0][0]) <= STEEPNESS_CELLS  # later looks follow from noise


def test_the_longest_row_uses_up_what_sums_cost() -> None:
    sums, found = ClassSums(DESIGN, Fraction(1, 10), 3), []
    table = frame(5, 0, "class")
    for data in (table, table.iloc[1:]):
        table.iloc[0] = [1.0, 1.0, -1.0]
        found.append(Shown(1))
        sums.draw(secret(data), found[-1])
    assert lost(*found)[0] == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("epsilon", ["0.1", 1, 8])
@pytest.mark.parametrize("classes", [3, 10])
def test_sums_in_place_of_a_run_cost_no_more_in_any_company(epsilon: Any, classes: int) -> None:
    """The second way to go on is a Gaussian release of the run's m: its curve is below that of the run's atom."""
    start, run = planned(Budget(epsilon, 1e-6), classes)
    square = run.run.m_squared
    atom, plain = Cost(atoms=(run.run.atom,)), Cost(mu_squared=square)
    for at in (Fraction(0), Fraction(epsilon) / 3, Fraction(epsilon), 2 * Fraction(epsilon)):
        for beside in (Cost(mu_squared=Fraction(0)), start.cost):
            assert (plain + beside).delta_at(at) <= (atom + beside).delta_at(at)
    m = float(square) ** 0.5
    for e in np.linspace(-3, 3, 13):  # as profiles, also below 0
        g = [gaussian_profile(m, e - shift) for shift in (0.0, float(run.run.shift))]
        assert gaussian_profile(m, e) <= min((classes - 1) * value for value in g) + 1e-15


def gaussian_profile(m: float, e: float) -> float:
    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return phi(m / 2 - e / m) - math.exp(e) * phi(-m / 2 - e / m)


def planned(budget: Budget, classes: int = 3) -> tuple[ClassStart, Any]:
    method = StandardisedGLM(stretched_design(DESIGN), budget, losses=(Softmax(classes),), beside=Fraction(0))
    assert method.start is not None
    return method.start, method.runs[0]


@pytest.mark.parametrize("rows", [3, 4000])
def test_both_ways_to_go_on_draw_what_was_planned(rows: int) -> None:
    method, noise = AdaptiveGLM(DESIGN, BUDGET, losses=(Softmax(5),)), Shown(5)
    data, plan = secret(frame(rows, 2, "class")), method.plan()
    fit = method.draw(data, method.certify(data, noise), noise)
    assert np.shape(fit.theta) == (5, 3)
    assert np.isfinite(fit.theta).all()
    run = method._parts.runs[0]
    start = method._parts.start
    assert start is not None
    unit = start.sums.design.unit
    sums = [Fraction(sigma) * unit for values, sigma in noise.seen if len(values) == 15]
    assert sums[0] >= start.sums.design.x_bound / start.sums.mu
    assert start.sums.mu**2 + start.slope.mu**2 == start.cost.mu_squared
    if rows == 3:
        assert not noise.runs
        assert len(sums) == 2
        assert start.sums.design.x_squared / sums[1] ** 2 <= run.run.m_squared
        assert float(start.sums.design.x_squared / sums[1] ** 2) == pytest.approx(float(run.run.m_squared))
    else:
        assert noise.runs == [run.sigma]
        assert len(sums) == 1
        assert set(fit.released) >= {"ridge", "m", "rows", "slope"}
        assert "noise_at_most" not in fit.released  # coefficients are moved, and may have more
    assert plan.cost.fits(BUDGET)
    assert [step.id for step in plan.steps] == ["centre", "radius", "sums", "slope", "release"]


@pytest.mark.parametrize(("loss", "norm"), [(Logistic(), 2), (Softmax(2), 2), (Softmax(3), 3)])
def test_rows_are_as_long_as_noise_is_planned_for(loss: Any, norm: int) -> None:
    method = AdaptiveGLM(DESIGN, BUDGET, losses=(loss,))
    assert method._norm == norm
    assert {run.design.row_map.feature_bound for run in method._parts.runs} == {norm}
    assert all(run.design.x_squared >= norm**2 + 1 for run in method._parts.runs)
    start = method._parts.start
    assert start is None or start.sums.design == start.slope.design == method._parts.runs[0].design


def test_the_start_is_paid_for() -> None:
    method = AdaptiveGLM(DESIGN, BUDGET, losses=(Softmax(3),))
    assert method.plan().cost == method.cost
    assert method._parts.start is not None
    least = method._parts.start.cost + method._parts.sizes.cost
    assert method.cost.mu_squared > least.mu_squared


# --- which designs have it, and what it costs ---


def test_only_several_classes_of_single_rows_with_a_constant_have_a_start() -> None:
    person = Design(DESIGN.row_map, weight=2)
    for design, loss in (
        (DESIGN, Logistic()),
        (DESIGN, Softmax(2)),
        (LINE_DESIGN, Softmax(3)),
        (person, Softmax(3)),
        (Design(DESIGN.row_map, max_rows=2), Softmax(3)),
        (Design(RowMap(1, 1, 1, None, True)), Softmax(3)),
    ):
        assert ClassStart.of(design, loss, Fraction(1)) is None
    assert ClassStart.of(DESIGN, Softmax(3), Fraction(1)) is not None


@pytest.mark.parametrize("epsilon", ["0.1", 1, 4])
def test_found_classes_cost_the_same_however_many_there_are(epsilon: Any) -> None:
    budget, beside = Budget(epsilon, 1e-6), Cost(mu_squared=Fraction(1, 10**6))
    design = stretched_design(DESIGN)
    costs = set()
    for count in (2, 3, 10, 11, 100):
        method = StandardisedClasses(
            design, budget, loss=Logistic(), together=True, classes=count, beside=beside.mu_squared
        )
        costs.add(method.plan().cost)
        if count > 2:  # what is drawn is one of the alternatives that were planned
            run, start = method.runs[0], method._start
            assert start is not None
            assert start.sums.classes == count
            assert isinstance(run.run, SoftmaxRun)
            drawn = start.cost + Cost(atoms=(run.run.atom,))
            for at in (Fraction(epsilon) / 2, Fraction(epsilon)):
                assert drawn.delta_at(at) <= method.cost.delta_at(at)
    (cost,) = costs
    assert (cost + beside).fits(budget)


# --- the rule ---


@pytest.mark.parametrize("seed", range(20))
def test_any_sums_give_a_finite_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sums = rng.normal(size=(4, 3)) * 10.0 ** rng.uniform(-8, 8)
    for table in (sums, -np.abs(sums), np.zeros((4, 3)), np.tile(sums[:1], (4, 1))):
        means = ClassMeans.read(table, 10.0 ** rng.uniform(-3, 3))
        assert means.shares.min() > 0
        assert means.rows > 0
        for square in (1e-9, 1.0, 4.0):
            assert 0 < means.guess(square) < math.inf
            assert np.isfinite(means.theta(means.guess(square))).all()


def test_classes_in_another_order_have_the_same_rule() -> None:
    sums = np.random.default_rng(1).normal(size=(4, 3)) * 50 + [0, 0, 300]
    rule = ClassMeans.read(sums, 3.0).theta(2.0)
    for order in itertools.islice(itertools.permutations(range(4)), 5, 20, 5):
        assert np.allclose(ClassMeans.read(sums[list(order)], 3.0).theta(2.0), rule[list(order)])


def test_the_slope_is_found_where_there_are_rows_and_guessed_elsewhere() -> None:
    table, search = frame(6000, 4, "class"), SlopeSearch(DESIGN, Fraction(100))
    means = replace(MEANS, rows=6000.0, shares=np.full(3, 1 / 3), middle=np.zeros(2), means=MEANS.means / 2)
    found = search.draw(secret(table), Simulation(1), means, 0.7)
    rule = tuple(map(tuple, means.scores.tolist())), tuple(np.log(means.shares).tolist())
    for times, sign in ((0.7, -1), (1.4, 1)):  # so steep it is too flat, and so steep too steep
        (said,) = Rows(table, SCHEMA).state(SteepnessPass(SCHEMA, *rule, times * found, 2.0)).values()
        assert said * sign > 0
    assert found != means.guess(0.7)
    assert replace(search, mu=Fraction(1, 1000)).draw(secret(table), Simulation(1), means, 0.7) == means.guess(0.7)


def test_noise_is_gaussian_on_the_grid_of_the_rows() -> None:
    noise = Shown(1)
    ClassSums(DESIGN, Fraction(1, 3), 3).draw(secret(frame(9, 0, "class")), noise)
    assert noise.seen[0][1] == 3 * DESIGN.x_bound / DESIGN.unit
