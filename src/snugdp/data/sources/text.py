"""CSV, plain or gzipped: a stream of lines in which no cell can disturb another row, raise or warn.

A CSV file declares no types, and its reader must not guess them from the rows. Every cell is text first; then each
is parsed by itself, and what cannot be parsed is missing. Blocks without quotes, or with quotes only around whole
cells, are split by polars; any other block by Python's ``csv``, which has an answer for every text. Both give
the same cells.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import BinaryIO

import narwhals as nw
import numpy as np
import polars as pl

from snugdp.data.kinds import DType
from snugdp.data.sources.base import Batch, TableError

_BLOCK = 1 << 22  # bytes at a time
_RECORDS = 1 << 14  # rows at a time where quotes are irregular
_LONGEST = 1 << 27  # bytes in a line or cell; a longer one is a row with everything missing
_YES, _NO = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
_MARK = "\ufeff".encode()


@dataclass(frozen=True)
class Csv:
    """CSV files that need to be explained: ``names`` if the first line holds none, and the separator.

    >>> Csv("bikes.csv.gz", names=["hour", "rented"]).separator
    ','
    """

    path: str | Path | Sequence[str | Path]
    names: Sequence[str] | None = None
    separator: str = ","

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n':
            raise ValueError("separator must be one ASCII character, such as ',' or ';' or a tab")


@dataclass(frozen=True)
class TextFormat:
    """How CSV files are read."""

    options: Csv = Csv("")

    def types(self, path: Path) -> dict[str, DType]:
        """The names, from the options or from the first line. No column has a type."""
        return dict.fromkeys(self._names(path), nw.Unknown())

    def batches(self, path: Path, columns: Sequence[str], cells: Mapping[str, DType]) -> Iterator[Batch]:
        """The rows; ``cells`` says as what each column is parsed."""
        names, before = self._names(path), 0
        places = [names.index(column) for column in columns]
        with path.open("rb") as raw:
            blocks = _blocks(_plain(raw, path))
            if self.options.names is None:
                blocks = _without_names(blocks)
            for texts in _tables(blocks, self.options.separator, len(names), places):
                frame = texts.select(
                    parsed(str(place), cells.get(column, nw.String())).alias(column)
                    for place, column in zip(places, columns, strict=True)
                )
                yield Batch(nw.from_native(frame, eager_only=True), raw.tell() - before)
                before = raw.tell()

    def _names(self, path: Path) -> list[str]:
        """The names of the columns. Messages do not quote the first line: without names, it is somebody's row."""
        with path.open("rb") as raw:
            line = _plain(raw, path).readline().removeprefix(_MARK)
        first = next(csv.reader([_text(line).rstrip("\r\n")], delimiter=self.options.separator), [])
        advice = "give the names with Csv(path, names=[...])"
        if self.options.names is not None:
            names = list(self.options.names)
            if first and len(first) != len(names):
                raise TableError(f"{path} has {len(first)} columns, but {len(names)} names were given")
        else:
            names = first
            if not line:
                raise TableError(f"{path} is empty: its first line must name the columns")
            if any(not name.strip() or _is_number(name) for name in names):
                raise TableError(f"the first line of {path} holds numbers or nothing where names should be: {advice}")
        if len(set(names)) != len(names):
            raise TableError(f"two columns of {path} have the same name: rename one, or {advice}")
        return names


def parsed(name: str, dtype: DType) -> pl.Expr:
    """A column of text as the given type, cell by cell: what cannot be parsed is missing."""
    text = pl.col(name)
    if dtype == nw.String:
        return text
    if dtype == nw.Boolean:
        word = text.str.strip_chars().str.to_lowercase()
        return pl.when(word.is_in(_YES)).then(True).when(word.is_in(_NO)).then(False).otherwise(None)
    if dtype == nw.Float64:
        return text.str.strip_chars().cast(pl.Float64, strict=False)
    raise TypeError(f"cells of a CSV file can be numbers, truth values or text, not {dtype}")


def _tables(blocks: Iterator[bytes], separator: str, width: int, places: Sequence[int]) -> Iterator[pl.DataFrame]:
    """The cells of the wanted columns as text; columns are called by their places."""
    schema = dict.fromkeys((str(place) for place in range(width)), pl.String)
    for block in blocks:
        quote = _quotes(block, separator)
        if quote == "irregular":
            records = _records(block, blocks, separator)
            while rows := list(islice(records, _RECORDS)):
                found = [*zip_longest(*rows), *([[None] * len(rows)] * width)]  # short rows, and columns nobody has
                frame = pl.DataFrame([pl.Series(str(place), found[place], pl.String) for place in sorted(set(places))])
                yield frame.with_columns(pl.all().replace("", None))
        else:
            frame = pl.read_csv(
                io.BytesIO(separator.join(schema).encode() + b"\n" + block),
                schema=schema,
                columns=[str(place) for place in sorted(set(places))],
                separator=separator,
                quote_char='"' if quote == "regular" else None,
                truncate_ragged_lines=True,
            )
            yield frame.with_columns(pl.all().replace("", None))


def _records(block: bytes, blocks: Iterator[bytes], separator: str) -> Iterator[list[str]]:
    """The records of a block, and of the following ones as long as a quote is open at the end."""
    lines = deque(_lines(block))

    def following() -> Iterator[str]:
        while True:
            while lines:
                yield lines.popleft()
            more = next(blocks, None)
            if more is None:
                return
            lines.extend(_lines(more))

    if csv.field_size_limit() < _LONGEST:  # for the whole process; the other way to split a block has no such limit
        csv.field_size_limit(_LONGEST)
    reader = csv.reader(following(), delimiter=separator)
    while True:
        try:
            record = next(reader, None)
        except csv.Error:  # a quote that was not closed for too long
            record = []
        if record is None:
            return
        yield record
        if not lines:
            return


def _lines(block: bytes) -> list[str]:
    """The lines of a block, with their ends. Not ``splitlines``, which knows more ends than a CSV file has."""
    return [line + "\n" for line in _text(block).removesuffix("\n").split("\n")]


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
    return io.BufferedReader(gzip.GzipFile(fileobj=raw)) if path.suffix.lower() == ".gz" else raw


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time, in UTF-8 and with plain line ends."""
    mark = stream.read(len(_MARK))
    start, length = ([], 0) if mark == _MARK else ([mark], len(mark))  # of a line that was not read to its end
    while chunk := stream.read(_BLOCK):
        first, last = chunk.find(b"\n"), chunk.rfind(b"\n") + 1
        if last:
            begun = [b"\n", chunk[first + 1 : last]] if length + first > _LONGEST else [*start, chunk[:last]]
            yield _normal(b"".join(begun))
            start, length = [], 0
        length += len(chunk) - last
        start = [*start, chunk[last:]] if length <= _LONGEST else []
    if length:
        yield _normal(b"".join(start) or b"\n")


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
