"""Covariance and correlation of two columns. Proof: ``mechanisms/statistics/moments.proof.md``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias, TypeGuard

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome
from snugdp.ledger.question import column_name
from snugdp.mechanisms.statistics.moments import Found, JointMoments, NoisyMoments
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import Query, ReleaseKeywords, Shown
from snugdp.queries.bounds.given import GivenBounds, both_ends, open_ends
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.base import best, budget_shares, expected, moment_grid, row_guess, sums_of
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import numbers
from snugdp.tables.cells.cell import length
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Ends, Grid
from snugdp.tables.passes.columns.statistics import PowerSums, StatisticsPass

if TYPE_CHECKING:
    from snugdp.tables.sources import Source

_LARGE_TABLE = 10**9  # rows, where errors are compared: to first order
_BITS = {1: 24, 2: 16}  # of the grids, by the degree
_ALONE = ("first", "second")
_PAIR = "give bounds for both columns, such as bounds=((0, 250), (0, 300)), from outside the data"


PairBounds: TypeAlias = tuple[GivenBounds, GivenBounds] | Literal["private"] | None


class PairKeywords(ReleaseKeywords, total=False):
    """The keyword arguments of functions that ask for a statistic of two columns."""

    delta: Real
    bounds: PairBounds
    columns: tuple[str, str] | None
    rows: int | None


@dataclass(frozen=True, kw_only=True)
class PairStatistic(Query[Estimate]):
    """A statistic of two columns, over the rows in which both are numbers.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/moments.proof.md``).

    Parameters
    ----------
    epsilon, delta : Real
        The privacy budget. Without a delta the noise is discrete Laplace; with one, whichever is smaller.
    bounds : ((Real, Real), (Real, Real)) or "private"
        Public bounds on the values of each column; "private" or an end that is None is found privately, for a part of
        the budget. By default both columns are looked at.
    columns : (str, str), optional
        Two columns of a table. Without them, the data are a pair of columns of equal length.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    rows : int, optional
        A public guess of the number of rows, for the forecast.
    """

    epsilon: Real
    delta: Real = 0
    bounds: PairBounds = "private"
    columns: tuple[str, str] | None = None
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    rows: int | None = None

    degree: ClassVar[int]
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", row_guess(self.rows))
        if self.columns is not None:
            if isinstance(self.columns, str) or not all(isinstance(name, str) for name in self.columns):
                raise TypeError('columns must be two names, such as columns=("height", "weight")')
            if len(set(self.columns)) != 2 or len(self.columns) != 2:
                raise ValueError("columns must be two different columns")
            object.__setattr__(self, "columns", tuple(self.columns))
        self.plan()  # what is wrong is said here, before any data are seen

    @staticmethod
    @abstractmethod
    def _statistic(moments: NoisyMoments, /) -> Found:
        """The statistic, in units of the widths."""

    @abstractmethod
    def _shown(self, found: Found) -> Estimate:
        """The statistic in the user's units."""

    @cached_property
    def _grids(self) -> tuple[Grid, ...]:
        return tuple(moment_grid(both_ends(each), _BITS[self.degree]) for each in self._pair)

    @property
    def _names(self) -> tuple[str, str]:
        return self.columns or _ALONE

    @property
    def _read_columns(self) -> tuple[str, ...]:
        if self.columns is None:
            raise ValueError(
                'with person=..., or for a part of a table, name the columns, such as columns=("height", "weight")'
            )
        return self.columns

    @property
    def _pair(self) -> tuple[GivenBounds, GivenBounds]:
        """The bounds of each column."""
        if self.bounds is None or isinstance(self.bounds, str):
            return self.bounds, self.bounds
        if not isinstance(self.bounds, tuple | list) or len(self.bounds) != 2:
            raise ValueError(f"bounds must be those of both columns: {_PAIR}")
        first, second = self.bounds
        if not all(isinstance(each, tuple | list | FoundNumber | str | None) for each in (first, second)):
            raise ValueError(f"bounds must be a pair of pairs: {_PAIR}")
        return first, second

    @property
    def _open(self) -> Mapping[str, Ends]:
        ends = zip(self._names, map(open_ends, self._pair), strict=True)
        return {name: each for name, each in ends if each is not None}

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        first, second = (found.get(name, each) for name, each in zip(self._names, self._pair, strict=True))
        return replace(self, bounds=(first, second), epsilon=epsilon)

    def _opened(self, data: object) -> tuple[Source, object]:
        from snugdp.queries.search import column_source, opened_columns  # for those who leave bounds to be found

        if self.columns is not None:
            return opened_columns(data, self.columns)
        pair = tuple(map(numbers, self._both(data)))
        if len(pair[0]) != len(pair[1]):
            raise ValueError("the columns must have the same number of rows")
        return column_source(dict(zip(_ALONE, pair, strict=True))), pair

    @cached_property
    def _mechanism(self) -> JointMoments:
        return self._made(best(budget_shares(self._budget), lambda share: self._error(share, _LARGE_TABLE)))

    def _made(self, share: Share) -> JointMoments:
        return JointMoments(share, tuple(grid.width for grid in self._grids), self.degree)

    def _error(self, share: Share, rows: int) -> float:
        """With so many rows that fill their bounds evenly, in the user's units."""
        return self._shown(self._statistic(self._made(share).even(rows))).error

    @cached_property
    def _plan(self) -> Plan:
        made = self._mechanism
        forecast = expected(self.rows, lambda rows: self._error(made.share, rows))
        plan = Plan(self.name, theorem("moments/1"), made.steps(), {}, forecast, self._budget)
        return plan.with_notes(Note("missing-entries"))

    def _column(self, data: object) -> str | None:
        if self.columns is not None:
            return " and ".join(self.columns)
        names = [column_name(each) for each in data] if _is_pair(data) else [None]
        return None if None in names else " and ".join(map(str, names))

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Estimate]:
        made = self._mechanism
        shown = Shown(made, lambda drawn: self._shown(self._statistic(made.moments(drawn))))
        return release(self.plan(), shown, self._sums(data), context)

    def _sums(self, data: object) -> Secret[list[int]]:
        work = StatisticsPass((PowerSums(self._names, self._grids, self.degree),))
        if self.columns is not None:
            return sums_of(data, work)
        return Secret(work.alone(*self._both(data))[0])

    @staticmethod
    def _both(data: object) -> tuple[object, object]:
        if not _is_pair(data):
            raise TypeError('give a pair of columns, (heights, weights), or a table and columns=("height", "weight")')
        first, second = data
        return first, second


def _is_pair(data: object) -> TypeGuard[tuple[object, object]]:
    """Whether it is a pair of columns, rather than a table or a column."""
    return isinstance(data, tuple | list) and length(data) == 2


@dataclass(frozen=True, kw_only=True)
class Covariance(PairStatistic):
    """The covariance of two columns: the mean product of their distances from their means.

    Examples
    --------
    >>> import snugdp
    >>> height, weight = [150 + i % 50 for i in range(5000)], [50 + i % 50 for i in range(5000)]
    >>> query = snugdp.Covariance(bounds=((100, 250), (0, 200)), epsilon=1)
    >>> 150 < query.release((height, weight)).value.value < 270
    True
    """

    degree = 1
    name = "Covariance"
    _statistic = staticmethod(NoisyMoments.covariance)

    def _shown(self, found: Found) -> Estimate:
        first, second = (grid.width * float(grid.unit) for grid in self._grids)
        return Estimate(found.value * first * second, found.error * first * second, found.count)


@dataclass(frozen=True, kw_only=True)
class Correlation(PairStatistic):
    """Pearson's correlation of two columns. Where a variance drowns in noise it is 0, with an error of 1.

    Examples
    --------
    >>> import snugdp
    >>> height, weight = [150 + i % 50 for i in range(5000)], [50 + i % 50 for i in range(5000)]
    >>> query = snugdp.Correlation(bounds=((150, 200), (50, 100)), epsilon=2)
    >>> query.release((height, weight)).value.value > 0.9
    True
    """

    degree = 2
    name = "Correlation"
    _statistic = staticmethod(NoisyMoments.correlation)

    def _shown(self, found: Found) -> Estimate:
        return Estimate(found.value, found.error, found.count)
