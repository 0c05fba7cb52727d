"""Plans for single rows become plans for persons, where there is a theorem for it; and the key is drawn once."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from snugdp import Budget, Cost, MemoryLedger, Neighbours, Simulation, Unit, UnitMismatchError
from snugdp.accounting import gaussian
from snugdp.noise.recording import Witness
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons, covered, drawn_key, grouped
from snugdp.serial.codec import StoredOutcome
from tests.plans import plan_of

BUDGET = Budget(1, 1e-6)


def persons(most: int = 1, budget: Budget = BUDGET) -> Persons:
    found = Persons.of("id", most, budget)
    assert found is not None
    return found


def test_without_a_column_rows_are_protected_one_by_one() -> None:
    assert Persons.of(None, 1, BUDGET) is None
    for person, most, error in ((None, 2, ValueError), ("", 1, TypeError), (7, 1, TypeError), ("id", 0, ValueError)):
        with pytest.raises(error, match=r"person|max_rows"):
            Persons.of(person, most, BUDGET)


def test_several_rows_are_not_replaced() -> None:
    other = Budget(1, 1e-6, "replace")
    assert persons(1, other).budget.neighbours is Neighbours.REPLACE
    for most in (2, "private", ("private", 1)):
        with pytest.raises(ValueError, match="number of rows is private"):
            Persons.of("id", most, other, private=True)


def test_a_plan_for_persons_is_taken_as_it_is_and_must_fit() -> None:
    """Planned by a mechanism that knows the weight of a person: nothing is multiplied, whatever its cost is."""
    for most in (1, 3):
        given = replace(plan_of("a release", {"one": Cost(mu="0.2", delta="1e-7")}), unit=Unit.PERSON)
        plan = persons(most).plan(given)
        assert (plan.cost, plan.unit, plan.budget) == (given.cost, Unit.PERSON, BUDGET)
        assert "all rows of each person are used" in str(plan)
        assert persons(most).plan(plan) == plan
        with pytest.raises(ValueError, match="does not fit into the budget of a person"):
            persons(most).plan(replace(plan_of("a release", {"one": Cost(mu=1)}), unit=Unit.PERSON))


@pytest.mark.parametrize("most", [1, 2, 7])
@pytest.mark.parametrize("cost", [Cost(epsilon="1/7"), Cost(mu="0.03")])
def test_a_plan_pays_for_all_rows_of_a_person(most: int, cost: Cost) -> None:
    plan = persons(most).plan(plan_of("a release", {"one": cost, "two": Cost()}))
    assert (plan.unit, plan.budget) == (Unit.PERSON, BUDGET)
    assert plan.cost == Cost(epsilon=cost.epsilon * most, mu_squared=cost.mu_squared * most**2)
    assert "one person, whatever the number of rows" in str(plan)
    assert ("at most" in str(plan)) == (most > 1)


@pytest.mark.parametrize(
    "cost",
    [Cost(epsilon="0.1", delta="1e-9"), Cost(mu="0.1", epsilon="0.1"), Cost(variation="1e-9")],
    ids=["a test", "a mixture", "a distance"],
)
def test_what_has_no_theorem_is_refused_for_several_rows(cost: Cost) -> None:
    plan = plan_of("a release", cost)
    assert persons(1).plan(plan).cost == cost
    assert not covered(cost)
    with pytest.raises(ValueError, match="Use max_rows=1, which always works"):
        persons(2).plan(plan)


def test_more_than_the_budget_of_a_person_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit into the budget of a person"):
        persons(2).plan(plan_of("a release", Cost(epsilon=1)))


@pytest.mark.parametrize("most", [1, 2, 16])
def test_budgets_of_a_row_are_what_a_person_may_spend(most: int) -> None:
    pure, *others = persons(most).row_budgets
    assert grouped(Cost(epsilon=pure.epsilon), most) == Cost(epsilon=1)
    whole, row = gaussian.mu(1, "1e-6"), gaussian.mu(persons(most).gaussian_budget.epsilon, "1e-6")
    assert whole * (1 - 1e-8) <= row * most <= whole
    assert (len(others), len(persons(most, Budget(1)).row_budgets)) == (int(most > 1), 1)


def test_chains_of_rows_stay_within_what_is_paid() -> None:
    """The law of a chain: k Gaussian steps, each as far as one row may move it, are one step k times as far."""
    sigma, most = 4.0, 3
    cost = grouped(Cost(mu=Fraction(1, 4)), most)
    for point in (-6.0, -1.0, 0.0, 2.0, 9.0):
        tail = [0.5 * math.erfc((point - moved) / sigma / math.sqrt(2)) for moved in range(most + 1)]
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            assert tail[-1] - math.exp(epsilon) * tail[0] <= cost.delta_at(epsilon)


def test_the_key_is_drawn_once_and_seen_by_an_audit() -> None:
    witness = Witness(3)
    key = drawn_key(witness)
    assert [lot.method for lot in witness.transcript().lots] == ["scatter"]
    assert 0 <= key < 1 << 128
    assert key == drawn_key(Simulation(3)) != drawn_key(Simulation(4))
    assert len({drawn_key(ReleaseContext(budget=BUDGET).noise) for _ in range(50)}) == 50


def test_a_context_carries_every_plan_over_to_persons() -> None:
    ledger = MemoryLedger(1, 1e-6, unit="person", composition="tight")
    context = ReleaseContext(ledger=ledger, unit=Unit.PERSON).for_persons(persons(2))
    plan = plan_of("a release", Cost(epsilon="0.2"))
    assert context.affords(plan)
    assert not context.affords(plan_of("a release", Cost(epsilon="0.5"))) or ledger.remaining.epsilon == 1
    outcome = context.pay(plan, lambda noise, receipt: StoredOutcome(refused=False, value=1))
    assert (outcome.unit, outcome.cost) == (Unit.PERSON, Cost(epsilon="0.4"))
    assert ledger.spent == Cost(epsilon="0.4")


@pytest.mark.parametrize(("held", "asked"), [("row", Unit.PERSON), ("person", Unit.ROW), ("teacher", Unit.ROW)])
def test_a_ledger_for_others_is_refused_before_anything_is_drawn(held: str, asked: Unit) -> None:
    ledger = MemoryLedger(1, 1e-6, unit=held, composition="tight")
    with pytest.raises(UnitMismatchError, match="must not be added, and nothing was drawn"):
        ReleaseContext(ledger=ledger, unit=asked)
    context = ReleaseContext(ledger=ledger, unit=Unit(held)).for_persons(persons() if asked is Unit.PERSON else None)
    plan = plan_of("a release", Cost(epsilon="0.2"))
    for ask in (context.known, context.affords, lambda plan: context.pay(plan, lambda *_: pytest.fail("drawn"))):
        with pytest.raises(UnitMismatchError, match="must not be added"):
            ask(plan)
    assert ledger.spent == Cost()
