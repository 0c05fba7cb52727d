"""A copy, a restored folder or database, a new name: noticed by whoever has seen the ledger; adopted for the record."""

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from snugdp import Budget, BudgetExceededError, Cost, Ledger, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.anchors.anchor import FileAnchor, Mark, OpenAnchor
from snugdp.ledger.anchors.recognition import UserAnchor, state_folder
from snugdp.ledger.stores.postgres.url import Url
from snugdp.ledger.stores.sqlite import SQLiteStore
from tests.ledger.conftest import BUDGET, TENTH, Where, another_user, as_owner, made, new_database
from tests.ledger.faults import failing
from tests.ledger.test_faults_bits import replaced

FIFTH = Cost(epsilon=0.2)
__all__ = ["BUDGET"]  # for the fixture ``ledger``


@pytest.fixture
def folder(somebody: None, tmp_path: Path) -> Path:
    """A folder with a ledger in which one tenth was spent."""
    (tmp_path / "one").mkdir()
    with Ledger.open(tmp_path / "one" / "l", dataset="p", budget=Budget(1)) as ledger:
        ledger.charge(TENTH, "first", key="first")
    return tmp_path / "one"


def charged(path: Path) -> Cost:
    """What is spent there after one more tenth."""
    with Ledger.open(path) as ledger:
        ledger.charge(TENTH, "x")
        return ledger.spent


# -- copies


def test_a_copied_folder_is_no_second_budget(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "two" / "l"
    shutil.copytree(folder, copy.parent)
    with pytest.raises(TamperedLedgerError, match=r"is a copy.*snugdp ledger adopt"):
        charged(copy)
    assert charged(folder / "l") == FIFTH
    with pytest.raises(TamperedLedgerError, match=r"older copy.*snugdp ledger adopt"):
        charged(copy)
    with pytest.raises(LedgerError):  # neither with an anchor of its own
        Ledger.open(copy, anchor=folder / "l.anchor")
    assert charged(folder / "l") == Cost(epsilon="0.3")


def test_a_restored_folder_is_no_older_budget(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "backup")
    charged(folder / "l")
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    with pytest.raises(TamperedLedgerError, match="older copy"):
        charged(folder / "l")


def test_who_has_never_seen_it_cannot_notice(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the documentation says that nobody can: the copy is taken to somebody who knows nothing."""
    shutil.copytree(folder, tmp_path / "two")
    charged(folder / "l")
    another_user(monkeypatch, tmp_path / "elsewhere")
    assert charged(tmp_path / "two" / "l") == FIFTH
    with pytest.raises(TamperedLedgerError, match="older copy"):  # but not both
        charged(folder / "l")


@pytest.mark.parametrize("how", ["renamed", "copied and deleted", "linked", "replaced by its like"])
def test_a_move_is_no_copy(folder: Path, tmp_path: Path, how: str) -> None:
    new = tmp_path / "two"
    if how == "renamed":
        folder.rename(new)
    elif how == "linked":
        new.symlink_to(folder)
    elif how == "copied and deleted":
        shutil.copytree(folder, new)
        shutil.rmtree(folder)
        Ledger.open(folder.parent / "else", dataset="p", budget=Budget(1)).close()
    else:
        shutil.copytree(folder, tmp_path / "meanwhile")
        shutil.rmtree(folder)
        new = (tmp_path / "meanwhile").rename(folder)
    assert charged(new / "l") == FIFTH
    assert charged(new / "l") == Cost(epsilon="0.3")


def test_another_ledger_at_the_old_place_is_no_copy(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "two")
    for path in folder.iterdir():
        path.unlink()
    with Ledger.open(folder / "l", dataset="q", budget=Budget(1)):
        assert charged(tmp_path / "two" / "l") == FIFTH


def test_two_copies_that_are_open_do_not_both_charge(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if a copy was taken for the ledger: what either has charged, the other one lacks."""
    with Ledger.open(folder / "l") as one:
        for name in ("l", "l.anchor"):
            (tmp_path / "two").mkdir(exist_ok=True)
            shutil.copy(folder / name, tmp_path / "two" / name)
        with sqlite3.connect(folder / "l") as source, sqlite3.connect(tmp_path / "two" / "l") as target:
            source.backup(target)
        source.close()
        target.close()
        monkeypatch.setattr(SQLiteStore, "may_hold", lambda *_: False)
        with Ledger.open(tmp_path / "two" / "l") as other:
            one.charge(TENTH, "x")
            with pytest.raises(TamperedLedgerError, match="older copy"):
                other.charge(TENTH, "x")
            assert one.spent == FIFTH


def test_what_another_copy_charges_between_two_looks_at_an_anchor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An anchor that was behind is moved in a look without its lock; what is found under the lock counts."""
    with Ledger.open(folder / "l") as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(OpenAnchor, "advance", lambda *_: None)  # as if it had died there
            last = ledger.charge(TENTH, "x").sequence
        plain = FileAnchor.open

        def raced(self: FileAnchor, hold: bool = False) -> OpenAnchor:
            opened = plain(self, hold)
            if isinstance(self, UserAnchor) and not hold:
                with plain(self) as other:
                    other.advance(Mark(ledger.identity, last + 5, "f" * 64))
            return opened

        monkeypatch.setattr(FileAnchor, "open", raced)
        with pytest.raises(TamperedLedgerError, match="older copy"):
            ledger.partition("region", ["north", "south"])
        monkeypatch.undo()
        with sqlite3.connect(folder / "l") as base:
            assert base.execute("SELECT max(seq) FROM ledger").fetchone() == (last,)
        base.close()


def test_a_ledger_with_two_names_is_refused(folder: Path) -> None:
    os.link(folder / "l", folder / "m")
    for name in ("l", "m"):
        with pytest.raises(LedgerError, match=r"hard links|missing"):
            Ledger.open(folder / name)
    (folder / "m").unlink()
    assert charged(folder / "l") == FIFTH


# -- adopting


def test_what_is_adopted_is_the_ledger_from_then_on(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "two" / "l"
    shutil.copytree(folder, copy.parent)
    charged(folder / "l")
    with pytest.raises(ValueError, match="say what was spent on the records that are lost"):
        Ledger.adopt(copy, reason="the disk broke")
    with pytest.raises(BudgetExceededError):
        Ledger.adopt(copy, reason="the disk broke", lost_epsilon=1)
    with pytest.raises(ValueError, match="say why"):
        Ledger.adopt(copy, reason=" ")
    with Ledger.adopt(copy, reason="the disk broke", by="ann", lost_epsilon="0.1") as ledger:
        (adoption,) = ledger.adoptions
        assert (adoption.by, adoption.reason, adoption.place) == ("ann", "the disk broke", str(copy))
        assert [seq for seq, _ in adoption.lost] == [2]
        assert adoption.time
        assert ledger.spent == FIFTH  # what was lost is charged again
        ledger.verify()
    assert charged(copy) == Cost(epsilon="0.3")
    with pytest.raises(TamperedLedgerError):
        charged(folder / "l")
    with pytest.raises(ValueError, match="nothing to adopt"):
        Ledger.adopt(copy, reason="again")


def test_who_knows_no_more_accepts_what_somebody_adopted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        another_user(patch, tmp_path / "ben")
        Ledger.open(folder / "l").close()
    with monkeypatch.context() as patch:
        another_user(patch, tmp_path / "eve")
        assert charged(folder / "l") == FIFTH
    (tmp_path / "two").mkdir()
    for name in ("l", "l.anchor"):
        shutil.copy(folder / name, tmp_path / "two" / name)
    with Ledger.adopt(tmp_path / "two" / "l", reason="a larger disk") as ledger:
        assert ledger.adoptions[0].lost == ()
    for name in ("ben", "eve"):  # both have seen no record that is not in it
        with monkeypatch.context() as patch:
            another_user(patch, tmp_path / name)
            charged(tmp_path / "two" / "l")
            with pytest.raises(TamperedLedgerError):
                charged(folder / "l")


@pytest.mark.parametrize("fault", ["missing", "garbled"])
def test_an_anchor_that_is_lost_is_made_again_for_the_record(folder: Path, fault: str) -> None:
    anchor = folder / "l.anchor"
    anchor.unlink() if fault == "missing" else anchor.write_bytes(b"x")
    with pytest.raises(TamperedLedgerError, match=r"anchor.*snugdp ledger adopt"):
        charged(folder / "l")
    with Ledger.adopt(folder / "l", reason="the anchor was deleted") as ledger:
        assert ledger.adoptions[0].lost == ()
    assert charged(folder / "l") == FIFTH


def test_the_anchor_of_another_ledger_is_not_adopted(folder: Path, tmp_path: Path) -> None:
    Ledger.open(tmp_path / "other", dataset="p", budget=Budget(1)).close()
    before = (tmp_path / "other.anchor").read_bytes()
    with pytest.raises(ValueError, match="another ledger"):
        Ledger.adopt(folder / "l", reason="x", anchor=tmp_path / "other.anchor")
    assert (tmp_path / "other.anchor").read_bytes() == before


def test_a_changed_history_is_not_adopted(where: Where) -> None:
    with made(where) as ledger:
        ledger.charge(TENTH, "x")
        ledger.charge(TENTH, "y")
    rows = where.rows()
    replaced(where, [rows[0], rows[2]._replace(seq=1)])
    with pytest.raises(TamperedLedgerError):
        Ledger.adopt(where.address, reason="x", lost_epsilon=0)


# -- where it is remembered


def test_only_the_user_reads_what_is_remembered(where: Where) -> None:
    with made(where) as ledger:
        anchor = Path(UserAnchor(ledger.identity).place)
    assert anchor.is_relative_to(state_folder())
    assert [path.stat().st_mode & 0o777 for path in (anchor, anchor.with_suffix(".place"))] == [0o600] * 2
    assert anchor.parent.stat().st_mode & 0o777 == 0o700


def test_an_open_ledger_needs_what_is_remembered(where: Where) -> None:
    with made(where) as ledger:
        Path(UserAnchor(ledger.identity).place).unlink()
        with pytest.raises(TamperedLedgerError, match="missing"):
            ledger.charge(TENTH, "x")
    assert len(where.rows()) == 1


def test_a_folder_that_cannot_be_had(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for state, words in ((str(tmp_path / "file" / "x"), "SNUGDP_STATE"), ("relative", "absolute")):
        monkeypatch.setenv("SNUGDP_STATE", state)
        with pytest.raises(LedgerWriteError, match=words):
            charged(folder / "l")
    monkeypatch.delenv("SNUGDP_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    assert charged(folder / "l") == FIFTH
    assert len(list((tmp_path / "home" / "snugdp" / "anchors").glob("*.anchor"))) == 1
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", failing(RuntimeError("no home")))
    with pytest.raises(LedgerWriteError, match="no home in which"):
        charged(folder / "l")


def test_a_read_only_anchor_is_noticed_before_the_commit(
    where: Where, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: Callable[..., int] = os.open

    def read_only(path: str, flags: int, *mode: int) -> int:
        if str(path).endswith(".anchor") and flags & os.O_RDWR:
            raise OSError(30, "x")
        return plain(path, flags, *mode)

    monkeypatch.setattr(os, "open", read_only)
    assert ledger.spent == Cost()  # it can be looked at
    with pytest.raises(LedgerWriteError, match=r"anchor.*Nothing was charged"):
        ledger.charge(TENTH, "x")
    monkeypatch.undo()
    assert len(where.rows()) == 1
    ledger.charge(TENTH, "x")


# -- PostgreSQL: names of hosts, restored databases


def renamed(where: Where) -> str:
    """The same server under another name: another path to its socket."""
    url = Url.parse(where.address)
    host = url.parts["host"]
    if not host.startswith("/"):
        pytest.skip("the server has one name")
    assert Url.parse(where.address.replace("%2F", "%2F%2F", 1)).anchor() != url.anchor()
    return where.address.replace("%2F", "%2F%2F", 1)


def test_a_restored_database_under_another_name(alone: Where) -> None:
    other = renamed(alone)
    with made(alone) as ledger:
        ledger.charge(TENTH, "first")
        rows = alone.rows()
        ledger.charge(TENTH, "second")
    with Ledger.open(other) as ledger:  # a new name alone is no news
        assert ledger.spent == FIFTH
    replaced(alone, rows)
    for address in (other, alone.address, other.replace("%2F%2F", "%2F%2F%2F", 1)):
        with pytest.raises(TamperedLedgerError, match="older copy"):
            Ledger.open(address)
    with Ledger.adopt(other, reason="the newest backup", lost_epsilon="0.1") as ledger:
        assert ledger.spent == FIFTH
    for address in (other, alone.address):
        with Ledger.open(address) as ledger:
            assert ledger.spent == FIFTH


def test_anchors_from_before_they_had_identities(alone: Where, tmp_path: Path) -> None:
    """Named by the address as typed; they are found whatever is typed now."""
    other = renamed(alone)
    with made(alone) as ledger:
        ledger.charge(TENTH, "first")
        identity = ledger.identity
    rows = alone.rows()
    index = FileAnchor(Url.parse(alone.address).anchor())
    index.reset(Mark(identity, rows[-1].seq, rows[-1].hash))
    shutil.rmtree(Path(state_folder(), "anchors"))
    with Ledger.open(other) as ledger:
        assert ledger.spent == TENTH
    shutil.rmtree(Path(state_folder(), "anchors"))
    replaced(alone, rows[:1])
    with pytest.raises(TamperedLedgerError, match="older copy"):
        Ledger.open(other)


def test_another_database_is_a_copy(alone: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(alone) as ledger:
        ledger.charge(TENTH, "first")
    with monkeypatch.context() as patch:
        another_user(patch, tmp_path / "ben")
        Ledger.open(alone.address).close()
    with new_database() as url:
        with Ledger.open(url, dataset="any", budget=Budget(1)):
            pass
        with as_owner(url) as base, base.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for row in alone.rows():
                cursor.execute("INSERT INTO snugdp.entry VALUES (%s, %s, %s, %s, %s)", (alone.dataset, *row))
            cursor.execute("INSERT INTO snugdp.head VALUES (%s, %s, %s)", (alone.dataset, row.seq, row.hash))
        copy = Url.parse(url, alone.dataset).whole
        with pytest.raises(TamperedLedgerError, match=r"is a copy.*the database \d+ of the PostgreSQL server \d+"):
            Ledger.open(copy)
        with Ledger.adopt(copy, reason="a new server") as ledger:
            ledger.charge(TENTH, "second")
        with pytest.raises(TamperedLedgerError):
            Ledger.open(alone.address)
        with monkeypatch.context() as patch:
            another_user(patch, tmp_path / "ben")  # one has adopted it for all who know no more
            with Ledger.open(copy) as ledger:
                assert ledger.spent == FIFTH


def test_a_state_that_cannot_be_read_is_said(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        another_user(patch, tmp_path / "ann")
        patch.setattr(Path, "glob", failing(PermissionError(13, "x")))
        with pytest.raises(LedgerWriteError, match=r"ann could not be read.*SNUGDP_STATE"):
            Ledger.open(folder / "l")
    assert charged(folder / "l") == FIFTH


@pytest.mark.parametrize("composition", ["addition", "tight", "both"])
def test_what_nobody_knows_is_all_that_is_left(where: Where, composition: str) -> None:
    """What the refusal says can be given as it stands; more than that cannot have been spent."""
    with made(where, Budget(1, 1e-6), composition=composition) as ledger:
        ledger.charge(TENTH, "x")
        identity = ledger.identity
    UserAnchor(identity).reset(Mark(identity, 9, "f" * 64))  # as if records were lost
    with pytest.raises(ValueError, match=r"What nobody knows is all that is left: epsilon") as refused:
        Ledger.adopt(where.address, reason="restored")
    left = re.search(r"epsilon ([^ ]+) and delta ([^ ]+)$", str(refused.value))
    assert left is not None
    with pytest.raises(BudgetExceededError, match=r"all that is left.*Nothing was changed"):
        Ledger.adopt(where.address, reason="restored", lost_epsilon=1, lost_delta=1e-6)
    assert len(where.rows()) == 2
    with Ledger.adopt(where.address, reason="restored", lost_epsilon=left[1], lost_delta=left[2]) as ledger:
        assert not ledger.affords(Cost(epsilon="0.001"))
