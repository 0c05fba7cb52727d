"""From what users bring (arrays, sparse matrices, frames, paths) to candidates under bounds entry by entry, and back.

What is refused here depends on shapes, names, declared types and parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from snugdp.estimators.inputs import NO_TARGET, FitBounds, eager, joined, numbered, schema_table, target_of
from snugdp.estimators.open.tables import matrix_blocks
from snugdp.numerics.rationals import Real, rational
from snugdp.tables.candidates import Candidates
from snugdp.tables.cells import matrix
from snugdp.tables.layouts.arrays import Block
from snugdp.tables.layouts.boxes import Box, BoxSchema, EntrySchema
from snugdp.tables.schema.kinds import HOW_TO_GET_BOUNDS, Boolean, Category
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources.sparse import canonical

Floats = NDArray[np.float64]

_NO_BOUND = (
    "y_bound is needed: b for targets in [-b, b], or (low, high). It decides how much noise hides one person, and must "
    f"not come from the data. {HOW_TO_GET_BOUNDS}. Or leave out x_bound as well, to have all bounds found privately"
)


@dataclass(frozen=True)
class BoxBounds(FitBounds):
    """A schema, or bounds of the entries of columns and bounds on the target."""

    x_bound: Any

    def _check_bounds(self) -> None:
        if self.y_bound is None:
            raise ValueError(_NO_BOUND)
        self.box(("x0",) * len(self._columns or ("x0",)))  # refuses invalid bounds

    def _leave_out_bounds(self) -> None:
        if self._columns is not None or self.x_bound != 1 or self.y_bound is not None:
            raise ValueError("the schema has all the bounds: leave out x_bound and y_bound")

    @property
    def _columns(self) -> tuple[Any, ...] | None:
        """One bound for every column, if there are many."""
        many = isinstance(self.x_bound, tuple | list | np.ndarray)
        return tuple(np.ravel(self.x_bound).tolist()) if many else None

    def box(self, names: tuple[str, ...] = ()) -> Box:
        """The entries of the schema, or of a matrix with these columns."""
        if self.schema is not None:
            return EntrySchema(self.schema_layout)
        columns = self._columns
        entries: Real | tuple[Real, ...] = (
            rational(self.x_bound, "x_bound")
            if columns is None
            else tuple(rational(bound, "x_bound") for bound in columns)
        )
        return BoxSchema(names, entries, self.target_bound, bool(self.intercept))


class ClassBoxBounds(BoxBounds):
    """The same for a classifier: a schema has a target of two values."""

    def _check_target(self) -> None:
        require_truth(self.schema)


@dataclass(frozen=True, repr=False)
class SparseTable:
    """As ``InputTable``: the rows, which are private, and their public layout."""

    candidates: Candidates
    box: Box
    named: Any = None


def read(
    X: Any, y: Any, bounds: BoxBounds, *, row_norm: Fraction | None = None, progress: bool | None = None
) -> SparseTable:
    """A table to fit on; ``y`` as floats, or none where the table holds its own target."""
    frame = eager(X)
    how: dict[str, Any] = {"row_norm": row_norm, "progress": progress}
    if bounds.schema is not None:
        box = bounds.box()
        return SparseTable(Candidates(box, table=schema_table(X, frame, box.target, y), **how), box)
    if y is None:
        raise ValueError(NO_TARGET)
    if frame is not None:
        box = bounds.box(tuple(frame.columns))
        named = X if hasattr(type(X), "set_axis") else None
        return SparseTable(Candidates(box, table=joined(frame, str(box.target), y), **how), box, named)
    rows = canonical(X) if issparse(X) else matrix(X)
    if rows.shape[0] != len(y):
        raise ValueError("X and y have inconsistent numbers of rows: give one target for every row")
    box = bounds.box(numbered(rows.shape[1]))
    return SparseTable(Candidates(box, X=rows, y=y, **how), box, rows[:0])


def targets(y: Any) -> Floats | None:
    """Numbers to be predicted."""
    return None if y is None else target_of(y)


def require_truth(schema: Any) -> None:
    """A schema for a classifier has a target of two values, or of values that are found."""
    column = schema.columns[schema.target] if isinstance(schema, Schema) and schema.target is not None else Boolean()
    two = isinstance(column, Category) and (column.is_open or len(column.levels) == 2)
    if not (two or isinstance(column, Boolean)):
        raise TypeError(f'the target "{schema.target}" must be a Boolean, or a Category of two values')


def linear_part(X: Any, box: Box, support: tuple[int, ...], x_norm: Real, theta: Floats) -> Floats:
    """The product theta . x for every row, read as in the fit: clipped entry by entry, restricted, shortened."""
    values = [_shortened(rows, box.intercept) @ theta for rows in _restricted(X, box, support, x_norm)]
    return np.concatenate([np.empty(0), *values])


def _restricted(X: Any, box: Box, support: tuple[int, ...], x_norm: Real) -> Iterator[Floats]:
    frame = eager(X)
    if isinstance(box, EntrySchema):
        chosen_entries = EntrySchema(box.layout.for_prediction).only(support, x_norm)
        parts = [frame] if frame is not None else matrix_blocks(X, box.layout)
        return (rows for part in parts for rows, _ in chosen_entries.blocks(part))
    if frame is not None:
        names = [frame.columns[place] for place in support]
        wanted = dict(zip(names, (box.names[place] for place in support), strict=True))
        blocks = box.only(support, x_norm).blocks(frame.select(*names).rename(wanted))
    else:
        rows = canonical(X) if issparse(X) else matrix(X)
        chosen: Any = rows[:, list(support)]
        dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
        blocks = box.only(support, x_norm).blocks(Block(dense, None))
    return (block for block, _ in blocks)


def _shortened(rows: Floats, intercept: bool) -> Floats:
    """No longer than 1; what is no number is 0."""
    features = rows[:, : rows.shape[1] - intercept]
    np.copyto(features, 0.0, where=~np.isfinite(features))
    norms = np.sqrt(np.einsum("ij,ij->i", features, features))
    features /= np.maximum(norms, 1.0)[:, None]
    return rows
