"""What a zoom tells: the range in which a column lies, its centre and its scale.

Public from beginning to end: noisy counts come in. All columns are read at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.bounds.looks.grid import TAIL, BesideZeros, bin_sets, cores, with_tails
from snugdp.tables.passes.columns.looks import BINS

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

_NARROW = 2  # bins: a column in no more of them is looked at more closely
_FAR = 64.0  # scales from the centre of a heap: what a few rows beside it say is believed so far


@dataclass(frozen=True)
class Ranges:
    """A lower and an upper end for each of several columns."""

    lower: Floats
    upper: Floats

    @property
    def middle(self) -> Floats:
        """Half-way between the ends."""
        return self.lower + (self.upper - self.lower) / 2

    def edge(self, place: NDArray[np.int64]) -> Floats:
        """The lower edge of a bin."""
        return self.lower + place * ((self.upper - self.lower) / BINS)

    def bin(self, points: Floats) -> NDArray[np.int64]:
        """The bins in which points lie, or the nearest ones."""
        width = np.maximum((self.upper - self.lower) / BINS, np.finfo(np.float64).tiny)
        return np.clip(np.floor((self.nearest(points) - self.lower) / width), 0, BINS - 1).astype(np.int64)

    def widened(self, by: Floats) -> Ranges:
        """With both ends moved outwards."""
        return Ranges(self.lower - by, self.upper + by)

    def doubled(self) -> Ranges:
        """Twice as wide, around the same middle."""
        return self.widened((self.upper - self.lower) / 2)

    def cut(self, to: Ranges) -> Ranges:
        """Without what is beyond public ends, of which some are infinite; next to the nearer end if nothing is left."""
        lower, upper = np.maximum(self.lower, to.lower), np.minimum(self.upper, to.upper)
        beyond, below = lower >= upper, upper == to.upper
        reach = np.maximum(np.abs(np.where(below, upper, lower)), 1.0)
        return Ranges(
            np.where(beyond & below, np.maximum(upper - reach, to.lower), lower),
            np.where(beyond & ~below, np.minimum(lower + reach, to.upper), upper),
        )

    @property
    def side(self) -> Ranges:
        """The side of 0 on which each lies; all numbers where it reaches over 0."""
        return Ranges(np.where(self.lower >= 0, 0.0, -np.inf), np.where(self.upper <= 0, 0.0, np.inf))

    def at(self, columns: Flags) -> Ranges:
        """Of some of the columns."""
        return Ranges(self.lower[columns], self.upper[columns])

    def nearest(self, points: Floats) -> Floats:
        """The points that lie in the ranges, and are nearest to these."""
        return np.clip(points, self.lower, self.upper)


@dataclass(frozen=True)
class Reading:
    """Columns as a look left them: where they lie, bounds to clip at, centre, scale; empty talk if not ``found``.

    ``narrow``: columns in one or two bins, which a zoom over ``next`` resolves. ``heaps``: those of which only a heap
    is so narrow; zooms leave their hull and their bounds, but for what is far away. ``bulk``: centre and scale of the
    heap, and of other columns once more.
    """

    found: Flags
    hull: Ranges
    bounds: Ranges
    centre: Floats
    scale: Floats
    narrow: Flags
    next: Ranges
    heaps: Flags
    bulk: tuple[Floats, Floats]

    @classmethod
    def of_doublings(cls, hull: Ranges) -> Self:
        """What the first look tells of columns that were found: all of them are zoomed, as doublings are coarse."""
        width, every = hull.upper - hull.lower, np.ones(len(hull.lower), dtype=bool)
        middle, scale = hull.middle, width / 4
        return cls(every, hull, hull.doubled(), middle, scale, every, hull.doubled(), ~every, (middle, scale))

    @classmethod
    def of_bins(
        cls,
        counts: Floats,
        ranges: Ranges,
        sigma: Floats | float,
        least: Floats,
        *,
        tails: float | None = TAIL,
        doubted: Flags | bool = False,
        heaped: Flags | bool = False,
        reached: Ranges | None = None,
        beside_zeros: BesideZeros | None = None,
    ) -> Self:
        """What the noisy counts of a zoom tell. The centre stays near the middle of bins that hold hardly any rows.

        ``least``: as in ``CellSets.hulls``. ``tails``: from so many deviations on some of the next bins are the tail of
        a hull; None: there are no tails.
        ``doubted``: columns in which a few rows beside a heap, which is not one of zeros, are taken for noise, unless
        the heap lacks what is surely ``reached``. ``heaped``: columns in which these few rows are believed, but do
        not keep zooms from the heap. ``beside_zeros``: hulls that were found reach as far as
        this, with a scale that is no smaller.
        """
        hulls = bin_sets().hulls(counts, sigma, least)
        first, last = hulls if tails is None else with_tails(counts, hulls, sigma, tails)
        heap = cores(counts, (first, last), sigma)
        low, high = ranges.edge(heap[0]), ranges.edge(heap[1] + 1)
        off_zero = (low > 0) | (high < 0)
        alone = doubted & off_zero
        if reached is not None:
            alone &= (low <= reached.lower) & (high >= reached.upper)
        first, last = np.where(alone, heap[0], first), np.where(alone, heap[1], last)
        if beside_zeros is not None:
            known, ends = first >= 0, (ranges.bin(beside_zeros.lower), ranges.bin(beside_zeros.upper))
            first = np.where(known, np.minimum(first, ends[0]), first)
            last = np.where(known, np.maximum(last, ends[1]), last)
        heap = cores(counts, (first, last), sigma)
        heaps = heaped & off_zero & ((heap[0] > first) | (heap[1] < last))
        inner = np.where(heaps, heap[0], first), np.where(heaps, heap[1], last)
        hull, heap_ends = (Ranges(ranges.edge(low), ranges.edge(high + 1)) for low, high in ((first, last), inner))
        (centre, scale), bulk = (_moments(counts, ranges, sigma, ends) for ends in ((first, last), inner))
        if beside_zeros is not None:
            scale = np.maximum(scale, beside_zeros.scale)
        narrow = (first >= 0) & (inner[1] - inner[0] < _NARROW)
        nearer = heap_ends.widened((ranges.upper - ranges.lower) / BINS)
        return cls(first >= 0, hull, hull.doubled(), centre, scale, narrow, nearer, heaps, bulk)

    def cut(self, to: Ranges) -> Reading:
        """Without what is beyond public ends."""
        bounds = self.bounds.cut(to)
        centre = bounds.nearest(self.centre)
        return replace(self, hull=self.hull.cut(to), bounds=bounds, centre=centre, next=self.next.cut(to))

    def at(self, columns: Flags) -> Reading:
        """Of some of the columns."""
        return Reading(
            self.found[columns],
            self.hull.at(columns),
            self.bounds.at(columns),
            self.centre[columns],
            self.scale[columns],
            self.narrow[columns],
            self.next.at(columns),
            self.heaps[columns],
            (self.bulk[0][columns], self.bulk[1][columns]),
        )

    def closer(self, columns: Flags, zoom: Reading) -> Reading:
        """With what a zoom at these columns found; where it found nothing, what was known before is left.

        So it is where a heap is no narrower than a bin of the zoom: then it is the middle of a wider column.
        """
        looked_at, heaps = self.next.at(columns), self.heaps[columns]
        told = zoom.found & (~heaps | (zoom.bulk[1] < (looked_at.upper - looked_at.lower) / BINS))
        better = columns.copy()
        better[columns] = told
        seen, heaps = zoom.at(told), heaps[told]

        def put(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
            both = old.copy()
            both[better] = new
            return both

        def put_ends(old: Ranges, new: Ranges) -> Ranges:
            return Ranges(put(old.lower, new.lower), put(old.upper, new.upper))

        centre = put(self.centre, np.where(heaps, seen.bulk[0], seen.centre))
        scale = put(self.scale, np.where(heaps, seen.bulk[1], seen.scale))
        near = Ranges(centre, centre).widened(_FAR * scale)

        def put_wide(old: Ranges, new: Ranges) -> Ranges:
            ends, wide = put_ends(old, new), self.heaps & better
            lower = np.minimum(ends.lower, np.maximum(old.lower, near.lower))
            upper = np.maximum(ends.upper, np.minimum(old.upper, near.upper))
            return Ranges(np.where(wide, lower, ends.lower), np.where(wide, upper, ends.upper))

        return Reading(
            self.found,
            put_wide(self.hull, seen.hull),
            put_wide(self.bounds, seen.bounds),
            centre,
            scale,
            put(np.zeros_like(self.narrow), seen.narrow),
            put_ends(self.next, seen.next),
            self.heaps | put(np.zeros_like(self.heaps), seen.heaps),
            (centre, scale),
        )


def _moments(counts: Floats, ranges: Ranges, sigma: Floats | float, ends: tuple[Any, Any]) -> tuple[Floats, Floats]:
    """Centre and scale of the rows in the bins from one end to the other."""
    first, last = ends
    width, half = (ranges.upper - ranges.lower) / BINS, (last + 1 - first) / 2
    place = np.arange(BINS)
    held = np.where((place >= first[:, None]) & (place <= last[:, None]), counts, 0.0)
    rows = np.maximum(held.sum(axis=1), sigma)
    away = place - (first + last)[:, None] / 2  # bins from the middle
    off = np.clip((held * away).sum(axis=1) / rows, -half, half)
    square = np.maximum((held * (away - off[:, None]) ** 2).sum(axis=1) / rows, 0.0) + 1 / 12
    within = Ranges(ranges.edge(first), ranges.edge(last + 1))
    return within.nearest(within.middle + off * width), width * np.sqrt(np.minimum(square, half**2))
