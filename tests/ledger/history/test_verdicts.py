"""One history has one verdict: whoever reads it from the first record, from a checkpoint or as it grows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from snugdp import Budget, Cost, Ledger
from snugdp.core.outcome import Receipt
from snugdp.ledger.errors import LedgerError, TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history import state as states
from snugdp.ledger.history.archive import History
from snugdp.ledger.history.records import Row
from snugdp.ledger.history.state import State
from snugdp.serial import costs
from tests.ledger.conftest import Where, another_user, made
from tests.ledger.history.test_voids import by_hand, record

BUDGET = Budget(10, 1e-6)
ONE = Cost(epsilon="0.1")
EVERY = 8


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "EVERY", EVERY)
    monkeypatch.setattr("snugdp.ledger.handle.EVERY", EVERY)


def long_history(ledger: Ledger) -> list[Receipt]:
    """Charges 1, 3, ... with their outcomes, a reservation; three checkpoints and a little more."""
    receipts = [ledger.charge(ONE, "x", key=f"k{number}") for number in range(4)]
    for number, receipt in enumerate(receipts[:3]):
        ledger.settle(receipt, f"output {number}")
    ledger.reserve(ONE, "work", key="work")
    for number in range(4, 20):
        receipts.append(ledger.charge(ONE, "x", key=f"k{number}"))
    return receipts


def outcome_of(where: Where, of: object, state: str = "consumed", body: str | None = None) -> Row:
    digest = None if body is None else records.digest(body)
    return by_hand(where, record(where, "outcome", of=of, state=state, body=digest), body)


@pytest.mark.parametrize(
    "which", ["second outcome", "of a reservation", "of an outcome", "of genesis", "of a checkpoint"]
)
def test_an_outcome_by_hand_of_an_old_record(where: Where, tmp_path: Path, which: str) -> None:
    """Before the newest checkpoint as after it: an outcome is of a charge, and of one that has no other."""
    with made(where, BUDGET, composition="addition") as ledger:
        receipts = long_history(ledger)
        kinds = {json.loads(row.record)["kind"]: row.seq for row in reversed(where.rows())}
        of = {"of a reservation": kinds["reserve"], "of an outcome": kinds["outcome"], "of a checkpoint": EVERY}
        row = outcome_of(
            where, {"second outcome": receipts[0].sequence, "of genesis": 0, **of}[which], "released", "99"
        )

        def as_somebody_else() -> None:
            with pytest.MonkeyPatch.context() as patch:
                another_user(patch, tmp_path / "another")
                Ledger.open(where.address)

        for look in (lambda: ledger.spent, ledger.verify, lambda: Ledger.open(where.address), as_somebody_else):
            with pytest.raises(TamperedLedgerError, match=rf"record {row.seq} .*snugdp ledger void"):
                look()
        Ledger.void(where.address, reason="by hand").close()
        assert ledger.recall(receipts[0]) == "output 0"
        assert ledger.settle(receipts[3], "late") == ledger.settle(receipts[3], "later") == "late"
        ledger.verify(receipts)


def test_an_old_key_by_hand_counts_and_changes_nothing(where: Where) -> None:
    """A second charge with the key of an old one costs what it says; the key shows what it has always shown."""
    with made(where, BUDGET, composition="addition") as ledger:
        receipts = long_history(ledger)
        spent = ledger.spent
        fields = json.loads(where.rows()[1].record)
        rest = {name: value for name, value in fields.items() if name not in ("prev", "seq", "kind")}
        total = {"total": {**fields["total"], "epsilon": str(spent.epsilon + ONE.epsilon)}}
        by_hand(where, record(where, "charge", **{**rest, **total}))
        for opened in (ledger, Ledger.open(where.address)):
            assert opened.charge(ONE, "x", key="k0") == receipts[0]
            assert opened.recall(receipts[0]) == "output 0"
            assert opened.spent == spent + ONE == opened.verify(receipts).spent
        opened.close()


def test_what_cannot_be_judged_is_not_put_aside(where: Where) -> None:
    """An outcome of an old charge, and that charge was lost: a damaged history, in which nothing is void."""
    with made(where, BUDGET, composition="addition") as ledger:
        receipts = long_history(ledger)
        ledger.settle(receipts[3], "late")
    rows = where.rows()
    of = receipts[3].sequence
    where.replace([*rows[: of - 1], *rows[of + 1 :]])
    with pytest.raises(LedgerError, match=r"missing|changed or lost|head does not match") as refused:
        Ledger.open(where.address)
    assert "snugdp ledger void" not in str(refused.value)
    with pytest.raises(LedgerError, match=r"missing|changed or lost|head does not match"):
        Ledger.void(where.address, reason="it is in the way", lost_epsilon=0)


JUNK: tuple[Any, ...] = (
    None, True, 0, 1, -1, 7, 10**30, 1.5, "", "x", "1", "1/0", "1e9999", "-1", "9" * 700, "\ud800", [], {}, [None],
    [[]], [1, "a"], {"epsilon": "1"}, {"epsilon": "-1"}, {"atoms": [{}]}, ["a", "b"], [["a"], "b"], "0" * 64, "f" * 32,
)  # fmt: skip


@pytest.mark.parametrize("wrong", ["less", "nothing", "in a ledger that composes", "a large one is less"])
def test_a_pure_release_is_composed_as_no_less_than_it_is(where: Where, wrong: str) -> None:
    """In a ledger by either way a small one is written down as Gaussian; what is forged there is no record."""
    way = "tight" if wrong == "in a ledger that composes" else "both"
    with made(where, Budget(1, 1e-6), composition=way) as ledger:
        receipts = [ledger.charge(Cost(epsilon="0.01"), "x", key=f"k{number}") for number in range(9)]
        assert ledger.charge(Cost(epsilon="0.01"), "x", key="k1") == receipts[1]
        assert ledger.verify(receipts).charges == 9
        last = json.loads(where.rows()[-1].record)
        assert ("composed_as" in last) == (way == "both")
        told = ledger.overview()
        assert (told.epsilon, told.delta) == (Fraction("0.09"), Fraction(0))
        spent = ledger.spent
    rest = {name: value for name, value in last.items() if name not in ("prev", "seq", "kind")}
    less = {"mu_squared": "1/10000"}
    forged = {
        "less": less,
        "nothing": {},
        "in a ledger that composes": {"mu_squared": "1"},
        "a large one is less": less,
    }
    more = Cost(mu_squared=Fraction(forged[wrong].get("mu_squared", "0")), neighbours=spent.neighbours)
    rest |= {"key": "forged", "composed_as": forged[wrong], "total": costs.total_to_json(costs.added(spent, more))}
    if wrong == "a large one is less":
        rest |= {"cost": {"epsilon": "1/2"}, "announced": {"epsilon": "1/2"}}
    row = by_hand(where, record(where, "charge", **rest))
    with pytest.raises(TamperedLedgerError, match=rf"record {row.seq} .*unknown form.*snugdp ledger void"):
        Ledger.open(where.address)


class Held:
    """Rows as a transaction shows them."""

    def __init__(self, held: list[Row]) -> None:
        self._held = held

    def rows(self, after: int) -> Iterator[Row]:
        return iter(self._held[after + 1 :])

    def row(self, seq: int) -> Row | None:
        return self._held[seq] if seq < len(self._held) else None


def after(rows: list[Row], whole: bool) -> State:
    """The state of these rows, with an archive of those before the newest checkpoint."""
    state, history = State(whole=whole), History()
    history.within(Held(rows))  # type: ignore[arg-type]
    state.archive = history
    for row in rows:
        state.read(row)
    return state


def is_legal(state: State, row: Row) -> bool:
    """Whether a row is legal next; any error but that of the ledger fails the test. What was legal is forgotten."""
    copy = replace(state, illegal=[])
    copy.take = lambda judged: None  # type: ignore[method-assign]
    try:
        copy.read(row)
    except TamperedLedgerError:
        return False
    return True


@pytest.mark.slow
def test_whatever_stands_in_a_record_is_judged_alike(tmp_path: Path) -> None:
    """Every field of every kind of record, exchanged for what does not belong there: no other error, one verdict."""
    where = Where("sqlite", str(tmp_path / "ledger.db"), "survey")
    with made(where, BUDGET, composition="both", unit="person") as ledger:
        ledger.partition("region", 2)
        long_history(ledger)
        ledger.part("region", 1).charge(Cost(mu="0.1"), "gauss", announced=Budget(1, 1e-7))
        ledger.settle(ledger.reserve(ONE, "more", key="more").charge(ONE, "inside"), None)
    rows = where.rows()
    kinds = {json.loads(row.record)["kind"]: row for row in rows}
    assert len(kinds) == 6
    for row in kinds.values():
        both = [after(rows[: row.seq], whole) for whole in (True, False)]
        assert all(is_legal(state, row) for state in both)
        fields = json.loads(row.record)
        for name, value in product(fields, JUNK):
            text = records.canonical({**fields, name: value})
            changed = Row(row.seq, text, row.body, records.digest(text))
            assert len({is_legal(state, changed) for state in both}) == 1, (row.seq, name, value)
