"""Children that are killed, and histories that are forged: what the tests of faults share."""

import functools
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import snugdp
from snugdp.ledger.anchors.anchor import Mark, _slot
from snugdp.ledger.anchors.recognition import UserAnchor
from snugdp.ledger.history.records import Row, canonical, digest

KILLED = -signal.SIGKILL


def die(*_: object) -> NoReturn:
    """As if the power was cut: no handler, no flush, no finally."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def failing(error: BaseException) -> Callable[..., Any]:
    """What fails with this error, whatever it is given."""

    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def coin(ledger: Any) -> object:
    """A vote that is as good as a coin."""
    return snugdp.vote([1, 2], candidates=[1, 2], epsilon=0.001, ledger=ledger).value


def _end_with(write: int, work: Callable[[], object]) -> NoReturn:
    """In a child: do this, write down what it returns, or its exception and 1 as exit code, and end."""
    code = 1
    try:
        said = work()
        os.write(write, str(said).encode() if said is not None else b"")
        code = 0
    except BaseException as error:
        os.write(write, f"{type(error).__name__}: {error}".encode()[:60_000])
    finally:
        os._exit(code)


def _ended(child: int, read: int) -> tuple[int, bytes]:
    """How a child ended, and what it wrote."""
    said = b"".join(iter(lambda: os.read(read, 65536), b""))
    os.close(read)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def in_child(work: Callable[[], object]) -> tuple[int, bytes]:
    """Run this in a forked child; how it ended, and what it returned, as text.

    ``work`` returns text to be shown (or None). An exception shows as its type and text, and ends the child with 1.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _end_with(write, work)
    os.close(write)
    return _ended(child, read)


def at_once(count: int, work: Callable[[int], Iterator[object]]) -> list[tuple[int, str]]:
    """Run ``work(0)``, ..., in so many forked children that start at the same moment; how each ended and what it said.

    Up to the first ``yield`` of ``work`` the child gets ready, the rest is the race.
    """
    ready, set_ready = os.pipe()
    go, start = os.pipe()

    def race(number: int) -> object:
        try:
            steps = work(number)
            next(steps)
        finally:
            os.write(set_ready, b"r")
        os.read(go, 1)  # until the parent closes its end
        return list(steps)[-1]

    children: list[tuple[int, int]] = []
    for number in range(count):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(start)
            _end_with(write, functools.partial(race, number))
        os.close(write)
        children.append((child, read))
    for _ in range(count):
        os.read(ready, 1)
    os.close(start)
    ends = [_ended(child, read) for child, read in children]
    for handle in (ready, set_ready, go):
        os.close(handle)
    return [(code, said.decode()) for code, said in ends]


def in_threads(count: int, work: Callable[[int], object]) -> list[BaseException]:
    """Run ``work(0)``, ..., in so many threads, to their end; what they raised."""
    failed: list[BaseException] = []

    def caught(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=caught, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of ledgers are opened there, and no disk has to be flushed."""
    memory = "/dev/shm"
    there = memory if os.path.isdir(memory) and os.access(memory, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(dir=there) as folder:
        yield Path(folder)


def end_of_log(path: Path) -> int:
    """Where SQLite goes on in the log of a ledger: after the frames of its newest round, before the room behind."""
    log, end = Path(f"{path}-wal").read_bytes(), 32
    while end < len(log) and log[end + 8 : end + 16] == log[16:24]:
        end += 24 + 4096
    return end


def forged(rows: Sequence[Row], at: int, change: Callable[[dict[str, Any]], None]) -> list[Row]:
    """One record changed, and its hash and all later ones made to fit."""
    result, prev = list[Row](), ""
    for row in rows:
        fields = json.loads(row.record)
        if row.seq == at:
            change(fields)
        text = canonical({**fields, "prev": prev})
        prev = digest(text)
        result.append(Row(row.seq, text, row.body, prev))
    return result


def anchored(path: Path, rows: Sequence[Row]) -> None:
    """Let an anchor and this user's hold the newest of these rows, as somebody would who rewrites everything."""
    mark = Mark(json.loads(rows[0].record)["id"], rows[-1].seq, rows[-1].hash)
    for anchor in (path, Path(UserAnchor(mark.id).place)):
        anchor.write_bytes(_slot(mark) * 2)
