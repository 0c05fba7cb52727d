"""How many rows there are, and the sum of a column. Proof: ``mechanisms/statistics/joint.proof.md``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import itemgetter

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.statistics.clipping import ClippedRange, ClippedTotal
from snugdp.mechanisms.statistics.joint import JointNoise, count_noise, total_noise
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import ColumnKeywords
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.base import ColumnStatistic, Contribution, OfSums, PreparedStatistic, best, sums_of
from snugdp.queries.statistics.clips import ClippedStatistic, HiddenPart, clip_notes, clip_range
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import Names
from snugdp.tables.cells.columns import open_column
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Grid
from snugdp.tables.passes.columns.statistics import LabelCounts, PowerSums, RowCount, SignedTotal, StatisticsPass

BITS = 36  # of the grid of a sum
_LEAST_TOTAL = Fraction(1, 64)  # caps on the total of a person go down to this part of the largest value


class CountKeywords(ColumnKeywords, total=False):
    """The keyword arguments of ``count``."""

    missing: bool


@dataclass(frozen=True, kw_only=True)
class Count(ColumnStatistic[Estimate]):
    """How many rows a table has, or how many have an entry in a column.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/joint.proof.md``).

    Parameters
    ----------
    column : str, optional
        Count the rows of a table that have an entry in this column. Without it all rows count.
    missing : bool, default=False
        Count the rows that have no entry in the column instead.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours. When rows are replaced the number of all rows is public, and only the
        entries of a column can be counted.

    Examples
    --------
    >>> import snugdp
    >>> 900 < snugdp.Count(epsilon=1).release(range(1000)).value.value < 1100
    True
    """

    missing: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.missing, bool) or (self.missing and self.column is None):
            raise ValueError("missing must be True or False; True, to count missing cells, needs column=...")
        if self.column is None and self._budget.neighbours is Neighbours.REPLACE:
            raise ValueError(
                "the number of rows is public when neighbours replace a row: take the length of the table. With "
                "column=... the entries of a column are counted"
            )

    @property
    def _measure(self) -> RowCount | LabelCounts:
        return RowCount() if self.column is None else LabelCounts(self.column, Names([], "the entries"))

    def _prepare(self, shares: tuple[Share, ...]) -> PreparedStatistic[Estimate]:
        noise = count_noise(best(shares, lambda share: count_noise(share).errors[0]))
        measure = self._measure
        error = noise.errors[0]

        def show(drawn: list[int]) -> Estimate:
            return Estimate(float(max(drawn[0], 0)), error)

        place = slice(int(self.missing), int(self.missing) + 1)
        return PreparedStatistic(measure, OfSums(noise, itemgetter(place)), show, theorem("counts/1"), Forecast(error))

    def _contribution(self, share: Share) -> Contribution:
        place = None if self.column is None else int(self.missing)
        return Contribution(self._measure, ((1,),), (Fraction(1),), cell=place)

    @property
    def _read_columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def _gaps(self) -> tuple[Note, ...]:
        return () if self.column is None or self.missing else super()._gaps

    def _sums(self, data: object) -> Secret[list[int]]:
        if self.column is None and hasattr(data, "__len__") and not isinstance(data, str) and not _has_columns(data):
            return Secret([len(open_column(data))])
        return sums_of(data, StatisticsPass((self._prepared.measure,)))


def _has_columns(data: object) -> bool:
    """Whether it is a table rather than a column."""
    return hasattr(data, "columns") or hasattr(data, "column_names")


@dataclass(frozen=True, kw_only=True)
class Sum(ClippedStatistic):
    """The sum of a column of numbers.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/joint.proof.md``;
    where numbers are clipped privately ``clipping.proof.md``).

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Sum(bounds=(0, 10), epsilon=1)
    >>> 4800 < query.release([5.0] * 1000).value.value < 5200
    True
    """

    @cached_property
    def _grid(self) -> Grid:
        return Grid.across(self._reach, BITS)

    def _contribution(self, share: Share) -> Contribution:
        grid = self._grid
        (move,) = total_noise(share, grid.lower, grid.upper).moves
        return Contribution(SignedTotal(self._name, grid), ((1,),), (move,), least=_LEAST_TOTAL)

    def _prepare(self, shares: tuple[Share, ...]) -> PreparedStatistic[Estimate]:
        grid, unit = self._grid, float(self._grid.unit)
        share = best(shares, lambda share: total_noise(share, grid.lower, grid.upper).errors[0])
        if self.clip is None:
            noise = total_noise(share, grid.lower, grid.upper)
            forecast = Forecast(noise.errors[0] * unit)
            measure = PowerSums((self._name,), (grid,))
            made = OfSums(noise, lambda sums: [sums[1] + grid.lower * sums[0]])  # rows, and their sum above lower
            whole = ClippedRange(grid.lower, grid.upper, 0, share)
            return PreparedStatistic(
                measure, made, lambda drawn: self._shown(drawn[0], noise, whole), theorem("counts/1"), forecast
            )
        chosen = clip_range(share, self._capped(grid), self.clip, self.rows)
        most = total_noise(chosen.rest, grid.lower, grid.upper).errors[0] * unit
        forecast = Forecast(most, notes=clip_notes(chosen))

        def show(drawn: tuple[ClippedRange, int]) -> Estimate:
            clip, total = drawn
            return self._shown(total, total_noise(clip.left, clip.low, clip.high), clip)

        return PreparedStatistic(chosen.measure, ClippedTotal(chosen), show, theorem("clipped-mean/1"), forecast)

    def _shown(self, total: int, noise: JointNoise, clip: ClippedRange) -> Estimate:
        unit = self._grid.unit
        shown = Estimate(float(total * unit), float(Fraction(noise.errors[0]) * unit))
        return HiddenPart.of(clip, self._grid, found=isinstance(self.bounds, FoundNumber)).of_sum(shown)
