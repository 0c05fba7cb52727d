"""A ledger in PostgreSQL, for a team: several in one database, told apart by the data set.

Tables ``snugdp.entry`` (the rows) and ``snugdp.head`` (the newest row of each ledger, moved in the same transaction: a
deleted tail is seen by everybody). Triggers forbid to change or delete, against accidents. Each machine keeps an anchor
in ``$XDG_STATE_HOME/snugdp`` (default ``~/.local/state/snugdp``); a machine that has never seen the ledger trusts what
it finds and remembers it from then on. For the first time as well, give ``anchor=`` a file that came another way.

Who creates the first ledger owns the tables, and lets others in::

    GRANT USAGE ON SCHEMA snugdp TO team;
    GRANT SELECT, INSERT ON snugdp.entry, snugdp.head TO team;
    GRANT UPDATE ON snugdp.head TO team;

Connect to the server itself, or through a pooler that gives each session a connection of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections.abc import Iterator
from typing import Any

from snugdp.ledger.anchor import FileAnchor, reason
from snugdp.ledger.errors import ForeignProcessError, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.postgres import sql
from snugdp.ledger.postgres.session import Session
from snugdp.ledger.postgres.url import Url
from snugdp.ledger.store import Anchor, Mark, Row, Transaction


class PostgresStore:
    """The rows of one ledger in PostgreSQL; see ``store.Store`` for what it promises.

    Guarantee: a transaction is alone among all clients of the server (an advisory lock is held from before its first
    look until it ends), and what it appended is flushed to the server's disk when it has ended.
    """

    def __init__(self, where: str, dataset: str | None = None, anchor: str | None = None) -> None:
        self._url = Url.parse(where, dataset)
        self._place = anchor
        self._anchor: FileAnchor | None = None
        self._connection: Session | None = None
        self._end: weakref.finalize[[], PostgresStore] | None = None  # closes it when this is gone, or at exit
        self._tables: tuple[object, ...] | None = None  # object identifiers of what was opened
        self._process = os.getpid()

    @property
    def address(self) -> str:
        """The URL without a password."""
        return str(self._url)

    @property
    def where(self) -> str:
        """The URL as given, with the data set."""
        return self._url.whole

    @property
    def dataset(self) -> str | None:
        """The data set that the URL names, or the only one in the database."""
        return self._url.dataset

    @property
    def anchor(self) -> Anchor:
        """The anchor of this machine, or the one that was asked for."""
        if self._anchor is None:
            self._anchor = FileAnchor(self._place) if self._place else _HomeAnchor(self._url.anchor())
        return self._anchor

    @contextlib.contextmanager
    def creating(self) -> Iterator[None]:
        """Nobody else creates this ledger, or the first anchor for it, at the same time."""
        key = sql.lock_key("creating", self.dataset or "")
        session = self._session()
        session.run("SET lock_timeout = '30s'")
        session.run(sql.HOLD, (key,))
        try:
            yield
        finally:
            session.let_go(key)

    def exists(self) -> bool:
        """Whether the database holds anything of this ledger."""
        session = self._session()
        if len(session.run(sql.TABLES)) < 2:
            return False
        if self.dataset is None:
            names = [str(name) for (name,) in session.run(sql.DATASETS)]
            if len(names) > 1:
                raise ValueError(
                    f"{self.address} holds several ledgers: say which, with dataset= or …#dataset. It has {names}"
                )
            if not names:
                return False
            self._url = self._url.named(names[0])
        return bool(session.one(sql.FOUND, {"dataset": self.dataset})[0])

    def create(self, genesis: Row) -> None:
        """Make the ledger and, for the first one in a database, the tables; durable when it returns."""
        if self.dataset is None:
            raise ValueError("a new ledger needs a name: …/database#dataset, or dataset=")
        session = self._session()
        with self._block(session):
            self._lock(session, sql.lock_key("tables"))
            if session.one(sql.ENCODING)[0] != "UTF8":
                raise LedgerError(f"{self.address} cannot hold every text: make a database with ENCODING 'UTF8'")
            if not session.run(sql.TABLES):
                session.run(sql.MAKE, prepare=False)
            if session.one(sql.FOUND, {"dataset": self.dataset})[0]:
                raise LedgerError(f"there is a ledger at {self.address}: it is never written over")
            session.run(sql.START, {"dataset": self.dataset, **genesis._asdict()})

    def connect(self) -> None:
        """Check the tables, and trust a ledger that this machine has never seen."""
        if not self.exists():
            raise LedgerError(f"there is no ledger at {self.address}: give dataset= and budget= to create it")
        with self.creating(), self.transaction() as look:
            if self._place is None and not self.anchor.exists():
                self.anchor.create(_first_mark(look.row(0)))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One exclusive look. If the connection is lost while it commits, its fate is told by the next look."""
        if self.dataset is None:
            raise LedgerError("this ledger was not opened")
        session = self._session()
        with self._block(session):
            self._lock(session, sql.lock_key("ledger", self.dataset))
            self._check_tables(session)
            yield _Look(session, self.dataset)

    def same(self) -> bool:
        """Whether the tables are still those that were opened."""
        if self._process != os.getpid():
            return False
        try:
            return self._tables is None or [*self._tables] == [oid for (oid,) in self._session().run(sql.TABLES)]
        except LedgerWriteError:
            return True  # the server is away: what comes next will say so

    def release(self) -> None:
        """Close the connection, before a fork; the next use makes another one."""
        self._connection = None
        if self._end is not None:
            self._end()

    def close(self) -> None:
        """Let go of the connection and of the anchor."""
        self.release()
        if self._anchor is not None:
            self._anchor.close()

    def __repr__(self) -> str:
        return f"PostgresStore({self.address!r})"

    def _session(self) -> Session:
        if self._process != os.getpid():
            raise ForeignProcessError("this ledger was opened by another process: open it again in this one")
        if self._connection is None or self._connection.lost or self._connection.hung_up():
            self.release()
            self._connection = Session(self._url)
            self._end = weakref.finalize(self, self._connection.close)
        return self._connection

    @contextlib.contextmanager
    def _block(self, session: Session) -> Iterator[None]:
        """From BEGIN to COMMIT, or to ROLLBACK after any exception."""
        try:
            session.run(sql.BEGIN, prepare=False)
            yield
            session.commit()
        except BaseException:
            session.roll_back()
            raise

    def _lock(self, session: Session, key: int) -> None:
        """Wait for the others; then see whether the server keeps what it is given."""
        _, fsync, pages, standby = session.one(sql.LOCK, (key,))
        if standby:
            raise LedgerWriteError(f"{self.address} is a standby server: connect to the primary one")
        if (fsync, pages) != ("on", "on"):
            raise LedgerError(
                f"{self.address} may forget charges when its power fails: fsync is {fsync}, full_page_writes {pages}. "
                "Switch both on in postgresql.conf and reload"
            )

    def _check_tables(self, session: Session) -> None:
        shape = session.run(sql.SHAPE)
        if [row[:-1] for row in shape] != sql.INTACT:
            raise TamperedLedgerError(
                f"the tables of {self.address} are not those of a ledger: a column, trigger, rule or policy was "
                "added, changed or lost. Restore the schema snugdp from the newest backup"
            )
        tables = tuple(row[-1] for row in shape)
        if self._tables not in (None, tables):
            raise TamperedLedgerError(f"the tables of {self.address} were replaced while it was open: open it again")
        heads = session.run(sql.HEADS, (self.dataset,))
        if not heads or heads[0][:2] != heads[0][2:]:
            raise TamperedLedgerError(
                f"the newest rows of {self.address} are missing, or others were added: its head is another"
            )
        self._tables = tables


class _Look:
    """One transaction, seen from inside."""

    def __init__(self, session: Session, dataset: str) -> None:
        self._session, self._dataset = session, dataset

    def rows(self, after: int) -> Iterator[Row]:
        page: list[tuple[Any, ...]] | None = None
        while page is None or len(page) == sql.PAGE:
            page = self._session.run(sql.ROWS, (self._dataset, page[-1][0] if page else after, sql.PAGE))
            yield from (Row(*row) for row in page)

    def row(self, seq: int) -> Row | None:
        return next((Row(*row) for row in self._session.run(sql.ROW, (self._dataset, seq))), None)

    def append(self, row: Row) -> None:
        if self._session.add(sql.APPEND, {"dataset": self._dataset, **row._asdict()}) != 1:
            raise TamperedLedgerError("the head of the ledger moved while it was locked: nothing was written")


class _HomeAnchor(FileAnchor):
    """An anchor in this user's folder for state, which is made when it is needed."""

    def create(self, mark: Mark) -> None:
        """Make the folder too, for this user only."""
        try:
            os.makedirs(os.path.dirname(self.place), mode=0o700, exist_ok=True)
        except OSError as error:
            raise LedgerWriteError(
                f"the folder of {self.place} could not be made ({reason(error)}): give anchor= another place, or set "
                "XDG_STATE_HOME"
            ) from None
        super().create(mark)


def _first_mark(genesis: Row | None) -> Mark:
    """What a machine remembers of a ledger that it has never seen: its beginning. What follows is verified next."""
    if genesis is not None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return Mark(str(json.loads(genesis.record)["id"]), 0, genesis.hash)
    raise TamperedLedgerError("the first record of the ledger is missing or unreadable")
