"""What a description draws of one column, by its kind: sums and quantiles of numbers, counts of listed values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from snugdp.mechanisms.order_statistics.rank_draw import Points
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles
from snugdp.mechanisms.statistics.clipping import ClippedMoments, ClipRange
from snugdp.mechanisms.statistics.described import EntryCounts, MomentsAndMissing, Portion
from snugdp.mechanisms.statistics.joint import JointNoise, cell_noise
from snugdp.mechanisms.statistics.moments import JointMoments
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Amount, Note
from snugdp.propose.plan import StepNoise
from snugdp.propose.share import Share
from snugdp.queries.estimate import Estimate
from snugdp.queries.order_statistics.base import usual_ranks
from snugdp.queries.statistics.balance import NoisyEntries
from snugdp.queries.statistics.clips import Clip, HiddenPart, capped_sums, clip_range, left_for_release, reach_of
from snugdp.queries.statistics.moments import deviation_of, mean_of
from snugdp.queries.table import Value
from snugdp.tables.cells import Names
from snugdp.tables.found import Flag, FoundNumber
from snugdp.tables.grid import CellRange, Ends, Grid, StepGrid
from snugdp.tables.passes.columns.statistics import CappedSums, LabelCounts, Measure, PowerSums, Quantity, TruthCounts
from snugdp.tables.passes.counts.value_counts import ColumnCells
from snugdp.tables.schema.kinds import Category, Column, Date, Number
from snugdp.tables.wide_grid import WideGrid

Shares: TypeAlias = Callable[[int], Share]  # from a weight to its part of the whole
DescribedKind: TypeAlias = "Column | Unlisted"
SUMS_WEIGHT, QUANTILES_WEIGHT, VALUES_WEIGHT = 2, 2, 1  # of the parts of a column in the budget
_BITS = {1: 40, 2: 24}  # of the grid of sums, by the degree
_NOTES = {  # by the errors that there are beside those of counts
    frozenset[str](): "describe-count",
    frozenset({"mean"}): "describe-mean",
    frozenset({"ranks"}): "describe-ranks",
    frozenset({"mean", "ranks"}): "describe-mean-ranks",
    frozenset({"mean", "deviation"}): "describe-mean-deviation",
    frozenset({"mean", "deviation", "ranks"}): "describe-mean-deviation-ranks",
}
_POINT_BITS, _FLOAT_BITS = 20, 51  # of the grid of quantiles at least; of the grid that is finest for its size
_MAX_NUMBER = 2.0**60  # in size: what lies beyond is not told apart
_COUNT_ONLY = 0  # the degree of sums if neither a mean nor a deviation is asked for


@dataclass(frozen=True)
class NumberRequest:
    """What is asked of every column of numbers. ``degree``: of sums: 2 for deviations, 1 for means, 0 for counts.

    ``shares``: what the sums of a column may cost at least, in each currency.
    """

    degree: int
    quantiles: tuple[Fraction, ...]
    deviation: bool
    clip: Clip
    rows: int | None
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True)
class Unlisted:
    """A column of which entries are counted and nothing else. ``type``: what it holds, as far as that is known."""

    type: str


@dataclass(frozen=True)
class ColumnFound:
    """What was released of a column, in the user's units; ``values``: listed ones with their counts."""

    kind: str
    entries: NoisyEntries
    mean: Estimate | None = None
    deviation: Estimate | None = None
    quantiles: tuple[float | None, ...] = ()
    ranks: int | None = None
    values: tuple[tuple[Value, float], ...] = ()
    value_error: float | None = None

    def line(self, entries: Estimate, missing: Estimate, quantiles: int) -> tuple[Value, ...]:
        """A line of the table of columns, behind its name; ``quantiles``: how many that table has."""
        counts = (part for one in (entries, missing) for part in (one.value, one.error))
        moments = (part for one in (self.mean, self.deviation) for part in _parts(one))
        points = self.quantiles or (None,) * quantiles
        value, count = self.values[0] if self.values else (None, None)
        return self.kind, *counts, *moments, *points, self.ranks, None if value is None else str(value), count


class DescribedColumn(ABC):
    """A column and what is drawn of it. ``place``: in the table, from 1."""

    name: str
    place: int

    @property
    @abstractmethod
    def weight(self) -> int:
        """Its weight in the budget."""

    @property
    @abstractmethod
    def measure(self) -> Measure:
        """What is summed up, for the portion of sums."""

    def statistics(self, rows: int, sums: list[int]) -> list[int]:
        """What the portion of sums draws from."""
        return sums

    @property
    def cells(self) -> ColumnCells | None:
        """The cells that are kept, for the portion of quantiles."""
        return None

    @abstractmethod
    def portions(self, shares: Shares) -> Iterator[Portion]:
        """What is drawn."""

    @abstractmethod
    def found(self, drawn: Mapping[str, Any], shares: Shares) -> ColumnFound:
        """What was drawn, for people."""

    @abstractmethod
    def errors(self, shares: Shares, rows: int) -> dict[str, float]:
        """What noise stays below in 19 of 20 cases, with so many rows that fill their bounds evenly."""

    @abstractmethod
    def note(self, shares: Shares, rows: int) -> Note:
        """The same for a plan."""

    @property
    def sums_id(self) -> str:
        """The id of the portion of sums or counts."""
        return f"column-{self.place}-sums"

    @property
    def quantiles_id(self) -> str:
        """The id of the portion of quantiles."""
        return f"column-{self.place}-quantiles"


@dataclass(frozen=True)
class NumberColumn(DescribedColumn):
    """Count, missing, mean, standard deviation and quantiles; of dates in days since 1970."""

    name: str
    place: int
    kind: Number | Date
    wanted: NumberRequest
    spacing: Real | None = None
    seen: FoundNumber | None = None

    @property
    def weight(self) -> int:
        """For its sums and for its quantiles."""
        return self._sums_weight + (QUANTILES_WEIGHT if self.wanted.quantiles else 0)

    @property
    def _sums_weight(self) -> int:
        return SUMS_WEIGHT if self.wanted.degree else VALUES_WEIGHT

    @cached_property
    def _grid(self) -> Grid:
        return Grid.across(self._reach, _BITS[self.wanted.degree or 1])

    @property
    def _reach(self) -> tuple[Real, Real]:
        """The bounds: public, or wide enough around what was found; any, where nothing but counts is asked for."""
        if self.seen is not None:
            clip, bits = self.wanted.clip, _BITS[self.wanted.degree or 1]
            both = self.seen.lower, self.seen.upper
            return _apart(both if clip is None else reach_of(self.seen, self.wanted.shares, self.wanted.rows), bits)
        return _both(self._ends) or (-1, 1)

    @property
    def _ends(self) -> Ends:
        """The public ends, None where there is none."""
        if isinstance(self.kind, Date):
            return self.kind.end("lower"), self.kind.end("upper")
        return self.kind.lower, self.kind.upper

    @cached_property
    def _points(self) -> CellRange:
        bounds = _both(self._ends)
        if bounds is None and self._is_located and self.seen is not None and self.spacing is None:
            bounds = _apart((self.seen.lower, self.seen.upper), _POINT_BITS)
        if bounds is None:
            return WideGrid.over(self._ends) if self.spacing is None else StepGrid.over(self._ends, self.spacing)
        return Grid.between(bounds) if self.spacing is None else StepGrid.between(bounds, self.spacing)

    @property
    def _is_located(self) -> bool:
        """Whether it was seen where the rows lie, and not only that they lie beyond the last doubling."""
        seen = self.seen
        return seen is not None and seen.flag is not Flag.NOT_FOUND and max(-seen.lower, seen.upper) < _MAX_NUMBER

    @property
    def _reading(self) -> Quantity:
        return "dates" if isinstance(self.kind, Date) else "numbers"

    @property
    def _type(self) -> str:
        return "date" if isinstance(self.kind, Date) else "number"

    @property
    def measure(self) -> Measure:
        """Sums of the numbers up to every cap; if counts alone are asked for, plain sums, the first of which counts."""
        if self.wanted.degree == _COUNT_ONLY:
            return PowerSums((self.name,), (self._grid,), reading=self._reading)
        return self._capped

    @property
    def _capped(self) -> CappedSums:
        centre = None if self.seen is None else self._grid.nearest(self.seen.centre, "the centre")
        return replace(capped_sums(self.name, self._grid, self.wanted.degree, centre), reading=self._reading)

    def statistics(self, rows: int, sums: list[int]) -> list[int]:
        """All rows first: those that are no numbers are missing."""
        return [rows, *sums]

    @property
    def cells(self) -> ColumnCells | None:
        """Its numbers, on the finest grid."""
        if not self.wanted.quantiles:
            return None
        return ColumnCells(self.name, self._points, dates=self._reading == "dates")

    def _quantiles(self, shares: Shares) -> SeveralQuantiles:
        return SeveralQuantiles(self.wanted.quantiles, Points.of(self._points), shares(QUANTILES_WEIGHT))

    def _sums(self, shares: Shares) -> ClippedMoments:
        share, measure = shares(self._sums_weight), self._capped
        clip = self.wanted.clip
        chosen = ClipRange(share, measure, 0) if clip is None else clip_range(share, measure, clip, self.wanted.rows)
        return ClippedMoments(chosen, self.wanted.degree)

    def portions(self, shares: Shares) -> Iterator[Portion]:
        """Sums, then quantiles."""
        about = {"column": self.name}
        if self.wanted.degree == _COUNT_ONLY:
            entries = EntryCounts(shares(self._sums_weight))
            yield Portion(self.sums_id, entries, _counts("described-entries", entries.noise, about))
        else:
            made = MomentsAndMissing(self._sums(shares))
            law = "discrete Laplace" if made.share.is_pure else "gaussian"
            both = "described-deviation" if self.wanted.deviation else "described-mean"
            yield Portion(self.sums_id, made, StepNoise(both, law, params=about))
        if self.wanted.quantiles:
            several = self._quantiles(shares)
            number = len(self.wanted.quantiles)
            how = StepNoise("described-quantiles", "exponential", several.scale, "ranks", number, about)
            yield Portion(self.quantiles_id, several, how)

    def found(self, drawn: Mapping[str, Any], shares: Shares) -> ColumnFound:
        """Numbers in the user's units."""
        ranks = usual_ranks(self._quantiles(shares).scale) if self.wanted.quantiles else None
        points = tuple(map(self._shown_point, drawn.get(self.quantiles_id, ())))
        if self.wanted.degree == _COUNT_ONLY:
            noise = EntryCounts(shares(self._sums_weight)).noise
            return ColumnFound(self._type, _entries(drawn[self.sums_id], noise), quantiles=points, ranks=ranks)
        clip, sums = drawn[self.sums_id]
        made = MomentsAndMissing(self._sums(shares))
        polynomials, missing = (sums[:-1], sums[-1:]) if made.counts_missing else (sums, [])
        moments = made.clipped.moments(clip, polynomials)
        unit = float(self._grid.unit)
        low, width = clip.low * unit, (clip.high - clip.low) * unit
        count, variance = moments.values[(0,)], moments.count_deviation**2
        beside = (missing[0], made.noise(clip).deviations[-1] ** 2) if missing else ()
        entries = NoisyEntries(count, variance, *beside)
        if self.seen is not None and (self.seen.flag is Flag.CONSTANT or not self._is_located):
            return ColumnFound(self._type, entries, quantiles=points, ranks=ranks)
        hidden, surely = HiddenPart.of(clip, self._grid, found=self.seen is not None), moments.least_rows
        mean = hidden.of_mean(mean_of(moments.mean(), low, width), surely)
        if not self.wanted.deviation:
            return ColumnFound(self._type, entries, mean, None, points, ranks)
        scatter = hidden.of_deviation(deviation_of(moments.variance(), width), surely)
        return ColumnFound(self._type, entries, mean, scatter, points, ranks)

    def _shown_point(self, cell: int) -> float | None:
        """A quantile; None where it stands for no answer."""
        return self._points.number(cell) if Points.of(self._points).is_answer(cell) else None

    def errors(self, shares: Shares, rows: int) -> dict[str, float]:
        """Of the mean and the deviation in the user's units, of quantiles in ranks, of counts in rows."""
        errors: dict[str, float] = {}
        if self.wanted.degree:
            width = self._grid.width * float(self._grid.unit)
            made = self._sums(shares)
            even = JointMoments(left_for_release(made.range), (self._grid.width,), self.wanted.degree).even(rows)
            errors["mean"] = mean_of(even.mean(), 0.0, width).error
            if self.wanted.deviation:
                errors["deviation"] = deviation_of(even.variance(), width).error
            errors["count"] = even.tail * even.count_deviation
        else:
            errors["count"] = EntryCounts(shares(self._sums_weight)).noise.errors[0]
        if self.wanted.quantiles:
            errors["ranks"] = usual_ranks(self._quantiles(shares).scale)
        return errors

    def note(self, shares: Shares, rows: int) -> Note:
        """By what is asked for."""
        errors = self.errors(shares, rows)
        return Note(_NOTES[frozenset(errors) - {"count"}], {"column": self.name, "rows": rows, **errors})


@dataclass(frozen=True)
class ValuesColumn(DescribedColumn):
    """Count, missing, and the counts of all values. ``listed``: these; None for booleans: no and yes."""

    name: str
    place: int
    type: str
    listed: tuple[Hashable, ...] | None = None

    @property
    def weight(self) -> int:
        """For its counts."""
        return VALUES_WEIGHT

    @cached_property
    def measure(self) -> Measure:
        """Its cells."""
        if self.listed is None:
            return TruthCounts(self.name)
        return LabelCounts(self.name, Names(self.listed, "the values of a category"))

    def _noise(self, shares: Shares) -> JointNoise:
        return cell_noise(shares(VALUES_WEIGHT), self.measure.size)

    def portions(self, shares: Shares) -> Iterator[Portion]:
        """The counts of all cells."""
        noise = self._noise(shares)
        yield Portion(self.sums_id, noise, _counts("described-values", noise, {"column": self.name}))

    def found(self, drawn: Mapping[str, Any], shares: Shares) -> ColumnFound:
        """Values, the most frequent first."""
        noise, counts = self._noise(shares), drawn[self.sums_id]
        variance = noise.deviations[0] ** 2
        entries = NoisyEntries(sum(counts[:-1]), (len(counts) - 1) * variance, counts[-1], variance)
        listed: tuple[Any, ...] = (False, True) if self.listed is None else self.listed
        pairs = zip(listed, map(float, counts), strict=False)  # others and missing come last
        values = tuple(sorted(pairs, key=lambda pair: -pair[1]))
        share = _share_of_yes(counts, noise) if self.listed is None else None
        return ColumnFound(self.type, entries, share, values=values, value_error=noise.errors[0])

    def errors(self, shares: Shares, rows: int) -> dict[str, float]:
        """Of a count."""
        return {"count": self._noise(shares).errors[0]}

    def note(self, shares: Shares, rows: int) -> Note:
        """Of a count."""
        return Note("describe-values", {"column": self.name, "error": self.errors(shares, rows)["count"]})


def described_column(
    name: str,
    place: int,
    kind: DescribedKind,
    wanted: NumberRequest,
    spacing: Real | None = None,
    *,
    seen: FoundNumber | None = None,
) -> DescribedColumn:
    """What is drawn of a column. What is wrong with its bounds is said with its name."""
    if not isinstance(kind, Number | Date):
        if isinstance(kind, Unlisted):
            return ValuesColumn(name, place, kind.type, ())
        if spacing is not None:
            raise ValueError(f'steps are for columns of numbers, and "{name}" is not one')
        listed = kind.levels if isinstance(kind, Category) else None
        return ValuesColumn(name, place, "boolean" if listed is None else "category", listed)
    column = NumberColumn(name, place, kind, wanted, spacing, seen)
    try:
        column._grid, column._points  # noqa: B018
    except ValueError as problem:
        raise ValueError(f'column "{name}": {problem}') from None
    return column


def _parts(one: Estimate | None) -> tuple[float | None, ...]:
    return (None,) * 4 if one is None else (one.value, one.error, one.below, one.above)


def _both(ends: Ends) -> tuple[Real, Real] | None:
    low, high = ends
    return None if low is None or high is None else (low, high)


def _apart(bounds: tuple[float, float], bits: int) -> tuple[float, float]:
    """Bounds that were found, if need be moved outwards until a grid of so many bits fits between them."""
    low, high = bounds
    least = max(abs(low), abs(high)) * 2.0 ** (bits - _FLOAT_BITS)
    beyond = max(least - (high - low), 0.0) / 2
    return low - beyond, high + beyond


def _counts(on: str, noise: JointNoise, about: Mapping[str, Amount]) -> StepNoise:
    (step,) = noise.steps()
    return StepNoise(on, step.noise.law, step.noise.scale, "rows", len(noise.moves), about)


def _entries(counts: list[int], noise: JointNoise) -> NoisyEntries:
    variance = noise.deviations[0] ** 2
    return NoisyEntries(counts[0], variance, *((counts[1], variance) if len(counts) > 1 else ()))


def _share_of_yes(counts: list[int], noise: JointNoise) -> Estimate:
    """Of the rows with an entry, to first order in the noise, widened by the doubt about their number."""
    no, yes = (max(count, 0) for count in counts[:2])
    number = max(no + yes, 1)
    part, error = yes / number, noise.tail * noise.deviations[0]
    left = number - error * 2**0.5
    off = error * (part**2 + (1 - part) ** 2) ** 0.5
    return Estimate(part, min(off / left, 1.0) if left > 0 else 1.0)
