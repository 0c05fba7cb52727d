"""The engine of this machine: batches from one stream, folded by several threads, merged exactly."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from snugdp.secrecy.secret import PrivateComputationError
from snugdp.tables.engines.base import fold, merged
from snugdp.tables.sources import Batch, Source, TableError, wanted
from snugdp.tables.sources.base import Frame

if TYPE_CHECKING:
    from snugdp.tables.passes.base import Pass

S = TypeVar("S")
_SMALL = 2048  # rows


@dataclass(frozen=True)
class Local:
    """Threads of this process. Memory does not grow with the number of rows: at most one batch for each thread.

    ``threads``: by default one for every core. ``progress``: see ``measure``.
    """

    threads: int | None = None
    progress: bool | None = None

    def run(self, source: Source, work: Pass[S]) -> S:
        """The state of the pass over the whole table. It is private."""
        source.check(work)
        number = self.threads or cores()
        with _bar(source, self.progress) as advance:
            feed = _Feed(_batches(source, work), advance)
            parts = [_part(work, feed, feed.small())]
            if not feed.ended:
                parts += _parts(work, feed, number)
        for part in parts:
            if part.error is not None:
                raise type(part.error)(*part.error.args)  # a new one, without the frames of the threads
        return merged(work, (part.state for part in parts if part.state is not None))


def cores() -> int:
    """Those that this process may use, where the system can tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class _Part(Generic[S]):
    """What one thread brings: its state, or why there is none."""

    state: S | None = None
    error: TableError | PrivateComputationError | None = None


def _parts(work: Pass[S], feed: _Feed, number: int) -> list[_Part[S]]:
    """One for each thread, until nothing is left."""
    with ThreadPoolExecutor(number) as pool:
        try:
            return list(pool.map(lambda _: _part(work, feed, feed), range(number)))
        finally:
            feed.stop()  # also when the user interrupts


def _part(work: Pass[S], feed: _Feed, frames: Iterable[Frame]) -> _Part[S]:
    try:
        return _Part(fold(work, frames))
    except (TableError, PrivateComputationError) as problem:
        feed.stop()
        return _Part(error=problem)


def _batches(source: Source, work: Pass[S]) -> Iterator[Batch]:
    columns = wanted(work, source.types)
    for partition in source.partitions():
        yield from partition.batches(columns)


class _Feed:
    """One stream of batches for several threads."""

    def __init__(self, batches: Iterator[Batch], advance: Callable[[int], None]) -> None:
        self._batches, self._advance = batches, advance
        self._lock, self.ended = Lock(), False
        self._put_back: Batch | None = None

    def __iter__(self) -> Iterator[Frame]:
        while (batch := self._next()) is not None:
            yield batch.frame
            self._advance(batch.size)

    def _next(self) -> Batch | None:
        with self._lock:
            batch, self._put_back = self._put_back, None
            if batch is None and not self.ended:
                batch = next(self._batches, None)
            self.ended = self.ended or batch is None
            return batch

    def small(self) -> Iterator[Frame]:
        """The first frames, if they are so small that starting threads takes longer than they do."""
        for _ in range(2):
            batch = self._next()
            if batch is None:
                return
            if len(batch.frame) > _SMALL:
                self._put_back = batch
                return
            yield batch.frame
            self._advance(batch.size)

    def stop(self) -> None:
        """No more batches."""
        self._put_back, self.ended = None, True


@contextmanager
def _bar(source: Source, progress: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar of bytes on the terminal: the sizes of the files are known to whoever sees it, the rows are private."""
    if not source.size or not (sys.stderr.isatty() if progress is None else progress):
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=source.size)
        yield lambda size: bar.advance(task, size)
