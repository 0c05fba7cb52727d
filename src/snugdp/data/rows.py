"""A private table that a fit may read more than once: its statistics, and passes at points released on the way."""

from __future__ import annotations

from typing import TypeVar

from snugdp.data.engines.base import gather
from snugdp.data.hidden import Hidden
from snugdp.data.moments import Moments
from snugdp.data.passes import GramPass, Pass
from snugdp.data.schema import Schema
from snugdp.data.sources import Source, open_source

S = TypeVar("S")


class Rows(Hidden):
    """The rows of a table, under a public schema. Private: it travels as a ``Secret``.

    Nothing is read before it is asked for; the moments are read once and kept.
    """

    __slots__ = ("_moments", "_progress", "_source", "bits", "schema")

    def __init__(self, data: object, schema: Schema, bits: int | None = None, *, progress: bool | None = None) -> None:
        self.schema, self.bits = schema, bits
        self._source: Source = open_source(data)
        self._source.check(GramPass(schema, bits))
        self._moments: Moments | None = None
        self._progress = progress

    def moments(self) -> Moments:
        """X'X, X'y, y'y and the number of rows, exactly."""
        if self._moments is None:
            self._moments = self.state(GramPass(self.schema, self.bits))
        return self._moments

    def state(self, work: Pass[S]) -> S:
        """The state of one pass over all rows."""
        return gather(self._source, work, progress=self._progress)
