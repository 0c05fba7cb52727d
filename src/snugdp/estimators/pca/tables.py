"""From what users bring to rows without a target, and between their units and those of the components.

What is refused here depends on shapes, names, declared types and parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.inputs import MAX_ENTRY, InputTable, eager, numbered
from snugdp.estimators.open.tables import framed
from snugdp.numerics.rationals import rational
from snugdp.tables.layouts.arrays import Block
from snugdp.tables.layouts.points import MatrixSchema, MatrixSource, Shift, centred, unlabelled
from snugdp.tables.schema.kinds import HOW_TO_GET_BOUNDS
from snugdp.tables.schema.scaling import part_of_norm
from snugdp.tables.schema.schema import Layout, Schema
from snugdp.tables.sources.sparse import read_matrix

Floats = NDArray[np.float64]

_NORMS = Fraction(1, 10**140), Fraction(10**140)  # variances, its square times noise, must be floats
_MISSING = (
    "x_norm is needed: it bounds the Euclidean norm of a row of X, counted from the centre. It decides how much noise "
    f"hides one person, and must not come from the data: the largest row is somebody's. {HOW_TO_GET_BOUNDS}. Or "
    "describe the columns of a table by schema=snugdp.Schema(...)"
)
_CENTERS = '"bounds" (the middle of the bounds), "private" (the mean, for a part of the budget), or public means'


@dataclass(frozen=True)
class PointBounds:
    """How the user bounds the rows: a schema or a norm; and from where they are counted."""

    schema: Any
    x_norm: Any
    center: Any

    def __post_init__(self) -> None:
        if self.schema is None:
            if self.x_norm is None:
                raise ValueError(_MISSING)
            self._matrix(("x0",))  # refuses an invalid bound
            if not _NORMS[0] <= rational(self.x_norm, "x_norm") <= _NORMS[1]:
                raise ValueError(
                    "x_norm must be between 1e-140 and 1e140: variances are in units of its square. Change the units "
                    "of X"
                )
        elif not isinstance(self.schema, Schema):
            raise TypeError("schema must be a snugdp.Schema")
        elif self.x_norm is not None:
            raise ValueError("the schema has all the bounds: leave out x_norm")
        if isinstance(self.center, str) and self.center not in ("bounds", "private"):
            raise ValueError(f"center must be {_CENTERS}")

    @property
    def moves(self) -> bool:
        """Whether the mean is to be released."""
        return isinstance(self.center, str) and self.center == "private"

    def layout(self, names: tuple[str, ...]) -> Layout:
        """The layout of rows with these columns, counted from the public centre; a schema has its own names."""
        plain: Layout = self._matrix(names) if self.schema is None else unlabelled(self.schema)
        return plain if isinstance(self.center, str) else centred(plain, self._shift(plain))

    def _matrix(self, names: tuple[str, ...]) -> MatrixSchema:
        return MatrixSchema(names, rational(self.x_norm, "x_norm"))

    def _shift(self, plain: Layout) -> Shift:
        units = Units.of(plain)
        try:
            means = np.asarray(self.center, dtype=np.float64)
        except (TypeError, ValueError):
            means = np.empty(0)
        if means.shape != units.scale.shape or not np.isfinite(means).all():
            raise ValueError(f"center must be {_CENTERS}: {len(units.scale)} finite numbers, one for every feature")
        shift: list[float] = ((means - units.middle) * units.scale).tolist()
        if max(map(abs, shift)) > MAX_ENTRY:
            raise ValueError("center is too far from the bounds")
        return tuple(shift)


@dataclass(frozen=True, eq=False)
class Units:
    """A scaled row is (x - middle) * scale, less the shift. Components count it in ``factor`` times that.

    ``factor`` is the bound on the norm for a matrix, so that components are in the user's units; under a schema it
    takes numbers between their bounds to [-1, 1], and categories to 0 and 1.
    """

    middle: Floats
    scale: Floats
    factor: float

    @classmethod
    def of(cls, layout: Layout) -> Units:
        """Those of a layout without a target."""
        width = len(layout.features)
        scale = layout.coefficients(np.ones(width)).values
        offsets = np.array([layout.coefficients(one).intercept for one in np.eye(width)])
        if isinstance(layout, MatrixSchema):
            factor = float(rational(layout.x_norm, "x_norm"))
        else:
            factor = 1 / part_of_norm(layout.parts if isinstance(layout, Schema) else len(layout.columns))
        return cls(-offsets / scale, scale, factor)

    def mean(self, shift: Shift) -> Floats:
        """The centre in the user's units."""
        return self.middle + np.array(shift or np.zeros(len(self.scale))) / self.scale

    def users(self, scaled_rows: Floats, shift: Shift) -> Floats:
        """Rows in the user's units."""
        rows: Floats = self.mean(shift) + scaled_rows / self.factor / self.scale
        return rows


def read(X: Any, bounds: PointBounds) -> InputTable:
    """A table to fit on."""
    frame = eager(X)
    if bounds.schema is not None:
        return InputTable(X if frame is None else frame, bounds.layout(()))
    if frame is None:
        rows = read_matrix(X)
        layout = bounds.layout(numbered(rows.shape[1]))
        assert isinstance(layout, MatrixSchema)
        return InputTable(MatrixSource(rows, layout), layout, rows[:0])
    return InputTable(frame, bounds.layout(tuple(frame.columns)), X if hasattr(type(X), "set_axis") else None)


def scaled_rows(X: Any, layout: Layout, units: Units) -> Floats:
    """The rows as components see them: less the centre; what is no number is the centre."""
    parts = [part * units.factor for part in _blocks(X, layout)]
    return np.concatenate([np.empty((0, len(layout.features))), *parts])


def _blocks(X: Any, layout: Layout) -> Iterator[Floats]:
    frame: Any = eager(X)
    if isinstance(layout, Schema):
        if frame is None and tuple(layout.columns) != numbered(len(layout.columns)):
            raise TypeError("give X as a pandas, polars or pyarrow table with the columns of the schema")
        if frame is None:  # bounds were found on an array
            frame = framed(X, list(layout.columns))
        layout = layout.for_prediction
    else:
        names = list(layout.features)
        rows: Any = read_matrix(X) if frame is None else frame
        if rows.shape[1] != len(names):
            raise ValueError(f"X has {rows.shape[1]} features, but PCA is expecting {len(names)} features as input")
        frame = Block(rows, None) if frame is None else frame.rename(dict(zip(frame.columns, names, strict=True)))
    for block, _ in layout.blocks(frame):
        yield np.clip(np.nan_to_num(block, nan=0.0, posinf=MAX_ENTRY, neginf=-MAX_ENTRY), -MAX_ENTRY, MAX_ENTRY)
