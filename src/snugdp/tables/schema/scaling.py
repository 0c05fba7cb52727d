"""From rows to vectors: every entry is a function of its own row alone, and every row has an image.

Columns are read whole and scaled in blocks. All arithmetic is elementwise and correctly
rounded, so a row's image depends neither on its place nor on its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.tables.cells import Names, declared, numbers, truths
from snugdp.tables.schema.kinds import Category, Column, Number

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
