"""The rules: history is judged like the present, and every total dominates what any one row was charged."""

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp import Budget, BudgetExceededError, Cost, RelationMismatchError
from snugdp.accounting.composition import Atom, Branch
from snugdp.ledger.composition.limits import within
from snugdp.ledger.composition.tally import Tally
from snugdp.ledger.errors import KeyConflictError, TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history.records import Row
from snugdp.ledger.history.state import Charge, Judged, State
from snugdp.ledger.requests import genesis
from snugdp.serial import costs
from tests.ledger.faults import forged

STAMP = {"time": "2026-01-01T00:00:00+00:00", "software": "snugdp"}
ATOM = Atom((Branch(Fraction(1, 100), Fraction(1, 10)),), (Branch(Fraction(1, 100), Fraction(1, 5)),))


class Book:
    """A state with its rows: what a store and ``State`` do together."""

    def __init__(self, budget: Budget | Cost, keep: bool = True, composition: str = "tight") -> None:
        self.state, self.rows = State(), list[Row]()
        wanted = genesis("people", budget, None, keep, composition=composition)
        self.write("genesis", wanted.fields("here", "a" * 32))

    def write(self, kind: str, fields: Any, body: str | None = None) -> int:
        return self._add(self.state.draft(kind, fields, STAMP), body)

    def _add(self, judged: Judged, body: str | None = None) -> int:
        self.state.take(judged)
        self.rows.append(judged.record.row(body))
        return judged.record.seq

    def charge(self, cost: Cost, part: tuple[str, str] | None = None, inside: int | None = None) -> int:
        return self._charge(Charge(f"k{len(self.rows)}", "x", "", cost, part, inside))

    def reserve(self, cost: Cost, part: tuple[str, str] | None = None) -> int:
        return self._charge(Charge(f"k{len(self.rows)}", "x", "", cost, part, None, True))

    def _charge(self, charge: Charge) -> int:
        return self._add(self.state.charged(charge, STAMP))


def read(rows: list[Row]) -> State:
    state = State()
    for row in rows:
        state.read(row)
    return state


def history() -> Book:
    book = Book(Budget(1, 1e-6))
    book.write("partition", {"name": "region", "parts": ["north", "south"]})
    first = book.charge(Cost(mu=0.05))
    book.write("outcome", {"of": first, "state": "released", "body": records.digest("7")}, "7")
    book.charge(Cost(epsilon=0.1), ("region", "north"))
    held = book.reserve(Cost(epsilon=0.2))
    book.charge(Cost(epsilon=0.15), None, held)
    return book


def test_a_history_is_read_as_it_was_written() -> None:
    book = history()
    again = read(book.rows)
    assert again.spent == book.state.spent == Cost(mu=0.05, epsilon=0.3)
    assert again.hashes == book.state.hashes
    assert (again.keys, again.reserved, again.settled) == (book.state.keys, book.state.reserved, book.state.settled)
    assert again.remaining == book.state.remaining
    assert {seq: one.used for seq, one in again.reserved.items()} == {5: Cost(epsilon=0.15)}


FORGERIES: list[tuple[int, Callable[[dict[str, Any]], Any]]] = [
    (0, lambda f: f["budget"].update(epsilon="1/2")),  # limits that were fixed for more
    (0, lambda f: f.update(id="A" * 32)),
    (0, lambda f: f.update(keep=1)),
    (0, lambda f: f.update(keep=False)),  # but an output is kept
    (0, lambda f: f.update(neighbours="replace")),  # but parts were declared
    (0, lambda f: f.update(neighbours="friends")),
    (0, lambda f: f.update(format=0)),
    (0, lambda f: f.update(dataset=None)),
    (1, lambda f: f.update(parts=["north", "north"])),
    (1, lambda f: f.update(parts=["south"])),  # but the north was charged
    (1, lambda f: f.update(parts="north")),
    (1, lambda f: f.update(name="")),
    (2, lambda f: f["cost"].update(mu_squared="1/1000")),  # less, but the total stays
    (2, lambda f: f["total"].update(mu_squared="1/1000")),
    (2, lambda f: (f["total"].update(mu_squared="1/1000"), f["cost"].update(mu_squared="1/1000"))),  # the next total
    (2, lambda f: f.update(limits=None)),
    (2, lambda f: f["limits"][0]["limit"].update(mu_squared="1")),  # larger than the budget allows
    (2, lambda f: f["limits"].append(f["limits"][0])),
    (2, lambda f: f.update(limits=[])),
    (2, lambda f: f["limits"][-1].update(order="1/2")),
    (2, lambda f: f["limits"][0].update(more=1)),
    (2, lambda f: f.update(key="")),
    (2, lambda f: f.update(key="k4")),  # used again later
    (2, lambda f: f.update(part=["region", "east"])),
    (2, lambda f: f.update(part=["region"])),
    (2, lambda f: f.update(within=5)),  # a reservation that comes later
    (2, lambda f: f.update(within=True)),
    (2, lambda f: f.update(kind="outcome")),
    (2, lambda f: f.update(question="a question")),
    (2, lambda f: f.update(question={"words": "x", "digest": "A" * 32})),
    (2, lambda f: f.update(question={"words": 1, "digest": "a" * 32})),
    (2, lambda f: f.update(question={"words": "x", "digest": "a" * 32, "more": 1})),
    (5, lambda f: f.update(question=None)),  # a reservation asks nothing
    (3, lambda f: f.update(of=0)),
    (3, lambda f: f.update(of=5)),
    (3, lambda f: f.update(state="consumed")),
    (3, lambda f: f.update(state="open")),
    (3, lambda f: f.update(body="7")),
    (4, lambda f: f.update(part=["region", "west"])),
    (4, lambda f: f.update(limits=[])),
    (4, lambda f: f.update(total={})),
    (5, lambda f: f.update(kind="charge")),
    (5, lambda f: f["cost"].update(epsilon="1/10")),
    (6, lambda f: f["cost"].update(epsilon="1/4")),  # more than was reserved
    (6, lambda f: f.update(within=2)),  # not a reservation
    (6, lambda f: f.update(within=4)),
    (6, lambda f: f.update(within=None)),  # the total would be another
    (6, lambda f: f.update(part=["region", "north"])),
    (6, lambda f: f.update(limits=[])),
]


@pytest.mark.parametrize("number", range(len(FORGERIES)))
def test_a_history_that_breaks_a_rule_is_refused_though_every_hash_fits(number: int) -> None:
    at, change = FORGERIES[number]
    rows = forged(history().rows, at, change)
    with pytest.raises(TamperedLedgerError):
        read(rows)


def test_genesis_is_first_and_only_first() -> None:
    book = history()
    with pytest.raises(TamperedLedgerError):
        read(forged([*book.rows, book.rows[0]._replace(seq=7)], 7, lambda f: f.update(seq=7)))
    with pytest.raises(TamperedLedgerError):
        read(forged(book.rows[1:], 1, lambda f: None))
    with pytest.raises(TamperedLedgerError, match="empty"):
        _ = State().spent


def test_an_outcome_is_stored_once() -> None:
    book = history()
    with pytest.raises(ValueError, match="no other"):
        book.write("outcome", {"of": 2, "state": "consumed", "body": None})
    keepless = Book(Budget(1), keep=False)
    of = keepless.charge(Cost(epsilon=0.1))
    with pytest.raises(ValueError, match="keeps no outputs"):
        keepless.write("outcome", {"of": of, "state": "released", "body": records.digest("7")}, "7")


def test_a_refused_charge_changes_nothing() -> None:
    book = history()
    before = (book.state.spent, book.state.seq, dict(book.state.reserved), book.state.filter)
    for cost, inside in ((Cost(mu=10), None), (Cost(epsilon=0.1), 5), (Cost(mu=0.01), 5)):
        with pytest.raises(BudgetExceededError):
            book.charge(cost, None, inside)
    with pytest.raises(RelationMismatchError):
        book.charge(Cost(epsilon=0.01, neighbours="replace"))
    with pytest.raises(ValueError, match="no part"):
        book.charge(Cost(epsilon=0.01), ("region", "east"))
    assert before == (book.state.spent, book.state.seq, dict(book.state.reserved), book.state.filter)


def test_a_key_names_one_charge() -> None:
    state = history().state
    again = state.charges[2]
    assert state.found(again) == 2
    for other in (
        Charge("k2", "y", "", again.cost),
        Charge("k2", "x", "p", again.cost),
        Charge("k2", "x", "", Cost(mu=0.06)),
        Charge("k2", "x", "", again.cost, ("region", "north")),
        Charge("k2", "x", "", again.cost, None, 5),
        Charge("k2", "x", "", again.cost, None, None, True),
    ):
        with pytest.raises(KeyConflictError, match="one release"):
            state.found(other)


def test_caps_hold_part_by_part() -> None:
    book = Book(Cost(mu=1, epsilon=0.3, delta=1e-6))
    for _ in range(3):
        book.charge(Cost(epsilon=0.1))
    with pytest.raises(BudgetExceededError):
        book.charge(Cost(epsilon="1e-30"))
    book.charge(Cost(mu=1, delta=1e-6))
    with pytest.raises(BudgetExceededError):
        book.charge(Cost(variation="1e-30"))
    assert read(book.rows).spent == Cost(mu=1, epsilon=0.3, delta=1e-6)


def test_what_costs_nothing_fixes_no_limits() -> None:
    book = Book(Budget(1, 1e-6))
    book.charge(Cost())
    book.charge(Cost(mu=0.2))
    assert json.loads(book.rows[1].record)["limits"] is None
    assert json.loads(book.rows[2].record)["limits"] is not None
    assert read(book.rows).spent == Cost(mu=0.2)


def test_atoms_are_written_and_read() -> None:
    book = Book(Budget(2, 1e-6))
    book.charge(Cost(atoms=(ATOM,)))
    book.charge(Cost(atoms=(ATOM,), epsilon=0.01))
    assert read(book.rows).spent == Cost(atoms=(ATOM, ATOM), epsilon=0.01)


moves = st.tuples(
    st.sampled_from(["mu", "epsilon", "delta", "variation", "atoms"]),
    st.integers(1, 20),
    st.sampled_from([None, ("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"), ("b", "3")]),
)


def cost_of(kind: str, size: int) -> Cost:
    if kind == "atoms":
        return Cost(atoms=(ATOM,) * (size % 3))
    return Cost(**{kind: Fraction(size, 100)})  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.lists(moves, max_size=12))
def test_the_total_dominates_what_any_row_was_charged(steps: list[tuple[str, int, tuple[str, str] | None]]) -> None:
    """For every choice of one part of each partition; and it is the smallest cost that does, part by part."""
    tally = Tally()
    for kind, size, part in steps:
        tally = tally.after(cost_of(kind, size), part)
    total = tally.total(Cost().neighbours)
    rows = []
    for one, other in itertools.product("12", "123"):
        seen = (cost_of(k, s) for k, s, part in steps if part in (None, ("a", one), ("b", other)))
        rows.append(sum(seen, Cost()))
    assert all(within(row, total) for row in rows)
    for name in costs.PARTS:
        assert getattr(total, name) == max(getattr(row, name) for row in rows)


@settings(max_examples=25, deadline=None)
@given(st.lists(moves, max_size=8))
def test_whatever_was_accepted_is_read_again_with_the_same_total(
    steps: list[tuple[str, int, tuple[str, str] | None]],
) -> None:
    book = Book(Budget(2, "1e-2"))
    book.write("partition", {"name": "a", "parts": ["1", "2"]})
    book.write("partition", {"name": "b", "parts": ["1", "2", "3"]})
    for kind, size, part in steps:
        cost = cost_of(kind, size)
        asked = Charge("asked", "x", "", cost, part)
        if book.state.affords(asked):
            book.charge(cost, part)
        else:
            with pytest.raises(BudgetExceededError):
                book.charge(cost, part)
    again = read(book.rows)
    assert (again.total, again.hashes, again.filter) == (book.state.total, book.state.hashes, book.state.filter)
