"""A private table that a fit may read more than once: its statistics, and passes at points released on the way."""

from __future__ import annotations

from typing import Any, TypeVar

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.engines.base import gather
from snugdp.tables.engines.local import cores
from snugdp.tables.images import MAX_BYTES, ImagePass, Images, run
from snugdp.tables.passes.base import Pass
from snugdp.tables.passes.moments import GramPass, Moments
from snugdp.tables.schema.schema import Layout
from snugdp.tables.sources import Source, SparkSource, open_source

S = TypeVar("S")


class Rows(PrivateState):
    """The rows of a table, under a public schema. Private: it travels as a ``Secret``.

    Nothing is read before it is asked for; the moments are read once and kept, and so are the rows where a fit that
    reads them often asks for it and they are few enough.
    """

    __slots__ = ("_images", "_moments", "_progress", "bits", "schema", "source")

    def __init__(self, data: object, schema: Layout, bits: int | None = None, *, progress: bool | None = None) -> None:
        self.schema, self.bits = schema, bits
        self.source: Source = open_source(data)
        self.source.check(GramPass(schema, bits))
        self._moments: Moments | None = None
        self._images: Images | None = None
        self._progress = progress

    def moments(self) -> Moments:
        """X'X, X'y, y'y and the number of rows, exactly."""
        if self._moments is None:
            self._moments = self.state(GramPass(self.schema, self.bits))
        return self._moments

    def images(self) -> Images | None:
        """The rows after the row map, as many as fit into half a gigabyte; none for a table on a cluster."""
        if self._images is None and not isinstance(self.source, SparkSource):
            self._images = self.state(ImagePass(self.schema, self.bits, share=MAX_BYTES // cores()))
        return self._images

    def state(self, work: Pass[S]) -> S:
        """The state of one pass over all rows: from those kept in memory where that is possible."""
        held, able = self._images, hasattr(work, "add")
        if held is not None and held.complete and able and self._same(work):
            return run(held, work, cores())  # type: ignore[arg-type]
        progress, self._progress = self._progress, False  # one bar: how often rows are read may depend on them
        return gather(self.source, work, progress=progress)

    def _same(self, work: Any) -> bool:
        """Whether the pass maps rows as those in memory were mapped."""
        return bool(work.schema == self.schema and work.bits == self.bits)
