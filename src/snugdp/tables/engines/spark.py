"""The engine of a Spark cluster: the pass travels to the rows, and one packed state comes back from each partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import narwhals as nw

from snugdp.secrecy.silence import attempt
from snugdp.tables.engines.base import fold, merged
from snugdp.tables.sources import Source, SparkSource, TableError, wanted
from snugdp.tables.sources.cluster import interpreter

if TYPE_CHECKING:
    from snugdp.tables.passes.base import Pass

S = TypeVar("S")


@dataclass(frozen=True)
class Spark:
    """The session that the table belongs to. A task that is lost is run again by Spark, from its rows.

    Guarantee: every partition has answered exactly once, or ``TableError`` is raised.
    """

    def run(self, source: Source, work: Pass[S]) -> S:
        """The state of the pass over the whole table. It is private."""
        source.check(work)
        if not isinstance(source, SparkSource):
            raise TypeError("the Spark engine reads Spark tables only")
        columns = [f"`{name.replace('`', '``')}`" for name in wanted(work, source.types)]
        with interpreter(source.table.sparkSession):
            job = source.table.select(*columns).mapInArrow(_Task(work), "part int, state binary")
        worked, answers = attempt(lambda: _answers(job))
        if not worked or answers is None:
            raise TableError(
                "the Spark job failed; the cause is in the logs of the cluster and is withheld here because it may "
                "quote rows. Nothing was released"
            )
        number, states = answers
        if sorted(part for part, _ in states) != list(range(number)):
            raise TableError("some partitions of the Spark table are missing or came twice. Nothing was released")
        return merged(work, (work.unpack(state) for _, state in states))


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
        state = self.work.pack(fold(self.work, frames))
        columns = [pa.array([context.partitionId()], pa.int32()), pa.array([state], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["part", "state"])
