"""What another process can do to the file while a ledger is open: no receipt without a row."""

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import snugdp
from snugdp import Budget, Cost, Ledger, Receipt, TamperedLedgerError
from snugdp.ledger.anchors.anchor import try_lock
from snugdp.ledger.stores import sqlite
from snugdp.ledger.stores.sqlite import SQLiteStore
from tests.ledger.conftest import TENTH
from tests.ledger.faults import at_once, end_of_log, quick_folder

INTRUDERS = (
    "CREATE TRIGGER t BEFORE INSERT ON ledger BEGIN SELECT raise(ignore); END",
    "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN DELETE FROM ledger WHERE seq = NEW.seq; END",
    "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN UPDATE ledger SET record = '{}' WHERE seq = NEW.seq; END",
)


def behind_its_back(path: Path, statement: str) -> None:
    base = sqlite3.connect(path)
    base.execute(statement)
    base.close()


@pytest.mark.parametrize("schema_checked", [True, False])
def test_a_trigger_cannot_swallow_a_charge(
    somebody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema_checked: bool
) -> None:
    """The schema is compared inside the transaction; and without that, the row is read back."""
    path = tmp_path / "l"
    with Ledger.open(path, dataset="p", budget=Budget(1)) as ledger:
        ledger.charge(TENTH, "before")
        if not schema_checked:
            monkeypatch.setattr(SQLiteStore, "_check_schema", lambda *_: None)
        for intruder in INTRUDERS:
            behind_its_back(path, intruder)
            with pytest.raises(TamperedLedgerError):
                ledger.charge(TENTH, "x")
            with pytest.raises(TamperedLedgerError):
                snugdp.vote([1, 2], candidates=[1, 2], epsilon=0.1, ledger=ledger)
            behind_its_back(path, "DROP TRIGGER t")
            assert ledger.spent == TENTH
        ledger.charge(TENTH, "after")
        assert ledger.verify().spent == Cost(epsilon=0.2)


def test_views_and_indexes_are_noticed_while_it_is_open(somebody: None, tmp_path: Path) -> None:
    path = tmp_path / "l"
    with Ledger.open(path, dataset="p", budget=Budget(1)) as ledger:
        for kind, statement in (("VIEW", "CREATE VIEW v AS SELECT 1"), ("INDEX", "CREATE INDEX v ON ledger (hash)")):
            behind_its_back(path, statement)
            with pytest.raises(TamperedLedgerError, match="tables were changed"):
                ledger.charge(TENTH, "x")
            behind_its_back(path, f"DROP {kind} v")
        ledger.charge(TENTH, "x")


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder where nothing waits for a disk."""
    with quick_folder() as folder:
        yield folder


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def test_commits_overwrite_a_log_that_grows_in_steps(somebody: None, quick: Path) -> None:
    """A charge or two make no room; many do, a few times, and not beyond what SQLite begins again after."""
    path, sizes = quick / "l", list[int]()
    with Ledger.open(path, dataset="p", budget=Budget(10**4)) as ledger:
        for _ in range(1300):
            ledger.charge(TENTH, "x")
            sizes.append(log_of(path).stat().st_size)
    assert sizes[1] < 16_000
    assert len(set(sizes[10:])) < 15
    assert sizes[20] > end_after(20)
    assert sizes[-1] < 4_300_000
    assert not log_of(path).exists()
    with Ledger.open(path) as ledger:
        assert ledger.verify().spent == Cost(epsilon=130)


def end_after(charges: int) -> int:
    return 32 + charges * 4120


def test_a_log_with_room_ends_where_its_frames_end(somebody: None, tmp_path: Path) -> None:
    """Wherever a power cut leaves zeros instead of the frames that it lost, what came before is read, and no more."""
    path, receipts, ends = tmp_path / "l", list[Receipt](), list[int]()
    with Ledger.open(path, dataset="p", budget=Budget(100)) as ledger:
        for number in range(12):
            receipts.append(ledger.charge(TENTH, str(number)))
            ends.append(end_of_log(path))
        files = {name: (tmp_path / name).read_bytes() for name in ("l", "l-wal")}
    anchors = [tmp_path / "l.anchor", *tmp_path.rglob("anchors/*.anchor")]
    log, mark = files["l-wal"], anchors[0].read_bytes()
    assert len(log) > ends[-1]
    assert not any(log[ends[-1] :])
    for kept in range(5, 12):
        for cut in {ends[kept], ends[kept] - 1, ends[kept] - 4000, (ends[kept] + ends[kept - 1]) // 2}:
            path.write_bytes(files["l"])
            log_of(path).write_bytes(log[:cut].ljust(len(log), b"\0"))
            there = kept + 1 if cut == ends[kept] else kept
            with closing(sqlite3.connect(path)) as base:
                found = base.execute("SELECT hash FROM ledger WHERE seq > 0 ORDER BY seq").fetchall()
            expected = [(receipt.hash,) for receipt in receipts[:there]]
            assert found == expected, (kept, cut)
    path.write_bytes(files["l"])
    log_of(path).write_bytes(log[: ends[8]].ljust(len(log), b"\0"))
    assert anchors[0].read_bytes() == mark
    with pytest.raises(TamperedLedgerError, match="older copy"):
        Ledger.open(path)


@pytest.mark.parametrize("name", ["open", "write", "fstat"])
def test_a_charge_needs_no_room(somebody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """On a full disk, or where the log may not be opened, it is left to SQLite what to do."""
    path, plain, refused = tmp_path / "l", getattr(os, name), list[object]()

    def full(where: object, *rest: object) -> object:
        which = os.readlink(f"/proc/self/fd/{where}") if isinstance(where, int) else str(where)
        if which.endswith("-wal"):
            refused.append(where)
            raise OSError(errno.ENOSPC, "x")
        return plain(where, *rest)

    with Ledger.open(path, dataset="p", budget=Budget(100)) as ledger:
        monkeypatch.setattr(os, name, full)
        for _ in range(20):
            ledger.charge(TENTH, "x")
        monkeypatch.undo()
        assert refused
        assert log_of(path).stat().st_size == end_of_log(path)
        assert ledger.verify().spent == Cost(epsilon=2)


def test_a_log_is_copied_while_nobody_can_write(somebody: None, quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to SQLite 3.51.2 a commit during a copy may be forgotten. Nor does anybody wait for an anchor meanwhile."""
    path, said, held = quick / "l", list[str](), list[bool]()
    monkeypatch.setattr(sqlite, "_RECORDS_PER_COPY", 20)
    plain = SQLiteStore.tidy

    def tidy(self: SQLiteStore) -> None:
        if self._due:
            held.extend(not free(anchor) for anchor in (path.with_name("l.anchor"), *quick.rglob("anchors/*.anchor")))
        plain(self)

    monkeypatch.setattr(SQLiteStore, "tidy", tidy)
    with Ledger.open(path, dataset="p", budget=Budget(100)) as ledger, Ledger.open(path) as other:
        store = ledger._handle.store
        assert isinstance(store, SQLiteStore)
        assert store._sql.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
        store._sql.set_trace_callback(said.append)
        before = path.stat().st_size
        for number in range(50):
            (other if number % 4 == 2 else ledger).charge(TENTH, "x" * 500)
        copies = [line for line in said if "wal_checkpoint" in line]
        assert copies == ["PRAGMA wal_checkpoint(FULL)"] * 2
        assert held
        assert not any(held)
        assert path.stat().st_size > before
        assert store._sql.execute("PRAGMA busy_timeout").fetchone() == (30_000,)
        assert ledger.verify().charges == 50


def free(anchor: Path) -> bool:
    handle = os.open(anchor, os.O_RDWR)
    try:
        return try_lock(handle, str(anchor))
    finally:
        os.close(handle)


def test_the_log_of_large_outputs_is_cut(somebody: None, quick: Path) -> None:
    path = quick / "l"
    with Ledger.open(path, dataset="p", budget=Budget(100)) as ledger:
        receipts = [ledger.charge(TENTH, "x") for _ in range(4)]
        for receipt in receipts:
            ledger.settle(receipt, "7" * 3_000_000)
        assert log_of(path).stat().st_size < 7_000_000
        ledger.charge(TENTH, "x")
        ledger.charge(TENTH, "x")
        assert log_of(path).stat().st_size < 4_300_000
        assert [ledger.recall(receipt) for receipt in receipts] == ["7" * 3_000_000] * 4


def test_room_is_never_made_over_frames(somebody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the length of the log is told as it was before, as a file system with a cache of its own may."""
    path, made = tmp_path / "l", list[int]()
    with Ledger.open(path, dataset="p", budget=Budget(100)) as ledger:
        for _ in range(20):
            ledger.charge(TENTH, "x")
        store, plain = ledger._handle.store, os.fstat
        assert isinstance(store, SQLiteStore)

        def stale(handle: int) -> os.stat_result:
            found = list(plain(handle))
            found[stat.ST_SIZE] = made[-1]
            return os.stat_result(found)

        monkeypatch.setattr(os, "fstat", stale)
        for length in (50, 5000, 40_000):
            made.append(length)
            store._length = length
            store._make_room()
        monkeypatch.undo()
        assert ledger.charge(TENTH, "x").sequence == 21
        assert ledger.verify().spent == Cost(epsilon=Fraction(21, 10))
    with Ledger.open(path) as later:
        assert later.verify().charges == 21


def test_many_processes_make_room_in_one_log(somebody: None, tmp_path: Path) -> None:
    """Each of them under the write lock, behind what all the others have written."""
    path = tmp_path / "l"

    def work(number: int) -> Iterator[object]:
        with Ledger.open(path) as own:
            yield own.spent
            for _ in range(30):
                yield own.charge(TENTH, str(number)).sequence

    with Ledger.open(path, dataset="p", budget=Budget(100)) as ledger:
        assert [code for code, _ in at_once(4, work)] == [0] * 4
        assert ledger.verify().spent == Cost(epsilon=12)
