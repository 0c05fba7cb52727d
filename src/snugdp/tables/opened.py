"""A private table that is opened and checked: what its columns hold is found on the way."""

from __future__ import annotations

from typing import Any, TypeVar

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.engines import gather
from snugdp.tables.passes.base import Pass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Layout
from snugdp.tables.sources import Source

S = TypeVar("S")


class OpenedTable(PrivateState):
    """The rows of a table before their layout is known. Private: it travels as a ``Secret``."""

    __slots__ = ("_first", "_progress", "source")

    def __init__(self, source: Source, *, progress: bool | None = None) -> None:
        self.source, self._progress = source, progress
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
        return Rows(self.source, layout, progress=False)
