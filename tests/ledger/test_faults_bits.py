"""Flipped bits and rewritten histories: refused, or nothing of what was spent and shown has changed."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snugdp import Cost, Ledger, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.core.outcome import Receipt
from snugdp.ledger.history.records import Row, digest
from tests.effort import often, repeated, sampled
from tests.ledger.conftest import BUDGET, TENTH, Where, another_user, as_owner, made
from tests.ledger.faults import anchored, end_of_log, forged, quick_folder

FLIPS = often(150, 500, 2000)


def history(ledger: Ledger) -> Receipt:
    """One of everything: parts, a reservation, a charge within it, outputs, a key without an output. The last one."""
    ledger.partition("region", ["north", "south"])
    ledger.settle(ledger.charge(TENTH, "x", key="k"), '{"refused":false,"value":7}')
    work = ledger.reserve(TENTH, "long work", key="work")
    ledger.settle(work.charge(Cost(epsilon=0.05), "a step", key="step"), "8")
    ledger.part("region", "north").charge(TENTH, "y", key="north")
    return ledger.charge(Cost(epsilon=0.1, delta=1e-7), "z", key="last")


SPENT = Cost(epsilon=0.4, delta=1e-7)


def seen(ledger: Ledger) -> tuple[object, ...]:
    """All that a ledger tells."""
    records = json.loads(ledger.export())["records"]
    return ledger.verify().spent, ledger.entries(), tuple(tuple(sorted(row.items(), key=str)) for row in records)


@pytest.mark.slow
@repeated
def test_flipped_bits() -> None:
    """In the file of a closed ledger; in file, log and anchor as a killed process leaves them."""
    names = ("l", "l-wal", "l.anchor")
    with quick_folder() as folder:
        with Ledger.open(folder / "l", dataset="p", budget=BUDGET) as ledger:
            history(ledger)
            whole = seen(ledger)
            at_work = {name: (folder / name).read_bytes() for name in names}
        closed = {name: (folder / name).read_bytes() for name in ("l", "l.anchor")}
        assert whole[0] == SPENT
        cases = [(at_work, name) for name in names] + [(closed, name) for name in closed]
        told = {id(files): {n: [i for i, byte in enumerate(f) if byte] for n, f in files.items()} for files, _ in cases}
        chooser, refused, same = random.Random(10), dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        for number in range(FLIPS):
            files, name = cases[number % len(cases)]
            changed = bytearray(files[name])
            place = chooser.randrange(len(changed)) if chooser.random() < 0.3 else chooser.choice(told[id(files)][name])
            changed[place] ^= 1 << chooser.randrange(8)
            for leftover in folder.iterdir():
                leftover.unlink()
            for each, content in files.items():
                (folder / each).write_bytes(changed if each == name else content)
            try:
                with Ledger.open(folder / "l") as ledger:
                    assert seen(ledger) == whole, (name, place)
                    same[name] += 1
            except (TamperedLedgerError, LedgerWriteError):
                refused[name] += 1
    assert sum(refused.values()) + sum(same.values()) == FLIPS
    assert refused["l"] > 0.15 * FLIPS
    assert refused["l-wal"] > 0.15 * FLIPS
    assert same["l.anchor"] > 0.15 * FLIPS  # one slot of two is enough, and it is never ahead


# -- rows, changed behind the ledger's back


def putting(**new: Any) -> Callable[[dict[str, Any]], None]:
    """A change of a record: these of its fields."""
    return lambda fields: fields.update(new)


CAP = putting(budget={"epsilon": "9", "delta": "1/1000"})
SPEND, RUNNING = (putting(**{name: {"epsilon": "1/100"}}) for name in ("cost", "total"))


def only(rows: list[Row], at: int, change: Callable[[dict[str, Any]], None]) -> list[Row]:
    """One row with a hash that fits it; the next one does not know it."""
    return [*rows[:at], forged(rows, at, change)[at], *rows[at + 1 :]]


def unhashed(rows: list[Row], at: int, old: str, new: str) -> list[Row]:
    assert old in rows[at].record
    return [*rows[:at], rows[at]._replace(record=rows[at].record.replace(old, new)), *rows[at + 1 :]]


def swapped(rows: list[Row], one: int, other: int) -> list[Row]:
    result = list(rows)
    result[one], result[other] = rows[other]._replace(seq=one), rows[one]._replace(seq=other)
    return result


def without(rows: list[Row], at: int) -> list[Row]:
    """A record lost, and everything after it made to fit."""
    kept = [row._replace(seq=number) for number, row in enumerate(row for row in rows if row.seq != at)]

    def renumber(row: Row) -> Row:
        return row._replace(record=json.dumps({**json.loads(row.record), "seq": row.seq}))

    return forged([renumber(row) for row in kept], -1, lambda fields: None)


def bodied(rows: list[Row], at: int, body: str | None) -> list[Row]:
    return [row._replace(body=body) if row.seq == at else row for row in rows]


def rebodied(rows: list[Row], at: int, body: str) -> list[Row]:
    """Another output, with its hash in the record and the chain made to fit."""
    return forged(bodied(rows, at, body), at, putting(body=digest(body)))


# 0 genesis, 1 partition, 2 charge, 3 its output, 4 reservation, 5 a charge within it, 6 its output, 7 a part, 8 last
CHANGES: dict[str, Callable[[list[Row]], list[Row]]] = {
    "the tail deleted": lambda rows: rows[:-1],
    "all but genesis deleted": lambda rows: rows[:1],
    "everything deleted": lambda rows: [],
    "genesis deleted": lambda rows: rows[1:],
    "a charge deleted": lambda rows: [row for row in rows if row.seq != 7],
    "a charge deleted, the chain made to fit": lambda rows: without(rows, 7),
    "a record deleted, the others numbered anew": lambda rows: [
        row._replace(seq=number) for number, row in enumerate(row for row in rows if row.seq != 3)
    ],
    "a row added": lambda rows: [*rows, Row(9, '{"kind":"charge"}', None, digest('{"kind":"charge"}'))],
    "two charges swapped": lambda rows: swapped(rows, 7, 8),
    "a charge twice": lambda rows: [*rows, rows[-1]._replace(seq=9)],
    "the cap edited": lambda rows: unhashed(rows, 0, '"epsilon":"1"', '"epsilon":"9"'),
    "the cap edited, genesis made to fit": lambda rows: only(rows, 0, CAP),
    "the cap edited, the chain made to fit": lambda rows: forged(rows, 0, CAP),
    "a spend edited": lambda rows: unhashed(rows, 8, '"epsilon":"1/10"', '"epsilon":"1/99"'),
    "a spend edited, its hash made to fit": lambda rows: only(rows, 7, SPEND),
    "a spend edited, the chain made to fit": lambda rows: forged(rows, 8, SPEND),
    "a total edited": lambda rows: unhashed(rows, 8, '"total":{"delta"', '"total":{"selta"'),
    "a total edited, the chain made to fit": lambda rows: forged(rows, 8, RUNNING),
    "an output edited": lambda rows: bodied(rows, 3, '{"refused":false,"value":9}'),
    "an output edited, the chain made to fit": lambda rows: rebodied(rows, 6, "9"),
    "an output deleted": lambda rows: bodied(rows, 3, None),
    "the record of an output deleted, the chain made to fit": lambda rows: without(rows, 6),
    "an output put beside a charge": lambda rows: bodied(rows, 8, "9"),
    "a part moved, the chain made to fit": lambda rows: forged(rows, 7, putting(part=["region", "south"])),
    "a whole charge made one of the reservation": lambda rows: forged(rows, 8, putting(within=4)),
    "a newer format": lambda rows: forged(rows, 0, putting(format=4)),
}


def replaced(where: Where, rows: list[Row]) -> None:
    """Everything that the store itself knows is made to fit; the anchor in its file is not touched."""
    where.replace(rows)
    if where.kind == "postgres":
        with as_owner(where.address) as base:
            base.execute("SET LOCAL session_replication_role = replica")
            base.execute("DELETE FROM snugdp.head WHERE dataset = %s", (where.dataset,))
            if rows:
                head = (where.dataset, rows[-1].seq, rows[-1].hash)
                base.execute("INSERT INTO snugdp.head (dataset, seq, hash) VALUES (%s, %s, %s)", head)


def test_changed_rows(where: Where) -> None:
    with made(where) as ledger:
        last = history(ledger)
    rows, anchor = where.rows(), where.anchor.read_bytes()
    for name, change in CHANGES.items():
        replaced(where, change(rows))
        with pytest.raises(TamperedLedgerError):
            pytest.fail(f"{name}: {Ledger.open(where.address).spent}")
        with pytest.raises(LedgerError):  # and it is not made again
            pytest.fail(f"{name}: {made(where).spent}")
        assert where.anchor.read_bytes() == anchor
    replaced(where, rows)
    with Ledger.open(where.address, receipts=[last]) as ledger:
        assert ledger.verify().spent == SPENT


@sampled(4)
@pytest.mark.parametrize("name", [name for name in CHANGES if "tail" in name or "chain" in name or "newer" in name])
def test_a_receipt_sees_what_a_rewritten_anchor_does_not(where: Where, name: str) -> None:
    """Somebody rewrites the ledger and the anchor: the rules may catch it, and a receipt held elsewhere does."""
    with made(where) as ledger:
        last = history(ledger)
    rows = CHANGES[name](where.rows())
    replaced(where, rows)
    anchored(where.anchor, rows)
    with pytest.raises(TamperedLedgerError, match="newer version" if name == "a newer format" else None):
        Ledger.open(where.address, receipts=[last])
    if name in ("a total edited, the chain made to fit", "a newer format"):  # the sums are computed again
        with pytest.raises(TamperedLedgerError):
            Ledger.open(where.address)


def test_an_open_ledger_goes_on_with_what_it_knows(where: Where, ledger: Ledger) -> None:
    """Older rows that change behind its back never lower what it holds as spent."""
    history(ledger)
    rows = where.rows()
    for name, change in CHANGES.items():
        replaced(where, change(rows))
        try:
            assert ledger.spent == SPENT, name
            with pytest.raises(TamperedLedgerError):
                ledger.verify()
        except TamperedLedgerError:
            pass
        replaced(where, rows)
    assert ledger.verify().spent == SPENT


def test_triggers_that_were_disabled(alone: Where) -> None:
    with Ledger.open(alone.address, dataset=alone.dataset, budget=BUDGET) as ledger:
        history(ledger)
        with as_owner(alone.address) as base:
            base.execute("ALTER TABLE snugdp.entry DISABLE TRIGGER ALL")
        with pytest.raises(TamperedLedgerError, match="trigger"):
            ledger.charge(TENTH, "x")
        with as_owner(alone.address) as base:
            base.execute("DELETE FROM snugdp.entry WHERE seq = 8")
            base.execute("ALTER TABLE snugdp.entry ENABLE TRIGGER ALL")
        with pytest.raises(TamperedLedgerError):
            ledger.charge(TENTH, "x")
    with pytest.raises(TamperedLedgerError):
        Ledger.open(alone.address)


def test_tables_from_an_older_backup(alone: Where) -> None:
    """Everything on the server is as it was some time ago; this machine remembers more."""
    with Ledger.open(alone.address, dataset=alone.dataset, budget=BUDGET) as ledger:
        ledger.charge(TENTH, "x")
        with as_owner(alone.address) as base:
            for table in ("entry", "head"):
                base.execute(f"CREATE TABLE public.old_{table} AS TABLE snugdp.{table}")
        ledger.charge(TENTH, "y")
        with as_owner(alone.address) as base:
            base.execute("SET LOCAL session_replication_role = replica")
            for table in ("entry", "head"):
                base.execute(f"DELETE FROM snugdp.{table}")
                base.execute(f"INSERT INTO snugdp.{table} TABLE public.old_{table}")
                base.execute(f"DROP TABLE public.old_{table}")
        with pytest.raises(TamperedLedgerError):
            ledger.charge(TENTH, "z")
    with pytest.raises(TamperedLedgerError, match="older copy"):
        Ledger.open(alone.address)


# -- files


class Copies:
    """The files of a ledger at several times; a process that was killed leaves the log behind."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "l"
        with Ledger.open(self.path, dataset="p", budget=BUDGET) as ledger:
            ledger.charge(TENTH, "first")
            self.early = self._files()
        self.early_closed = self._files()
        with Ledger.open(self.path) as ledger:
            history(ledger)
            self.late, self.late_end = self._files(), end_of_log(self.path)
        self.late_closed = self._files()

    def _files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.glob("l*") if path.suffix != ".lock"}

    def put(self, *files: dict[str, bytes]) -> Path:
        """Nothing but these files."""
        for path in self.folder.iterdir():
            path.unlink()
        for each in files:
            for name, content in each.items():
                (self.folder / name).write_bytes(content)
        return self.path


def chosen(files: dict[str, bytes], *names: str) -> dict[str, bytes]:
    return {name: files[name] for name in names}


def test_copies_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    copies = Copies(tmp_path / "folder")
    early, late, closed = copies.early, copies.late, copies.late_closed
    another_user(monkeypatch, tmp_path / "somebody else")
    anchor = chosen(closed, "l.anchor")
    total = Cost(epsilon=0.5, delta=1e-7)
    for good in ([late], [closed], [chosen(late, "l", "l-wal"), anchor], [closed, chosen(early, "l.anchor")]):
        with Ledger.open(copies.put(*good)) as ledger:  # an anchor that is behind is legal
            assert ledger.verify().spent == total
    for number, bad in enumerate(
        (
            [early],  # everything went back together: only who has seen more can tell
            [chosen(late, "l"), anchor],  # a copy without its log
            [chosen(early, "l"), anchor],
            [chosen(early, "l", "l-wal"), anchor],
            [early, anchor],
            [copies.early_closed, anchor],
            [chosen(early, "l"), anchor, {"l-wal": late["l-wal"][: copies.late_end // 2]}],
            [chosen(late, "l"), chosen(early, "l-wal"), anchor],
            [chosen(closed, "l")],  # the anchor is missing
            [closed, {"l.anchor": b""}],
            [closed, {"l.anchor": closed["l.anchor"][:5000].replace(b" 1", b" 2")}],
            [closed, {"l.anchor": bytes(8192)}],
            [chosen(closed, "l.anchor")],  # the ledger is missing
            [chosen(late, "l-wal", "l.anchor")],
            [closed, {"l": b""}],
            [closed, {"l": closed["l"][:4096]}],
            [closed, {"l": closed["l"][:-4096]}],
        )
    ):
        for said in ({}, {"dataset": "p", "budget": BUDGET}):
            if number == 1:  # from here on as a user who has never seen it
                another_user(monkeypatch, tmp_path / f"{number} {len(said)}")
            copies.put(*bad)
            with pytest.raises((TamperedLedgerError, LedgerWriteError)):
                pytest.fail(f"{number}: {Ledger.open(copies.path, **said).spent}")  # type: ignore[arg-type]
    with Ledger.open(tmp_path / "other", dataset="p", budget=BUDGET):
        other = (tmp_path / "other.anchor").read_bytes()
    copies.put(closed, {"l.anchor": other})
    with pytest.raises(TamperedLedgerError, match="another ledger"):
        Ledger.open(copies.path)
    another_user(monkeypatch, tmp_path / "nobody")
    copies.put(early)  # everything went back together, and this user has seen no more: only a receipt can tell
    with Ledger.open(copies.path) as ledger:
        assert ledger.spent == TENTH
        later = ledger.charge(TENTH, "x")
    another_user(monkeypatch, tmp_path / "nobody yet")
    copies.put(early)
    with pytest.raises(TamperedLedgerError, match="older copy"):
        Ledger.open(copies.path, receipts=[later])


def test_a_log_of_an_earlier_ledger_is_not_played_into_a_new_one(tmp_path: Path) -> None:
    """Somebody deletes a ledger and its anchor, but not the log, and makes a new one."""
    copies = Copies(tmp_path)
    copies.put(chosen(copies.late, "l-wal"))
    with pytest.raises(LedgerError, match="log"):
        Ledger.open(copies.path, dataset="p", budget=BUDGET)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l-wal", "l.lock"]
    (tmp_path / "l-wal").unlink()
    Ledger.open(copies.path, dataset="p", budget=BUDGET).close()


def test_a_file_put_back_under_an_open_ledger(tmp_path: Path) -> None:
    """In place, so that it is the same inode: the head that was seen is gone."""
    with Ledger.open(tmp_path / "l", dataset="p", budget=BUDGET) as ledger:
        early = (tmp_path / "l").read_bytes()
        ledger.charge(TENTH, "x")
        ledger._handle.store.release()  # as before a fork: the log is put away
        shutil.copy(tmp_path / "l", tmp_path / "late")
        (tmp_path / "l").write_bytes(early)
        with pytest.raises(TamperedLedgerError, match="older"):
            ledger.charge(TENTH, "y")
        (tmp_path / "l").write_bytes((tmp_path / "late").read_bytes())
        ledger._handle.store.release()
        assert ledger.spent == TENTH
