"""Looks at all columns of a table at once, from coarse to fine: where they lie, how they spread, what levels they have.

Every look is a noisy histogram of all its columns; where a look goes is a function of what was released before it, and
what it may cost is fixed in advance. Proof: ``looks.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.mechanisms.bounds.looks import grid
from snugdp.mechanisms.bounds.looks.levels import Shown, found_levels, level_pass, level_selection, rows_of_levels
from snugdp.mechanisms.bounds.looks.zooms import Flags, Floats, Ranges, Reading
from snugdp.mechanisms.keys.selection import KeyCounts, KeySelection
from snugdp.mechanisms.keys.threshold import MAX_KEYS
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import Flag, FoundColumn, FoundNumber
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.columns.looks import Doublings, EqualBins, LookedAt, LookPass, Reader, doubling
from snugdp.tables.passes.together import JointState, Together
from snugdp.tables.schema.scaling import floats

Ends: TypeAlias = tuple[float | None, float | None]

THEOREM = theorem("looks/1")
GRID = "grid"
WEIGHTS = (5, 5, 1, 1)  # of the first look, and of the zooms
MAX_LOOKS = 8
_MAX_END = 1e290
_APART = 2.0**-20  # two ends, in parts of the larger one: floats between them are fine enough for all zooms
_FREE: Ends = (None, None)
_THIN_TAIL = 1.8  # deviations: of columns to fit on, a tail that is cut off costs more than one of noise
_HEAVY = 3  # how many columns the one that matters more counts for


class Glance(NamedTuple):
    """What looks released: every column, and about how many rows there are."""

    columns: Mapping[str, FoundColumn]
    rows: float


@dataclass(frozen=True)
class Looks:
    """Bounds, centre and scale of numbers, and levels of categories, all found in private.

    ``mu_squared``: of all looks together; ``weights``: how it is divided among the first look and the zooms.
    ``failure``: the delta of all levels together, above 0 where there are categories. ``known``: the ends of columns of
    which some are public, None for others; numbers beyond an end count as that end. ``readers``: of columns
    that are not read as numbers, such as dates. ``heavy``: a number that matters more than others, such as a target:
    its counts get noise of a smaller deviation, by the root of 3.

    Guarantee: cost (mu, 0, failure), mu the root of ``mu_squared``, in the relation, whatever is found
    (``looks.proof.md``, Theorem 2).
    """

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    mu_squared: Fraction
    failure: Fraction = Fraction(0)
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    known: Mapping[str, Ends] = field(default_factory=dict)
    readers: Mapping[str, Reader] = field(default_factory=dict)
    weights: tuple[int, ...] = WEIGHTS
    heavy: str | None = None

    def __post_init__(self) -> None:
        names = (*self.numbers, *self.categories)
        if not names or len(set(names)) != len(names):
            raise ValueError("looks need columns, each of them once")
        if self.mu_squared <= 0 or (self.failure > 0) != bool(self.categories):
            raise ValueError("looks need a mu above 0, and a failure above 0 if there are categories, and only then")
        if not all(map(can_look_between, self.known.values())):
            raise ValueError("public ends must be between -1e290 and 1e290, and two of them well apart")
        if len(self.categories) > MAX_KEYS:
            raise ValueError(f"at most {MAX_KEYS} categories can be looked at: list the values of some of them")
        if not 1 <= len(self.weights) <= MAX_LOOKS or min(self.weights) < 1:
            raise ValueError(f"looks need 1 to {MAX_LOOKS} weights, whole numbers from 1 on")

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """The squares of mu, one for each look; categories alone need no zooms."""
        weights = self.weights if self.numbers else (1,)
        return tuple(self.mu_squared * Fraction(weight, sum(weights)) for weight in weights)

    @property
    def cost(self) -> Cost:
        """What all looks cost together."""
        return Cost(mu_squared=self.mu_squared, delta=self.failure, neighbours=self.neighbours)

    def law(self, look: int, columns: int, heavy: bool = False) -> Gaussian:
        """The noise on every count of a look at so many columns, each counted as often as it weighs.

        ``heavy``: that of the column that matters more.
        """
        moved = columns if self.neighbours is Neighbours.ADD_REMOVE else 2 * columns
        return Gaussian(root_above(moved / (self.shares[look] * (_HEAVY if heavy else 1))))

    def _weight(self, names: Sequence[str]) -> int:
        """How many columns these count for."""
        return len(names) + (_HEAVY - 1 if self.heavy in names else 0)

    def sigmas(self, look: int, names: Sequence[str]) -> Floats:
        """The deviation of the noise on the counts of each of the columns."""
        columns = self._counted(look, names)
        one, other = (float(self.law(look, columns, heavy).sigma) for heavy in (False, True))
        return np.array([other if name == self.heavy else one for name in names])

    def _noisy(self, counts: Secret[list[int]], noise: Noise, look: int, names: Sequence[str]) -> Floats:
        """Counts with their noise: those of all numbers, one after the other, then others with the usual noise."""
        columns, size = self._counted(look, names), EqualBins.size if look else Doublings.size
        usual = self.law(look, columns)
        if self.heavy not in names:
            return np.array(noise.add_integers(counts, usual), dtype=np.float64)
        place = names.index(self.heavy) * size
        heavy = noise.add_integers(counts.map(itemgetter(slice(place, place + size))), self.law(look, columns, True))
        others = noise.add_integers(counts.map(lambda all_: [*all_[:place], *all_[place + size :]]), usual)
        return np.array([*others[:place], *heavy, *others[place:]], dtype=np.float64)

    def _counted(self, look: int, names: Sequence[str]) -> int:
        """How many columns are looked at, each counted as often as it weighs; the first look is at categories too."""
        return self._weight(names) + (0 if look else len(self.categories))

    @cached_property
    def selection(self) -> KeySelection | None:
        """The noise and the threshold of levels; the noise is that of all counts of the first look."""
        if not self.categories:
            return None
        among = len(self.categories), self._counted(0, self.numbers)
        return level_selection(self.shares[0], self.failure, self.neighbours, *among)

    @property
    def rows_needed(self) -> int:
        """A column of which so many rows lie within one doubling is found in five of six cases."""
        return math.ceil(self._clear_rows(heavy=False))

    def rows_around_zero(self, heavy: bool = False) -> int:
        """With so many rows a normal column around 0 is found in five of six cases, or the one that matters more."""
        return math.ceil(self._clear_rows(heavy) / grid.AROUND_ZERO)

    def _clear_rows(self, heavy: bool) -> float:
        sigma = float(self.law(0, self._counted(0, self.numbers), heavy).sigma)
        return float(grid.doubling_sets().least(sigma, max(len(self.numbers), 1))[0, 0]) + sigma

    def steps(self) -> tuple[Step, ...]:
        """Of a plan: one for each look."""
        return tuple(self._step(look, share) for look, share in enumerate(self.shares))

    def _step(self, look: int, share: Fraction) -> Step:
        failure = Fraction(0) if look else self.failure
        cost = Cost(mu_squared=share, delta=failure, neighbours=self.neighbours)
        return Step(step_of(look), StepKind.STATISTIC, self._noise(look), cost)

    def _noise(self, look: int) -> StepNoise:
        if look > 1:
            return StepNoise("closer-zoom", "gaussian")
        columns = len(self.numbers) + (0 if look else len(self.categories))
        scale = float(self.law(look, self._counted(look, self.numbers)).sigma)
        if look == 0 and self.selection is not None:
            params = {"categories": len(self.categories), "threshold": self.selection.threshold}
            return StepNoise("grid-and-levels", "gaussian", scale, "rows", len(self.numbers), params)
        return StepNoise("zoom" if look else "grid", "gaussian", scale, "rows", columns)

    def draw(self, data: Secret[OpenedTable], noise: Noise) -> Glance:
        """One pass over the table for each look."""
        first = self._first_look(data, noise.at(GRID))
        found, reading = first.hulls[0] >= 0, self._coarse(first.hulls)
        asked, zoomed = found, np.zeros_like(found)
        for look in range(1, len(self.shares)):
            if not asked.any():  # 4
                break
            zoom = self._zoom(data, noise.at(step_of(look)), look, asked, reading.next.at(asked), first=first)
            zoomed[asked] |= zoom.found
            reading = reading.closer(asked, zoom)
            asked = reading.narrow
        constant = reading.narrow & ~reading.heaps & (len(self.shares) > 2)
        flags = np.select([~found, ~zoomed, constant], [0, 1, 3], 2)
        return self._glance(first, reading, flags)

    @cached_property
    def first(self) -> Together:
        """The pass of the first look."""
        looked_at = LookPass(tuple(self._looked_at(name, Doublings()) for name in self.numbers))
        return Together((looked_at, *map(level_pass, self.categories)), looked_at.schema)

    def _first_look(self, data: Secret[OpenedTable], noise: Noise) -> _FirstLook:
        """The doublings of all numbers, the levels of all categories, and how many cells are missing."""
        work = self.first
        states = data.map(lambda table: table.state(work))  # 1
        counts = self._noisy(states.map(lambda state: _public_cells(work, state)), noise, 0, self.numbers)  # 2
        shown = tuple(
            self._shown(states.map(partial(_levels, work, at + 1)), noise) for at in range(len(self.categories))
        )
        return self._read(counts, shown)

    def _shown(self, counts: Secret[KeyCounts], noise: Noise) -> Shown:
        """The levels of a category whose noisy counts reach the threshold."""
        assert self.selection is not None
        return noise.keys_above(counts, self.selection.law, self.selection.threshold)  # 3

    def _read(self, noisy: Floats, shown: tuple[Shown, ...]) -> _FirstLook:
        """Where columns lie, and about how many rows there are."""
        sigma = self.sigmas(0, self.numbers)
        size = len(self.numbers) * Doublings.size
        cells, missing = noisy[:size].reshape(-1, Doublings.size), noisy[size:]
        lacking, limits, sets = cells[:, -1], self._limits, grid.doubling_sets()
        counts = grid.possible(cells[:, :-1], doubling(limits.lower), doubling(limits.upper))
        columns = max(len(self.numbers), 1)
        least, surer = sets.least(sigma, columns), sets.surer(sigma, columns)
        hulls = grid.faint(sets, counts, grid.guarded(sets, counts, sigma, least, surer), sigma, lacking)
        reached = Ranges(*grid.reached(counts, hulls, least[:, 0]))
        beside_zeros = grid.BesideZeros.of(counts, hulls)
        rows = grid.rows_of_hulls(counts, lacking, hulls) if self.numbers else rows_of_levels(shown, missing)
        return _FirstLook(hulls, reached, beside_zeros, lacking, shown, missing, max(rows, 1.0))

    def _coarse(self, hulls: grid.Hulls) -> Reading:
        """What doublings tell. A column that lies on one side of 0 is zoomed on that side alone."""
        ranges = Ranges(*grid.opened(grid.ends(hulls)))
        reading = Reading.of_doublings(ranges).cut(self._limits)
        return replace(reading, next=reading.next.cut(ranges.side))

    def _zoom(
        self, data: Secret[OpenedTable], noise: Noise, look: int, asked: Flags, ranges: Ranges, *, first: _FirstLook
    ) -> Reading:
        """The bins of the columns that are asked for."""
        names = [name for name, wanted in zip(self.numbers, asked.tolist(), strict=True) if wanted]
        bins = map(EqualBins, ranges.lower.tolist(), ranges.upper.tolist())
        work = LookPass(tuple(map(self._looked_at, names, bins)))
        counts = data.map(lambda table: work.counts(table.state(work)).ravel().tolist())  # 5
        noisy = self._noisy(counts, noise, look, names).reshape(len(names), -1)  # 6
        sigmas, doubted = self.sigmas(look, names), np.array([name != self.heavy for name in names])
        reading = Reading.of_bins(
            noisy,
            ranges,
            sigmas,
            grid.bin_sets().least(sigmas, len(names)),
            tails=_THIN_TAIL,
            doubted=doubted,
            heaped=~doubted,
            reached=first.reached.at(asked),
            beside_zeros=first.beside_zeros.at(asked),
        )
        return reading.cut(self._limits.at(asked))

    def _looked_at(self, name: str, places: Doublings | EqualBins) -> LookedAt:
        return LookedAt(name, places, self.known.get(name, _FREE), self.readers.get(name, floats))

    @cached_property
    def _limits(self) -> Ranges:
        """The public ends, infinite where there is none."""
        ends = [self.known.get(name, _FREE) for name in self.numbers]
        lower = [-math.inf if low is None else float(low) for low, _ in ends]
        return Ranges(np.array(lower), np.array([math.inf if high is None else float(high) for _, high in ends]))

    def _glance(self, first: _FirstLook, reading: Reading, flags: NDArray[np.int64]) -> Glance:
        """Column by column."""
        sigma = float(self.law(0, self._counted(0, self.numbers)).sigma)
        shares = grid.share_missing(first.lacking, first.rows, self.sigmas(0, self.numbers))
        ends = (reading.bounds.lower, reading.bounds.upper, reading.hull.lower, reading.hull.upper)
        parts = (*ends, reading.centre, reading.scale, flags, shares)
        columns: dict[str, FoundColumn] = {}
        numbers = zip(*(part.tolist() for part in parts), strict=True)
        for name, (lower, upper, low, high, centre, scale, flag, missing) in zip(self.numbers, numbers, strict=True):
            columns[name] = FoundNumber(lower, upper, centre, scale, _FLAGS[flag], missing, (low, high))
        for name, shown, missing in zip(self.categories, first.shown, first.missing.tolist(), strict=True):
            columns[name] = found_levels(name, shown, missing, first.rows, sigma)
        return Glance(columns, first.rows)


_FLAGS = (Flag.NOT_FOUND, Flag.COARSE, Flag.FOUND, Flag.CONSTANT)


@dataclass(frozen=True)
class _FirstLook:
    """What the first look released, and its reading. ``lacking``, ``missing``: cells without a number, or a level."""

    hulls: grid.Hulls
    reached: Ranges
    beside_zeros: grid.BesideZeros
    lacking: Floats
    shown: tuple[Shown, ...]
    missing: Floats
    rows: float


def can_look_between(ends: Ends) -> bool:
    """Whether floats between public ends are fine enough for zooms.

    >>> [can_look_between(ends) for ends in ((0.0, None), (0.0, 1.0), (1e9, 1e9 + 1), (None, math.inf))]
    [True, True, False, False]
    """
    public = [abs(end) for end in ends if end is not None]
    if not all(end <= _MAX_END for end in public):
        return False
    lower, upper = ends
    return lower is None or upper is None or upper - lower >= max(_APART * max(public), 1 / _MAX_END)


def step_of(look: int) -> str:
    """The step of a plan that draws a look.

    >>> [step_of(look) for look in range(4)]
    ['grid', 'zoom', 'zoom-2', 'zoom-3']
    """
    return (GRID, "zoom")[look] if look < 2 else f"zoom-{look}"


def _public_cells(work: Together, state: JointState) -> list[int]:
    """The counts of cells that are there whatever the rows hold: doublings, and rows without a level by category."""
    looked_at, *groups = work.passes
    counts: Any = looked_at.counts(state.parts[0]).ravel().tolist()  # type: ignore[attr-defined]
    rows = looked_at.rows(state.parts[0])  # type: ignore[attr-defined]
    with_level = (int(_levels(work, at, state)[1].sum()) for at in range(1, len(groups) + 1))
    return [*counts, *(rows - number for number in with_level)]


def _levels(work: Together, at: int, state: JointState) -> KeyCounts:
    """The levels of a category that occur, and the rows of each."""
    counts: KeyCounts = work.passes[at].counts(state.parts[at])  # type: ignore[attr-defined]
    return counts
