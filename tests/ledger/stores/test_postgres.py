"""What only a ledger on a server has: names, passwords, lost connections, other people's tables."""

import os
import pickle
import socket
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger.address import without_password
from snugdp.ledger.anchors.recognition import state_folder
from snugdp.ledger.book import Ledger
from snugdp.ledger.errors import ForeignProcessError, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.handle import Handle
from snugdp.ledger.history.records import digest, stamp, write
from snugdp.ledger.stores.postgres import sql
from snugdp.ledger.stores.postgres.store import PostgresStore
from snugdp.ledger.stores.postgres.url import Url
from tests.effort import sampled
from tests.ledger.conftest import TENTH, Where, another_user, as_owner, made
from tests.ledger.faults import in_threads

PASSWORD = "s3cr3t-w0rd"


@pytest.fixture
def ledger(alone: Where) -> Iterator[Ledger]:
    """A new ledger on the server."""
    with made(alone) as ledger:
        yield ledger


def server_of(where: Where) -> str:
    return where.address.partition("#")[0]


def end_connections(where: Where) -> None:
    """What a restart, an administrator or a firewall does; they are gone when it returns."""
    others = (
        "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'snugdp'"
        " AND pid <> pg_backend_pid()"
    )
    with closing(as_owner(where.address)) as base:
        base.autocommit = True
        base.execute(f"SELECT pg_terminate_backend(pid) {others}")
        while base.execute(f"SELECT count(*) {others}").fetchone() != (0,):
            time.sleep(0.01)


# -- names


def test_one_database_holds_several_ledgers(alone: Where) -> None:
    names = ["people", "ünïcode / # % ? @ ' \" \\ and spaces", "people "]
    for count, name in enumerate(names):
        with Ledger.open(server_of(alone), dataset=name, budget=Budget(1)) as ledger:
            for _ in range(count):
                ledger.charge(TENTH, "a release")
    for count, name in enumerate(names):
        with Ledger.open(f"{server_of(alone)}#{quote(name, safe='')}") as ledger:
            assert (ledger.dataset, ledger.label, len(ledger.entries())) == (name, name, count)
            assert ledger.address.endswith("#" + quote(name, safe=""))
    with pytest.raises(ValueError, match=r"several ledgers.*'people', 'people '"):
        Ledger.open(server_of(alone))
    with pytest.raises(ValueError, match="names the data set"):
        Ledger.open(f"{server_of(alone)}#people", dataset="others")


def test_the_only_ledger_needs_no_name(alone: Where) -> None:
    with pytest.raises(ValueError, match="names no data set"):
        Ledger.open(server_of(alone))
    made(alone).close()
    with Ledger.open(server_of(alone)) as ledger:
        assert ledger.dataset == alone.dataset
        assert pickle.loads(pickle.dumps(ledger)).dataset == alone.dataset


@pytest.mark.parametrize("text", ["u:pa/ss@h/d", "u:pa#ss@h/d", "u:p@ss@h/d", "u:pa?ss@h/d", "u:p%@h/d", "h:pass/d"])
def test_an_address_that_cannot_be_read_is_not_shown(text: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(ValueError, match="%40") as caught:
        Url.parse(f"postgresql://{text}")
    assert text not in "".join(traceback.format_exception(caught.value)).replace(f"postgresql://{text}", "")
    assert "pa" not in str(caught.value).replace("password", "").replace("PostgreSQL", "")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("u:p@h/d", "postgresql://u@h/d"),
        ("u:p@h:99/d?password=p&sslmode=require", "postgresql://u@h:99/d"),
        ("u:p@[::1]/d#a%20b", "postgresql://u@%3A%3A1/d#a%20b"),
        ("u@/d?host=/run/pg", "postgresql://u@%2Frun%2Fpg/d"),
    ],
)
def test_what_is_shown_of_an_address(given: str, shown: str) -> None:
    pytest.importorskip("psycopg")
    url = Url.parse(f"postgresql://{given}")
    assert str(url) == repr(url) == shown
    assert url.whole == f"postgresql://{given}"
    assert url.anchor().parent == Path(state_folder()) if url.dataset else True
    assert Url.parse(without_password(url.whole)).parts.get("password") == os.environ.get("PGPASSWORD")


# -- passwords


def option(where: Where, text: str) -> str:
    """The address with one more option."""
    return f"{server_of(where)}{'&' if '?' in server_of(where) else '?'}{text}#{quote(where.dataset)}"


def test_a_password_is_never_shown(alone: Where) -> None:
    address = option(alone, f"password={PASSWORD}")
    with Ledger.open(address, budget=Budget(1)) as ledger, closing(PostgresStore(address)) as store:
        ledger.charge(TENTH, "a release")
        assert store.where == address  # what opens it again has it
        shown = [repr(ledger), ledger.address, ledger.show(), ledger.export(), str(ledger.verify()), repr(store)]
        with pytest.raises(LedgerError) as caught:
            store.create(alone.rows()[0])
        shown += traceback.format_exception(caught.value)
    assert not any(PASSWORD in text for text in shown)


def test_a_server_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    with closing(socket.socket()) as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"postgresql://ann:{PASSWORD}@127.0.0.1:{taken.getsockname()[1]}/d#people"
        with pytest.raises(LedgerWriteError, match="cannot reach postgresql://ann@127") as caught:
            Ledger.open(address)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__suppress_context__


def test_without_psycopg_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r'pip install "snugdp\[postgres\]"'):
        Ledger.open("postgresql://ann@db.example/privacy#people")


# -- anchors


def test_a_machine_trusts_once(alone: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(alone) as ledger:
        ledger.charge(TENTH, "first")
    old = alone.rows()
    another_user(monkeypatch, tmp_path / "another machine")
    with Ledger.open(alone.address) as ledger:
        ledger.charge(TENTH, "second")
        anchor = Path(ledger.verify().anchor)
    assert anchor.is_relative_to(tmp_path / "another machine")
    assert anchor.stat().st_mode & 0o777 == 0o600
    assert anchor.parent.stat().st_mode & 0o777 == 0o700
    alone.replace(old)
    with as_owner(alone.address) as base:
        base.execute("SET LOCAL session_replication_role = replica")
        base.execute("UPDATE snugdp.head SET seq = 1, hash = %s", (old[-1].hash,))
    with pytest.raises(TamperedLedgerError, match="older copy"):
        Ledger.open(alone.address)
    another_user(monkeypatch, tmp_path / "state")  # the first machine saw no more than that
    Ledger.open(alone.address).close()


def test_an_anchor_that_was_asked_for_must_be_there(alone: Where, tmp_path: Path) -> None:
    place = tmp_path / "own.anchor"
    made(alone, anchor=place).close()
    assert place.exists()
    Ledger.open(alone.address, anchor=place).close()
    with pytest.raises(TamperedLedgerError, match="missing"):
        Ledger.open(alone.address, anchor=tmp_path / "other.anchor")
    assert not (tmp_path / "other.anchor").exists()


def test_a_home_that_cannot_be_written(alone: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    another_user(monkeypatch, tmp_path / "file" / "state")
    with pytest.raises(LedgerWriteError, match="SNUGDP_STATE"):
        made(alone)
    another_user(monkeypatch, tmp_path / "state")
    made(alone).close()  # nothing was made before


# -- tables and settings


def test_the_tables_only_grow(alone: Where, ledger: Ledger) -> None:
    import psycopg

    ledger.charge(TENTH, "a release")
    for statement in (
        "UPDATE snugdp.entry SET record = ''", "DELETE FROM snugdp.entry", "TRUNCATE snugdp.entry",
        "UPDATE snugdp.head SET seq = 0", "DELETE FROM snugdp.head", "TRUNCATE snugdp.head",
    ):  # fmt: skip
        with pytest.raises(psycopg.Error, match="only grows"), as_owner(alone.address) as base:
            base.execute(statement)
    assert ledger.spent == TENTH


@sampled(4)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t BEFORE INSERT ON snugdp.entry FOR EACH ROW EXECUTE FUNCTION snugdp.only_grows()",
        "CREATE RULE r AS ON INSERT TO snugdp.entry DO INSTEAD NOTHING",
        "ALTER TABLE snugdp.entry DISABLE TRIGGER only_grows",
        "DROP TRIGGER stays ON snugdp.head",
        "ALTER TABLE snugdp.entry SET UNLOGGED",
        "ALTER TABLE snugdp.entry ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE snugdp.entry ADD COLUMN more text",
        "ALTER TABLE snugdp.entry ALTER COLUMN seq TYPE integer",
        "CREATE TABLE snugdp.child () INHERITS (snugdp.entry)",
        "ALTER TABLE snugdp.entry RENAME TO e; CREATE VIEW snugdp.entry AS SELECT * FROM snugdp.e",
        "DROP TABLE snugdp.head",
        "ALTER TABLE snugdp.entry DROP CONSTRAINT entry_pkey",
        "CREATE OR REPLACE FUNCTION snugdp.only_grows() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog"
        " AS $$ BEGIN RETURN NULL; END $$",
        "ALTER FUNCTION snugdp.comes_next() SECURITY DEFINER",
        "ALTER FUNCTION snugdp.comes_next() RESET search_path",
        "CREATE OR REPLACE TRIGGER only_grows BEFORE UPDATE OR DELETE ON snugdp.entry FOR EACH ROW WHEN (false)"
        " EXECUTE FUNCTION snugdp.only_grows()",
    ],
)
def test_other_tables_are_refused(alone: Where, ledger: Ledger, statement: str) -> None:
    ledger.charge(TENTH, "a release")
    with as_owner(alone.address) as base:
        base.execute(statement)
    with pytest.raises(TamperedLedgerError):
        ledger.charge(TENTH, "another")
    with pytest.raises(LedgerError):
        Ledger.open(alone.address)


def test_replaced_tables_are_noticed(alone: Where, ledger: Ledger) -> None:
    usable = [ledger.usable]
    with as_owner(alone.address) as base:
        base.execute("ALTER SCHEMA snugdp RENAME TO moved")
        base.execute(sql.MAKE)
        base.execute("SET LOCAL session_replication_role = replica")
        base.execute("INSERT INTO snugdp.head SELECT * FROM moved.head")
        base.execute("INSERT INTO snugdp.entry SELECT * FROM moved.entry")
    assert [*usable, ledger.usable] == [True, False]
    with pytest.raises(TamperedLedgerError, match="replaced"):
        ledger.charge(TENTH, "a release")
    with Ledger.open(alone.address) as again:  # a copy that is whole is as good
        again.charge(TENTH, "a release")


def test_the_form_of_the_tables_is_pinned() -> None:
    """Tables that exist hold this very text: who changes it keeps this one as an earlier form that is still read."""
    assert digest(sql.MAKE) == "a884a05eeb0cd22c90f8b9e36f060f850d10c0ab5f2bf68623d6fdb26ccb1228"


def member(alone: Where, base: Any) -> str:
    """The address of a new role with the grants of the documentation, and no other."""
    role = f"team_{uuid.uuid4().hex}"
    base.execute(f"CREATE ROLE {role} LOGIN")
    for grant in ("USAGE ON SCHEMA snugdp", "SELECT, INSERT ON snugdp.entry, snugdp.head", "UPDATE ON snugdp.head"):
        base.execute(f"GRANT {grant} TO {role}")
    return role


JUNK = (
    "INSERT INTO snugdp.entry VALUES (%(dataset)s, 7, '{}', NULL, 'x')",
    "INSERT INTO snugdp.entry VALUES (%(dataset)s, 2, '{}', NULL, encode(sha256('{}'), 'hex'))",
    "INSERT INTO snugdp.entry VALUES (%(dataset)s, NULL, NULL, NULL, NULL)",
    "INSERT INTO snugdp.entry SELECT dataset, 7, record, body, hash FROM snugdp.entry WHERE seq = 1",
    "INSERT INTO snugdp.entry SELECT dataset, 2, record, body, hash FROM snugdp.entry WHERE seq = 1",
    "INSERT INTO snugdp.entry VALUES (%(dataset)s, 2, %(record)s, NULL, 'x')",
    "INSERT INTO snugdp.entry VALUES (%(dataset)s, 2, %(record)s, 'an output', %(hash)s)",
    "INSERT INTO snugdp.entry VALUES (%(dataset)s, 3, %(later)s, NULL, %(later_hash)s)",
    "UPDATE snugdp.head SET seq = seq + 1",
    "UPDATE snugdp.head SET seq = seq + 1, hash = 'x'",
    "UPDATE snugdp.head SET dataset = 'another'",
    "INSERT INTO snugdp.head VALUES ('a new one', 0, 'x')",
    "INSERT INTO snugdp.head VALUES ('a new one', 5, 'x')",
    "SET LOCAL search_path = pg_temp, pg_catalog; UPDATE snugdp.head SET seq = seq + 1",
    "SET LOCAL session_replication_role = replica",
    "ALTER TABLE snugdp.entry DISABLE TRIGGER ALL",
    "CREATE OR REPLACE FUNCTION snugdp.comes_next() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
)


def test_a_member_cannot_block_the_ledger_with_junk(alone: Where, ledger: Ledger) -> None:
    """Nothing by hand gets in but the next record: the ledger goes on as if nobody had tried."""
    import psycopg

    ledger.charge(TENTH, "a release")
    rows = alone.rows()
    following = write(rows[1].hash, 2, "outcome", {**stamp(), "of": 1, "state": "released", "body": digest("7")})
    later = write("0" * 64, 3, "charge", stamp())
    given = {"dataset": alone.dataset, "record": following.text, "hash": following.hash}
    given |= {"later": later.text, "later_hash": later.hash}
    with closing(as_owner(alone.address)) as base:
        base.autocommit = True
        role = member(alone, base)
        try:
            for statement in JUNK:
                with psycopg.connect(option(alone, f"user={role}").partition("#")[0]) as theirs:
                    with pytest.raises(psycopg.Error):
                        theirs.execute(statement, given if "%(" in statement else None)
                    theirs.rollback()
            ledger.charge(TENTH, "another")
            with Ledger.open(option(alone, f"user={role}")) as own:
                own.charge(TENTH, "a third")
        finally:
            base.execute(f"DROP OWNED BY {role}")
            base.execute(f"DROP ROLE {role}")
    assert ledger.verify().spent == Cost(epsilon="0.3")


def test_who_only_looks_needs_no_right_to_write(alone: Where, ledger: Ledger) -> None:
    """With USAGE and SELECT alone a ledger is shown and verified, and nothing can be added, by hand or otherwise."""
    import psycopg

    ledger.charge(TENTH, "a release")
    with closing(as_owner(alone.address)) as base:
        base.autocommit = True
        role = f"reader_{uuid.uuid4().hex}"
        base.execute(f"CREATE ROLE {role} LOGIN")
        base.execute(f"GRANT USAGE ON SCHEMA snugdp TO {role}")
        base.execute(f"GRANT SELECT ON snugdp.entry, snugdp.head TO {role}")
        try:
            with Ledger.open(option(alone, f"user={role}")) as own:
                assert own.verify().spent == TENTH
                assert "a release" in own.show(20)
                with pytest.raises(LedgerWriteError, match="GRANT"):
                    own.charge(TENTH, "another")
            with psycopg.connect(option(alone, f"user={role}").partition("#")[0]) as theirs:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    theirs.execute("INSERT INTO snugdp.entry SELECT dataset, 2, record, body, hash FROM snugdp.entry")
                theirs.rollback()
        finally:
            base.execute(f"DROP OWNED BY {role}")
            base.execute(f"DROP ROLE {role}")
    ledger.charge(TENTH, "another")
    assert ledger.verify().spent == Cost(epsilon="0.2")


def test_what_was_dropped_is_gone_at_once(alone: Where, ledger: Ledger) -> None:
    """PostgreSQL's own note that a table has rules stays until VACUUM."""
    ledger.charge(TENTH, "a release")
    with as_owner(alone.address) as base:
        base.execute("CREATE RULE r AS ON INSERT TO snugdp.entry DO INSTEAD NOTHING")
    with pytest.raises(TamperedLedgerError, match="rule"):
        ledger.charge(TENTH, "another")
    with as_owner(alone.address) as base:
        base.execute("DROP RULE r ON snugdp.entry")
    ledger.charge(TENTH, "another")
    assert ledger.verify().spent == Cost(epsilon="0.2")


def test_a_row_that_is_not_there_gives_no_receipt(
    alone: Where, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger that was made after the tables were looked at."""
    monkeypatch.setattr(PostgresStore, "_check_tables", lambda *_: None)
    with as_owner(alone.address) as base:
        base.execute("CREATE FUNCTION public.eat() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
        base.execute("CREATE TRIGGER a BEFORE INSERT ON snugdp.entry FOR EACH ROW EXECUTE FUNCTION public.eat()")
    try:
        with pytest.raises(TamperedLedgerError):
            ledger.charge(TENTH, "x")
    finally:
        with as_owner(alone.address) as base:
            base.execute("DROP FUNCTION public.eat() CASCADE")
    ledger.charge(TENTH, "x")
    assert len(alone.rows()) == 2


def test_tables_of_the_earlier_form_are_used_and_adopted(alone: Where) -> None:
    with as_owner(alone.address) as base:
        base.execute(Path(__file__).with_name("former_tables.sql").read_text())
    with pytest.warns(UserWarning, match=r"earlier form.*snugdp ledger adopt"), made(alone) as ledger:
        ledger.charge(TENTH, "x")
    with pytest.warns(UserWarning, match="earlier form"), Ledger.open(alone.address) as ledger:
        assert ledger.spent == TENTH
    with as_owner(alone.address) as base:
        base.execute("CREATE OR REPLACE FUNCTION snugdp.only_grows() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN END$$")
    with pytest.raises(TamperedLedgerError, match="function"):
        Ledger.open(alone.address)
    with as_owner(alone.address) as base:
        source = Path(__file__).with_name("former_tables.sql").read_text().partition("CREATE FUNCTION")[2]
        base.execute("CREATE OR REPLACE FUNCTION" + source.partition("$$;")[0] + "$$")
    with pytest.warns(UserWarning, match="earlier form"), Ledger.adopt(alone.address, reason="new tables") as ledger:
        ledger.charge(TENTH, "y")
    with Ledger.open(alone.address) as ledger:
        assert ledger.verify().spent == Cost(epsilon="0.2")
        with as_owner(alone.address) as base, pytest.raises(Exception, match="only grows"):
            base.execute("UPDATE snugdp.head SET seq = seq + 1")


@pytest.mark.parametrize(("fsync", "pages"), [("off", "on"), ("on", "off")])
def test_a_forgetful_server_is_refused(
    alone: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: str, pages: str
) -> None:
    monkeypatch.setattr(
        sql, "LOCK", f"SELECT pg_advisory_xact_lock(%s)::text, '{fsync}', '{pages}', pg_is_in_recovery()"
    )
    with pytest.raises(LedgerError, match=r"postgresql\.conf"):
        made(alone)
    monkeypatch.undo()
    another_user(monkeypatch, tmp_path / "state")
    made(alone).close()  # nothing stands in the way when that is mended


def test_what_others_have_set_does_not_matter(alone: Where) -> None:
    with closing(as_owner(alone.address)) as base:
        base.autocommit = True
        name = base.info.dbname
        settings = {
            "synchronous_commit": "off", "default_transaction_read_only": "on", "lock_timeout": "1",
            "default_transaction_isolation": "'repeatable read'", "search_path": "elsewhere",
        }  # fmt: skip
        for key, value in settings.items():
            base.execute(f"ALTER DATABASE {name} SET {key} = {value}")
        try:
            with made(alone) as ledger, Ledger.open(alone.address) as other:
                with ThreadPoolExecutor(2) as pool:  # whoever waits sees what the other one wrote meanwhile
                    list(pool.map(lambda each: [each.charge(TENTH, "a release") for _ in range(5)], (ledger, other)))
                assert ledger.spent == other.spent == Cost(epsilon=1)
            with closing(PostgresStore(alone.address)) as store, store.transaction() as look:
                assert len(list(look.rows(-1))) == 11
                asked = "SELECT current_setting('synchronous_commit'), pg_current_xact_id_if_assigned() IS NULL"
                assert cast(Any, look)._session.one(asked) == ("on", True)  # who only looks has nothing to flush
        finally:
            base.execute("SET default_transaction_read_only = off")
            base.execute(f"ALTER DATABASE {name} RESET ALL")


def test_a_standby_is_refused(alone: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    made(alone).close()
    monkeypatch.setattr(sql, "LOCK", "SELECT pg_advisory_xact_lock(%s)::text, 'on', 'on', true")
    with pytest.raises(LedgerWriteError, match="primary"):
        Ledger.open(alone.address)


def test_a_database_must_hold_every_text(alone: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "ENCODING", "SELECT 'LATIN1'")
    with pytest.raises(LedgerError, match="UTF8"):
        made(alone)


def test_a_team_needs_three_grants(alone: Where, ledger: Ledger) -> None:
    role = f"team_{uuid.uuid4().hex}"
    with closing(as_owner(alone.address)) as base:
        base.autocommit = True
        base.execute(f"CREATE ROLE {role} LOGIN")
        try:
            address = option(alone, f"user={role}")
            with pytest.raises(LedgerWriteError, match="GRANT"):
                Ledger.open(address)
            for grant in (
                "USAGE ON SCHEMA snugdp",
                "SELECT, INSERT ON snugdp.entry, snugdp.head",
                "UPDATE ON snugdp.head",
            ):
                base.execute(f"GRANT {grant} TO {role}")
            with Ledger.open(address) as theirs:
                theirs.charge(TENTH, "a release of theirs")
            with Ledger.open(address.partition("#")[0], dataset="theirs", budget=Budget(1)) as own:
                own.charge(TENTH, "a release of theirs")
            assert ledger.spent == TENTH
        finally:
            base.execute(f"DROP OWNED BY {role}")
            base.execute(f"DROP ROLE {role}")


# -- connections


def test_a_connection_that_was_ended_is_made_again(alone: Where, ledger: Ledger) -> None:
    ledger.charge(TENTH, "first")
    end_connections(alone)
    ledger.charge(TENTH, "second")
    assert ledger.spent == Cost(epsilon=0.2)


def append_and_lose(store: PostgresStore, where: Where) -> None:
    with store.transaction() as look:
        first = look.row(0)
        assert first is not None
        look.append(write(first.hash, 1, "partition", stamp()).row())
        end_connections(where)


def test_a_connection_lost_before_the_commit(alone: Where, ledger: Ledger) -> None:
    with closing(PostgresStore(alone.address)) as store:
        rows = alone.rows()
        with pytest.raises(LedgerWriteError, match="written or not"):
            append_and_lose(store, alone)
        assert alone.rows() == rows
        ledger.charge(TENTH, "first")
        assert ledger.spent == TENTH
        with store.transaction() as look:
            assert len(list(look.rows(-1))) == 2


def test_a_lock_that_was_lost_is_no_forgery(alone: Where, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off in the middle of a look, while another process goes on: to be tried again, and nothing was rewritten."""
    plain = Handle._catch_up
    with Ledger.open(alone.address) as other:

        def then_cut_off(handle: Handle, rows: Any) -> None:
            plain(handle, rows)
            if handle is ledger._handle:
                end_connections(alone)
                other.charge(TENTH, "meanwhile")

        monkeypatch.setattr(Handle, "_catch_up", then_cut_off)
        with pytest.raises(LedgerWriteError):
            ledger.charge(TENTH, "x", key="k")
        monkeypatch.undo()
        ledger.charge(TENTH, "x", key="k")
        assert other.verify().spent == Cost(epsilon="0.2")


class Proxy:
    """Between client and server; when told to, it passes COMMIT on and hangs up before the answer comes back."""

    def __init__(self, server: str) -> None:
        parts = Url.parse(server).parts
        self._server = parts["host"], int(parts["port"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"postgresql://{parts['user']}@127.0.0.1:{self._listener.getsockname()[1]}/{parts['dbname']}"
        self.address += "?sslmode=disable&gssencmode=disable"
        self.cut = threading.Event()
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self._start(self._serve)

    def _start(self, target: Callable[..., None], *given: object) -> None:
        self._threads.append(threading.Thread(target=target, args=given, daemon=True))
        self._threads[-1].start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                server = self._dial()
                self._start(self._pass, client, server, True)
                self._start(self._pass, server, client, False)

    def _dial(self) -> socket.socket:
        host, port = self._server
        server = socket.socket(socket.AF_UNIX if host.startswith("/") else socket.AF_INET)
        self._sockets.append(server)
        server.connect(f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port))
        return server

    def _pass(self, source: socket.socket, target: socket.socket, outward: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if outward and b"COMMIT\0" in data and self.cut.is_set():
                    self.cut.clear()
                    source.shutdown(socket.SHUT_RDWR)
                    target.sendall(data)
                    return  # the answer goes nowhere
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()


@contextmanager
def through_a_proxy(where: Where) -> Iterator[tuple[Proxy, str]]:
    with closing(Proxy(server_of(where))) as proxy:
        yield proxy, f"{proxy.address}#{quote(where.dataset)}"


def test_an_answer_lost_after_the_commit_is_a_doubt_that_the_key_solves(alone: Where) -> None:
    with through_a_proxy(alone) as (proxy, address), made(alone) as direct:
        with Ledger.open(address) as ledger:
            proxy.cut.set()
            with pytest.raises(LedgerWriteError, match=r"written or not.*same key"):
                ledger.charge(TENTH, "a release", key="the key")
            for _ in range(100):  # the server commits in its own time
                if direct.spent == TENTH:
                    break
                time.sleep(0.05)
            assert direct.spent == TENTH
            receipt = ledger.charge(TENTH, "a release", key="the key")
            assert receipt.sequence == 1
            assert ledger.spent == TENTH
            proxy.cut.set()
            with pytest.raises(LedgerWriteError, match="charge stands"):
                ledger.settle(receipt, '{"state":"released"}')
            assert ledger.settle(receipt, '{"state":"released"}') == '{"state":"released"}'
        direct.verify()


def test_who_waits_too_long_is_told(alone: Where, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(PostgresStore(alone.address)) as other:
        other.connect()
        monkeypatch.setattr(sql, "BEGIN", sql.BEGIN.replace("30s", "200ms"))
        with other.transaction(), pytest.raises(LedgerWriteError, match="try again"):
            ledger.charge(TENTH, "a release")
        ledger.charge(TENTH, "a release")
        assert ledger.spent == TENTH


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child does nothing but look and end
def test_a_forked_child_leaves_the_connection_alone(alone: Where) -> None:
    """A store that nobody let go before the fork: the child is refused, and its end does not end the parent's."""
    made(alone).close()
    with closing(PostgresStore(alone.address)) as store:
        store.connect()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with store.transaction():
                    code = 2
            except ForeignProcessError:
                store.close()
                del store
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        with as_owner(alone.address) as base:
            count = base.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'snugdp'"
                " AND datname = current_database()"
            ).fetchone()
        assert count == (1,)
        with store.transaction() as look:
            assert look.row(0) is not None


def test_a_new_machine_is_met_by_many_at_once(alone: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(alone).close()
    another_user(monkeypatch, tmp_path / "new")
    assert in_threads(8, lambda _: Ledger.open(alone.address).close()) == []


def test_many_make_the_first_ledger_at_once(alone: Where) -> None:
    def make_one(number: int) -> None:
        Ledger.open(server_of(alone), dataset=f"data {number % 4}", budget=Budget(1)).close()

    assert in_threads(8, make_one) == []


def test_only_the_owner_voids_a_record_that_means_nothing(alone: Where, ledger: Ledger) -> None:
    """A member writes junk; no member can void it, or anything else, by command or by hand; an owner can."""
    import psycopg

    ledger.charge(TENTH, "a release")
    rows = alone.rows()
    junk = [write(rows[-1].hash, 2, "charge", {**stamp(), "what": "means nothing"})]
    junk.append(write(junk[0].hash, 3, "nonsense", stamp()))
    named = {"by": "bob", "reason": "mine", "before": rows[-1].hash, "records": [[one.seq, one.hash] for one in junk]}
    void = write(junk[1].hash, 4, "void", {**stamp(), **named})
    insert = "INSERT INTO snugdp.entry VALUES (%s, %s, %s, NULL, %s)"
    with closing(as_owner(alone.address)) as base:
        base.autocommit = True
        role, owner = member(alone, base), f"owner_{uuid.uuid4().hex}"
        base.execute(f"CREATE ROLE {owner} LOGIN")
        try:
            with psycopg.connect(option(alone, f"user={role}").partition("#")[0]) as theirs:
                for one in junk:
                    theirs.execute(insert, (alone.dataset, one.seq, one.text, one.hash))
                theirs.commit()
                with pytest.raises(psycopg.Error, match="only the owner"):
                    theirs.execute(insert, (alone.dataset, void.seq, void.text, void.hash))
                theirs.rollback()
            with pytest.raises(TamperedLedgerError, match=r"record 2 of the ledger has an unknown form.*ledger void"):
                Ledger.open(alone.address)
            with pytest.raises(LedgerError):
                ledger.charge(TENTH, "another")
            for table in ("entry", "head"):
                base.execute(f"ALTER TABLE snugdp.{table} OWNER TO {owner}")
            base.execute(f"GRANT USAGE ON SCHEMA snugdp TO {owner}")
            with pytest.raises(LedgerWriteError, match="only the owner of the tables can void records"):
                Ledger.void(option(alone, f"user={role}"), reason="I am not the owner")
            assert len(alone.rows()) == 4
            with Ledger.void(option(alone, f"user={owner}"), reason="written by hand") as mended:
                assert (mended.voids[0].first, mended.voids[0].last) == (junk[0].seq, junk[-1].seq)
            ledger.charge(TENTH, "another")
            with Ledger.open(option(alone, f"user={role}")) as own:
                assert own.verify().spent == Cost(epsilon="0.2")
        finally:
            base.execute(f"REASSIGN OWNED BY {owner} TO CURRENT_USER")
            for name in (role, owner):
                base.execute(f"DROP OWNED BY {name}")
                base.execute(f"DROP ROLE {name}")


def test_tables_that_any_member_could_void_in_are_used_and_guarded(alone: Where) -> None:
    """Those from before there were voids: as good as new ones for charges, and brought up to date by their owner."""
    start, end = (
        sql.MAKE.index('        IF strpos(NEW.record, \'"kind":"void"\')'),
        sql.MAKE.index("        RETURN NEW;"),
    )
    earlier = sql.MAKE[:start] + sql.MAKE[end:]
    assert digest(earlier) == "9e9b8befc41af12e7afd615a3ef3074975ca3dad40b8de78e3cde6df2ab10872"
    with as_owner(alone.address) as base:
        base.execute(earlier)
    with pytest.warns(UserWarning, match="earlier form"):
        ledger = made(alone)
    with ledger:
        ledger.charge(TENTH, "x")
        last = alone.rows()[-1]
        junk = write(last.hash, 2, "nonsense", stamp())
        with as_owner(alone.address) as base:
            base.execute("INSERT INTO snugdp.entry VALUES (%s, 2, %s, NULL, %s)", (alone.dataset, junk.text, junk.hash))
        with pytest.warns(UserWarning, match="earlier form"):
            mended = Ledger.void(alone.address, reason="nonsense")
        with mended:
            assert mended.spent == TENTH
        with as_owner(alone.address) as base:
            sources = base.execute("SELECT prosrc FROM pg_proc WHERE proname = 'comes_next'").fetchall()
        assert any("only the owner" in source for (source,) in sources)
        ledger.charge(TENTH, "y")
        assert ledger.verify().spent == Cost(epsilon="0.2")
