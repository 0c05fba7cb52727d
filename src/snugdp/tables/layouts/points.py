"""Rows without a target: a matrix under a bound on its rows, and tables whose rows are taken from a centre.

A centre is public: given, or released. It is subtracted entry by entry before the row map shortens the row, so the
image of a row still depends on that row alone, and is still no longer than the norm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.rationals import Real
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource, WrappedLayout
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.kinds import Column
from snugdp.tables.schema.scaling import Bits, Indicated, OneHot, Scale
from snugdp.tables.schema.schema import Coefficients, Layout, Schema

Shift: TypeAlias = tuple[float, ...]  # in the units of the scaled rows; () for none


@dataclass(frozen=True)
class MatrixSchema(WrappedLayout):
    """What is public about a matrix without a target: its columns, and a bound on the norm of a row.

    Rows are divided by ``x_norm``, the ``shift`` is subtracted, and what is longer than 1 is shortened when statistics
    are taken. A missing value counts as the centre.

    >>> MatrixSchema(("x0", "x1"), x_norm=5).features
    ('x0', 'x1')
    """

    names: tuple[str, ...]
    x_norm: Real
    shift: Shift = ()
    layout: ArraySchema = field(init=False, repr=False)  # the same matrix with a target that is never there
    target = None
    target_units = (0.0, 1.0)
    norm = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", ArraySchema(self.names, self.x_norm, 1, False))

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """All columns: no entry of a row exceeds the norm."""
        return {name: column for name, column in self.layout.columns.items() if name != self.layout.target}

    def blocks(self, frame: Any) -> Iterator[tuple[Floats, None]]:
        """The scaled rows of a block of a matrix, or of a frame, some at a time; overwritten by the next ones."""
        for rows, _ in self.layout.blocks(frame):
            if self.shift:
                with np.errstate(all="ignore"):  # a warning would depend on private values
                    np.subtract(rows, np.array(self.shift), out=rows)
            yield rows, None

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of scaled rows, before the shift, in the user's units."""
        return self.layout.coefficients(theta)


@dataclass(frozen=True)
class FromCentre:
    """A column from a centre: as it is scaled, less the shift of its entries; 0 where a number or date is missing.

    A category that is missing or not listed has the image of none of the listed ones, less the shift; so has the entry
    that says whether a cell is missing.
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

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return self.scale.missing(raw)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        self.scale.write(raw, out)
        for image, part in zip(out, self.shift, strict=True):
            np.subtract(image, part, out=image)
        own = self.scale.scale if isinstance(self.scale, Indicated) else self.scale
        gaps = None if isinstance(own, OneHot) else own.missing(raw)
        if gaps is not None:
            np.copyto(out[: own.width], 0.0, where=gaps)


@dataclass(frozen=True, eq=False)
class CentredSchema(Schema):
    """A schema whose scaled rows are taken from a centre. A number or boolean that is missing is the centre."""

    shift: Shift = ()

    @property
    def _key(self) -> tuple[object, ...]:
        return (*super()._key, self.shift)

    @property
    def _scales(self) -> dict[str, Scale]:
        """Those of a schema, less the centre; a constant stays 1."""
        scales, at = super()._scales, 0
        for name, scale in scales.items() if self.shift else ():
            moved = FromCentre(scale, self.shift[at : at + scale.width])
            scales[name], at = cast(Scale, moved), at + scale.width  # it has the methods of one
        return scales


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
        return CentredSchema(layout.columns, layout.target, layout.intercept, layout.norm, layout.missing, shift=shift)
    raise TypeError("rows can be centred under a schema, or as a matrix without a target")


class MatrixSource(ArraySource):
    """A matrix without targets in memory, in blocks of rows."""

    def __init__(self, X: object, schema: MatrixSchema) -> None:
        self._open(X, None, schema.layout)
