"""A table on a Spark cluster. Only its names and declared types come to the driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw

from snugdp.secrecy.silence import attempt
from snugdp.tables.sources.base import Partition, Source, TableError, listed
from snugdp.tables.sources.connect_plan import check_connect_names, check_connect_plan
from snugdp.tables.sources.spark_plan import SKIPPING, check_plan

if TYPE_CHECKING:
    from snugdp.tables.passes.base import Pass

_VARIABLE, _DEFAULT = "PYSPARK_PYTHON", "python3"  # where Spark looks for the interpreter of its workers
_UNPLANNED = "the Spark table cannot be planned: look at its schema (table.printSchema())"
_ready: set[str] = set()  # Spark applications whose workers were asked


class SparkSource(Source):
    """A Spark DataFrame. Its rows stay on the cluster: the Spark engines send the pass to them.

    ``remote``: whether it belongs to a session of Spark Connect, which has no access to the server beyond its requests.
    ``is_checked``: whether the plan of what it was computed from, by jobs of ours, has been checked already.
    What has no type elsewhere (maps, intervals) is a struct here: it fits nothing.
    """

    name = "the Spark table"
    inferred = True

    def __init__(self, table: Any, *, is_checked: bool = False) -> None:
        self.remote = is_remote(table)
        if self.remote:
            check_connect_names(table)
        worked, found = attempt(lambda: (list(table.columns), dict(table.dtypes)))
        if not worked or found is None:
            raise TableError(_UNPLANNED)
        names, kinds = found
        lower = [name.lower() for name in names]
        doubled = [name for name in names if lower.count(name.lower()) > 1]
        if doubled:
            raise TableError(f"Spark cannot tell these columns apart: {listed(doubled)}; rename one")
        worked, types = attempt(lambda: dict(nw.from_native(table).collect_schema()))
        if not worked or types is None:
            raise TableError(_UNPLANNED)
        odd = {name for name, dtype in types.items() if dtype == nw.Unknown() and kinds[name] != "void"}
        self.table, self._is_checked = table, is_checked
        self.types = {name: nw.Struct({}) if name in odd else dtype for name, dtype in types.items()}

    def partitions(self) -> Sequence[Partition]:
        """None here: the rows are never read on the driver."""
        raise TableError("a Spark table is read by the Spark engine: use measure(table, pass)")

    def check(self, work: Pass[Any]) -> None:
        """As for every source; rows must stay the same, no file be skipped, and workers must have this library."""
        super().check(work)
        session = self.table.sparkSession
        for setting in (f"{prefix}.{option}" for prefix in ("spark.sql.files", "spark.files") for option in SKIPPING):
            if session.conf.get(setting, "false") != "false":
                raise TableError(f"{setting} is on: rows could be lost silently. Set it to false")
        if not self._is_checked:
            (check_connect_plan if self.remote else check_plan)(self.table)
            self._is_checked = True
        ask_workers(session)


def is_remote(thing: object) -> bool:
    """Whether a table or a session belongs to Spark Connect."""
    return ".connect." in f"{type(thing).__module__}."


@contextmanager
def interpreter(session: Any) -> Iterator[None]:
    """Jobs that are made meanwhile run this Python, where workers share this machine and nobody named another one.

    Spark would start whichever ``python3`` comes first, which in an environment that was not activated is not ours.
    With Spark Connect that is for the server to say.
    """
    if is_remote(session):
        yield
        return
    context = session.sparkContext
    named = context.pythonExec
    chosen = named != _DEFAULT or _VARIABLE in os.environ or context.getConf().contains("spark.pyspark.python")
    if context.master.startswith("local") and not chosen:
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = named


def ask_workers(session: Any) -> None:
    """A job without rows, once for a session: whether a worker can import this library, in this version."""
    application = session.session_id if is_remote(session) else session.sparkContext.applicationId
    if application in _ready:
        return
    with interpreter(session):
        job = session.range(1).coalesce(1).mapInArrow(_version, fields(version="string"))
    worked, rows = attempt(lambda: [row["version"] for row in job.collect()])
    if not worked:
        raise TableError(
            "the Spark workers cannot run this library: install snugdp (and pyarrow) on every worker, for "
            f"Python {sys.version_info[0]}.{sys.version_info[1]} as here, and name that interpreter in the environment "
            f"variable {_VARIABLE} before the session starts. It is {_named()}"
        )
    if rows != [_installed()]:
        raise TableError(f"the Spark workers have another version of snugdp: install {_installed()} on every worker")
    _ready.add(application)


def mapped(
    table: Any,
    names: Sequence[str],
    task: Callable[[Iterator[Any]], Iterator[Any]],
    types: Any,
    most: int | None = None,
) -> Any:
    """What workers make of these columns, batch by batch, in so many tasks at ``most``; columns may have any name.

    Where names are read, Spark takes a dot for the way into a struct and stumbles over a backtick. So columns travel by
    their places, and get their names back on the worker.
    """
    places = {name: f"c{place}" for place, name in enumerate(table.columns)}
    plain = table.toDF(*places.values()).select(*(places[name] for name in names))
    few = plain if most is None else plain.coalesce(most)
    return few.mapInArrow(_Named(task, tuple(names)), types)


@dataclass(frozen=True)
class _Named:
    """A task, which sees the columns by their names."""

    task: Callable[[Iterator[Any]], Iterator[Any]]
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What the task makes of them."""
        import pyarrow as pa

        if not self.names:  # Arrow would forget how many rows there are
            return self.task(batches)
        return self.task(pa.RecordBatch.from_arrays(batch.columns, list(self.names)) for batch in batches)


def declared(table: Any) -> list[Any]:
    """The fields of the schema. What a server says if it cannot plan the table may quote rows, and is dropped."""
    worked, found = attempt(lambda: list(table.schema.fields))
    if not worked or found is None:
        raise TableError(_UNPLANNED)
    return found


def fields(**types: str) -> Any:
    """A Spark schema; Spark Connect does not read one from text in every environment."""
    from pyspark.sql.types import StructType

    schema = StructType()
    for name, kind in types.items():
        schema = schema.add(name, kind)
    return schema


def _named() -> str:
    return f'set to "{os.environ[_VARIABLE]}"' if _VARIABLE in os.environ else "not set"


def _version(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"version": [_installed()]})


def _installed() -> str:
    import snugdp

    return snugdp.__version__
