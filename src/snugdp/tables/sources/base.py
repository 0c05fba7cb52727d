"""What every source of rows has: names and declared types, which are public, and batches, which are not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import narwhals as nw

from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import inferred
from snugdp.tables.schema.kinds import DType
from snugdp.tables.schema.schema import Layout
from snugdp.tables.sources.record import PassRecord

if TYPE_CHECKING:
    from snugdp.tables.passes.base import Pass

Frame: TypeAlias = nw.DataFrame[Any]


class TableError(ValueError):
    """A table cannot be read. The message names the file or column, and never quotes a cell."""


@dataclass(frozen=True)
class Batch:
    """Some rows, and how many bytes on disk were used up for them."""

    frame: Frame = field(repr=False)
    size: int = field(default=0, repr=False)


class Partition(ABC):
    """A part of a table that can be read on its own, once or again. It can be pickled."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows, with the given columns in this order. Those of a table without types are text."""


class Source(ABC):
    """A table that was opened: everything public about it is known, and no row was looked at.

    Guarantee: what ``types``, ``check`` and ``repr`` say depends on names and declared types alone, and for CSV on
    whether the files are well formed.
    """

    types: Mapping[str, DType]  # of every column, as declared; ``nw.Unknown`` where the format has none (CSV)
    name: str  # what messages call it
    size = 0  # bytes on disk
    inferred = False  # whether a loader may have taken the types from the cells
    library: Literal["polars", "pandas", "pyarrow"] = "polars"  # whose frames answers about it are
    held = False  # whether its rows are in our hands, so that all passes read the same ones
    floats_for_missing = False  # whether whole numbers become floats where a cell is missing, as in pandas

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """The parts, in a fixed order."""

    @cached_property
    def record(self) -> PassRecord:
        """What passes have read of it."""
        return PassRecord()

    def with_types(self, types: Mapping[str, DType]) -> Self:
        """The same rows under other types."""
        record, other = self.record, copy(self)
        other.types, other.record = types, record
        return other

    def check(self, work: Pass[Any]) -> None:
        """Whether the pass can read this table, from public facts alone: call it before the budget is charged."""
        types = self.types
        absent = [name for name in work.columns if name not in types]
        if absent:
            raise TableError(f"{self.name} has no column {listed(absent)}{self._offer()}")
        schema: Layout | None = getattr(work, "schema", None)
        if schema is not None:
            schema.check({name: self.type_for_reading(name) for name in work.columns})
        self.verify()

    def type_for_reading(self, name: str) -> DType:
        """The declared type of a column; objects for text where a loader may have inferred that from the cells."""
        return inferred(self.types[name]) if self.inferred else self.types[name]

    def verify(self) -> None:  # noqa: B027  most tables have nothing to verify
        """An error if a file is not well formed, which is public; tables of other kinds always are."""

    def _offer(self) -> str:
        return f"; it has {listed(list(self.types))}"

    def __repr__(self) -> str:
        return f"<table {self.name}>"


class UndividedSource(Source, Partition):
    """A table that is read from its first row to its last: it is its only partition."""

    def partitions(self) -> Sequence[Partition]:
        """The table itself."""
        return (self,)


def wanted(work: Pass[Any], types: Mapping[str, DType]) -> tuple[str, ...]:
    """The columns to read. Never none, for then a container would forget how many rows it has."""
    return tuple(work.columns) or tuple(types)[:1]


_BATCH_CELLS, _BATCH_ROWS = 1 << 21, 1 << 18


def step(columns: int) -> int:
    """Rows in a batch: some megabytes, whatever the number of rows."""
    return max(1024, min(_BATCH_ROWS, _BATCH_CELLS // max(columns, 1)))


def guarded(batches: Iterator[Batch], explain: Callable[[], str]) -> Iterator[Batch]:
    """The batches; if reading fails, ``explain`` says why from public facts. Raised outside any handler."""
    while True:
        problem: TableError | KeyboardInterrupt | None = None
        try:
            batch = next(batches, None)
        except TableError as told:
            problem = TableError(str(told))
        except KeyboardInterrupt:
            problem = KeyboardInterrupt()
        except BaseException:  # a panic of a native library is no Exception
            problem = TableError(explain())
        if problem is not None:
            raise problem
        if batch is None:
            return
        yield batch


@dataclass(frozen=True)
class Stamp:
    """A file as it was when it was opened."""

    path: Path
    size: int = field(repr=False)
    changed: int = field(repr=False)
    place: tuple[int, int] = field(repr=False)  # the same for all names of one file

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The file as it is now."""
        worked, stat = attempt(path.stat)
        if not worked or stat is None:
            raise TableError(f"there is no file {path}, or it is out of reach: check the path and its permissions")
        return cls(path, stat.st_size, stat.st_mtime_ns, (stat.st_dev, stat.st_ino))

    def difference(self) -> str | None:
        """What happened to the file since, or nothing."""
        worked, stat = attempt(self.path.stat)
        if not worked or stat is None:
            return f"{self.path} vanished after it was opened: put it back and open the table again"
        if (stat.st_size, stat.st_mtime_ns) != (self.size, self.changed):
            return f"{self.path} was changed after it was opened: open the table again when nobody writes to it"
        return None

    def check(self) -> None:
        """An error if there is a difference."""
        if (problem := self.difference()) is not None:
            raise TableError(problem)


def listed(names: Sequence[str]) -> str:
    """Names in quotes, not too many."""
    return ", ".join(f'"{name}"' for name in names[:20]) + (", …" if len(names) > 20 else "")


def eager_frame(native: Any) -> Frame | None:
    """The table in memory that this is; nothing if it is none. An error if two of its columns have one name."""
    with suppress(nw.exceptions.DuplicateError):
        frame: Any = nw.from_native(native, eager_only=True, pass_through=True)
        return frame if isinstance(frame, nw.DataFrame) else None
    names = [str(name) for name in getattr(native, "column_names", None) or native.columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    raise TableError(f"two columns of the table are called {listed(doubled)}; rename one")
