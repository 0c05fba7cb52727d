"""The ledger as its users meet it, on both stores."""

import contextlib
import copy
import csv
import hashlib
import io
import json
import os
import pickle
import shutil
import sqlite3
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from snugdp import Budget, BudgetExceededError, Cost, MemoryLedger
from snugdp.core.outcome import Receipt
from snugdp.ledger import Ledger, View
from snugdp.ledger.address import opened, without_password
from snugdp.ledger.errors import (
    ForeignProcessError,
    KeyConflictError,
    LedgerError,
    LedgerWriteError,
    TamperedLedgerError,
)
from snugdp.ledger.handle import Handle
from snugdp.ledger.history.records import Row
from snugdp.ledger.history.state import State
from snugdp.ledger.question import question
from snugdp.ledger.stores.sqlite import SQLiteStore
from snugdp.report.ledger import page
from tests.ledger.conftest import BUDGET, TENTH, Where, another_user, made
from tests.ledger.faults import failing, in_child, in_threads

# -- opening


def test_it_is_made_once_and_found_again(where: Where) -> None:
    with made(where) as ledger:
        ledger.charge(TENTH, "a count")
        assert (ledger.unit, ledger.label, ledger.budget) == ("one row", where.dataset, BUDGET)
    for ledger in (made(where), Ledger.open(where.address), Ledger.open(where.address, unit="one row")):
        with ledger:
            assert ledger.spent == TENTH


def test_opening_alone_never_makes_one(where: Where) -> None:
    for said in ({}, {"budget": BUDGET}) if where.kind == "sqlite" else ({},):
        with pytest.raises(LedgerError, match="To make one"):
            Ledger.open(where.address, **said)  # type: ignore[arg-type]
    assert not where.anchor.exists()


@pytest.mark.parametrize(
    "said", [{"budget": Budget(2, 1e-6)}, {"budget": Cost(epsilon=1)}, {"unit": "one person"}, {"keep": False}]
)
def test_what_was_written_first_holds(where: Where, said: dict[str, object]) -> None:
    made(where).close()
    with pytest.raises(ValueError, match="leave"):
        Ledger.open(where.address, **said)  # type: ignore[arg-type]


def test_another_data_set_is_another_ledger(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "l", dataset="people", budget=BUDGET).close()
    with pytest.raises(ValueError, match="dataset='people'"):
        Ledger.open(tmp_path / "l", dataset="houses", budget=BUDGET)


def test_bad_public_input_comes_before_anything_is_made(tmp_path: Path) -> None:
    for said in ({"budget": 1}, {"dataset": ""}, {"dataset": "a\nb"}, {"budget": Budget(1, "1e-400")}):
        with pytest.raises((TypeError, ValueError)):
            Ledger.open(tmp_path / "l", **{"dataset": "people", "budget": BUDGET} | said)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="postgresql"):
        Ledger.open("mysql://somewhere")
    assert not list(tmp_path.iterdir())


def test_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(LedgerWriteError, match="folder that exists"):
        Ledger.open(tmp_path / "nowhere" / "l", dataset="people", budget=BUDGET)


def test_only_its_owner_may_read_the_files(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l", dataset="people", budget=BUDGET) as ledger:
        ledger.charge(TENTH, "x")
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"l", "l-wal", "l-shm", "l.anchor", "l.lock"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_the_file_alone_holds_genesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(tmp_path / "l", dataset="people", budget=BUDGET)
    (tmp_path / "copy").mkdir()
    for name in ("l", "l.anchor"):
        shutil.copy(tmp_path / name, tmp_path / "copy" / name)
    another_user(monkeypatch, tmp_path / "somebody else")  # who knows it is told that this is a copy
    with Ledger.open(tmp_path / "copy" / "l") as other:
        assert other.spent == Cost()
    ledger.close()


# -- charging


def test_a_refused_charge_leaves_the_total(where: Where, ledger: Ledger) -> None:
    first = ledger.charge(Cost(epsilon=0.7), "first")
    assert (first.ledger, first.sequence, first.what, first.cost) == (where.dataset, 1, "first", Cost(epsilon=0.7))
    assert len(first.hash) == 64
    assert ledger.affords(Cost(epsilon=0.3))
    assert not ledger.affords(Cost(epsilon=0.4))
    with pytest.raises(BudgetExceededError, match="does not cover"):
        ledger.charge(Cost(epsilon=0.4), "second")
    assert ledger.spent == Cost(epsilon=0.7)
    assert ledger.charge(Cost(epsilon=0.3, delta=1e-6), "third").sequence == 2


def test_ten_gaussian_releases_cost_less_than_the_sum_of_their_epsilons(ledger: Ledger) -> None:
    single = Cost(mu=0.074)
    for _ in range(10):
        ledger.charge(single, "one of ten")
    assert ledger.spent.mu == pytest.approx(0.074 * 10**0.5)
    assert ledger.spent.fits(BUDGET)
    assert 10 * single.epsilon_at(1e-7) > 3 * BUDGET.epsilon


def test_a_retry_is_not_charged_again(where: Where, ledger: Ledger) -> None:
    receipt = ledger.charge(TENTH, "x", key="k", plan="p")
    with Ledger.open(where.address) as other:
        assert other.charge(TENTH, "x", key="k", plan="p") == receipt
    assert ledger.spent == TENTH
    for cost, what, plan in ((Cost(epsilon=0.2), "x", "p"), (TENTH, "y", "p"), (TENTH, "x", "q")):
        with pytest.raises(KeyConflictError, match="another release"):
            ledger.charge(cost, what, key="k", plan=plan)
    assert ledger.charge(TENTH, "x").key != ledger.charge(TENTH, "x").key


def test_a_bad_charge_is_refused(ledger: Ledger) -> None:
    for cost, what in ((0.1, "x"), (TENTH, None), (Budget(1), "x")):
        with pytest.raises(TypeError):
            ledger.charge(cost, what)  # type: ignore[arg-type]
    assert ledger.spent == Cost()


def test_two_handles_see_each_other(where: Where) -> None:
    with made(where) as one, Ledger.open(where.address) as other:
        for i in range(5):
            (one if i % 2 else other).charge(TENTH, "x")
            assert one.spent == other.spent == Cost(epsilon=(i + 1) * TENTH.epsilon)
        assert one.entries() == other.entries()


def test_threads_share_one_budget(where: Where) -> None:
    granted: list[int] = []
    with made(where, Budget(2)) as ledger:

        def spend(_: int) -> None:
            for _ in range(10):
                with contextlib.suppress(BudgetExceededError):
                    granted.append(ledger.charge(TENTH, "x").sequence)

        assert in_threads(4, spend) == []
        assert sorted(granted) == list(range(1, 21))
        assert ledger.spent == Cost(epsilon=2)


# -- one output per key


def test_one_output_per_key(where: Where) -> None:
    with made(where) as ledger, Ledger.open(where.address) as other:
        receipt = ledger.charge(TENTH, "x", key="k")
        assert ledger.recall(receipt) is None
        again = other.charge(TENTH, "x", key="k")
        assert ledger.settle(receipt, "the first") == "the first"
        assert other.settle(again, "the second") == "the first"
        assert other.settle(again, None) == "the first"
        assert other.recall(again) == ledger.recall(receipt) == "the first"
    with Ledger.open(where.address) as later:
        assert later.recall(later.once("k").charge(TENTH, "x")) == "the first"
        assert [entry.state for entry in later.entries()] == ["released"]


def test_what_is_consumed_is_gone(ledger: Ledger) -> None:
    receipt = ledger.charge(TENTH, "x", key="k")
    assert ledger.settle(receipt, None) is None
    for body in ("7", None):
        with pytest.raises(KeyConflictError, match="consumed"):
            ledger.settle(receipt, body)
    with pytest.raises(KeyConflictError, match="consumed"):
        ledger.recall(receipt)
    assert [entry.state for entry in ledger.entries()] == ["consumed"]


def test_a_ledger_that_keeps_nothing(where: Where) -> None:
    with made(where, keep=False) as ledger:
        receipt = ledger.charge(TENTH, "x", key="k")
        assert ledger.settle(receipt, "secret of nobody") is None
        with pytest.raises(KeyConflictError, match="consumed"):
            ledger.settle(receipt, "another")
        assert "secret of nobody" not in ledger.export()
    assert all(row.body is None for row in where.rows())


def test_a_refusal_is_an_output(ledger: Ledger) -> None:
    for body in ('{"refused":true}', '{"refused":false}', "[1", "[true]"):
        ledger.settle(ledger.charge(Cost(), "x"), body)
    assert [entry.state for entry in ledger.entries()] == ["refused", "released", "released", "released"]


def test_a_receipt_from_elsewhere_is_refused(ledger: Ledger) -> None:
    receipt = ledger.charge(TENTH, "x")
    held = ledger.reserve(TENTH, "y", key="r")
    reserved = replace(receipt, sequence=2, hash=ledger.entries()[1].hash)
    assert isinstance(held, View)
    for other in (
        MemoryLedger(1).charge(TENTH, "x"),
        replace(receipt, hash="0" * 64),
        replace(receipt, sequence=7),
        replace(receipt, ledger="other"),
        reserved,
    ):
        with pytest.raises(ValueError, match="not given by this ledger"):
            ledger.settle(other, "7")
        with pytest.raises(ValueError, match="not given by this ledger"):
            ledger.recall(other)


@pytest.mark.parametrize("body", ["\0", "\ud800", 7])
def test_a_body_that_cannot_be_stored(ledger: Ledger, body: str) -> None:
    receipt = ledger.charge(TENTH, "x")
    with pytest.raises(ValueError, match="text"):
        ledger.settle(receipt, body)
    assert ledger.settle(receipt, "é\n𝄞" * 1000) == "é\n𝄞" * 1000


# -- views


def test_a_keyed_view_pays_once(where: Where, ledger: Ledger) -> None:
    view = ledger.once("k")
    assert copy.copy(view) is copy.deepcopy(view) is view
    with pytest.raises(TypeError, match="ledger itself"):
        pickle.dumps(view)
    receipt = view.charge(TENTH, "x", plan="p")
    with pytest.raises(KeyConflictError, match="one release"):
        view.charge(TENTH, "x", plan="p")
    assert view.affords(Cost(epsilon=50))  # a retry costs nothing
    with pytest.raises(ValueError, match="already"):
        view.once("other")
    with pytest.raises(ValueError, match="already"):
        ledger.once("j").charge(TENTH, "x", key="other")
    view.settle(receipt, "7")
    if where.kind == "sqlite":
        twin = pickle.loads(pickle.dumps(view))
        assert twin.recall(receipt) == "7"
        with pytest.raises(KeyConflictError, match="one release"):
            twin.charge(TENTH, "x", plan="p")
    assert ledger.spent == TENTH


def test_a_refused_charge_leaves_the_key_free(ledger: Ledger) -> None:
    view = ledger.once("k")
    with pytest.raises(BudgetExceededError):
        view.charge(Cost(epsilon=2), "x")
    view.charge(TENTH, "x")


def test_it_says_how_many_charges_it_can_pay(ledger: Ledger) -> None:
    for cost in (Cost(mu="0.05"), Cost(epsilon="0.17")):
        assert ledger.payable([cost] * 50) == MemoryLedger(1, 1e-6, composition="tight").payable([cost] * 50)
    ledger.partition("region", ["north", "south"])
    north, south = ledger.part("region", "north"), ledger.part("region", "south")
    north.charge(Cost(epsilon="0.5"), "x")
    tenths = [Cost(epsilon="0.1")] * 20
    assert (ledger.payable(tenths), north.payable(tenths), south.payable(tenths)) == (5, 5, 10)
    work = ledger.reserve(Cost(epsilon="0.25"), "long work")
    assert work.payable(tenths) == 2
    assert (ledger.once("k").payable(tenths[:1]), ledger.once("k").payable([])) == (1, 0)
    with pytest.raises(KeyConflictError, match="one release"):
        ledger.once("k").payable(tenths)
    assert ledger.once("k").payable([Cost(epsilon=1)]) == 0
    for _ in range(2):
        work.charge(tenths[0], "a step")
    assert work.payable(tenths) == 0
    assert ledger.spent == Cost(epsilon="0.75")
    assert ledger.verify().spent == ledger.spent


def test_of_disjoint_parts_the_largest_counts(ledger: Ledger) -> None:
    ledger.partition("region", ["north", "south"])
    ledger.partition("region", ["north", "south"])
    with pytest.raises(KeyConflictError, match="declared for good, and differently: by the values north, south"):
        ledger.partition("region", ["north", "east"])
    north, south = ledger.part("region", "north"), ledger.part("region", "south")
    with pytest.raises(ValueError, match="no part"):
        ledger.part("region", "east")
    north.charge(Cost(epsilon=0.6), "x")
    south.once("k").charge(Cost(epsilon=0.5), "y")
    ledger.charge(Cost(epsilon=0.2), "whole")
    assert ledger.spent == Cost(epsilon=0.8)
    assert south.affords(Cost(epsilon=0.3))
    assert not north.affords(Cost(epsilon=0.3))
    with pytest.raises(BudgetExceededError):
        north.charge(Cost(epsilon=0.3), "x")
    with pytest.raises(KeyConflictError):
        north.charge(Cost(epsilon=0.5), "y", key="k")
    assert [entry.part for entry in ledger.entries()] == [("region", "north"), ("region", "south"), None]
    assert ledger.verify().spent == Cost(epsilon=0.8)


def test_parts_need_a_row_that_stays_where_it_is(where: Where) -> None:
    with made(where, Budget(1, 0, "replace")) as ledger:
        with pytest.raises(ValueError, match="can move"):
            ledger.partition("region", ["north", "south"])
        for parts in ([], ["a", "a"], "ab", [""]):
            with pytest.raises(ValueError, match="part"):
                ledger.partition("region", parts)
        assert ledger.verify().entries == 1


def test_a_reservation_is_paid_at_once_and_outlives_its_process(where: Where) -> None:
    with made(where) as ledger:
        work = ledger.reserve([Cost(epsilon=0.2), Cost(mu=0.1)], "long work", key="work")
        assert ledger.spent == Cost(epsilon=0.2, mu=0.1)
        work.charge(Cost(epsilon=0.15), "a step")
        assert ledger.spent == Cost(epsilon=0.2, mu=0.1)
    with Ledger.open(where.address) as ledger:
        work = ledger.reserve([Cost(epsilon=0.2), Cost(mu=0.1)], "long work", key="work")
        assert not work.affords(Cost(epsilon=0.06))
        with pytest.raises(BudgetExceededError, match="reservation"):
            work.charge(Cost(epsilon=0.06), "too much")
        with pytest.raises(BudgetExceededError, match="reservation"):
            work.charge(Cost(delta=1e-9), "of another kind")
        receipt = work.once("step 2").charge(Cost(epsilon=0.05), "another step")
        work.settle(receipt, "7")
        assert ledger.spent == Cost(epsilon=0.2, mu=0.1)
        assert [entry.within for entry in ledger.entries()] == [None, 1, 1]
        with pytest.raises(KeyConflictError):
            ledger.reserve(Cost(epsilon=0.3), "long work", key="work")
        with pytest.raises(ValueError, match="not on a key or within"):
            work.reserve(TENTH, "x")
        with pytest.raises(TypeError, match="give a Cost"):
            ledger.reserve([], "x")
        assert ledger.verify().charges == 3


def test_a_part_can_be_reserved(ledger: Ledger) -> None:
    ledger.partition("region", ["north", "south"])
    held = ledger.part("region", "north").reserve(Cost(epsilon=0.5), "work")
    ledger.part("region", "south").charge(Cost(epsilon=0.4), "x")
    held.charge(Cost(epsilon=0.5), "all of it")
    assert ledger.spent == Cost(epsilon=0.5)


# -- copies, pickles, processes


def test_a_copy_is_the_ledger_itself_and_a_pickle_finds_it_again(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET, anchor=tmp_path / "elsewhere") as ledger:
        assert copy.copy(ledger) is copy.deepcopy([ledger])[0] is ledger
        part = pickle.loads(pickle.dumps(ledger))
        part.charge(TENTH, "through a pickle")
        assert ledger.spent == TENTH
        assert pickle.loads(pickle.dumps(ledger)) is part
        held = pickle.loads(pickle.dumps(ledger.reserve(TENTH, "work")))
        held.charge(TENTH, "a step")
        assert ledger.spent == Cost(epsilon=0.2)
        part.close()


def test_a_path_is_opened_once_per_process(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with pytest.raises(LedgerError, match="To make one"):
        opened(path)
    Ledger.open(path, dataset="p", budget=BUDGET).close()
    first = opened(path)
    assert opened(str(path)) is first
    first.close()
    second = opened(path)
    assert second is not first
    second.charge(TENTH, "x")
    (tmp_path / "moved").mkdir()
    for name in ("l", "l.anchor"):  # another file in its place is opened anew, and checked
        shutil.copy(tmp_path / name, tmp_path / "moved" / name)
    path.unlink()
    with pytest.raises((TamperedLedgerError, LedgerWriteError)):
        opened(path)
    second.close()


def test_passwords_are_left_out() -> None:
    assert without_password("a:b@c/people.ledger") == "a:b@c/people.ledger"
    for url in (
        "postgresql://ann:s3cret@h/db#d",
        "postgres://ann:s3cr@t@h/db#d",
        "postgresql://ann@h/db?password=s3cret&x=1#d",
        "postgresql://ann@h/db?x=1&sslpassword=s3cret",
        "postgresql://:s3cret@h",
        "postgresql://ann@h/db?x=1&pass%77ord=s3cret#d",
        "postgresql://ann@h/db?%50ASSWOR%64=s3cret&x=1",
        "postgresql://ann@h/db?ssl%70assword=s3cret&oauth_client_%73ecret=s3cret",
    ):
        assert "s3cr" not in without_password(url)
    assert without_password("postgresql://ann@h/db?x=1#d") == "postgresql://ann@h/db?x=1#d"
    assert without_password("postgresql://ann@h/db?pass%77ord=p&x=1&y=%20#d") == "postgresql://ann@h/db?x=1&y=%20#d"


def test_a_forked_process_opens_its_own(where: Where) -> None:
    with made(where) as ledger:
        ledger.charge(TENTH, "before")

        def work() -> int:
            try:
                ledger.charge(TENTH, "x")
            except ForeignProcessError:
                ledger.close()  # the parent's: nothing happens
                own = Ledger.open(where.address)
                own.charge(TENTH, "in the child")
                own.close()
                return 7
            return 0

        assert in_child(work) == (0, b"7")
        assert ledger.spent == Cost(epsilon=0.2)
        ledger.charge(TENTH, "after")
    with Ledger.open(where.address) as later:
        assert later.verify().spent == Cost(epsilon=0.3)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed in /proc on Linux only")
def test_a_child_inherits_no_connection(tmp_path: Path) -> None:
    """An inherited SQLite connection would make the parent's locks invisible to a new one in the child."""
    with Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET) as ledger:
        ledger.charge(TENTH, "x")
        assert in_child(lambda: [n for n in os.listdir("/proc/self/fd") if _leads(n, tmp_path)]) == (0, b"[]")
        ledger.charge(TENTH, "y")


def _leads(number: str, folder: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{number}").startswith(str(folder))
    except OSError:
        return False


def test_a_parent_that_ends_first_loses_nothing_of_its_child(tmp_path: Path) -> None:
    """The parent closes last-but-one and would delete the log of a child whose locks it could not see."""
    ledger = Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET)
    ledger.charge(TENTH, "x")
    go, gone = os.pipe()
    child = os.fork()
    if child == 0:
        own = Ledger.open(tmp_path / "l")
        own.charge(TENTH, "in the child")
        os.read(go, 1)
        own.charge(TENTH, "after the parent has closed")
        os._exit(0)
    ledger.charge(TENTH, "y")
    ledger.close()
    os.write(gone, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Ledger.open(tmp_path / "l") as later:
        assert later.verify().spent == Cost(epsilon=0.4)


# -- looking back


def test_a_third_party_can_check_an_export(where: Where) -> None:
    with made(where) as ledger:
        receipt = ledger.charge(TENTH, 'x, "y"', key="k")
        ledger.settle(receipt, "7")
        found = json.loads(ledger.export())
        table = list(csv.DictReader(io.StringIO(ledger.export("csv"))))
        with pytest.raises(ValueError, match="json"):
            ledger.export("xml")
    prev = ""
    for number, row in enumerate(found["records"]):
        record = json.loads(row["record"])
        assert hashlib.sha256(row["record"].encode()).hexdigest() == row["hash"]
        assert (record["prev"], record["seq"], row["seq"]) == (prev, number, number)
        if record["kind"] == "outcome":
            assert hashlib.sha256(row["body"].encode()).hexdigest() == record["body"]
        prev = row["hash"]
    assert found["head"] == {"sequence": 2, "hash": prev}
    assert [(line["what"], line["epsilon"], line["hash"], line["state"]) for line in table] == [
        ('x, "y"', "1/10", receipt.hash, "released")
    ]


def test_it_says_of_which_column_and_what_parts_add_up_to(somebody: None, tmp_path: Path) -> None:
    """Of parts the largest counts: who adds up the lines is told why the sum is less."""
    with Ledger.open(tmp_path / "l", dataset="p", budget=Budget(1)) as ledger:
        ledger.partition("region", ["north", "south"])
        ledger.charge(TENTH, "Mean", question=question("Mean of age"))
        assert "disjoint" not in ledger.show() + page(ledger)
        for part in ("north", "south"):
            ledger.part("region", part).charge(TENTH, "Mean", question=question("Mean of =income"))
        assert "epsilon 0.2 and delta 0, in 3 entries; of disjoint parts the largest counts" in ledger.show()
        assert "of disjoint parts the largest counts" in ledger._repr_html_()
        assert "disjoint parts of the table do not add up" in page(ledger)
        table = list(csv.DictReader(io.StringIO(ledger.export("csv"))))
        assert [line["title"] for line in table] == ["Mean of age", "Mean of =income", "Mean of =income"]


def test_it_shows_itself(where: Where, ledger: Ledger) -> None:
    assert "Nothing was charged yet" in ledger.show()
    ledger.settle(ledger.charge(Cost(mu=0.05), "a mean", key="k"), "7")
    for text in (where.dataset, "one row", "a mean", "released", "mu 0.05", "left", "in 1 entry"):
        assert text in ledger.show()
    assert "Cost(" not in ledger.show()
    for text in ("Cost(mu=0.05", " or epsilon ", "  k  "):
        assert text in ledger.show(verbose=True)
    assert repr(BUDGET) in repr(ledger)
    assert "3 records, 1 charges" in str(ledger.verify())
    assert ledger.remaining.mu > 0.2
    assert json.dumps(ledger.verify().as_dict())


# -- faults


def spent(where: Where) -> tuple[list[Row], Receipt]:
    with made(where) as ledger:
        receipt = ledger.charge(TENTH, "x", key="k")
        ledger.settle(receipt, "7")
        ledger.charge(TENTH, "y")
        last = ledger.charge(TENTH, "z")
    return where.rows(), last


def test_a_change_behind_an_open_ledger_is_seen_by_verify(where: Where) -> None:
    spent(where)
    with Ledger.open(where.address) as ledger:
        rows = where.rows()
        where.replace([row._replace(body="8") if row.body else row for row in rows])
        with pytest.raises(TamperedLedgerError, match="output"):
            ledger.verify()
        with pytest.raises(TamperedLedgerError, match="output"):
            ledger.recall(ledger.charge(TENTH, "x", key="k"))


def test_an_anchor_that_is_behind_is_brought_forward(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that died between COMMIT and the anchor: the charge stands, and the next one mends the anchor."""
    ledger = made(where)
    monkeypatch.setattr(Handle, "_advance", lambda *_: None)
    ledger.charge(TENTH, "x")
    ledger.close()
    monkeypatch.undo()
    rows = where.rows()
    with Ledger.open(where.address) as later:
        assert later.spent == TENTH
    where.replace(rows[:1])
    with pytest.raises(TamperedLedgerError):
        Ledger.open(where.address)


def test_a_receipt_is_an_anchor(where: Where) -> None:
    _, last = spent(where)
    with Ledger.open(where.address, receipts=[last]) as ledger:
        assert ledger.verify([last], heads=[(last.sequence, last.hash)]).charges == 3
        with pytest.raises(TamperedLedgerError, match="does not hold record 4"):
            ledger.verify([replace(last, hash="0" * 64)])
        with pytest.raises(ValueError, match="no hash"):
            ledger.verify([MemoryLedger(1).charge(TENTH, "x")])
    with pytest.raises(TamperedLedgerError, match="does not hold record 9"):
        Ledger.open(where.address, receipts=[replace(last, sequence=9)])


def test_a_file_or_log_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET)
    ledger.charge(TENTH, "x")
    shutil.copy(tmp_path / "l-wal", tmp_path / "wal")
    (tmp_path / "l-wal").unlink()
    with pytest.raises(TamperedLedgerError, match="log"):
        ledger.charge(TENTH, "lost")
    ledger.close()
    other = Ledger.open(tmp_path / "m", dataset="p", budget=BUDGET)
    other.charge(TENTH, "x")
    shutil.copy(tmp_path / "m", tmp_path / "n")
    os.replace(tmp_path / "n", tmp_path / "m")
    with pytest.raises(TamperedLedgerError, match="replaced"):
        other.charge(TENTH, "lost")
    other.close()


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN DELETE FROM ledger WHERE seq > 0; END",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON ledger (hash)",
        "ALTER TABLE ledger ADD COLUMN x",
        "DROP TABLE ledger",
        "PRAGMA journal_mode=DELETE",
    ],
)
def test_a_changed_schema_is_refused(tmp_path: Path, change: str) -> None:
    Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET).close()
    base = sqlite3.connect(tmp_path / "l", isolation_level=None)
    base.execute(change)
    base.close()
    with pytest.raises(TamperedLedgerError):
        Ledger.open(tmp_path / "l")


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"SQLite format 3\0" + b"\0" * 5000])
def test_a_file_that_is_no_ledger_is_refused_and_left(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "l").write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET)
    assert (tmp_path / "l").read_bytes() == content


def test_when_the_disk_is_full_the_charge_stands_or_was_never_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET) as ledger:
        receipt = ledger.charge(TENTH, "x", key="k")
        connection = ledger._handle.store._connection  # type: ignore[attr-defined]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(LedgerWriteError, match=r"disk is full.*charge stands and the output is not shown.*'k'"):
            ledger.settle(receipt, "7" * 20_000)
        with pytest.raises(LedgerWriteError, match="disk is full"):
            ledger.charge(TENTH, "y" * 20_000)
        assert ledger.spent == TENTH
        assert ledger.recall(receipt) is None
        connection.execute("PRAGMA max_page_count=100000")
        assert ledger.settle(ledger.charge(TENTH, "x", key="k"), "7" * 20_000) == "7" * 20_000
        assert ledger.verify().spent == TENTH


def test_a_handler_that_charges_inside_a_charge_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Handle._append

    def interrupted(self: Handle, rows: object, new: object) -> None:
        with pytest.raises(LedgerError, match="middle of a charge"):
            ledger.charge(TENTH, "inside")
        plain(self, rows, new)  # type: ignore[arg-type]

    monkeypatch.setattr(Handle, "_append", interrupted)
    ledger.charge(TENTH, "x")
    monkeypatch.undo()
    assert ledger.spent == TENTH


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_charge_is_undone(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    plain = Handle._append

    def interrupted(self: Handle, rows: object, new: object) -> None:
        plain(self, rows, new)  # type: ignore[arg-type]
        raise kind

    monkeypatch.setattr(Handle, "_append", interrupted)
    with pytest.raises(kind):
        ledger.charge(TENTH, "x")
    monkeypatch.undo()
    assert ledger.spent == Cost()
    ledger.charge(TENTH, "x")
    assert ledger.verify().spent == TENTH


@pytest.mark.parametrize("stopped", ["SQLiteStore._commit", "State.take", "Handle._advance"])
def test_what_was_committed_counts_wherever_it_stops_after_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    """Nobody else has written meanwhile, and yet memory is not what is on the disk: it is read again."""
    ledger = Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET)
    ledger.charge(TENTH, "before")
    where, name = stopped.split(".")
    kind = {"State": State, "Handle": Handle, "SQLiteStore": SQLiteStore}[where]
    plain, calls = getattr(kind, name), list[None]()

    def interrupted(self: object, *given: object) -> None:
        calls.append(None)
        if name == "_advance" and len(calls) == 1:  # of the anchors that are behind, before anything is charged
            return plain(self, *given)  # type: ignore[no-any-return]
        if name == "_commit":
            plain(self, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(TENTH, "stopped")
    monkeypatch.undo()
    ledger.charge(TENTH, "after")
    assert ledger.spent == ledger.verify().spent == Cost(epsilon="0.3")


def test_a_charge_that_nobody_could_read_again_is_refused_before_it_is_written(ledger: Ledger) -> None:
    """An announced amount that is longer than history takes would stop the ledger for good."""
    long = Fraction(1, 10) + Fraction(1, 3**900)
    with pytest.raises(ValueError, match="too long"):
        ledger.charge(TENTH, "x", announced=Cost(epsilon=long, delta="1e-9"))
    ledger.charge(TENTH, "x")
    assert ledger.verify().spent == TENTH


def test_others_are_read_although_looks_in_between_wrote_nothing(tmp_path: Path) -> None:
    """What nobody else has changed is not read again; what somebody has is, each time."""
    with Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET) as one, Ledger.open(tmp_path / "l") as other:
        for number in range(1, 5):
            one.charge(TENTH, "one")
            assert other.spent == other.spent == one.spent == Cost(epsilon=Fraction(2 * number - 1, 10))
            other.charge(TENTH, "other")
            assert one.spent == one.spent == other.spent == Cost(epsilon=Fraction(2 * number, 10))
        assert one.verify().spent == Cost(epsilon="0.8")


def test_a_ledger_that_could_not_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "rename", failing(OSError(28, "x")))
    with pytest.raises(LedgerWriteError, match="No space left"):
        Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["l.lock"]
    Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET).close()
