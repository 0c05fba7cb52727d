"""Answers about the rows of a Spark table, row by row: a released model travels to the rows, and they stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt
from snugdp.tables.sources import SparkSource, TableError, is_spark
from snugdp.tables.sources.base import listed
from snugdp.tables.sources.cluster import ask_workers, declared, interpreter, mapped

M = TypeVar("M", bound=Callable[..., Any])
_KINDS = {"f": "double", "i": "long", "u": "long", "b": "boolean"}  # of one answer; other classes are text


def row_by_row(name: str) -> Callable[[M], M]:
    """For a method that answers each row by itself: of a Spark table it gives a Spark table, computed when it is read.

    ``name``: of the column with the answers.
    """

    def extended(method: M) -> M:
        @wraps(method)
        def asked(self: Any, X: Any) -> Any:
            return answered(self, method.__name__, name, X) if is_spark(X) else method(self, X)

        return asked  # type: ignore[return-value]

    return extended


def answered(model: Any, method: str, name: str, table: Any) -> Any:
    """The table with one more column, which has the answers. They are as private as the rows."""
    source = SparkSource(table)
    if name in (column.lower() for column in source.types):
        raise TableError(f'the Spark table has a column "{name}" already: rename it')
    columns = _columns(model, source)
    alone = copy(model)
    alone.ledger = alone.noise = None  # what paid for a model stays where it is
    task = _Answer(alone, method, columns, name)
    fields = _schema(table, name, task.of(_empty(table, columns)))  # columns of other types are refused here
    ask_workers(table.sparkSession)
    with interpreter(table.sparkSession):
        return mapped(table, tuple(source.types), task, fields)


def _columns(model: Any, source: SparkSource) -> tuple[str, ...]:
    """By name; a model of arrays without names takes all columns in their order."""
    names = tuple(getattr(model, "feature_names_in_", source.types))
    absent = [name for name in names if name not in source.types]
    if absent:
        raise TableError(f"the Spark table has no column {listed(absent)}, which the model reads")
    return names


def _empty(table: Any, columns: tuple[str, ...]) -> Any:
    """A frame without rows, as workers make them."""
    import polars as pl
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields = {field.name: field for field in declared(table)}
    worked, found = attempt(lambda: to_arrow_schema(StructType([fields[name] for name in columns])).empty_table())
    if not worked or found is None:
        raise TableError(f"columns of the Spark table cannot be read: {listed(columns)}. Convert them first")
    return pl.from_arrow(found)


def _schema(table: Any, name: str, answers: NDArray[Any]) -> Any:
    """The columns of the table and that of the answers; several numbers for a row are an array."""
    from pyspark.sql.types import ArrayType, DoubleType, StructType

    kind = ArrayType(DoubleType()) if answers.ndim == 2 else _KINDS.get(answers.dtype.kind, "string")
    return StructType(declared(table)).add(name, kind)  # that of the table would be changed in its place


def _type(answers: NDArray[Any]) -> Any:
    """The same for Arrow: a batch without rows says nothing of it."""
    import pyarrow as pa

    numbers = {"f": pa.float64(), "i": pa.int64(), "u": pa.int64(), "b": pa.bool_()}
    return pa.list_(pa.float64()) if answers.ndim == 2 else numbers.get(answers.dtype.kind, pa.string())


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
            column = pa.array([str(one) for one in answers.tolist()] if text else answers.tolist(), _type(answers))
            yield pa.RecordBatch.from_arrays([*batch.columns, column], [*batch.schema.names, self.name])
