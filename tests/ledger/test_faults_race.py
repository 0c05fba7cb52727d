"""Eight processes at once: one unit too much, or two outputs of one key, is a failure."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from snugdp import Budget, BudgetExceededError, Cost, KeyConflictError, Ledger
from tests.effort import sampled
from tests.ledger.conftest import TENTH, Where, made
from tests.ledger.faults import at_once
from tests.ledger.faults import coin as vote

EIGHT = 8


def raced(work: Callable[[int], Iterator[object]]) -> list[str]:
    """What eight processes said who began at once; all of them came to their end."""
    ends = at_once(EIGHT, work)
    assert [code for code, _ in ends] == [0] * EIGHT, ends
    return [said for _, said in ends]


def spender(where: Where, *costs: Cost) -> Callable[[int], Iterator[object]]:
    """Charges each of these costs again and again, until it is refused; says how often it was granted."""

    def work(number: int) -> Iterator[object]:
        own, granted = Ledger.open(where.address), 0
        yield None
        for each in costs:
            with suppress(BudgetExceededError):
                for _ in range(11):
                    own.charge(each, f"a unit for {number}")
                    granted += 1
        yield granted

    return work


def test_the_last_units(where: Where) -> None:
    with made(where, Budget(2)) as ledger:
        ledger.charge(Cost(epsilon=1), "before")
        assert sum(map(int, raced(spender(where, TENTH)))) == 10
        assert ledger.spent == Cost(epsilon=2)
        assert ledger.verify().charges == 11


@sampled(6)
@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Cost(mu=0.2)])
def test_the_last_gaussian_units(where: Where, budget: Budget | Cost) -> None:
    """The boxes are fixed once, by whoever is first."""
    with made(where, budget) as ledger:
        granted = sum(map(int, raced(spender(where, Cost(mu="0.05"), Cost(mu="0.04"), Cost(mu="0.06")))))
        found = ledger.verify()
        assert found.charges == granted >= 10
        assert found.spent == sum((entry.cost for entry in ledger.entries()), Cost())
        if isinstance(budget, Budget):
            assert found.spent.fits(budget)
        else:
            assert found.spent.mu_squared <= budget.mu_squared


def test_the_same_keys(where: Where) -> None:
    """16 coins, thrown by eight at once: all see the same, and pay once."""
    with made(where, Budget(1)) as ledger:
        vote(ledger.once("warm"))

        def work(_: int) -> Iterator[object]:
            own = Ledger.open(where.address)
            yield None
            yield "".join(str(vote(own.once(f"k{i}"))) for i in range(16))

        said = raced(work)
        assert len(set(said)) == 1
        assert said[0] == "".join(str(vote(ledger.once(f"k{i}"))) for i in range(16))
        assert len(ledger.entries()) == 17
        assert ledger.spent == Cost(epsilon="0.017")


def test_the_same_key_where_nothing_is_kept(where: Where) -> None:
    """One sees its output, seven are refused."""
    with made(where, Budget(1), keep=False) as ledger:

        def work(_: int) -> Iterator[object]:
            own = Ledger.open(where.address)
            yield None
            shown = 0
            for i in range(8):
                with suppress(KeyConflictError):
                    vote(own.once(f"k{i}"))
                    shown += 1
            yield shown

        said = raced(work)
        assert sum(map(int, said)) == 8
        assert [entry.state for entry in ledger.entries()] == ["consumed"] * 8


def test_the_last_units_of_parts_and_of_a_reservation(where: Where) -> None:
    """Each is full to the brim, and no more; what is within the reservation is not counted again."""
    with made(where, Budget(2)) as ledger:
        ledger.partition("region", ["north", "south"])
        held = {"cost": Cost(epsilon=1), "what": "long work", "key": "work"}
        ledger.reserve(**held)  # type: ignore[arg-type]

        def work(number: int) -> Iterator[object]:
            own = Ledger.open(where.address)
            views = [own.part("region", "north"), own.part("region", "south"), own.reserve(**held)]  # type: ignore[arg-type]
            yield None
            granted = [0, 0, 0]
            for turn in range(3 * 6):
                each = (turn + number) % 3
                with suppress(BudgetExceededError):
                    views[each].charge(Cost(epsilon="0.2"), "a unit")
                    granted[each] += 1
            yield " ".join(map(str, granted))

        said = raced(work)
        assert [sum(column) for column in zip(*(map(int, each.split()) for each in said), strict=True)] == [5, 5, 5]
        assert ledger.verify().spent == Cost(epsilon=2)


def test_all_make_it_at_once(where: Where) -> None:
    """One ledger is made, and all have it."""

    def work(_: int) -> Iterator[object]:
        yield None
        with made(where, Budget(1)) as own:
            own.charge(TENTH, "x")
            yield own.entries()[0].hash

    assert len(set(raced(work))) == 1
    with Ledger.open(where.address) as ledger:
        assert ledger.verify().spent == Cost(epsilon="0.8")


def test_closing_and_opening_while_others_charge(where: Where) -> None:
    """The last one to close puts the log away, while others are just opening."""
    with made(where, Budget(100)):
        pass

    def work(number: int) -> Iterator[object]:
        yield None
        for _ in range(5):
            with Ledger.open(where.address) as own:
                own.charge(TENTH, f"from {number}")
        yield "done"

    assert raced(work) == ["done"] * EIGHT
    with Ledger.open(where.address) as ledger:
        assert ledger.verify().spent == Cost(epsilon=4)
