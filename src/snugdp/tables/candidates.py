"""A private table whose columns are candidates: scores of all of them first, then rows of the ones that were chosen."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.rationals import Real
from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.engines import gather
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.layouts.boxes import Box, BoxSchema
from snugdp.tables.passes.vectors.scores import Integers, ScorePass, Scores, block_sums
from snugdp.tables.rows import Rows
from snugdp.tables.sources import Source, SparkSource, open_source
from snugdp.tables.sources.sparse import SparseSource


class Candidates(PrivateState):
    """Rows with many entries, under public bounds for each of them. Private: it travels as a ``Secret``.

    ``X``, ``y``: a matrix (dense, or sparse as ``canonical`` makes it) and floats, under a ``BoxSchema``. Or a
    ``table`` that holds all columns of the box. ``row_norm``: whole rows are shortened to it before they are scored.
    """

    __slots__ = ("_X", "_progress", "_scores", "_y", "box", "source", "work")

    def __init__(
        self,
        box: Box,
        *,
        X: Any = None,
        y: NDArray[np.float64] | None = None,
        table: object = None,
        row_norm: Fraction | None = None,
        progress: bool | None = None,
    ) -> None:
        self.box, self._X, self._y, self._progress = box, X, y, progress
        self.work = ScorePass(box, row_norm)
        self.source: Source = self._open(table)
        self.source.check(self.work)
        self._scores: Scores | None = None

    def _open(self, table: object) -> Source:
        if self._X is None:
            return open_source(table)
        if not isinstance(self.box, BoxSchema):
            raise TypeError("a matrix needs a box schema")
        if isinstance(self._X, np.ndarray):
            return ArraySource(self._X, self._y, self.box)
        if self._y is None:
            raise ValueError("a sparse matrix needs targets")
        return SparseSource(self._X, self._y, self.box.names, self.box.target)

    @property
    def in_order(self) -> bool:
        """Whether rows can be read one batch after the other; on a cluster they cannot. Public."""
        return not isinstance(self.source, SparkSource)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are arrays. Public."""
        return self._X is not None

    def is_empty(self) -> bool:
        """Whether a matrix has no rows. Private, except in a rehearsal."""
        return self._X is not None and self._X.shape[0] == 0

    def scores(self) -> Scores:
        """The sums of one pass over all rows, read once."""
        if self._scores is None:
            self._scores = gather(self.source, self.work, progress=self._progress)
        return self._scores

    def block_sums(
        self, parts: int, lots: Callable[[int, int], Integers]
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """The sums of blocks of rows; see ``passes.scores.block_sums``."""
        return block_sums(self.source, self.work, parts, lots)

    def rows(self, support: tuple[int, ...], x_norm: Real) -> Rows:
        """The rows with the chosen entries alone."""
        layout = self.box.only(support, x_norm)
        if self._X is None or not isinstance(layout, BoxSchema):
            return Rows(self.source, layout, progress=False)
        chosen = self._X[:, list(support)]
        dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
        return Rows(ArraySource(dense, self._y, layout), layout)
