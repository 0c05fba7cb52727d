"""CSV, plain or gzipped: a stream of records in which no cell can disturb another row, raise or warn.

A CSV file declares no types, and its reader must not guess them from the rows. Every cell is text, and is read as a
cell of text is in any other table (``tables/cells``). A record is what stands between line breaks outside of quotes, in
a file that is well formed; or every line, in any file. A cell of a line that starts with a quote goes on to the next
single quote, or to the end of the line if there is none. Blocks whose quotes are absent or around whole cells are split
by polars, and any other block record by record. Both give the same cells.

A file is **well formed** if, outside of quotes, LF or CRLF ends a record (the last one may lack it), and

- a quote opens a cell only as its first byte, so there is none in a cell without quotes around it;
- inside quotes every byte is text, line breaks and separators too, and two quotes in a row are one;
- behind the closing quote comes a separator or the end of the record;
- no quote is open at the end of the file.

So in a well-formed file the quotes before a byte are odd in number just where that byte is inside quotes, and
``Quoted`` needs no more than the two neighbours of every quote. What does not look like this is refused as a whole, for
a quote out of place can swallow other records. How many cells a record has, and what they hold, is its own affair.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources.base import Batch, TableError

_BLOCK = 1 << 23  # bytes at a time
_LOOK = 1 << 19  # bytes that are looked through for quotes at a time
_MAX_RECORD_BYTES = 1 << 27  # bytes in a record; a longer one is a row with everything missing
_MARK = "\ufeff".encode()
_QUOTE, _LF, _CR = b'"\n\r'
_RECORDS = 1 << 14  # rows at a time where quotes are irregular
_AFTER = b"\n\n"  # behind the end of a file
_GZIP = b"\x1f\x8b"
_SEPARATORS = (",", ";", "\t")
_STAND_INS = bytes(letter for letter in range(1, 32) if letter not in b"\t\n\r")
Bytes: TypeAlias = NDArray[np.uint8]
Window: TypeAlias = tuple[bytes, bytes, bytes]  # the byte before, some bytes, the two bytes after


@dataclass(frozen=True)
class Csv:
    """CSV files that need to be explained: ``names`` if the first record holds none, and the separator.

    Without a separator it is the comma; or, where the first record names the columns and has no comma outside of
    quotes, a semicolon or a tab that it has.

    With ``names`` every record is a row; cells beyond the last name are passed over, and cells that a record lacks are
    missing.

    ``multiline``: line breaks in quotes belong to their cell. The file must then be well formed (what that is stands at
    the top of this module), which is public: an ill-formed one is refused before the budget is charged, whoever wrote
    the record that breaks it. With ``multiline=False`` every line is a record, any file can be read, and nothing that
    is written into one line can touch another: for files whose writers nobody trusts to quote.

    >>> Csv("bikes.csv.gz", names=["hour", "rented"], separator=";").names
    ['hour', 'rented']
    """

    path: str | Path | Sequence[str | Path]
    names: Sequence[str] | None = None
    separator: str | None = None
    multiline: bool = True

    def __post_init__(self) -> None:
        if self.names is not None and (isinstance(self.names, str) or not self.names):
            raise ValueError("names must be a list with the name of every column")
        given = "," if self.separator is None else self.separator
        if len(given) != 1 or not given.isascii() or given in '"\r\n':
            raise ValueError("separator must be one ASCII character, such as ',' or ';' or a tab")


@dataclass(frozen=True)
class TextFormat:
    """How CSV files are read."""

    options: Csv = Csv("")

    def types(self, path: Path) -> dict[str, DType]:
        """The names, from the options or from the first record. No column has a type."""
        if _is_packed(path):
            with path.open("rb") as raw:
                if raw.read(len(_GZIP)) != _GZIP:
                    raise TableError(f"{path} is not a whole file of its kind (perhaps cut off): write it again")
        return dict.fromkeys(self._names(path), nw.Unknown())

    def verify(self, path: Path) -> None:
        """An error if the file is not well formed, from one look at all of it. Lines always are."""
        if self.options.multiline and _has_quotes(path):
            with path.open("rb") as raw:
                for _ in blocks(_plain(raw, path), self._rule(path)):
                    pass

    def batches(self, path: Path, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows, as text."""
        names, before = self._names(path), 0
        indices = [names.index(column) for column in columns]
        called = {str(index): column for index, column in zip(indices, columns, strict=True)}
        with path.open("rb") as raw:
            records = blocks(_plain(raw, path), self._rule(path))
            if self.options.names is None:
                records = _without_first(records, len(self._first_record(path)))
            for texts in _tables(records, self.options.multiline, self._separator(path), len(names), indices):
                frame = texts.rename(called).select(columns)
                yield Batch(nw.from_native(frame, eager_only=True), raw.tell() - before)
                before = raw.tell()

    def _rule(self, path: Path) -> Rule:
        if not self.options.multiline:
            return Lines()
        separator = self._separator(path)
        return Quoted(separator, _ill_formed(path, separator))

    def _separator(self, path: Path) -> str:
        """As it was given, or as the names of the columns show it. A record of names is public, a row is not."""
        if self.options.separator is not None or self.options.names is not None:
            return self.options.separator or ","
        with path.open("rb") as raw:
            unquoted = re.sub(rb'"[^"]*"', b"", _plain(raw, path).readline(_MAX_RECORD_BYTES))
        return next((each for each in _SEPARATORS if each.encode() in unquoted), ",")

    def _names(self, path: Path) -> list[str]:
        """The names of the columns. If they are given, the first record is a row: it is not looked at."""
        advice = "give the names with Csv(path, names=[...])"
        names = self._named(path, advice) if self.options.names is None else list(self.options.names)
        if len(set(names)) != len(names):
            raise TableError(f"two columns of {path} have the same name: rename one, or {advice}")
        return names

    def _first_record(self, path: Path) -> bytes:
        with path.open("rb") as raw:
            return first_record(_plain(raw, path), self._rule(path), self.options.multiline)

    def _named(self, path: Path, advice: str) -> list[str]:
        """The names in the first record. Messages do not quote it: it may be somebody's row after all."""
        record = self._first_record(path)
        if not record:
            raise TableError(f"{path} is empty: its first line must name the columns")
        if record.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in record:
            raise TableError(f"{path} is not in UTF-8, perhaps in UTF-16: write it again with encoding='utf-8'")
        if re.search(rb"\r(?!\n)", record):
            raise TableError(f"the first line of {path} has a carriage return inside: end lines with LF or CRLF")
        text = _text(record if self.options.multiline else _normal(record)).removesuffix("\n").removesuffix("\r")
        names = with_unnamed(_row(text, _cell(self._separator(path)), None))
        if any(not name.strip() or _is_number(name) for name in names):
            raise TableError(
                f"the first line of {path} holds numbers or nothing where names should be: name every column there; if "
                f"it is a row, write a line of names before it or, in Python, {advice}"
            )
        return names


def with_unnamed(names: Sequence[str]) -> list[str]:
    """Names for what writers of tables leave unnamed: a first column that counts rows, and empty ones at the end.

    >>> with_unnamed(["", "age", "", "city", "", ""])
    ['Unnamed: 0', 'age', '', 'city', 'Unnamed: 4', 'Unnamed: 5']
    """
    named = [place for place, name in enumerate(names) if name.strip()]
    outside = {0, *range(named[-1], len(names))} if named else set[int]()
    return [f"Unnamed: {place}" if place in outside and not name.strip() else name for place, name in enumerate(names)]


def _ill_formed(path: Path, separator: str) -> str:
    return (
        f"{path} is not a well-formed CSV file with the separator {separator!r}: a cell with quotes in it must be in "
        "quotes as a whole, each of them doubled, and a cell in quotes must end where they do. Write the file again "
        "with a CSV writer; or give the right separator with Csv(path, separator=...); or read every line as a row of "
        "its own, with Csv(path, multiline=False) or --no-multiline"
    )


def _tables(
    records: Iterator[bytes], multiline: bool, separator: str, width: int, indices: Sequence[int]
) -> Iterator[pl.DataFrame]:
    """The cells of the wanted columns as text; columns are called by their indices."""
    split = _quoted_tables if multiline else _line_tables
    for block in records:
        yield from split(block, separator, width, indices)


def _line_tables(block: bytes, separator: str, width: int, indices: Sequence[int]) -> Iterator[pl.DataFrame]:
    """Every line is a record."""
    block = _normal(block)
    quotes = _quotes(block, separator)
    if quotes == "irregular":
        lines = _text(block).removesuffix("\n").split("\n")  # splitlines knows more ends than a CSV file has
        return _split(lines, separator, indices)
    return iter([_by_polars(block, separator, width, indices, is_quoted=quotes == "regular")])


def _quoted_tables(block: bytes, separator: str, width: int, indices: Sequence[int]) -> Iterator[pl.DataFrame]:
    """Records of a well-formed file: for polars, breaks inside cells are bytes that the block does not have."""
    is_quoted = b'"' in block
    if not is_quoted and b"\r" not in block:
        return iter([_by_polars(_valid(block), separator, width, indices, is_quoted)])
    letters = np.frombuffer(block, dtype=np.uint8)
    quotes, feeds, returns = (np.flatnonzero(letters == letter) for letter in b'"\n\r')
    is_end = ~inside(quotes, feeds)
    is_dropped = ~inside(quotes, returns) & (letters[returns + 1] == ord("\n"))
    free: list[int] = []
    if not (is_end.all() and is_dropped.all()):
        free = [letter for letter in _STAND_INS if letter not in block and letter != ord(separator)][:2]
        if len(free) < 2:
            return _split(_cut(block, feeds[is_end]), separator, indices)
        letters = letters.copy()
        letters[feeds[~is_end]], letters[returns[~is_dropped]] = free
    if is_dropped.any():
        letters = np.delete(letters, returns[is_dropped])
    frame = _by_polars(_valid(letters.tobytes()), separator, width, indices, is_quoted)
    return iter([_with_breaks(frame, [chr(letter) for letter in free])])


def _with_breaks(frame: pl.DataFrame, stand_ins: list[str]) -> pl.DataFrame:
    """Line feeds and carriage returns back in their places."""
    if not stand_ins:
        return frame
    has_some = frame.select(pl.all().str.contains_any(stand_ins).any()).row(0)
    names = [name for name, some in zip(frame.columns, has_some, strict=True) if some]
    return frame.with_columns(pl.col(names).str.replace_many(stand_ins, ["\n", "\r"])) if names else frame


def _cut(block: bytes, ends: Iterable[int]) -> Iterator[str]:
    """The records of a block, without their line ends."""
    start = 0
    for end in ends:
        yield _text(block[start:end].removesuffix(b"\r"))
        start = end + 1


def _by_polars(block: bytes, separator: str, width: int, indices: Sequence[int], is_quoted: bool) -> pl.DataFrame:
    """The wanted cells of records that are a line each, and whose quotes are around whole cells."""
    schema = dict.fromkeys((str(index) for index in range(width)), pl.String)
    frame = pl.read_csv(
        io.BytesIO(separator.join(schema).encode() + b"\n" + block),
        schema=schema,
        columns=[str(index) for index in sorted(set(indices))],
        separator=separator,
        quote_char='"' if is_quoted else None,
        truncate_ragged_lines=True,
    )
    if len(frame) != block.count(b"\n"):
        raise AssertionError("polars found another number of records")
    return frame.with_columns(pl.all().replace("", None)) if is_quoted else frame  # others that are empty are null


def _split(lines: Iterable[str], separator: str, indices: Sequence[int]) -> Iterator[pl.DataFrame]:
    """The wanted cells of each record; one that is too short lacks its last ones."""
    cell, width = _cell(separator), max(indices) + 1
    rows = (_row(line, cell, width) for line in lines)
    while some := list(islice(rows, _RECORDS)):
        yield pl.DataFrame(
            [
                pl.Series(str(index), [row[index] or None if index < len(row) else None for row in some], pl.String)
                for index in sorted(set(indices))
            ]
        )


def _cell(separator: str) -> re.Pattern[str]:
    """A cell with what separates it from the one before: what was quoted and what comes after it, or all of it."""
    end = re.escape(separator)
    return re.compile(rf'(?:\A|{end})(?:"([^"]*+(?:""[^"]*+)*+)(?:"([^{end}]*+))?+|([^{end}]*+))')


def _row(line: str, cell: re.Pattern[str], width: int | None) -> list[str]:
    """The first cells of a line."""
    groups = (match.groups() for match in islice(cell.finditer(line), width))
    return [plain if quoted is None else quoted.replace('""', '"') + (rest or "") for quoted, rest, plain in groups]


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


def _has_quotes(path: Path) -> bool:
    """Whether there is a quote anywhere: a file without one is well formed."""
    with path.open("rb") as raw:
        stream = _plain(raw, path)
        return any(b'"' in part for part in iter(lambda: stream.read(_LOOK), b""))


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _without_first(records: Iterator[bytes], length: int) -> Iterator[bytes]:
    """The blocks without the first record, which has so many bytes."""
    if rest := next(records, b"")[length:]:
        yield rest
    yield from records


def _normal(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    return _valid(block)


def _valid(block: bytes) -> bytes:
    """In UTF-8; other bytes become the replacement character."""
    return block if block.isascii() else _text(block).encode()


def _text(block: bytes) -> str:
    return block.decode("utf-8", errors="replace")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


class Rule(Protocol):
    """What ends a record."""

    def ends(self, window: Window) -> tuple[int, int]:
        """Where the first and the last record end that end in this window; -1 if none does."""

    def close(self) -> None:
        """An error if the file must not end here."""


class Lines:
    """Every line is a record."""

    def ends(self, window: Window) -> tuple[int, int]:
        """The first and the last line feed."""
        return window[1].find(b"\n"), window[1].rfind(b"\n")

    def close(self) -> None:
        """A file may end anywhere."""


class Quoted:
    """Line feeds outside of quotes end a record; ``problem`` is raised where the file is not well formed."""

    def __init__(self, separator: str, problem: str) -> None:
        self._separator, self._problem, self._open = ord(separator), problem, False

    def ends(self, window: Window) -> tuple[int, int]:
        """The first and the last line feed outside of quotes."""
        body = window[1]
        if b'"' not in body:
            return (-1, -1) if self._open else (body.find(b"\n"), body.rfind(b"\n"))
        letters = np.frombuffer(b"".join(window), dtype=np.uint8)
        quotes = np.flatnonzero(letters[1:-2] == _QUOTE) + 1
        self._check(letters, quotes)
        feeds = np.flatnonzero(letters[1:-2] == _LF) + 1
        outside = feeds[inside(quotes, feeds) == self._open] - 1
        self._open ^= len(quotes) % 2 == 1
        return (int(outside[0]), int(outside[-1])) if len(outside) else (-1, -1)

    def _check(self, letters: Bytes, quotes: NDArray[np.intp]) -> None:
        opening, closing = quotes[int(self._open) :: 2], quotes[1 - int(self._open) :: 2]
        before, after = letters[opening - 1], letters[closing + 1]
        starts = (before == self._separator) | (before == _LF) | (before == _QUOTE)
        ends = (after == self._separator) | (after == _LF) | (after == _QUOTE)
        if not ends.all():
            ends |= (after == _CR) & (letters[closing + 2] == _LF)
        if not (starts.all() and ends.all()):
            raise TableError(self._problem)

    def close(self) -> None:
        """Every quote must be closed."""
        if self._open:
            raise TableError(self._problem)


def blocks(stream: BinaryIO, rule: Rule) -> Iterator[bytes]:
    """Whole records, some megabytes at a time, without a byte order mark, and all with a line feed at the end."""
    begun: list[bytes] = []  # a record that was not read to its end
    length = 0
    for window in _windows(stream):
        body, (first, last) = window[1], rule.ends(window)
        if last >= 0:
            is_short = length + first <= _MAX_RECORD_BYTES
            yield b"".join([*begun, memoryview(body)[: last + 1]]) if is_short else b"\n" + body[first + 1 : last + 1]
            begun, length = [], 0
        length += len(body) - last - 1
        begun = [*begun, body[last + 1 :]] if length <= _MAX_RECORD_BYTES else []
    rule.close()


def inside(quotes: NDArray[np.intp], positions: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the quotes before each position are odd in number."""
    odd: NDArray[np.bool_] = np.searchsorted(quotes, positions) % 2 == 1
    return odd


def first_record(stream: BinaryIO, rule: Rule, is_quoted: bool) -> bytes:
    """The first record of a file, or what a record may be long of it. Nothing else is looked at."""
    record, is_open = b"", False
    while line := stream.readline(_MAX_RECORD_BYTES + 1 - len(record)):
        record += line
        is_open ^= is_quoted and line.count(b'"') % 2 == 1
        if line.endswith(b"\n") and not is_open:
            break
    return next(blocks(io.BytesIO(record), rule), b"")


def _windows(stream: BinaryIO) -> Iterator[Window]:
    """All bytes in pieces, with their neighbours. A line feed is added where the last line has none."""
    before, held = b"\n", stream.read(max(_BLOCK, len(_MARK))).removeprefix(_MARK)
    while more := stream.read(_BLOCK):
        if len(more) < len(_AFTER):
            held += more
            continue
        if held:
            yield before, held, more[: len(_AFTER)]
            before = held[-1:]
        held = more
    if held:
        yield before, held if held.endswith(b"\n") else held + b"\n", _AFTER
