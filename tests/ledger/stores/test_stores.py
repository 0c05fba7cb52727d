"""What every store promises, on SQLite and on PostgreSQL alike."""

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Barrier

import pytest

from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger.anchors.anchor import Mark
from snugdp.ledger.book import Ledger
from snugdp.ledger.errors import LedgerError, TamperedLedgerError
from snugdp.ledger.history.records import Record, Row, digest, write
from snugdp.ledger.stores.store import Store, store_at
from tests.ledger.conftest import Where, as_owner, made

BODIES = {1: "", 2: "a body, ünïcode and all: 😀"}
STAMP = {"time": "now", "software": "snugdp of the tests"}
_CHAIN: list[Record] = []


def line(seq: int, body: str | None = None) -> Row:
    """A row that the stores take: the next of a chain. What a record means they do not ask."""
    while len(_CHAIN) <= seq:
        number = len(_CHAIN)
        fields = {"id": "a" * 32, "text": "quotes ' \" % \\ and ünïcode", "body": digest(BODIES.get(number, ""))}
        _CHAIN.append(write(_CHAIN[-1].hash if _CHAIN else "", number, "genesis", {**fields, **STAMP}))
    return _CHAIN[seq].row(body)


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
    given = [line(0), line(1, BODIES[1]), line(2, BODIES[2]), line(3)]
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
    with made(where, Budget(1)) as ledger:
        for number in range(3):
            receipt = ledger.charge(Cost(epsilon=0.1), f"release {number}", key=f"key {number}")
        ledger.settle(receipt, '{"state":"released"}')
    return where.rows()


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
        made(where, Budget(1))


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


@pytest.mark.parametrize("fault", ["missing", "garbled"])
def test_an_open_ledger_needs_its_anchor(where: Where, fault: str) -> None:
    with made(where, Budget(1)) as ledger:
        if fault == "missing":
            where.anchor.unlink()
        else:
            where.anchor.write_bytes(b"garbled")
        with pytest.raises(TamperedLedgerError, match="anchor"):
            ledger.charge(Cost(epsilon=0.1), "first")
    assert len(where.rows()) == 1
