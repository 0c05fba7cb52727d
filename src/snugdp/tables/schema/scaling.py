"""From rows to vectors: every row has an image, or is left out, as a function of that row alone.

Columns are read whole and scaled in blocks. All arithmetic is elementwise and correctly
rounded, so a row's image depends neither on its place nor on its neighbours.

A label as a target is the index of its class among public ones, as a number between -1 and 1. Classes are declared,
never read from rows: a label that nobody else has would tell that its person is there. Rows without a target are left
out: those whose target is no number, or none of the classes. Nothing that a cell may hold raises or warns.
Proof: ``scaling.proof.md``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.tables.cells import Names, declared, moments, numbers, truths
from snugdp.tables.cells.dates import MISSING, days
from snugdp.tables.schema.calendar import steps, turn
from snugdp.tables.schema.hats import curve_images
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, Spline

if TYPE_CHECKING:
    from snugdp.tables.schema.schema import Schema

MAX_CLASSES = 1000
Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.bool_]
_CELLS = 1 << 18  # numbers in a block: they stay in a cache, and threads hardly wait for each other


@dataclass(frozen=True)
class Affine:
    """A number: ``(x - middle) * factor``, clipped to ``limit``; what is no number becomes 0."""

    middle: float
    factor: float
    limit: float
    width = 1

    def read(self, column: nw.Series[Any]) -> Floats:
        """The column as floats."""
        return floats(column)

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return not_numbers(raw)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        image = out[0]
        np.subtract(raw, self.middle, out=image, dtype=np.float64)  # single precision is widened first
        np.multiply(image, self.factor, out=image)
        np.clip(image, -self.limit, self.limit, out=image)
        if image.size and np.isnan(image.max()):  # one look at the block; the image of a row stays its own
            np.copyto(image, 0.0, where=np.isnan(image))


@dataclass(frozen=True)
class _Numbers:
    """Columns that are all numbers, with one limit: the images that each column has by itself, in fewer steps."""

    middles: tuple[float, ...]
    factors: tuple[float, ...]
    limit: float

    @classmethod
    def of(cls, scales: Iterable[Any]) -> _Numbers | None:
        """None if the columns are not all of this kind."""
        given = list(scales)
        if not given or any(type(scale) is not Affine or scale.limit != given[0].limit for scale in given):
            return None
        middles, factors = zip(*((scale.middle, scale.factor) for scale in given), strict=True)
        return cls(middles, factors, given[0].limit)

    def write(self, raw: Sequence[NDArray[Any]], out: Floats) -> None:
        """The images of some rows: those of ``Affine``."""
        for middle, factor, column, image in zip(self.middles, self.factors, raw, out, strict=True):
            centred = np.subtract(column, middle, out=image, dtype=np.float64) if middle else column
            np.multiply(centred, factor, out=image, dtype=np.float64)  # 0 taken off changes no number
        if out.size and not (out.max() <= self.limit and out.min() >= -self.limit):  # also if one is not a number
            np.clip(out, -self.limit, self.limit, out=out)
            np.copyto(out, 0.0, where=np.isnan(out))


@dataclass(frozen=True)
class Hats:
    """A number as a spline: the image of its place between two knots, times ``limit``; 0 for what is no number.

    >>> out = np.empty((3, 3))
    >>> Hats(0.0, 0.2, 2, 1.0).write(np.array([0.0, 2.5, np.nan]), out)
    >>> out.T.round(4).tolist()
    [[1.0, 0.0, 0.0], [0.491, 0.2595, 0.0], [0.0, 0.0, 0.0]]
    """

    lower: float
    factor: float
    cells: int
    limit: float

    @property
    def width(self) -> int:
        """One entry for every knot."""
        return self.cells + 1

    def read(self, column: nw.Series[Any]) -> Floats:
        """The column as floats."""
        return floats(column)

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return not_numbers(raw)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows, each from its own cell: single products and sums, no routine for a block."""
        place = np.subtract(raw, self.lower, dtype=np.float64)
        np.multiply(place, self.factor, out=place)
        np.clip(place, 0.0, float(self.cells), out=place)
        gaps = np.isnan(place)
        place[gaps] = 0.0
        left = np.minimum(place.astype(np.intp), self.cells - 1)
        place -= left
        images = curve_images(self.cells) * self.limit
        steps = np.diff(images, axis=0)
        for entry in range(self.width):
            np.multiply(steps[left, entry], place, out=out[entry])
            np.add(out[entry], images[left, entry], out=out[entry])
        out[:, gaps] = 0.0


@dataclass(frozen=True)
class Sign:
    """A boolean: ``limit`` for yes, ``-limit`` for no, and 0 for everything else."""

    limit: float
    width = 1

    def read(self, column: nw.Series[Any]) -> Floats:
        """The column as 1 and 0; NaN for what is neither."""
        return truths(column.to_native())

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return not_numbers(raw)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        np.multiply(raw == 1, self.limit, out=out[0])
        np.subtract(out[0], self.limit, out=out[0], where=raw == 0)


@dataclass(frozen=True)
class OneHot:
    """A category: ``limit`` at the place of its value, and 0 everywhere else."""

    values: tuple[Hashable, ...]
    limit: float

    @property
    def width(self) -> int:
        """One entry for every listed value."""
        return len(self.values)

    def read(self, column: nw.Series[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """The indices of the rows in the list; behind the last one for other values, -1 for missing cells."""
        return self._names.places(_native(column))

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return raw < 0 if raw.size and raw.min() < 0 else None

    @cached_property
    def _names(self) -> Names:
        return Names(self.values, "the values of a category")

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        for place, image in enumerate(out):
            np.multiply(raw == place, self.limit, out=image)


class Written(Protocol):
    """A number that can be written into its place in the vectors."""

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""


Days = TypeVar("Days", bound=Written)


@dataclass(frozen=True)
class DateScale(Generic[Days]):
    """A date: the days as a number, then a sine and a cosine for every part; all 0 where the date is missing.

    Sines come from a table with as many entries as a turn has steps, so that no library computes them for a block.
    """

    number: Days
    parts: tuple[str, ...]

    @property
    @abstractmethod
    def size(self) -> float:
        """The largest sine."""

    @property
    def width(self) -> int:
        """The days, and two entries for every part."""
        return 1 + 2 * len(self.parts)

    def read(self, column: nw.Series[Any]) -> NDArray[np.int64]:
        """The column as microseconds since 1970."""
        return column_moments(column)

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return raw == MISSING if raw.size and raw.min() == MISSING else None

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        self.number.write(days(raw), out[:1])
        for place, part in enumerate(self.parts):
            turns = turn(part, self.size)
            out[1 + 2 * place : 3 + 2 * place] = turns[:, np.where(raw == MISSING, -1, steps(part, raw))]


class Calendar(DateScale[Affine]):
    """A date between bounds."""

    @property
    def size(self) -> float:
        """As large as the number."""
        return self.number.limit


@dataclass(frozen=True)
class Indicated:
    """A column and, as its last entry, whether the cell is missing: ``limit`` where it is, else 0.

    Where it is missing all other entries are 0, so the column is no longer than without the last one.
    """

    scale: Affine | Sign | OneHot | Calendar | Hats
    limit: float

    @property
    def width(self) -> int:
        """One entry more than the column has."""
        return self.scale.width + 1

    def read(self, column: nw.Series[Any]) -> NDArray[Any]:
        """The column as its scale reads it."""
        return self.scale.read(column)

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return self.scale.missing(raw)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        self.scale.write(raw, out[:-1])
        gaps = self.missing(raw)
        out[-1] = 0.0 if gaps is None else gaps * self.limit


Scale: TypeAlias = Affine | Sign | OneHot | Calendar | Hats | Indicated


def scale_for(column: Column, parts: int) -> Scale:
    """How a column is scaled when it is one of ``parts`` that share a vector of norm at most 1.

    >>> from snugdp.tables.schema.kinds import Number
    >>> scale_for(Number(0, 10), 4)
    Affine(middle=5.0, factor=0.1, limit=0.5)
    """
    limit = part_of_norm(parts)
    if isinstance(column, Category):
        return OneHot(column.levels, limit)
    if isinstance(column, Boolean):
        return Sign(limit)
    if isinstance(column, Spline):
        return Hats(float(column.middle - column.half), float(column.cells / (2 * column.half)), column.cells, limit)
    number = Affine(float(column.middle), float(Fraction(limit) / column.half), limit)
    return Calendar(number, tuple(column.parts)) if isinstance(column, Date) else number


class _Wide(Protocol):
    """What has some entries in a vector."""

    @property
    def width(self) -> int:
        """How many."""


def spans(scales: Mapping[str, _Wide]) -> dict[str, slice]:
    """Where the entries of every column are in a vector.

    >>> spans({"age": Sign(1.0), "city": OneHot(("Rome", "Oslo"), 1.0)})
    {'age': slice(0, 1, None), 'city': slice(1, 3, None)}
    """
    ends = list(accumulate(scale.width for scale in scales.values()))
    return {name: slice(end - scale.width, end) for (name, scale), end in zip(scales.items(), ends, strict=True)}


def shares(column: Column) -> int:
    """How many parts of the norm a column takes: one, and one for every part of a date."""
    return 1 + len(column.parts) if isinstance(column, Date) else 1


def part_of_norm(parts: int) -> float:
    """The largest float whose square is at most 1 / parts."""
    root = math.sqrt(1 / parts) if parts else 1.0
    while parts * Fraction(root) ** 2 > 1:
        root = math.nextafter(root, 0.0)
    return root


def not_numbers(raw: NDArray[Any]) -> Bits | None:
    """Which floats are NaN; None where none is, after one look.

    >>> not_numbers(np.array([1.0, np.nan])), not_numbers(np.array([1.0, np.inf]))
    (array([False,  True]), None)
    """
    with np.errstate(all="ignore"):  # a warning would depend on private values
        return np.isnan(raw) if raw.size and np.isnan(raw.max()) else None


def present(gaps: Iterable[Bits | None]) -> Bits | None:
    """Which rows are missing in none of some columns, each by itself; None for all, so that nothing is copied.

    >>> present([None, np.array([False, True])]), present([None])
    (array([ True, False]), None)
    """
    some = [one for one in gaps if one is not None]
    return ~np.logical_or.reduce(some) if some else None


def blocks(
    frame: nw.DataFrame[Any],
    scales: Mapping[str, Scale],
    constant: bool,
    target: tuple[str, Scale] | None,
    needed: Collection[str] = (),
) -> Iterator[tuple[Floats, Floats | None]]:
    """The vectors of some rows at a time, column by column in memory, and their targets.

    Rows without a target, or without a cell in one of the ``needed`` columns, are left out. A block is overwritten by
    the next one.
    """
    raw = [scale.read(frame.get_column(name)) for name, scale in scales.items()]
    aim = target[1].read(frame.get_column(target[0])) if target else None
    gaps = [scale.missing(column) for (name, scale), column in zip(scales.items(), raw, strict=True) if name in needed]
    gaps += [target[1].missing(aim)] if target and aim is not None else []
    count, kept = len(frame), present(gaps)
    if kept is not None:
        raw, aim = [column[kept] for column in raw], None if aim is None else aim[kept]
        count = int(np.count_nonzero(kept))
    entries = sum(scale.width for scale in scales.values()) + constant
    step = max(1024, _CELLS // max(entries, 1))
    buffer, answers = np.empty((entries, min(step, count))), np.empty((1, min(step, count)))
    buffer[entries - constant :] = 1.0
    together = _Numbers.of(scales.values())
    with np.errstate(all="ignore"):  # a warning would depend on private values
        for start in range(0, count, step):
            rows = slice(start, min(start + step, count))
            size, at = rows.stop - start, 0
            if together is not None:
                together.write([column[rows] for column in raw], buffer[: entries - constant, :size])
            else:
                for scale, column in zip(scales.values(), raw, strict=True):
                    scale.write(column[rows], buffer[at : at + scale.width, :size])
                    at += scale.width
            if target and aim is not None:
                target[1].write(aim[rows], answers[:, :size])
            yield buffer[:, :size].T, answers[0, :size] if target else None


def floats(column: nw.Series[Any] | NDArray[Any]) -> Floats:
    """The column as floats, row by row; what is not a number is NaN. That of a matrix is an array already."""
    if isinstance(column, np.ndarray):
        return column if column.dtype.kind == "f" else column.astype(np.float64)
    kind = declared(column)
    if kind in (nw.Date, nw.Datetime):  # whoever declares numbers is told so before; among objects they are missing too
        return np.full(len(column), np.nan)
    if kind in (nw.Float64, nw.Float32):  # no copy where the container has none of its own kind of missing
        array = column.to_numpy()
        if array.dtype.kind == "f":
            return array
    return numbers(column.to_native())


def _native(column: nw.Series[Any] | NDArray[Any]) -> Any:
    """The column as its container has it; that of a matrix is an array already."""
    return column if isinstance(column, np.ndarray) else column.to_native()


def day_numbers(column: nw.Series[Any]) -> Floats:
    """The column as days since 1970, row by row; what is no date is NaN."""
    return days(column_moments(column))


def column_moments(column: nw.Series[Any]) -> NDArray[np.int64]:
    """The column as microseconds since 1970, row by row; what is no date, such as a number, is missing."""
    kind = declared(column)
    if kind.is_numeric() or kind == nw.Boolean:
        return np.full(len(column), MISSING)
    return moments(column.to_native())


@dataclass(frozen=True)
class Coded(OneHot):
    """A category as one number: -1 for the first value, 1 for the last, even steps between; NaN for none of them.

    >>> out = np.empty((1, 4))
    >>> Coded(("a", "b", "c"), 1.0).write(np.array([0, 1, 2, -1]), out)
    >>> out.tolist()
    [[-1.0, 0.0, 1.0, nan]]
    """

    @property
    def width(self) -> int:
        """One."""
        return 1

    def read(self, column: nw.Series[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """The indices of the rows in the list; -1 for rows that are not in it, which have no target."""
        return self._names.indices(_native(column))

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        out[0] = codes(raw, len(self.values))


def codes(places: NDArray[Any], classes: int) -> Floats:
    """The targets of labels, from their places among the classes; -1, none of them, has no target.

    >>> codes(np.array([0, 1, -1]), 2).tolist()
    [-1.0, 1.0, nan]
    """
    image: Floats = np.asarray(places * (2.0 / (classes - 1)) - 1.0, dtype=np.float64)
    if image.size and places.min() < 0:
        image[places < 0] = np.nan
    return image


def target_scale(column: Column) -> Scale:
    """How a target becomes one number between -1 and 1."""
    return Coded(column.levels, 1.0) if isinstance(column, Category) else scale_for(column, 1)


def check_target(name: str, column: Column) -> None:
    """Refuse a target from which nothing can be learned."""
    if isinstance(column, Date | Spline):
        kind = type(column).__name__
        raise TypeError(f'the target "{name}" must be a Number, a Boolean or a Category, not a {kind}')
    if isinstance(column, Category) and not (column.is_open or 2 <= len(column.levels) <= MAX_CLASSES):
        raise TypeError(
            f'the target "{name}" must be a Number, a Boolean or 2 to {MAX_CLASSES} listed values, not a Category of '
            f"{len(column.levels)}"
        )


def classes_in(schema: Schema) -> tuple[Hashable, ...]:
    """The classes that the target of a schema declares: no and yes, or the listed values in their order.

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> classes_in(Schema({"x": Number(0, 1), "y": Category(["b", "a"])}, target="y"))
    ('b', 'a')
    """
    column = None if schema.target is None else schema.columns[schema.target]
    if isinstance(column, Boolean):
        return (False, True)
    if isinstance(column, Category):
        return column.levels
    raise TypeError(
        "the target of the schema must be a Boolean or a Category: its values are the classes, which must be known "
        'without the data. Say Schema({..., "plan": Category(["basic", "premium"])}, target="plan")'
    )


def with_classes(schema: Schema, values: Sequence[Hashable]) -> Schema:
    """The schema with these values, in this order, as those of its target; a Boolean stays one."""
    target = str(schema.target)
    if isinstance(schema.columns[target], Boolean):
        return schema
    return replace(schema, columns={**schema.columns, target: Category(tuple(values))})
