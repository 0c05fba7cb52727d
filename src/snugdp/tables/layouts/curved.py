"""Standardised rows in which numbers have curves: a straight line, as in a linear model, bends, and a slope beyond.

The line and the bends together are every piecewise linear curve on the knots, once; beyond the knots a curve goes on
with a slope of its own. Bends are as far as can be told unrelated to the line and to the constant, so that a curve
without them is the line that a linear model finds. How long they are, as against the line, is ``bend``: the shorter,
the more a fit shrinks a curve towards its line, and the less noise they bring. It follows from how many rows were found
for so many columns. Proof: ``curved.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.numerics import balls
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
_LEAST_SIGNAL, _FEW_COLUMNS = 40.0, 5  # rows * mu / columns, below which lines are enough; few columns count as so many
_BENT = 0.6  # the mean square of bends, in parts of that of even ones: what is no line

_PLACES = 201  # where the density of a number is told
_NO_LINE = (Flag.CONSTANT, Flag.NOT_FOUND)
_ROUNDS = 40  # of Newton's method for it
_STEEPEST = 3.0  # its exponents
_EVENLY = 0.02  # of the density is spread evenly
_SETTLED = 1e-12  # a step of Newton's method after which there is no other


Effects: TypeAlias = Literal["auto", "line", "curve", "both"]


@dataclass(frozen=True)
class Curves:
    """Which numbers have curves: all but those in ``straight``. ``mu``: of the budget. All of it is public.

    ``effects``: a number is a "line", a "curve", or "both", a line and bends that count for themselves; "auto" is a
    line where there are few rows, and otherwise both.
    """

    cells: int
    straight: tuple[str, ...]
    mu: float
    effects: Effects = "auto"

    def bend(self, rows: float, columns: int) -> float:
        """How long bends are, as against lines, for so many rows, public or released.

        >>> Curves(16, (), 0.25).bend(10_000, 100)
        0.3125
        """
        return 1.0 if self.effects == "curve" else min(max(rows * self.mu / max(columns, 1) / _SIGNAL, _SHORTEST), 1.0)

    def are_lines(self, rows: float, columns: int) -> bool:
        """Whether effects are lines: because it was said, or because there are so few rows.

        >>> Curves(16, (), 0.25).are_lines(10_000, 100), Curves(16, (), 0.25).are_lines(10_000, 50)
        (True, False)
        """
        few = rows * self.mu < _LEAST_SIGNAL * max(columns, _FEW_COLUMNS)
        return self.effects == "line" or (self.effects == "auto" and few)


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
    [[-0.89, -0.23, 0.12], [0.52, -0.33, -0.07], [0.14, 0.78, -0.27], [-0.07, 0.02, 0.62], [-0.21, -0.62, -0.66]]
    """
    places, weights = usual_density(low, high)
    products = _products(cells, low, high, places, weights)
    line = [(1.0, low + (high - low) * k / cells) for k in range(cells + 1)]
    smooth = _smooth(cells)
    images = np.array([[*row] for row in zip(*(_unrelated(bend, line, products) for bend in smooth), strict=True)])
    images = images.reshape(cells + 1, cells - 1)
    spread = np.diag([main for main, _ in products]) + sum(
        np.diag([side for _, side in products[:-1]], k=k) for k in (-1, 1)
    )
    squares, turned = np.linalg.eigh(images.T @ spread @ images)
    for part in (images, squares, turned):
        part.flags.writeable = False
    return Bends(images, np.maximum(squares, 0.0), turned)


# What follows makes tables that must be the same on every machine: single operations on floats, exact sums, and
# exponentials that are rounded from balls; no BLAS, LAPACK or vectorised function.


@lru_cache
def _smooth(cells: int) -> tuple[tuple[float, ...], ...]:
    """Curves that are 0 at both ends, one for each inner knot: the columns of a triangular root of their products."""
    inner = cells - 1
    root = _cholesky(_inverse(inner, 1 + 2 * _SMOOTH, -_SMOOTH))
    size = math.sqrt(math.fsum(value * value for row in root for value in row) / (cells + 1)) if inner else 1.0
    return tuple((0.0, *(root[row][column] / size for row in range(inner)), 0.0) for column in range(inner))


def _inverse(size: int, main: float, side: float) -> list[list[float]]:
    """Of the matrix with these on and beside its diagonal: column by column, by elimination."""
    pivots: list[float] = []
    for _ in range(size):
        pivots.append(main - side * side / pivots[-1] if pivots else main)
    columns = []
    for one in range(size):
        right = [0.0] * size
        for row in range(one, size):
            right[row] = (1.0 if row == one else 0.0) - (side * right[row - 1] / pivots[row - 1] if row > one else 0.0)
        for row in reversed(range(size)):
            right[row] = (right[row] - (side * right[row + 1] if row + 1 < size else 0.0)) / pivots[row]
        columns.append(right)
    return columns


def _cholesky(matrix: list[list[float]]) -> list[list[float]]:
    """The lower triangular root."""
    root = [[0.0] * len(matrix) for _ in matrix]
    for row, own in enumerate(root):
        for column in range(row + 1):
            other = root[column]
            rest = matrix[row][column] - math.fsum(own[k] * other[k] for k in range(column))
            own[column] = math.sqrt(rest) if row == column else rest / other[column]
    return root


def _products(cells: int, low: float, high: float, places: Floats, weights: Floats) -> tuple[tuple[float, float], ...]:
    """Mean products of the hats of every knot with itself and with the next one."""
    main: list[list[float]] = [[] for _ in range(cells + 1)]
    side: list[list[float]] = [[] for _ in range(cells + 1)]
    for z, weight in zip(places.tolist(), weights.tolist(), strict=True):
        place = min(max((z - low) * (cells / (high - low)), 0.0), float(cells))
        left = min(int(place), cells - 1)
        part = place - left
        main[left].append(weight * (1 - part) * (1 - part))
        main[left + 1].append(weight * part * part)
        side[left].append(weight * part * (1 - part))
    return tuple((math.fsum(own), math.fsum(next_)) for own, next_ in zip(main, side, strict=True))


def _unrelated(
    bend: Sequence[float], line: Sequence[tuple[float, float]], products: Sequence[tuple[float, float]]
) -> list[float]:
    """A curve less the line that is nearest to it."""

    def mean(one: Sequence[float], other: Sequence[float]) -> float:
        squares = [main * one[k] * other[k] for k, (main, _) in enumerate(products)]
        crossed = [side * (one[k] * other[k + 1] + one[k + 1] * other[k]) for k, (_, side) in enumerate(products[:-1])]
        return math.fsum([*squares, *crossed])

    ones, slope = ([point[k] for point in line] for k in (0, 1))
    a, b, c = mean(ones, ones), mean(ones, slope), mean(slope, slope)
    first, second = mean(ones, bend), mean(slope, bend)
    whole = a * c - b * b
    level, rise = (c * first - b * second) / whole, (a * second - b * first) / whole
    return [value - (level + rise * z) for value, z in zip(bend, slope, strict=True)]


def _exp(x: float) -> float:
    with balls.precision(2 * balls.FIRST):
        return float(arb(x).exp())


@lru_cache(maxsize=512)
def usual_density(low: float, high: float) -> tuple[Floats, Floats]:
    """Places between two ends and their weights: the most even ones with the mean 0 and the variance 1.

    Those of a normal number where the ends are far, and the same for all where they are at the root of 3.
    """
    z = [low + (high - low) * k / (_PLACES - 1) for k in range(_PLACES)]
    powers = (z, [x * x for x in z], [x * x * x for x in z], [x * x * (x * x) for x in z])
    first, second, weights = 0.0, 0.0, [1.0] * _PLACES
    for _ in range(_ROUNDS):
        weights = [_exp(min(max(first * x + second * x * x, -50.0), 50.0)) for x in z]
        total = math.fsum(weights)
        weights = [weight / total for weight in weights]
        one, two, three, four = (math.fsum(map(operator.mul, weights, power)) for power in powers)
        a, b, c = two - one * one + 1e-3, three - one * two, four - two * two + 1e-3
        up, out, whole = -one, 1 - two, a * c - b * b
        steps = (c * up - b * out) / whole, (a * out - b * up) / whole
        short = min(1.0, 0.5 / max(abs(steps[0]), abs(steps[1]), 1e-9))
        first, second = (
            min(max(old + short * step, -_STEEPEST), _STEEPEST)
            for old, step in zip((first, second), steps, strict=True)
        )
        if max(abs(step) for step in steps) < _SETTLED:
            break
    return np.array(z), np.array([(1 - _EVENLY) * weight + _EVENLY / _PLACES for weight in weights])


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
        if not bent or not isinstance(found, FoundNumber) or found.flag in _NO_LINE:
            return kind
        if isinstance(kind, Spline) or self.curves.are_lines(self.bounds.rows, self._features):
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
        return self.curves.bend(self.bounds.rows, self._features)

    @property
    def _features(self) -> int:
        """The number of columns but for the target."""
        return len(self.bounds.declared.columns) - (self.target is not None)

    def _scale(self, name: str, kind: Column) -> Any:
        found = self.bounds.get(name)
        if isinstance(kind, Spline) and isinstance(found, FoundNumber):
            even = found.flag is Flag.PUBLIC  # rows are taken to fill public bounds
            return StandardCurve(replace(found, scale=float(kind.half) / _ROOT) if even else found, kind, self.bend)
        return super()._scale(name, kind)

    @cached_property
    def curved(self) -> dict[str, tuple[int, StandardCurve]]:
        """The numbers with curves: where their entries begin, and how they are read."""
        spans, found = self.spans, dict[str, tuple[int, StandardCurve]]()
        for name, whole in self._scales.items():
            scale: Any = whole.scale if isinstance(whole, Indicated) else whole
            if isinstance(scale, StandardCurve):
                found[name] = spans[name].start, scale
        return found

    @property
    def straight(self) -> dict[str, FoundNumber]:
        """The numbers that would have curves if all effects were no lines."""
        if not self.curves.are_lines(self.bounds.rows, self._features):
            return {}
        scales = {name: getattr(whole, "scale", whole) for name, whole in self._scales.items()}
        return {
            name: scale.found
            for name, scale in scales.items()
            if isinstance(scale, Standard) and name not in self.curves.straight and scale.found.flag not in _NO_LINE
        }

    @property
    def bent(self) -> tuple[int, ...]:
        """The entries that are bends."""
        return tuple(at + bend for at, scale in self.curved.values() for bend in range(1, scale.kind.cells))

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
