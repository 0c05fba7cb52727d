"""Looks at the few columns of a query, from coarse to fine, paid for by a share of its budget: pure or Gaussian.

Proof: ``columns.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.mechanisms.bounds.looks import grid, laplace
from snugdp.mechanisms.bounds.looks.looks import WEIGHTS, Ends, step_of
from snugdp.mechanisms.bounds.looks.zooms import Flags, Floats, Ranges, Reading
from snugdp.mechanisms.statistics.joint import JointNoise
from snugdp.noise import DiscreteLaplace, Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import Flag, FoundNumber
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.columns.looks import NEAR, Doublings, EqualBins, LookedAt, LookPass, doubling

THEOREM = theorem("column-looks/1")
ASTRAY = (
    0.005  # how often, at most, an empty set counts as occupied: an answer rests on it, and nothing else would tell
)
_DOUBT = 2  # deviations that are taken off the number of rows
_FREE: Ends = (None, None)
_ZOOM = 1
_FLAGS = (Flag.NOT_FOUND, Flag.CONSTANT, Flag.COARSE, Flag.FOUND)
_ALONE, _SEVERAL = ("column-grid", "column-zoom", "closer-column-zoom"), ("grid", "zoom", "closer-zoom")  # steps


class Sighting(NamedTuple):
    """What was found of every column, and a number of rows that hardly ever is too large."""

    columns: Mapping[str, FoundNumber]
    rows: int


@dataclass(frozen=True)
class ColumnLooks:
    """Bounds, centre and scale of numbers, found in private.

    ``share``: of all looks together; ``weights``: how it is divided among the first look and the zooms. ``known``: as
    in ``Looks``: public ends. ``partial``: whether some columns may be found and others not.

    Guarantee: the cost of the share, whatever is found (``columns.proof.md``, Theorem 1).
    """

    names: tuple[str, ...]
    share: Share
    known: Mapping[str, Ends] = field(default_factory=dict)
    weights: tuple[int, ...] = WEIGHTS
    partial: bool = False

    @property
    def cost(self) -> Cost:
        """What all looks cost together."""
        return self.share.cost

    def noise(self, look: int, columns: int) -> JointNoise:
        """Of all counts of a look at so many columns."""
        moved = columns if self.share.neighbours is Neighbours.ADD_REMOVE else 2 * columns
        part = self.share.part(Fraction(self.weights[look], sum(self.weights)))
        places = EqualBins.size if look else Doublings.size
        return JointNoise(part, (Fraction(moved),) * (places * columns), "cells", step_of(look))

    def steps(self) -> tuple[Step, ...]:
        """Of a plan: one for each look."""
        return tuple(map(self._step, range(len(self.weights))))

    def _step(self, look: int) -> Step:
        columns = len(self.names)
        ((step,), words) = self.noise(look, columns).steps(), _ALONE if columns == 1 else _SEVERAL
        if look > _ZOOM:
            drawn = StepNoise(words[-1], step.noise.law)
        else:
            drawn = StepNoise(words[look], step.noise.law, step.noise.scale, "rows", columns)
        return Step(step.id, StepKind.STATISTIC, drawn, step.cost)

    @property
    def rows_needed(self) -> int:
        """A column of which so many rows lie within one doubling is found in five of six cases."""
        noise = self.noise(0, len(self.names))
        least = clear_rows(grid.doubling_sets(), noise, len(self.names))[0]
        return math.ceil(float(least) + noise.deviations[0])

    @cached_property
    def first(self) -> LookPass:
        """The pass of the first look."""
        return LookPass(tuple(self._looked_at(name, Doublings()) for name in self.names))

    def certify(self, data: Secret[OpenedTable], noise: Noise) -> Sighting | None:
        """One pass over the table for each look. Nothing if columns were not found that are needed."""
        cells, law = self._counts(data, noise, 0, self.first)  # 1, 2
        limits, sets = self._limits, grid.doubling_sets()
        counts = grid.possible(cells[:, :-1], doubling(limits.lower), doubling(limits.upper))
        least, surer = (clear_rows(sets, law, len(self.names), rare) for rare in (ASTRAY, grid.HARDLY_EVER))
        hulls = grid.guarded(sets, counts, law.deviations[0], least, surer)
        found = hulls[0] >= 0
        if not (found.any() if self.partial else found.all()):  # 3
            return None
        reading = Reading.of_doublings(Ranges(*grid.opened(grid.ends(hulls)))).cut(limits)
        asked, zoomed = found, np.zeros_like(found)
        for look in range(1, len(self.weights)):
            if not asked.any():
                break
            zoom = self._zoom(data, noise, look, asked, reading.next.at(asked))  # 4
            zoomed[asked] |= zoom.found
            reading = reading.closer(asked, zoom)
            asked = reading.narrow
        rows, deviation = max(grid.rows_of_hulls(counts, cells[:, -1], hulls), 1.0), law.deviations[0]
        lacking = grid.share_missing(cells[:, -1], rows, deviation)
        seen = rows * (1 - float(lacking.max())) - _DOUBT * deviation * math.sqrt(int((hulls[1] - hulls[0]).max()) + 2)
        if not self.partial and _near_zero(hulls).any():  # 5
            return None
        alike = self._alike(hulls, reading)
        return Sighting(self._found(reading, [found, zoomed, alike], lacking), max(int(seen), 1))

    def _zoom(self, data: Secret[OpenedTable], noise: Noise, look: int, asked: Flags, ranges: Ranges) -> Reading:
        names = [name for name, wanted in zip(self.names, asked.tolist(), strict=True) if wanted]
        bins = map(EqualBins, ranges.lower.tolist(), ranges.upper.tolist())
        counts, law = self._counts(data, noise, look, LookPass(tuple(map(self._looked_at, names, bins))))
        least = clear_rows(grid.bin_sets(), law, len(names))
        return Reading.of_bins(counts, ranges, law.deviations[0], least).cut(self._limits.at(asked))

    def _counts(self, data: Secret[OpenedTable], noise: Noise, look: int, work: LookPass) -> tuple[Floats, JointNoise]:
        """Noisy counts, a row of them for every column, and their noise."""
        law, columns = self.noise(look, len(work.looked_at)), len(work.looked_at)
        drawn = law.draw(data.map(lambda table: work.counts(table.state(work)).ravel().tolist()), noise)
        return np.array(drawn, dtype=np.float64).reshape(columns, -1), law

    def _looked_at(self, name: str, places: Doublings | EqualBins) -> LookedAt:
        return LookedAt(name, places, self.known.get(name, _FREE))

    @cached_property
    def _limits(self) -> Ranges:
        """The public ends, infinite where there is none."""
        ends = [self.known.get(name, _FREE) for name in self.names]
        lower = [-math.inf if low is None else low for low, _ in ends]
        return Ranges(np.array(lower), np.array([math.inf if high is None else high for _, high in ends]))

    def _alike(self, hulls: grid.Hulls, reading: Reading) -> Flags:
        """Which columns hold one value, as far as can be told: narrow to the end, or nothing but numbers near 0."""
        return _near_zero(hulls) | (reading.narrow & (len(self.weights) > _ZOOM + 1))

    def _found(self, reading: Reading, seen: list[Flags], lacking: Floats) -> dict[str, FoundNumber]:
        """Column by column. ``seen``: which were found, and zoomed, and hold one value."""
        found, zoomed, alike = seen
        flags = np.select([~found, alike, ~zoomed], [0, 1, 2], 3)
        ends, parts = reading.bounds, (reading.centre, reading.scale, lacking)
        held = (part.tolist() for part in (ends.lower, ends.upper, *parts))
        numbers = zip(*held, map(_FLAGS.__getitem__, flags.tolist()), strict=True)
        return {
            name: FoundNumber(lower, upper, centre, scale, flag, missing)
            for name, (lower, upper, centre, scale, missing, flag) in zip(self.names, numbers, strict=True)
        }


def clear_rows(sets: grid.CellSets, noise: JointNoise, columns: int, astray: float = ASTRAY) -> Floats:
    """For every set, the least sum of noisy counts that is clear of noise (Lemma 2)."""
    law = noise.laws[0]
    if not isinstance(law, DiscreteLaplace):
        least: Floats = sets.least(float(law.sigma), columns, astray)[0]
        return least
    rare, sure = (chance / (len(sets) * columns) for chance in (astray, grid.HARDLY_EVER))
    by_size = {size: _clear_of_laplace(int(size), float(law.scale), rare, sure) for size in set(sets.sizes.tolist())}
    return np.array([by_size[size] for size in sets.sizes.tolist()])


def _clear_of_laplace(cells: int, scale: float, rare: float, sure: float) -> float:
    """For a chance of ``rare``, or of ``sure`` where that takes a few rows alone."""
    return max(laplace.clear(cells, scale, rare), min(laplace.clear(cells, scale, sure), grid.LITTLE))


def _near_zero(hulls: grid.Hulls) -> Flags:
    """Which columns hold nothing but numbers near 0, as far as can be told: what lies beside a heap is not known."""
    near: Flags = (hulls[0] == NEAR) & (hulls[1] == NEAR)
    return near
