"""A ledger in PostgreSQL, for a team: several in one database, told apart by the data set.

Tables ``snugdp.entry`` (the rows) and ``snugdp.head`` (the newest row of each ledger, moved in the same transaction: a
deleted tail is seen by everybody). Triggers let in the record that comes next and no other, and let nothing be changed.
Each user keeps an anchor by the ledger's identity (``recognition``); who has never seen the ledger trusts what is there
and remembers it from then on. For the first time as well, give ``anchor=`` a file that came another way.

Who creates the first ledger owns the tables, and lets others in::

    GRANT USAGE ON SCHEMA snugdp TO team;
    GRANT SELECT, INSERT ON snugdp.entry, snugdp.head TO team;
    GRANT UPDATE ON snugdp.head TO team;

Connect to the server itself, or through a pooler that gives each session a connection of its own.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from snugdp.ledger.anchors.anchor import FileAnchor, Mark
from snugdp.ledger.anchors.recognition import Place, make_folder
from snugdp.ledger.errors import ForeignProcessError, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.history.records import Row
from snugdp.ledger.stores.postgres import sql
from snugdp.ledger.stores.postgres.url import Url, driver
from snugdp.ledger.stores.store import Connected, Transaction

_DEFAULTS = {  # unless the address says otherwise; a server that vanished is given up after half a minute
    "connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives_idle": "10", "keepalives_interval": "10",
    "keepalives_count": "3", "application_name": "snugdp",
}  # fmt: skip
_REASONS = {  # by SQLSTATE
    "55P03": "another process has been writing for 30 s: try again later",
    "42501": "this user may not do that: the owner of the tables can GRANT it, as docs/ledger.md says",
    "25006": "the server is read-only: connect to the primary server",
    "53100": "the server's disk is full",
    "SDP01": "only the owner of the tables can void records",
}
_UNDECIDED = ("", "08", "57", "XX")  # classes of errors at COMMIT that do not say whether it was done
_INHERITED: list[object] = []  # a parent's connections: neither used nor closed by a forked child

Parameters = Sequence[object] | Mapping[str, object] | None


class PostgresStore(Connected):
    """The rows of one ledger in PostgreSQL; see ``store.Store`` for what it promises.

    Guarantee: a transaction is alone among all clients of the server (an advisory lock is held from before its first
    look until it ends), and what it appended is flushed to the server's disk when it has ended.
    """

    def __init__(self, where: str, dataset: str | None = None, anchor: str | None = None) -> None:
        self._url = Url.parse(where, dataset)
        self._place = anchor
        self._anchor: FileAnchor | None = None
        self._connection: Session | None = None
        self._tables: tuple[object, ...] | None = None  # object identifiers of what was opened
        self._process = os.getpid()
        self._append = sql.APPEND
        self.guards_voids = False  # until its tables were looked at
        self._server: Place | None = None

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
    def anchor(self) -> FileAnchor:
        """The anchor of this machine, or the one that was asked for."""
        if self._anchor is None:
            self._anchor = FileAnchor(self._place) if self._place else AddressIndex(self._url.anchor())
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
            former = self._form(session) == sql.FORMER
            session.run(sql.FORMER_START if former else sql.APPEND, {"dataset": self.dataset, **genesis._asdict()})

    def connect(self) -> None:
        """Check the tables, and trust a ledger that this machine has never seen."""
        if not self.exists():
            raise LedgerError(f"there is no ledger at {self.address}: give dataset= and budget= to create it")
        with self.creating(), self.transaction():
            pass
        if not self.guards_voids:
            warnings.warn(
                f"the tables of {self.address} are of an earlier form, which rows by hand can block or void: "
                f'let their owner run snugdp ledger adopt {self.address} --reason "new form of the tables"',
                stacklevel=4,
            )

    def place(self) -> Place:
        """Which database of which server, by the numbers that PostgreSQL gave them: no name of a host."""
        if self._server is None:
            try:
                server, database = self._session().one(sql.SERVER)
                self._server = Place(f"the database {database} of the PostgreSQL server {server}")
            except LedgerError:
                self._server = Place(self.address)  # a server that does not say who it is, is what it is called
        return self._server

    def may_hold(self, place: Place, identity: str) -> bool:
        """Nobody here can look into another database."""
        return True

    def network(self) -> str | None:
        """The server's locks are for all machines."""
        return None

    def upgrade(self) -> bool:
        """Guard tables of the earlier form as new ones are; only their owner may."""
        session = self._session()
        with self._block(session):
            self._lock(session, sql.lock_key("tables"))
            if self._form(session) not in sql.FORMS[1:]:
                return False
            session.run(sql.GUARD, prepare=False)
        return True

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One exclusive look. If the connection is lost while it commits, its fate is told by the next look."""
        if self.dataset is None:
            raise LedgerError("this ledger was not opened")
        session = self._session()
        with self._block(session):
            self._lock(session, sql.lock_key("ledger", self.dataset))
            self._check_tables(session)
            yield _Look(session, self.dataset, self._append)

    def tidy(self) -> None:
        """The server looks after itself."""

    def check(self) -> None:
        """The server checks its pages itself, whenever they are read."""

    def same(self) -> bool:
        """Whether the tables are still those that were opened."""
        if self._process != os.getpid():
            return False
        try:
            return self._tables is None or [*self._tables] == [oid for (oid,) in self._session().run(sql.TABLES)]
        except LedgerWriteError:
            return True  # the server is away: what comes next will say so

    def close(self) -> None:
        """Let go of the connection."""
        self.release()

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
        form = [row[:-1] for row in shape]
        if form not in sql.FORMS:
            raise TamperedLedgerError(
                f"the tables of {self.address} are not those of a ledger: a column, trigger, function, rule or policy "
                "was added, changed or lost. Restore the schema snugdp from the newest backup"
            )
        tables = tuple(row[-1] for row in shape)
        if self._tables not in (None, tables):
            raise TamperedLedgerError(f"the tables of {self.address} were replaced while it was open: open it again")
        heads = session.run(sql.HEADS, (self.dataset,))
        if not heads or heads[0][:2] != heads[0][2:]:
            raise TamperedLedgerError(
                f"the newest rows of {self.address} are missing, or others were added: its head does not match"
            )
        self._tables, self._append = tables, sql.FORMER_APPEND if form == sql.FORMER else sql.APPEND
        self.guards_voids = form == sql.INTACT

    def _form(self, session: Session) -> list[tuple[Any, ...]]:
        return [row[:-1] for row in session.run(sql.SHAPE)]


class Session:
    """A connection that belongs to its process. What goes wrong is an error of the ledger, and shows no password."""

    def __init__(self, url: Url) -> None:
        self._driver, self._url, self._process = driver(), url, os.getpid()
        given = {key: value for key, value in _DEFAULTS.items() if f"{key}=" not in url.server}
        try:
            self._link = self._driver.connect(url.server, autocommit=True, client_encoding="UTF8", **given)
        except self._driver.Error as error:
            raise LedgerWriteError(f"cannot reach {url}: {url.scrub(str(error))}. Nothing was charged") from None

    @property
    def lost(self) -> bool:
        """Whether it is known to be gone."""
        return bool(self._link.closed)

    def hung_up(self) -> bool:
        """Whether the server has ended the connection while nobody used it: after a restart, or for idling."""
        with selectors.DefaultSelector() as ears:
            ears.register(self._link.fileno(), selectors.EVENT_READ)
            if not ears.select(0):
                return False  # it has said nothing unasked
        with contextlib.suppress(LedgerError):
            self.run("SELECT 1")
        return self.lost

    def run(self, query: str, parameters: Parameters = None, *, prepare: bool = True) -> list[tuple[Any, ...]]:
        """What the server answers. Several statements in one cannot be prepared."""
        try:
            cursor = self._link.execute(query, parameters, prepare=prepare)
            return list(cursor.fetchall()) if cursor.description else []
        except (self._driver.Error, UnicodeError) as error:
            raise self._trouble(error) from None

    def one(self, query: str, parameters: Parameters = None) -> tuple[Any, ...]:
        """A row that is always there."""
        return self.run(query, parameters)[0]

    def add(self, query: str, parameters: Parameters) -> int:
        """How many rows were written."""
        try:
            return int(self._link.execute(query, parameters, prepare=True).rowcount)
        except (self._driver.Error, UnicodeError) as error:
            raise self._trouble(error) from None

    def commit(self) -> None:
        """Durable when it returns. An error says whether nothing was written, or that nobody knows."""
        try:
            done = self._link.execute("COMMIT").statusmessage
        except self._driver.Error as error:
            if not self.lost and (error.sqlstate or "")[:2] not in _UNDECIDED:
                raise self._trouble(error) from None
            raise LedgerWriteError(
                f"the connection to {self._url} was lost during a commit: it may have been written or not. The ledger "
                "tells when it is opened again; a retry with the same key pays at most once"
            ) from None
        if done != "COMMIT":
            raise LedgerWriteError(f"{self._url} did not commit. Nothing was written")

    def roll_back(self) -> None:
        """Back to before; if that cannot be had, the connection is given up, and the server rolls back by itself."""
        if self._process != os.getpid():
            return
        try:
            if self._link.info.transaction_status != self._driver.pq.TransactionStatus.IDLE:
                self._link.execute("ROLLBACK")
        except BaseException:  # an interrupt too: the exception on its way is the one to be seen
            self.close()

    def let_go(self, key: int) -> None:
        """Give back a lock; one that cannot be given back goes with the connection."""
        if self._process != os.getpid() or self.lost:
            return
        try:
            self.run(sql.LET_GO, (key,))
        except LedgerError:
            self.close()

    def close(self) -> None:
        """Let go of the server, unless the connection is that of the process this one was forked from."""
        if self._process != os.getpid():
            _INHERITED.append(self._link)
            return
        with contextlib.suppress(self._driver.Error):
            self._link.close()

    def _trouble(self, error: Exception) -> LedgerError:
        state = getattr(error, "sqlstate", None) or ""
        if isinstance(error, UnicodeDecodeError) or state.startswith("XX") or state in ("42P01", "3F000", "42703"):
            return TamperedLedgerError(f"{self._url} cannot be read: its tables are damaged, changed or gone")
        primary = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        said = _REASONS.get(state) or self._url.scrub(primary) or type(error).__name__
        return LedgerWriteError(f"{self._url} could not be read or written: {said}. Nothing was written")


class _Look:
    """One transaction, seen from inside."""

    unchanged = False  # the server does not tell

    def __init__(self, session: Session, dataset: str, append: str) -> None:
        self._session, self._dataset, self._append = session, dataset, append

    def rows(self, after: int) -> Iterator[Row]:
        page: list[tuple[Any, ...]] | None = None
        while page is None or len(page) == sql.PAGE:
            page = self._session.run(sql.ROWS, (self._dataset, page[-1][0] if page else after, sql.PAGE))
            yield from (Row(*row) for row in page)

    def row(self, seq: int) -> Row | None:
        return next((Row(*row) for row in self._session.run(sql.ROW, (self._dataset, seq))), None)

    def append(self, row: Row) -> None:
        added = self._session.add(self._append, {"dataset": self._dataset, **row._asdict()})
        heads = self._session.run(sql.HEADS, (self._dataset,))  # what was sent is not yet what is there
        if added != 1 or heads != [(row.seq, row.hash) * 2]:
            raise TamperedLedgerError("the ledger did not take its next record as it was given: nothing was written")


class AddressIndex(FileAnchor):
    """Which ledger this user has seen at an address, so that one that is gone is not made again.

    What was seen of it last is in the anchor that is named by its identity, whatever the server is called.
    """

    follows = False

    def create(self, mark: Mark) -> None:
        """Make the folder too, for this user only."""
        make_folder(self.place)
        super().create(mark)
