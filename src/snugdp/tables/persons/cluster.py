"""Passes by persons on a Spark cluster: a shuffle brings the rows of each person to one worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from snugdp.tables.engines import fold
from snugdp.tables.sources.base import Frame
from snugdp.tables.sources.cluster import SparkSource, declared, interpreter, mapped

if TYPE_CHECKING:
    from snugdp.tables.persons.passes import PersonPass

_PARTITIONS = "spark.sql.shuffle.partitions"


def shuffled(source: SparkSource, work: PersonPass) -> SparkSource:
    """The table that results from a pass by persons. It is computed on the cluster, whenever it is read.

    Each row travels with the hash of its person, and without an identifier with that of its content: so a task that is
    run again sends every row where it was sent before.
    """
    source.check(work)
    table, session = source.table, source.table.sparkSession
    route = _unused(work.columns)
    number = int(session.conf.get(_PARTITIONS))
    with interpreter(session):
        routed = mapped(table, work.columns, _Route(work, route), _fields(table, work.columns, route))
        rows = routed.repartition(number, route)
        done = mapped(rows, work.columns, _Work(work), work.spark_fields(_fields(table, work.columns)))
        return SparkSource(done, is_checked=True)


def _unused(names: tuple[str, ...]) -> str:
    """A name that no column has; Spark ignores case."""
    taken, found = {name.lower() for name in names}, "route"
    while found in taken:
        found += "_"
    return found


def _fields(table: Any, names: tuple[str, ...], route: str | None = None) -> Any:
    """The declared types of these columns, where cells may be missing; and of the hash of persons beside them."""
    from pyspark.sql.types import LongType, StructField, StructType

    types = {field.name: field.dataType for field in declared(table)}
    fields = [StructField(name, types[name], True) for name in names]
    return StructType(fields if route is None else [*fields, StructField(route, LongType(), True)])


@dataclass(frozen=True)
class _Route:
    """Adds the hash of its person to each row."""

    work: PersonPass
    name: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The same rows."""
        import pyarrow as pa

        for batch in batches:
            hashes = self.work.routes(_frame(batch)).view(np.int64)
            names, columns = [*batch.schema.names, self.name], [*batch.columns, pa.array(hashes, pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, names)


@dataclass(frozen=True)
class _Work:
    """Does with the rows of some persons what the pass does."""

    work: PersonPass

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The rows of the result."""
        held = fold(self.work, map(_frame, batches))
        for frame, index in held.results(self.work):
            yield from self.work.finished(frame, index).to_native().to_batches()


def _frame(batch: Any) -> Frame:
    import pyarrow as pa

    return nw.from_native(pa.Table.from_batches([batch]), eager_only=True)
