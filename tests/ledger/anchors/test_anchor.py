"""The anchor: never behind what it was told, never a wrong answer, refused when in doubt."""

import os
import random
from pathlib import Path

import pytest

from snugdp.ledger.anchors import anchor as module
from snugdp.ledger.anchors.anchor import FileAnchor, Mark, locked, try_lock
from snugdp.ledger.errors import LedgerWriteError, TamperedLedgerError
from tests.ledger.faults import failing, in_threads

ID = "0" * 32


def mark(seq: int, ledger: str = ID) -> Mark:
    return Mark(ledger, seq, f"{seq:064x}")


@pytest.fixture
def anchor(tmp_path: Path) -> FileAnchor:
    made = FileAnchor(tmp_path / "a.anchor")
    made.create(mark(0))
    return made


def test_it_remembers_and_never_moves_back(anchor: FileAnchor) -> None:
    for seq in (1, 2, 5, 3, 5, 4):
        anchor.advance(mark(seq))
    assert anchor.read() == mark(5)
    assert FileAnchor(anchor.place).read() == mark(5)
    anchor.close()
    assert os.stat(anchor.place).st_mode & 0o777 == 0o600


def test_it_is_never_made_over_another(anchor: FileAnchor) -> None:
    anchor.advance(mark(3))
    with pytest.raises(LedgerWriteError, match="exists"):
        FileAnchor(anchor.place).create(mark(0))
    assert anchor.read() == mark(3)


def test_missing_is_refused_and_not_made_again(anchor: FileAnchor) -> None:
    os.unlink(anchor.place)
    for step in (anchor.read, lambda: anchor.advance(mark(1))):
        with pytest.raises(TamperedLedgerError, match="missing"):
            step()
    assert not anchor.exists()
    anchor.close()


@pytest.mark.parametrize("text", [b"", b"x", b" " * 8192, b"\0" * 8192, b"\xff" * 9000])
def test_garbled_is_refused(anchor: FileAnchor, text: bytes) -> None:
    Path(anchor.place).write_bytes(text)
    for step in (anchor.read, lambda: anchor.advance(mark(1))):
        with pytest.raises(TamperedLedgerError, match="garbled"):
            step()


def test_another_ledger_or_another_history_is_refused(anchor: FileAnchor) -> None:
    with pytest.raises(TamperedLedgerError, match="another"):
        anchor.advance(mark(1, "f" * 32))
    with pytest.raises(TamperedLedgerError, match="another"):
        anchor.advance(Mark(ID, 0, "f" * 64))
    assert anchor.read() == mark(0)


def test_a_torn_write_leaves_the_one_before(anchor: FileAnchor) -> None:
    """Whatever part of a slot reaches the disk, the mark read is the new one or the one before."""
    anchor.advance(mark(1))
    old = Path(anchor.place).read_bytes()
    anchor.advance(mark(2))
    new = Path(anchor.place).read_bytes()
    changed = [i for i in range(len(old)) if old[i] != new[i]]
    assert changed
    assert max(changed) // 4096 == min(changed) // 4096  # one page only
    start = changed[0] // 4096 * 4096
    for cut in range(0, 300, 3):
        Path(anchor.place).write_bytes(old[:start] + new[start : start + cut] + old[start + cut :])
        assert anchor.read() in (mark(1), mark(2))


def test_flipped_bits_never_give_a_mark_that_was_not_written(anchor: FileAnchor) -> None:
    for seq in range(1, 6):
        anchor.advance(mark(seq))
    whole = Path(anchor.place).read_bytes()
    chooser, seen = random.Random(1), set()
    for _ in range(500):
        i = chooser.choice([chooser.randrange(260), 4096 + chooser.randrange(260), chooser.randrange(8192)])
        flipped = bytearray(whole)
        flipped[i] ^= 1 << chooser.randrange(8)
        Path(anchor.place).write_bytes(flipped)
        seen.add(anchor.read())
    assert seen == {mark(4), mark(5)}


def test_many_writers_end_at_the_newest(anchor: FileAnchor) -> None:
    def work(start: int) -> None:
        for seq in range(start + 1, 200, 4):
            anchor.advance(mark(seq))
            assert anchor.read().seq >= seq

    assert in_threads(4, work) == []
    assert anchor.read() == mark(199)


def test_two_handles_exclude_each_other_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "x")
    monkeypatch.setattr(module, "PATIENCE", 0.02)
    first, second = (os.open(place, os.O_RDWR | os.O_CREAT) for _ in range(2))
    with locked(first, place):
        assert not try_lock(second, place)
        assert not try_lock(second, place, shared=True)
        with pytest.raises(LedgerWriteError, match="locked by another"), locked(second, place):
            pass
    with locked(first, place, shared=True), locked(second, place, shared=True):
        assert not try_lock(first, place) or not try_lock(second, place)
    os.close(first)
    os.close(second)


def test_a_full_disk_is_said(anchor: FileAnchor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", failing(OSError(28, "x")))
    with pytest.raises(LedgerWriteError, match="No space left"):
        anchor.advance(mark(1))
    monkeypatch.setattr(os, "pwrite", lambda *_: 10)
    with pytest.raises(LedgerWriteError, match="full"):
        anchor.advance(mark(1))
    monkeypatch.undo()
    assert anchor.read() == mark(0)


def test_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(LedgerWriteError, match="No such file"):
        FileAnchor(tmp_path / "nowhere" / "a").create(mark(0))
