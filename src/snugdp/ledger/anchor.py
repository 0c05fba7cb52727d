"""An anchor in a file: two checksummed slots, written in turn and in place, so that it needs no flush of its own.

A power cut in the middle of a write leaves the other slot, which is one step older: legal. Every look opens the file
anew, so a file that was put in its place is seen, and nothing has to be kept from a forked child.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

from snugdp.ledger.errors import LedgerWriteError, TamperedLedgerError
from snugdp.ledger.records import digest

PATIENCE = 30.0  # seconds for which a lock is waited for
CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_SLOT = 4096  # one page each, so that no write touches both
_FORM = re.compile(r"snugdp-anchor 1 ([0-9a-f]{32}) (0|[1-9][0-9]{0,17}) ([0-9a-f]{64}) ([0-9a-f]{64})\n *", re.ASCII)


class Mark(NamedTuple):
    """What an anchor remembers: the head it has seen last, and of which ledger (genesis' random id)."""

    id: str
    seq: int
    hash: str


class FileAnchor:
    """The newest head of a ledger, in a file beside it or, better, elsewhere: a return to an older state is evident.

    It never moves back. An anchor that is behind the head is legal (a process died between COMMIT and ``advance``);
    one that is ahead of the head, missing, garbled or of another ledger is refused by ``book``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.path.abspath(os.fspath(path))

    @property
    def place(self) -> str:
        """Where it is, for messages, and as it is given to ``Ledger.open(anchor=...)``."""
        return self._path

    def exists(self) -> bool:
        """Whether there is such a file, or anything else of that name."""
        return os.path.lexists(self._path)

    def create(self, mark: Mark) -> None:
        """Make the file, durably; an anchor is never written over."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o600)
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be made: {reason(error)}") from None
        try:
            try:
                whole = os.write(handle, _slot(mark) * 2) == 2 * _SLOT
                os.fsync(handle)
            finally:
                os.close(handle)
            sync_folder(self._path)
        except OSError as error:
            self._remove()
            raise LedgerWriteError(f"the anchor {self._path} could not be made: {reason(error)}") from None
        if not whole:
            self._remove()
            raise LedgerWriteError(f"the anchor {self._path} could not be made: the disk is full")

    def withdraw(self, mark: Mark) -> None:
        """Undo ``create`` for a ledger that could not be made: only while it holds this first mark."""
        with self._open(os.O_RDWR) as handle, locked(handle, self._path):
            if mark.seq == 0 and self._newest(handle)[0] == mark:
                self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def read(self) -> Mark:
        """The newest mark; ``TamperedLedgerError`` if there is none to be trusted."""
        with self._open(os.O_RDONLY) as handle, locked(handle, self._path, shared=True):
            return self._newest(handle)[0]

    def advance(self, mark: Mark) -> None:
        """Remember a newer head; an older one changes nothing. Compare and write are one step among all processes.

        It need not survive a power cut (it would be older: legal), but it survives the death of the process.
        """
        with self._open(os.O_RDWR) as handle, locked(handle, self._path):
            newest, slot = self._newest(handle)
            if newest.id != mark.id or (newest.seq == mark.seq and newest.hash != mark.hash):
                raise TamperedLedgerError(f"the anchor {self._path} belongs to another ledger, or to another history")
            if newest.seq < mark.seq:
                self._write(handle, 1 - slot, mark)

    def close(self) -> None:
        """Make the newest mark durable. Never raises."""
        with contextlib.suppress(OSError):
            handle = os.open(self._path, os.O_RDONLY | CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    @contextlib.contextmanager
    def _open(self, flags: int) -> Iterator[int]:
        try:
            handle = os.open(self._path, flags | CLOEXEC)
        except FileNotFoundError:
            raise TamperedLedgerError(
                f"the anchor {self._path} is missing: without it an older copy of the ledger could not be told from "
                "the newest. Put it back, or give its place with anchor="
            ) from None
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be opened: {reason(error)}") from None
        try:
            yield handle
        finally:
            os.close(handle)

    def _newest(self, handle: int) -> tuple[Mark, int]:
        """The newest mark and the slot that holds it."""
        try:
            found = [(mark, slot) for slot in (0, 1) if (mark := _mark(os.pread(handle, _SLOT, slot * _SLOT)))]
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be read: {reason(error)}") from None
        if not found or len({mark.id for mark, _ in found}) > 1:
            raise TamperedLedgerError(f"the anchor {self._path} is garbled: put back the file that belongs here")
        return max(found, key=lambda pair: pair[0].seq)

    def _write(self, handle: int, slot: int, mark: Mark) -> None:
        try:
            written = os.pwrite(handle, _slot(mark), slot * _SLOT)
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be written: {reason(error)}") from None
        if written != _SLOT:
            raise LedgerWriteError(f"the anchor {self._path} could not be written: the disk is full")


def _slot(mark: Mark) -> bytes:
    text = _text(mark)
    return f"{text} {digest(text)}\n".ljust(_SLOT).encode("ascii")


def _mark(slot: bytes) -> Mark | None:
    match = _FORM.fullmatch(slot.decode("latin-1"))
    if match is None or len(slot) != _SLOT:
        return None
    mark = Mark(match[1], int(match[2]), match[3])
    return mark if digest(_text(mark)) == match[4] else None


def _text(mark: Mark) -> str:
    return f"snugdp-anchor 1 {mark.id} {mark.seq} {mark.hash}"


@contextlib.contextmanager
def locked(handle: int, place: str, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock on an open file, against all other handles on it, in this process too; gone when it is closed."""
    until = time.monotonic() + PATIENCE
    pause = 0.0001
    while not try_lock(handle, place, shared=shared):
        if time.monotonic() > until:
            raise LedgerWriteError(f"{place} has been locked by another process for {PATIENCE:g} s: try again later")
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    try:
        yield
    finally:
        _lock(handle, unlock=True)


def try_lock(handle: int, place: str, *, shared: bool = False) -> bool:
    """Whether the lock could be taken. Raises where files cannot be locked at all."""
    try:
        _lock(handle, shared=shared)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise LedgerWriteError(
            f"{place} cannot be locked ({reason(error)}): keep the ledger on a local disk, or use PostgreSQL"
        ) from None
    return True


def _lock(handle: int, *, shared: bool = False, unlock: bool = False) -> None:
    try:
        import fcntl
    except ImportError:
        raise LedgerWriteError("a ledger in a file needs a system with POSIX locks; use PostgreSQL here") from None
    if hasattr(fcntl, "F_OFD_SETLK"):  # the same kind of lock that SQLite uses, but owned by the handle
        kind = fcntl.F_UNLCK if unlock else fcntl.F_RDLCK if shared else fcntl.F_WRLCK
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("@hhqqi0q", kind, os.SEEK_SET, 0, 0, 0))
        return
    kind = fcntl.LOCK_UN if unlock else fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fcntl.flock(handle, kind | fcntl.LOCK_NB)


def sync_folder(path: str) -> None:
    """Make the name of a new file durable."""
    handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY | CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reason(error: OSError) -> str:
    """The system's words, without file names of its own."""
    return os.strerror(error.errno) if error.errno else type(error).__name__
