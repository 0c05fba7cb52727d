"""A private table that a fit may read more than once: its statistics, and passes at points released on the way.

Rows as the row map leaves them are kept for a fit that needs them often (``tables/images.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar, cast

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.engines import cores, gather
from snugdp.tables.images import MAX_BYTES, Adding, ImagePass, Images, run
from snugdp.tables.passes.base import Pass, RowPass
from snugdp.tables.passes.vectors.distances import RowSumPass
from snugdp.tables.passes.vectors.moments import GramPass, Moments
from snugdp.tables.passes.vectors.weighted import WEIGHT, WeightedPass
from snugdp.tables.schema.schema import Layout
from snugdp.tables.sources import Source, SparkSource, open_source
from snugdp.tables.weighed_table import WeighableTable, WeighedTable

S = TypeVar("S")


class Rows(PrivateState):
    """The rows of a table, under a public schema. Private: it travels as a ``Secret``.

    Nothing is read before it is asked for; the moments are read once and kept, and so are the rows where a fit that
    reads them often asks for it and they are few enough.
    """

    __slots__ = (
        "_images",
        "_moments",
        "_one",
        "_progress",
        "_sums",
        "_tables",
        "_weights",
        "bits",
        "schema",
        "source",
        "weight",
    )

    def __init__(self, data: object, schema: Layout, bits: int | None = None, *, progress: bool | None = None) -> None:
        self.schema, self.bits = schema, bits
        self.weight: int | None = None  # of the rows of a person together, at most
        self._weights: str | None = None
        self._one: Rows | None = None
        self._tables = data if isinstance(data, WeighableTable) else None
        if isinstance(data, WeighableTable):
            data = data.one
        if isinstance(data, WeighedTable):
            self.weight, self._weights = data.most, data.weights
            self._one, data = Rows(data.one, schema, bits, progress=progress), data.rows
        self.source: Source = open_source(data)
        self.source.check(self._weighted(GramPass(schema, bits)))
        self._moments: Moments | None = None
        self._sums: list[int] | None = None
        self._images: Images | None = None
        self._progress = progress

    @property
    def one(self) -> Rows:
        """One row of each person, where they may have several; otherwise these rows."""
        return self if self._one is None else self._one

    @property
    def unit(self) -> int:
        """How often a row counts that counts in full."""
        return 1 if self._weights is None else WEIGHT

    @property
    def counts(self) -> list[int]:
        """How many persons have 1, 2, 3-4, 5-8, ... rows, where their weight is not known yet."""
        assert self._tables is not None
        return self._tables.counts

    def weighing(self, most: int) -> Rows:
        """All rows, where those of a person weigh at most so much."""
        assert self._tables is not None
        return Rows(self._tables.weighing(most), self.schema, self.bits, progress=False)

    @property
    def data(self) -> Source | WeighedTable | WeighableTable:
        """What these are the rows of."""
        if self._tables is not None:
            return self._tables
        if self.weight is None or self._weights is None:
            return self.source
        return WeighedTable(self.source, self.one.source, self.weight, self._weights)

    def moments(self) -> Moments:
        """X'X, X'y, y'y and the number of rows, exactly."""
        if self._moments is None:
            self._moments = self.state(GramPass(self.schema, self.bits))
        return self._moments

    def sums(self) -> list[int]:
        """The sums of the entries of all rows, in cells, and last the number of rows."""
        if self._sums is None:
            self._sums = self.state(RowSumPass(self.schema, self.bits)).values()
        return self._sums

    def read(self, *, keep: bool, enough: int | None = None) -> None:
        """The first pass: the moments, and with ``keep`` the rows, for a fit of which every pass begins with them.

        ``enough``: about so many rows that there will be no other pass, a public number. Where these fit into memory,
        more rows than that are not kept in a file.
        """
        if not keep or self._moments is not None or self._weights is not None or self._on_cluster:
            self.moments()
            return
        work = self._image_pass(moments=True)
        filed = enough is None or enough > cores() * work.in_memory
        images = self._gathered(replace(work, filed=filed))
        self._moments = images.moments
        self._images = images if filed or images.complete else None

    def images(self) -> Images | None:
        """The rows after the row map, beyond 350 MB in a file; none for a table on a cluster."""
        if self._images is None and not self._on_cluster:
            self._images = self._gathered(self._image_pass())
        return self._images

    @property
    def _on_cluster(self) -> bool:
        return isinstance(self.source, SparkSource)

    def _image_pass(self, *, moments: bool = False) -> ImagePass:
        return ImagePass(self.schema, self.bits, self._weights, share=MAX_BYTES // cores(), moments=moments)

    def kept(self) -> Images | None:
        """The rows after the row map, if all of them were kept before."""
        return self._images if self._images is not None and self._images.complete else None

    def forget(self) -> None:
        """Keep the rows no longer: a further pass would read the table again."""
        self._images = None

    def state(self, work: Pass[S]) -> S:
        """The state of one pass over all rows: from those kept in memory where that is possible.

        Where rows have weights, each counts as often as its weight says: ``unit`` times, if it counts in full.
        """
        images, weighted = self.kept(), self._weighted(work)
        if images is not None and isinstance(work, RowPass) and self._same(work):
            return cast(S, run(images, cast(Any, weighted), cores(), weighted=self._weights is not None))
        return self._gathered(weighted)

    def of_kept(self, work: Adding[S]) -> S:
        """The sums of the rows that are kept, which must be all."""
        images = self.kept()
        assert images is not None
        return run(images, work, cores(), weighted=self._weights is not None)

    def _weighted(self, work: Pass[S]) -> Pass[S]:
        if self._weights is None:
            return work
        if not isinstance(work, RowPass):
            raise TypeError("only sums over rows have weights")
        return cast(Pass[S], WeightedPass(work, self._weights))

    def _gathered(self, work: Pass[S]) -> S:
        progress, self._progress = self._progress, False  # one bar: how often rows are read may depend on them
        return gather(self.source, work, progress=progress)

    def _same(self, work: RowPass[Any]) -> bool:
        """Whether the pass maps rows as those in memory were mapped."""
        return work.schema == self.schema and work.bits == self.bits
