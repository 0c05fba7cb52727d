"""Where the rows of a ledger lie: what SQLite and PostgreSQL must both promise, and no more than that.

A store knows nothing of privacy. It keeps rows in order, lets one process at a time look and append, and says loudly
when it cannot. Which rows are legal is decided by ``state``; ``book`` puts the two together.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from snugdp.ledger.anchors.anchor import FileAnchor
from snugdp.ledger.anchors.recognition import Place
from snugdp.ledger.history.records import Row


class Transaction(Protocol):
    """One look at the rows, with everybody else kept out until it ends."""

    @property
    def unchanged(self) -> bool:
        """Whether it is known that nobody else has written since the transaction before this one, of the same store."""
        ...

    def rows(self, after: int) -> Iterator[Row]:
        """All rows with ``seq > after`` in order of ``seq``, as stored and unchecked (``after=-1``: all)."""
        ...

    def row(self, seq: int) -> Row | None:
        """The row with this number, or None."""
        ...

    def append(self, row: Row) -> None:
        """Add a row. It exists for others, and survives anything, only when the transaction has been committed."""
        ...


class Store(Protocol):
    """The rows of one ledger.

    What every store must do:

    1. ``transaction()`` is exclusive among all threads, processes and machines that use this ledger: from the moment
       it is entered (before the first row is read) until it is left, nobody else can enter it. Leaving it normally
       commits, and when the ``with`` statement ends the rows are durable (they survive a power cut): one flush per
       transaction that appended, none for one that only read. Leaving it by any exception (KeyboardInterrupt too)
       rolls back. Every failure to begin, append or commit is an ``LedgerWriteError`` that says what to do; a COMMIT
       whose fate is unknown is an ``LedgerWriteError`` too (the caller reads the truth in its next transaction).
       It waits for others for a while (about 30 s) and then raises ``LedgerWriteError``.
    2. Entering a transaction checks that this is still the same thing that was opened (same file, same database,
       same table, no trigger, rule or view in between). If not: ``TamperedLedgerError``.
    3. Anything that cannot be read or decoded is a ``TamperedLedgerError``; not being able to reach the store at all
       is an ``LedgerWriteError``. Errors are raised ``from None`` and never show a password.
    4. A connection is never used in another process than the one that made it: after a fork nothing of the parent's
       may be touched or closed by the child. (``book`` asks ``os.getpid()`` before it calls a store.)
    5. One thread at a time calls a store object: ``book`` holds a lock around it.
    """

    @property
    def address(self) -> str:
        """Where the ledger is, for people: no password."""
        ...

    @property
    def where(self) -> str:
        """What ``store_at`` needs to find the same ledger again from another process (with the data set).

        It may hold a password; a pickle holds it without (workers have it from PGPASSWORD or a password file).
        """
        ...

    @property
    def dataset(self) -> str | None:
        """The data set that the address names, if it names one."""
        ...

    @property
    def anchor(self) -> FileAnchor:
        """The anchor of this ledger: the one that was asked for, or the store's own default."""
        ...

    @property
    def guards_voids(self) -> bool:
        """Whether only the owner can write a void; where anybody who can write is an owner, it is so."""
        ...

    def place(self) -> Place:
        """Where the ledger is, whatever its address is called: which file, or which database of which server."""
        ...

    def may_hold(self, place: Place, identity: str) -> bool:
        """Whether this ledger may still be at another place, where it was seen before. In doubt it may."""
        ...

    def network(self) -> str | None:
        """The type of its file system, if locks on it may hold on one machine only."""
        ...

    def upgrade(self) -> bool:
        """Bring tables of an earlier form up to date; whether there were any."""
        ...

    def creating(self) -> AbstractContextManager[None]:
        """Held by ``book`` while it asks ``exists`` and decides to create: nobody else is in it at the same time.

        Also the place for the probe that locks work at all; raises ``LedgerWriteError`` if they do not.
        """
        ...

    def exists(self) -> bool:
        """Whether there is a ledger, in whatever condition."""
        ...

    def create(self, genesis: Row) -> None:
        """Make the ledger with its first row, durably and all at once. Raises if there is one. Inside ``creating``."""
        ...

    def connect(self) -> None:
        """Open what exists; check its schema. Raises ``TamperedLedgerError`` or ``LedgerWriteError``."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """See 1 above."""
        ...

    def tidy(self) -> None:
        """After a transaction, when no anchor is held: work of the store's own that others may have to wait for."""
        ...

    def check(self) -> None:
        """Look at everything that is stored, whatever its length; inside a transaction. ``TamperedLedgerError``."""
        ...

    def same(self) -> bool:
        """Whether the address still leads to what ``connect`` opened. Cheap, and without a transaction."""
        ...

    def release(self) -> None:
        """Before a fork: let go of whatever a child must not inherit. The next transaction connects again."""
        ...

    def close(self) -> None:
        """Let go of everything, the anchor too. Never raises."""
        ...


class Connected:
    """A store with one connection, which is closed when the store is gone."""

    _connection: Any = None
    _end: weakref.finalize[..., Any] | None = None

    def release(self) -> None:
        """Close the connection, so that no child inherits it; the next use makes another one."""
        self._connection = None
        if self._end is not None:
            self._end()


def store_at(where: str | os.PathLike[str], dataset: str | None = None, anchor: str | None = None) -> Store:
    """The store at a path or URL; nothing is opened or made yet.

    ``postgresql://user@host/db#dataset`` is a ledger in PostgreSQL (needs ``snugdp[postgres]``), everything else the
    path of an SQLite file. ``anchor``: the place of the anchor, if not the default one.
    """
    text = os.fspath(where)
    if not isinstance(text, str):
        raise TypeError("the place of a ledger is text: a path, or a URL such as postgresql://user@host/db#dataset")
    if text.startswith(("postgresql://", "postgres://")):
        from snugdp.ledger.stores.postgres.store import PostgresStore

        return PostgresStore(text, dataset, anchor)
    if "://" in text:
        raise ValueError(
            "a ledger is a path, or a URL that begins with postgresql://; other databases are not supported"
        )
    from snugdp.ledger.stores.sqlite import SQLiteStore

    return SQLiteStore(text, anchor)
