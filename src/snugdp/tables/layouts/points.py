"""Rows without a target: a matrix under a bound on its rows, tables whose rows are taken from a centre, and sums.

A centre is public: given, or released. It is subtracted entry by entry before the row map shortens the row, so the
image of a row still depends on that row alone, and is still no longer than the norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.rationals import Real
from snugdp.tables.cells import declared, inferred, matrix
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource, Block
from snugdp.tables.passes.base import Counting, row_map
from snugdp.tables.passes.counts import Counts
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.schema.kinds import Column, DType
from snugdp.tables.schema.labels import target_scale
from snugdp.tables.schema.scaling import Affine, Scale, Sign, blocks, scale_for
from snugdp.tables.schema.schema import Coefficients, Layout, Schema
from snugdp.tables.sources.base import Batch, Frame, step

Shift: TypeAlias = tuple[float, ...]  # in the units of the scaled rows; () for none


@dataclass(frozen=True)
class MatrixSchema:
    """What is public about a matrix without a target: its columns, and a bound on the norm of a row.

    Rows are divided by ``x_norm``, the ``shift`` is subtracted, and what is longer than 1 is shortened when statistics
    are taken. What is no number counts as the centre.

    >>> MatrixSchema(("x0", "x1"), x_norm=5).features
    ('x0', 'x1')
    """

    names: tuple[str, ...]
    x_norm: Real
    shift: Shift = ()
    target = None
    target_bound = 1
    target_units = (0.0, 1.0)
    norm = 1
    intercept = False

    def __post_init__(self) -> None:
        assert self.inner  # a bound that is none is refused here

    @cached_property
    def inner(self) -> ArraySchema:
        """The same matrix with a target that is never there."""
        return ArraySchema(self.names, self.x_norm, 1, False)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.names

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """All columns: no entry of a row exceeds the norm."""
        return {name: column for name, column in self.inner.columns.items() if name != self.inner.target}

    def check(self, types: Mapping[str, DType]) -> None:
        """Whether all columns hold numbers, by their declared types."""
        self.inner.check(types)

    def blocks(self, frame: Any) -> Iterator[tuple[Floats, None]]:
        """The scaled rows of a block of a matrix, or of a frame, some at a time; overwritten by the next ones."""
        for rows, _ in self.inner.blocks(frame):
            yield _moved(rows, self.shift), None

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of scaled rows, before the shift, in the user's units."""
        return self.inner.coefficients(theta)


@dataclass(frozen=True)
class FromCentre:
    """A column from a centre: as it is scaled, less the shift of its entries; 0 where a number is missing.

    A category that is missing or not listed has the image of none of the listed ones, less the shift.
    """

    scale: Scale
    shift: Shift

    @property
    def width(self) -> int:
        """As many entries as the column has."""
        return self.scale.width

    def read(self, column: nw.Series[Any]) -> NDArray[Any]:
        """The column as its scale reads it."""
        return self.scale.read(column)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        self.scale.write(raw, out)
        for image, part in zip(out, self.shift, strict=True):
            np.subtract(image, part, out=image)
        if isinstance(self.scale, Affine):
            np.copyto(out[0], 0.0, where=np.isnan(raw))
        elif isinstance(self.scale, Sign):
            np.copyto(out[0], 0.0, where=(raw != 0) & (raw != 1))


@dataclass(frozen=True, eq=False)
class CentredSchema(Schema):
    """A schema whose scaled rows are taken from a centre. A number or truth value that is missing is the centre."""

    shift: Shift = ()

    @property
    def _key(self) -> tuple[object, ...]:
        return (*super()._key, self.shift)

    def blocks(self, frame: nw.DataFrame[Any]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """As those of a schema, less the centre; a constant stays 1."""
        if not self.shift:
            return super().blocks(frame)
        self.check({name: inferred(declared(frame.get_column(name))) for name in frame.columns if name in self.columns})
        target = (self.target, target_scale(self.columns[self.target])) if self.target is not None else None
        return blocks(frame, self._scales, self.intercept, target)

    @property
    def _scales(self) -> dict[str, Scale]:
        """How every column but the target is scaled and moved."""
        scales: dict[str, Scale] = {}
        at = 0
        for name, column in self._used.items():
            scale = scale_for(column, len(self._used))
            moved = FromCentre(scale, self.shift[at : at + scale.width])
            scales[name], at = cast(Scale, moved), at + scale.width  # it has the methods of one
        return scales


def _moved(rows: Floats, shift: Shift) -> Floats:
    if shift:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            rows -= np.array(shift)
    return rows


def unlabelled(schema: Schema) -> Schema:
    """The schema without its target and without a constant.

    >>> from snugdp.tables.schema.schema import Number
    >>> unlabelled(Schema({"a": Number(0, 1), "y": Number(0, 1)}, target="y")).features
    ('a',)
    """
    used = {name: column for name, column in schema.columns.items() if name != schema.target}
    return replace(schema, columns=used, target=None, intercept=False)


def centred(layout: Layout, shift: Shift) -> Layout:
    """The layout with another centre, in the units of its scaled rows; () takes the middle of the bounds."""
    if isinstance(layout, MatrixSchema):
        return replace(layout, shift=shift)
    if isinstance(layout, Schema):
        return CentredSchema(layout.columns, layout.target, layout.intercept, layout.norm, shift)
    raise TypeError("rows can be centred under a schema, or as a matrix without a target")


class MatrixSource(ArraySource):
    """A matrix in memory, in blocks of rows that share its memory."""

    def __init__(self, X: object, schema: MatrixSchema) -> None:
        self._X, self._schema = matrix(X), schema.inner
        if self._X.shape[1] != len(schema.names):
            raise ValueError(f"the rows have {self._X.shape[1]} entries, but {len(schema.names)} are expected")

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Blocks of rows. Engines hand them on; only ``MatrixSchema`` looks inside."""
        size = step(len(self._schema.names))
        for start in range(0, len(self._X), size):
            yield Batch(cast(Frame, Block(self._X[start : start + size], None)))


@dataclass(frozen=True)
class SumPass(Counting):
    """The sum of all rows and their number: of every entry plus ``limit``, so that nothing is negative.

    Guarantee: whole numbers, equal for every order and partition of the rows; ``sums`` gives a vector that one row
    moves by at most the norm, and a number that one row moves by 1 (``points.proof.md``, Theorem 1).

    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number
    >>> work = SumPass(Schema({"x": Number(-1, 1)}, intercept=False), bits=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.5, -7.0, None]}), eager_only=True)
    >>> work.sums(work.fold(work.empty(), frame))
    ([-8], 3)
    """

    schema: Layout
    bits: int | None = None

    @cached_property
    def row_map(self) -> RowMap:
        """How rows become integers."""
        return row_map(self.schema, self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema."""
        return tuple(self.schema.columns)

    @property
    def bins(self) -> int:
        """One for every entry, and the number of rows."""
        return self.row_map.entries + 1

    @property
    def limit(self) -> int:
        """No entry of a row is larger, in cells."""
        return math.isqrt(self.row_map.norm_squared)

    def fold(self, state: Counts, frame: nw.DataFrame[Any]) -> Counts:
        """Add the rows of a frame. Sums of whole numbers below 2**53 are exact in floats."""
        for X, _ in self.schema.blocks(frame):
            for V, _ in self.row_map.blocks(X, None):
                sums: list[float] = V.sum(axis=0).tolist()
                state.add([*(int(total) + self.limit * len(V) for total in sums), len(V)])
        return state

    def sums(self, state: Counts) -> tuple[list[int], int]:
        """The sum of the rows in cells, and their number."""
        *entries, rows = state.values()
        return [entry - self.limit * rows for entry in entries], rows
