"""Votes of teachers whose parts are the rows of a table of any size, here or where the rows lie on a Spark cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import polars as pl

from snugdp.estimators.pate.piles import PILES, Piles
from snugdp.estimators.pate.records import ROW, TEACHER, WHO, WORD, Counted, RowRecords
from snugdp.estimators.pate.rows import Integers, size
from snugdp.estimators.pate.teachers import FAILED, Ballot, histograms, packed, votes_of
from snugdp.secrecy.private_state import PrivateState
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import labelled, type_name
from snugdp.tables.engines import engine_for, gather
from snugdp.tables.passes.base import Sums
from snugdp.tables.persons.images import check_person
from snugdp.tables.sources import Source, SparkSource
from snugdp.tables.sources.base import Frame
from snugdp.tables.sources.cluster import fields, interpreter, mapped

_PARTITIONS = "spark.sql.shuffle.partitions"
_UNSENDABLE = (
    "the teacher cannot be sent to the workers of Spark, because it cannot be pickled: use a classifier of a module "
    "that the workers can import. Nothing was charged"
)


@dataclass(frozen=True)
class RecordPass:
    """The records of a table. For tables of this process: the state does not travel."""

    records: RowRecords

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that are read."""
        return self.records.columns

    def empty(self) -> Piles:
        """No records."""
        return Piles(lambda records: (records[WORD].to_numpy() >> 56) + PILES // 2)

    def fold(self, state: Piles, frame: Frame) -> Piles:
        """Some more."""
        if len(frame):
            state.add(self.records.of(frame))
        return state

    def merge(self, one: Piles, other: Piles) -> Piles:
        """Those of both parts."""
        one.merge(other)
        return one

    def pack(self, state: Piles) -> NoReturn:
        """Refused."""
        raise TypeError("rows of teachers stay in their process")

    def unpack(self, packed: bytes) -> NoReturn:
        """Refused."""
        raise TypeError("rows of teachers stay in their process")


def check_table(source: Source, records: RowRecords) -> None:
    """An error about something public: names and declared types. No row is looked at."""
    features = records.form.names
    if features is None:
        raise TypeError(
            "a table with named columns needs queries with names: give them as a pandas, polars or pyarrow table, "
            "whose columns are the features"
        )
    beside = {"the labels": records.target, "persons": records.person}
    for what, name in beside.items():
        if name in features:
            raise ValueError(f'"{name}" is the column of {what}, and no feature: leave it out of the queries')
    if records.target == records.person:
        raise ValueError(f'"{records.person}" cannot be both the label and the person')
    source.check(RecordPass(records))
    if not labelled(of_labels := source.types[records.target]):
        raise TypeError(
            f'the labels "{records.target}" must be text, numbers, booleans or dates, not {type_name(of_labels)}; '
            "convert them first"
        )
    if records.person is not None:
        check_person(records.person, source.types[records.person])


def table_votes(source: Source, records: RowRecords, ballot: Ballot, *, n_jobs: Any, progress: Any) -> Integers:
    """How many teachers vote for every class, by query. Private."""
    if isinstance(source, SparkSource):
        return _cluster_votes(source, records, ballot)
    held = gather(source, RecordPass(records), progress=progress)
    return histograms(_parts(held, records), ballot, n_jobs=n_jobs, progress=progress)


def _parts(held: Piles, records: RowRecords) -> Iterator[tuple[int, tuple[Any, Integers]]]:
    """All teachers with their parts, in their order: how many have rows is private, and bars of progress are seen."""
    most = max(records.teachers, PILES)
    piles = Piles(lambda found: found[TEACHER].to_numpy() * PILES // most)
    for found in held.results():
        piles.add(records.assigned(found)[0])
    coming = 0
    for found in piles.results():
        for part in found.sort(TEACHER).partition_by(TEACHER, maintain_order=True):
            teacher = int(part[TEACHER][0])
            yield from _without_rows(coming, teacher)
            yield teacher, records.part(part)
            coming = teacher + 1
    yield from _without_rows(coming, records.teachers)


def _without_rows(first: int, end: int) -> Iterator[tuple[int, tuple[Any, Integers]]]:
    return ((teacher, (None, np.empty(0, dtype=np.int64))) for teacher in range(first, end))


def _cluster_votes(source: SparkSource, records: RowRecords, ballot: Ballot) -> Integers:
    work = VotePass(records, ballot)
    from pyspark import cloudpickle

    dumps: Any = cloudpickle.dumps
    if not attempt(lambda: dumps(work))[0]:
        raise ValueError(_UNSENDABLE)
    parts = _scattered(source, records)
    numbers = np.array(engine_for(parts).run(parts, work).votes.values(), dtype=np.int64)
    teachers = len(ballot.seeds)
    if (numbers[-teachers:] > 1).any():  # the cluster has cut a part in two
        raise PrivateComputationError(FAILED)
    return numbers[:-teachers].reshape(size(ballot.queries), len(ballot.classes))


def _scattered(source: SparkSource, records: RowRecords) -> SparkSource:
    """The records of each teacher one after the other, in one partition. Computed on the cluster when it is read.

    Two shuffles by what a row holds: equal rows come together to be numbered, and then those of a teacher. So a task
    that is run again sends every record where it was sent before.
    """
    source.check(RecordPass(records))
    session = source.table.sparkSession
    number = int(session.conf.get(_PARTITIONS))
    with interpreter(session):
        made = mapped(source.table, records.columns, _Made(records), fields(word="long", who="long", row="binary"))
        equal = made.repartition(number, WORD).sortWithinPartitions(WORD, ROW)
        found = equal.mapInArrow(_Assigned(records), fields(teacher="long", word="long", row="binary"))
        return SparkSource(found.repartition(number, TEACHER).sortWithinPartitions(TEACHER), is_checked=True)


@dataclass(frozen=True)
class _Made:
    """Makes records of rows."""

    records: RowRecords

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Those of every batch."""
        import pyarrow as pa

        for batch in batches:
            frame = nw.from_native(pa.Table.from_batches([batch]), eager_only=True)
            yield from _arrow(self.records.of(frame), long=(WORD, WHO))


@dataclass(frozen=True)
class _Assigned:
    """Says the teacher of every record; equal ones come one after the other."""

    records: RowRecords

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The same records."""
        before: Counted | None = None
        for batch in batches:
            found, last = self.records.assigned(_polars(batch), before)
            before = before if last is None else last
            yield from _arrow(found, long=(TEACHER, WORD))


def _polars(batch: Any) -> pl.DataFrame:
    found = pl.from_arrow(batch)
    assert isinstance(found, pl.DataFrame)
    return found


def _arrow(records: pl.DataFrame, long: tuple[str, ...]) -> Iterator[Any]:
    import pyarrow as pa

    kinds = [(name, pa.int64()) for name in long]
    yield from records.to_arrow().cast(pa.schema([*kinds, (ROW, pa.binary())])).to_batches()


class CastVotes(PrivateState):
    """Votes so far, how often each teacher was trained, and the records of the teacher whose turn it is. Private."""

    __slots__ = ("records", "teacher", "votes")

    def __init__(self, votes: Sums) -> None:
        self.votes = votes
        self.teacher: int | None = None
        self.records: list[pl.DataFrame] = []


@dataclass(frozen=True)
class VotePass:
    """Trains every teacher where its part is, and counts the votes: its records come one after the other."""

    records: RowRecords
    ballot: Ballot

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of records."""
        return (TEACHER, WORD, ROW)

    def empty(self) -> CastVotes:
        """No votes."""
        return CastVotes(Sums(size(self.ballot.queries) * len(self.ballot.classes) + len(self.ballot.seeds)))

    def fold(self, state: CastVotes, frame: Frame) -> CastVotes:
        """Some more records; a teacher is trained when the next one begins."""
        for part in frame.to_polars().partition_by(TEACHER, maintain_order=True):
            teacher = int(part[TEACHER][0])
            if teacher != state.teacher:
                self._close(state)
                state.teacher = teacher
            state.records.append(part)
        return state

    def merge(self, one: CastVotes, other: CastVotes) -> CastVotes:
        """The votes of all teachers of both."""
        self._close(one)
        self._close(other)
        one.votes.merge(other.votes)
        return one

    def pack(self, state: CastVotes) -> bytes:
        """The votes, in a public number of bytes; records do not travel."""
        self._close(state)
        return state.votes.to_bytes()

    def unpack(self, packed: bytes) -> CastVotes:
        """The votes that were packed."""
        state = self.empty()
        state.votes.restored(packed)
        return state

    def _close(self, state: CastVotes) -> None:
        if state.teacher is None:
            return
        ballot, teacher = self.ballot, state.teacher
        part = packed(self.records.part(pl.concat(state.records)))
        state.teacher, state.records = None, []
        answers = votes_of(ballot.teacher(teacher), part, ballot.queries, ballot.classes)
        cast = np.flatnonzero(answers >= 0)
        counts = state.votes.reserve(1)
        counts[cast * len(ballot.classes) + answers[cast]] += 1
        counts[teacher - len(ballot.seeds)] += 1
