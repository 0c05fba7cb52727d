"""Answers about the rows of a Spark table, row by row: a released model travels to the rows, and they stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.tables.sources import SparkSource, TableError, is_spark
from snugdp.tables.sources.base import listed
from snugdp.tables.sources.cluster import ask_workers, declared, interpreter, quoted

M = TypeVar("M", bound=Callable[..., Any])
_NAMES = {"predict": "prediction", "predict_proba": "probabilities", "transform": "coordinates"}
_KINDS = {"f": "double", "i": "long", "u": "long", "b": "boolean"}  # of one answer; other classes are text


def row_by_row(method: M) -> M:
    """A method that answers each row by itself. Of a Spark table it gives a Spark table, computed when it is read."""

    @wraps(method)
    def asked(self: Any, X: Any) -> Any:
        return answered(self, method.__name__, X) if is_spark(X) else method(self, X)

    return asked  # type: ignore[return-value]


def answered(model: Any, method: str, table: Any) -> Any:
    """The table with one more column, which has the answers. They are as private as the rows."""
    source, name = SparkSource(table), _NAMES[method]
    if name in (column.lower() for column in source.types):
        raise TableError(f'the Spark table has a column "{name}" already: rename it')
    columns = _columns(model, source)
    alone = copy(model)
    alone.ledger = alone.noise = None  # what paid for a model stays where it is
    task = _Answer(alone, method, columns, name)
    fields = _schema(table, name, task.of(_empty(columns)))
    ask_workers(table.sparkSession)
    with interpreter(table.sparkSession):
        return table.select(*map(quoted, source.types)).mapInArrow(task, fields)


def _columns(model: Any, source: SparkSource) -> tuple[str, ...]:
    """By name; a model of arrays without names takes all columns in their order."""
    names = tuple(getattr(model, "feature_names_in_", source.types))
    absent = [name for name in names if name not in source.types]
    if absent:
        raise TableError(f"the Spark table has no column {listed(absent)}, which the model reads")
    return names


def _empty(columns: tuple[str, ...]) -> Any:
    import polars as pl

    return pl.DataFrame(schema=dict.fromkeys(columns, pl.String))


def _schema(table: Any, name: str, answers: NDArray[Any]) -> Any:
    """The columns of the table and that of the answers; several numbers for a row are an array."""
    from pyspark.sql.types import ArrayType, DoubleType, StructType

    kind = ArrayType(DoubleType()) if answers.ndim == 2 else _KINDS.get(answers.dtype.kind, "string")
    return StructType(declared(table)).add(name, kind)  # that of the table would be changed in its place


@dataclass(frozen=True)
class _Answer:
    """What a worker does with the rows of a partition."""

    model: Any
    method: str
    columns: tuple[str, ...]
    name: str

    def of(self, frame: Any) -> NDArray[Any]:
        """The answers for a frame."""
        return np.asarray(getattr(self.model, self.method)(frame))

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The same rows, with their answers."""
        import polars as pl
        import pyarrow as pa

        for batch in batches:
            answers = self.of(pl.from_arrow(pa.Table.from_batches([batch]).select(list(self.columns))))
            text = answers.ndim == 1 and answers.dtype.kind not in _KINDS
            column = pa.array([str(one) for one in answers.tolist()] if text else answers.tolist())
            yield pa.RecordBatch.from_arrays([*batch.columns, column], [*batch.schema.names, self.name])
