"""Rows by persons, in bounded memory: what a pass over persons holds, and how it is cut into parts that fit.

As long as there is room rows are in memory. Beyond a public bound those that a pass does not need are dropped, and if
too many are left, all rows go into files, into one of several buckets by the hash of their person, so that all rows of
a person are in one bucket; and the buckets are worked off one after the other, in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import narwhals as nw
import numpy as np
import polars as pl

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.persons.order import WHO
from snugdp.tables.sources.base import Frame
from snugdp.tables.spill import Spill, SpilledRows, can_spill

PART, ROW = "part", "row"
_BUCKET_BITS = 6
_BUCKETS = 1 << _BUCKET_BITS
_MAX_DEPTH = 64 // _BUCKET_BITS
_BLOCK_BYTES = 1 << 26  # of rows that are put into files together
_LOOSE = -1  # the bucket of rows without an identifier


class Chooser(Protocol):
    """What a pass over persons does with their rows."""

    @property
    def room(self) -> int:
        """The bytes that one state may hold: public."""

    @property
    def drops(self) -> bool:
        """Whether some rows may not be needed."""

    def chosen(self, index: pl.DataFrame, parts: list[Frame]) -> pl.DataFrame:
        """The rows of an index that are still needed, in the same order, and what is known of them."""


class Held(PrivateState):
    """Rows by persons: some that were chosen among each other, and some that wait. Private.

    ``_parts`` are the rows as their container has them, and ``_index`` says whose rows they are. ``_loose``: rows
    without an identifier. ``_buckets``: rows in files.
    """

    __slots__ = ("_buckets", "_chosen", "_depth", "_index", "_loose", "_loose_bytes", "_parts", "_spill", "_waiting")

    def __init__(self, depth: int = 0, spill: Spill | None = None) -> None:
        self._parts: list[Frame] = []
        self._loose: list[Frame] = []
        self._index: list[pl.DataFrame] = []
        self._chosen = self._waiting = self._loose_bytes = 0  # bytes
        self._buckets: dict[int, list[SpilledRows]] = {}
        self._depth, self._spill = depth, spill

    def add(self, frame: Frame, index: pl.DataFrame) -> None:
        """More rows that wait: those of the frame that the index names."""
        if len(index):
            self._index.append(index.with_columns(pl.lit(len(self._parts), dtype=pl.UInt32).alias(PART)))
            self._parts.append(frame)
            self._waiting += _size(frame) + int(index.estimated_size())

    def add_loose(self, frame: Frame) -> None:
        """More rows without an identifier."""
        self._loose.append(frame)
        self._loose_bytes += _size(frame)

    def merge(self, other: Held) -> None:
        """The rows of both."""
        before = len(self._parts)
        self._index += [index.with_columns(pl.col(PART) + before) for index in other._index]
        self._parts += other._parts
        self._loose += other._loose
        self._waiting += other._waiting + other._chosen
        self._loose_bytes += other._loose_bytes
        for bucket, blocks in other._buckets.items():
            self._buckets.setdefault(bucket, []).extend(blocks)

    def settle(self, work: Chooser, room: int) -> None:
        """If there is no room left, drop what is not needed; if too much is left, put all of it into files."""
        if self._bytes > room:
            if work.drops and self._waiting > self._chosen:
                self._choose(work)
            if self._bytes > room // 2 and self._may_spill():
                self._put_away()

    @property
    def _bytes(self) -> int:
        return self._chosen + self._waiting + self._loose_bytes

    def is_in_files(self) -> bool:
        """Whether some rows did not fit into memory."""
        return len(self._buckets) > 0

    def results(self, work: Chooser) -> Iterator[tuple[Frame, pl.DataFrame | None]]:
        """All rows that are needed, with their index; without one those that have no identifier."""
        if self._buckets:  # then all rows of a person must be in one of them
            self._put_away()
        self._choose(work)
        yield from zip(self._parts, self._index, strict=True)
        yield from ((frame, None) for frame in self._loose)
        for blocks in self._buckets.values():
            inner = Held(self._depth + 1, self._spill)
            for block in blocks:
                frame, rows = block.read()
                if rows is None:
                    yield frame, None
                else:
                    inner.add(frame, rows)
                    inner.settle(work, work.room)
            yield from inner.results(work)

    def _choose(self, work: Chooser) -> None:
        """Drop whatever is not needed."""
        if not self._waiting:
            return
        index, self._index = pl.concat(self._index, how="diagonal", rechunk=True), []
        index = work.chosen(index, self._parts)
        parts, self._parts, self._waiting = self._parts, [], 0
        ends = np.searchsorted(index[PART].to_numpy(), np.arange(len(parts), dtype=np.uint32), side="right").tolist()
        parts.reverse()  # each is let go as soon as its rows are taken
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            self.add(*_taken(parts.pop(), index[start:end]))
        self._chosen, self._waiting = self._waiting, 0

    def _may_spill(self) -> bool:
        return self._depth < _MAX_DEPTH and all(map(can_spill, (*self._parts, *self._loose)))

    def _put_away(self) -> None:
        """All rows into files, by the hash of their person."""
        spill = self._spill = Spill() if self._spill is None else self._spill
        shift = np.uint64(_BUCKET_BITS * self._depth)  # from the last bits on: pieces are told apart by the first
        for part, index in _joined(zip(self._parts, self._index, strict=True)):
            buckets = ((index[WHO].to_numpy() >> shift) & np.uint64(_BUCKETS - 1)).astype(np.uint8)
            rows, taken = _taken(part, index[np.argsort(buckets, kind="stable")])
            ends = np.cumsum(np.bincount(buckets, minlength=_BUCKETS)).tolist()
            for bucket, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                if end > start:
                    some = taken[start:end].with_columns(numbered(end - start))
                    self._buckets.setdefault(bucket, []).append(spill.write(rows[start:end], some))
        self._buckets.setdefault(_LOOSE, []).extend(spill.write(frame, None) for frame in self._loose)
        self._parts, self._index, self._loose = [], [], []
        self._chosen = self._waiting = self._loose_bytes = 0


def _joined(parts: Iterable[tuple[Frame, pl.DataFrame]]) -> Iterator[tuple[Frame, pl.DataFrame]]:
    """The same rows in fewer and larger parts, where polars has them with the same types."""
    held: list[Frame] = []
    rows: list[pl.DataFrame] = []
    for frame, index in parts:
        fits = bool(held) and frame.implementation.is_polars() and frame.schema == held[0].schema
        if held and not (fits and sum(map(_size, held)) < _BLOCK_BYTES):
            yield _one(held, rows)
            held, rows = [], []
        rows.append(index.with_columns(pl.col(ROW) + sum(map(len, held))))
        held.append(frame)
    if held:
        yield _one(held, rows)


def _one(frames: list[Frame], rows: list[pl.DataFrame]) -> tuple[Frame, pl.DataFrame]:
    if len(frames) == 1:
        return frames[0], rows[0]
    whole = pl.concat([frame.to_native() for frame in frames], rechunk=True)
    return nw.from_native(whole, eager_only=True), pl.concat(rows, how="diagonal", rechunk=True)


def numbered(rows: int) -> pl.Series:
    """The rows of a frame, from 0 on."""
    return pl.Series(ROW, np.arange(rows, dtype=np.uint32))


def _taken(frame: Frame, index: pl.DataFrame) -> tuple[Frame, pl.DataFrame]:
    """The rows of a frame that an index names, in the order of the index, which names them anew."""
    rows = index[ROW].to_numpy()
    taken = frame if np.array_equal(rows, np.arange(len(frame))) else frame[rows]
    return taken, index.drop(PART, strict=False).with_columns(numbered(len(index)))


def _size(frame: Frame) -> int:
    return int(frame.estimated_size())
