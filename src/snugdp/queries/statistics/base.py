"""What all statistics share: a column, or one of a table; and the kind of noise that serves them best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.core.outcome import Outcome
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.plan import Plan, Step
from snugdp.propose.share import Share
from snugdp.propose.theorem import Theorem
from snugdp.queries.base import PersonRelease, Query, Shown
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import Mechanism, release
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import Grid
from snugdp.tables.passes.columns.statistics import ALONE, CellMeasure, Measure, StatisticsPass

if TYPE_CHECKING:
    from snugdp.tables.sources import Source

Seen = TypeVar("Seen")
_LEAST_EPSILON = Fraction(1, 10**15)
_MOST_SQUARED = 10**150  # of bounds whose squares are released
TYPICAL_ROWS = 10_000  # of the line in a plan that says what to expect


class Planned(Protocol):
    """A mechanism that says what it draws."""

    def steps(self) -> tuple[Step, ...]:
        """Its steps."""

    def draw(self, data: Secret[list[int]], noise: Any) -> Any:
        """One draw, from the sums of the measure."""


@dataclass(frozen=True)
class OfSums:
    """A mechanism on what follows from the sums of a measure, such as one of them."""

    mechanism: Planned
    derive: Callable[[list[int]], list[int]]

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        return self.mechanism.steps()

    def draw(self, data: Secret[list[int]], noise: Any) -> Any:
        """One draw."""
        return self.mechanism.draw(data.map(self.derive), noise)


@dataclass(frozen=True)
class PreparedStatistic(Generic[Seen]):
    """What a statistic does: what is summed up, what is drawn, how it is shown, and what to expect."""

    measure: Measure
    mechanism: Planned
    show: Callable[[Any], Seen]
    theorem: Theorem
    forecast: Forecast


@dataclass(frozen=True)
class Contribution:
    """What a row adds to a statistic, so that what a person adds with all rows can be bounded.

    ``rows``: the combinations of the numbers of the measure that get noise. ``moves``: of each of them, in the sense
    of ``JointNoise``. ``cell``: the only one that is asked about. ``least``: caps that are found privately are not
    below it.
    """

    measure: CellMeasure
    rows: tuple[tuple[int, ...], ...]
    moves: tuple[Fraction, ...]
    cell: int | None = None
    least: Fraction = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class ColumnStatistic(Query[Seen]):
    """A statistic of one column or several, from exact sums over their rows. It is never refused.

    Missing and invalid entries are ignored: they are not in the statistic.

    Parameters
    ----------
    epsilon, delta : Real
        The privacy budget. Without a delta the noise is discrete Laplace; with one, whichever is smaller.
    column : str, optional
        The column of a table. Without it, the data are a column.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    """

    epsilon: Real
    delta: Real = 0
    column: str | None = None
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE

    finds_caps = True

    def __post_init__(self) -> None:
        if self.column is not None and not isinstance(self.column, str):
            raise TypeError('column must be the name of a column, such as column="income"')
        self.plan()  # what is wrong is said here, before any data are seen

    @cached_property
    def _prepared(self) -> PreparedStatistic[Seen]:
        """From public quantities alone, once."""
        return self._prepare(self._shares)

    @abstractmethod
    def _prepare(self, shares: tuple[Share, ...]) -> PreparedStatistic[Seen]:
        """What is done with one of these shares, whichever is best."""

    @abstractmethod
    def _contribution(self, share: Share) -> Contribution:
        """What rows add, where the share is pure or Gaussian as this one is."""

    @cached_property
    def _totals(self) -> PersonRelease[Seen] | None:
        """Where bounds are to be found, or numbers clipped privately, rows are kept."""
        persons = self._persons
        if persons is None or (persons.most == 1 and not persons.is_private):
            return None
        if persons.is_private and self._open:
            raise ValueError('max_rows="private" needs public bounds: give bounds=(lower, upper), or max_rows a number')
        if self._open or not (persons.is_private or getattr(self, "clip", None) is None):
            return None
        from snugdp.queries.statistics.persons import PersonStatistic  # polars: for those who bring a table

        return PersonStatistic(self, persons)

    @property
    def _name(self) -> str:
        return ALONE if self.column is None else self.column

    @property
    def _shares(self) -> tuple[Share, ...]:
        return budget_shares(self._budget)

    @cached_property
    def _plan(self) -> Plan:
        prepared = self._prepared
        plan = Plan(title_of(self), prepared.theorem, prepared.mechanism.steps(), {}, prepared.forecast, self._budget)
        return plan.with_notes(*self._gaps)

    @property
    def _gaps(self) -> tuple[Note, ...]:
        """What is done with missing entries."""
        return (Note("missing-entries"),)

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Seen]:
        prepared = self._prepared
        mechanism: Mechanism[list[int], Any] = prepared.mechanism
        return release(self.plan(), Shown(mechanism, prepared.show), self._sums(data), context)

    def _opened(self, data: object) -> tuple[Source, object]:
        from snugdp.queries.search import opened_column  # for those who leave bounds to be found

        return opened_column(data, self.column)

    def _sums(self, data: object) -> Secret[list[int]]:
        work = StatisticsPass((self._prepared.measure,))
        if self.column is None:
            return Secret(work.alone(data)[0])
        return sums_of(data, work)


def budget_shares(budget: Budget) -> tuple[Share, ...]:
    """The whole budget as pure noise pays it, and as Gaussian noise does if it can."""
    if budget.epsilon < _LEAST_EPSILON:
        raise ValueError("epsilon is so small that nothing could be learned; typical values are 0.1 to 4")
    return (Share.pure(budget), Share.gaussian(budget)) if budget.delta else (Share.pure(budget),)


def sums_of(data: object, work: StatisticsPass) -> Secret[list[int]]:
    """The sums of the only measure, in one pass over a table."""
    from snugdp.tables.engines import measure  # polars and the engines: only for those who bring a table

    return measure(data, work).map(lambda state: work.parts(state)[0])


def best(shares: tuple[Share, ...], error: Callable[[Share], float]) -> Share:
    """The share with the smaller error; pure noise where it makes no difference."""
    return min(shares, key=error)


def expected(rows: int | None, error: Callable[[int], float], *notes: Note) -> Forecast:
    """The error with so many rows; without a number, in a note about a typical one."""
    if rows is not None:
        return Forecast(error(rows), notes=notes)
    typical = Note("error-with-rows", {"rows": TYPICAL_ROWS, "error": error(TYPICAL_ROWS)})
    return Forecast(notes=(typical, *notes))


def moment_grid(bounds: tuple[Real, Real] | None, bits: int) -> Grid:
    """The grid of numbers of which products are released."""
    grid = Grid.across(bounds, bits)
    if max(abs(grid.lower), abs(grid.upper)) * grid.unit > _MOST_SQUARED:
        raise ValueError("bounds must be below 1e150 in size: squares of them are released")
    return grid


def row_guess(rows: object) -> int | None:
    """A public number of rows, checked."""
    if rows is None:
        return None
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError("rows must be a whole number of at least 1, known or guessed without the data")
    return int(rows)


def title_of(query: object) -> str:
    """What a query is called."""
    return _spaced(type(query).__name__)


def _spaced(name: str) -> str:
    """A class as a title.

    >>> _spaced("StandardDeviation")
    'Standard deviation'
    """
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    return words.capitalize()
