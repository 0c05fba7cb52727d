"""Counts of public cells: between edges, of listed values, or of yes and no. Proof: ``joint.proof.md``, Theorem 3."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Self, TypeAlias, cast

from snugdp.mechanisms.statistics.joint import JointNoise, cell_noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import BoundedKeywords
from snugdp.queries.bounds.given import GivenBounds, hull_of, open_ends
from snugdp.queries.estimate import Estimate
from snugdp.queries.labels import listed, public_names
from snugdp.queries.statistics.base import ColumnStatistic, Contribution, PreparedStatistic, best
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Ends, check_bounds
from snugdp.tables.passes.columns.statistics import EdgeCounts, LabelCounts
from snugdp.tables.schema.kinds import Category

Cell: TypeAlias = Hashable
MAX_CELLS = 1_000_000
_WAYS = (
    "say which cells there are, without looking at the data: edges=[0, 18, 65, 120], bins=20 (with bounds=(0, 120) if "
    'these are public), or values=["car", "train"]'
)


@dataclass(frozen=True)
class HistogramCounts:
    """A released histogram: the noisy number of rows in every cell.

    Counts may be negative where there are no rows: left as they are, sums of them are right on average.

    Parameters
    ----------
    cells : tuple
        For numbers pairs of edges, from one up to below the next (and including the last); otherwise the values.
    counts : tuple of int
        The noisy counts, in the order of the cells.
    error : float
        In 19 of 20 cases the noise of a count is smaller than this.
    below, above : int, optional
        Rows of numbers below the first edge and above the last.
    other : int, optional
        Rows with a value that is not listed.
    missing : int, optional
        Rows without an entry.

    Examples
    --------
    >>> found = HistogramCounts(("car", "train"), (120, 80), 3.0, other=2)
    >>> found["car"].value, found.shares()["train"]
    (120.0, 0.4)
    """

    cells: tuple[Any, ...]
    counts: tuple[int, ...]
    error: float
    below: int | None = None
    above: int | None = None
    other: int | None = None
    missing: int | None = None

    def __getitem__(self, cell: Cell) -> Estimate:
        return Estimate(float(self.counts[self.cells.index(cell)]), self.error)

    def shares(self) -> dict[Cell, float]:
        """The share of each cell among all cells; negative counts as none."""
        kept = [max(count, 0) for count in self.counts]
        total = max(sum(kept), 1)
        return {cell: count / total for cell, count in zip(self.cells, kept, strict=True)}


class HistogramKeywords(BoundedKeywords, total=False):
    """The keyword arguments of ``histogram``."""

    edges: Sequence[Real] | None
    bins: int | None
    values: Sequence[Hashable] | Category | None


@dataclass(frozen=True, kw_only=True)
class Histogram(ColumnStatistic[HistogramCounts]):
    """How many rows lie in each of some public cells: between edges, or with each of some listed values.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/joint.proof.md``).

    Parameters
    ----------
    edges : sequence of Real, optional
        Public edges of the cells, ascending: numbers from one up to below the next; the last is included.
    bins : int, optional
        So many cells of equal width between the ``bounds``.
    bounds : (Real, Real), FoundNumber or "private", optional
        With ``bins``: public bounds. By default, with ``bins``, they are found privately, for a part of the budget.
    values : sequence or Category, optional
        Listed values, known without the data; others are counted together.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Histogram(edges=[0, 18, 65, 120], epsilon=1)
    >>> found = query.release([i % 100 for i in range(10_000)]).value
    >>> found.cells, 1700 < found.counts[0] < 1900
    (((0.0, 18.0), (18.0, 65.0), (65.0, 120.0)), True)
    """

    edges: Sequence[Real] | None = None
    bins: int | None = None
    bounds: GivenBounds = None
    values: Sequence[Hashable] | Category | None = None

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.edges, self.bins, self.values)) != 1:
            raise ValueError(f"one of edges, bins and values is needed: {_WAYS}")
        if self.bounds is not None and self.bins is None:
            raise ValueError(f"bounds go with bins: {_WAYS}")
        object.__setattr__(self, "edges", copy(self.edges))  # a list may change later
        object.__setattr__(self, "values", listed(self.values))
        super().__post_init__()

    @property
    def _gaps(self) -> tuple[Note, ...]:
        return (Note("missing-counted"),)

    @property
    def _open(self) -> Mapping[str, Ends]:
        ends = None if self.bins is None else open_ends(self.bounds)
        return {} if ends is None else {self._name: ends}

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        return replace(self, bounds=found[self._name], epsilon=epsilon)

    @property
    def _listed(self) -> Sequence[Hashable]:
        return cast(Sequence[Hashable], self.values)

    @cached_property
    def _edges(self) -> tuple[float, ...]:
        if self.edges is not None:
            if isinstance(self.edges, str) or not isinstance(self.edges, Sequence):
                raise TypeError("edges must be a list of numbers, known without the data")
            given = tuple(float(rational(edge, "an edge")) for edge in self.edges)
        else:
            low, high = check_bounds(hull_of(self.bounds))
            bins = _cells(self.bins)
            given = tuple(float(low + (high - low) * place / bins) for place in range(bins + 1))
        if not 2 <= len(given) <= MAX_CELLS + 1 or any(a >= b for a, b in pairwise(given)):
            raise ValueError(f"edges must be at least two numbers, ascending, and at most {MAX_CELLS + 1:,}")
        return given

    @cached_property
    def _measure(self) -> LabelCounts | EdgeCounts:
        if self.values is not None:
            return LabelCounts(self._name, public_names(self._listed, "values"))
        return EdgeCounts(self._name, self._edges)

    def _contribution(self, share: Share) -> Contribution:
        return Contribution(self._measure, ((1,),), (Fraction(1),))

    def _prepare(self, shares: tuple[Share, ...]) -> PreparedStatistic[HistogramCounts]:
        noise = best_cells(shares, self._measure.size)
        error = noise.errors[0]
        show = partial(self._show, error)
        return PreparedStatistic(self._measure, noise, show, theorem("histogram/1"), Forecast(error))

    def _show(self, error: float, drawn: list[int]) -> HistogramCounts:
        *counts, missing = drawn
        if self.values is not None:
            *some, other = counts
            return HistogramCounts(tuple(self._listed), tuple(some), error, other=other, missing=missing)
        below, *between, above = counts
        cells = tuple(pairwise(self._edges))
        return HistogramCounts(cells, tuple(between), error, below, above, missing=missing)


def best_cells(shares: Any, number: int) -> JointNoise:
    """The noise of so many disjoint counts."""
    share = best(shares, lambda share: cell_noise(share, 1).errors[0])
    return cell_noise(share, number)


def _cells(bins: object) -> int:
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MAX_CELLS:
        raise ValueError(f"bins must be a whole number from 1 to {MAX_CELLS:,}")
    return bins
