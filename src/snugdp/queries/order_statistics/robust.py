"""Median, quantile and trimmed mean by propose–test–release. Proofs: ``mechanisms/order_statistics/*.proof.md``.

Medians and quantiles are asked for in ``quantiles.py`` beside this, which also draws them without a proposal.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.order_statistics import median as _median
from snugdp.mechanisms.order_statistics import quantile as _quantile
from snugdp.mechanisms.order_statistics import trimmed_mean as _trimmed
from snugdp.mechanisms.order_statistics.stable import Bounded, Stable, usual_error
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.plan import Plan, share_of, whole_rows
from snugdp.propose.theorem import Theorem, theorem
from snugdp.queries.base import Query, ReleaseKeywords, Shown, require_delta, require_name
from snugdp.queries.bounds.given import GivenBounds, both_ends, open_ends
from snugdp.queries.order_statistics.base import missing_note
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release, release_or_refuse
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import numbers
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Ends, Grid
from snugdp.tables.passes.columns.statistics import ALONE

if TYPE_CHECKING:
    from snugdp.tables.sources import Source

Cells = NDArray[np.int64]
_BOUNDED = theorem("discrete-laplace/1")


@dataclass(frozen=True)
class Summary:
    """A query on ordered cells: value, distance at a proposal, what divides the value, global sensitivity."""

    value: Callable[[Cells], int]
    distance: Callable[[Cells, int], int | float]
    divisor: int
    largest: int


class Prepared(NamedTuple):
    """What a query does with so many rows, and what it draws is divided by."""

    mechanism: Stable[Cells] | Bounded[Cells]
    plan: Plan
    divisor: int


@dataclass(frozen=True, kw_only=True)
class RobustQuery(Query[float]):
    """A number that a few rows can hardly move, released if that holds for the data at hand.

    Parameters
    ----------
    epsilon, delta, bounds, neighbours, beta, rows, step, test_share, missing
        As in ``median``.
    column : str, optional
        The name of the column, if the data are a table: a frame, files, a database or Spark. It is read in one pass,
        and is then in memory as a whole.
    """

    epsilon: Real
    delta: Real = 0
    bounds: GivenBounds = "private"
    neighbours: Neighbours | str = Neighbours.REPLACE
    beta: Real | None = None
    rows: int | None = None
    step: Real = 0
    test_share: Real = 0.5
    missing: Real | None = None
    column: str | None = None

    _later = {"column": None}  # noqa: RUF012
    name: ClassVar[str]
    theorem: ClassVar[Theorem]  # of the distance; the release itself is mechanisms/order_statistics/stable.proof.md
    covered: ClassVar[tuple[Neighbours, ...]] = (Neighbours.REPLACE,)

    def __post_init__(self) -> None:
        budget = self._budget  # a bad parameter is refused here, before any data are seen
        require_name(self.column)
        share_of(self.test_share)
        object.__setattr__(self, "rows", whole_rows(self.rows))
        for name, value in (("beta", self.beta), ("step", self.step)):
            if value is not None and rational(value, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if not self._open:
            self._missing_cell  # noqa: B018  # a value beyond the bounds is refused
        elif self.missing is not None:
            rational(self.missing, "missing")
        if self.rows is not None or budget.neighbours is Neighbours.ADD_REMOVE:
            self.plan()
        elif not self._open:
            self._grid  # noqa: B018

    @property
    def _open(self) -> Mapping[str, Ends]:
        ends = open_ends(self.bounds)
        return {} if ends is None else {self._name: ends}

    @property
    def _name(self) -> str:
        return ALONE if self.column is None else self.column

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        asked = replace(self, bounds=found[self._name], missing=None, epsilon=epsilon)
        if self.missing is None:
            return asked
        grid = asked._grid
        return replace(asked, missing=grid.number(rational(self.missing, "missing") / grid.unit))

    def _opened(self, data: object) -> tuple[Source, object]:
        from snugdp.queries.search import opened_column  # for those who leave bounds to be found

        return opened_column(data, self.column)

    def _answered(self, data: object, context: ReleaseContext) -> Outcome[float]:
        if not self._open:
            return super()._answered(data, context)
        values = numbers(data) if self.column is None else data
        is_public = self._budget.neighbours is Neighbours.REPLACE
        asked = replace(self, rows=self._checked_rows(_rows_of(values) if is_public else 0))
        assert asked._search is not None
        return asked._search.release(values, context)

    @property
    def _plan(self) -> Plan:
        if self.rows is None and self._budget.neighbours is Neighbours.REPLACE:
            raise ValueError("give rows=..., the number of rows: it is public when neighbours replace a row")
        return self._prepare(self.rows).plan

    def _release(self, data: object, context: ReleaseContext) -> Outcome[float]:
        cells = self._ordered(data)
        (mechanism, plan, divisor), grid = self._prepare(self._checked_rows(len(cells))), self._grid
        shown = Shown(mechanism, lambda drawn: grid.number(Fraction(drawn, divisor)))
        if isinstance(mechanism, Bounded):
            return release(plan, shown, Secret(cells), context)
        return release_or_refuse(plan, mechanism.test(), shown, Secret(cells), context)

    def _ordered(self, data: object) -> Cells:
        """The cells of the column in ascending order. They are private."""
        if self.column is not None:
            from snugdp.tables.engines import gather, numeric_source  # polars: only for those who bring a table
            from snugdp.tables.passes.counts.value_counts import ColumnCells

            work = ColumnCells(self.column, self._grid, self._missing_cell)
            return gather(numeric_source(data, work.columns), work).total().cells()
        cells = self._grid.cells(numbers(data), self._missing_cell)
        cells.sort()
        return cells

    def _checked_rows(self, length: int) -> int | None:
        """The number of rows, if it is public; otherwise a guess, or nothing."""
        rows = length if self._budget.neighbours is Neighbours.REPLACE else self.rows
        if rows is not None and rows < 1:
            raise ValueError("the column is empty, and its length is public when neighbours replace a row")
        if rows != self.rows is not None:
            raise ValueError(
                "rows differs from the length of the column, which is public when neighbours replace a row"
            )
        return rows

    @cached_property
    def _grid(self) -> Grid:
        return Grid.between(both_ends(self.bounds))

    @cached_property
    def _missing_cell(self) -> int | None:
        """What missing entries count as; nothing where they are left out, which only add/remove allows."""
        if self.missing is not None:
            return self._grid.nearest(self.missing, "missing")
        return None if self._budget.neighbours is Neighbours.ADD_REMOVE else self._grid.lower

    @property
    def _gaps(self) -> Note:
        if self.missing is None and self._missing_cell is not None:
            return Note("missing-as-lower", {"value": self._grid.number(Fraction(self._missing_cell))})
        return missing_note(self.missing)

    @cached_property
    def _last_prepared(self) -> dict[int | None, Prepared]:
        """What was prepared last, by the number of rows."""
        return {}

    @property
    def _theorem(self) -> Theorem:
        return self.theorem

    @abstractmethod
    def _summary(self, rows: int | None) -> Summary:
        """The query on ordered cells."""

    def _prepare(self, rows: int | None) -> Prepared:
        """Proposal, mechanism and plan, from public quantities alone; once for each number of rows."""
        last = self._last_prepared
        prepared = last.get(rows)
        if prepared is None:
            prepared = self._prepared_for(rows)
            last.clear()  # perhaps what another thread has just prepared
            last[rows] = prepared
        return prepared

    def _prepared_for(self, rows: int | None) -> Prepared:
        summary, unit = self._summary(rows), self._grid.unit
        beta = self._proposal(summary, rows)
        scale = unit / summary.divisor
        if beta >= summary.largest:  # no data set can exceed the proposal
            bounded = Bounded(summary.value, summary.largest, self._budget)
            proposal = {"beta": float(summary.largest * scale)}
            forecast = self._forecast(usual_error(bounded.scale * scale))
            plan = Plan(self.name, _BOUNDED, bounded.steps(), proposal, forecast, self._budget)
            return Prepared(bounded, plan.with_notes(self._gaps), summary.divisor)
        require_delta(self._budget)
        stable = Stable(
            summary.value,
            lambda cells: summary.distance(cells, beta),
            beta,
            self._budget,
            share_of(self.test_share),
        )
        forecast = self._forecast(
            usual_error(stable.scale * scale),
            PassChance(0.95, "rows-to-change", {"rows": stable.safe_distance()}),
            *(Note("beta-from-bounds") for _ in range(rows is None and self.beta is None)),
        )
        proposal = {"beta": float(beta * scale)}
        plan = Plan(self.name, self._theorem, stable.steps(), proposal, forecast, self._budget)
        return Prepared(stable, plan.with_notes(self._gaps), summary.divisor)

    def _forecast(self, error: float, *more: PassChance | Note) -> Forecast:
        """What the noise does to the answer, and a warning when it drowns it."""
        drowned = error > float(self._grid.width * self._grid.unit) / 4
        chances = tuple(each for each in more if isinstance(each, PassChance))
        notes = tuple(each for each in more if isinstance(each, Note))
        return Forecast(error, chances, notes=(Note("error-is-large"), *notes) if drowned else notes)

    def _proposal(self, summary: Summary, rows: int | None) -> int:
        """The proposal in cells of the summary, rounded down; the one asked for, or one from public quantities."""
        if self.beta is not None:
            return math.floor(rational(self.beta, "beta") / self._grid.unit * summary.divisor)
        return max(self._default(summary, rows), math.floor(rational(self.step, "step") / self._grid.unit))

    def _default(self, summary: Summary, rows: int | None) -> int:
        """Wide enough for rows as dense around the answer as if spread evenly over the bounds, and half more."""
        if rows is None:
            return summary.largest // 100
        require_delta(self._budget)
        trial = Stable(summary.value, lambda _: 0, 1, self._budget, share_of(self.test_share))
        return math.ceil(Fraction(3 * summary.largest * trial.safe_distance(), 2 * rows))


@dataclass(frozen=True, kw_only=True)
class TestedMedian(RobustQuery):
    """The lower median of a column: ``Median`` with ``method="test"``."""

    __test__ = False  # it is none of pytest's

    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    name = "Median"
    theorem = theorem("median/1")
    covered = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)

    @property
    def _theorem(self) -> Theorem:
        return self.theorem if self._budget.neighbours is Neighbours.ADD_REMOVE else TestedQuantile.theorem

    def _summary(self, rows: int | None) -> Summary:
        if self._budget.neighbours is Neighbours.REPLACE:
            return _rank_summary(self._grid, ((rows or 1) + 1) // 2)
        grid = self._grid
        return Summary(
            lambda cells: int(_median.value(cells, grid.lower)),
            lambda cells, beta: _median.distance(cells, grid.lower, grid.upper, beta),
            1,
            grid.width,
        )


@dataclass(frozen=True, kw_only=True)
class TestedQuantile(RobustQuery):
    """The row of rank ceil(q n): ``Quantile`` with ``method="test"``."""

    __test__ = False

    q: Real
    name = "Quantile"
    theorem = theorem("quantile/1")

    def __post_init__(self) -> None:
        if not 0 <= rational(self.q, "q") <= 1:
            raise ValueError("q must be between 0 and 1")
        super().__post_init__()

    def _summary(self, rows: int | None) -> Summary:
        return _rank_summary(self._grid, max(1, math.ceil(rational(self.q, "q") * (rows or 1))))


class TrimmedMeanKeywords(ReleaseKeywords, total=False):
    """The keyword arguments of ``trimmed_mean``."""

    delta: Real
    bounds: GivenBounds
    trim: Real
    beta: Real | None
    rows: int | None
    step: Real
    test_share: Real
    missing: Real | None
    column: str | None


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(RobustQuery):
    """The mean without the floor(trim n) smallest and largest rows, with a plan before the release.

    Without ``beta`` it uses the sensitivity that holds for all data, never refuses and spends no delta; propose a
    smaller ``beta`` when the bounds are loose.

    Guarantee: (epsilon, delta)-DP when neighbours replace one row (``order_statistics/trimmed_mean.proof.md``).

    Parameters
    ----------
    neighbours : {"replace"}
        Which data sets count as neighbours; the only relation with a proof.
    trim : Real, default=0.1
        The share of rows to drop at each end.
    beta : Real, optional
        The proposal: how far one row may move the answer. Without it the sensitivity that holds for all data is used,
        and nothing is refused.

    Examples
    --------
    >>> 4 < TrimmedMean(bounds=(0, 10), epsilon=5).release([5.0] * 1000).value < 6
    True
    """

    trim: Real = 0.1
    name = "Trimmed mean"
    theorem = theorem("trimmed-mean/1")

    def __post_init__(self) -> None:
        if not 0 <= rational(self.trim, "trim") < Fraction(1, 2):
            raise ValueError("trim, the share dropped at each end, must be at least 0 and less than 1/2")
        super().__post_init__()

    def _summary(self, rows: int | None) -> Summary:
        grid, count = self._grid, rows or 1
        trim = math.floor(rational(self.trim, "trim") * count)
        kept = count - 2 * trim
        return Summary(
            lambda cells: _trimmed.total(cells, trim),
            lambda cells, beta: _trimmed.distance(cells, trim, grid.lower, grid.upper, Fraction(beta, kept)),
            kept,
            grid.width,
        )

    def _default(self, summary: Summary, rows: int | None) -> int:
        return summary.largest


def _rank_summary(grid: Grid, rank: int) -> Summary:
    return Summary(
        lambda cells: int(_quantile.value(cells, rank, grid.lower)),
        lambda cells, beta: _quantile.distance(cells, rank, grid.lower, grid.upper, beta),
        1,
        grid.width,
    )


def _rows_of(data: object) -> int:
    """How many rows a column or a table has: public where neighbours replace a row, and asked for only there."""
    if isinstance(data, np.ndarray):
        return len(data)
    from snugdp.tables.engines import gather
    from snugdp.tables.passes.columns.statistics import RowCount, StatisticsPass
    from snugdp.tables.sources import open_source

    work = StatisticsPass((RowCount(),))
    return work.parts(gather(open_source(data), work))[0][0]
