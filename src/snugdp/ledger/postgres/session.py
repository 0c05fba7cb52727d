"""One connection to PostgreSQL: what goes wrong comes out as an error of the ledger, and never shows a password."""

from __future__ import annotations

import contextlib
import os
import selectors
from collections.abc import Mapping, Sequence
from typing import Any

from snugdp.ledger.errors import LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.postgres import sql
from snugdp.ledger.postgres.url import Url, driver

_DEFAULTS = {  # unless the address says otherwise; a server that vanished is given up after half a minute
    "connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives_idle": "10", "keepalives_interval": "10",
    "keepalives_count": "3", "application_name": "snugdp",
}  # fmt: skip
_REASONS = {  # by SQLSTATE
    "55P03": "another process has been writing for 30 s: try again later",
    "42501": "this user may not do that: the owner of the tables can GRANT it (see snugdp.ledger.postgres.store)",
    "25006": "the server is read-only: connect to the primary server",
    "53100": "the server's disk is full",
}
_UNDECIDED = ("", "08", "57", "XX")  # classes of errors at COMMIT that do not say whether it was done
_INHERITED: list[object] = []  # a parent's connections: neither used nor closed by a forked child

Parameters = Sequence[object] | Mapping[str, object] | None


class Session:
    """A connection that belongs to the process that made it."""

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
                f"the connection to {self._url} was lost during a commit: what was written may stand or not. The next "
                "look at the ledger tells; doing the same again with the same key pays at most once"
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
