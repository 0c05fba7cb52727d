"""From the bytes of a CSV file to blocks of whole records, in bounded memory.

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

import io
from collections.abc import Iterator
from typing import BinaryIO, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.tables.sources.base import TableError

_BLOCK = 1 << 22  # bytes at a time
_MAX_RECORD_BYTES = 1 << 27  # bytes in a record; a longer one is a row with everything missing
_MARK = "\ufeff".encode()
_QUOTE, _LF, _CR = b'"\n\r'
Bytes: TypeAlias = NDArray[np.uint8]
Window: TypeAlias = tuple[bytes, bytes, bytes]  # the byte before, some bytes, the two bytes after


class Rule(Protocol):
    """What ends a record."""

    def ends(self, window: Window) -> tuple[int, int]:
        """Where the first and the last record end that end in this window; -1 if none does."""
        ...

    def close(self) -> None:
        """An error if the file must not end here."""
        ...


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
            yield b"".join([*begun, body[: last + 1]]) if is_short else b"\n" + body[first + 1 : last + 1]
            begun, length = [], 0
        length += len(body) - last - 1
        begun = [*begun, body[last + 1 :]] if length <= _MAX_RECORD_BYTES else []
    rule.close()


def inside(quotes: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the quotes before each place are odd in number."""
    odd: NDArray[np.bool_] = np.searchsorted(quotes, places) % 2 == 1
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


def first_end(block: bytes, is_quoted: bool) -> int:
    """Where the first record of a block ends: at a line feed, outside of quotes if these count."""
    end, is_open = block.find(b"\n"), False
    start = 0
    while is_quoted and end >= 0:
        is_open ^= block.count(b'"', start, end) % 2 == 1
        if not is_open:
            break
        start, end = end, block.find(b"\n", end + 1)
    return end


def _windows(stream: BinaryIO) -> Iterator[Window]:
    """All bytes in pieces, with their neighbours. A line feed is added where the last line has none."""
    before, held = b"\n", stream.read(max(_BLOCK, len(_MARK))).removeprefix(_MARK)
    while more := stream.read(_BLOCK):
        held += more
        body, held = held[:-2], held[-2:]
        if body:
            yield before, body, held
            before = body[-1:]
    if held:
        yield before, held if held.endswith(b"\n") else held + b"\n", b"\n\n"
