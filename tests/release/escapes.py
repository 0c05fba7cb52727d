"""A ledger that keeps one charge, a source that counts its draws, and a way to raise at any line after the charge."""

from __future__ import annotations

import dis
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import pytest

import snugdp
from snugdp import Cost, Receipt, Simulation
from snugdp.audit.equality import equal
from snugdp.ledger import address
from snugdp.noise import Noise
from snugdp.noise.requests import Request
from snugdp.numerics import balls, threads
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.secrecy import silence
from snugdp.serial.codec import StoredOutcome, loads

ROOT = str(Path(snugdp.__file__).parent)
CANARY = "canary 87d1"
KINDS: tuple[type[BaseException], ...] = (ValueError, SystemExit, GeneratorExit, KeyboardInterrupt, MemoryError)
Line = tuple[str, int]
T = TypeVar("T")


class Counting(Noise):
    """A seeded source that has to be private to be charged, and counts what is drawn after the charge."""

    private = True

    def __init__(self, shelf: Shelf, seed: int = 1) -> None:
        self._shelf, self._source = shelf, Simulation(seed)

    def answer(self, request: Request[T]) -> T:
        self._shelf.draws += self._shelf.paid
        return self._source.answer(request)


class Shelf:
    """Keeps the outcome of one charge, under one key."""

    def __init__(self, hash: str = "") -> None:
        self.stored: list[str | None] = []
        self.paid, self.draws, self.hash = False, 0, hash
        self.on_charge: Callable[[], None] = lambda: None

    def charge(self, cost: Cost, what: str, *, plan: str = "", question: Any = None) -> Receipt:
        self.paid = True
        self.on_charge()
        return Receipt("shelf", 1, what, cost, "key", self.hash)

    def recall(self, receipt: Receipt) -> str | None:
        if self.stored == [None]:
            raise snugdp.KeyConflictError("the output was consumed")
        return self.stored[0] if self.stored else None

    def settle(self, receipt: Receipt, body: str | None) -> str | None:
        if not self.stored:
            self.stored.append(body)
            return body
        return self.recall(receipt)


class Watch:
    """Follows the lines of snugdp from the charge to the outcome, and raises at one of them, or at the so-manyth."""

    def __init__(
        self,
        shelf: Shelf,
        at: Line | int | None = None,
        kind: type[BaseException] = ValueError,
        said: tuple[str, ...] = (CANARY,),
    ) -> None:
        self.shelf, self.at, self.kind, self.said = shelf, at, kind, said
        self.lines: dict[Line, str] = {}  # the phase in which each was first seen
        self.count, self.raised = 0, ""
        self.phase, self.depth = "before", 0
        shelf.on_charge = self.begin

    def begin(self) -> None:
        """From here on: all frames that are under way, and all new ones."""
        self.phase = "charged"
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frame.f_trace = self.trace
            frame = frame.f_back
        sys.settrace(self.trace)

    def stop(self) -> None:
        """Look no further."""
        sys.settrace(None)
        self.shelf.on_charge = lambda: None

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(ROOT):
            return None
        if event == "line" and not _leaving(frame):
            line = (file[len(ROOT) + 1 :], frame.f_lineno)
            phase = "stored" if self.shelf.stored else self.phase
            self.lines.setdefault(line, phase)
            self.count += 1
            if self.at in (line, self.count) and not self.raised:
                self.raised = phase
                raise self.kind(*self.said)
        return self.trace

    def pay(
        self, plain: Callable[..., Any], context: ReleaseContext, plan: Plan, walk: Callable[..., StoredOutcome]
    ) -> Any:
        """``ReleaseContext.pay`` with the eyes open."""
        self.depth += 1

        def seen(*given: Any) -> StoredOutcome:
            if self.depth == 1:
                self.phase = "walk"
            return walk(*given)

        try:
            return plain(context, plan, seen)
        finally:
            self.depth -= 1
            if not self.depth:
                sys.settrace(None)


def _leaving(frame: FrameType) -> bool:
    """Whether the next step is the end of a handler. The interpreter itself never interrupts there.

    A trace function can, and then the exception that was handled stays behind as if it still were.
    """
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "POP_EXCEPT"


@contextmanager
def watched(shelf: Shelf, **given: Any) -> Iterator[Watch]:
    """Every context without a ledger pays from this shelf, and a watch follows it."""
    watch, init, pay = Watch(shelf, **given), ReleaseContext.__init__, ReleaseContext.pay

    def filled(self: ReleaseContext, noise: Any = None, ledger: Any = None, budget: Any = None, **more: Any) -> None:
        init(self, noise, shelf if ledger is None else ledger, budget, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReleaseContext, "__init__", filled)
        patch.setattr(ReleaseContext, "pay", lambda self, plan, walk: watch.pay(pay, self, plan, walk))
        try:
            yield watch
        finally:
            watch.stop()


def shown(error: BaseException | None) -> str:
    """Everything that an exception carries: messages, causes, contexts, notes, and the locals of all its frames."""
    if error is None:
        return ""
    said = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    carried = [error.__cause__, error.__context__]
    return "\n".join([said, repr(error), repr(error.args), *map(shown, carried)])


def tidy() -> None:
    """Undo what an exception at the end of a ``with`` statement leaves behind: locks, and silenced warnings.

    A trace function can raise before the manager is left; the interpreter itself never interrupts there.
    """
    sys.settrace(None)
    balls._turn.renew()
    threads._lock, address._LOCK = threading.Lock(), threading.Lock()
    silence.WARNINGS_OFF.after_fork()


def ended(run: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What it returned, or raised."""
    try:
        return run(), None
    except BaseException as error:
        return None, error
    finally:
        tidy()


def attack(run: Callable[[Any], Any], at: Line, kind: type[BaseException]) -> str:
    """Raise at one line; in which phase that was. ``run(noise)``: a release through a context without a ledger.

    Once the walk has begun, no error leaves but a bare interrupt, and then the charge has its outcome. In any case
    a retry shows what is stored, and draws nothing if something was drawn before.
    """
    shelf = Shelf()
    with watched(shelf, at=at, kind=kind) as watch:
        outcome, error = ended(lambda: run(Counting(shelf)))
    if watch.raised in ("before", "charged", ""):
        assert shelf.draws == 0 or not watch.raised
        return watch.raised
    assert len(shelf.stored) == 1, "the charge has no outcome"
    if watch.raised == "walk":
        assert CANARY not in shown(error)
        assert error is None or (kind is KeyboardInterrupt and type(error) is kind and error.args == ())
        assert error is None or (error.__cause__ is None and error.__context__ is None)
    draws, shelf.paid = shelf.draws, False
    with watched(shelf):
        again, failed = ended(lambda: run(Counting(shelf)))
    assert shelf.draws == draws, "the same key draws again"
    if shelf.stored == [None]:  # it could not be written down: it was shown once, or is lost
        assert isinstance(failed, snugdp.KeyConflictError)
        return watch.raised
    assert failed is None
    assert shelf.stored[0] is not None
    assert again.refused == loads(shelf.stored[0]).refused
    if outcome is not None:
        assert equal(outcome.value, again.value)
        assert outcome.refused == again.refused
    return watch.raised


def lines(run: Callable[[Any], Any]) -> dict[Line, str]:
    """All lines of snugdp between the charge and the outcome, with the phase in which each is reached."""
    for _ in range(2):  # the second time, what is kept for the next one is there
        shelf = Shelf()
        with watched(shelf) as watch:
            run(Counting(shelf))
    return watch.lines
