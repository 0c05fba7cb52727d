"""A full disk, a folder that cannot be written, clocks, forks and nonsense: a clear error, and nothing is lost."""

import errno
import itertools
import os
import pickle
import random
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from snugdp import Budget, BudgetExceededError, Cost, Ledger, LedgerError, LedgerWriteError, RelationMismatchError
from snugdp.ledger.errors import ForeignProcessError, TamperedLedgerError
from snugdp.ledger.handle import Handle
from snugdp.ledger.history.state import State
from snugdp.serial import costs
from tests.effort import sampled
from tests.ledger.conftest import BUDGET, TENTH, Where, made
from tests.ledger.faults import at_once, end_of_log, failing, in_child, quick_folder
from tests.ledger.faults import coin as vote

# -- a full disk


@pytest.mark.slow
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The system refuses the write somewhere in the middle: the charge is there, or it is not and nothing was drawn."""
    path = tmp_path / "l"
    said = set()
    with Ledger.open(path, dataset="p", budget=Budget(100)) as ledger:
        for number, more in enumerate((0, 1, 100, 4096, 5000, 9000, 13_000, 20_000, 60_000)):

            def work(number: int = number, more: int = more) -> object:
                own = Ledger.open(path)
                own.charge(TENTH, "x")
                limit = end_of_log(path) + more
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # Python ignores the signal
                receipt = own.charge(TENTH, "y" * 5000, key=f"k{number}")
                return own.settle(receipt, "7" * 5000)

            code, text = in_child(work)
            said.add("done" if code == 0 else text.decode().partition(":")[0])
            states = {entry.key: entry.state for entry in ledger.entries()}
            expected = ("released",) if code == 0 else (None,) if more <= 5000 else (None, "open")
            assert states.get(f"k{number}") in expected, (more, text)
        assert said == {"done", "LedgerWriteError"}
        ledger.verify()


def test_a_full_disk_while_releasing(tmp_path: Path) -> None:
    """``max_page_count`` is SQLite's own full disk."""
    with Ledger.open(tmp_path / "l", dataset="p", budget=Budget(100)) as ledger:
        connection = ledger._handle.store._connection  # type: ignore[attr-defined]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + 1}")
        shown: dict[str, object] = {}
        for number in range(200):
            with suppress(LedgerWriteError):
                shown[f"k{number}"] = vote(ledger.once(f"k{number}"))
        states = {entry.key: entry.state for entry in ledger.entries()}
        assert 0 < len(shown) < 200
        assert shown.keys() == {key for key, state in states.items() if state != "open"}
        connection.execute("PRAGMA max_page_count=100000")
        assert all(vote(ledger.once(key)) == value for key, value in shown.items())
        vote(ledger.once("k199"))
        assert ledger.verify().charges == len(states) + 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_an_anchor_that_cannot_be_written(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The charge was durable before: it stands, nothing is shown, and the same key goes on when there is room."""
    view = ledger.once("k")

    monkeypatch.setattr(os, "pwrite", failing(OSError(number, "x")))
    with pytest.raises(LedgerWriteError, match=r"anchor.*What was charged stands"):
        vote(view)
    with pytest.raises(LedgerWriteError, match="Nothing was charged"):
        vote(ledger.once("other"))
    monkeypatch.setattr(os, "pwrite", lambda *_: 100)  # a short write
    with pytest.raises(LedgerWriteError, match="full"):
        ledger.verify()
    monkeypatch.undo()
    first = vote(view)
    assert vote(ledger.once("k")) == first
    assert [entry.state for entry in ledger.entries()] == ["released"]
    ledger.verify()


def test_an_anchor_that_fails_after_the_draw(where: Where, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output is stored but was not shown: the same key shows it."""
    plain, calls, anchors = os.pwrite, iter(range(100)), 2 if where.kind == "sqlite" else 1

    def full(handle: int, content: bytes, place: int) -> int:
        if next(calls) == anchors:  # the first of those that are moved to the output
            raise OSError(errno.ENOSPC, "x")
        return plain(handle, content, place)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(LedgerWriteError, match=r"not shown: a retry with the key 'k'"):
        vote(ledger.once("k"))
    monkeypatch.undo()
    (entry,) = ledger.entries()
    assert entry.state == "released"
    assert vote(ledger.once("k")) == vote(ledger.once("k"))


# -- rights


@contextmanager
def somebody() -> Iterator[tuple[Path, Callable[[Callable[[], object]], tuple[int, bytes]]]]:
    """A folder, and a child that has no more rights to it than its mode says (root drops to nobody)."""

    def run(work: Callable[[], object]) -> tuple[int, bytes]:
        def humbly() -> object:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            return work()

        return in_child(humbly)

    folder = Path(tempfile.mkdtemp())
    try:
        yield folder, run
    finally:
        folder.chmod(0o700)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


# (mode of the folder, of the ledger, of its lock, of its anchor) -> whether the charge stands
RIGHTS = {
    "a folder that cannot be entered": ((0o700 if os.geteuid() == 0 else 0o000, 0o666, 0o666, 0o666), False),
    "a read-only folder": ((0o555, 0o666, 0o666, 0o666), False),
    "a read-only file": ((0o777, 0o444, 0o666, 0o666), False),
    "a file that cannot be read": ((0o777, 0o000, 0o666, 0o666), False),
    "a lock that cannot be taken": ((0o777, 0o666, 0o000, 0o666), False),
    "an anchor that cannot be read": ((0o777, 0o666, 0o666, 0o000), False),
    "an anchor that cannot be written": ((0o777, 0o666, 0o666, 0o444), False),
}


@sampled(3)
@pytest.mark.parametrize("case", RIGHTS)
def test_without_rights(case: str) -> None:
    modes, stands = RIGHTS[case]
    with somebody() as (folder, run):
        path = folder / "l"
        with Ledger.open(path, dataset="p", budget=BUDGET) as ledger:
            ledger.charge(TENTH, "x")
        for name, mode in zip(("l", "l.lock", "l.anchor"), modes[1:], strict=True):
            (folder / name).chmod(mode)
        folder.chmod(modes[0])
        code, said = run(lambda: Ledger.open(path).charge(TENTH, "y", key="k"))
        assert (code, said.decode().partition(":")[0]) == (1, "LedgerWriteError"), said
        folder.chmod(0o700)
        for path_ in folder.iterdir():
            path_.chmod(0o600)
        with Ledger.open(path) as ledger:
            assert ledger.verify().spent == (Cost(epsilon=0.2) if stands else TENTH)


def test_a_folder_without_rights_gets_no_ledger() -> None:
    with somebody() as (folder, run):
        folder.chmod(0o555)
        code, said = run(lambda: Ledger.open(folder / "l", dataset="p", budget=BUDGET))
        assert code == 1
        assert said.startswith(b"LedgerWriteError")
        assert not list(folder.iterdir())


def test_one_that_is_held_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from snugdp.ledger.anchors import anchor
    from snugdp.ledger.stores import sqlite

    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    monkeypatch.setattr(anchor, "PATIENCE", 0.05)
    with Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET) as one, Ledger.open(tmp_path / "l") as other:
        with one._handle.store.transaction(), pytest.raises(LedgerWriteError, match="other processes"):
            other.charge(TENTH, "x")
        other.charge(TENTH, "x")
        handle = os.open(tmp_path / "l.anchor", os.O_RDWR)
        with anchor.locked(handle, "x"), pytest.raises(LedgerWriteError, match="locked by another process"):
            other.charge(TENTH, "y")
        os.close(handle)
        assert one.verify().spent == TENTH


# -- clocks


def test_clocks_and_time_zones(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    from snugdp.ledger.history import records

    times = iter([datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2030, 1, 9999)])
    zone = os.environ.get("TZ")
    try:
        with made(where) as ledger:
            monkeypatch.setattr(records, "clock", lambda: next(times))
            receipts = [ledger.charge(TENTH, str(i), key=str(i)) for i in range(3)]
            monkeypatch.undo()
            for name in ("Pacific/Kiritimati", "Etc/GMT+12", "UTC"):
                os.environ["TZ"] = name
                time.tzset()
                assert ledger.charge(TENTH, "0", key="0") == receipts[0]
                ledger.charge(TENTH, name)
            entries = ledger.entries()
            assert [entry.sequence for entry in entries] == list(range(1, 7))
            assert {entry.time[10:] for entry in entries[:3]} == {"T00:00:00+00:00"}
            assert all(entry.time.endswith("+00:00") for entry in entries)
            assert ledger.verify(receipts).spent == Cost(epsilon=0.6)
    finally:
        os.environ.pop("TZ", None)
        if zone is not None:
            os.environ["TZ"] = zone
        time.tzset()


# -- forks, threads and handles


@pytest.mark.slow
def test_forks_while_the_parent_goes_on(where: Where) -> None:
    """Children that try the parent's handle are refused, children that open their own are counted."""
    with made(where, Budget(10**6)) as ledger:

        def work(number: int) -> Iterator[object]:
            yield None
            for act in (lambda: ledger.charge(TENTH, "x"), lambda: ledger.spent, ledger.verify, ledger.entries):
                with pytest.raises(ForeignProcessError):
                    act()
            ledger.close()
            own = pickle.loads(pickle.dumps(ledger)) if number % 2 else Ledger.open(where.address)
            for _ in range(5):
                own.charge(TENTH, f"child {number}")
            yield "done"

        charged = 0
        stop = threading.Event()

        def charge() -> None:
            nonlocal charged
            while not stop.is_set():
                ledger.charge(TENTH, "the parent")
                charged += 1

        thread = threading.Thread(target=charge)
        thread.start()
        try:
            ends = [at_once(4, work) for _ in range(2)]
        finally:
            stop.set()
            thread.join()
        assert ends == [[(0, "done")] * 4] * 2
        assert ledger.verify().charges == charged + 40
        assert ledger.spent == Cost(epsilon=Fraction(charged + 40, 10))


@pytest.mark.slow
def test_threads_that_fork_at_the_same_time(tmp_path: Path) -> None:
    """Each holds the locks of all ledgers while it forks; none of them is left behind."""
    ledgers = [Ledger.open(tmp_path / f"l{i}", dataset="p", budget=Budget(100)) for i in range(3)]
    ends: list[int] = []

    def fork() -> None:
        for _ in range(10):
            ends.append(in_child(lambda: None)[0])
            for ledger in ledgers:
                ledger.charge(Cost(epsilon="0.01"), "x")

    threads = [threading.Thread(target=fork) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert ends == [0] * 40
    for ledger in ledgers:
        assert ledger.verify().spent == Cost(epsilon="0.4")
        ledger.close()


def test_a_handle_closed_twice(where: Where) -> None:
    ledger, other = made(where), Ledger.open(where.address)
    ledger.charge(TENTH, "x")
    for _ in range(2):
        ledger.close()
    for act in (lambda: ledger.charge(TENTH, "y"), lambda: ledger.spent, ledger.verify, ledger.show, ledger.export):
        with pytest.raises(LedgerError, match="closed"):
            act()
    assert other.spent == TENTH
    other.close()


def test_closed_by_another_thread_while_it_waits(where: Where, ledger: Ledger) -> None:
    with Ledger.open(where.address) as other:
        said: list[BaseException] = []

        def wait() -> None:
            try:
                ledger.charge(TENTH, "x")
            except BaseException as error:
                said.append(error)

        ledger._handle._lock.acquire()
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        ledger.close()
        ledger._handle._lock.release()
        thread.join()
        assert [type(error) for error in said] == [LedgerError]
        assert other.spent == Cost()


@pytest.mark.parametrize("place", ["before", "after"])
def test_interrupted_while_a_record_is_folded_in(
    where: Where, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The charge is durable, memory is half done: the ledger reads itself again and goes on."""
    with Ledger.open(where.address) as other:
        ledger.charge(TENTH, "first")
        plain = State.take

        def interrupted(self: State, judged: Any) -> None:
            if place == "after":
                judged.effect()  # and the hash is not noted
            monkeypatch.setattr(State, "take", plain)
            raise KeyboardInterrupt

        monkeypatch.setattr(State, "take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(TENTH, "second", key="k")
        assert ledger.spent == Cost(epsilon=0.2)
        other.charge(TENTH, "third")
        monkeypatch.setattr(State, "take", interrupted)  # now while it reads what others wrote
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(TENTH, "fourth")
        assert ledger.charge(TENTH, "second", key="k").sequence == 2
        assert ledger.verify().spent == other.spent == Cost(epsilon=0.3)


# -- nonsense


BAD: tuple[Callable[[], Cost], ...] = (
    lambda: Cost(epsilon=float("nan")),
    lambda: Cost(mu=float("inf")),
    lambda: Cost(epsilon=-0.1),
    lambda: Cost(mu="-1e-300"),
    lambda: Cost(epsilon="1/0"),
    lambda: Cost(epsilon=Decimal("NaN")),
    lambda: Cost(epsilon="1e999999999"),
    lambda: Cost(epsilon="9" * 500),
    lambda: Cost(epsilon=True),
    lambda: Cost(epsilon=10**300),
    lambda: Cost(mu=Fraction(10**400, 3)),
    lambda: Cost(delta=Fraction(3**4000, 2**1000)),
)


def test_bad_costs(ledger: Ledger) -> None:
    for cost in BAD:
        with pytest.raises((ValueError, TypeError)):
            ledger.charge(cost(), "x")
    for short in (Cost(delta=1), Cost(delta=2), Cost(epsilon=10**9), Cost(mu=10**9), Cost(variation=1)):
        for act in (ledger.charge, lambda cost, what: ledger.reserve(cost, what), ledger.once("k").charge):
            with pytest.raises(BudgetExceededError):
                act(short, "x")
    assert ledger.verify().entries == 1
    tiny = Cost(epsilon="1e-400", mu=Fraction(1, 7**2000), delta=Fraction(1, 3**3000))
    ledger.charge(tiny, "next to nothing")  # written down as a little more
    spent = ledger.verify().spent
    for name in ("epsilon", "mu_squared", "delta"):
        assert getattr(tiny, name) <= getattr(spent, name) < Fraction(1, 10**70)


def test_long_amounts_stay_short_and_are_never_rounded_down(where: Where) -> None:
    """Sums of awkward fractions grow without end; what is written down does not."""
    primes = [p for p in range(2, 600) if all(p % q for q in range(2, p))][:60]
    exact = Fraction(0)
    with made(where, Budget(1000, 1e-6)) as ledger:
        for prime in primes:
            exact += Fraction(1, prime**8)
            ledger.charge(Cost(epsilon=Fraction(1, prime**8)), "x")
        spent = ledger.verify().spent
        assert exact <= spent.epsilon < exact + Fraction(1, 10**70)
        assert costs.bits(spent.epsilon) <= costs.MAX_AMOUNT_BITS
        assert max(len(row.record) for row in where.rows()) < 2000


LONG = Fraction(3**180, 5 * 3**180 + 7)  # 573 bits: just short enough to be written as it is


@sampled(4)
@pytest.mark.parametrize(
    ("budget", "cost"),
    [
        (Budget(3000, 1e-6), Cost(mu="0.01")),
        (Budget(3000, "1e-170"), Cost(mu="0.01")),
        (Budget(100, "1e-100"), Cost(mu="0.01", epsilon="0.1", delta="1e-120")),
        (Budget(1, 1e-6), Cost(mu_squared=LONG / 1000)),
        (Budget(1, 1e-6), Cost(mu="0.01", epsilon=LONG)),
        (Budget(1, 1e-6), Cost(mu="0.01", delta=LONG / 10**7)),
        (Budget(LONG, LONG / 10**6), Cost(mu="0.001", delta=LONG / 10**8)),
        (Budget(10**90, 1e-6), Cost(mu="1e30")),
        (Budget("1e-80", "1e-80"), Cost(mu="1e-90")),
    ],
)
def test_a_legal_first_charge_is_taken_whatever_its_numbers(where: Where, budget: Budget, cost: Cost) -> None:
    with made(where, budget) as ledger:
        pure = costs.recorded(Cost(epsilon=LONG / 10**9))
        for first in ((), (pure,)):
            total = sum((*first, cost), Cost())
            if not costs.recorded(total).fits(budget):
                continue
            for each in first:
                ledger.charge(each, "before")
            ledger.charge(cost, "first")
            with suppress(BudgetExceededError):
                for _ in range(5):
                    ledger.charge(cost, "again")
            break
        assert ledger.entries()
        assert ledger.verify().spent.fits(budget)
    with Ledger.open(where.address) as later:
        assert later.verify().spent.fits(budget)


@pytest.mark.parametrize(
    "key", ["", "x" * 501, "x" * 10**6, "a\0b", "a\nb", "\x1b[2J", "\ud800", "\u200e", b"k", 7, ["k"]]
)
def test_bad_keys(ledger: Ledger, key: Any) -> None:
    with pytest.raises(ValueError, match="key must be"):
        ledger.once(key)
    for act in (
        lambda: ledger.charge(TENTH, "x", key=key),
        lambda: ledger.reserve(TENTH, "x", key=key),
        lambda: ledger.partition(key, ["a"]),
        lambda: ledger.partition("p", ["a" if key == 7 else key] * 2),  # 7 is a value
    ):
        with pytest.raises((ValueError, TypeError)):
            act()
    assert ledger.verify().entries == 1


def test_strange_but_legal_texts(where: Where) -> None:
    with made(where) as ledger:
        for number, text in enumerate(("x" * 500, "' OR 1=1 --", "%s {} \\u0000", "ключ 🔑", '"}]', " ")):
            receipt = ledger.charge(Cost(), "what \0 \ud800 \n" + text, key=text, plan=text * 100)
            ledger.settle(receipt, text * 10)
            assert ledger.recall(receipt) == text * 10
            assert (
                ledger.charge(Cost(), "what \0 \ud800 \n" + text, key=text, plan=text * 100).sequence == 2 * number + 1
            )
        assert ledger.verify().charges == 6
        ledger.charge(Cost(), "\x1b[2J wiped", key="terminal")
        shown = ledger.show()
        assert len(shown.splitlines()) == 16
        assert shown.encode()
        assert "\x1b" not in shown
        assert ledger.export()
    with Ledger.open(where.address) as later:
        assert later.verify().charges == 7


def test_relations_do_not_mix(ledger: Ledger) -> None:
    other = Cost(epsilon=0.1, neighbours="replace")
    ledger.partition("p", ["a"])
    work = ledger.reserve(TENTH, "work")
    for act in (
        lambda: ledger.charge(other, "x"),
        lambda: ledger.once("k").charge(other, "x"),
        lambda: ledger.part("p", "a").charge(other, "x"),
        lambda: ledger.reserve(other, "x"),
        lambda: ledger.reserve([TENTH, other], "x"),
        lambda: work.charge(other, "x"),
        lambda: ledger.affords(other),
    ):
        with pytest.raises(RelationMismatchError):
            act()
    assert ledger.verify().spent == TENTH


def test_a_password_is_not_in_a_pickle(where: Where) -> None:
    """Neither of the ledger nor of its views: workers have it from their own environment."""
    if where.kind == "sqlite":
        pytest.skip("a file has no password")
    made(where).close()
    server, mark, dataset = where.address.partition("#")
    address = f"{server}{'&' if '?' in server else '?'}password=hush-hush{mark}{dataset}"
    with Ledger.open(address) as ledger:
        ledger.partition("p", ["a"])
        for each in (ledger, ledger.part("p", "a"), ledger.reserve(TENTH, "x")):
            assert b"hush-hush" not in pickle.dumps(each)
            assert pickle.loads(pickle.dumps(each)).label == where.dataset


def test_views_and_keys_do_not_lead_around_the_budget(ledger: Ledger) -> None:
    """Every way in which one charge might pay twice."""
    ledger.partition("p", ["a", "b"])
    ledger.partition("q", ["a", "b"])
    held = ledger.part("p", "a").reserve(Cost(epsilon=0.4), "work", key="work")
    beyond: tuple[Callable[[], object], ...] = (
        lambda: held.charge(Cost(epsilon="0.41"), "x"),
        lambda: held.charge(Cost(mu="0.0001"), "x"),
        lambda: ledger.part("p", "a").charge(Cost(epsilon="0.61"), "x"),
        lambda: ledger.charge(Cost(epsilon="0.61"), "x"),
        lambda: ledger.part("q", "a").charge(Cost(epsilon="0.61"), "x"),
    )
    for act in beyond:
        with pytest.raises(BudgetExceededError):
            act()
    held.once("k").charge(TENTH, "x")
    used: tuple[Callable[[], object], ...] = (
        lambda: ledger.part("p", "b").reserve(Cost(epsilon=0.4), "work", key="work"),
        lambda: ledger.reserve(Cost(epsilon=0.4), "work", key="work"),
        lambda: ledger.part("p", "a").charge(Cost(epsilon=0.4), "work", key="work"),
        lambda: ledger.part("p", "a").charge(TENTH, "x", key="k"),
        lambda: ledger.charge(TENTH, "x", key="k"),
        lambda: ledger.part("q", "a").charge(TENTH, "x", key="k"),
        lambda: ledger.reserve(TENTH, "x", key="k"),
    )
    for act in used:
        with pytest.raises(LedgerError, match="another release"):
            act()
    ledger.part("p", "b").charge(Cost(epsilon=0.4), "x")
    ledger.part("q", "a").charge(Cost(epsilon=0.3), "x")
    ledger.part("q", "b").charge(Cost(epsilon=0.3), "x")
    ledger.charge(Cost(epsilon=0.3), "x")
    assert ledger.verify().spent == Cost(epsilon=1)
    for view in (ledger, ledger.part("p", "a"), ledger.part("p", "b"), ledger.part("q", "b")):
        with pytest.raises(BudgetExceededError):
            view.charge(Cost(epsilon="0.001"), "x")
    assert ledger.part("p", "a").reserve(Cost(epsilon=0.4), "work", key="work").affords(Cost(epsilon=0.3))


@sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_whichever_row_is_looked_at_its_charges_are_within_the_budget(seed: int) -> None:
    """Random charges through random views, and a sum by hand over every place that a row may have."""
    chooser = random.Random(seed)
    places = {"p": ["a", "b", "c"], "q": ["d", "e"]}
    with quick_folder() as folder, Ledger.open(folder / "l", dataset="x", budget=Budget(2, 1e-6)) as ledger:
        for name, its in places.items():
            ledger.partition(name, its)
        parts = [(name, part) for name in places for part in places[name]]
        views: list[tuple[Any, tuple[str, str] | None, Cost | None]] = [(ledger, None, None)]
        views += [(ledger.part(*part), part, None) for part in parts]
        counted: list[tuple[tuple[str, str] | None, Cost]] = []  # what was released, by the part that it looked at
        for number in range(150):
            view, part, held = chooser.choice(views)
            cost = Cost(epsilon=Fraction(chooser.randrange(8), 50), delta=Fraction(chooser.randrange(3), 10**8))
            with suppress(BudgetExceededError):
                if held is None and chooser.random() < 0.2:
                    views.append((view.reserve(cost, "work", key=f"r{number}"), part, cost))
                else:
                    (view.once(f"k{number}") if chooser.random() < 0.5 else view).charge(cost, "x")
                    counted.append((part, cost))
        spent = ledger.verify().spent
        assert spent.epsilon <= 2
        assert spent.epsilon > Fraction(3, 2)
        for row in itertools.product(*([(name, part) for part in places[name]] for name in places)):
            touched = [cost for part, cost in counted if part is None or part in row]
            assert sum(cost.epsilon for cost in touched) <= spent.epsilon
            assert sum(cost.delta for cost in touched) <= spent.delta <= Fraction(1, 10**6)
        used = [entry for entry in ledger.entries() if entry.within is not None]
        for entry in ledger.entries():
            inside = [one.cost.epsilon for one in used if one.within == entry.sequence]
            assert sum(inside) <= entry.cost.epsilon or not inside
        assert used


def test_a_receipt_of_another_ledger_of_the_same_name(where: Where, ledger: Ledger, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "twin", dataset=where.dataset, budget=BUDGET) as twin:
        mine, its = (each.charge(TENTH, "x", key="k") for each in (ledger, twin))
        twin.settle(its, "7")
        acts: tuple[Callable[[], object], ...] = (
            lambda: ledger.recall(its),
            lambda: ledger.settle(its, "8"),
            lambda: twin.recall(mine),
        )
        for act in acts:
            with pytest.raises(ValueError, match="not given by this ledger"):
                act()
        with pytest.raises(TamperedLedgerError):
            ledger.verify([its])
        assert ledger.recall(mine) is None


def test_a_reader_of_the_anchor_never_waits_for_ever(
    where: Where, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that fails in the middle leaves no lock behind, neither among threads nor in files."""
    for name in ("_catch_up", "_check_anchors", "_hold", "_append", "_advance"):
        monkeypatch.setattr(Handle, name, failing(RuntimeError("x")))
        with pytest.raises(RuntimeError, match="x"):
            ledger.charge(TENTH, "x", key=name)
        monkeypatch.undo()
        with Ledger.open(where.address) as other:
            other.charge(TENTH, "x", key=name)
    assert ledger.verify().spent == Cost(epsilon=0.5)
