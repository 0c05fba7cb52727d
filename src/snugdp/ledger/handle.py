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
from functools import partial
from typing import NamedTuple, TypeVar

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.ledger.anchors.anchor import FileAnchor, Mark, OpenAnchor
from snugdp.ledger.anchors.recognition import (
    UserAnchor,
    check_file_system,
    check_mark,
    lost_marks,
    recognise,
    seen_by_all,
)
from snugdp.ledger.composition.filter import Composition
from snugdp.ledger.errors import (
    BudgetExceededError,
    ForeignProcessError,
    LedgerError,
    LedgerWriteError,
    TamperedLedgerError,
)
from snugdp.ledger.history import records
from snugdp.ledger.history.archive import History
from snugdp.ledger.history.records import Row
from snugdp.ledger.history.state import EVERY, Charge, CheckpointDueError, Judged, State, VoidedStartError
from snugdp.ledger.shared import NeverCopied
from snugdp.ledger.stores.store import Store, Transaction
from snugdp.numerics.printed import printed_down

Result = TypeVar("Result")


class New(NamedTuple):
    """A record that is to be written, and the output beside it."""

    judged: Judged
    body: str | None = None


class Handle:
    """An open store, what its records mean, and the lock that threads share."""

    def __init__(self, store: Store, network_allowed: bool = False) -> None:
        self.store = store
        self._begin_with(State())
        self._network_allowed = network_allowed
        self._anchors: tuple[FileAnchor, ...] | None = None  # from the first look on
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = self._busy = self._torn = False
        self._current = False  # whether memory holds all that this process has seen or written
        self._seen = (-1, "")  # the newest record that was ever seen here
        _OPEN.add(self)

    def look(self, see: Callable[[State, Transaction], Result]) -> Result:
        """What the newest state says."""
        return self.within(lambda state, rows: (see(state, rows), None))

    def within(self, decide: Callable[[State, Transaction], tuple[Result, New | None]], writes: bool = False) -> Result:
        """One exclusive look at the newest state; ``decide`` may ask for one new record.

        ``writes``: whether it mostly does. Then anchors are locked before they are read, and read once.
        """
        self._require_this_process()  # 1
        with self._lock, self._alone():
            self._require_this_process()  # another thread may have closed it meanwhile
            while True:
                try:
                    return self._passed(decide, writes)
                except CheckpointDueError:
                    self._passed(_checkpoint)  # a record of its own, and then again

    def _passed(
        self, decide: Callable[[State, Transaction], tuple[Result, New | None]], writes: bool = False
    ) -> Result:
        anchors: list[OpenAnchor] = []
        try:
            with self.store.transaction() as rows:  # 2
                self._catch_up(rows)  # 3
                try:
                    self._check_anchors(anchors, writes)  # 4
                    result, new = decide(self.state, rows)  # 5
                    if new is not None:
                        self._hold(anchors)
                except TamperedLedgerError:
                    rows.row(0)  # raises if the connection is gone, and its lock with it: that is no forgery
                    raise
                if new is not None:
                    self._append(rows, new)  # 6
            # 7: the transaction was committed and is durable
            if new is not None:
                self._torn = True  # until it is folded in: if anything stops it in between, it is read again
                self.state.take(new.judged)
                self._torn = False
                self._seen = (self.state.seq, self.state.head)
                self._advance(anchors, "What was charged stands; nothing was drawn since")  # 8
            self._current = True
            return result
        finally:
            for anchor in anchors:
                anchor.close()
            self.store.tidy()  # nobody waits for this process any more

    def adopt(self, by: str, reason: str, lost: Callable[[State], Charge | None]) -> None:
        """Say that this copy is the ledger from now on: in its history first, then in every anchor.

        ``lost``: the charge for what was released between, and is missing here.
        """
        self._require_this_process()
        with self._lock, self._alone():
            mended = self.store.upgrade()
            with self.store.transaction() as rows:
                self._catch_up(rows, from_first=True)
                self._torn = True  # what is written here is folded in before it is durable: it is read again
                self._adoption(by, reason, mended, lost(self.state), rows)
            mark = Mark(self.state.born.id, self.state.seq, self.state.head)
            for anchor in (user := UserAnchor(mark.id), self.store.anchor):
                anchor.reset(mark)
            user.remember(self.store.place())

    def void(self, by: str, reason: str, lost: Callable[[State], Charge | None]) -> None:
        """Say that the rows at the end of the history that are no legal records count for nothing.

        ``lost``: the charge for what may have been released by them, if a later version may have written them.
        """
        self._require_this_process()
        anchors: list[OpenAnchor] = []
        with self._lock, self._alone():
            self.store.upgrade()
            try:
                with self.store.transaction() as rows:
                    self._catch_up(rows, from_first=True, voiding=True)
                    charge = self._voidable(lost(self.state))
                    self._check_anchors(anchors)
                    self._hold(anchors)
                    self._torn = True  # what is written here is folded in before it is durable: it is read again
                    self._write(rows, lambda: self._voided(by, reason))
                    self._charge_lost(rows, charge)
                self._advance(anchors, "The records are void")
            finally:
                for anchor in anchors:
                    anchor.close()

    def _voidable(self, charge: Charge | None) -> Charge | None:
        """Raises if there is nothing to void, or if somebody may have charged by it and nobody says how much."""
        illegal, where = self.state.illegal, self.store.address
        if not illegal:
            raise ValueError(f"there is nothing to void: every record of {where} is legal")
        newer = [one.row.seq for one in illegal if records.may_be_newer(one.row)]
        lost = [one.row.seq for one in illegal if records.lacks_its_output(one.row)]
        after = [one.row.seq for one in illegal[1:] if records.is_readable(one.row)]
        if charge is None and (newer or lost or after):
            if newer:
                doubt = (
                    f"record {newer[0]} of {where} may be of a newer version of snugdp, to which it is a charge: "
                    "upgrade, and open the ledger"
                )
            elif lost:
                doubt = (
                    f"record {lost[0]} of {where} is an outcome whose output was changed or lost: restore it from the "
                    "newest backup. Once it is void its release may be drawn again, so the first one has to be paid for"
                )
            else:
                doubt = (
                    f"record {after[0]} of {where} has a legal form: somebody may have gone on from what is none here"
                )
            raise ValueError(
                f"{doubt}. If not, say what may have been spent (lost_epsilon=, lost_delta=, or --lost-epsilon, "
                f"--lost-delta; 0 if you know that all was written by hand). {_unknown(self.state)}"
            )
        return None if charge is None or charge.cost == Cost(neighbours=charge.cost.neighbours) else charge

    def _voided(self, by: str, reason: str) -> Judged:
        return self.state.draft("void", {"by": by, "reason": reason, **self.state.put_aside()}, records.stamp())

    def _adoption(self, by: str, reason: str, mended: bool, charge: Charge | None, rows: Transaction) -> None:
        """Write it down, and then what was lost as a charge. Raises if there is nothing to adopt."""
        state, store = self.state, self.store
        check_file_system(store, state, self._network_allowed)
        for anchor in (UserAnchor(state.born.id), store.anchor):
            anchor.require_writable()
        lost = sorted({(mark.seq, mark.hash) for mark in lost_marks(store, state)})
        if lost and charge is None:
            raise ValueError(
                f"record {lost[-1][0]} of {store.address} was seen before and is not in this copy, which ends with "
                f"record {state.seq}: say what was spent on the records that are lost (lost_epsilon=, lost_delta=, or "
                f"--lost-epsilon, --lost-delta), and it is charged again. {_unknown(state)}"
            )
        try:
            recognise(store, state)
        except LedgerError:
            mended = True
        if not mended:
            raise ValueError(f"there is nothing to adopt: {store.address} is whole, and where it was. Open it")
        self._write(rows, lambda: self._adopted(by, reason, lost))
        self._charge_lost(rows, charge)

    def _charge_lost(self, rows: Transaction, charge: Charge | None) -> None:
        """Charge what was spent on records that are lost."""
        if charge is None:
            return
        try:
            self._write(rows, lambda: self.state.charged(charge, records.stamp()))
        except BudgetExceededError:
            raise BudgetExceededError(
                "the lost records cannot have spent more than is left, as each was within the budget. "
                f"{_unknown(self.state)}. Nothing was changed"
            ) from None

    def _write(self, rows: Transaction, draft: Callable[[], Judged]) -> None:
        """Append one of several records of a transaction, after the checkpoint where one is due."""
        for each in (partial(_drafted_checkpoint, self.state), draft) if self.state.due else (draft,):
            judged = each()
            self._append(rows, New(judged))
            self.state.take(judged)

    def _adopted(self, by: str, reason: str, lost: list[tuple[int, str]]) -> Judged:
        fields = {"by": by, "reason": reason, "place": self.store.place().name, "file_system": self.store.network()}
        return self.state.draft("adopt", {**fields, "lost": [list(mark) for mark in lost]}, records.stamp())

    def record_file_system(self, by: str) -> None:
        """Write down, once, that a file system of a network was allowed."""

        def decide(state: State, _: Transaction) -> tuple[None, New | None]:
            if self.store.network() is None or any(one.file_system for one in state.adoptions):
                return None, None
            return None, New(self._adopted(by, "a network's file system was allowed", []))

        self.within(decide)

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

    def _catch_up(self, rows: Transaction, from_first: bool = False, voiding: bool = False) -> None:
        """Check what others have written since, and that the newest record that was seen is still there."""
        current, self._current = self._current, False
        if current and rows.unchanged and not from_first:
            self._archive.within(rows)
            return
        if from_first:
            self._begin_with(State())
        elif self._torn or self.state.genesis is None:
            self._start(rows)
        self._archive.within(rows)
        state = self.state
        news = iter(rows.rows(max(state.seq - 1, -1)))
        if state.seq >= 0:
            last = next(news, None)
            if last is None or (last.seq, last.hash) != (state.seq, state.head) or _changed(last):
                raise self._rewritten()
        self._torn = True
        try:
            state.read_all(news)
        except VoidedStartError:
            self._catch_up(rows, from_first=True, voiding=voiding)
            return
        if not voiding:
            state.require_legal(self.store.address)
        if state.voids and not self.store.guards_voids:
            raise TamperedLedgerError(
                f"records of {self.store.address} are void, but its tables are of an earlier form, in which any member "
                f'can write that: let their owner run snugdp ledger adopt {self.store.address} --reason "..."'
            )
        _ = state.born  # raises if there is no record at all
        seen, head = self._seen
        if seen > state.seq or (seen >= 0 and state.hash_at(seen) != head):
            raise self._rewritten()
        self._seen = (state.seq, state.head)
        self._torn = False

    def _start(self, rows: Transaction) -> None:
        """From the newest checkpoint that every anchor has seen, or from the first record."""
        self._begin_with(State())
        genesis, first = rows.row(0), State()
        if genesis is None:
            return  # what is missing is noticed when all is read
        first.read(genesis)
        seen = seen_by_all(self.store, first.born.id)
        for seq in range(seen - seen % EVERY, 0, -EVERY):
            row = rows.row(seq)
            if row is None:
                break
            with contextlib.suppress(TamperedLedgerError):  # what only looks like a checkpoint may be void
                self._begin_with(State.resumed(genesis, row))
                break

    def _begin_with(self, state: State) -> None:
        """Memory as it is here, and nothing of what was learnt of the records before it."""
        self.state, self._archive = state, History()
        state.archive = self._archive

    def _rewritten(self) -> TamperedLedgerError:
        return TamperedLedgerError(f"{self.store.address} went back to an older state, or its history was rewritten")

    def _check_anchors(self, opened: list[OpenAnchor], hold: bool = False) -> None:
        """Open them, into this list: whoever gave it closes them."""
        if self._anchors is None:
            self._anchors = recognise(self.store, self.state, self._network_allowed)
        try:
            for anchor in self._anchors:
                opened.append(anchor.open(hold))
        except LedgerWriteError as error:
            raise LedgerWriteError(f"{error}. Nothing was charged") from None
        for anchor, each in zip(self._anchors, opened, strict=True):
            if each.mark.id != self.state.born.id:
                raise TamperedLedgerError(f"the anchor {anchor.place} belongs to another ledger")
            check_mark(self.state, each.mark, self.store.address)
        self._advance(opened, "Nothing was charged")  # one that cannot be written is no place to charge

    def _hold(self, anchors: list[OpenAnchor]) -> None:
        """Nobody moves them until this pass is over, and they can be moved: known before anything is charged."""
        try:
            for anchor in anchors:
                check_mark(self.state, anchor.hold(), self.store.address)
        except LedgerWriteError as error:
            raise LedgerWriteError(f"{error}. Nothing was charged") from None

    def check_mark(self, seq: int, seen: str) -> None:
        """Whether a record that somebody has seen is still in the history."""
        if not seen:
            raise ValueError("this receipt has no hash: it was not given by a ledger that keeps a history")
        check_mark(self.state, Mark(self.state.born.id, seq, seen), self.store.address)

    def _append(self, rows: Transaction, new: New) -> None:
        rows.append(new.judged.record.row(new.body))

    def _advance(self, anchors: list[OpenAnchor], fate: str) -> None:
        """From where they were seen to the newest record, which is durable."""
        state = self.state
        try:
            for anchor in anchors:
                if anchor.mark.seq != state.seq:
                    anchor.advance(Mark(anchor.mark.id, state.seq, state.head))
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
                self.flush()
                self.store.close()

    @property
    def anchored_in(self) -> str:
        """The place of the ledger's own anchor; of one without, that of this user's."""
        return (self._anchors or (self.store.anchor,))[-1].place

    @property
    def anchored(self) -> Mark:
        """What is remembered there."""
        return (self._anchors or (self.store.anchor,))[-1].read()

    def flush(self) -> None:
        """Make the anchors durable. Never raises."""
        for anchor in self._anchors or ():
            anchor.close()

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


def _checkpoint(state: State, _: Transaction) -> tuple[None, New | None]:
    """A checkpoint, unless another process has written it meanwhile."""
    return None, New(_drafted_checkpoint(state)) if state.due else None


def _unknown(state: State) -> str:
    """What to say of a loss that nobody knows."""
    epsilon, delta = map(printed_down, state.remaining.together)
    return f"What nobody knows is all that is left: epsilon {epsilon} and delta {delta}"


def _drafted_checkpoint(state: State) -> Judged:
    return state.draft("checkpoint", state.summary(), records.stamp())


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
            handle.flush()


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

    @property
    def composition(self) -> Composition:
        """How its releases add up."""
        return self._handle.state.born.composition
