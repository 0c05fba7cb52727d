"""Bounds, centres, scales and levels of columns, and the length of their rows, found privately before a fit.

What is looked at follows from what is declared; what it costs does not depend on what is found.
Proof: ``preparation.proof.md``; the numbers in the comments are those of its algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.bounds.lengths import BINS, RowLengths, longest
from snugdp.mechanisms.bounds.looks.looks import Looks, can_look_between
from snugdp.mechanisms.bounds.sorts import CellSorts
from snugdp.noise import Noise
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, Step
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.stages import TwoStages
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import Flag, FoundBounds, FoundColumn, FoundLevels, FoundNumber
from snugdp.tables.layouts.curved import CurvedLayout, Curves
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.columns.looks import LOWEST
from snugdp.tables.passes.vectors.distances import NormPass
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, Number, Spline, Undeclared
from snugdp.tables.schema.scaling import day_numbers
from snugdp.tables.schema.schema import Schema

THEOREM = theorem("found-bounds/1")
Output = TypeVar("Output")

# Chosen on made-up tables and on public ones that no benchmark uses: docs/benchmarks.md.
_LOOKS_SHARE, _LENGTH_SHARE = Fraction(24, 100), Fraction(1, 100)  # of M squared
_MOST_LOOKS = Fraction(1, 2)  # of M squared, where rows are known to be few for so many columns
_LEAST_LOOKS, _PLENTY = Fraction(8, 100), 4  # of M squared, from far more rows on than so many times those it takes
_ROUNDED = 2  # of these rows are for the rounding of counts, whatever the share
_SORTS_SHARE = Fraction(2, 100)  # of M squared, where columns have no declared type
_LEVELS_SHARE = Fraction(1, 20)  # of delta, where there are levels to be found
_LONG, _HALF = 0.1, 0.5  # the share of rows that is shortened: of a line, of other models
_DOUBT, _FAR = 60.0, 3.0  # predictions: half a hull further out for so many deviations a row; at most so many
_FAR_OUT = 3.0  # scales: other values than the usual one, and what was seen of a feature of labels
_WIDE, _NARROW = 4.0, 1.0  # hulls: features of a line, and others, are clipped so far beyond what was seen
_OTHER_SIDE = 0.25  # hulls: beyond 0, of a feature that was seen on one side of it alone
_WALL = 1.5  # scales: where what was seen of a target ends at 0, this near its centre, it is the end
_NOTHING_TO_LEARN = (Flag.NOT_FOUND, Flag.CONSTANT)  # of a target
_USUAL = FoundNumber(-1.25, 1.25, 0.0, 1.0)  # in a plan: a number in standard deviations
_MOST_ENTRIES = 1 << 13  # of a row: up to here its grid, and with it every cost, is the same for any number of them
_NEAR_ZERO = 2.0 ** (LOWEST + 1)  # a hull within it is that of zeros: with some noise, twice as wide as their cell
_MOST_COUNT = 10**6  # of a loss for counts
_UNCOUNTED = 1e9  # rows, as long as nobody counted them: curves bend as far as they may
_MOST_LEVELS = 1 << 10  # of all categories together: with more a fit takes minutes


@dataclass(frozen=True)
class TablePreparation:
    """What is looked at before a fit. ``declared``: what is public about the columns.

    ``constant``, ``joint``: as in the layout. ``standardised``: whether rows are read in that layout, and their lengths
    looked at too. ``alone``: nothing follows, so that the looks have all of the budget. ``counts``: the target holds
    counts, from 0 to the largest that is found. ``most_classes``: of a target whose levels are found.
    ``rows``: a public guess of their number: where it is small for so many columns, looks have a larger share, where it
    is large, a smaller one.
    ``longer``: the share of rows that is to be longer than the radius, if not the usual one. ``curves``: which numbers
    have curves, in an additive model.

    Guarantee: ``cost``, whatever is found (``preparation.proof.md``, Theorem 1). Add/remove neighbours, and where no
    lengths are looked at also replaced ones.
    """

    declared: Schema
    budget: Budget
    constant: bool = True
    joint: bool = True
    standardised: bool = True
    alone: bool = False
    counts: bool = False
    most_classes: int = 100
    rows: int | None = None
    longer: float | None = None
    curves: Curves | None = None

    def __post_init__(self) -> None:
        if not self.budget.delta:
            raise ValueError("finding bounds privately takes Gaussian noise: give delta > 0, such as 1e-6")
        if self.standardised and self.budget.neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError('this is proved for neighbours="add_remove" only: leave out neighbours')
        if self.standardised and self.most_levels < 0:
            fewer = "" if self.curves is None else "give curves fewer cells, "
            raise ValueError(
                f"the rows would have more than {_MOST_ENTRIES:,} entries: {fewer}leave out columns, list fewer "
                'values, or leave out missing="indicator"'
            )

    @cached_property
    def most_levels(self) -> int:
        """So many levels are used at most, of all categories together: the most frequent ones. Others are "other"."""
        columns = self.declared.columns
        open_levels = {name: FoundLevels((), (), missing=1.0) for name, kind in columns.items() if _is_open_list(kind)}
        numbers = {
            name: replace(_USUAL, missing=1.0, hull=(-1.0, 1.0))  # with a slope beyond each end
            for name in self._looked_at
            if name not in open_levels
        }
        most = FoundBounds(self.declared, {**known_columns(self.declared), **numbers, **open_levels}, 1.0, 1.0)
        return min(_MOST_LEVELS, _MOST_ENTRIES - len(self.layout(most).features))

    @property
    def _square(self) -> Fraction:
        """M squared: of the largest Gaussian release for which half of delta is enough; if nothing follows, all of it
        but for levels.
        """
        left = self.budget.delta - self._failure if self.alone else self.budget.delta / 2
        return Fraction(gaussian.mu(self.budget.epsilon, left)) ** 2

    @property
    def _shares(self) -> tuple[Fraction, Fraction]:
        """The parts of M squared for the sorts of cells, and for looks."""
        if not self.alone:
            return _SORTS_SHARE, self._looks_share
        first = _SORTS_SHARE / (_SORTS_SHARE + _LOOKS_SHARE) if self._undeclared else Fraction(0)
        return first, 1 - first

    @cached_property
    def _looks_share(self) -> Fraction:
        """The usual one; or, as far as that goes, the one with which the rows that are expected are enough.

        Of rows in plenty less noise tells as much: the fit gets what the looks do not need.
        """
        if self.rows is None:
            return _LOOKS_SHARE
        needed = replace(self, rows=None).enough_rows
        if self.rows < needed:
            return min(_LOOKS_SHARE * Fraction(needed, max(self.rows - _ROUNDED, 1)) ** 2, _MOST_LOOKS)
        return max(_LOOKS_SHARE * min(Fraction(_PLENTY * needed, self.rows), Fraction(1)) ** 2, _LEAST_LOOKS)

    @property
    def _undeclared(self) -> tuple[str, ...]:
        return tuple(name for name, kind in self.declared.columns.items() if isinstance(kind, Undeclared))

    @cached_property
    def sorts(self) -> CellSorts | None:
        """At columns without a declared type."""
        names = self._undeclared
        return CellSorts(names, self._shares[0] * self._square, self.budget.neighbours) if names else None

    @cached_property
    def looks(self) -> Looks:
        """At the columns of which something is to be found, as far as it is known what they hold."""
        return self._looks_at(self.declared)

    @cached_property
    def _looked_at(self) -> tuple[str, ...]:
        """The columns that are open, and beside them features between public bounds: these may be far too wide.

        A number that fills a tenth of its bounds would have a tenth of the length of its neighbours, whose centres and
        scales are found.
        """
        declared, names = self.declared, self.declared.open_columns
        if not self.standardised or not names:
            return names
        return tuple(name for name, kind in declared.columns.items() if name in names or self._has_spread(name, kind))

    def _has_spread(self, name: str, kind: Column) -> bool:
        return (
            name != self.declared.target
            and isinstance(kind, Number | Date)
            and not isinstance(kind, Spline)
            and can_look_between(_public_ends(kind))
        )

    def _looks_at(self, declared: Schema) -> Looks:
        columns, names = declared.columns, self._looked_at
        levels = tuple(name for name in names if _is_open_list(columns[name]))
        numbers = tuple(name for name in names if name not in levels)
        return Looks(
            numbers,
            levels,
            self._shares[1] * self._square,
            self._failure if levels else Fraction(0),
            self.budget.neighbours,
            known={name: ends for name in numbers if (ends := _public_ends(columns[name])) != (None, None)},
            readers={name: day_numbers for name in numbers if isinstance(columns[name], Date)},
            heavy=declared.target if declared.target in numbers else None,
        )

    @property
    def _failure(self) -> Fraction:
        """The delta of levels that are to be found, and of those that a column may turn out to have."""
        return _LEVELS_SHARE * self.budget.delta

    @cached_property
    def lengths(self) -> RowLengths | None:
        """Of standardised rows."""
        if not self.standardised:
            return None
        usual = _LONG if self.joint else _HALF
        return RowLengths(self._square * _LENGTH_SHARE, usual if self.longer is None else self.longer)

    @cached_property
    def cost(self) -> Cost:
        """What all looks cost."""
        steps = self.steps()
        return sum((step.cost for step in steps[1:]), steps[0].cost)

    def steps(self) -> tuple[Step, ...]:
        """The steps of a plan."""
        first = () if self.sorts is None else (self.sorts.step,)
        return (*first, *self._look_steps(), *(() if self.lengths is None else (self.lengths.step,)))

    def _look_steps(self) -> tuple[Step, ...]:
        if not self.declared.open_columns:
            return ()
        grid, *zooms = self.looks.steps()
        if self.sorts is not None and not self.looks.categories:  # there may be levels all the same
            grid = replace(grid, cost=grid.cost + Cost(delta=self._failure, neighbours=self.budget.neighbours))
        return (grid, *zooms)

    def read(self, table: OpenedTable) -> None:
        """Make the first pass over a table now, before anything is charged."""
        if self.declared.open_columns:
            table.read(self.looks.first if self.sorts is None else self.sorts.work)
        elif self.lengths is not None:
            table.read(NormPass(self.layout(self.expected()), None, BINS, fine=True))

    def _settled(self, data: Secret[OpenedTable], noise: Noise) -> Schema:
        """The schema with what columns without a declared type hold; numbers, where that cannot be told."""
        if self.sorts is None:
            return self.declared
        told = {name: kind or Number() for name, kind in self.sorts.draw(data, noise).items()}
        return replace(self.declared, columns={**self.declared.columns, **told})

    def certify(self, data: Secret[OpenedTable], noise: Noise) -> FoundBounds | None:
        """What was found; nothing if the target was not, or if there is nothing to learn from."""
        declared = self._settled(data, noise)  # 0
        looks = self._looks_at(declared) if declared.open_columns else None
        uncounted = 1.0 if self.curves is None else _UNCOUNTED
        seen, rows = ({}, uncounted) if looks is None else looks.draw(data, noise)  # 1
        found = self._aimed(FoundBounds(declared, {**known_columns(declared), **self._kept(seen)}, max(rows, 1.0), 1.0))
        if found is None:  # 2
            return None
        found = replace(found, columns=self._as_features(found), answers=_answers(looks, found))
        if self.lengths is None:
            return found if self.alone or _any_feature(found) else None
        if not self.layout(found).features:
            return None
        entries = self.layout(found).usual_square
        wide = self.layout(replace(found, radius=longest(entries)))
        counts = data.map(lambda table: table.state(NormPass(wide, None, BINS, fine=True)).values())  # 3
        radius, number = self.lengths.draw(counts, entries, noise)  # 4
        return replace(found, radius=radius, rows=number)

    @property
    def finds_classes(self) -> bool:
        """Whether the target is one of levels that are to be found."""
        return self.declared.target is not None and _is_open_list(self.declared.columns[self.declared.target])

    def _kept(self, seen: Mapping[str, FoundColumn]) -> dict[str, FoundColumn]:
        """What was seen, with no more levels than can be used: the classes, if they were to be found, apart.

        A column between public bounds that was not found is as they say.
        """
        seen = {
            name: column for name, column in seen.items() if column.flag is not Flag.NOT_FOUND or self._is_open(name)
        }
        classes = {name: column for name, column in seen.items() if name == self.declared.target}
        others = {name: column for name, column in seen.items() if name not in classes}
        return most_frequent(others, max(self.most_levels, 0)) | most_frequent(classes, self.most_classes)

    def _is_open(self, name: str) -> bool:
        return self.declared.columns[name].is_open

    def _aimed(self, found: FoundBounds) -> FoundBounds | None:
        """With the levels of the target as its classes, or with the largest count; None if it cannot be learned."""
        name = found.declared.target
        target = None if name is None else found.columns.get(name)
        if target is not None and target.flag in _NOTHING_TO_LEARN:
            return None
        if isinstance(target, FoundLevels) and self.finds_classes:
            classes = _ascending(target)
            return _with_target(found, Category(classes.values), classes) if len(classes.values) > 1 else None
        if self.counts and isinstance(target, FoundNumber) and target.flag is not Flag.PUBLIC:
            most = _largest_count(target)
            counts = FoundNumber(0, most, most / 2, most / 6, target.flag, target.missing, (0, most))
            return _with_target(found, Number(0, most), counts)
        return found

    def _as_features(self, found: FoundBounds) -> dict[str, FoundColumn]:
        """The columns as they are read where rows are shortened: no entry is longer than its row then."""
        if not self.standardised:
            return dict(found.columns)
        return {
            name: _as_feature(column, found.declared.columns[name], self.joint)
            if isinstance(column, FoundNumber) and column.hull is not None and name != found.declared.target
            else column
            for name, column in found.columns.items()
        }

    @property
    def rows_needed(self) -> int:
        """With so many rows in one doubling a column is found in most cases."""
        return self.looks.rows_needed if self.declared.open_columns else 0

    def notes(self) -> tuple[Note, ...]:
        """How many rows it takes to find a column, and the target."""
        notes = [Note("rows-to-find", {"rows": self.rows_needed})]
        if self.finds_classes and self.looks.selection is not None:
            rows = self.looks.selection.usual_count
            notes.append(Note("classes-found", {"rows": rows, "most": self.most_classes}))
        if self.counts and self.declared.target in self.declared.open_columns:
            notes.append(Note("count-found"))
        return tuple(notes)

    @property
    def enough_rows(self) -> int:
        """With so many rows nearly all columns are found, those around 0 too."""
        return self.looks.rows_around_zero() if self.declared.open_columns and self.looks.numbers else 0

    def shortfall(self, rows: int | None) -> tuple[Note, ...]:
        """What to expect of so many rows, if they are not enough."""
        if rows is None or rows >= self.enough_rows:
            return ()
        refused = self.looks.heavy is not None and rows < self.looks.rows_around_zero(heavy=True)
        code = "target-not-found" if refused else "columns-not-found"
        return (Note(code, {"rows": rows, "needed": self.enough_rows}),)

    def layout(self, found: FoundBounds) -> StandardisedLayout:
        """How rows are read by what was found."""
        if self.curves is None:
            return StandardisedLayout(found, self.constant, self.joint)
        return CurvedLayout(found, self.constant, self.joint, curves=self.curves)

    def expected(self) -> FoundBounds:
        """What stands in a plan for what will be found: numbers in standard deviations, a level for every category."""
        declared, columns = self.declared, self.declared.columns
        usual = {name: _usual(columns[name], 1 + (name == declared.target)) for name in self._looked_at}
        found = self._aimed(FoundBounds(declared, {**known_columns(declared), **usual}, 1.0, 1.0))
        assert found is not None
        return with_usual_radius(found, self.constant)


@dataclass(frozen=True)
class PreparedRelease(Generic[Output]):
    """Look, then do what is planned on rows read by what was found, as one release.

    ``second``: the plan of what follows. ``then(data, found, context)``: what follows, a release of its own, paid from
    the context that it is given: no part of it may cost more than was planned.

    Guarantee: ``plan().cost``, which fits the budget (``preparation.proof.md``, Theorem 2). Add/remove neighbours.
    """

    preparation: TablePreparation
    second: Plan
    then: Callable[[Secret[OpenedTable], FoundBounds, ReleaseContext], Outcome[Output]]

    def __post_init__(self) -> None:
        if not self.plan().cost.fits(self.preparation.budget):
            raise ValueError("the budget is too small to find bounds and fit as well: give a larger epsilon")

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        second, needed = self.second, self.preparation.notes()
        return Plan(
            second.title,
            THEOREM,
            (*self.preparation.steps(), *second.steps),
            second.proposal,
            replace(second.forecast, notes=(*second.forecast.notes, *needed)),
            self.preparation.budget,
            second.unit,
        )

    def fit(self, data: Secret[OpenedTable], context: ReleaseContext) -> Outcome[tuple[FoundBounds, Output]]:
        """Pay, look, and go on with what was found."""
        return TwoStages(self.plan(), self.preparation, self.then, self.second.cost).release(data, context)


def _answers(looks: Looks | None, found: FoundBounds) -> tuple[float, float] | None:
    """Where predictions may lie: where the target was seen, and further out the fewer rows there are.

    On the longer side of a skewed target further too, by as much as it is longer: its tail does not end there. Not
    beyond public ends, nor beyond 0 where many targets are near it and none was seen on its other side.
    """
    name = found.declared.target
    target = None if name is None else found.columns.get(name)
    if name is None or not isinstance(target, FoundNumber):
        return None
    if target.hull is None or looks is None:
        return target.lower, target.upper
    deviation = float(looks.sigmas(1, looks.numbers)[looks.numbers.index(name)])
    low, high = target.hull
    beyond = min(_DOUBT * deviation / found.rows, _FAR) * (high - low) / 2
    above, below = high - target.centre, target.centre - low
    lower, upper = low - beyond - max(below - above, 0.0), high + beyond + max(above - below, 0.0)
    least, most = _public_ends(found.declared.columns[name])
    if least is None and low == 0 and below < _WALL * target.scale:
        least = 0.0
    if most is None and high == 0 and above < _WALL * target.scale:
        most = 0.0
    return lower if least is None else max(lower, least), upper if most is None else min(upper, most)


def _as_feature(column: FoundNumber, kind: Column, joint: bool) -> FoundNumber:
    """Bounds further out on each side, as far as public ends allow: rows that were not seen still count.

    For a line much further, since a long row is shortened together with its target: to cut off the tail of a column
    alone would bend the line. But not of a column of which only zeros were seen, so that nothing is known of how large
    other values are; nor beyond 0 if it was seen on one side alone, where codes for missing cells are more common than
    numbers. Of a column of one value, which is at 0 if it may be, they are as far out as a usual row can be.
    For labels, whose rows are shortened without them, no value that was seen is further out than that.
    """
    assert column.hull is not None
    (low, high), (least, most), centre, scale = column.hull, _public_ends(kind), column.centre, column.scale
    zeros, width = max(-low, high) <= _NEAR_ZERO, high - low
    further = (_WIDE if joint and not zeros else _NARROW) * width
    lower, upper = low - further, high + further
    if low >= 0 and not zeros:
        lower = max(lower, -_OTHER_SIDE * width)
    elif high <= 0 and not zeros:
        upper = min(upper, _OTHER_SIDE * width)
    if column.flag is Flag.CONSTANT:
        centre = 0.0 if low <= 0 <= high else centre
        lower, upper = centre - _FAR_OUT * scale, centre + _FAR_OUT * scale
    elif not joint:
        scale = max(scale, (high - centre) / _FAR_OUT, (centre - low) / _FAR_OUT)
    return replace(
        column,
        lower=min(centre, lower if least is None else max(lower, least)),
        upper=max(centre, upper if most is None else min(upper, most)),
        centre=centre,
        scale=scale,
    )


def _any_feature(found: FoundBounds) -> bool:
    """Whether a column besides the target is left."""
    others = [name for name in found.declared.columns if name != found.declared.target]
    return any(name not in found.columns or found[name].flag is not Flag.NOT_FOUND for name in others)


def most_frequent(seen: Mapping[str, FoundColumn], most: int) -> dict[str, FoundColumn]:
    """So many levels at most, of all columns together: those with the largest shares, the first ones among equals.

    >>> most_frequent({"city": FoundLevels(("Bonn", "Oslo", "Rome"), (0.2, 0.3, 0.4))}, 2)["city"].values
    ('Oslo', 'Rome')
    """
    levels = {name: column for name, column in seen.items() if isinstance(column, FoundLevels)}
    places = [(name, place) for name, column in levels.items() for place in range(len(column.values))]
    kept = set(sorted(places, key=lambda at: -levels[at[0]].shares[at[1]])[:most])
    return {
        **seen,
        **{name: column.at([(name, k) in kept for k in range(len(column.values))]) for name, column in levels.items()},
    }


def with_usual_radius(found: FoundBounds, constant: bool = True) -> FoundBounds:
    """The same with the length that rows of standardised entries usually have."""
    return replace(found, radius=max(1.0, len(StandardisedLayout(found, constant).features) ** 0.5))


def known_columns(declared: Schema) -> dict[str, FoundColumn]:
    """What is public about columns: a number by its bounds, as if spread evenly; a category by its values."""
    columns = declared.columns.items()
    return {name: _known(kind) for name, kind in columns if not (isinstance(kind, Boolean) or kind.is_open)}


def _public_ends(kind: Column) -> tuple[float | None, float | None]:
    """The declared ends of a number."""
    if not isinstance(kind, Number | Date):
        return None, None
    lower, upper = kind.end("lower"), kind.end("upper")
    return None if lower is None else float(lower), None if upper is None else float(upper)


def _known(kind: Column) -> FoundColumn:
    if isinstance(kind, Category):
        values = kind.levels
        return FoundLevels(values, (1 / len(values),) * len(values), Flag.PUBLIC)
    assert isinstance(kind, Number | Date)
    middle, half = float(kind.middle), float(kind.half)
    return FoundNumber(middle - half, middle + half, middle, half / 3, Flag.PUBLIC)


def _is_open_list(kind: Column) -> bool:
    return isinstance(kind, Category) and kind.is_open


def _usual(kind: Column, levels: int) -> FoundColumn:
    listed = tuple("…" * (place + 1) for place in range(levels))
    return FoundLevels(listed, (0.5,) * levels) if isinstance(kind, Category) else _USUAL


def _with_target(found: FoundBounds, kind: Column, column: FoundColumn) -> FoundBounds:
    """The same with what was found of the target as if it had been declared."""
    name = str(found.declared.target)
    declared = replace(found.declared, columns={**found.declared.columns, name: kind})
    return replace(found, declared=declared, columns={**found.columns, name: column})


def _ascending(found: FoundLevels) -> FoundLevels:
    """The levels in the order that classes have: as text, where not all of them are numbers."""
    kind = found.kind()
    pairs = sorted(zip(() if kind is None else kind.levels, found.shares, strict=True))
    return replace(found, values=tuple(value for value, _ in pairs), shares=tuple(share for _, share in pairs))


def _largest_count(found: FoundNumber) -> int:
    """The upper end of where counts were seen, as a whole number."""
    upper = found.upper if found.hull is None else found.hull[1]
    return max(1, min(math.ceil(upper), _MOST_COUNT))
