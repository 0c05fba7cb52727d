"""Files with results: whole or not there, for their owner's eyes, and harmless in a spreadsheet.

What was released is public in the sense of the guarantee, but who may read it is for its owner to decide, and
predictions for private rows are as private as those rows.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

VARIABLE = "SNUGDP_FILE_MODE"
_PRIVATE = 0o600
_FORMULA = re.compile("[\t\r\n]|[ \u00a0]*[=+@\uff1d\uff0b\uff0d\uff20-]")  # \uff..: the same in full width
_NUMBER = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"


@contextmanager
def result_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """A name to write to, which becomes the file when the block has ended: until then an older file stays as it is.

    A new file is for its owner only, unless ``SNUGDP_FILE_MODE`` says otherwise, such as 644; one that is replaced
    keeps its permissions. What is no file (a pipe, ``/dev/stdout``) is written to as it is.
    """
    target = os.path.realpath(path)
    found = None
    with suppress(OSError):
        found = os.stat(target)
    if found is not None and not stat.S_ISREG(found.st_mode):
        yield target
        return
    mode = _asked_mode() if found is None else stat.S_IMODE(found.st_mode)
    folder, name = os.path.split(target)
    handle, fresh = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
    os.close(handle)
    try:
        yield fresh
        os.chmod(fresh, mode)
        _flush(fresh)
        os.replace(fresh, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """A file with this text and no other, in UTF-8."""
    with result_file(path) as fresh, open(fresh, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str], *, raw_text: bool = False) -> None:
    """A Parquet file if its name ends so, else CSV, in which no text is a formula (``raw_text``: as it is)."""
    with result_file(path) as fresh:
        if os.fspath(path).endswith(".parquet"):
            frame.write_parquet(fresh)
        else:
            (frame if raw_text else without_formulas(frame)).write_csv(fresh)


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before every text, of cells and of names, that a spreadsheet would compute."""
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    cells = [pl.col(name).cast(pl.String) for name in texts]
    risky = [cell.str.contains(f"^(?:{_FORMULA.pattern})") & ~cell.str.contains(rf"^{_NUMBER}$") for cell in cells]
    safe = [
        pl.when(risk).then(pl.lit("'") + cell).otherwise(cell).alias(name)
        for name, cell, risk in zip(texts, cells, risky, strict=True)
    ]
    return frame.with_columns(safe).rename({name: without_formula(name) for name in frame.columns})


def without_formula(cell: Any) -> Any:
    """Text that a spreadsheet would compute gets an apostrophe before it; numbers, and texts of numbers, stay.

    >>> without_formula("=1+1"), without_formula("-1.5"), without_formula(-2), without_formula("a=b")
    ("'=1+1", '-1.5', -2, 'a=b')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not re.fullmatch(_NUMBER, cell, re.ASCII):
        return "'" + cell
    return cell


def _asked_mode() -> int:
    asked = os.environ.get(VARIABLE, "")
    if not asked:
        return _PRIVATE
    if not re.fullmatch("0?[0-7]{3}", asked, re.ASCII):
        raise ValueError(f"{VARIABLE} must be the permissions of new files as three octal digits, such as 644")
    return int(asked, 8) | _PRIVATE


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
