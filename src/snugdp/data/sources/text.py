"""CSV, plain or gzipped: a stream of lines in which no cell can disturb another row, raise or warn.

A CSV file declares no types, and its reader must not guess them from the rows. Every cell is text, and is
read as a cell of text is in any other table (``data/cells``). One line is one row, and its cells depend on this line
alone: a cell that starts with a quote goes on to the next single quote, or to the end of the line if there is none.
Blocks without quotes, or with quotes only around whole cells, are split by polars; any other block line by line.
Both give the same cells.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import narwhals as nw
import numpy as np
import polars as pl

from snugdp.data.kinds import DType
from snugdp.data.sources.base import Batch, TableError

_BLOCK = 1 << 22  # bytes at a time
_RECORDS = 1 << 14  # rows at a time where quotes are irregular
_LONGEST = 1 << 27  # bytes in a line; a longer one is a row with everything missing
_MARK = "\ufeff".encode()
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Csv:
    """CSV files that need to be explained: ``names`` if the first line holds none, and the separator.

    With ``names`` every line is a row; cells beyond the last name are passed over, and cells that a line lacks are
    missing.

    ``multiline``: a line with an odd number of quotes goes on in the next one. For files from a trusted writer: a row
    could then disturb others.

    >>> Csv("bikes.csv.gz", names=["hour", "rented"]).separator
    ','
    """

    path: str | Path | Sequence[str | Path]
    names: Sequence[str] | None = None
    separator: str = ","
    multiline: bool = False

    def __post_init__(self) -> None:
        if self.names is not None and (isinstance(self.names, str) or not self.names):
            raise ValueError("names must be a list with the name of every column")
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n':
            raise ValueError("separator must be one ASCII character, such as ',' or ';' or a tab")


@dataclass(frozen=True)
class TextFormat:
    """How CSV files are read."""

    options: Csv = Csv("")

    def types(self, path: Path) -> dict[str, DType]:
        """The names, from the options or from the first line. No column has a type."""
        if _is_packed(path):
            with path.open("rb") as raw:
                if raw.read(len(_GZIP)) != _GZIP:
                    raise TableError(f"{path} is not a whole file of its kind (perhaps cut off): write it again")
        return dict.fromkeys(self._names(path), nw.Unknown())

    def batches(self, path: Path, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows, as text."""
        names, before = self._names(path), 0
        places = [names.index(column) for column in columns]
        with path.open("rb") as raw:
            blocks = _blocks(_plain(raw, path))
            if self.options.names is None:
                blocks = _without_names(blocks)
            for texts in _tables(blocks, self.options, len(names), places):
                frame = texts.select(
                    pl.col(str(place)).alias(column) for place, column in zip(places, columns, strict=True)
                )
                yield Batch(nw.from_native(frame, eager_only=True), raw.tell() - before)
                before = raw.tell()

    def _names(self, path: Path) -> list[str]:
        """The names of the columns. If they are given, the first line is a row: it is not looked at."""
        advice = "give the names with Csv(path, names=[...])"
        names = self._first_line(path, advice) if self.options.names is None else list(self.options.names)
        if len(set(names)) != len(names):
            raise TableError(f"two columns of {path} have the same name: rename one, or {advice}")
        return names

    def _first_line(self, path: Path, advice: str) -> list[str]:
        """The names in the first line. Messages do not quote it: it may be somebody's row after all."""
        with path.open("rb") as raw:
            line = _plain(raw, path).readline().removeprefix(_MARK)
        if not line:
            raise TableError(f"{path} is empty: its first line must name the columns")
        names = _row(_text(_normal(line)).rstrip("\n"), _cell(self.options.separator), None)
        if any(not name.strip() or _is_number(name) for name in names):
            raise TableError(f"the first line of {path} holds numbers or nothing where names should be: {advice}")
        return names


def _tables(blocks: Iterator[bytes], options: Csv, width: int, places: Sequence[int]) -> Iterator[pl.DataFrame]:
    """The cells of the wanted columns as text; columns are called by their places."""
    schema = dict.fromkeys((str(place) for place in range(width)), pl.String)
    for block in _closed(blocks) if options.multiline else blocks:
        quotes = _quotes(block, options.separator)
        if quotes == "irregular":
            lines = _text(block).removesuffix("\n").split("\n")  # splitlines knows more ends than a CSV file has
            frames = _split(_joined(lines) if options.multiline else lines, options.separator, places)
        else:
            frame = pl.read_csv(
                io.BytesIO(options.separator.join(schema).encode() + b"\n" + block),
                schema=schema,
                columns=[str(place) for place in sorted(set(places))],
                separator=options.separator,
                quote_char='"' if quotes == "regular" else None,
                truncate_ragged_lines=True,
            )
            frames = iter([frame])
        yield from (frame.with_columns(pl.all().replace("", None)) for frame in frames)


def _split(lines: Iterable[str], separator: str, places: Sequence[int]) -> Iterator[pl.DataFrame]:
    """The wanted cells of each line; a line that is too short lacks its last ones."""
    cell, width = _cell(separator), max(places) + 1
    rows = (_row(line, cell, width) for line in lines)
    while some := list(islice(rows, _RECORDS)):
        yield pl.DataFrame(
            [
                pl.Series(str(place), [row[place] if place < len(row) else None for row in some], pl.String)
                for place in sorted(set(places))
            ]
        )


def _cell(separator: str) -> re.Pattern[str]:
    """A cell with what separates it from the one before: what was quoted and what comes after it, or all of it."""
    end = re.escape(separator)
    return re.compile(rf'(?:\A|{end})(?:"([^"]*+(?:""[^"]*+)*+)(?:"([^{end}]*+))?+|([^{end}]*+))')


def _row(line: str, cell: re.Pattern[str], width: int | None) -> list[str]:
    """The first cells of a line."""
    found = (match.groups() for match in islice(cell.finditer(line), width))
    return [plain if quoted is None else quoted.replace('""', '"') + (rest or "") for quoted, rest, plain in found]


def _closed(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks put together until no quoted cell is open at the end; one that stays open for too long is cut."""
    held = b""
    for block in blocks:
        held += block
        if held.count(b'"') % 2 == 0 or len(held) > _LONGEST:
            yield held
            held = b""
    if held:
        yield held


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Lines put together until no quoted cell is open at the end."""
    held: list[str] = []
    is_open = False
    for line in lines:
        held.append(line)
        is_open ^= line.count('"') % 2 == 1
        if not is_open:
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join(held)


def _quotes(block: bytes, separator: str) -> str:
    """Whether quotes are absent, regular (around whole cells, nothing else) or irregular."""
    letters = np.frombuffer(block, dtype=np.uint8)
    if b'"' not in block:
        return "absent"
    special = np.flatnonzero((letters == ord('"')) | (letters == ord("\n")))
    quotes = np.flatnonzero(letters[special] == ord('"'))
    if len(quotes) % 2 or np.any(np.diff(quotes)[::2] != 1):  # one is open at the end, or goes over a line
        return "irregular"
    opening, closing = special[quotes[::2]], special[quotes[1::2]]
    before, after = letters[opening - 1], letters[np.minimum(closing + 1, len(letters) - 1)]
    starts = (opening == 0) | (before == ord(separator)) | (before == ord("\n"))
    ends = (closing == len(letters) - 1) | (after == ord(separator)) | (after == ord("\n"))
    return "regular" if bool(np.all(starts & ends)) else "irregular"


def _plain(raw: BinaryIO, path: Path) -> BinaryIO:
    """The bytes of a file, unpacked. A gzipped file that was cut off raises at its end."""
    return io.BufferedReader(gzip.GzipFile(fileobj=raw)) if _is_packed(path) else raw


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time, in UTF-8 and with plain line ends."""
    begun: list[bytes] = []  # a line that was not read to its end
    length = 0
    first = stream.read(max(_BLOCK, len(_MARK))).removeprefix(_MARK)
    for chunk in chain([first], iter(lambda: stream.read(_BLOCK), b"")):
        end, last = chunk.find(b"\n"), chunk.rfind(b"\n") + 1
        if last:
            whole = [b"\n", chunk[end + 1 : last]] if length + end > _LONGEST else [*begun, chunk[:last]]
            yield _normal(b"".join(whole))
            begun, length = [], 0
        length += len(chunk) - last
        begun = [*begun, chunk[last:]] if length <= _LONGEST else []
    if length:
        yield _normal(b"".join(begun) + b"\n")


def _without_names(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(blocks, b"").partition(b"\n")[2]
    if first:
        yield first
    yield from blocks


def _normal(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    return block if block.isascii() else _text(block).encode()


def _text(block: bytes) -> str:
    return block.decode("utf-8", errors="replace")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
