"""Which cells of noisy histograms are occupied, and from where to where the doublings of a column reach.

Public from beginning to end: noisy counts come in. All columns are decided at once, one row of counts for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import NormalDist
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.rounded import all_clear, clear
from snugdp.tables.passes.columns.looks import BINS, FAR, HIGHEST, LOWEST, NEAR

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Hulls: TypeAlias = tuple[Integers, Integers]  # the first and the last cell of each column; -1 where nothing was found

AROUND_ZERO = 0.28  # of normal rows around 0: in a set of L cells they stand out like so many, times the root of L
ASTRAY = 0.05  # how often, at most, an empty set counts as occupied in one of the columns of a look,
HARDLY_EVER = 1e-6  # and how often one that makes a hull reach far beyond what is sure, or
LITTLE = 50.0  # where no more rows than these are asked for it, any
_GROWTH = 2.0  # deviations: from so many on a hull grows into the next cells
_STRETCH = 2.0**8  # so many times further than what is sure is far
TAIL = 2.5  # deviations: from so many on some of the next bins are the tail of a hull
_HEAP = 0.7  # of the rows in two bins side by side: what is seen of the others may be noise
_NEIGHBOUR_DEVIATIONS = 5.0  # deviations: fewer rows than so many beside a heap may be noise alone
_ZEROS = 0.5  # of the rows: more of them at zero are a heap
_LEAST_SHARE, _TYPICAL = 0.02, 0.7  # of the rows, beside zeros; their values, in parts of how far they reach
_WANTING, _FAINT = 3.0, 0.2  # deviations: from so many rows on that are wanting, so often an empty set may be taken
_MOST_ROWS = 0.8  # the quantile of columns, by the rows of their hulls, that tells how many there are
_NEXT = 1  # cells beside that of zeros into which its hull may have grown by noise
_CLEAR = 3.0  # deviations: fewer rows than so many may be noise alone
_NO_POSITION = -1


@dataclass(frozen=True)
class CellSets:
    """Sets of neighbouring cells that are tested: windows of some lengths; mirrored, both sides of a middle as well.

    >>> len(CellSets(163, (1, 2, 4), mirror=True)), len(CellSets(32, (1, 2, 4, 8)))
    (724, 117)
    """

    cells: int
    lengths: tuple[int, ...]
    mirror: bool = False

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def members(self) -> Floats:
        """One row for each set: 1 for its cells and 0 for the others."""
        return np.concatenate([*map(self._windows, self.lengths), *map(self._pairs, self.lengths)])

    def _windows(self, length: int) -> Floats:
        return sum((np.eye(self.cells - length + 1, self.cells, shift) for shift in range(length)), np.zeros(1))

    def _pairs(self, length: int) -> Floats:
        """Windows on the upper side of the middle, and the same below it."""
        beyond = self.cells // 2 + 1
        if not self.mirror:
            return np.empty((0, self.cells))
        above = np.zeros((self.cells - beyond - length + 1, self.cells))
        above[:, beyond:] = CellSets(self.cells - beyond, (length,)).members
        both: Floats = above + above[:, ::-1]
        return both

    @cached_property
    def sizes(self) -> Floats:
        """How many cells are in each set."""
        sizes: Floats = self.members.sum(axis=1)
        return sizes

    @cached_property
    def _within(self) -> NDArray[np.float32]:
        """Whether one set is a part of another, and not all of it."""
        common = self.members @ self.members.T
        within: NDArray[np.bool_] = (common == self.sizes[:, None]) & (common < self.sizes)
        return within.astype(np.float32)

    def threshold(self, columns: int, astray: float = ASTRAY) -> float:
        """So many deviations no empty set of any of the columns exceeds, but for a chance of ``astray``."""
        return -NormalDist().inv_cdf(astray / (len(self) * columns))

    def clear(self, sigma: Floats | float, deviations: float) -> Floats:
        """The rows that noise in each set exceeds no more often than so many deviations: a row for each sigma."""
        return all_clear(self.sizes, sigma, deviations)

    def least(self, sigma: Floats | float, columns: int, astray: float = ASTRAY) -> Floats:
        """The rows that are more than noise in each set, a row for each sigma: by the law of rounded noise.

        In no set of any column without rows is noise above it, but for a chance of ``astray``; of one in a million
        where that takes a few rows alone.
        """
        usual, sure = (self.clear(sigma, self.threshold(columns, rare)) for rare in (astray, HARDLY_EVER))
        return np.maximum(usual, np.minimum(sure, LITTLE))

    def surer(self, sigma: Floats | float, columns: int) -> Floats:
        """The same for a chance of one in a million, whatever that takes."""
        return self.clear(sigma, self.threshold(columns, HARDLY_EVER))

    def hulls(self, counts: Floats, sigma: Floats | float, least: Floats) -> Hulls:
        """For every column, from the first to the last cell of the least sets that are occupied; then they grow.

        ``sigma``: the deviation of the noise, of all columns or of each. ``least``: the rows that are more than noise
        in each set, for all columns or for each.
        """
        high = counts @ self.members.T > least
        (some,) = np.nonzero(high.any(axis=0))
        high = high[:, some]
        smallest = high & (high.astype(np.float32) @ self._within[np.ix_(some, some)] == 0)
        seen = smallest.astype(np.float32) @ self.members[some].astype(np.float32) > 0
        found, last = seen.any(axis=1), self.cells - 1
        first, final = np.argmax(seen, axis=1), last - np.argmax(seen[:, ::-1], axis=1)
        first, final = last - grown(counts[:, ::-1], last - first, sigma), grown(counts, final, sigma)
        return np.where(found, first, _NO_POSITION), np.where(found, final, _NO_POSITION)


def grown(counts: Floats, last: Integers, sigma: Floats | float) -> Integers:
    """The last cell of every hull after it has grown upwards, one cell at a time.

    It grows while the next cell, or the next two together, exceed what noise does no more often than two deviations.
    """
    columns, cells = counts.shape
    two = np.full((columns, cells), -math.inf)
    two[:, :-1] = counts[:, :-1] + counts[:, 1:]
    least = all_clear(np.array([1, 2]), sigma, _GROWTH)
    stops = np.ones((columns, cells + 1), dtype=np.bool_)
    stops[:, :-1] = (counts <= least[:, :1]) & (two <= least[:, 1:]) & (np.arange(cells) > last[:, None])
    grown_to: Integers = np.argmax(stops, axis=1) - 1
    return grown_to


def with_tails(counts: Floats, hulls: Hulls, sigma: Floats | float, clear: float = TAIL) -> Hulls:
    """Hulls that reach as far as thin tails do: into bins that together hold more than ``clear`` deviations of noise.

    A heap of rows in one bin with the others spread thinly over many is no narrow column.

    >>> counts = np.array([[900.0, *[35.0] * 20, *[0.0] * 11]])
    >>> [int(end[0]) for end in with_tails(counts, (np.array([0]), np.array([0])), 20.0)]
    [0, 18]
    """
    first, last = hulls
    top = counts.shape[1] - 1
    least = all_clear(np.arange(1, top + 1), sigma, clear)
    lower, upper = top - _tail(counts[:, ::-1], top - first, least), _tail(counts, last, least)
    return np.where(first < 0, first, lower), np.where(first < 0, last, upper)


def _tail(counts: Floats, last: Integers, least: Floats) -> Integers:
    """The last bin of every hull, moved upwards while some of the next bins together hold more than noise.

    ``least``: what is more than noise in one bin, in two, and so on, for all columns or for each.
    """
    cells, moved = counts.shape[1], last.copy()
    every = np.broadcast_to(least, (len(last), least.shape[1]))
    for at in range(max(int(last.min(initial=cells)), 0), cells - 1):
        (here,) = np.nonzero(moved == at)
        if len(here):
            sums = np.cumsum(counts[here, at + 1 :], axis=1)
            more = (sums > every[here, : cells - 1 - at]).any(axis=1)
            moved[here[more]] = at + 1
    return moved


def cores(counts: Floats, hulls: Hulls, sigma: Floats | float) -> Hulls:
    """The two bins that hold nearly all rows of a hull, where what the others hold may be noise; else the hull.

    Tails are sought among so many bins that noise looks like one now and then: a narrow column would be lost in it.

    >>> counts = np.array([[0.0, 900.0, 800.0, 60.0, *[30.0] * 4], [900.0, 40.0, *[300.0] * 6]])
    >>> [end.tolist() for end in cores(counts, (np.array([1, 0]), np.array([7, 7])), 20.0)]
    [[1, 0], [2, 7]]
    """
    first, last = hulls
    held = possible(counts, first, last)
    pairs, rows = held[:, :-1] + held[:, 1:], held.sum(axis=1)
    place, most = np.argmax(pairs, axis=1), pairs.max(axis=1)
    beside, spread = np.maximum(last - first - 1, 1).tolist(), np.broadcast_to(sigma, first.shape).tolist()
    noise = np.array([clear(cells, one, _NEIGHBOUR_DEVIATIONS) for cells, one in zip(beside, spread, strict=True)])
    alone = (first >= 0) & (last > first + 1) & (most >= _HEAP * rows) & (rows - most <= noise)
    return np.where(alone, place, first), np.where(alone, place + 1, last)


@cache
def doubling_sets() -> CellSets:
    """The sets of the first look: a column around zero is seen on both sides together."""
    return CellSets(FAR + 1, (1, 2, 4), mirror=True)


@cache
def bin_sets() -> CellSets:
    """The sets of a zoom."""
    return CellSets(BINS, (1, 2, 4, 8))


def _edges() -> Floats:
    powers = 2.0 ** np.arange(LOWEST, HIGHEST + 1)
    return np.concatenate([[-powers[-1]], -powers[::-1], powers, [powers[-1]]])


EDGES = _edges()  # cell i reaches from edge i to edge i + 1; of the outermost cells only the inner edge is known


def ends(hulls: Hulls) -> tuple[Floats, Floats]:
    """From where to where the cells of hulls reach; -1 and 1, which says nothing, for those that were not found.

    Where the cell around 0 is the first or last of several, the hull ends at 0.

    >>> lower, upper = ends((np.array([81, 102, 81, -1]), np.array([81, 103, 102, -1])))
    >>> lower.tolist(), upper.tolist()
    ([-9.5367431640625e-07, 1.0, 0.0, -1.0], [9.5367431640625e-07, 4.0, 2.0, 1.0])
    """
    first, last = hulls
    several = first < last
    lower = np.where(several & (first == NEAR), 0.0, EDGES[first])
    upper = np.where(several & (last == NEAR), 0.0, EDGES[last + 1])
    return np.where(first < 0, -1.0, lower), np.where(first < 0, 1.0, upper)


def guarded(sets: CellSets, counts: Floats, sigma: Floats | float, least: Floats, surer: Floats) -> Hulls:
    """The hulls of doublings; one that a doubtful far cell stretches beyond all measure is that of surer cells alone.

    Noise in one empty cell far out would be enough to lose a column: who reaches that far has to stand out more.
    """
    hulls, sure = sets.hulls(counts, sigma, least), sets.hulls(counts, sigma, surer)
    alone = (sure[0] == NEAR) & (sure[1] == NEAR)
    reach, near = (np.maximum(*map(np.abs, ends(one))) for one in (hulls, sure))
    stretched = (sure[0] >= 0) & ~alone & (reach > _STRETCH * near)
    return np.where(stretched, sure[0], hulls[0]), np.where(stretched, sure[1], hulls[1])


def faint(sets: CellSets, counts: Floats, hulls: Hulls, sigma: Floats, lacking: Floats) -> Hulls:
    """Hulls of which those with zeros alone reach as far as cells do that stand out less.

    Only where rows are wanting: where fewer are zero, or without a number, than the other columns have rows. Then some
    lie elsewhere, and it takes less to say where.
    """
    wanting = rows_of_hulls(counts, lacking, hulls, _MOST_ROWS) - lacking - counts[:, NEAR]
    zeros = (hulls[0] >= NEAR - _NEXT) & (hulls[1] <= NEAR + _NEXT) & (hulls[0] <= NEAR) & (hulls[1] >= NEAR)
    asked = zeros & (wanting > all_clear(1, sigma, _WANTING)[:, 0])
    if not asked.any():
        return hulls
    first, last = (end.copy() for end in hulls)
    first[asked], last[asked] = sets.hulls(counts[asked], sigma[asked], sets.least(sigma[asked], 1, _FAINT))
    return first, last


def reached(counts: Floats, hulls: Hulls, clear: Floats | float) -> tuple[Floats, Floats]:
    """What columns surely reach: at or below the first of two numbers, and at or above the second, there are rows.

    These are the inner ends of the outermost cells of a hull that stand out on their own, with more than ``clear``
    rows; infinite, which says nothing, where none does.

    >>> counts = np.zeros((1, 163))
    >>> counts[0, [105, 108]] = 900.0, 300.0
    >>> [end.tolist() for end in reached(counts, (np.array([104]), np.array([108])), 200.0)]
    [[16.0], [64.0]]
    """
    alone = possible(counts, *hulls) > np.reshape(clear, (-1, 1))
    lowest, highest = np.argmax(alone, axis=1), counts.shape[1] - 1 - np.argmax(alone[:, ::-1], axis=1)
    any_ = alone.any(axis=1)
    return np.where(any_, EDGES[lowest + 1], np.inf), np.where(any_, EDGES[highest], -np.inf)


@dataclass(frozen=True)
class BesideZeros:
    """How far the values of columns that are mostly zero reach, and their scale at least; else nothing is said.

    A zoom divides a doubling into many bins, in each of which there is noise: it sees the zeros and hardly anything
    else. So hulls reach at least as far as the inner ends of the outermost doublings that were found.

    >>> counts = np.zeros((1, 163))
    >>> counts[0, [81, 103, 104]] = 900.0, 200.0, 150.0
    >>> seen = BesideZeros.of(counts, (np.array([81]), np.array([104])))
    >>> seen.lower.tolist(), seen.upper.tolist(), seen.scale.round(2).tolist()
    ([inf], [4.0], [1.26])
    """

    lower: Floats
    upper: Floats
    scale: Floats

    @classmethod
    def of(cls, counts: Floats, hulls: Hulls) -> Self:
        """Of noisy counts of doublings and what they tell."""
        first, last = hulls
        rows = np.maximum(possible(counts, first, last).sum(axis=1), 1.0)
        share = np.clip(1 - counts[:, NEAR] / rows, _LEAST_SHARE, 0.5)  # of the rows that are not zero
        zeros = (first >= 0) & (counts[:, NEAR] > _ZEROS * rows)
        below, above = zeros & (first < NEAR), zeros & (last > NEAR)
        lower, upper = EDGES[np.minimum(first + 1, NEAR)], EDGES[np.maximum(last, NEAR)]
        reach = np.maximum(np.where(below, -lower, 0.0), np.where(above, upper, 0.0))
        scale = _TYPICAL * reach * np.sqrt(share * (1 - share))
        return cls(np.where(below, lower, np.inf), np.where(above, upper, -np.inf), scale)

    def at(self, columns: NDArray[np.bool_]) -> Self:
        """Of some of the columns."""
        return replace(self, lower=self.lower[columns], upper=self.upper[columns], scale=self.scale[columns])


def opened(hull: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Ends that are apart: an outermost cell alone is taken for one more doubling."""
    lower, upper = hull
    alone = lower == upper
    far = np.where(alone, 2.0 * lower, lower)
    return np.minimum(far, upper), np.where(alone, np.maximum(far, upper), upper)


def possible(counts: Floats, first: Integers, last: Integers) -> Floats:
    """The counts without those of cells that public bounds leave empty: there is noise alone."""
    place = np.arange(counts.shape[1])
    return np.where((place >= first[:, None]) & (place <= last[:, None]), counts, 0.0)


def rows_of_hulls(counts: Floats, missing: Floats, hulls: Hulls, quantile: float = 0.5) -> float:
    """About how many rows there are: in the hull of a column or without a number, in the median of the columns.

    Where no hull was found, as many as are without a number somewhere.
    """
    first, last = hulls
    found = first >= 0
    if not found.any():
        return float(max(missing, default=0.0))
    held = possible(counts[found], first[found], last[found]).sum(axis=1)
    return float(np.quantile(held + missing[found], quantile))


def share_missing(missing: Floats | int, rows: float, sigma: Floats | float) -> Floats:
    """The share of rows without a value; 0 where the count may be noise alone."""
    count = np.asarray(missing, dtype=np.float64)
    clear_of_noise = all_clear(1, sigma, _CLEAR).reshape(np.shape(sigma))
    return np.where(count > clear_of_noise, count / np.maximum(count, max(rows, 1.0)), 0.0)
