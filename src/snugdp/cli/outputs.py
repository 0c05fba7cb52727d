"""Files that a command writes: whether they can be written, and that nothing is lost by it, before anything is paid."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path


def can_write(*files: Path | None, read: Iterable[str | Path | None] = ()) -> None:
    """What would fail after the charge is tried before it, and what the command reads is not written over.

    ``read``: files, folders and patterns.
    """
    asked = [file for file in files if file is not None]
    for file in asked:
        _try(file)
    if len({file.resolve() for file in asked}) < len(asked):
        raise ValueError(f"{asked[0]} is given for two outputs: give each a file of its own")
    for place in (str(each) for each in read if each is not None):
        for file in asked:
            _apart(file, place)


def of_ledger(ledger: str | None) -> list[str]:
    """The files of a ledger; none for one on a server."""
    if ledger is None or "://" in ledger:
        return []
    return [ledger + ending for ending in ("", ".anchor", ".lock", "-wal", "-shm")]


def _try(file: Path) -> None:
    folder = file.absolute().parent
    if file.is_dir():
        raise ValueError(f"cannot write {file}: it is a folder; give the name of a file")
    if not folder.is_dir():
        raise ValueError(f"cannot write {file}: there is no such folder; make it first")
    if not os.access(folder, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)):
        raise ValueError(f"cannot write {file}: this user may not; check the permissions")


def _apart(file: Path, place: str) -> None:
    """The output is neither a file that is read nor in a folder that is read, where it would be part of the table."""
    path, found = Path(place).expanduser(), file.resolve()
    if path.is_dir():
        if path.resolve() in found.parents and not file.name.startswith((".", "_")):
            raise ValueError(f"{file} lies in the folder {place}, which is read as a table: write to another folder")
        return
    matches = [] if path.exists() else [Path(match) for match in glob.glob(str(path), recursive=True)]
    if found in [each.resolve() for each in (path, *matches)]:
        raise ValueError(f"{file} would be written over, and this command reads it: give the output another name")
