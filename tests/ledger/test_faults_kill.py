"""SIGKILL at every step of a release: what was shown has an entry, and a retry shows one output."""

import contextlib
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import snugdp
from snugdp import Budget, Cost, KeyConflictError, Ledger, LedgerError, LedgerWriteError, Released, TamperedLedgerError
from snugdp.core.outcome import Receipt
from snugdp.ledger import Entry
from snugdp.ledger.anchors.anchor import FileAnchor, OpenAnchor
from snugdp.ledger.handle import Handle
from snugdp.ledger.history.state import State
from tests.effort import often, repeated, sampled
from tests.ledger.conftest import Where, made
from tests.ledger.faults import KILLED, die, end_of_log, in_child

KILLS = often(4, 12, 50)  # for each step, in SQLite
FEWER = often(2, 5, 10)  # for a step that is much like another one
ON_SERVER = often(2, 5)  # for each step, in PostgreSQL
AGES = [30 + i % 7 for i in range(500)]
BUDGET = Budget(1000, 1e-2)
PRICE = Cost(epsilon=1, delta=1e-6)


def median(ledger: Any) -> float:
    """Noise on a fine grid: two draws agree with probability below 1e-9."""
    outcome = snugdp.median(AGES, bounds=(0, 100), epsilon=1, delta=1e-6, method="test", ledger=ledger)
    return -1.0 if outcome.value is None else outcome.value


def before(kind: type, name: str, call: int = 1) -> None:
    """Die when this step is reached for the so-manyth time."""
    _at(kind, name, call, lambda plain, *given: die())


def behind(kind: type, name: str, call: int = 1) -> None:
    """Die when this step is done."""
    _at(kind, name, call, lambda plain, *given: (plain(*given), die()))


def _at(kind: type, name: str, call: int, act: Callable[..., object]) -> None:
    plain, calls = getattr(kind, name), iter(range(1, 1000))
    setattr(kind, name, lambda *given: act(plain, *given) if next(calls) == call else plain(*given))


# A release goes through ``Handle.within`` three times: charge, recall, settle. (how to die, what stands then)
STEPS: dict[str, tuple[Callable[[], None], str | None]] = {
    "before BEGIN": (lambda: before(Handle, "_require_this_process"), None),
    "after BEGIN": (lambda: before(Handle, "_catch_up"), None),
    "after INSERT": (lambda: behind(Handle, "_append"), None),
    "after COMMIT": (lambda: before(State, "take"), "open"),
    "after the anchor": (lambda: behind(OpenAnchor, "advance"), "open"),
    "before the draw": (lambda: behind(Ledger, "recall"), "open"),
    "after the draw": (lambda: before(Ledger, "settle"), "open"),
    "after INSERT of the output": (lambda: behind(Handle, "_append", 2), "open"),
    "after COMMIT of the output": (lambda: before(State, "take", 2), "shown"),
    "after settle": (lambda: behind(Ledger, "settle"), "shown"),
}

STANDS: dict[str | None, list[list[str]]] = {
    None: [[]], "open": [["open"]], "shown": [["released"], ["refused"]]
}  # fmt: skip
ALIKE = ("before the draw", "after INSERT of the output", "after COMMIT of the output")


@sampled(20)
@repeated
@pytest.mark.parametrize("step", STEPS)
def test_killed_at(where: Where, step: str) -> None:
    prepare, stands = STEPS[step]
    kills = ON_SERVER if where.kind == "postgres" else FEWER if step in ALIKE else KILLS
    with made(where, BUDGET) as ledger:
        median(ledger.once("warm"))

        def work(key: str) -> object:
            own = Ledger.open(where.address)
            prepare()
            return median(own.once(key))

        for number in range(kills):
            key = f"{step} {number}"
            assert in_child(lambda key=key: work(key)) == (KILLED, b"")  # type: ignore[misc]
            found = [entry.state for entry in ledger.entries() if entry.key == key]
            assert found in STANDS[stands]
            first = median(ledger.once(key))
            assert median(ledger.once(key)) == first
            if number % 10 == 0:
                ledger.verify()
        entries = ledger.entries()
        assert len(entries) == len({entry.key for entry in entries}) == kills + 1
        assert {entry.state for entry in entries} <= {"released", "refused"}
        assert ledger.spent == Cost(epsilon=kills + 1, delta=PRICE.delta * (kills + 1))
    with Ledger.open(where.address) as later:
        assert later.verify().charges == kills + 1


@repeated
def test_killed_after_the_output_was_seen(where: Where, ledger: Ledger) -> None:
    """What somebody has seen is what every retry shows."""
    median(ledger.once("warm"))
    for number in range(often(6, 12, 20) if where.kind == "sqlite" else ON_SERVER):
        read, write = os.pipe()

        def work(key: str = f"k{number}", write: int = write) -> None:
            os.write(write, repr(median(Ledger.open(where.address).once(key))).encode())
            die()

        assert in_child(work)[0] == KILLED
        assert float(os.read(read, 1000)) == median(ledger.once(f"k{number}"))
        os.close(read)
        os.close(write)
    ledger.verify()


def test_killed_where_nothing_is_kept(where: Where) -> None:
    """An output that was noted as consumed and not seen is lost: it is refused, not drawn again."""
    with made(where, BUDGET, keep=False) as ledger:
        for step in ("after the draw", "after settle"):

            def work(step: str = step) -> object:
                own = Ledger.open(where.address)
                STEPS[step][0]()
                return median(own.once(step))

            assert in_child(work)[0] == KILLED
        median(ledger.once("after the draw"))
        with pytest.raises(KeyConflictError, match="consumed"):
            median(ledger.once("after settle"))
        assert [entry.state for entry in ledger.entries()] == ["consumed", "consumed"]


def torn(limit: int) -> None:
    """From now on the kernel ends this process in the middle of a write that reaches beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@repeated
def test_killed_during_a_checkpoint(tmp_path: Path) -> None:
    """The log is copied into the file page by page; the process dies in the middle of any of them."""
    path, chooser, killed = tmp_path / "l", random.Random(7), 0
    with Ledger.open(path, dataset="people", budget=BUDGET) as ledger:
        for number in range(KILLS):
            limit = chooser.randrange(1, os.path.getsize(path) + 5 * 4096)

            def work(limit: int = limit) -> None:
                own = Ledger.open(path)
                for _ in range(2):
                    own.settle(own.charge(PRICE, "x" * 3000), "7" * 3000)
                torn(limit)
                own.close()  # the last one to close copies the log

            killed += in_child(work)[0] == -signal.SIGXFSZ
            assert ledger.spent.epsilon == 2 * (number + 1)
        ledger.verify()
    assert killed > KILLS // 2
    with Ledger.open(path) as later:
        assert later.verify().spent == Cost(epsilon=2 * KILLS, delta=2 * KILLS * PRICE.delta)
        assert all(later.recall(receipt(later, entry)) == "7" * 3000 for entry in later.entries())


def receipt(ledger: Ledger, entry: Entry) -> Receipt:
    """The receipt of an entry."""
    return Receipt(ledger.label, entry.sequence, entry.what, entry.cost, entry.key, entry.hash)


@repeated
def test_killed_in_the_middle_of_a_commit(tmp_path: Path) -> None:
    """A torn log: the charge is there wholly or not at all, and a retry finds out which."""
    path, chooser, killed, stood = tmp_path / "l", random.Random(8), 0, 0
    with Ledger.open(path, dataset="people", budget=BUDGET) as ledger:
        for number in range(KILLS):

            def work(key: str = f"k{number}", more: int = chooser.randrange(1, 4 * 4120)) -> None:
                own = Ledger.open(path)
                own.charge(PRICE, "another")
                torn(end_of_log(path) + more)
                own.charge(PRICE, "x" * 5000, key=key)

            killed += in_child(work)[0] == -signal.SIGXFSZ
            stood += any(entry.key == f"k{number}" for entry in ledger.entries())
            ledger.charge(PRICE, "x" * 5000, key=f"k{number}")
            assert ledger.spent.epsilon == 2 * (number + 1)
        ledger.verify()
    assert killed > KILLS // 2
    assert stood < KILLS // 2


def test_killed_while_a_ledger_is_made(tmp_path: Path) -> None:
    """Half a ledger is never found: it is made by the next one, or its anchor alone is there and it is refused."""
    from snugdp.ledger.stores.sqlite import SQLiteStore

    steps: tuple[Callable[[], None], ...] = (
        lambda: before(FileAnchor, "create"),
        lambda: behind(FileAnchor, "create"),
        lambda: behind(SQLiteStore, "_write_fresh"),
        lambda: setattr(os, "rename", die),
        lambda: behind(SQLiteStore, "create"),
    )
    ends = []
    for number, step in enumerate(steps):
        path = tmp_path / f"l{number}"

        def work(path: Path = path, step: Callable[[], None] = step) -> None:
            step()
            Ledger.open(path, dataset="people", budget=BUDGET)

        assert in_child(work)[0] == KILLED
        try:
            with Ledger.open(path, dataset="people", budget=BUDGET) as ledger:
                ends.append(ledger.verify().entries)
        except TamperedLedgerError as error:
            ends.append("delete the anchor" in str(error) and 0)
    assert ends == [1, 0, 0, 0, 1]


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Children that release without end and are killed from outside, whenever it happens."""
    path, chooser = tmp_path / "l", random.Random(9)
    shown: dict[str, float] = {}
    with Ledger.open(path, dataset="people", budget=BUDGET) as ledger:
        median(ledger.once("warm"))
        for number in range(25):
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    own = Ledger.open(path)
                    for each in range(100):
                        key = f"{number} {each}"
                        os.write(write, f"{key},{median(own.once(key))}\n".encode())
                os._exit(0)
            os.close(write)
            first = os.read(read, 65536) if number % 2 else b""  # at work, or at any moment since its birth
            time.sleep(chooser.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            rest = b"".join(iter(lambda read=read: os.read(read, 65536), b""))  # type: ignore[misc]
            os.waitpid(child, 0)
            os.close(read)
            lines = [line.split(",") for line in (first + rest).decode().splitlines()]
            shown |= {key: float(value) for key, value in lines}
        entries = {entry.key: entry for entry in ledger.entries()}
        assert shown.keys() <= entries.keys()
        assert len(shown) > 10
        for key, value in shown.items():
            assert entries[key].state in ("released", "refused")
            assert median(ledger.once(key)) == value
        assert ledger.verify().charges == len(entries)
        assert ledger.spent.epsilon == len(entries)


def test_an_exception_after_the_draw_shows_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not killed, but interrupted or out of disk: the same consequences."""
    plain = Handle._append
    for trouble in (KeyboardInterrupt, LedgerWriteError("full"), MemoryError):

        def fail(self: Handle, rows: Any, new: Any, trouble: Any = trouble) -> None:
            plain(self, rows, new)
            if new.judged.record.kind == "outcome":
                raise trouble

        monkeypatch.setattr(Handle, "_append", fail)
        with pytest.raises((KeyboardInterrupt, LedgerError)):
            median(ledger.once(str(trouble)))
        monkeypatch.undo()
        assert ledger.entries()[-1].state == "open"
        assert median(ledger.once(str(trouble))) == median(ledger.once(str(trouble)))
    outcome = snugdp.median(AGES, bounds=(0, 100), epsilon=1, delta=1e-6, method="test", ledger=ledger.once("k"))
    assert isinstance(outcome, Released) or outcome.refused
    assert ledger.verify().charges == 4
