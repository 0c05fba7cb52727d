"""Both stores under the same tests: ``where`` is a fresh place for a ledger, once in SQLite and once in PostgreSQL."""

import os
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from snugdp import Budget, Cost, Ledger
from snugdp.ledger.anchors.recognition import state_folder
from snugdp.ledger.history.records import Row

BUDGET = Budget(1, 1e-6)
TENTH = Cost(epsilon=0.1)
SERVER = os.environ.get("SNUGDP_TEST_POSTGRES", "")


@dataclass(frozen=True)
class Where:
    """A place with neither ledger nor anchor, and a way to look and write behind the ledger's back."""

    kind: str
    address: str  # for Ledger.open
    dataset: str

    @property
    def anchor(self) -> Path:
        """The anchor beside an SQLite ledger, this user's of one in PostgreSQL; before there is one, its index."""
        if self.kind == "sqlite":
            return Path(f"{self.address}.anchor")
        from snugdp.ledger.stores.postgres.url import Url

        return next(iter(self.remembered), Url.parse(self.address).anchor())

    @property
    def remembered(self) -> list[Path]:
        """The anchors of this user, by identity."""
        return sorted(Path(state_folder(), "anchors").glob("*.anchor"))

    def rows(self) -> list[Row]:
        """What is stored, in order."""
        if self.kind == "sqlite":
            with sqlite3.connect(self.address) as base:
                found = base.execute("SELECT seq, record, body, hash FROM ledger ORDER BY seq").fetchall()
            base.close()
        else:
            query = "SELECT seq, record, body, hash FROM snugdp.entry WHERE dataset = %s ORDER BY seq"
            with as_owner(self.address) as base:
                found = base.execute(query, (self.dataset,)).fetchall()
        return [Row(*row) for row in found]

    def replace(self, rows: Sequence[tuple[int, str, str | None, str]]) -> None:
        """Let the store hold exactly these rows. No anchor is touched."""
        if self.kind == "sqlite":
            with sqlite3.connect(self.address) as base:
                base.execute("DELETE FROM ledger")
                base.executemany("INSERT INTO ledger (seq, record, body, hash) VALUES (?, ?, ?, ?)", rows)
            base.close()
            return
        insert = "INSERT INTO snugdp.entry (dataset, seq, record, body, hash) VALUES (%s, %s, %s, %s, %s)"
        with as_owner(self.address) as base, base.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")  # the triggers sleep
            cursor.execute("DELETE FROM snugdp.entry WHERE dataset = %s", (self.dataset,))
            cursor.executemany(insert, [(self.dataset, *row) for row in rows])


def as_owner(address: str) -> Any:
    """A connection of the tests' own; as a context it commits and closes."""
    import psycopg

    return psycopg.connect(address.partition("#")[0])


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of an empty database on the server under test, for the time of the block."""
    if not SERVER:
        pytest.skip("no PostgreSQL server: run python tools/with_postgres.py make test, or set SNUGDP_TEST_POSTGRES")
    psycopg = pytest.importorskip("psycopg", reason='no psycopg: pip install "snugdp[postgres]"')
    name = f"snugdp_{uuid.uuid4().hex}"
    server, _, options = SERVER.partition("?")
    with psycopg.connect(SERVER, autocommit=True) as base:
        base.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        yield f"{server.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")
    finally:
        with psycopg.connect(SERVER, autocommit=True) as base:
            base.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """One database for all tests of a worker: each has a data set of its own."""
    with new_database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, somebody: None, tmp_path: Path) -> Where:
    """A fresh place for one ledger; tests that take it run on both stores."""
    if request.param == "sqlite":
        return Where("sqlite", str(tmp_path / "ledger.db"), "survey")
    return in_postgres(request.getfixturevalue("database"))


@pytest.fixture
def somebody(tmp_path: Path) -> Iterator[None]:
    """A user who has seen no ledger, whatever the test itself patches and undoes."""
    with pytest.MonkeyPatch.context() as patch:
        another_user(patch, tmp_path / "state")
        yield


def made(where: Where, budget: Budget | Cost = BUDGET, **given: Any) -> Ledger:
    """A new ledger there; it composes costs, so that what it has spent is their sum."""
    return Ledger.open(where.address, dataset=where.dataset, budget=budget, **{"composition": "tight", **given})


@pytest.fixture
def ledger(request: pytest.FixtureRequest, where: Where) -> Iterator[Ledger]:
    """A new ledger with the BUDGET of the test module, on both stores."""
    with made(where, request.module.BUDGET) as ledger:
        yield ledger


@pytest.fixture(scope="session")
def second_database() -> Iterator[str]:
    """For tests that change the tables."""
    with new_database() as url:
        yield url


@pytest.fixture
def alone(second_database: str, somebody: None) -> Where:
    """A fresh place in a PostgreSQL database that holds nothing else."""
    with as_owner(second_database) as base:
        base.execute("DROP SCHEMA IF EXISTS snugdp CASCADE; DROP SCHEMA IF EXISTS moved CASCADE")
    return in_postgres(second_database)


def in_postgres(database: str) -> Where:
    """A data set that nobody has used."""
    from snugdp.ledger.stores.postgres.url import Url

    dataset = f"survey {uuid.uuid4().hex}"
    return Where("postgres", Url.parse(database, dataset).whole, dataset)


def another_user(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    """From now on as somebody who keeps what was seen of ledgers in this folder."""
    monkeypatch.setenv("SNUGDP_STATE", str(state))
