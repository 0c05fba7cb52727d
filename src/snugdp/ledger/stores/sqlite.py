"""The rows of a ledger in one SQLite file (write-ahead log, flushed at every commit)."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path

from snugdp.ledger.anchors.anchor import CLOEXEC, PATIENCE, FileAnchor, locked, reason, sync_folder, try_lock
from snugdp.ledger.anchors.recognition import Place
from snugdp.ledger.errors import LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.history.records import Row
from snugdp.ledger.stores.file_systems import network_file_system
from snugdp.ledger.stores.store import Connected

_TABLE = "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, record TEXT NOT NULL, body TEXT, hash TEXT NOT NULL)"
_MAX_CHECKED_RECORDS = 2000  # records: the pages of a longer ledger are checked by verify
_MIN_LOG_BYTES = 1 << 14  # bytes of a log that are written as they come
_LOG_STEP_BYTES = 1 << 16  # bytes by which room is made in it at least
_MAX_LOG_BYTES = 4_200_000  # bytes of room; a log that is longer is cut when it has been copied
_RECORDS_PER_COPY = 768  # records from one copy of the log to the next: about a thousand pages
_COPY_WAIT_SECONDS = 5  # seconds for which a copy waits for others
_COLUMNS = "SELECT seq, record, body, hash FROM ledger"
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # a message that quotes a damaged schema may be no text
_WAYS_OUT = {
    sqlite3.SQLITE_FULL: "the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "the disk could not be read or written; check it and try again",
    sqlite3.SQLITE_READONLY: "it is read-only; give this user the right to write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "a file could not be opened; give this user the right to write the file and its folder",
    sqlite3.SQLITE_PERM: "this user may not write it",
    sqlite3.SQLITE_BUSY: f"other processes have held it for {PATIENCE:g} s; try again",
    sqlite3.SQLITE_LOCKED: f"other processes have held it for {PATIENCE:g} s; try again",
    sqlite3.SQLITE_NOLFS: "the disk does not take files of this size",
    sqlite3.SQLITE_PROTOCOL: "other processes have held it for too long; try again",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
    sqlite3.SQLITE_TOOBIG: "this is more than a ledger holds in one record",
    sqlite3.SQLITE_INTERRUPT: "it was interrupted; try again",
}


class SQLiteStore(Connected):
    """One file, its log (``-wal``, ``-shm``, made by SQLite), a lock file for creation, and an anchor beside it.

    The file is never opened but by SQLite while a connection is open: closing a second handle would drop the locks.
    """

    dataset: str | None = None
    guards_voids = True

    def __init__(self, path: str, anchor: str | None = None) -> None:
        self.address = self.where = self._path = os.path.realpath(path)
        self.anchor = FileAnchor(self._path + ".anchor" if anchor is None else anchor)
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of what was opened
        self._log: tuple[int, int] | None = None
        self._length = self._room = 0  # bytes of the log as it was found, and as far as they need no room
        self._due = False  # whether the log is to be copied into the file
        self._enough = _MAX_LOG_BYTES  # bytes of the log beyond which that is due, whatever the number of records
        self._version: int | None = None  # SQLite's own, of the newest look: while it stays, nobody else has written
        self.unchanged = False
        self._cursors: list[sqlite3.Cursor] = []

    def exists(self) -> bool:
        """Whether there is such a file, or anything else of that name; what cannot be told is an error."""
        try:
            os.lstat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise LedgerWriteError(
                f"{self._path} could not be looked for ({reason(error)}): a ledger needs a folder that this user may "
                "enter and write"
            ) from None
        return True

    def place(self) -> Place:
        """The path, and which file is there."""
        found = _identity(self._path)
        return Place(self._path, "" if found is None else f"{found[0]}:{found[1]}")

    def may_hold(self, place: Place, identity: str) -> bool:
        """Whether there is a ledger of this identity at that path; if it cannot be read, there may be."""
        if not os.path.lexists(place.name):
            return False
        try:
            with contextlib.closing(_connection(place.name, "ro")) as other:
                first = other.execute(f"{_COLUMNS} WHERE seq = 0").fetchone()
            return bool(json.loads(first[1])["id"] == identity)
        except (*_ERRORS, TypeError, ValueError, KeyError):
            return True

    def network(self) -> str | None:
        """The type of its file system, if locks on it may hold on one machine only."""
        return network_file_system(self._path)

    def upgrade(self) -> bool:
        """There is one form of the table."""
        return False

    @contextlib.contextmanager
    def creating(self) -> Iterator[None]:
        """Nobody else opens or creates it meanwhile; a file system whose locks do not exclude is refused."""
        side = self._path + ".lock"
        first = second = -1
        try:
            try:
                first = os.open(side, os.O_RDWR | os.O_CREAT | CLOEXEC, 0o600)
                second = os.open(side, os.O_RDWR | CLOEXEC)
            except OSError as error:
                raise LedgerWriteError(
                    f"{side} could not be opened ({reason(error)}): a ledger needs a folder that exists and that this "
                    "user may write"
                ) from None
            with locked(first, side):
                if try_lock(second, side):
                    raise LedgerWriteError(
                        f"{side} was locked twice: this file system has no locks. Keep the ledger on a local disk, or "
                        "use PostgreSQL"
                    )
                yield
        finally:
            for handle in (second, first):
                if handle >= 0:
                    os.close(handle)

    def create(self, genesis: Row) -> None:
        """Write a whole file under another name and give it its own at once, so that half a ledger never exists."""
        fresh = self._path + ".new"
        self._refuse_leftovers()
        try:
            self._write_fresh(fresh, genesis)
            if self.exists():
                raise LedgerWriteError(f"{self._path} was made by somebody else meanwhile: open it instead")
            os.rename(fresh, self._path)
            sync_folder(self._path)
        except _ERRORS as error:
            raise self._failure(error, "nothing was made") from None
        except OSError as error:
            raise LedgerWriteError(f"the ledger {self._path} could not be made: {reason(error)}") from None
        finally:
            _remove(fresh)

    def _refuse_leftovers(self) -> None:
        """The log of an earlier ledger of this name would be played into the new one."""
        for log in (self._path + "-wal", self._path + "-journal"):
            if os.path.lexists(log):
                raise LedgerWriteError(
                    f"{self._path} is missing, but its log {log} is there: put the ledger back beside its log. If "
                    "nothing of it is needed, delete the log"
                )

    def _write_fresh(self, fresh: str, genesis: Row) -> None:
        _remove(fresh)
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o600))
        with contextlib.closing(_connection(fresh)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE)
            connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", genesis)
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        handle = os.open(fresh, os.O_RDONLY | CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def connect(self) -> None:
        """Open the file if it is what it was, and check that it holds one table and nothing else."""
        self.release()
        self._identify()
        connection = None
        try:
            connection = _connection(self._path)
            self._inspect(connection)
        except _ERRORS as error:
            _let_go(connection, os.getpid())
            raise self._failure(error, "nothing was charged") from None
        except BaseException:
            _let_go(connection, os.getpid())
            raise
        log = _status(self._path + "-wal")
        self._log, self._room = (None, 0) if log is None else (_file(log), max(_MIN_LOG_BYTES, log.st_size))
        self._connection, self._version = connection, None
        self._end = weakref.finalize(self, _let_go, connection, os.getpid())

    def _inspect(self, connection: sqlite3.Connection) -> None:
        self._check_schema(connection)
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            raise TamperedLedgerError(f"{self._path} is not a ledger of snugdp, or its tables were changed")
        longest = connection.execute("SELECT max(seq) FROM ledger").fetchone()[0]
        if not isinstance(longest, int) or longest < _MAX_CHECKED_RECORDS:
            self._check_pages(connection)

    def check(self) -> None:
        """Every page; for a long ledger only now, because opening it must not take longer and longer."""
        self._check_pages(self._sql)

    def _check_pages(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise TamperedLedgerError(f"{self._path} is damaged: restore the newest copy, and its anchor")

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        """One table and nothing else: a trigger could swallow a charge."""
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        if schema != [("table", "ledger", "ledger", _TABLE)]:
            raise TamperedLedgerError(
                f"{self._path} is not a ledger of snugdp, or its tables were changed: it has one table, no trigger"
            )

    def same(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return self._file is not None and _identity(self._path) == self._file

    def _identify(self) -> None:
        found = _status(self._path)
        if found is None and self._file is None:
            raise LedgerWriteError(f"there is no ledger at {self._path}")
        if found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            raise LedgerError(
                f"the ledger {self._path} has several names (hard links), each with a log of its own: delete the others"
            )
        own = None if found is None else _file(found)
        if self._file is not None and own != self._file:
            raise TamperedLedgerError(
                f"{self._path} is not the file that was opened: it was moved, deleted or replaced. Open it again"
            )
        self._file = own

    def transaction(self) -> SQLiteStore:
        """Everybody else waits until it is left; see ``Store``."""
        return self

    def __enter__(self) -> SQLiteStore:
        try:
            self._begin()
        except BaseException as error:
            self._undo(error)
            raise
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        while self._cursors:  # one that was not read to its end would go on seeing what is old by then
            with contextlib.suppress(sqlite3.Error):
                self._cursors.pop().close()
        if error is None:
            self._commit()
        else:
            self._undo(error)

    def _undo(self, error: BaseException) -> None:
        self._rollback()
        if isinstance(error, _ERRORS):
            raise self._failure(error, "nothing was written") from None

    def _begin(self) -> None:
        if self._connection is None:
            self.connect()
        self._identify()
        try:
            self._sql.execute("BEGIN IMMEDIATE")
        except _ERRORS as error:
            self.release()
            raise self._failure(error, "nothing was written") from None
        log = _status(self._path + "-wal")
        if log is None or _file(log) != self._log:
            self._rollback()
            self.release()
            raise TamperedLedgerError(f"the log {self._path}-wal was deleted or replaced while the ledger was open")
        if log.st_size < self._length:  # somebody has cut it
            self._room, self._enough = _MIN_LOG_BYTES, _MAX_LOG_BYTES
        self._length = log.st_size
        version = self._sql.execute("PRAGMA data_version").fetchone()[0]
        self.unchanged = version == self._version
        if not self.unchanged:
            self._check_schema(self._sql)  # nobody can change it from here to the commit
        self._version = version

    def rows(self, after: int) -> Iterator[Row]:
        """All rows after this one, in order."""
        cursor = self._sql.execute(f"{_COLUMNS} WHERE seq > ? ORDER BY seq", (after,))
        self._cursors.append(cursor)
        return map(Row._make, cursor)

    def row(self, seq: int) -> Row | None:
        """One row."""
        found = self._sql.execute(f"{_COLUMNS} WHERE seq = ?", (seq,)).fetchone()
        return None if found is None else Row._make(found)

    def append(self, row: Row) -> None:
        """Add a row, and see that it is there: a receipt is given for what can be read, not for what was sent."""
        if self._length > self._room:
            self._make_room()
        added = self._sql.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", row).rowcount
        if added != 1 or self.row(row.seq) != row:
            raise TamperedLedgerError(f"{self._path} did not take record {row.seq} as it was given. Nothing was spent")
        self._due = row.seq % _RECORDS_PER_COPY == 0 or self._length > self._enough

    def tidy(self) -> None:
        """Copy the log into the file if that is due, so that the next commit begins it again.

        Never by itself, as SQLite does after a commit: up to version 3.51.2 it may forget a transaction that another
        process commits while the log is copied a second time ("the WAL-reset bug"). A full copy keeps writers out.
        """
        if not self._due:
            return
        self._due, long = False, self._length > _MAX_LOG_BYTES
        self._enough = self._length + _MAX_LOG_BYTES if long else _MAX_LOG_BYTES
        with contextlib.suppress(*_ERRORS, LedgerWriteError):
            self._sql.execute(f"PRAGMA busy_timeout={1000 * _COPY_WAIT_SECONDS}")
            try:
                self._sql.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if long else 'FULL'})").fetchall()
            finally:
                self._sql.execute(f"PRAGMA busy_timeout={int(1000 * PATIENCE)}")

    def _make_room(self) -> None:
        """Zeros behind the log: a commit that overwrites takes half the time of one for which the file has to grow.

        To SQLite they are what an older log has left behind: a frame counts only with its checksum. They are appended,
        wherever the log ends by then, so they never lie over a frame. SQLite keeps no locks on this file that closing
        it could drop. What cannot be done here is left to the commit.
        """
        self._room = max(self._length, min(self._length + max(self._length, _LOG_STEP_BYTES), _MAX_LOG_BYTES))
        with contextlib.suppress(OSError):
            handle = os.open(self._path + "-wal", os.O_WRONLY | os.O_APPEND | CLOEXEC)
            try:
                found = os.fstat(handle)
                if _file(found) == self._log and found.st_size == self._length < self._room:
                    os.write(handle, bytes(self._room - self._length))
            finally:
                os.close(handle)

    def _commit(self) -> None:
        """Durable when it returns: SQLite flushes the log (synchronous=FULL)."""
        try:
            self._sql.execute("COMMIT")
        except _ERRORS as error:
            self._rollback()
            self.release()
            raise self._failure(error, "nothing was released; look at the ledger before you try again") from None
        except BaseException:
            self._rollback()
            raise

    def _rollback(self) -> None:
        with contextlib.suppress(sqlite3.Error, LedgerWriteError):
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")

    @property
    def _sql(self) -> sqlite3.Connection:
        if self._connection is None:
            raise LedgerWriteError(f"{self._path} was closed in the middle of a charge: nothing was written")
        return self._connection

    def close(self) -> None:
        """Close everything."""
        self.release()

    def _failure(self, error: Exception, fate: str) -> TamperedLedgerError | LedgerWriteError:
        code = getattr(error, "sqlite_errorcode", None)
        way_out = None if code is None else _WAYS_OUT.get(code & 0xFF)
        if way_out is None:
            return TamperedLedgerError(
                f"{self._path} is damaged, or is not a ledger: restore the newest copy, and its anchor"
            )
        return LedgerWriteError(f"the ledger {self._path} could not be used, {fate}: {way_out}")


def _connection(path: str, mode: str = "rw") -> sqlite3.Connection:
    connection = sqlite3.connect(
        Path(path).as_uri() + f"?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        for setting in ("synchronous=FULL", "wal_autocheckpoint=0", "trusted_schema=OFF", "cell_size_check=ON"):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _remove(fresh: str) -> None:
    """What an unfinished creation left behind."""
    for leftover in (fresh, fresh + "-wal", fresh + "-shm", fresh + "-journal"):
        with contextlib.suppress(OSError):
            os.unlink(leftover)


def _let_go(connection: sqlite3.Connection | None, process: int) -> None:
    """Close a connection, but only in the process that made it."""
    if connection is not None and os.getpid() == process:
        with contextlib.suppress(sqlite3.Error):
            connection.close()


def _identity(path: str) -> tuple[int, int] | None:
    found = _status(path)
    return None if found is None else _file(found)


def _file(found: os.stat_result) -> tuple[int, int]:
    """Which file it is: device and inode."""
    return found.st_dev, found.st_ino


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
