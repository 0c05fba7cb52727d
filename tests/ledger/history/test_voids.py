"""Records by hand that mean nothing stop a ledger, until they are void; and nothing that counts is ever void."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from snugdp import Budget, Cost, Ledger
from snugdp.ledger.errors import LedgerError, TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history import state as states
from snugdp.ledger.history.records import Row
from snugdp.ledger.history.state import State
from snugdp.ledger.history.voids import digest_of
from tests.ledger.conftest import Where, another_user, as_owner, made

BUDGET = Budget(10, 1e-6)
ONE = Cost(epsilon="0.5")
EVERY = 8


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "EVERY", EVERY)
    monkeypatch.setattr("snugdp.ledger.handle.EVERY", EVERY)


def by_hand(where: Where, text: str, body: str | None = None) -> Row:
    """Append a row as a member may, past the library; where it is PostgreSQL, past its triggers."""
    row = Row(where.rows()[-1].seq + 1, text, body, records.digest(text))
    if where.kind == "sqlite":
        with sqlite3.connect(where.address) as base:
            base.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", row)
        base.close()
    else:
        with as_owner(where.address) as base:
            base.execute("INSERT INTO snugdp.entry VALUES (%s, %s, %s, %s, %s)", (where.dataset, *row))
    return row


def record(where: Where, kind: str, **fields: Any) -> str:
    """The text of a record that follows the last row."""
    last = where.rows()[-1]
    return records.write(last.hash, last.seq + 1, kind, {**records.stamp(), **fields}).text


def no_json(where: Where) -> str:
    last = where.rows()[-1]
    return f'{{"kind":"a","prev":"{last.hash}","seq":{last.seq + 1},"software":"snugdp 0.1.0","time":"now",,}}'


def beyond_the_budget(where: Where) -> str:
    fields = json.loads(next(row.record for row in where.rows() if '"kind":"charge"' in row.record))
    fields |= {"cost": {"epsilon": "99", "delta": "0"}, "announced": {"epsilon": "99", "delta": "0"}, "key": "much"}
    return record(where, **{name: value for name, value in fields.items() if name not in ("prev", "seq")})


def a_lost_output(where: Where) -> str:
    return record(where, "outcome", of=1, state="released", body=records.digest("7"))


def an_empty_checkpoint(where: Where) -> str:
    """As if nothing had been spent so far."""
    genesis = where.rows()[0]
    fresh = State()
    fresh.read(genesis)
    nothing = dict(fresh.summary()) | {"index": [None] * (where.rows()[-1].seq)}
    return record(where, "checkpoint", **nothing)


JUNK = (no_json, beyond_the_budget, a_lost_output, an_empty_checkpoint)


def test_what_means_nothing_stops_all_until_it_is_void(where: Where, tmp_path: Path) -> None:
    """One junk record of each kind, at every place between checkpoints; a legal one after it is as void."""
    with made(where, BUDGET, composition="addition") as ledger:
        receipts, spent = [], Cost()
        for number, junk in enumerate(JUNK * 2):
            receipts.append(ledger.charge(ONE, "x", key=f"k{number}"))
            ledger.settle(receipts[-1], f"output {number}")
            spent += ONE
            rows = len(where.rows())
            by_hand(where, junk(where))
            if number % 2:
                by_hand(where, record(where, "outcome", of=receipts[-1].sequence, state="consumed", body=None))
            for refuse in (lambda: ledger.charge(ONE, "y"), lambda: Ledger.open(where.address), ledger.verify):
                with pytest.raises(TamperedLedgerError, match=rf"record {rows} .*snugdp ledger void"):
                    refuse()
            lost = 0 if junk is a_lost_output else None
            if number % 2:
                with pytest.raises(ValueError, match="somebody may have gone on"):
                    Ledger.void(where.address, reason="and what follows", by="ann")
                lost = 0
            with Ledger.void(where.address, reason=f"junk {number}", by="ann", lost_epsilon=lost) as mended:
                assert mended.spent == spent
                assert mended.voids[-1].words.startswith("record")
                assert mended.voids[-1].first == rows
            assert ledger.spent == spent
        assert len(ledger.voids) == len(JUNK) * 2
        ledger.verify(receipts)
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):  # at first from the first record, then from a checkpoint
            with Ledger.open(where.address, receipts=receipts) as again:
                assert again.spent == spent
                assert [entry.key for entry in again.entries()] == [f"k{number}" for number in range(len(receipts))]
                assert [again.recall(receipt) for receipt in receipts] == [f"output {n}" for n in range(len(receipts))]
                assert again.charge(ONE, "x", key="k0") == receipts[0]
                assert "junk 7" in again.show()
                assert again.overview().as_dict()["voids"]
                again.export("json"), again.export("csv")
            another_user(patch, tmp_path / "another")


def test_a_void_checkpoint_is_no_start(where: Where) -> None:
    """Where one is due somebody writes that nothing was spent. It is void, and nobody begins with it."""
    with made(where, BUDGET, composition="addition") as ledger:
        for _ in range(EVERY - 1):
            ledger.charge(ONE, "x")
        by_hand(where, an_empty_checkpoint(where))
        assert where.rows()[-1].seq % EVERY == 0
    Ledger.void(where.address, reason="forged").close()
    for _ in range(EVERY + 2):  # past the next one, too
        with Ledger.open(where.address) as ledger:
            spent = ledger.spent
            ledger.charge(ONE, "x")
            assert ledger.spent == spent + ONE == ledger.verify().spent
    assert spent == Cost(epsilon=ONE.epsilon * (2 * EVERY))


def test_what_counts_is_never_void(where: Where) -> None:
    with made(where, BUDGET, composition="addition") as ledger:
        ledger.charge(ONE, "x")
        with pytest.raises(ValueError, match="nothing to void"):
            Ledger.void(where.address, reason="I want it back")
        with pytest.raises(ValueError, match="say why"):
            Ledger.void(where.address, reason=" ")
        before, last = where.rows()
        named = {"before": before.hash, "first": last.seq, "last": last.seq, "digest": digest_of([last.hash])}
        by_hand(where, record(where, "void", by="bob", reason="mine", **named))
        with pytest.raises(TamperedLedgerError, match="unknown form"):
            ledger.charge(ONE, "x")
        with Ledger.void(where.address, reason="a void of a charge") as mended:
            assert mended.spent == ONE


@pytest.mark.parametrize("wrong", ["fewer", "none", "another hash", "another before", "more", "text"])
def test_a_void_names_all_and_nothing_else(where: Where, wrong: str) -> None:
    with made(where, BUDGET) as ledger:
        ledger.charge(ONE, "x")
    head = where.rows()[-1].hash
    run = [by_hand(where, no_json(where)), by_hand(where, no_json(where))]
    named: dict[str, Any] = {"before": head, "first": run[0].seq, "last": run[1].seq}
    named["digest"] = digest_of(row.hash for row in run)
    changes: dict[str, dict[str, Any]] = {
        "fewer": {"last": run[0].seq, "digest": digest_of([run[0].hash])},
        "none": {"last": run[0].seq - 1, "digest": digest_of([])},
        "another hash": {"digest": digest_of(["0" * 64, run[1].hash])},
        "another before": {"before": "0" * 64},
        "more": {"first": run[0].seq - 1, "digest": digest_of([head, *(row.hash for row in run)])},
        "text": {"first": str(run[0].seq)},
    }
    by_hand(where, record(where, "void", by="bob", reason="so", **(named | changes[wrong])))
    with pytest.raises(TamperedLedgerError, match="canonical JSON"):
        Ledger.open(where.address)
    with Ledger.void(where.address, reason="all three", lost_epsilon=0) as ledger:
        assert (ledger.voids[0].first, ledger.voids[0].last) == (run[0].seq, run[0].seq + 2)
        assert ledger.spent == ONE


@pytest.mark.parametrize("software", ["snugdp 99.0.0", "snugdp next"])
def test_a_newer_version_may_have_charged(where: Where, tmp_path: Path, software: str) -> None:
    """What it may have spent is charged, or nothing happens; and who has seen it, refuses the ledger."""
    with made(where, BUDGET, composition="addition") as ledger:
        ledger.charge(ONE, "x")
        row = by_hand(where, record(where, "gift", software=software))
        with pytest.raises(ValueError, match="newer version"):
            Ledger.void(where.address, reason="unknown to me")
        with pytest.raises(TamperedLedgerError):
            Ledger.open(where.address)
        with Ledger.void(where.address, reason="unknown to me", lost_epsilon=2, lost_delta=1e-7) as mended:
            assert mended.spent == ONE + Cost(epsilon=2, delta=1e-7)
        from snugdp.ledger.anchors.anchor import Mark
        from snugdp.ledger.anchors.recognition import UserAnchor

        with pytest.MonkeyPatch.context() as patch:
            another_user(patch, tmp_path / "newer")
            UserAnchor(ledger.identity).create(Mark(ledger.identity, row.seq, row.hash))
            with pytest.raises(TamperedLedgerError, match="does not hold record 2"):
                Ledger.open(where.address)


def test_a_record_of_another_history_is_not_void(where: Where) -> None:
    """A row that follows a row which is gone was a record there: only adopting can say what was lost."""
    with made(where, BUDGET) as ledger:
        for _ in range(3):
            ledger.charge(ONE, "x")
    rows = where.rows()
    where.replace([*rows[:2], Row(2, *rows[3][1:])])
    with pytest.raises((TamperedLedgerError, LedgerError)):
        Ledger.void(where.address, reason="it is in the way")


def test_what_is_before_a_void_cannot_be_exchanged(where: Where, tmp_path: Path) -> None:
    """Junk may name two hashes as that of the record before: the void says which one it was."""
    with made(where, BUDGET, composition="addition") as ledger:
        ledger.charge(ONE, "x")
        ledger.charge(ONE, "y")
        identity = ledger.identity
    rows = where.rows()
    cheap = records.write(rows[1].hash, 2, "outcome", {**records.stamp(), "of": 1, "state": "consumed", "body": None})
    text = f'{{"kind":"a","prev":"{rows[2].hash}","seq":3,"software":"snugdp 0.1.0","time":"","prev":"{cheap.hash}"}}'
    by_hand(where, text)
    with Ledger.void(where.address, reason="two heads") as ledger:
        assert ledger.spent == ONE + ONE
    mended = where.rows()
    where.replace([*mended[:2], cheap.row(), *mended[3:]])
    with pytest.raises(TamperedLedgerError):
        Ledger.open(where.address)
    with pytest.MonkeyPatch.context() as patch:  # somebody who has seen nothing either
        another_user(patch, tmp_path / "new")
        with pytest.raises(TamperedLedgerError):
            Ledger.open(where.address)
    where.replace(mended)
    with Ledger.open(where.address) as ledger:
        assert (ledger.identity, ledger.spent) == (identity, ONE + ONE)


def idle(state: State, last: int) -> list[Row]:
    """Legal records that cost nothing, by hand, up to this number."""
    found = []
    while state.seq < last:
        nothing: dict[str, Any] = {"by": "x", "reason": "x", "place": "x", "file_system": None, "lost": []}
        kind, fields = ("checkpoint", state.summary()) if state.due else ("adopt", nothing)
        judged = state.draft(kind, fields, records.stamp())
        state.take(judged)
        found.append(judged.record.row())
    return found


def voided(state: State) -> Row:
    """A void, by hand, of all that is put aside."""
    judged = state.draft("void", {"by": "x", "reason": "x", **state.put_aside()}, records.stamp())
    state.take(judged)
    return judged.record.row()


def test_what_is_void_stays_void_behind_a_checkpoint(where: Where) -> None:
    """A second void, of the first one, and a checkpoint: marks on what is void are refused all the same."""
    with made(where, BUDGET, composition="addition") as ledger:
        ledger.charge(ONE, "x")
        ledger.charge(Cost(epsilon=9), "expensive")
    rows = where.rows()
    cheap = records.write(rows[1].hash, 2, "outcome", {**records.stamp(), "of": 1, "state": "consumed", "body": None})
    text = f'{{"kind":"a","prev":"{rows[2].hash}","seq":3,"software":"snugdp 0.1.0","time":"","prev":"{cheap.hash}"}}'
    by_hand(where, text)
    Ledger.void(where.address, reason="two heads").close()
    mended = where.rows()
    forged, state = [*mended[:2], cheap.row(), *mended[3:]], State()
    state.read_all(forged)
    forged.append(voided(state))
    forged += idle(state, 2 * EVERY)
    where.replace(forged)
    with pytest.raises(TamperedLedgerError, match=r"record 4|head does not match"):
        Ledger.open(where.address)


def test_nothing_is_drawn_for_a_void_charge_behind_a_checkpoint(where: Where) -> None:
    with made(where, BUDGET, composition="addition") as ledger:
        receipt = ledger.charge(ONE, "x", key="mine")
        text = where.rows()[-1].record.replace("snugdp 0", "snugdp 99")
    where.replace([where.rows()[0], Row(1, text, None, records.digest(text))])
    state = State()
    state.read_all(where.rows()[:1])
    state.illegal = [states.Illegal(where.rows()[1], TamperedLedgerError(""))]
    history = [*where.rows(), voided(state)]
    history += idle(state, EVERY)
    assert state.hash_at(1) is None
    assert state.charge_at(1) is None
    assert state.settled_at(1) is None
    with pytest.raises(ValueError, match="outcome"):
        state.draft("outcome", {"of": 1, "state": "consumed", "body": None}, records.stamp())
    assert receipt.sequence == 1


def test_a_void_is_read_where_a_forged_checkpoint_wants_another(where: Where) -> None:
    """Junk from one place of a checkpoint to the next: the void stands where the forged state wants a checkpoint."""
    with made(where, BUDGET, composition="addition") as ledger:
        for _ in range(EVERY - 1):
            ledger.charge(ONE, "x")
        spent = ledger.spent
    by_hand(where, an_empty_checkpoint(where))
    forged = State.resumed(where.rows()[0], where.rows()[-1])
    for row in idle(forged, 2 * EVERY - 1):
        by_hand(where, row.record)
    with Ledger.void(where.address, reason="forged", lost_epsilon=0) as ledger:
        assert ledger.spent == spent
    with Ledger.open(where.address) as ledger:
        assert ledger.spent == spent == ledger.verify().spent


def test_an_outcome_without_its_output_has_to_be_paid_for(where: Where) -> None:
    """Once it is void the release may be drawn again."""
    with made(where, BUDGET, composition="addition") as ledger:
        ledger.charge(ONE, "x")
    by_hand(where, a_lost_output(where))
    with pytest.raises(ValueError, match="may be drawn again"):
        Ledger.void(where.address, reason="lost")
    with pytest.raises(ValueError, match="lost_delta needs lost_epsilon"):
        Ledger.void(where.address, reason="lost", lost_delta=1e-7)
    with Ledger.void(where.address, reason="lost", lost_epsilon="0.5") as ledger:
        assert ledger.spent == ONE + ONE


@pytest.mark.parametrize("software", ["0.1.0rc1", "0.1.0.dev3"])
def test_a_version_with_the_same_numbers_may_be_newer(software: str) -> None:
    text = f'{{"software":"snugdp {software}"}}'
    assert records.may_be_newer(Row(1, text, None, records.digest(text)))


def test_who_charged_is_a_name(where: Where) -> None:
    """What one process cannot read, and another one can, would split a history."""
    with made(where, BUDGET, composition="addition") as ledger:
        ledger.charge(ONE, "x")
    fields = json.loads(where.rows()[-1].record)
    rest = {name: value for name, value in fields.items() if name not in ("prev", "seq", "kind")}
    total = {"total": {**fields["total"], "epsilon": "1"}}
    by_hand(where, record(where, "charge", **{**rest, **total, "key": "other", "user": [[]]}))
    with pytest.raises(TamperedLedgerError, match="unknown form"):
        Ledger.open(where.address)


def test_many_void_rows_take_no_room(where: Where) -> None:
    """Whoever writes junk by the thousand makes neither the void long nor the checkpoints after it."""
    with made(where, BUDGET, composition="addition") as ledger:
        ledger.charge(ONE, "x")
        for _ in range(5 * EVERY):
            by_hand(where, no_json(where))
        Ledger.void(where.address, reason="junk").close()
        before = len(where.rows())
        for number in range(2 * EVERY):
            ledger.charge(Cost(epsilon="0.1"), "x", key=f"k{number}")
        later = [row for row in where.rows()[before - 1 :] if '"kind":"void"' in row.record or row.seq % EVERY == 0]
        assert len(later) >= 3
        assert max(len(row.record) for row in later) < 2000
        assert [entry.key for entry in ledger.overview(2 * EVERY + 1).entries][1:] == [
            f"k{n}" for n in range(2 * EVERY)
        ]
        ledger.verify()
    rows = where.rows()
    other = records.write(rows[1].hash, 3, "x", {})
    where.replace([*rows[:3], Row(3, other.text, None, other.hash), *rows[4:]])
    with Ledger.open(where.address) as ledger:
        for look in (ledger.entries, ledger.verify):
            with pytest.raises(TamperedLedgerError):
                look()
