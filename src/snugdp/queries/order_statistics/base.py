"""What queries share that draw points of a public grid by the ranks that these have in a column.

Proof: ``mechanisms/order_statistics/rank_draw.proof.md``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.order_statistics.interval import QuantileIntervalDraw
from snugdp.mechanisms.order_statistics.rank_draw import FORECAST_CASES, Cells, OneRank, Points, RankDraw, RankTarget
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles
from snugdp.mechanisms.statistics.quantile_table import QuantileTableDraw
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.propose.theorem import Theorem, theorem
from snugdp.queries.base import BoundedKeywords, PersonRelease, Query, Shown, require_name
from snugdp.queries.bounds.given import GivenBounds, both_ends, open_ends
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release_if_drawn
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import numbers
from snugdp.tables.grid import CellRange, Grid, StepGrid
from snugdp.tables.passes.counts.value_counts import GatheredCounts
from snugdp.tables.wide_grid import WideGrid

if TYPE_CHECKING:
    from snugdp.tables.refined_counts import RefinedCounts
    from snugdp.tables.sources import Source

Seen = TypeVar("Seen")


class RankKeywords(BoundedKeywords, total=False):
    """The keyword arguments of functions that draw by ranks."""

    step: Real
    missing: Real | None


@dataclass(frozen=True, kw_only=True)
class RankQuery(Query[Seen]):
    """Points of a public grid, drawn by the ranks that they have in a column: pure, and never refused.

    Parameters
    ----------
    epsilon, delta : Real
        The privacy budget.
    bounds : (Real, Real), FoundNumber or "private"
        Public bounds on the values of the column; values beyond them count as the bound. Either may be None. By default
        there are none: answers lie between -2**59 and 2**59, and with too few rows there is a refusal.
    column : str, optional
        The name of the column, if the data are a table: a frame, files, a database or Spark, read in one pass.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    step : Real, default=0
        The public spacing of the values, such as 1 for whole years: answers are multiples of it. 0: the finest grid.
    missing : Real, optional
        What missing and invalid entries count as; without it they are left out.
    """

    epsilon: Real
    delta: Real = 0
    bounds: GivenBounds = "private"
    column: str | None = None
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    step: Real = 0
    missing: Real | None = None

    name: ClassVar[str]
    theorem: ClassVar[Theorem] = theorem("rank-draw/1")

    def __post_init__(self) -> None:
        require_name(self.column)
        self._missing_cell  # noqa: B018  what is wrong is said here, before any data are seen
        self.plan()

    @cached_property
    def _plan(self) -> Plan:
        return self._plan_of(self._mechanism)

    def _plan_of(self, made: Any) -> Plan:
        """The plan of what is drawn, for single rows or for persons."""
        bounded, notes = not any(self._grid.beyond), self._notes(made)
        needed = {} if bounded else {"rows": self._rows_needed(made)}
        chance = PassChance(1.0, "always") if bounded else PassChance(0.95, "rows-around", needed)
        forecast = Forecast(chances=(chance,), notes=notes if bounded else (Note("no-bounds-needed"), *notes))
        plan = Plan(self.name, self.theorem, made.steps(), self._proposal(), forecast, self._budget)
        return plan.with_notes(missing_note(self.missing))

    @cached_property
    def _grid(self) -> CellRange:
        spacing, ends = rational(self.step, "step"), open_ends(self.bounds)
        if spacing < 0:
            raise ValueError("step must not be negative")
        if ends is not None:
            return StepGrid.over(ends, spacing) if spacing else WideGrid.over(ends)
        bounds = both_ends(self.bounds)
        return StepGrid.between(bounds, spacing) if spacing else Grid.between(bounds)

    @cached_property
    def _points(self) -> Points:
        return Points.of(self._grid)

    @cached_property
    def _missing_cell(self) -> int | None:
        return None if self.missing is None else self._grid.nearest(self.missing, "missing")

    @property
    @abstractmethod
    def _mechanism(self) -> OneRank | SeveralQuantiles | QuantileTableDraw | QuantileIntervalDraw:
        """What is drawn: one point, several, several and the rows between them, or two around a quantile."""

    @cached_property
    def _totals(self) -> PersonRelease[Seen] | None:
        """Where rows may have weights all of a person's are used; otherwise some of them are kept."""
        if self._persons is None or self._weighed is None:
            return None
        from snugdp.queries.order_statistics.persons import PersonRanks  # polars: for those who bring a table

        return PersonRanks(self, self._persons)

    @property
    def _weighed(self) -> tuple[Fraction, ...] | None:
        """The quantiles that are drawn, where the rows of persons may have weights."""
        return None

    @abstractmethod
    def _notes(self, made: Any) -> tuple[Note, ...]:
        """What to expect of what is drawn."""

    def _proposal(self) -> dict[str, float | Fraction]:
        """What was chosen in public, for the plan."""
        return {}

    @abstractmethod
    def _rows_needed(self, made: Any) -> int:
        """With so many rows a draw is hardly ever lost beyond an open end."""

    @abstractmethod
    def _show(self, drawn: Any) -> Seen:
        """What was drawn, in the user's units."""

    def _drawn_points(self, drawn: Any) -> Iterable[int]:
        """The points among what was drawn."""
        return drawn  # type: ignore[no-any-return]

    def _shown(self, drawn: Any) -> Seen | None:
        """The same; nothing where a point stands for no answer."""
        return self._show(drawn) if all(map(self._points.is_answer, self._drawn_points(drawn))) else None

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Seen]:
        return release_if_drawn(self.plan(), Shown(self._mechanism, self._shown), self._cells(data), context)

    def _count_rows(self, rows: int) -> None:
        """Refuse a public number of rows."""
        if not rows:
            raise ValueError("the column is empty, and its length is public when neighbours replace a row")

    def _cells(self, data: object) -> Secret[Cells]:
        if self.column is None:
            values = numbers(data)
            if self._budget.neighbours is Neighbours.REPLACE:
                self._count_rows(len(values))
            return Secret(self._grid.cells(values, self._missing_cell))
        from snugdp.tables.engines import measure, numeric_source  # polars: only for those who bring a table
        from snugdp.tables.passes.counts.value_counts import ColumnCells

        source = numeric_source(data, (self.column,))
        ahead = _ahead(self._mechanism)
        if ahead is None or source.held:
            work = ColumnCells(self.column, self._grid, self._missing_cell)
            return measure(source, work).map(GatheredCounts.ranked)
        return Secret(self._refined(source, self.column, ahead))

    def _refined(self, source: Source, column: str, ahead: Iterable[RankDraw]) -> RefinedCounts:
        """Counts of a table that is not in memory; what draws will ask for is read before anything is charged."""
        from snugdp.tables.refined_counts import RefinedCounts

        counts = RefinedCounts(source, column, self._grid, self._missing_cell)
        for draw in ahead if counts.rows else ():
            counts.between(*draw.target.near(draw.rate, counts.rows))
        return counts


@dataclass(frozen=True, kw_only=True)
class SingleRank(RankQuery[float]):
    """One point."""

    @cached_property
    def _mechanism(self) -> OneRank:
        share = Share.pure(self._budget)
        return OneRank(RankDraw.paid_by(share, self._target, self._points), share)

    @property
    @abstractmethod
    def _target(self) -> RankTarget:
        """The rank that is wanted."""

    def _notes(self, made: OneRank) -> tuple[Note, ...]:
        return (_ranks(made.point),)

    def _rows_needed(self, made: OneRank) -> int:
        return made.point.rows_needed()

    def _drawn_points(self, drawn: int) -> Iterable[int]:
        return (drawn,)

    def _show(self, drawn: int) -> float:
        return self._grid.number(drawn)


def _ahead(made: Any) -> Iterable[RankDraw] | None:
    """The draws whose ranks follow from the number of rows; None where all values are needed."""
    if isinstance(made, OneRank):
        return (made.point,)
    if isinstance(made, SeveralQuantiles):
        return made.separate
    return () if isinstance(made, QuantileIntervalDraw) else None


def missing_note(value: Real | None) -> Note:
    """What is done with missing entries: they count as a public value, or are left out."""
    return (
        Note("missing-entries") if value is None else Note("missing-as", {"value": float(rational(value, "missing"))})
    )


def usual_ranks(scale: float) -> int:
    """Ranks within which the answer is in 19 of 20 cases, where rows lie about evenly around it."""
    return math.ceil(scale * math.log(FORECAST_CASES)) + 1


def _ranks(point: RankDraw) -> Note:
    usual = usual_ranks(point.scale)
    return Note("ranks-off-at-most", {"ranks": usual, "most": max(point.rank_error(), usual)})
