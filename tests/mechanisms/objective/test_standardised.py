"""Labels and counts on standardised rows: what a run costs does not depend on what was found."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from snugdp import Budget, Cost, Simulation
from snugdp.accounting.composition import Branch
from snugdp.accounting.objective import corners
from snugdp.accounting.objective.multiclass import SoftmaxRun
from snugdp.ledger.composition.limits import within
from snugdp.mechanisms.bounds.preparation import known_columns
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective import standardised
from snugdp.mechanisms.objective.adaptive import for_rows
from snugdp.mechanisms.objective.perturbation import ObjectiveRun
from snugdp.mechanisms.objective.standardised import StandardisedClasses, StandardisedGLM
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.tables.found import FoundBounds, FoundNumber
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.layouts.boxes import BoxSchema
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.losses.losses import Huber, Logistic, OneAgainst, PseudoHuber, SoftHinge, Softmax, TamedPoisson
from snugdp.tables.passes.base import row_map
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Category, Number, Schema
from tests.effort import sampled

BUDGET, BESIDE = Budget(1, 1e-6), Fraction(1, 100)
LOSSES = {
    "logistic": (Logistic(),),
    "softmax": (Softmax(3),),
    "one against the others": tuple(OneAgainst(Logistic(), k, 3) for k in range(3)),
    "counts": (TamedPoisson(20, 10),),
    "numbers": (PseudoHuber(0.2),),
}


def design(entries: int, constant: bool = True) -> Design:
    return Design(RowMap(entries, 2, 1, None, constant))


@sampled(6)
@pytest.mark.parametrize("losses", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("constant", [True, False])
def test_the_cost_depends_on_the_budget_alone(losses: tuple[Logistic], constant: bool) -> None:
    methods = [
        StandardisedGLM(design(entries, constant), BUDGET, losses=losses, beside=BESIDE, rows=rows)
        for entries, rows in [(2, 1.0), (9, 1e6), (8000, 30.0)]
    ]
    first, *others = [method.plan().cost for method in methods]
    assert all(cost == first for cost in others)
    assert (first + Cost(mu_squared=BESIDE)).fits(BUDGET)
    assert len({run.m for method in methods for run in method.runs}) == 1
    assert len({run.ridge for method in methods for run in method.runs}) == 1


def test_a_larger_ridge_for_few_rows_costs_the_same() -> None:
    few = StandardisedGLM(design(50), BUDGET, losses=(Logistic(),), beside=BESIDE, rows=1.0)
    assert few.plan() == replace(few, rows=1e9).plan()
    (run,) = few.runs
    assert for_rows(run, 1e9) == run
    assert for_rows(run, 1.0).ridge > run.ridge
    assert (for_rows(run, 1.0).cost + Cost(mu_squared=BESIDE)).fits(BUDGET)


@pytest.mark.parametrize("beside", [Fraction(1), Fraction(1, 10)])
def test_nothing_is_left_beside_too_much(beside: Fraction) -> None:
    with pytest.raises(ValueError, match="too small"):
        StandardisedGLM(design(2), BUDGET, losses=(Logistic(),), beside=beside)


def test_what_no_theorem_speaks_of_is_refused() -> None:
    with pytest.raises(ValueError, match="GLMObjective"):
        StandardisedGLM(design(2), BUDGET, losses=(Huber(0.1),), beside=BESIDE)
    for budget in (Budget(1, 0), Budget(1, 1e-6, "replace")):
        with pytest.raises(ValueError, match=r"delta|add_remove"):
            StandardisedGLM(design(2), budget, losses=(Logistic(),), beside=BESIDE)


def layout_of(radius: float) -> StandardisedLayout:
    declared = Schema({"a": Number(), "b": Number(), "y": Category([0, 1])}, target="y")
    columns = {**known_columns(declared), **dict.fromkeys("ab", FoundNumber(-4, 4, 0, 1.0))}
    return StandardisedLayout(FoundBounds(declared, columns, 1.0, radius), constant=True, joint=False)


def rows_of(n: int) -> Secret[Rows]:
    X = np.random.default_rng(1).normal(size=(n, 2))
    source = ArraySource(X, (X[:, 0] > 0) * 1.0, BoxSchema(("a", "b"), 1, 1, target_name="y"))
    return Secret(Rows(source, layout_of(2.0)))


def test_it_learns_and_checks_the_design() -> None:
    method = StandardisedGLM(design(3), BUDGET, losses=(Logistic(),), beside=BESIDE, rows=20_000.0)
    outcome = method.fit(rows_of(20_000), ReleaseContext(Simulation(1)))
    assert outcome.value is not None
    a, b, constant = outcome.value.theta
    assert a > 2
    assert abs(b) + abs(constant) < 0.5
    other = StandardisedGLM(design(4), BUDGET, losses=(Logistic(),), beside=BESIDE)
    with pytest.raises(PrivateComputationError):
        other.fit(rows_of(10), ReleaseContext(Simulation(1)))


def test_the_layout_has_the_planned_design() -> None:
    for radius in (1e-9, 1.0, 1e9):
        assert Design(row_map(layout_of(radius))) == design(3)


NUMBERS = [2, 3, 10, 11, 100]


def classes(count: int, together: bool = True, loss: Any = None, budget: Budget = BUDGET) -> StandardisedClasses:
    given: dict[str, Any] = {"loss": loss or Logistic(), "together": together, "classes": count}
    return StandardisedClasses(design(4), budget, beside=BESIDE, **given)


def true_cost(runs: tuple[ObjectiveRun, ...]) -> Cost:
    """What the runs cost by themselves."""
    return sum((run.cost for run in runs[1:]), runs[0].cost)


@pytest.mark.slow
@sampled(4)
@pytest.mark.parametrize("budget", [BUDGET, Budget(8, 1e-5), Budget(1, 0.05)], ids=str)
def test_no_number_of_classes_costs_more_than_was_planned(budget: Budget) -> None:
    planned = classes(2, budget=budget).cost
    company = Cost(mu_squared=BESIDE)
    assert (planned + company).fits(budget)
    (atom,) = planned.atoms
    for count in NUMBERS if budget.delta < 0.01 else [2]:
        method = classes(count, budget=budget)
        assert method.cost == planned
        assert within(method.plan().cost, planned)
        own = true_cost(method.runs)
        (mine,) = own.atoms
        for epsilon in (0, budget.epsilon / 2, budget.epsilon, 2 * budget.epsilon):
            assert (own + company).delta_at(epsilon) <= (planned + company).delta_at(epsilon) * (1 + 1e-12)
        assert max(branch.mu_squared for branch in mine.add) <= max(branch.mu_squared for branch in atom.add)


@sampled(2)
@pytest.mark.parametrize("loss", [Logistic(), SoftHinge(0.5)])
def test_one_model_for_each_class_is_gaussian(loss: Any) -> None:
    planned = classes(2, False, loss).cost
    assert not planned.atoms
    assert (planned + Cost(mu_squared=BESIDE)).fits(BUDGET)
    for count in NUMBERS:
        method = classes(count, False, loss)
        assert method.cost == planned
        assert len(method.runs) == (1 if count == 2 else count)
        assert true_cost(method.runs).mu_squared <= planned.mu_squared


def test_what_is_not_followed_of_found_classes_is_a_failure() -> None:
    assert classes(2).cost.delta == corners.TAIL


@pytest.mark.parametrize(("count", "more"), [(3, 1.35), (10, 1.15)])
def test_up_to_ten_classes_that_are_found_are_followed_by_levels(count: int, more: float) -> None:
    listed = StandardisedGLM(design(4), BUDGET, losses=(Softmax(count),), beside=BESIDE).runs[0]
    found = classes(count).runs[0]
    assert listed.m / more < found.m < listed.m


def test_found_classes_are_followed_by_the_trace_where_levels_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(2, "1e-6")

    def far(branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
        return (Branch(Fraction(0), Fraction(9)),)

    monkeypatch.setattr(standardised, "fewer_levels", far)
    method = classes(10, budget=budget)
    assert [getattr(case.runs[0], "bound", "") for _, case in method._cases] == ["", "trace", "trace"]
    assert method.cost.delta == 0
    assert (method.cost + Cost(mu_squared=BESIDE)).fits(budget)


def test_a_softmax_model_of_fewer_classes_has_no_larger_shift() -> None:
    for kappa in (Fraction(1, 100), Fraction(1, 6), Fraction(3), Fraction(50)):
        shifts = [SoftmaxRun(Fraction(1, 10**6), kappa, count).shift for count in range(2, 102)]
        assert shifts == sorted(shifts)


def test_two_classes_cost_hardly_more_than_public_ones() -> None:
    public = StandardisedGLM(design(4), BUDGET, losses=(Logistic(),), beside=BESIDE).runs[0]
    found = classes(2).runs[0]
    assert 0.97 * public.m < found.m < public.m
    assert found.ridge <= 1.25 * public.ridge


@pytest.mark.parametrize("most", [1, 3, Fraction(17, 3), 999_999])
def test_a_loss_that_is_found_costs_what_was_planned(most: Any) -> None:
    planned = TamedPoisson(1, Fraction(1, 2))
    found = TamedPoisson(most, Fraction(most) / 2)
    method = StandardisedGLM(design(4), BUDGET, losses=(planned,), beside=BESIDE, found=found)
    (run,) = method.runs
    used: Any = method._scaled(run)
    assert method.cost == StandardisedGLM(design(4), BUDGET, losses=(planned,), beside=BESIDE).cost
    assert used.run.m_squared == run.run.m_squared
    assert used.kappa <= run.kappa <= used.kappa * (1 + Fraction(1, 2**20))
    assert used.sigma == run.sigma * found.slope / planned.slope


@pytest.mark.parametrize("count", [0, 1, 101])
def test_numbers_of_classes_that_are_not_planned(count: int) -> None:
    with pytest.raises(ValueError, match="2 to 100 classes"):
        classes(count)
    with pytest.raises(ValueError, match="of the kind of the one that is planned"):
        StandardisedGLM(design(4), BUDGET, losses=(Logistic(),), beside=BESIDE, found=TamedPoisson(1, Fraction(1, 2)))
