"""Standardised rows in which numbers have curves: a straight line, as in a linear model, bends, and a slope beyond.

The line and the bends together are every piecewise linear curve on the knots, once; beyond the knots a curve goes on
with a slope of its own. Bends are as far as can be told unrelated to the line and to the constant, so that a curve
without them is the line that a linear model finds. How long they are, as against the line, is ``bend``: the shorter,
the more a fit shrinks a curve towards its line, and the less noise they bring. It follows from how many rows were found
for so many columns. Proof: ``curved.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.tables.found import Flag, FoundNumber
from snugdp.tables.layouts.standardised import ShownEntry, Standard, StandardisedLayout, usual_square
from snugdp.tables.schema.kinds import Column, Number, Spline
from snugdp.tables.schema.missing import entry_name
from snugdp.tables.schema.scaling import Bits, Floats, Indicated
from snugdp.tables.schema.schema import entry_names

_ROOT = math.sqrt(3)  # half of the range of an even number, in deviations
_REACH = 3.0  # scales from the centre of a number to the first and the last knot, at most
_NARROW, _WIDE = 2.0**-10, 2.0**10  # scales between these: a curve; otherwise a line

# Chosen on eleven kinds of made-up tables that no benchmark has: docs/benchmarks.md.
_SMOOTH = 4.0  # how far neighbouring knots are alike
_SIGNAL = 80.0  # rows * mu / columns, from which on bends are as long as the line
_SHORTEST = 0.02  # bends, as against the line
_BENT = 0.6  # the mean square of bends, in parts of that of even ones: what is no line

_PLACES = 201  # where the density of a number is told
_ROUNDS = 40  # of Newton's method for it
_STEEPEST = 3.0  # its exponents
_EVENLY = 0.02  # of the density is spread evenly


@dataclass(frozen=True)
class Curves:
    """Which numbers have curves: all but those in ``straight``. ``mu``: of the budget. All of it is public."""

    cells: int
    straight: tuple[str, ...]
    mu: float

    def bend(self, rows: float, columns: int) -> float:
        """How long bends are, as against lines, for so many rows, public or released.

        >>> Curves(16, (), 0.25).bend(10_000, 100)
        0.3125
        """
        return min(max(rows * self.mu / max(columns, 1) / _SIGNAL, _SHORTEST), 1.0)


@dataclass(frozen=True, eq=False)
class Bends:
    """Bends between two ends, in scales from the centre. ``images``: of the knots, one in each row.

    ``squares``, ``turned``: their mean squares along the axes where they are unrelated, as far as can be told, and
    these axes, one in each column.
    """

    images: Floats
    squares: Floats
    turned: Floats


@lru_cache(maxsize=512)
def bends_between(cells: int, low: float, high: float) -> Bends:
    """Bends of smooth curves that are 0 at both ends, less a line: as if rows had a density as even as can be.

    >>> bends_between(4, -1.7, 1.7).images.round(2).tolist()
    [[-0.61, -0.33, -0.14], [0.57, -0.33, -0.48], [0.38, 0.89, -0.11], [0.17, 0.41, 1.02], [-0.3, -0.23, -0.14]]
    """
    inner = cells - 1
    steps = 2 * np.eye(inner) - np.eye(inner, k=1) - np.eye(inner, k=-1)
    images = np.zeros((cells + 1, inner))
    if inner:
        images[1:-1] = np.linalg.cholesky(np.linalg.inv(np.eye(inner) + _SMOOTH * steps))
        images /= math.sqrt(float((images**2).sum()) / (cells + 1))
    z, weights = usual_density(low, high)
    place = (z - low) * (cells / (high - low))
    hats = np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(cells + 1)))
    line = np.column_stack([np.ones(cells + 1), np.linspace(low, high, cells + 1)])
    products = hats.T @ (weights[:, None] * hats)
    images = images - line @ np.linalg.solve(line.T @ products @ line, line.T @ products @ images)
    squares, turned = np.linalg.eigh(images.T @ products @ images)
    for part in (images, squares, turned):
        part.flags.writeable = False
    return Bends(images, np.maximum(squares, 0.0), turned)


@lru_cache(maxsize=512)
def usual_density(low: float, high: float) -> tuple[Floats, Floats]:
    """Places between two ends and their weights: the most even ones with the mean 0 and the variance 1.

    Those of a normal number where the ends are far, and the same for all where they are at the root of 3.
    """
    z = np.linspace(low, high, _PLACES)
    powers, exponents = np.array([z, z * z]), np.zeros(2)
    for _ in range(_ROUNDS):
        weights = np.exp(np.clip(exponents @ powers, -50.0, 50.0))
        weights /= weights.sum()
        means = powers @ weights
        spread = (powers * weights) @ powers.T - np.outer(means, means) + 1e-3 * np.eye(2)
        step = np.linalg.solve(spread, np.array([0.0, 1.0]) - means)
        step *= min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-9))
        exponents = np.clip(exponents + step, -_STEEPEST, _STEEPEST)
    return z, (1 - _EVENLY) * weights + _EVENLY / _PLACES


@dataclass(frozen=True)
class StandardCurve:
    """A number between knots: its place on the line, its bends, and how far it lies beyond the knots, where it may."""

    found: FoundNumber
    kind: Spline
    bend: float

    @cached_property
    def knots(self) -> tuple[float, ...]:
        """Where the pieces of the curve meet."""
        return self.kind.knots

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The first and the last knot, in scales from the centre."""
        low, high = ((end - self.found.centre) / self.found.scale for end in (self.knots[0], self.knots[-1]))
        return low, high

    @cached_property
    def tails(self) -> tuple[bool, bool]:
        """Whether numbers may lie below the first knot, and above the last."""
        return self.found.lower < self.knots[0], self.found.upper > self.knots[-1]

    @property
    def bends(self) -> Bends:
        """Those of the longest rows."""
        return bends_between(self.kind.cells, *self.ends)

    @property
    def own(self) -> slice:
        """The entries of the line and of the bends."""
        return slice(0, self.kind.cells)

    @property
    def width(self) -> int:
        """One entry for the line, one for every bend, and one for each side beyond the knots."""
        return self.kind.cells + sum(self.tails)

    def read(self, column: nw.Series[Any]) -> Floats:
        """The column as floats."""
        return Standard(self.found).read(column)

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return Standard(self.found).missing(raw)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows, each from its own cell: single products and sums, no routine for a block."""
        (low, high), cells = self.ends, self.kind.cells
        z = out[0]
        Standard(self.found).write(raw, out[:1])  # 1
        sides = (low - z, z - high)
        beyond = [side for side, is_open in zip(sides, self.tails, strict=True) if is_open]
        for side, entry in zip(beyond, out[cells:], strict=True):
            np.maximum(side, 0.0, out=entry)  # 3
        np.clip(z, low, high, out=z)
        place = np.clip((z - low) * (cells / (high - low)), 0.0, float(cells))
        left = np.minimum(place.astype(np.intp), cells - 1)
        place -= left
        images = self.bends.images * self.bend
        turns = np.diff(images, axis=0)
        for entry in range(cells - 1):  # 2
            np.multiply(turns[left, entry], place, out=out[1 + entry])
            np.add(out[1 + entry], images[left, entry], out=out[1 + entry])
        gaps = self.missing(raw)
        if gaps is not None:
            out[:, gaps] = 0.0

    @cached_property
    def at_knots(self) -> Floats:
        """What the line and the bends are at every knot."""
        return np.column_stack([np.linspace(*self.ends, self.kind.cells + 1), self.bends.images * self.bend])

    @property
    def longest(self) -> float:
        """The square of the longest image."""
        far = max(self.found.upper - self.found.centre, self.found.centre - self.found.lower) / self.found.scale
        return 2 * far**2 + float((self.at_knots**2).sum(axis=1).max())


@dataclass(frozen=True)
class CurvedLayout(StandardisedLayout):
    """As ``StandardisedLayout``, where numbers have ``curves``.

    Guarantee: the image of a row is a function of that row and of released numbers alone (``curved.proof.md``,
    Theorem 1). The row map depends on the number of entries alone, and so do sensitivities.
    """

    curves: Curves = Curves(16, (), 1.0)

    def __post_init__(self) -> None:
        """Splines are what this is for."""

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns that are read: a number with a curve is a spline, between ends that are public or released."""
        return {name: self._kind(name, kind) for name, kind in self.bounds.declared.columns.items()}

    def _kind(self, name: str, kind: Column) -> Column:
        """A curve where nearly all rows are; a line where they hold one value, or the ends are not apart."""
        found = self.bounds.get(name)
        bent = isinstance(kind, Number) and name != self.target and name not in self.curves.straight
        if not bent or not isinstance(found, FoundNumber) or found.flag in (Flag.CONSTANT, Flag.NOT_FOUND):
            return kind
        if isinstance(kind, Spline):
            return kind
        reach = math.inf if found.flag is Flag.PUBLIC else _REACH * found.scale
        first, last = found.hull or (found.lower, found.upper)
        low, high = max(first, found.centre - reach), min(last, found.centre + reach)
        if not _NARROW <= (high - low) / found.scale <= _WIDE:
            return kind
        try:
            return Spline(low, high, cells=self.curves.cells)
        except ValueError:  # public by now: it depends on what was released
            return kind

    @cached_property
    def bend(self) -> float:
        """How long bends are, as against lines."""
        return self.curves.bend(self.bounds.rows, len(self.columns) - (self.target is not None))

    def _scale(self, name: str, kind: Column) -> Any:
        found = self.bounds.get(name)
        if isinstance(kind, Spline) and isinstance(found, FoundNumber):
            even = found.flag is Flag.PUBLIC  # rows are taken to fill public bounds
            return StandardCurve(replace(found, scale=float(kind.half) / _ROOT) if even else found, kind, self.bend)
        return super()._scale(name, kind)

    @cached_property
    def curved(self) -> dict[str, tuple[int, StandardCurve]]:
        """The numbers with curves: where their entries begin, and how they are read."""
        found: dict[str, tuple[int, StandardCurve]] = {}
        at = 0
        for name, whole in self._scales.items():
            scale: Any = whole.scale if isinstance(whole, Indicated) else whole
            if isinstance(scale, StandardCurve):
                found[name] = at, scale
            at += whole.width
        return found

    @property
    def usual_square(self) -> float:
        """As many bends as there are, a curve is no longer than its line and their share."""
        parts = [
            1 + _BENT * self.bend**2 if isinstance(scale, StandardCurve) else usual_square(scale)
            for scale in self._scales.values()
        ]
        return max(sum(parts) + (self.constant and self.joint), 1.0)

    def _entries_of(self, name: str, scale: Any) -> list[ShownEntry]:
        """A curve by its values at the knots, and by its slopes beyond them."""
        if not isinstance(scale, StandardCurve):
            return super()._entries_of(name, scale)
        kind, per = scale.kind, 1 / scale.found.scale
        knots = [ShownEntry(entry, 1.0, 0.0) for entry in entry_names(name, kind)]
        sides = ((f"{name} below {scale.knots[0]:.6g}", -per), (f"{name} above {scale.knots[-1]:.6g}", per))
        return [
            *knots,
            *(
                ShownEntry(side, slope, 0.0)
                for (side, slope), is_open in zip(sides, scale.tails, strict=True)
                if is_open
            ),
        ]

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        names: list[str] = []
        for name, whole in self._scales.items():
            scale: Any = whole.scale if isinstance(whole, Indicated) else whole
            if isinstance(scale, StandardCurve):
                bends = [f"{name} bend {place}" for place in range(1, scale.kind.cells)]
                own = [name, *bends, *(entry.name for entry in self._entries_of(name, scale)[scale.kind.cells + 1 :])]
            else:
                own = [entry.name for entry in self._entries_of(name, scale)]
            names += [*own, entry_name(name)] if isinstance(whole, Indicated) else own
        return (*names, "intercept") if self.constant else tuple(names)

    def _shown(self, theta: Floats) -> Floats:
        """What belongs to the entries that are shown: values at knots in the place of lines and bends."""
        parts, at = [], 0
        curved = self.curved
        for name, whole in self._scales.items():
            own = theta[at : at + whole.width]
            if name in curved:
                scale = curved[name][1]
                own = np.concatenate([scale.at_knots @ own[scale.own], own[scale.own.stop :]])
            parts.append(own)
            at += whole.width
        return np.concatenate([*parts, np.empty(0)])
