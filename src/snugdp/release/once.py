"""One charge, one draw, one outcome, whatever happens in between. Proof: ``spine.proof.md``, Theorem A3.

Nothing that is raised after the first draw leaves as it is: it could carry private values, and a charge that it left
without an outcome could be drawn from again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from typing import Protocol, runtime_checkable

from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Receipt
from snugdp.ledger.errors import LEDGER_ERRORS, LedgerError
from snugdp.ledger.question import Question
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome, UnreadableError, dumps, loads

_TRIES = 3  # to store an outcome: the walk itself, an interrupt while that is stored, and one more
_UNDER_WAY = (
    "a release with this key is under way, and asks for the same key again: nothing was drawn. Give the inner release "
    "a key of its own"
)
_LOST = (
    "the outcome of this charge could not be stored, so it is not shown. The charge stands. In this process a "
    "retry with the same key does not draw again: it stores what was drawn"
)


@runtime_checkable
class Keeper(Protocol):
    """An account that keeps the outcome of every charge: one charge, one output, however often it is asked for.

    Its receipts have the ``hash`` of a record, by which a charge is known wherever it is looked at from.
    """

    def charge(self, cost: Cost, what: str, *, plan: str = "", question: Question | None = None) -> Receipt:
        """Write the cost down, or refuse."""
        ...

    def recall(self, receipt: Receipt) -> str | None:
        """The outcome of a charge; nothing if there is none yet."""
        ...

    def settle(self, receipt: Receipt, body: str | None) -> str | None:
        """Store the outcome of a charge unless there is one, and return what is stored; nothing if it is consumed."""
        ...


class Purchase:
    """A charge on its way to its outcome: however often it is told to go on, it pays once and draws once.

    ``walk(receipt)``: tests and draws, and says what came of it. It is dropped before it is called. ``kept``: a
    refusal until the walk has come to its end.
    """

    def __init__(
        self, pay: Callable[[], Receipt | None], keeper: Keeper | None, walk: Callable[[Receipt], StoredOutcome]
    ) -> None:
        self._pay, self._keeper = pay, keeper
        self._ours = keeper is not None and _is_ours(keeper)  # known beforehand: an import may fail
        self._walk: Callable[[Receipt], StoredOutcome] | None = walk
        self._receipt: Receipt | None = None
        self._kept, self._drawn, self._interrupted = StoredOutcome(refused=True), False, False
        self._others = False  # whether it holds what another call has drawn
        self._thread: int | None = None  # that is at it
        self._rests = threading.Event()

    def outcome(self) -> tuple[StoredOutcome, Receipt]:
        """The outcome of this charge. What is raised once the walk has begun is new, bare, and about the ledger.

        A walk that raises has bought a refusal. An interrupt by the user goes on as a new one, after that is stored.
        """
        interrupted = False
        for _ in range(_TRIES):
            kept, problem = self._tried()
            interrupted |= self._interrupted or isinstance(problem, KeyboardInterrupt)
            unwritten = self._drawn and isinstance(problem, LedgerError)  # it will hardly be written a moment later
            if kept is not None or self._walk is not None or unwritten:
                break
        # Raised outside any handler, so that no traceback, cause or context carries private values.
        if interrupted:
            kept = None
            raise KeyboardInterrupt
        if kept is None:
            raise LedgerError(_LOST) if problem is None else problem
        assert self._receipt is not None
        return kept, self._receipt

    def _tried(self) -> tuple[StoredOutcome | None, BaseException | None]:
        """The outcome; or nothing, and what may be said about it."""
        try:
            try:
                return self._go_on(), None
            except BaseException as error:
                return None, self._public(error)
        except BaseException as error:  # an interrupt while the first one was handled
            return None, self._public(error)

    def _public(self, error: BaseException) -> BaseException | None:
        """What may be said of an error. Before the walk that is all of it: no row was looked at, and so it is public.

        After it, an interrupt and what a ledger of ours says are made anew; of others there is nothing to say. What the
        walk itself raised never comes here, and nothing that others have written is run.
        """
        if self._walk is not None and not self._others:
            return error
        if issubclass(type(error), KeyboardInterrupt):  # isinstance would ask the error for its class
            return KeyboardInterrupt()
        if not self._ours:
            return None
        kind = next((kind for kind in LEDGER_ERRORS if type(error) is kind), None)
        said = error.args[0] if kind is not None and error.args else None
        return kind(said) if kind is not None and type(said) is str else None

    def _go_on(self) -> StoredOutcome:
        if self._receipt is None:
            self._receipt = self._pay()  # 1. pay
        if not isinstance(self._receipt, Receipt):
            raise TypeError("the ledger gave no receipt: nothing was drawn. Its charge method must return one")
        if self._keeper is None:  # one call for a charge, and nothing to look up
            return self._walked(self._receipt)
        name = self._receipt.hash or (id(self._keeper), self._receipt)
        self._rests.clear()
        self._thread = threading.get_ident()
        try:
            first = self._first(name)
            body = self._keeper.recall(self._receipt)  # 2. the outcome of this charge, if there is one
            kept = first._kept
            if body is None:
                self._others = first is not self
                kept = self._walked(self._receipt) if first is self else kept
                body = self._keeper.settle(self._receipt, dumps(kept))
            _UNSTORED.pop(name, None)
            return kept if body is None else _read(body)
        finally:
            if self._walk is not None and _UNSTORED.get(name) is self:
                del _UNSTORED[name]  # nothing was begun
            self._thread = None
            self._rests.set()

    def _first(self, name: Hashable) -> Purchase:
        """Whoever draws from this charge here, once it rests: this one if there is no other."""
        while (first := _UNSTORED.setdefault(name, self)) is not self and first._thread is not None:
            if first._thread == threading.get_ident():
                raise LedgerError(_UNDER_WAY)
            first._rests.wait()
        return first

    def _walked(self, receipt: Receipt) -> StoredOutcome:
        walk, self._walk = self._walk, None
        if walk is not None:
            self._kept, self._interrupted = _ended(walk, receipt)  # 3. test, 4. release
            self._drawn = True
        return self._kept

    def stays_behind(self) -> bool:
        """Whether another thread is at it: in the child of a fork there is none."""
        return self._thread not in (None, threading.get_ident())


_UNSTORED: dict[Hashable, Purchase] = {}  # what was begun in this process and is not known to be stored


def _is_ours(keeper: Keeper) -> bool:
    """Whether it is a ledger of this library: what these say does not quote what they could not store."""
    from snugdp.ledger.book import Ledger
    from snugdp.ledger.view import View

    return type(keeper) is Ledger or type(keeper) is View


def _ended(walk: Callable[[Receipt], StoredOutcome], receipt: Receipt) -> tuple[StoredOutcome, bool]:
    """What a walk has come to, and whether the user interrupted it. What it raised is dropped without a look."""
    try:
        return checked(walk(receipt)), False
    except KeyboardInterrupt:
        return StoredOutcome(refused=True), True
    except BaseException:
        return StoredOutcome(refused=True), False


def checked(kept: StoredOutcome) -> StoredOutcome:
    """What a walk returned, if it may be shown."""
    if isinstance(kept.value, Secret):
        raise TypeError("the draw returned a private value: release it through noise.add, noise.argmax, ...")
    if callable(kept.value) or isinstance(kept.value, Iterator | Awaitable | AsyncIterator):
        raise TypeError("the draw returned an iterator or a function, which could draw later: return what was drawn")
    return kept


def _read(body: str) -> StoredOutcome:
    try:
        return loads(body)
    except UnreadableError:
        pass
    raise LedgerError(
        "the outcome of this charge is stored in a form that this version of snugdp cannot read: nothing was drawn. "
        "Use the version that stored it (snugdp ledger export shows which), or another key, which is charged again"
    )


def _after_fork() -> None:
    """In a child: what other threads of the parent were drawing is theirs."""
    for name, one in list(_UNSTORED.items()):
        if one.stays_behind():
            del _UNSTORED[name]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
