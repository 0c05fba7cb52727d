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
from functools import lru_cache
from typing import NamedTuple

from snugdp.ledger.errors import LedgerWriteError, TamperedLedgerError
from snugdp.ledger.history.records import digest

try:
    import fcntl
except ImportError:  # no POSIX locks: refused when one is asked for
    fcntl = None  # type: ignore[assignment]

PATIENCE = 30.0  # seconds for which a lock is waited for
CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_SLOT = 4096  # one page each, so that no write touches both
_FORM = re.compile(r"snugdp-anchor 1 ([0-9a-f]{32}) (0|[1-9][0-9]{0,17}) ([0-9a-f]{64}) ([0-9a-f]{64})", re.ASCII)


class Mark(NamedTuple):
    """What an anchor remembers: the head it has seen last, and of which ledger (genesis' random id)."""

    id: str
    seq: int
    hash: str


class AnchorContent(NamedTuple):
    """What was read of an anchor: the same bytes say the same again."""

    content: bytes
    mark: Mark
    slot: int  # the one that holds it


class FileAnchor:
    """The newest head of a ledger, in a file beside it or, better, elsewhere: a return to an older state is evident.

    It never moves back, unless a copy is adopted (``reset``). An anchor that is behind the head is legal (a process
    died between COMMIT and ``advance``); one that is ahead of the head, missing, garbled or of another ledger is
    refused by ``handle``.
    """

    follows = True  # it is moved with every record; an index of addresses is not

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.path.abspath(os.fspath(path))
        self.seen: AnchorContent | None = None

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
        with self.open() as opened, locked(opened.handle, self._path):
            if mark.seq == 0 and opened.again() == mark:
                self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def reset(self, mark: Mark) -> None:
        """Forget what it held and remember this, durably: for a copy that somebody has adopted, and for no other."""
        if not self.exists():
            self.create(mark)
            return
        try:
            handle = os.open(self._path, os.O_RDWR | CLOEXEC)
            try:
                with locked(handle, self._path):
                    if os.pwrite(handle, _slot(mark) * 2, 0) != 2 * _SLOT:
                        raise OSError(errno.ENOSPC, "")
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be written: {reason(error)}") from None

    def require_writable(self) -> None:
        """Raise where ``reset`` would fail, as far as that can be known."""
        place = self._path if self.exists() else os.path.dirname(self._path)
        if not os.access(place, os.W_OK):
            raise LedgerWriteError(f"the anchor {self._path} cannot be written. Nothing was changed")

    def read(self) -> Mark:
        """The newest mark; ``TamperedLedgerError`` if there is none to be trusted."""
        with self.open() as opened:
            return opened.mark

    def advance(self, mark: Mark) -> None:
        """Remember a newer head; see ``OpenAnchor.advance``."""
        with self.open() as opened:
            opened.advance(mark)

    def close(self) -> None:
        """Make the newest mark durable. Never raises."""
        with contextlib.suppress(OSError):
            handle = os.open(self._path, os.O_RDONLY | CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def open(self, hold: bool = False) -> OpenAnchor:
        """Read it, and know whether it can be written; the file that has this name now.

        ``hold``: keep everybody else out before it is read, if it can be written.
        """
        try:
            try:
                handle, refusal = os.open(self._path, os.O_RDWR | CLOEXEC), ""
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                handle, refusal = os.open(self._path, os.O_RDONLY | CLOEXEC), reason(error)
        except FileNotFoundError:
            raise TamperedLedgerError(
                f"the anchor {self._path} is missing: without it an older copy of the ledger could not be told from "
                "the newest. Put it back, give its place with anchor=, or say that this is the newest copy: "
                "snugdp ledger adopt"
            ) from None
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be opened: {reason(error)}") from None
        try:
            return OpenAnchor(self, handle, refusal, hold and not refusal)
        except BaseException:
            os.close(handle)
            raise


class OpenAnchor:
    """An anchor for the time of one look: what it holds and whether it takes more is known before anything is charged.

    It is read without a lock, unless somebody is going to write. A slot that is being written meanwhile fails its
    checksum and the other one is older, which is legal; only where a slot is invalid it is read again under the lock.
    """

    def __init__(self, anchor: FileAnchor, handle: int, refusal: str, hold: bool) -> None:
        self._anchor, self._path, self.handle, self._refusal = anchor, anchor.place, handle, refusal
        if hold:
            wait_for_lock(handle, self._path)
        self._locked = hold
        content, before = self._read(), anchor.seen
        found = before if before is not None and before.content == content else _newest(content)
        if found is None and hold:
            found = self._parsed()
        elif found is None:
            with locked(handle, self._path, shared=True):
                found = self._parsed()
        self.seen = found

    @property
    def mark(self) -> Mark:
        """The newest mark that was read or written."""
        return self.seen.mark

    def again(self) -> Mark:
        """The newest mark by now. The lock is held."""
        if self._read() != self.seen.content:
            self.seen = self._parsed()
        return self.mark

    def hold(self) -> Mark:
        """Keep everybody else out until it is closed, and read it again. Raises where a charge would find out too late:
        an anchor that cannot be written, or that somebody does not let go.
        """
        if self._locked:
            return self.mark  # as it was read under the lock
        if self._refusal:
            raise LedgerWriteError(f"the anchor {self._path} could not be opened: {self._refusal}")
        wait_for_lock(self.handle, self._path)
        self._locked = True
        return self.again()

    def advance(self, mark: Mark) -> None:
        """Remember a newer head; an older one changes nothing. Compare and write are one step among all processes.

        It need not survive a power cut (it would be older: legal), but it survives the death of the process.
        """
        newest = self.hold()
        if newest.id != mark.id or (newest.seq == mark.seq and newest.hash != mark.hash):
            raise TamperedLedgerError(f"the anchor {self._path} belongs to another ledger, or to another history")
        if newest.seq < mark.seq:
            self._write(mark)

    def _write(self, mark: Mark) -> None:
        slot, content = 1 - self.seen.slot, _slot(mark)
        try:
            written = os.pwrite(self.handle, content, slot * _SLOT)
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be written: {reason(error)}") from None
        if written != _SLOT:
            raise LedgerWriteError(f"the anchor {self._path} could not be written: the disk is full")
        halves = [self.seen.content[:_SLOT], self.seen.content[_SLOT:]]
        halves[slot] = content
        self.seen = AnchorContent(b"".join(halves), mark, slot)

    def _read(self) -> bytes:
        try:
            return os.pread(self.handle, 2 * _SLOT, 0)
        except OSError as error:
            raise LedgerWriteError(f"the anchor {self._path} could not be read: {reason(error)}") from None

    def _parsed(self) -> AnchorContent:
        """The newest mark and the slot that holds it; one slot is enough."""
        content = self._read()
        found = [(mark, slot) for slot in (0, 1) if (mark := _mark(content[slot * _SLOT : (slot + 1) * _SLOT]))]
        if not found or len({mark.id for mark, _ in found}) > 1:
            raise TamperedLedgerError(
                f"the anchor {self._path} is garbled: put back the file that belongs here, or say that this is the "
                "newest copy of the ledger: snugdp ledger adopt"
            )
        return AnchorContent(content, *max(found, key=lambda pair: pair[0].seq))

    def close(self) -> None:
        """Let go of the file and of its lock."""
        self._anchor.seen = self.seen
        try:
            if self._locked:
                _lock(self.handle, unlock=True)
        finally:
            os.close(self.handle)

    def __enter__(self) -> OpenAnchor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _newest(content: bytes) -> AnchorContent | None:
    """The newer of two valid slots of one ledger; None if they are not."""
    first, second = _mark(content[:_SLOT]), _mark(content[_SLOT:])
    if first is None or second is None or first.id != second.id:
        return None
    return AnchorContent(content, first, 0) if first.seq >= second.seq else AnchorContent(content, second, 1)


@lru_cache(maxsize=4)  # the same for every anchor of a ledger
def _slot(mark: Mark) -> bytes:
    text = _text(mark)
    return f"{text} {digest(text)}\n".ljust(_SLOT).encode("ascii")


def _mark(slot: bytes) -> Mark | None:
    line, _, rest = slot.partition(b"\n")
    match = _FORM.fullmatch(line.decode("latin-1"))
    if match is None or len(slot) != _SLOT or rest.strip(b" "):
        return None
    mark = Mark(match[1], int(match[2]), match[3])
    return mark if digest(_text(mark)) == match[4] else None


def _text(mark: Mark) -> str:
    return f"snugdp-anchor 1 {mark.id} {mark.seq} {mark.hash}"


@contextlib.contextmanager
def locked(handle: int, place: str, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock on an open file, against all other handles on it, in this process too; gone when it is closed."""
    wait_for_lock(handle, place, shared=shared)
    try:
        yield
    finally:
        _lock(handle, unlock=True)


def wait_for_lock(handle: int, place: str, *, shared: bool = False) -> None:
    """Take the lock as soon as nobody else has it; ``LedgerWriteError`` if that is not soon."""
    if try_lock(handle, place, shared=shared):
        return
    until = time.monotonic() + PATIENCE
    pause = 0.0001
    while not try_lock(handle, place, shared=shared):
        if time.monotonic() > until:
            raise LedgerWriteError(f"{place} has been locked by another process for {PATIENCE:g} s: try again later")
        time.sleep(pause)
        pause = min(2 * pause, 0.01)


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
    if fcntl is None:
        raise LedgerWriteError("a ledger in a file needs a system with POSIX locks; use PostgreSQL here")
    if hasattr(fcntl, "F_OFD_SETLK"):  # the same kind of lock that SQLite uses, but owned by the handle
        kind = fcntl.F_UNLCK if unlock else fcntl.F_RDLCK if shared else fcntl.F_WRLCK
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _whole_file(kind))
        return
    kind = fcntl.LOCK_UN if unlock else fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fcntl.flock(handle, kind | fcntl.LOCK_NB)


@lru_cache
def _whole_file(kind: int) -> bytes:
    return struct.pack("@hhqqi0q", kind, os.SEEK_SET, 0, 0, 0)


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
