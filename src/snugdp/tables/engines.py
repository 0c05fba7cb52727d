"""Who runs a pass over a table, here or on a cluster, with the same result to the last bit.

An engine is one method; another cluster is one more class. ``Local``: batches from one stream, folded by several
threads, merged exactly. ``Spark``: the pass travels to the rows, and one packed state comes back from each partition.
``SparkConnect``: the same, with the states merged on the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import narwhals as nw

from snugdp.core.screen import watched
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import numeric, type_name
from snugdp.tables.passes.digest import DigestPass
from snugdp.tables.passes.together import Together
from snugdp.tables.sources import Batch, Source, SparkSource, TableError, open_source, wanted
from snugdp.tables.sources.base import Frame
from snugdp.tables.sources.cluster import fields, interpreter, is_remote, mapped

if TYPE_CHECKING:
    from snugdp.tables.passes.base import Pass

S = TypeVar("S")
PASS_FAILED = "the pass over the rows failed; the cause is withheld because it may depend on them. Nothing was released"
OTHER_ROWS = (
    "the table held other rows when it was read again, so nothing is released: its rows change while it is read, or "
    "what computes them is not deterministic. Write it to a file or a table first, and give that"
)
_JOB_FAILED = (
    "the Spark job failed; the cause is in the logs of the cluster and is withheld here because it may quote rows. "
    "Nothing was released"
)
_PARTS_MISSING = "some partitions of the Spark table are missing or came twice. Nothing was released"
_SMALL_TABLE_ROWS = 2048  # rows
TASKS_PER_CORE = 4  # of a pass on Spark: more partitions than that are read one after the other by one task
_USUAL_TASKS = 200  # where a session cannot say how many cores it has: Spark's own number of partitions


class Engine(Protocol):
    """Folds every row of a source exactly once and merges the parts, or raises."""

    def run(self, source: Source, work: Pass[S]) -> S:
        """The state of the pass over the whole table. It is private."""


def measure(data: object, work: Pass[S], *, progress: bool | None = None) -> Secret[S]:
    """One pass over a table, wherever it is: in memory, in files, in a database, on a Spark cluster.

    ``progress``: a bar on the terminal; by default where there is a terminal. It shows bytes of files, never rows.
    What is public is checked before the first row is read. Charge the budget afterwards and before any noise is drawn:
    a pass that fails has then cost nothing.

    Guarantee: every row is folded exactly once, or a ``TableError`` or ``PrivateComputationError`` is raised and
    nothing is returned. Since merging is exact, the state does not depend on the engine, the order of the rows or how
    they are split. No message, warning or progress bar depends on the rows.
    """
    source = open_source(data)
    return Secret(gather(source, work, progress=progress, again=source is data))


def numeric_source(data: object, columns: Iterable[str]) -> Source:
    """The table, if these columns hold numbers by their declared types. No row is looked at."""
    source = open_source(data)
    for name in columns:
        if name in source.types and not numeric(source.type_for_reading(name)):
            raise TypeError(f'column "{name}" must hold numbers, not {type_name(source.types[name])}; convert it first')
    return source


def gather(source: Source, work: Pass[S], *, progress: bool | None = None, again: bool = True) -> S:
    """As ``measure``, for computations that are inside a ``Secret`` already: what is returned is private.

    A table whose rows are not in our hands is digested on the way: a pass that has read other rows than an earlier one
    raises a ``TableError``. ``again``: whether there may be other passes over what was opened.
    """
    source.check(work)
    engine = engine_for(source, progress=progress)
    if source.held or not again:
        return engine.run(source, work)
    columns = wanted(work, source.types)
    digest = DigestPass(columns)
    both = engine.run(source, Together((work, digest)))
    if not source.record.meets(columns, *digest.sums(both.parts[1])):
        raise TableError(OTHER_ROWS)
    return cast(S, both.parts[0])


def engine_for(source: Source, *, progress: bool | None = None) -> Engine:
    """The engine that can reach the rows."""
    if isinstance(source, SparkSource):
        return SparkConnect() if source.remote else Spark()
    return Local(progress=progress)


def fold(work: Pass[S], frames: Iterable[Frame]) -> S:
    """The state after all frames. What goes wrong inside the pass is not told; what goes wrong in reading is."""
    state = work.empty()
    for frame in frames:
        state = fold_one(work, state, frame)
    return state


def fold_one(work: Pass[S], state: S, frame: Frame) -> S:
    """The state after one more frame. Raised outside any handler, so that nothing carries private values."""
    worked, after = attempt(lambda: work.fold(state, frame))
    if not worked or after is None:
        raise PrivateComputationError(PASS_FAILED)
    return after


def merged(work: Pass[S], states: Iterable[S]) -> S:
    """All parts together."""
    total = work.empty()
    for state in states:
        total = work.merge(total, state)
    return total


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
            if len(batch.frame) > _SMALL_TABLE_ROWS:
                self._put_back = batch
                return
            yield batch.frame
            self._advance(batch.size)

    def stop(self) -> None:
        """No more batches."""
        self._put_back, self.ended = None, True


@contextmanager
def _bar(source: Source, progress: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar of bytes: the sizes of the files are known to whoever sees it, the rows are private."""
    if not source.size or not watched(progress):
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=source.size)
        yield lambda size: bar.advance(task, size)


@dataclass(frozen=True)
class Spark:
    """The session that the table belongs to. A task that is lost is run again by Spark, from its rows.

    Guarantee: every partition has answered exactly once, or ``TableError`` is raised.
    """

    def run(self, source: Source, work: Pass[S]) -> S:
        """The state of the pass over the whole table. It is private."""
        job = _job(source, work)
        worked, answers = attempt(lambda: _answers(job))
        if not worked or answers is None:
            raise TableError(_JOB_FAILED)
        number, states = answers
        if sorted(part for part, _ in states) != list(range(number)):
            raise TableError(_PARTS_MISSING)
        return merged(work, (work.unpack(state) for _, state in states))


@dataclass(frozen=True)
class SparkConnect:
    """The server of Spark Connect that the table belongs to.

    A session cannot ask how many partitions there are. So their answers are merged behind a shuffle into one partition,
    which Spark reads when every task before it has ended, and one row comes back, also from a table without rows.

    Guarantee: every partition has answered exactly once, as far as Spark's shuffle brings every block once, or
    ``TableError`` is raised.
    """

    def run(self, source: Source, work: Pass[S]) -> S:
        """The state of the pass over the whole table. It is private."""
        job = _job(source, work)
        first = job.sparkSession.range(1).selectExpr("-1 as part", "X'' as state")
        last = job.union(first).repartition(1)
        worked, answers = attempt(
            lambda: [
                (int(row["part"]), bytes(row["state"]))
                for row in last.mapInArrow(_Merge(work), _answer_fields()).collect()
            ]
        )
        if not worked or answers is None:
            raise TableError(_JOB_FAILED)
        if len(answers) != 1 or answers[0][0] < 0:
            raise TableError(_PARTS_MISSING)
        return work.unpack(answers[0][1])


def _job(source: Source, work: Pass[Any]) -> Any:
    """A Spark table with one row for each partition: its number and its packed state."""
    source.check(work)
    if not isinstance(source, SparkSource):
        raise TypeError("the Spark engines read Spark tables only")
    table, names = source.table, list(wanted(work, source.types))
    with interpreter(table.sparkSession):
        most = _tasks(table.sparkSession)
        worked, job = attempt(lambda: mapped(table, names, _Task(work), _answer_fields(), most))
    if not worked:
        raise TableError(_JOB_FAILED)
    return job


def _tasks(session: Any) -> int:
    """How many tasks a pass has at most: a task and its answer cost more than the rows of a small partition."""
    cores = _USUAL_TASKS if is_remote(session) else session.sparkContext.defaultParallelism
    return TASKS_PER_CORE * int(cores)


def _answer_fields() -> Any:
    return fields(part="integer", state="binary")


def _answers(job: Any) -> tuple[int, list[tuple[int, bytes]]]:
    """How many partitions there are, and what they answered: both from one and the same plan."""
    tasks = job.rdd
    number = tasks.getNumPartitions()
    return number, [(int(row["part"]), bytes(row["state"])) for row in tasks.collect()]


@dataclass(frozen=True)
class _Task:
    """What a worker does with a partition."""

    work: Pass[Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One row: the number of the partition and its packed state."""
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            raise RuntimeError("this runs inside a Spark task only")
        frames = (nw.from_native(pa.Table.from_batches([batch]), eager_only=True) for batch in batches)
        yield _row(context.partitionId(), self.work.pack(fold(self.work, frames)))


@dataclass(frozen=True)
class _Merge:
    """What a worker does with the answers of all partitions."""

    work: Pass[Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One row: how many partitions have answered, and their state together; -1 if they are not 0, 1, 2, ..."""
        rows = [row for batch in batches for row in batch.to_pylist()]
        complete = sorted(row["part"] for row in rows) == list(range(-1, len(rows) - 1))
        states = (row["state"] for row in rows if complete and row["part"] >= 0)
        state = merged(self.work, map(self.work.unpack, states))
        yield _row(len(rows) - 1 if complete else -1, self.work.pack(state))


def _row(part: int, state: bytes) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([part], pa.int32()), pa.array([state], pa.binary())], ["part", "state"])
