"""A histogram whose edges are drawn privately. Proof: ``mechanisms/statistics/quantile_table.proof.md``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from snugdp.mechanisms.statistics.quantile_table import Drawn, QuantileTableDraw
from snugdp.propose.forecast import Note
from snugdp.propose.theorem import theorem
from snugdp.queries.order_statistics.base import RankKeywords, RankQuery, usual_ranks
from snugdp.queries.statistics.histogram import HistogramCounts

MAX_BINS = 1000


class QuantileTableKeywords(RankKeywords, total=False):
    """The keyword arguments of ``quantile_table``."""

    bins: int


@dataclass(frozen=True, kw_only=True)
class QuantileTable(RankQuery[HistogramCounts]):
    """Edges that cut a column into parts of about equal size, and the noisy number of rows in each part.

    For columns of which only wide bounds are known: a histogram with public edges would have nearly all rows in one
    cell. Equal edges are shown once, so that there may be fewer parts than ``bins``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/quantile_table.proof.md``).

    Parameters
    ----------
    bins : int, default=10
        Into how many parts of about equal size the column is cut, from 2 to 1,000.

    Examples
    --------
    >>> query = QuantileTable(bins=4, bounds=(0, 10_000), step=1, epsilon=4)
    >>> table = query.release([i % 60 for i in range(6000)]).value
    >>> len(table.cells), 1300 < table.counts[1] < 1700
    (4, True)
    """

    bins: int = 10
    name = "Quantile table"
    theorem = theorem("quantile-table/1")

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 2 <= self.bins <= MAX_BINS:
            raise ValueError(f"bins must be a whole number from 2 to {MAX_BINS:,}")
        super().__post_init__()

    @cached_property
    def _mechanism(self) -> QuantileTableDraw:
        return QuantileTableDraw.within(self._budget, self.bins, self._points)

    def _notes(self, made: QuantileTableDraw) -> tuple[Note, ...]:
        ranks = Note("ranks-off", {"ranks": usual_ranks(made.edges.scale)})
        return ranks, Note("group-count", {"error": made.counts.errors[0]})

    def _rows_needed(self, made: QuantileTableDraw) -> int:
        return made.edges.rows_needed

    def _drawn_points(self, drawn: Drawn) -> Iterable[int]:
        return drawn[0][1:-1]

    def _show(self, drawn: Drawn) -> HistogramCounts:
        edges, counts = drawn
        cells = tuple(pairwise(map(self._grid.number, edges)))
        return HistogramCounts(cells, tuple(counts), self._mechanism.counts.errors[0])
