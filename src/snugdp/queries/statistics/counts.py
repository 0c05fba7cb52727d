"""How many rows there are, and the sum of a column. Proof: ``mechanisms/statistics/joint.proof.md``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.statistics.clipping import ClippedRange, ClippedTotal
from snugdp.mechanisms.statistics.joint import JointNoise, count_noise, total_noise
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Forecast
from snugdp.propose.plan import Step
from snugdp.propose.theorem import theorem
from snugdp.queries.estimate import Estimate
from snugdp.queries.statistics.base import ColumnStatistic, Preparation, best, row_guess, sums_of
from snugdp.queries.statistics.clips import Clip, capped_sums, check_clip, clip_notes, clip_range
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import Names
from snugdp.tables.cells.columns import open_column
from snugdp.tables.grid import Grid
from snugdp.tables.passes.statistics import LabelCounts, PowerSums, RowCount, StatisticsPass

BITS = 36  # of the grid of a sum


@dataclass(frozen=True)
class FirstSum:
    """The first of the sums of a measure, with its noise."""

    noise: JointNoise

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        return self.noise.steps()

    def draw(self, data: Secret[list[int]], noise: Noise) -> int:
        """One number."""
        return self.noise.draw(data.map(lambda sums: sums[:1]), noise)[0]


@dataclass(frozen=True)
class PlainTotal:
    """The sum of cells between ``lower`` and ``upper``, from the number of rows and their sum above ``lower``."""

    noise: JointNoise
    lower: int

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        return self.noise.steps()

    def draw(self, data: Secret[list[int]], noise: Noise) -> int:
        """The sum."""
        return self.noise.draw(data.map(lambda sums: [sums[1] + self.lower * sums[0]]), noise)[0]


@dataclass(frozen=True, kw_only=True)
class Count(ColumnStatistic[Estimate]):
    """How many rows a table has, or how many have an entry in a column.

    Parameters
    ----------
    epsilon, delta : Real
        The privacy budget. Without a delta the noise is discrete Laplace; with one, whichever is smaller.
    column : str, optional
        Count the rows of a table that have an entry in this column. Without it all rows count.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours. When rows are replaced the number of all rows is public, and only the
        entries of a column can be counted.

    Examples
    --------
    >>> import snugdp
    >>> 900 < snugdp.Count(epsilon=1).release(range(1000)).value.value < 1100
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.column is None and self._budget.neighbours is Neighbours.REPLACE:
            raise ValueError(
                "the number of rows is public when neighbours replace a row: take the length of the table. With "
                "column=... the entries of a column are counted"
            )

    @cached_property
    def _prepared(self) -> Preparation[Estimate]:
        noise = count_noise(best(self._shares, lambda share: count_noise(share).errors[0]))
        measure = RowCount() if self.column is None else LabelCounts(self.column, Names([], "the entries"))
        error = noise.errors[0]

        def show(drawn: int) -> Estimate:
            return Estimate(float(max(drawn, 0)), error)

        return Preparation(measure, FirstSum(noise), show, theorem("counts/1"), Forecast(error))

    def _sums(self, data: object) -> Secret[list[int]]:
        if self.column is None and hasattr(data, "__len__") and not isinstance(data, str) and not _has_columns(data):
            return Secret([len(open_column(data))])
        return sums_of(data, StatisticsPass((self._prepared.measure,)))


def _has_columns(data: object) -> bool:
    """Whether it is a table rather than a column."""
    return hasattr(data, "columns") or hasattr(data, "column_names")


@dataclass(frozen=True, kw_only=True)
class Sum(ColumnStatistic[Estimate]):
    """The sum of a column of numbers.

    Parameters
    ----------
    epsilon, delta : Real
        The privacy budget. Without a delta the noise is discrete Laplace; with one, whichever is smaller.
    bounds : (Real, Real)
        Public bounds on the values of the column; required.
    column : str, optional
        The column of a table. Without it, the data are a column.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    clip : {"auto", "private"}, optional
        Where numbers are clipped: in private where there are enough rows for it ("auto"), in private always, or at the
        bounds alone (None).
    rows : int, optional
        A public guess of the number of rows: with it "auto" need not spend anything on counting them.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Sum(bounds=(0, 10), epsilon=1)
    >>> 4800 < query.release([5.0] * 1000).value.value < 5200
    True
    """

    bounds: tuple[Real, Real] | None = None
    clip: Clip = "auto"
    rows: int | None = None

    def __post_init__(self) -> None:
        check_clip(self.clip)
        object.__setattr__(self, "rows", row_guess(self.rows))
        super().__post_init__()

    @cached_property
    def _grid(self) -> Grid:
        return Grid.across(self.bounds, BITS)

    @cached_property
    def _prepared(self) -> Preparation[Estimate]:
        grid, unit = self._grid, float(self._grid.unit)
        share = best(self._shares, lambda share: total_noise(share, grid.lower, grid.upper).errors[0])
        if self.clip is None:
            noise = total_noise(share, grid.lower, grid.upper)
            forecast = Forecast(noise.errors[0] * unit)
            measure = PowerSums((self._name,), (grid,))
            made = PlainTotal(noise, grid.lower)
            return Preparation(measure, made, lambda total: self._shown(total, noise), theorem("counts/1"), forecast)
        chosen = clip_range(share, capped_sums(self._name, grid), self.clip, self.rows)
        most = total_noise(chosen.rest, grid.lower, grid.upper).errors[0] * unit
        forecast = Forecast(most, notes=clip_notes(chosen))

        def show(drawn: tuple[ClippedRange, int]) -> Estimate:
            clip, total = drawn
            return self._shown(total, total_noise(clip.left, clip.low, clip.high))

        return Preparation(chosen.measure, ClippedTotal(chosen), show, theorem("clipped-mean/1"), forecast)

    def _shown(self, total: int, noise: JointNoise) -> Estimate:
        unit = self._grid.unit
        return Estimate(float(total * unit), float(Fraction(noise.errors[0]) * unit))
