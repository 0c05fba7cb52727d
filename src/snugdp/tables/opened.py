"""A private table that is opened and checked: what its columns hold is found on the way."""

from __future__ import annotations

from typing import Any, TypeVar

import narwhals as nw

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.engines import gather
from snugdp.tables.passes.base import Pass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.kinds import Undeclared
from snugdp.tables.schema.schema import Layout, Schema
from snugdp.tables.sources import Source
from snugdp.tables.weighed_table import WeighableTable, WeighedTable

S = TypeVar("S")


class OpenedTable(PrivateState):
    """The rows of a table before their layout is known. Private: it travels as a ``Secret``.

    ``declared``: what is public about the columns, if anything. Of persons with several rows, passes read one row each.
    """

    __slots__ = ("_first", "_persons", "_progress", "source")

    def __init__(
        self,
        data: Source | WeighedTable | WeighableTable,
        declared: Schema | None = None,
        *,
        progress: bool | None = None,
    ) -> None:
        self._persons = None if isinstance(data, Source) else data
        source = data if isinstance(data, Source) else data.one
        self.source, self._progress = source if declared is None else _untyped(source, declared), progress
        self._first: tuple[Any, Any] | None = None

    def read(self, work: Pass[Any]) -> None:
        """Make the first pass now, so that a table that cannot be read is found before anything is charged."""
        self._first = work, gather(self.source, work, progress=self._progress)
        self._progress = False

    def state(self, work: Pass[S]) -> S:
        """The state of one pass over all rows."""
        if self._first is not None and self._first[0] == work:
            _, state = self._first
            self._first = None
            return state  # type: ignore[no-any-return]
        progress, self._progress = self._progress, False  # one bar: how often rows are read may depend on them
        return gather(self.source, work, progress=progress)

    def rows(self, layout: Layout) -> Rows:
        """The rows in a layout."""
        if self._persons is None:
            return Rows(self.source, layout, progress=False)
        return Rows(self._persons.with_types(self.source.types), layout, progress=False)  # as they are looked at


def _untyped(source: Source, declared: Schema) -> Source:
    """The table with columns that nobody declared as objects, whatever type a loader gave them in memory.

    What they hold is told by noise, which may err: whether they can be read so must not depend on that type, which one
    cell may have changed.
    """
    columns = declared.columns.items()
    names = [name for name, kind in columns if isinstance(kind, Undeclared) and name in source.types]
    if not source.inferred or not names:
        return source
    return source.with_types({**source.types, **dict.fromkeys(names, nw.Object())})
