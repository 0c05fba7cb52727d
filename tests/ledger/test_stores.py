"""What every store promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Barrier

import pytest

from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger.anchor import Mark
from snugdp.ledger.book import Ledger
from snugdp.ledger.errors import BudgetExceededError, LedgerError, TamperedLedgerError
from snugdp.ledger.records import Row, digest, write
from snugdp.ledger.store import Store, store_at
from tests.ledger.conftest import Where, as_owner

NOTHING = "0" * 64


def line(seq: int, body: str | None = None) -> Row:
    """A row that the stores take: they do not read records."""
    record = write(NOTHING, seq, "genesis", {"id": "a" * 32, "text": "quotes ' \" % \\ and ünïcode"})
    return record.row(body)


def make(where: Where) -> Store:
    store = store_at(where.address)
    with store.creating():
        assert not store.exists()
        store.anchor.create(Mark("a" * 32, 0, line(0).hash))
        store.create(line(0))
        assert store.exists()
    store.connect()
    return store


def again(where: Where) -> Store:
    store = store_at(where.address)
    store.connect()
    return store


def grow(store: Store, times: int) -> None:
    """Append one row after the newest, so many times."""
    for _ in range(times):
        with store.transaction() as look:
            last = [row.seq for row in look.rows(-1)][-1]
            look.append(line(last + 1))


def test_a_new_ledger_holds_its_first_row(where: Where) -> None:
    with closing(make(where)) as store, closing(again(where)) as other:
        for seen in (store, other):
            with seen.transaction() as look:
                assert list(look.rows(-1)) == [line(0)]
                assert look.row(0) == line(0)
                assert look.row(1) is None
    assert where.anchor.exists()
    assert where.rows() == [line(0)]


def test_a_ledger_is_never_made_over_another(where: Where) -> None:
    with closing(make(where)) as store:
        grow(store, 1)
        other = store_at(where.address)
        with closing(other), pytest.raises(LedgerError), other.creating():
            other.create(line(0))
        with closing(again(where)) as seen, seen.transaction() as look:
            assert [row.seq for row in look.rows(-1)] == [0, 1]


def test_what_does_not_exist_is_not_opened(where: Where) -> None:
    with closing(store_at(where.address)) as store, pytest.raises(LedgerError):
        store.connect()
    assert not where.anchor.exists()


def test_rows_come_back_as_they_were_given(where: Where) -> None:
    given = [line(0), line(1, ""), line(2, "a body, ünïcode and all: 😀"), line(3)]
    with closing(make(where)) as store:
        for row in given[1:]:
            with store.transaction() as look:
                look.append(row)
        with store.transaction() as look:
            assert list(look.rows(-1)) == given
            assert list(look.rows(1)) == given[2:]
            assert list(look.rows(3)) == []
            assert look.row(2) == given[2]


def test_a_long_history_is_read_whole(where: Where) -> None:
    with closing(make(where)) as store:
        with store.transaction() as look:
            for seq in range(1, 1201):
                look.append(line(seq))
        with store.transaction() as look:
            assert [row.seq for row in look.rows(-1)] == list(range(1201))
            assert [row.seq for row in look.rows(1000)] == list(range(1001, 1201))


def fail(store: Store, trouble: type[BaseException]) -> None:
    with store.transaction() as look:
        look.append(line(1))
        raise trouble


@pytest.mark.parametrize("trouble", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_undoes_the_transaction(where: Where, trouble: type[BaseException]) -> None:
    with closing(make(where)) as store:
        with pytest.raises(trouble):
            fail(store, trouble)
        assert where.rows() == [line(0)]
        grow(store, 1)
        assert where.rows() == [line(0), line(1)]


def test_a_row_is_not_written_twice(where: Where) -> None:
    with closing(make(where)) as store:
        grow(store, 1)
        with pytest.raises(LedgerError), store.transaction() as look:
            look.append(line(1))
        grow(store, 1)
        assert [row.seq for row in where.rows()] == [0, 1, 2]


def test_one_is_inside_at_a_time(where: Where) -> None:
    with closing(make(where)) as store, closing(again(where)) as other:
        inside, entered = threading.Event(), threading.Event()

        def wait() -> None:
            inside.wait()
            with other.transaction() as look:
                entered.set()
                assert [row.seq for row in look.rows(-1)] == [0, 1]
                look.append(line(2))

        waiting = threading.Thread(target=wait)
        waiting.start()
        with store.transaction() as look:
            inside.set()
            assert list(look.rows(-1)) == [line(0)]
            assert not entered.wait(0.3)
            look.append(line(1))
        waiting.join()
        assert [row.seq for row in where.rows()] == [0, 1, 2]


def _race(address: str, anchor: str, start: Barrier, times: int) -> None:
    store = store_at(address, None, anchor)
    store.connect()
    start.wait(300)
    grow(store, times)
    store.close()


def _spend(address: str, anchor: str, start: Barrier, times: int) -> None:
    ledger = Ledger.open(address, anchor=anchor)
    start.wait(300)
    with contextlib.suppress(BudgetExceededError):
        for _ in range(times):
            ledger.charge(Cost(epsilon=0.1), "a unit")
    ledger.close()


def at_once(count: int, target: Callable[[str, str, Barrier, int], None], where: Where, times: int) -> list[int | None]:
    """Run this in so many processes, all from the same moment on; their exit codes."""
    context = multiprocessing.get_context("forkserver")  # it imports once, and has no threads when it forks
    context.set_forkserver_preload(["__main__", "psycopg", __name__])
    start = context.Barrier(count)
    given = (where.address, str(where.anchor), start, times)
    processes = [context.Process(target=target, args=given) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def test_processes_take_turns(where: Where) -> None:
    make(where).close()
    assert at_once(4, _race, where, 20) == [0] * 4
    assert [row.seq for row in where.rows()] == list(range(81))


def test_eight_processes_race_for_the_last_units(where: Where) -> None:
    with Ledger.open(where.address, dataset=where.dataset, budget=Budget(1)) as ledger:
        ledger.charge(Cost(epsilon=0.6), "before")
        assert at_once(8, _spend, where, 3) == [0] * 8
        assert ledger.spent == Cost(epsilon=1)
        assert len(ledger.entries()) == 5
        ledger.verify()


def test_a_released_connection_comes_back(where: Where) -> None:
    with closing(make(where)) as store:
        grow(store, 1)
        store.release()
        grow(store, 1)
        assert store.same()
        assert [row.seq for row in where.rows()] == [0, 1, 2]


# -- what was done behind the ledger's back


def charged(where: Where) -> list[Row]:
    """A ledger with three charges and an output; its rows."""
    with Ledger.open(where.address, dataset=where.dataset, budget=Budget(1)) as ledger:
        for number in range(3):
            receipt = ledger.charge(Cost(epsilon=0.1), f"release {number}", key=f"key {number}")
        ledger.settle(receipt, '{"state":"released"}')
    return where.rows()


def edited(row: Row, old: str, new: str) -> Row:
    """A row with another text and the hash of that."""
    assert old in row.record
    record = row.record.replace(old, new)
    return row._replace(record=record, hash=digest(record))


@pytest.mark.parametrize(
    "fault",
    ["nothing", "tail", "all", "first", "middle", "swapped", "record", "rehashed", "cap", "body", "no body", "added"],
)
def test_rows_that_were_changed_are_refused(where: Where, fault: str) -> None:
    rows = charged(where)
    where.replace(
        {
            "nothing": rows,
            "tail": rows[:-1],
            "all": [],
            "first": rows[1:],
            "middle": rows[:2] + rows[3:],
            "swapped": [*rows[:1], rows[2]._replace(seq=1), rows[1]._replace(seq=2), *rows[3:]],
            "record": [*rows[:2], rows[2]._replace(record=rows[2].record.replace("1/10", "1/99")), *rows[3:]],
            "rehashed": [*rows[:2], edited(rows[2], "release 1", "release 9"), *rows[3:]],
            "cap": [edited(rows[0], '"epsilon":"1"', '"epsilon":"9"'), *rows[1:]],
            "body": [*rows[:-1], rows[-1]._replace(body="another")],
            "no body": [*rows[:-1], rows[-1]._replace(body=None)],
            "added": [*rows, line(len(rows))],
        }[fault]
    )
    if fault == "nothing":
        with Ledger.open(where.address) as ledger:
            assert ledger.spent == Cost(epsilon=0.3)
        return
    with pytest.raises(TamperedLedgerError):
        Ledger.open(where.address)


def test_an_open_ledger_sees_that_its_tail_is_gone(where: Where) -> None:
    rows = charged(where)
    with Ledger.open(where.address) as ledger:
        where.replace(rows[:-2])
        with pytest.raises(TamperedLedgerError):
            ledger.charge(Cost(epsilon=0.1), "more")
        where.replace(rows)
        ledger.charge(Cost(epsilon=0.1), "more")


def test_a_ledger_that_is_gone_is_not_made_again(where: Where) -> None:
    charged(where)
    forget(where)
    with pytest.raises(TamperedLedgerError, match="anchor"):
        Ledger.open(where.address, dataset=where.dataset, budget=Budget(1))


def forget(where: Where) -> None:
    """Delete the ledger, and leave this machine's anchor."""
    if where.kind == "sqlite":
        for path in where.anchor.parent.glob("ledger.db*"):
            if path != where.anchor:
                path.unlink()
        return
    with as_owner(where.address) as base:
        base.execute("SET LOCAL session_replication_role = replica")
        for table in ("entry", "head"):
            base.execute(f"DELETE FROM snugdp.{table} WHERE dataset = %s", (where.dataset,))


def test_an_older_copy_is_refused(where: Where) -> None:
    """Also where the server's own memory of the head went back with the rows: the anchor's file did not."""
    with Ledger.open(where.address, dataset=where.dataset, budget=Budget(1)) as ledger:
        ledger.charge(Cost(epsilon=0.1), "first")
        old = where.rows()
        ledger.charge(Cost(epsilon=0.1), "second")
    where.replace(old)
    if where.kind == "postgres":
        with as_owner(where.address) as base:
            base.execute("SET LOCAL session_replication_role = replica")
            query = "UPDATE snugdp.head SET seq = %s, hash = %s WHERE dataset = %s"
            base.execute(query, (old[-1].seq, old[-1].hash, where.dataset))
    with pytest.raises(TamperedLedgerError, match="older copy"):
        Ledger.open(where.address)


@pytest.mark.parametrize("fault", ["missing", "garbled"])
def test_an_open_ledger_needs_its_anchor(where: Where, fault: str) -> None:
    with Ledger.open(where.address, dataset=where.dataset, budget=Budget(1)) as ledger:
        if fault == "missing":
            where.anchor.unlink()
        else:
            where.anchor.write_bytes(b"garbled")
        with pytest.raises(TamperedLedgerError, match="anchor"):
            ledger.charge(Cost(epsilon=0.1), "first")
    assert len(where.rows()) == 1
