"""Checkpoints: a long ledger opens without reading its history, and what it reads of it later is proved."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from snugdp import Budget, Cost, KeyConflictError, Ledger
from snugdp.ledger.anchors.anchor import FileAnchor, Mark
from snugdp.ledger.anchors.recognition import UserAnchor
from snugdp.ledger.errors import TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history import state as states
from snugdp.ledger.history.records import Row
from snugdp.ledger.history.state import State
from tests.effort import sampled
from tests.ledger.conftest import Where, another_user, made
from tests.ledger.faults import forged
from tests.ledger.test_faults_bits import replaced

BUDGET = Budget(10, 1e-6)
ONE = Cost(epsilon="0.01")
MANY = 40


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "EVERY", 8)
    monkeypatch.setattr("snugdp.ledger.handle.EVERY", 8)


def history(ledger: Ledger) -> list[Any]:
    receipts = [ledger.charge(ONE, "x", key=f"k{number}") for number in range(MANY)]
    for number, receipt in enumerate(receipts):
        if number % 3:
            ledger.settle(receipt, f"output {number}")
    return receipts


def read_at_opening(where: Where, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows are judged when the ledger is opened."""
    count = [0]
    read = State.read

    def counted(self: State, row: Row) -> None:
        count[0] += 1
        read(self, row)

    with monkeypatch.context() as patched:
        patched.setattr(State, "read", counted)
        Ledger.open(where.address).close()
    return count[0]


@sampled(3)
@pytest.mark.parametrize("composition", ["addition", "tight", "both"])
def test_a_long_ledger_is_what_it_was(where: Where, monkeypatch: pytest.MonkeyPatch, composition: str) -> None:
    with made(where, BUDGET, composition=composition) as ledger:
        ledger.partition("region", ["north", "south"])
        work = ledger.reserve(Cost(epsilon=1, mu="0.01"), "work", key="work")
        for part in ("north", "south"):
            ledger.part("region", part).charge(Cost(epsilon="0.5"), "a count")
        receipts = history(ledger)
        spent, left = ledger.spent, ledger.remaining
    assert read_at_opening(where, monkeypatch) <= 10  # genesis twice: whose anchor, and from where
    with Ledger.open(where.address, receipts=receipts[:3]) as ledger:
        assert (ledger.spent, ledger.remaining) == (spent, left)
        assert len(ledger.entries()) == MANY + 3
        for number, receipt in enumerate(receipts):
            again = ledger.charge(ONE, "x", key=f"k{number}")
            assert again == receipt
            assert ledger.recall(again) == (f"output {number}" if number % 3 else None)
        assert ledger.spent == spent
        assert ledger.settle(receipts[0], "late") == "late"
        assert ledger.settle(receipts[0], "later") == ledger.settle(receipts[1], "x").replace("output 1", "late")  # type: ignore[union-attr]
        with pytest.raises(KeyConflictError):
            ledger.charge(Cost(epsilon="0.02"), "x", key="k0")
        assert ledger.reserve(Cost(epsilon=1, mu="0.01"), "work", key="work").affords(Cost(epsilon=1))
        assert work.address == ledger.address
        ledger.verify(receipts)
        shown = ledger.show(5)
        assert f"The last 5 of {MANY + 3} entries" in shown
        assert len(ledger.overview(7).entries) == 7
        assert [entry.sequence for entry in ledger.overview(7).entries] == [e.sequence for e in ledger.entries()[-7:]]


def test_whoever_opens_it_first_reads_all_of_it(where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(where, BUDGET) as ledger:
        history(ledger)
    with monkeypatch.context() as patch:
        another_user(patch, tmp_path / "ann")
        assert read_at_opening(where, monkeypatch) > MANY
        assert read_at_opening(where, monkeypatch) <= 10


@sampled(2)
@pytest.mark.parametrize("composition", ["addition", "tight", "both"])
def test_adoptions_and_what_was_lost_are_in_checkpoints(
    where: Where, monkeypatch: pytest.MonkeyPatch, composition: str
) -> None:
    """Whether a checkpoint is due before the adoption, before the charge for what was lost, or after both."""
    spent, lost = Cost(), 0
    with made(where, BUDGET, composition=composition) as ledger:
        identity = ledger.identity
    for more in (7, 4, 2):
        with Ledger.open(where.address) as ledger:
            for _ in range(more):
                ledger.charge(ONE, "x")
            spent, end = spent + Cost(epsilon=ONE.epsilon * more), ledger.verify().entries - 1
        UserAnchor(identity).reset(Mark(identity, end + 3, "f" * 64))  # as if three records were lost
        with pytest.raises(TamperedLedgerError, match="snugdp ledger adopt"):
            Ledger.open(where.address)
        lost += 1
        with Ledger.adopt(where.address, reason=f"loss {lost}", by="ann", lost_epsilon="0.25") as ledger:
            spent += Cost(epsilon="0.25")
            assert ledger.overview().epsilon == spent.epsilon
            assert [one.reason for one in ledger.adoptions] == [f"loss {number + 1}" for number in range(lost)]
            assert ledger.adoptions[-1].lost == ((end + 3, "f" * 64),)
            ledger.verify()
    order = [kind for _, kind in kinds(where.rows())]
    pairs = set(pairwise(order))
    assert {("charge", "adopt"), ("checkpoint", "adopt"), ("adopt", "checkpoint"), ("adopt", "charge")} <= pairs
    with Ledger.open(where.address) as ledger:
        for _ in range(20):
            ledger.charge(ONE, "x")
        adoptions, shown = ledger.adoptions, ledger.show()
        assert shown.count("adopted  ") == lost
    assert read_at_opening(where, monkeypatch) <= 10
    with Ledger.open(where.address) as ledger:
        total = spent.epsilon + Fraction("0.2")
        told, exact = ledger.overview().epsilon, composition != "both"  # by either way, the smaller of two
        assert ledger.adoptions == adoptions
        assert told is not None
        assert told == total if exact else told <= total
        assert ledger.verify().spent == ledger.spent
        left = ledger.remaining.together[0]
        assert left == BUDGET.epsilon - total if exact else left >= BUDGET.epsilon - total


def test_an_adoption_reads_everything(where: Where) -> None:
    """Also what lies before a checkpoint that every anchor has seen."""
    with made(where, BUDGET) as ledger:
        history(ledger)
        identity = ledger.identity
    rows = where.rows()
    changed = forged(rows, 3, lambda fields: fields.update(key="another"))[3]
    where.replace([*rows[:3], changed, *rows[4:]])
    Ledger.open(where.address).close()
    UserAnchor(identity).reset(Mark(identity, len(rows), "f" * 64))
    with pytest.raises(TamperedLedgerError, match="record 4 of the ledger does not follow"):
        Ledger.adopt(where.address, reason="the disk broke", lost_epsilon=1)
    assert UserAnchor(identity).read().seq == len(rows)


def kinds(rows: list[Row]) -> Iterator[tuple[int, str]]:
    for row in rows:
        record = records.read(row, None, row.seq)
        yield record.seq, record.kind


def judged(rows: list[Row]) -> None:
    state = State(whole=True)
    for row in rows:
        state.read(row)


def test_keys_with_one_fingerprint_are_told_apart(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks for two keys of the same 64 bits finds them: neither is charged or drawn twice."""
    monkeypatch.setattr(states, "FINGERPRINT", 1)
    with made(where, BUDGET) as ledger:
        receipts = history(ledger)
    with Ledger.open(where.address) as ledger:
        assert [ledger.charge(ONE, "x", key=f"k{number}") for number in range(MANY)] == receipts
        assert ledger.recall(receipts[1]) == "output 1"
        assert ledger.verify(receipts).charges == MANY


def test_checkpoints_are_in_their_places(where: Where) -> None:
    with made(where, BUDGET) as ledger:
        history(ledger)
    rows = where.rows()
    for seq, kind in kinds(rows):
        assert (kind == "checkpoint") == (seq > 0 and seq % 8 == 0)
    for change in (
        lambda fields: fields["spent"]["composed"].update(whole={"epsilon": "1/100"}),  # less was spent
        lambda fields: fields.update(charges=0),
        lambda fields: fields.update(index=[]),
        lambda fields: fields.update(genesis="0" * 64),
        lambda fields: fields["spent"].update(limits=[]) or fields["spent"]["announced"].update(whole={}),
    ):
        false = forged(rows, 24, change)
        with pytest.raises(TamperedLedgerError):
            judged(false)
        where.replace(false)
        with pytest.raises(TamperedLedgerError):
            Ledger.open(where.address).close()  # the anchor knows another chain
    where.replace(rows)
    Ledger.open(where.address).close()


@pytest.mark.parametrize("vouched", [False, True])
def test_a_false_checkpoint_that_this_user_has_not_seen_is_judged(where: Where, vouched: bool) -> None:
    """Anchors from long ago: what they have not seen is read and judged, whatever an anchor beside it vouches for."""
    with made(where, BUDGET) as ledger:
        ledger.charge(ONE, "x", key="first")
        old = {path: path.read_bytes() for path in {where.anchor, *where.remembered}}
        history(ledger)
        identity = ledger.identity
    rows = where.rows()
    false = forged(rows, 24, lambda fields: fields["spent"]["composed"].update(whole={"epsilon": "1/100"}))
    cut = false[:25]  # nothing after it that would show the true total
    replaced(where, cut)
    for path, content in old.items():
        path.write_bytes(content)
    if vouched and where.kind == "sqlite":
        FileAnchor(where.anchor).reset(Mark(identity, 24, cut[-1].hash))
    with pytest.raises(TamperedLedgerError, match="record 24 of the ledger has an unknown form"):
        Ledger.open(where.address)
    for path, content in old.items():
        path.write_bytes(content)
    replaced(where, rows)
    with Ledger.open(where.address) as ledger:
        assert ledger.spent == Cost(epsilon="0.41")


def test_old_rows_that_change_never_lower_what_is_spent_and_are_never_used(where: Where) -> None:
    with made(where, BUDGET) as ledger:
        receipts = history(ledger)
        spent = ledger.spent
    rows = where.rows()
    place = receipts[4].sequence
    changed = forged(rows, place, lambda fields: fields.update(key="another"))[place]
    twice = Row(place, rows[place - 1].record, None, rows[place - 1].hash)
    for instead in ([], [changed], [twice]):
        other = [*rows[:place], *instead, *rows[place + 1 :]]
        where.replace(other)
        with Ledger.open(where.address) as ledger:
            assert ledger.spent == spent
            with pytest.raises(TamperedLedgerError):
                ledger.charge(ONE, "x", key="k4")
            ledger.charge(ONE, "x", key=f"new {len(rows)}")
            spent += ONE
            with pytest.raises(TamperedLedgerError):
                ledger.verify()
            with pytest.raises(TamperedLedgerError):
                ledger.entries()
        rows = [*rows, *where.rows()[len(other) :]]
    where.replace(rows)
    with Ledger.open(where.address) as ledger:
        assert ledger.verify().spent == spent


def test_a_ledger_from_before_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Format 2, without checkpoints, users and ways: it composes tightly, opens as ever, and gets checkpoints."""
    from snugdp.ledger import requests

    fields = requests.Wanted.fields

    def former(self: Any, address: str, fresh: str) -> dict[str, Any]:
        given = dict(fields(self, address, fresh)) | {"format": 2}
        return {name: value for name, value in given.items() if name not in ("composition", "users")}

    path = tmp_path / "former.ledger"
    with monkeypatch.context() as patched:
        patched.setattr(requests.Wanted, "fields", former)
        patched.setattr(states, "EVERY", 10**9)
        with Ledger.open(path, dataset="x", budget=BUDGET) as ledger:
            receipts = history(ledger)
    with Ledger.open(path) as ledger:
        assert ledger.composition.value == "tight"
        for number in range(12):
            ledger.charge(ONE, "x", key=f"more {number}")
    with Ledger.open(path) as ledger:
        assert ledger.charge(ONE, "x", key="k0") == receipts[0]
        assert ledger.recall(receipts[1]) == "output 1"
        assert ledger.verify(receipts).charges == MANY + 12
