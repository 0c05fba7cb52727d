"""Statistics by group: of listed keys, or of keys that nobody listed. Proof: ``mechanisms/keys/grouped.proof.md``."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, Unpack

import numpy as np

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome
from snugdp.inference.means import SampledMean
from snugdp.ledger.question import Question
from snugdp.mechanisms.keys.grouped import THEOREM, Asked, AskedRank, Grouped, GroupedRelease
from snugdp.mechanisms.keys.moments import Floats, GroupMoments, Power
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Amount, Forecast, Note
from snugdp.propose.plan import Plan, share_of
from snugdp.queries.base import PersonRelease, Query, ReleaseKeywords
from snugdp.queries.bounds.given import GivenBounds, both_ends, open_ends
from snugdp.queries.docstrings import takes
from snugdp.queries.statistics.moments import check_inference
from snugdp.queries.table import ABOUT_POPULATION, Library, StatisticsTable, library_of
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import Names, numeric, type_name
from snugdp.tables.engines import measure
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Ends, Grid
from snugdp.tables.passes.counts.groups import GroupPass, ValueColumn
from snugdp.tables.passes.counts.keys import CellColumn, Encoded, KeyColumn, key_column
from snugdp.tables.passes.together import JointState, Together
from snugdp.tables.schema.kinds import Boolean, Category, Number
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import Source, open_source
from snugdp.tables.sources.base import TableError
from snugdp.tables.wide_grid import WideGrid

STATISTICS = ("count", "sum", "mean", "variance", "standard_deviation", "proportion", "median", "quantile_0.9")
_RANKED = re.compile(r"quantile_(0?\.\d+)")
MAX_LISTED = 10**6  # groups of listed keys
_SIZES = (100, 1000, 10_000)  # rows of a key, for which the plan says what to expect


@dataclass(frozen=True)
class AskedColumn:
    """A value column and the statistics that are asked of it. ``inference``: about the population as well."""

    column: ValueColumn
    statistics: tuple[str, ...]
    inference: bool = False

    @property
    def power(self) -> Power:
        """Which sums they need."""
        if {"variance", "standard_deviation", *(("mean",) if self.inference else ())} & set(self.statistics):
            return Power.VARIANCE
        if {"mean", "proportion"} & set(self.statistics):
            return Power.MEAN
        if set(self.statistics) == {"count"}:
            return Power.COUNT
        return Power.TOTAL if self.statistics == ("sum",) else Power.MEAN

    def shown(self, sums: Floats, noise: GroupMoments) -> dict[str, tuple[Floats, Floats]]:
        """Every statistic of every key, and what its noise stays below in 19 of 20 cases."""
        middle, half = float(self.column.middle), float(self.column.half)
        count, total, square = sums
        rows = np.maximum(count, 1.0)
        doubt = noise.error(np.array([1.0, 0.0, 0.0]))
        left = np.maximum(count - doubt, 0.0)
        mean = np.clip(total / rows, -1.0, 1.0)
        spread = np.clip(square / rows - mean**2, 0.0, 1.0)
        ones, nothing = np.ones_like(mean), np.zeros_like(mean)
        off = _over(noise.error(np.stack([-mean, ones, nothing], axis=1)), left, 2.0)
        wide = _over(noise.error(np.stack([mean**2 - spread, -2 * mean, ones], axis=1)), left, 1.0)
        root = np.sqrt(spread)
        found = {
            "count": (count, ones * doubt),
            "sum": (middle * count + half * total, ones * noise.error(np.array([middle, half, 0.0]))),
            "mean": (middle + half * mean, half * off),
            "proportion": (middle + half * mean, half * off),
            "variance": (half**2 * spread, half**2 * wide),
            "standard_deviation": (half * root, half * np.minimum(np.sqrt(spread + wide) - root, 1.0)),
        }
        return {name: found[name] for name in self.statistics}

    @property
    def inferred(self) -> tuple[str, ...]:
        """The statistics about whose population something is said."""
        return tuple(name for name in self.statistics if self.inference and name in ("mean", "proportion"))

    def about_population(self, sums: Floats, noise: GroupMoments) -> list[Floats]:
        """Standard errors and both ends of confidence intervals, of one statistic after the other."""
        middle, half = float(self.column.middle), float(self.column.half)
        count, total, square = sums
        way = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]) @ noise.spread  # to numbers between 0 and 1
        (rows, both), (_, own) = way @ way.T
        mean = np.clip(total / np.maximum(count, 1.0), -1.0, 1.0)
        slopes = np.stack([mean**2, -2 * mean, np.ones_like(mean)], axis=1)
        doubt = noise.error(slopes) / noise.tail
        found = list[Floats]()
        for name in self.inferred:
            spread = np.clip(square / np.maximum(count, 1.0) - mean**2, 0.0, 1.0) + doubt / np.maximum(count, 1.0)
            variance = None if name == "proportion" else np.minimum(spread, 1.0) / 4
            told = SampledMean(count, (count + total) / 2, variance, (float(rows), float(own), float(both)))
            ends = (middle + half * (2 * end - 1) for end in told.interval())
            found += [2 * half * told.standard_error, *ends]
        return found

    def forecast(self, noise: GroupMoments, rows: int) -> dict[str, float]:
        """The errors for a key of so many rows that fill their bounds evenly."""
        sums = np.array([[rows], [0.0], [rows / 3]])
        return {name: float(error[0]) for name, (_, error) in self.shown(sums, noise).items()}


def rank_of(name: str) -> Fraction | None:
    """The quantile that a statistic is, such as "median" or "quantile_0.9"; None for others."""
    if name == "median":
        return Fraction(1, 2)
    found = _RANKED.fullmatch(name) if isinstance(name, str) else None
    return Fraction(found.group(1)) if found and Fraction(found.group(1)) > 0 else None


def _over(errors: Floats, rows: Floats, most: float) -> Floats:
    """Errors of a mean over so many rows, as far as they are known; at most so large."""
    with np.errstate(all="ignore"):
        found: Floats = np.where(rows > 0, np.minimum(errors / rows, most), most)
    return found


class GroupByKeywords(ReleaseKeywords, total=False):
    """The keyword arguments of ``group_by``."""

    statistics: Mapping[str, str | Sequence[str]] | None
    keys: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None
    bounds: Mapping[str, GivenBounds] | str | None
    schema: Schema | None
    delta: Real
    max_keys: int
    key_share: Real
    other: bool
    missing: bool
    inference: bool


@dataclass(frozen=True, kw_only=True)
class GroupBy(Query[StatisticsTable]):
    """Counts and statistics of every group of a table, with a plan before the release.

    Rows without a key are dropped, and cells that are no numbers are ignored in the statistics of their column.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/keys/grouped.proof.md``), for all groups and
    statistics together, and for which keys are shown.

    Parameters
    ----------
    by : str or sequence of str
        The key column, or several. They hold text, whole numbers or booleans, or lists of them (see ``max_keys``).
    statistics : mapping of str to str or sequence of str, optional
        What is asked of which columns: "count" (of valid cells), "sum", "mean", "variance", "standard_deviation",
        "proportion" (of booleans), "median", "quantile_0.9" and the like. The number of rows of a group is always
        released.
    keys : sequence or mapping of str to sequence, optional
        All keys, known without the data; of several columns by name. Every one of them is in the answer, also those
        that nobody has. Without it, or a ``schema`` that lists them, only keys are shown that enough rows have.
    bounds : mapping of str to (Real, Real), optional
        Public bounds of the columns; either end may be None. Those that neither this nor the ``schema`` gives are found
        privately, for a part of the budget, where sums are asked for.
    schema : Schema, optional
        Bounds, listed values and booleans of columns that are not described otherwise.
    epsilon, delta : Real
        The privacy budget. Keys that are not listed need delta > 0.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    max_keys : int, default=1
        For how many keys a row counts, where the cells of the key column are lists: the first in sorted order.
    key_share : Real, default=0.5
        The part of epsilon for keys that are not listed, and their counts, where there are statistics as well.
    other : bool, default=False
        Whether rows with keys that are not among the listed ones are a group of their own.
    missing : bool, default=False
        Whether rows without a key are a group of their own.
    inference : bool, default=False
        Whether means and proportions have standard errors and confidence intervals for the population beside them.
        For means the variance of every group is released as well, which adds to their noise.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"city": ["Oslo", "Rome"] * 500, "age": [40, 50] * 500})
    >>> query = GroupBy(by="city", statistics={"age": "mean"}, bounds={"age": (0, 120)}, epsilon=2, delta=1e-6)
    >>> query.release(table).value["city"]
    ('Oslo', 'Rome')
    """

    by: str | Sequence[str]
    statistics: Mapping[str, str | Sequence[str]] | None = None
    keys: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None = None
    bounds: Mapping[str, GivenBounds] | str | None = None
    schema: Schema | None = None
    epsilon: Real
    delta: Real = 0
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    max_keys: int = 1
    key_share: Real = 0.5
    other: bool = False
    missing: bool = False
    inference: bool = False

    finds_caps = True

    def __post_init__(self) -> None:
        names = self._by
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise ValueError('by must name a key column, such as by="city", or several, none twice')
        if self.other and not self._is_listed:
            raise ValueError("other=True is for listed keys: give keys=[...], or a schema that lists them")
        if self.max_keys != 1 and len(names) > 1:
            raise ValueError("max_keys is for one key column whose cells are lists")
        check_inference(self.inference, self._persons)
        if self.inference and self.max_keys > 1:
            raise ValueError("intervals for the population are for groups of different rows: leave out max_keys")
        self._mechanism, self._groups, self._shown_names  # noqa: B018  what is wrong is said before any data are seen
        if self._open or self._persons is not None:
            self.plan()

    @cached_property
    def _by(self) -> tuple[str, ...]:
        return (self.by,) if isinstance(self.by, str) else tuple(self.by)

    @property
    def _read_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._by, *self._asked)))

    @cached_property
    def _lists(self) -> Mapping[str, tuple[Hashable, ...]]:
        """The listed keys of those key columns that have them."""
        columns = {} if self.schema is None else self.schema.columns
        found: dict[str, tuple[Hashable, ...]] = {}
        for name in self._by:
            kind = columns.get(name)
            if isinstance(kind, Category | Boolean) and not kind.is_open:
                found[name] = kind.levels if isinstance(kind, Category) else (False, True)
        given: Any = self.keys
        if given is not None and not isinstance(given, Mapping):
            if len(self._by) > 1:
                raise ValueError("the keys of several columns are given by name: keys={'city': [...], 'year': [...]}")
            given = {self._by[0]: given}
        for name, listed in (given or {}).items():
            if name not in self._by:
                raise ValueError(f'keys are given for "{name}", which is not among the key columns')
            found[name] = tuple(Names(listed, f'the keys of "{name}"').names)
        if any(not listed for listed in found.values()):
            raise ValueError("keys is empty: list all keys, or leave it out")
        return found

    @property
    def _is_listed(self) -> bool:
        return set(self._lists) == set(self._by)

    @cached_property
    def _groups(self) -> tuple[tuple[Encoded, ...], ...]:
        """The listed groups, by the places of their keys; none where keys are not listed."""
        if not self._is_listed:
            return ()
        sizes = [len(self._lists[name]) + self.other for name in self._by]
        if math.prod(sizes) > MAX_LISTED:
            raise ValueError(f"there are more than {MAX_LISTED:,} listed groups: list fewer keys")
        missing: tuple[Encoded, ...] = (None,) if self.missing and not self.other else ()
        return tuple(itertools.product(*((*range(size), *missing) for size in sizes)))

    @cached_property
    def _asked(self) -> Mapping[str, tuple[str, ...]]:
        """The statistics by column, checked."""
        asked = {} if self.statistics is None else self.statistics
        if not isinstance(asked, Mapping):
            raise TypeError('statistics must map columns to statistics, such as {"income": ["mean", "sum"]}')
        return {name: self._names_of(name, one) for name, one in asked.items()}

    def _names_of(self, name: str, asked: str | Sequence[str]) -> tuple[str, ...]:
        names = (asked,) if isinstance(asked, str) else tuple(asked)
        unknown = [one for one in names if one not in STATISTICS and rank_of(one) is None]
        if unknown or not names or len(set(names)) != len(names):
            raise ValueError(
                f'the statistics of "{name}" must be some of {", ".join(STATISTICS)}, none twice'
                + (f"; not {unknown[0]!r}" if unknown else "")
            )
        return names

    @cached_property
    def _columns(self) -> tuple[AskedColumn, ...]:
        """The columns of which sums are asked."""
        sums = {name: tuple(one for one in names if rank_of(one) is None) for name, names in self._asked.items()}
        return tuple(self._column_of(name, names) for name, names in sums.items() if names)

    @cached_property
    def _ranks(self) -> Mapping[str, AskedRank]:
        """The quantiles that are asked, by their names in the answer."""
        found = {}
        for name, names in self._asked.items():
            for one in names:
                if (q := rank_of(one)) is not None:
                    kind = self._kind(name, names)
                    if isinstance(kind, Boolean):
                        raise ValueError(f'"{name}" holds booleans: ask for its proportion')
                    found[f"{name}_{one}"] = AskedRank(name, q, _points(kind, self._given(name)))
        return found

    def _column_of(self, name: str, names: tuple[str, ...]) -> AskedColumn:
        kind = self._kind(name, names)
        if isinstance(kind, Boolean):
            column = ValueColumn(name, Fraction(0), Fraction(1), boolean=True)
        elif kind.is_open:  # of which nothing but a count is asked
            column = ValueColumn(name, Fraction(-1), Fraction(1))
        else:
            lower, upper = kind.bounds
            column = ValueColumn(name, rational(lower, "the lower bound"), rational(upper, "the upper bound"))
        found = AskedColumn(column, names, bool(self.inference))
        if found.power is Power.TOTAL:
            most = max(abs(column.lower), abs(column.upper))
            column = ValueColumn(name, -most, most, boolean=column.boolean)
        squares = found.power is Power.VARIANCE
        return replace(found, column=ValueColumn(name, column.lower, column.upper, column.boolean, squares))

    def _given(self, name: str) -> GivenBounds:
        """What was said of the bounds of a column."""
        return None if self.bounds is None or isinstance(self.bounds, str) else self.bounds.get(name)

    @property
    def _open(self) -> Mapping[str, Ends]:
        """Those of which sums are asked, and whose bounds are not given."""
        found = {}
        for name, names in self._asked.items():
            kind = self._kind(name, names)
            summed = any(rank_of(one) is None and one != "count" for one in names)
            if isinstance(kind, Number) and kind.is_open and summed:
                found[name] = kind.lower, kind.upper
        return found

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        return replace(
            self,
            bounds={**({} if self.bounds is None or isinstance(self.bounds, str) else self.bounds), **found},
            epsilon=epsilon,
        )

    def _opened(self, data: object) -> tuple[Source, object]:
        from snugdp.queries.search import WIDEST  # for those who leave bounds to be found

        source = open_source(data)
        self._with_found(dict.fromkeys(self._open, WIDEST), None, self._budget.epsilon).check(source)
        return source, data

    def _kind(self, name: str, names: Sequence[str]) -> Number | Boolean:
        """The public bounds of a column, of which some may be open, or that it holds booleans."""
        declared = None if self.schema is None else self.schema.columns.get(name)
        given = self._given(name)
        if given not in (None, "private"):
            try:
                open_ends(given)
                return Number(*both_ends(given))
            except (TypeError, ValueError) as problem:
                raise ValueError(f'the bounds of "{name}" must be a pair (lower, upper): {problem}') from None
        if isinstance(declared, Number | Boolean):
            return declared
        if declared is not None:
            raise ValueError(f'the schema says that "{name}" is a category: group by it, or ask for other columns')
        if tuple(names) == ("proportion",):
            return Boolean()
        if tuple(names) == ("count",):
            return Number(-1, 1)
        return Number()

    @cached_property
    def _mechanism(self) -> GroupedRelease:
        return self.mechanism_for(self.max_keys)

    def mechanism_for(self, keys: int) -> GroupedRelease:
        """What is drawn, where whoever is protected has at most so many keys, and one row for each of them."""
        asked = Asked(tuple(one.power for one in self._columns), tuple(self._ranks.values()))
        share = share_of(self.key_share, "key_share")
        return GroupedRelease.of(self._budget, asked, listed=self._is_listed, keys=keys, key_share=share)

    @cached_property
    def _shown_names(self) -> tuple[str, ...]:
        named = [f"{one.column.name}_{name}" for one in self._columns for name in one.statistics]
        noisy = [each for name in ["count", *named] for each in (name, f"{name}_error")]
        about = [f"{one.column.name}_{name}_{end}" for one in self._columns for name in one.inferred
                 for end in ABOUT_POPULATION]  # fmt: skip
        names = [*self._by, *noisy, *self._ranks, *about]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f'two columns of the answer would be called "{doubled[0]}": rename a column')
        return tuple(names)

    @property
    def _plan(self) -> Plan:
        return self.plan_of(self._mechanism)

    def plan_of(self, made: GroupedRelease) -> Plan:
        """The plan of what is drawn."""
        names, ranked = tuple(one.column.name for one in self._columns), tuple(self._ranks)
        proposal = (
            {}
            if made.selection is None or not (names or ranked)
            else {"key_share": float(rational(self.key_share, "share"))}
        )
        inferred = any(one.inferred for one in self._columns)
        about = (Note("population-groups"),) if inferred else ()
        forecast = Forecast(notes=(*self.expected(made), self.gaps, *about))
        return Plan("Group by", THEOREM, made.steps(names, ranked), proposal, forecast, self._budget)

    @property
    def gaps(self) -> Note:
        """What is done with missing keys."""
        return Note("missing-keys-kept" if self.missing else "missing-keys")

    def expected(self, made: GroupedRelease) -> tuple[Note, ...]:
        """What a plan says of the errors of a release."""
        ranked, notes = tuple(self._ranks), list[Note]()
        if made.selection is not None:
            notes.append(Note("key-shown", {"rows": made.selection.usual_count, "least": made.selection.threshold}))
        else:
            notes.append(Note("groups-listed", {"groups": len(self._groups)}))
        notes.append(Note("group-count", {"error": made.count_error}))
        for size in _SIZES:
            for one, noise in zip(self._columns, made.columns, strict=True):
                for name, error in one.forecast(noise, size).items():
                    if name not in ("count", "sum") or size == _SIZES[0]:
                        params: dict[str, Amount] = {
                            "statistic": f"{one.column.name}_{name}",
                            "rows": size,
                            "error": error,
                        }
                        notes.append(Note("group-statistic", params))
        for name, one_rank in zip(ranked, made.ranks, strict=True):
            usual = math.ceil(one_rank.ranks * math.log(20)) + 1
            notes.append(Note("group-rank", {"statistic": name, "ranks": usual}))
        return tuple(notes)

    @cached_property
    def _totals(self) -> PersonRelease[StatisticsTable] | None:
        """Where keys are listed and bounds known, all rows of a person count; where keys are not listed, each person
        counts once for each of a few keys. Otherwise some rows of each person are kept.
        """
        persons = self._persons
        if persons is None or (persons.most == 1 and not persons.is_private):
            return None
        ready = self._is_listed and self.max_keys == 1 and not self._ranks and not self._open
        if persons.is_private and not ready:
            raise ValueError(
                'max_rows="private" needs listed keys (one for a row), public bounds, and no quantiles: give these, or '
                "max_rows as a number"
            )
        if not ready and (self._is_listed or self.max_keys > 1 or self._open):
            return None
        from snugdp.queries.person_groups import PersonGroups, PersonKeys

        return PersonGroups(self, persons) if ready else PersonKeys(self, persons)

    def _column(self, data: object) -> str | None:
        return None

    def _question(self, column: str | None) -> Question:
        plain = replace(self, by=self._by, statistics=self._asked, keys=self._lists or None)
        return Query._question(plain, ", ".join(self._by))

    def _release(self, data: object, context: ReleaseContext) -> Outcome[StatisticsTable]:
        return self.release_groups(open_source(data), library_of(data), self._mechanism, self.plan(), context)

    def release_groups(
        self, source: Source, library: Library, made: GroupedRelease, plan: Plan, context: ReleaseContext
    ) -> Outcome[StatisticsTable]:
        """Read a table that is open, pay, draw."""
        works = self._passes(source)
        shown = ShownGroups(self, made, works, library)
        return release(plan, shown, measure(source, Together(works)), context)

    def check(self, source: Source) -> None:
        """Raise if the table has not the columns and declared types that are asked for. No row is looked at."""
        source.check(Together(self._passes(source)))

    @property
    def columns(self) -> tuple[AskedColumn, ...]:
        """The value columns, and what is asked of them."""
        return self._columns

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns of keys and values."""
        return self._read_columns

    @property
    def groups(self) -> tuple[tuple[Encoded, ...], ...]:
        """The listed groups."""
        return self._groups

    def sums_pass(self, source: Source) -> GroupPass:
        """How keys and values are read."""
        return self._passes(source)[0]

    def _passes(self, source: Source) -> tuple[GroupPass, ...]:
        """How the table is read, from its names and declared types alone: sums, and the cells of every quantile."""
        wanted = [*self._by, *self._asked]
        absent = [name for name in wanted if name not in source.types]
        if absent:
            held = ", ".join(f'"{name}"' for name in list(source.types)[:20])
            raise TableError(f'{source.name} has no column "{absent[0]}"; it has {held}')
        for name in self._asked:
            if not numeric(source.type_for_reading(name)):
                raise TypeError(
                    f'column "{name}" must hold numbers, not {type_name(source.types[name])}; convert it first'
                )
        several = self.max_keys > 1
        keys = tuple(
            key_column(source, name, self._lists.get(name), other=self.other, several=several) for name in self._by
        )
        sums = GroupPass(keys, tuple(one.column for one in self._columns), self.max_keys, self.missing)
        cells = (CellColumn(one.column, one.grid) for one in self._ranks.values())
        return sums, *(GroupPass((*keys, cell), (), self.max_keys, self.missing) for cell in cells)

    def table(
        self, made: GroupedRelease, found: Grouped, keys: tuple[KeyColumn | CellColumn, ...], library: Library
    ) -> StatisticsTable:
        """What was released, in the user's units."""
        number = len(found.keys)
        encoded = list(zip(*found.keys, strict=True)) if number else [()] * len(keys)
        decoded = [list(map(key.decoded, column)) for key, column in zip(keys, encoded, strict=True)]
        order = list(range(number))  # as they are listed
        if made.selection is not None:
            order.sort(key=list(zip(*(map(_rank, column) for column in decoded), strict=True)).__getitem__)
        columns: list[Any] = [*decoded, found.counts, np.full(number, made.count_error)]
        for one, noise, sums in zip(self._columns, made.columns, found.sums, strict=True):
            columns += [part for pair in one.shown(sums, noise).values() for part in pair]
        columns += found.ranks
        for one, noise, sums in zip(self._columns, made.columns, found.sums, strict=True):
            columns += one.about_population(sums, noise)
        plain = (column.tolist() if isinstance(column, np.ndarray) else column for column in columns)
        ordered = (tuple(map(column.__getitem__, order)) for column in plain)
        return StatisticsTable(self._shown_names, tuple(ordered), library)


@dataclass(frozen=True)
class ShownGroups:
    """The mechanism of a query on a table that is read in this way."""

    query: GroupBy
    made: GroupedRelease
    works: tuple[GroupPass, ...]
    library: Library

    def draw(self, data: Secret[JointState], noise: Noise) -> StatisticsTable:
        """Draw, then show: keys in order, and statistics in the user's units."""
        found = self.made.groups(data, self.works, self.query.groups, noise)
        return self.query.table(self.made, found, self.works[0].keys, self.library)


def _points(kind: Number, given: GivenBounds) -> Grid | WideGrid:
    """Where the quantiles of a column lie: between its public bounds, or anywhere."""
    if kind.is_open:
        return WideGrid.over((kind.lower, kind.upper))
    return WideGrid() if isinstance(given, FoundNumber) else Grid.between(kind.bounds)


def _rank(key: Any) -> tuple[int, Any]:
    """Numbers first, then text; what is missing comes last."""
    return (2, "") if key is None else (1, key) if isinstance(key, str) else (0, key)


@takes(GroupBy)
def group_by(data: object, by: str | Sequence[str], **options: Unpack[GroupByKeywords]) -> Outcome[StatisticsTable]:
    """Private counts and statistics of every group of a table: ``GroupBy(...).release(data)``.

    Parameters
    ----------
    data : table
        A frame, the path of a file, a DuckDB or a Spark table.
    by : str or sequence of str
        The key column, or several.

    Returns
    -------
    Outcome
        Its value is a ``StatisticsTable``; ``.value.frame`` is a frame of the library that the data came in.

    Examples
    --------
    >>> import polars as pl
    >>> import snugdp
    >>> table = pl.DataFrame({"city": ["Oslo", "Rome"] * 500, "age": [40, 50] * 500})
    >>> answer = snugdp.group_by(table, "city", epsilon=2, delta=1e-6).value
    >>> answer["city"], answer.names
    (('Oslo', 'Rome'), ('city', 'count', 'count_error'))
    """
    return GroupBy._answer(data, by=by, **options)
