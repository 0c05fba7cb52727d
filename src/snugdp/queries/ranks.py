"""What queries share that draw points of a public grid by the ranks that these have in a column.

Proof: ``mechanisms/order_statistics/rank_draw.proof.md``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.order_statistics.rank_draw import Cells, OneRank, Points, RankDraw, RankTarget
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles
from snugdp.mechanisms.statistics.quantile_table import QuantileTableDraw
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.propose.theorem import Theorem, theorem
from snugdp.queries.base import Query, Shown
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import numbers
from snugdp.tables.grid import Grid, StepGrid

Seen = TypeVar("Seen")
OFTEN = 20  # forecasts are for 19 cases in 20


@dataclass(frozen=True, kw_only=True)
class RankQuery(Query[Seen]):
    """Points of a public grid, drawn by the ranks that they have in a column: pure, and never refused.

    Parameters
    ----------
    epsilon, delta : Real
        The privacy budget.
    bounds : (Real, Real)
        Public bounds on the values of the column; required. Values beyond them count as the bound.
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
    bounds: tuple[Real, Real] | None = None
    column: str | None = None
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    step: Real = 0
    missing: Real | None = None

    name: ClassVar[str]
    theorem: ClassVar[Theorem] = theorem("rank-draw/1")

    def __post_init__(self) -> None:
        if self.column is not None and not isinstance(self.column, str):
            raise TypeError("column must be the name of a column of the table")
        self._missing_cell  # noqa: B018  what is wrong is said here, before any data are seen
        self.plan()

    def plan(self) -> Plan:
        """What will be done, what it costs, what to expect. No data are read."""
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        forecast = Forecast(chances=(PassChance(1.0, "always"),), notes=self._notes())
        return Plan(self.name, self.theorem, self._mechanism.steps(), self._proposal(), forecast, self._budget)

    @cached_property
    def _grid(self) -> Grid | StepGrid:
        spacing = rational(self.step, "step")
        if spacing < 0:
            raise ValueError("step must not be negative")
        return StepGrid.between(self.bounds, spacing) if spacing else Grid.between(self.bounds)

    @cached_property
    def _points(self) -> Points:
        return Points(self._grid.lower, self._grid.upper)

    @cached_property
    def _missing_cell(self) -> int | None:
        return None if self.missing is None else self._grid.nearest(self.missing, "missing")

    @property
    @abstractmethod
    def _mechanism(self) -> OneRank | SeveralQuantiles | QuantileTableDraw:
        """What is drawn: one point, several, or several and the rows between them."""

    @abstractmethod
    def _notes(self) -> tuple[Note, ...]:
        """What to expect."""

    def _proposal(self) -> dict[str, float | Fraction]:
        """What was chosen in public, for the plan."""
        return {}

    @abstractmethod
    def _show(self, drawn: Any) -> Seen:
        """What was drawn, in the user's units."""

    def _column(self, data: object) -> str | None:
        return super()._column(data) if self.column is None else self.column

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Seen]:
        return release(self.plan(), Shown(self._mechanism, self._show), self._cells(data), context)

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
        from snugdp.tables.passes.value_counts import ColumnCells

        work = ColumnCells(self.column, self._grid, self._missing_cell)
        return measure(numeric_source(data, work.columns), work).map(lambda state: state.total())


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

    def _notes(self) -> tuple[Note, ...]:
        return (_ranks(self._mechanism.point),)

    def _show(self, drawn: int) -> float:
        return self._grid.number(drawn)


def usual_ranks(scale: float) -> int:
    """Ranks within which the answer is in 19 of 20 cases, where rows lie about evenly around it."""
    return math.ceil(scale * math.log(OFTEN)) + 1


def _ranks(point: RankDraw) -> Note:
    scale = float(1 / (point.rate * point.target.slope))
    return Note("ranks-off-at-most", {"ranks": usual_ranks(scale), "most": max(point.rank_error(), usual_ranks(scale))})
