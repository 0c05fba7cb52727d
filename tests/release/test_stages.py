"""Two stages: paid once, never more than planned, refused as a whole, failed closed."""

from typing import Any

import pytest

from snugdp import Budget, BudgetExceededError, Cost, MemoryLedger, NotPrivate, Refused, Released, Simulation
from snugdp.noise import Noise
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.release.stages import TwoStages
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.serial.codec import StoredOutcome
from tests.plans import plan_of

FIRST, SECOND = Cost(epsilon="0.1"), Cost(epsilon="0.2", delta="1e-7")
PLAN = plan_of("two stages", {"one": FIRST, "two": SECOND})


def plan(cost: Cost) -> Plan:
    return plan_of("the second", {"two": cost})


class First:
    def __init__(self, found: Any) -> None:
        self.found = found

    def certify(self, data: Secret[int], noise: Noise) -> Any:
        if self.found == "fail":
            raise PrivateComputationError("private")
        return self.found


class Second:
    def __init__(self, *costs: Cost, refuse: bool = False, fail: bool = False) -> None:
        self.costs, self.refuse, self.fail = costs or (SECOND,), refuse, fail

    def fit(self, data: Secret[int], found: Any, context: ReleaseContext) -> Any:
        def walk(*_: object) -> StoredOutcome:
            if self.fail:
                raise PrivateComputationError("private")
            return StoredOutcome(self.refuse, *(() if self.refuse else (f"fit on {found}", "certificate")))

        return [context.pay(plan(cost), walk) for cost in self.costs][-1]


def run(first: First, second: Second, ledger: MemoryLedger | None = None) -> Any:
    context = (
        ReleaseContext(None, ledger or MemoryLedger(1, 1e-6, composition="tight"))
        if ledger is not None
        else ReleaseContext(Simulation(1))
    )
    return TwoStages(PLAN, first, second.fit, SECOND).release(Secret(1), context)


def test_both_are_paid_once() -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    outcome = run(First("x"), Second(), ledger)
    assert isinstance(outcome, Released)
    assert outcome.value == ("x", "fit on x")
    assert outcome.certificate == "certificate"
    assert outcome.cost == FIRST + SECOND == ledger.spent
    assert outcome.receipt.sequence == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (First(None), Second()),
        (First("x"), Second(refuse=True)),
        (First("fail"), Second()),
        (First("x"), Second(fail=True)),
    ],
)
def test_refusals_and_failures_look_alike_and_cost_the_same(first: First, second: Second) -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    outcome = run(first, second, ledger)
    assert isinstance(outcome, Refused)
    assert outcome.cost == FIRST + SECOND == ledger.spent


@pytest.mark.parametrize(
    "costs", [(Cost(epsilon="0.21"),), (Cost(mu="0.01"),), (SECOND, SECOND), (Cost(epsilon="0.1"),) * 2]
)
def test_a_stage_cannot_spend_more_or_twice(costs: tuple[Cost, ...]) -> None:
    """The first stage has drawn by then: a release is refused as a whole, a rehearsal says why."""
    assert isinstance(run(First("x"), Second(*costs), MemoryLedger(1, 1e-6, composition="tight")), Refused)
    with pytest.raises(BudgetExceededError):
        run(First("x"), Second(*costs))


def test_a_stage_may_spend_less() -> None:
    assert run(First("x"), Second(Cost(epsilon="0.1")), MemoryLedger(1, 1e-6, composition="tight"))


def test_nothing_is_drawn_without_money() -> None:
    ledger = MemoryLedger("0.2", 1e-6, composition="tight")
    with pytest.raises(BudgetExceededError):
        run(First("fail"), Second(), ledger)
    assert ledger.spent.fits(Budget("1e-9"))


def test_a_rehearsal_is_stamped_and_shows_mistakes() -> None:
    outcome = run(First("x"), Second())
    assert isinstance(outcome, NotPrivate)
    assert outcome.value == ("x", "fit on x")
    assert run(First(None), Second()).refused
    with pytest.raises(PrivateComputationError):
        run(First("x"), Second(fail=True))
