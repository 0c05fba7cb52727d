"""One process's hold on a ledger: every look and every new record goes through the steps below.

The numbers in the comments are the steps of book.proof.md.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.ledger import records
from snugdp.ledger.anchor import Mark
from snugdp.ledger.errors import ForeignProcessError, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.records import Row
from snugdp.ledger.shared import NeverCopied
from snugdp.ledger.state import Judged, State
from snugdp.ledger.store import Store, Transaction

Result = TypeVar("Result")


class New(NamedTuple):
    """A record that is to be written, and the output beside it."""

    judged: Judged
    body: str | None = None


class Handle:
    """An open store, what its records mean, and the lock that threads share."""

    def __init__(self, store: Store) -> None:
        self.store, self.state = store, State()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = self._busy = self._torn = False
        _OPEN.add(self)

    def look(self, see: Callable[[State, Transaction], Result]) -> Result:
        """What the newest state says."""
        return self.within(lambda state, rows: (see(state, rows), None))

    def within(self, decide: Callable[[State, Transaction], tuple[Result, New | None]]) -> Result:
        """One exclusive look at the newest state; ``decide`` may ask for one new record."""
        self._require_this_process()  # 1
        with self._lock, self._alone():
            self._require_this_process()  # another thread may have closed it meanwhile
            with self.store.transaction() as rows:  # 2
                self._catch_up(rows)  # 3
                mark = self._check_anchor()  # 4
                result, new = decide(self.state, rows)  # 5
                if new is not None:
                    self._append(rows, new)  # 6
            # 7: the transaction was committed and is durable
            if new is not None:
                with self._folding():
                    self.state.take(new.judged)
                self._advance_anchor(mark, "What was charged stands; nothing was drawn since")  # 8
            return result

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No step inside a step, as a signal's handler might try."""
        if self._busy:
            raise LedgerError("this ledger is in the middle of a charge of the same thread: charge afterwards")
        try:
            self._busy = True
            yield
        finally:
            self._busy = False

    def _catch_up(self, rows: Transaction) -> None:
        """Check what others have written since, and that the newest record that was seen is still there."""
        if self._torn:
            self._read_again(rows)
        state = self.state
        news = iter(rows.rows(max(state.seq - 1, -1)))
        if state.hashes:
            last = next(news, None)
            if last is None or (last.seq, last.hash) != (state.seq, state.head) or _changed(last):
                raise TamperedLedgerError(
                    f"{self.store.address} went back to an older state, or its history was rewritten"
                )
        with self._folding():
            for row in news:
                state.read(row)
        _ = state.born  # raises if there is no record at all

    @contextlib.contextmanager
    def _folding(self) -> Iterator[None]:
        """The state changes. If anything stops it in between, it is half done, and read again before it is used."""
        self._torn = True
        yield
        self._torn = False

    def _read_again(self, rows: Transaction) -> None:
        again, known = State(), self.state.hashes
        for row in rows.rows(-1):
            again.read(row)
        if again.hashes[: len(known)] != known:
            raise TamperedLedgerError(f"{self.store.address} went back to an older state, or its history was rewritten")
        self.state, self._torn = again, False

    def _check_anchor(self) -> Mark:
        mark = self.store.anchor.read()
        if mark.id != self.state.born.id:
            raise TamperedLedgerError(f"the anchor {self.store.anchor.place} belongs to another ledger")
        self.check_mark(mark.seq, mark.hash)
        self._advance_anchor(mark, "Nothing was charged")  # one that cannot be written is no place to charge
        return mark

    def check_mark(self, seq: int, seen: str) -> None:
        """Whether a record that somebody has seen is still in the history."""
        if not seen:
            raise ValueError("this receipt has no hash: it was not given by a ledger that keeps a history")
        if not 0 <= seq <= self.state.seq or self.state.hashes[seq] != seen:
            raise TamperedLedgerError(
                f"{self.store.address} does not hold record {seq} any more as it was seen before: it is an older copy, "
                "or its history was rewritten. Restore the newest copy; what was spent is not known otherwise"
            )

    def _append(self, rows: Transaction, new: New) -> None:
        rows.append(new.judged.record.row(new.body))

    def _advance_anchor(self, mark: Mark, fate: str) -> None:
        """From where it was seen to the newest record, which is durable."""
        if mark.seq == self.state.seq:
            return
        try:
            self.store.anchor.advance(Mark(mark.id, self.state.seq, self.state.head))
        except LedgerWriteError as error:
            raise LedgerWriteError(f"{error}. {fate}") from None

    def _require_this_process(self) -> None:
        if os.getpid() != self._process:
            raise ForeignProcessError(
                "this ledger was opened by another process: open it again in this process, or give its path or URL"
            )
        if self._closed:
            raise LedgerError("this ledger is closed: open it again")

    @property
    def usable(self) -> bool:
        """Whether it is open in this process and its address still leads to it."""
        return not self._closed and os.getpid() == self._process and self.store.same()

    def close(self) -> None:
        """Let go of the store; in a forked child nothing, for it is the parent's."""
        if os.getpid() == self._process:
            with self._lock:
                self._closed = True
                self.store.close()

    def hold(self) -> bool:
        """Before a fork: wait for other threads, and let go of the connection so that no child inherits it."""
        if os.getpid() != self._process:
            return False
        self._lock.acquire()
        self.store.release()
        return True

    def resume(self) -> None:
        """After a fork, in both processes."""
        self._lock.release()


def _changed(row: Row) -> bool:
    return not isinstance(row.record, str) or records.digest(row.record) != row.hash


_OPEN: weakref.WeakSet[Handle] = weakref.WeakSet()
_HELD: list[Handle] = []
_FORKING = threading.RLock()  # one thread at a time holds everything


def _before_fork() -> None:
    """A child that inherits an open SQLite connection harms the parent's locks even by closing it."""
    _FORKING.acquire()
    _HELD.extend(handle for handle in list(_OPEN) if handle.hold())


def _after_fork() -> None:
    while _HELD:
        _HELD.pop().resume()
    _FORKING.release()


def _at_exit() -> None:
    """A process that ends without closing leaves its anchors durable all the same."""
    for handle in list(_OPEN):
        if handle._process == os.getpid() and not handle._closed:
            handle.store.anchor.close()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class OpenLedger(NeverCopied):
    """A ledger that was opened, or a view of it: where it is, and whose budget it keeps."""

    _handle: Handle

    @property
    def address(self) -> str:
        """Where the ledger is; of a URL without the password."""
        return self._handle.store.address

    @property
    def label(self) -> str:
        """The public name of the data."""
        return self._handle.state.born.dataset

    @property
    def unit(self) -> str:
        """Whom it protects: "person", "teacher", or a name for a row, by default "one row"."""
        return self._handle.state.born.unit

    @property
    def budget(self) -> Budget | Cost:
        """What may be spent in all."""
        return self._handle.state.born.budget

    @property
    def neighbours(self) -> Neighbours:
        """The relation of every charge."""
        return self._handle.state.born.neighbours
