"""From rows to vectors: every entry is a function of its own row alone, and every row has an image.

Columns are read whole and scaled in blocks. All arithmetic is elementwise and correctly
rounded, so a row's image depends neither on its place nor on its neighbours.

A label as a target is the index of its class among public ones, as a number between -1 and 1. Classes are declared,
never read from rows: a label that nobody else has would tell that its person is there. What is none of the classes
counts as the first of them, so a row without a label is kept, and nothing that a label may hold raises or warns.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.tables.cells import Names, declared, numbers, truths
from snugdp.tables.schema.kinds import Boolean, Category, Column, Number

if TYPE_CHECKING:
    from snugdp.tables.schema.schema import Schema

MAX_CLASSES = 1000
Floats: TypeAlias = NDArray[np.float64]
_CELLS = 1 << 21  # numbers in a block: long enough that threads do not wait for each other


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

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        image = out[0]
        np.subtract(raw, self.middle, out=image, dtype=np.float64)  # single precision is widened first
        np.multiply(image, self.factor, out=image)
        np.clip(image, -self.limit, self.limit, out=image)
        if image.size and np.isnan(image.max()):  # one look at the block; the image of a row stays its own
            np.copyto(image, 0.0, where=np.isnan(image))


@dataclass(frozen=True)
class Sign:
    """A boolean: ``limit`` for yes, ``-limit`` for no, and 0 for everything else."""

    limit: float
    width = 1

    def read(self, column: nw.Series[Any]) -> Floats:
        """The column as 1 and 0; NaN for what is neither."""
        return truths(column.to_native())

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

    def read(self, column: nw.Series[Any]) -> NDArray[np.int64]:
        """The indices of the rows in the list; -1 for rows that are not in it."""
        return self._names.indices(column.to_native())

    @cached_property
    def _names(self) -> Names:
        return Names(self.values, "the values of a category")

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        for place, image in enumerate(out):
            np.multiply(raw == place, self.limit, out=image)


Scale: TypeAlias = Affine | Sign | OneHot


def scale_for(column: Column, parts: int) -> Scale:
    """How a column is scaled when it is one of ``parts`` that share a vector of norm at most 1.

    >>> scale_for(Number(0, 10), 4)
    Affine(middle=5.0, factor=0.1, limit=0.5)
    """
    limit = part_of_norm(parts)
    if isinstance(column, Number):
        return Affine(float(column.middle), float(Fraction(limit) / column.half), limit)
    return OneHot(tuple(column.values), limit) if isinstance(column, Category) else Sign(limit)


def part_of_norm(parts: int) -> float:
    """The largest float whose square is at most 1 / parts."""
    root = math.sqrt(1 / parts) if parts else 1.0
    while parts * Fraction(root) ** 2 > 1:
        root = math.nextafter(root, 0.0)
    return root


def blocks(
    frame: nw.DataFrame[Any], scales: Mapping[str, Scale], constant: bool, target: tuple[str, Scale] | None
) -> Iterator[tuple[Floats, Floats | None]]:
    """The vectors of some rows at a time, column by column in memory, and their targets.

    A block is overwritten by the next one.
    """
    raw = [scale.read(frame.get_column(name)) for name, scale in scales.items()]
    aim = target[1].read(frame.get_column(target[0])) if target else None
    entries = sum(scale.width for scale in scales.values()) + constant
    step = max(1024, _CELLS // max(entries, 1))
    buffer, answers = np.empty((entries, min(step, len(frame)))), np.empty((1, min(step, len(frame))))
    buffer[entries - constant :] = 1.0
    with np.errstate(all="ignore"):  # a warning would depend on private values
        for start in range(0, len(frame), step):
            rows = slice(start, min(start + step, len(frame)))
            size, at = rows.stop - start, 0
            for scale, column in zip(scales.values(), raw, strict=True):
                scale.write(column[rows], buffer[at : at + scale.width, :size])
                at += scale.width
            if target and aim is not None:
                target[1].write(aim[rows], answers[:, :size])
            yield buffer[:, :size].T, answers[0, :size] if target else None


def floats(column: nw.Series[Any]) -> Floats:
    """The column as floats, row by row; what is not a number is NaN."""
    if declared(column) in (nw.Float64, nw.Float32):  # no copy where the container has none of its own kind of missing
        array = column.to_numpy()
        if array.dtype.kind == "f":
            return array
    return numbers(column.to_native())


@dataclass(frozen=True)
class Coded(OneHot):
    """A category as one number: -1 for the first value and for what is not listed, 1 for the last, even steps between.

    >>> out = np.empty((1, 4))
    >>> Coded(("a", "b", "c"), 1.0).write(np.array([0, 1, 2, -1]), out)
    >>> out.tolist()
    [[-1.0, 0.0, 1.0, -1.0]]
    """

    @property
    def width(self) -> int:
        """One."""
        return 1

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        out[0] = codes(raw, len(self.values))


def codes(places: NDArray[Any], classes: int) -> Floats:
    """The targets of labels, from their places among the classes; -1 is the place of what is none of them.

    >>> codes(np.array([0, 1, -1]), 2).tolist()
    [-1.0, 1.0, -1.0]
    """
    return np.asarray(np.maximum(places, 0) * (2.0 / (classes - 1)) - 1.0, dtype=np.float64)


def target_scale(column: Column) -> Scale:
    """How a target becomes one number between -1 and 1."""
    return Coded(tuple(column.values), 1.0) if isinstance(column, Category) else scale_for(column, 1)


def check_target(name: str, column: Column) -> None:
    """Refuse a target from which nothing can be learned."""
    if isinstance(column, Category) and not 2 <= len(column.values) <= MAX_CLASSES:
        raise TypeError(
            f'the target "{name}" must be a Number, a Boolean or 2 to {MAX_CLASSES} listed values, not a Category of '
            f"{len(column.values)}"
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
        return tuple(column.values)
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
