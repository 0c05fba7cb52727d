"""Is it the ledger that this user knows, and is it where it was? Asked once, when a ledger is opened.

Every user keeps an anchor for each ledger that was ever opened, named by the ledger's own identity, in a folder outside
the ledger's: whatever the ledger is called later, and wherever a copy of it turns up, the same anchor is found. The
numbers in the comments are those of book.proof.md, "Recognition".
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from snugdp.ledger.anchors.anchor import FileAnchor, Mark, reason
from snugdp.ledger.errors import LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.history.state import State

if TYPE_CHECKING:
    from snugdp.ledger.stores.store import Store

VARIABLE = "SNUGDP_STATE"
WAY_OUT = 'snugdp ledger adopt {where} --reason "..."'


class Place(NamedTuple):
    """Where a ledger is: a path, or a database of a server; and which file that was, by device and inode."""

    name: str
    file: str = ""

    def same(self, other: Place) -> bool:
        """A file that was replaced at its path is at the same place; so is the same file under another path."""
        return self.name == other.name or (self.file != "" and self.file == other.file)


def state_folder() -> str:
    """The user's folder: ``SNUGDP_STATE``, or ``snugdp`` in ``XDG_STATE_HOME`` (default: ``~/.local/state``)."""
    own = os.environ.get(VARIABLE, "")
    if own and not os.path.isabs(own):
        raise LedgerWriteError(f"{VARIABLE} must be an absolute path, or not be set")
    if own:
        return own
    home = os.environ.get("XDG_STATE_HOME", "")
    try:
        folder = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state"
    except RuntimeError:
        raise LedgerWriteError(
            f"this user has no home in which to remember ledgers: set {VARIABLE} to a folder that lasts"
        ) from None
    return str(folder / "snugdp")


class UserAnchor(FileAnchor):
    """What this user has seen of one ledger, wherever it is: the newest record, and beside it the place."""

    def __init__(self, identity: str) -> None:
        super().__init__(os.path.join(state_folder(), "anchors", f"{identity}.anchor"))
        self._places = os.path.join(os.path.dirname(self.place), f"{identity}.place")

    def create(self, mark: Mark) -> None:
        """Make the folder too, for this user only."""
        make_folder(self.place)
        super().create(mark)

    def require_writable(self) -> None:
        """As of any anchor; the folder is made where there is none."""
        make_folder(self.place)
        super().require_writable()

    def seen_at(self) -> Place | None:
        """Where the ledger was; None if that is not known."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            with open(self._places, encoding="utf-8") as file:
                held = json.load(file)
            return Place(str(held["name"]), str(held["file"]))
        return None

    def remember(self, place: Place) -> None:
        """From now on it is here."""
        fresh = f"{self._places}.{os.getpid()}.new"
        try:
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(place._asdict(), file)
            os.replace(fresh, self._places)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise LedgerWriteError(f"{self._places} could not be written: {reason(error)}") from None


def make_folder(path: str) -> None:
    """The folder of a file in this user's state, for this user only."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    except OSError as error:
        raise LedgerWriteError(
            f"the folder of {path} could not be made ({reason(error)}): set {VARIABLE} to a folder of this user's "
            "that lasts"
        ) from None


def earlier_marks(identity: str) -> Iterator[Mark]:
    """Anchors of this ledger from before they were named by identity: one for each address by which it was opened."""
    folder = state_folder()
    try:
        paths = sorted(Path(folder).glob("*.anchor"))
    except OSError as error:
        raise LedgerWriteError(
            f"{folder} could not be read ({reason(error)}): set {VARIABLE} to a folder of this user's that lasts"
        ) from None
    for path in paths:
        with contextlib.suppress(LedgerError):
            mark = FileAnchor(path).read()
            if mark.id == identity:
                yield mark


def seen_by_all(store: Store, identity: str) -> int:
    """The newest record that every anchor of a ledger has seen; 0 where one of them is missing or cannot be trusted.

    What this user has never seen is not taken from a checkpoint, whatever is remembered beside the ledger.
    """
    try:
        anchors = (UserAnchor(identity), *((store.anchor,) if store.anchor.follows else ()))
        marks = [anchor.read() for anchor in anchors]
    except LedgerError:
        return 0  # ``recognise`` says what is wrong
    return min(mark.seq if mark.id == identity else 0 for mark in marks)


def recognise(store: Store, state: State, network_allowed: bool = False) -> tuple[FileAnchor, ...]:
    """The anchors of a ledger that may be used here; what this user sees for the first time is remembered."""
    check_file_system(store, state, network_allowed)
    user, beside = UserAnchor(state.born.id), store.anchor
    seen = user.exists()
    if beside.follows or beside.exists():
        mark = beside.read()
        if mark.id != state.born.id:
            raise TamperedLedgerError(f"the anchor {beside.place} belongs to another ledger")
        if beside.follows or not seen:  # R1
            check_mark(state, mark, store.address)
    if not seen:
        for mark in earlier_marks(state.born.id):
            check_mark(state, mark, store.address)
        user.create(Mark(state.born.id, state.seq, state.head))
    check_mark(state, user.read(), store.address)  # R2
    check_place(store, state, user)  # R3
    if not beside.follows and not beside.exists():
        beside.create(Mark(state.born.id, 0, state.first))
    return (user, beside) if beside.follows else (user,)


def check_mark(state: State, mark: Mark, where: str) -> None:
    """Raise unless a record that somebody has seen is still in the history."""
    if not 0 <= mark.seq <= state.seq or state.hash_at(mark.seq) != mark.hash:
        raise TamperedLedgerError(
            f"{where} does not hold record {mark.seq} any more as it was seen before: it is an older copy, or its "
            "history was rewritten. Restore the newest copy; if that is lost, adopt this one, for the record: "
            + WAY_OUT.format(where=where)
        )


def check_place(store: Store, state: State, user: UserAnchor) -> None:
    """Raise if this user knows the ledger elsewhere, and it may still be there; else remember where it is."""
    seen, here = user.seen_at(), store.place()
    if seen == here:
        return
    moved = seen is None or seen.same(here) or not store.may_hold(seen, state.born.id)
    if not moved and not (state.adoptions and state.adoptions[-1].place == here.name):
        raise TamperedLedgerError(
            f"{store.address} is a copy: this user knows the ledger at {seen.name if seen else ''}. Use that one, or "
            "delete it if this is where it was moved to; if both must stay, adopt this one, for the record: "
            + WAY_OUT.format(where=store.address)
        )
    user.remember(here)


def check_file_system(store: Store, state: State | None, allowed: bool) -> None:
    """Raise for a file system whose locks may hold on one machine only, unless that was allowed for the record."""
    kind = store.network()
    if kind is None or allowed or (state is not None and any(one.file_system for one in state.adoptions)):
        return
    raise LedgerError(
        f"{store.address} is on a file system of type {kind}, where locks may hold on one machine only: two machines "
        "could spend the same budget. Keep the ledger on a local disk, or use PostgreSQL. If only one machine ever "
        "uses it, say so for the record: network_file_system=True, or --allow-network-file-system"
    )


def lost_marks(store: Store, state: State) -> Iterator[Mark]:
    """What this user and the anchor of the ledger remember, and what is not in this history."""
    for anchor in (store.anchor, UserAnchor(state.born.id)):
        with contextlib.suppress(LedgerError):
            mark = anchor.read()
            if mark.id != state.born.id and anchor.follows:
                raise ValueError(
                    f"the anchor {anchor.place} belongs to another ledger: move it away, or give the right anchor="
                )
            if mark.id == state.born.id and state.hash_at(mark.seq) != mark.hash:
                yield mark
