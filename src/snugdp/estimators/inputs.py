"""From what scikit-learn's users bring (arrays, frames, paths) to rows under public bounds, and back to predictions.

What is refused here depends on shapes, names, declared types and parameters alone.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource, Block, same_length, vector
from snugdp.tables.schema.kinds import HOW_TO_GET_BOUNDS, Category
from snugdp.tables.schema.schema import Layout, Schema
from snugdp.tables.sources.base import eager_frame
from snugdp.tables.sources.sparse import read_matrix

Floats = NDArray[np.float64]

MAX_ENTRY = 1e100  # an infinite entry of a row to predict from
_MISSING = (
    "x_norm and y_bound are needed: x_norm bounds the Euclidean norm of a row of X, y_bound the target, as b for "
    "[-b, b] or as (low, high). They decide how much noise hides one person, and must not come from the data: "
    f"the largest row is somebody's. {HOW_TO_GET_BOUNDS}. Or leave out both to have bounds found privately, or "
    "describe the columns of a table by schema=snugdp.Schema(...)"
)
NO_TARGET = (
    "This estimator requires y to be passed, but the target y is None. Give y, or a table and a schema that names its "
    "target"
)
_COLUMN = (
    "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for "
    "example using ravel()."
)


@dataclass(frozen=True)
class FitBounds(ABC):
    """How the user bounds the rows of a fit: a schema that names its target, or bounds of rows and of the target."""

    schema: Any
    y_bound: Any
    intercept: Any

    def __post_init__(self) -> None:
        if not isinstance(self.intercept, bool | np.bool_):
            raise TypeError("fit_intercept must be True or False")
        if self.schema is None:
            self._check_bounds()
            return
        if not isinstance(self.schema, Schema):
            raise TypeError("schema must be a snugdp.Schema")
        self._leave_out_bounds()
        if self.schema.target is None:
            raise ValueError('the schema names no target: Schema({...}, target="income") says what is to be predicted')
        self._check_target()

    @abstractmethod
    def _check_bounds(self) -> None:
        """Without a schema: bounds that are missing or invalid are refused."""

    @abstractmethod
    def _leave_out_bounds(self) -> None:
        """With a schema: other bounds are refused."""

    def _check_target(self) -> None:
        """A schema for a regressor has a number, or a boolean, as its target."""
        if isinstance(self.schema.columns[str(self.schema.target)], Category):
            raise TypeError(
                f'the target "{self.schema.target}" must be a Number or a Boolean, not a Category: classes are for '
                "snugdp.LogisticRegression"
            )

    @property
    def target_bound(self) -> Real | tuple[Real, ...]:
        """The bounds on the target, exactly."""
        if isinstance(self.y_bound, tuple | list | np.ndarray):
            return tuple(rational(end, "y_bound") for end in self.y_bound)
        return rational(self.y_bound, "y_bound")

    @property
    def schema_layout(self) -> Schema:
        """The schema, with or without an intercept as asked for."""
        schema: Schema = self.schema
        return replace(schema, intercept=schema.intercept and bool(self.intercept))


@dataclass(frozen=True)
class NormBounds(FitBounds):
    """A schema, or a bound on the norm of a row and bounds on the target."""

    x_norm: Any

    def _check_bounds(self) -> None:
        if self.x_norm is None or self.y_bound is None:
            raise ValueError(_MISSING)
        self.layout(("x0",))  # refuses invalid bounds

    def _leave_out_bounds(self) -> None:
        if self.x_norm is not None or self.y_bound is not None:
            raise ValueError("the schema has all the bounds: leave out x_norm and y_bound")

    def layout(self, names: tuple[str, ...] = ()) -> Layout:
        """That of the schema, or of a matrix with these columns."""
        if self.schema is not None:
            return self.schema_layout
        return ArraySchema(names, rational(self.x_norm, "x_norm"), self.target_bound, bool(self.intercept))


@dataclass(frozen=True, repr=False)
class InputTable:
    """What was brought: the rows, which are private, and their public layout.

    ``named``: what scikit-learn takes the names of the features from; without it they are those of the layout.
    """

    data: Any
    layout: Layout
    named: Any = None

    def is_empty(self) -> bool:
        """Whether an array has no rows; those of other tables are not counted here."""
        return isinstance(self.data, ArraySource) and self.data.is_empty()


def read(X: Any, y: Any, bounds: NormBounds) -> InputTable:
    """A table to fit on."""
    frame = eager(X)
    if bounds.schema is not None:
        layout = bounds.layout()
        return InputTable(schema_table(X, frame, layout.target, None if y is None else target_of(y)), layout)
    if y is None:
        raise ValueError(NO_TARGET)
    if frame is None:
        rows = read_matrix(X)
        layout = bounds.layout(numbered(rows.shape[1]))
        assert isinstance(layout, ArraySchema)
        return InputTable(ArraySource(rows, target_of(y), layout), layout, rows[:0])
    layout = bounds.layout(tuple(frame.columns))
    named = X if hasattr(type(X), "set_axis") else None
    return InputTable(joined(frame, str(layout.target), target_of(y)), layout, named)


def schema_table(X: Any, frame: nw.DataFrame[Any] | None, target: Any, values: Floats | nw.Series[Any] | None) -> Any:
    """The table that a schema describes: its own target is in it, or ``values`` become that column."""
    if values is None:
        return X if frame is None else frame
    if frame is None:
        raise TypeError(
            "a schema refers to columns by name: give X as a pandas, polars or pyarrow table. If the table "
            "contains the target, as a file does, leave out y"
        )
    if target in frame.columns:
        raise ValueError(f'X has a column "{target}", the target, already: leave out y, or drop the column')
    return joined(frame, target, values)


def rows_of(X: Any, layout: Layout) -> Iterator[Floats]:
    """The scaled vectors of rows without targets, part by part, in their order."""
    frame = eager(X)
    if isinstance(layout, Schema):
        if frame is None:
            raise TypeError("give X as a pandas, polars or pyarrow table with the columns of the schema")
        blocks = layout.for_prediction.blocks(frame)
    else:
        names = layout.features[: len(layout.features) - layout.intercept]
        rows: Any = Block(read_matrix(X), None) if frame is None else frame
        width = (rows.X if frame is None else frame).shape[1]
        if width != len(names):
            raise ValueError(f"the rows have {width} features, but {len(names)} are expected")
        if frame is not None:
            rows = frame.rename(dict(zip(frame.columns, names, strict=True)))
        blocks = layout.blocks(rows)
    return (_shortened(block, layout) for block, _ in blocks)


def _shortened(block: Floats, layout: Layout) -> Floats:
    """The rows as the row map sees them, but for its grid: no longer than the norm, and no number is 0."""
    rows = np.nan_to_num(block, nan=0.0, posinf=MAX_ENTRY, neginf=-MAX_ENTRY)
    np.clip(rows, -MAX_ENTRY, MAX_ENTRY, out=rows)
    features = rows[:, :-1] if layout.intercept else rows
    norms, bound = np.sqrt(np.einsum("ij,ij->i", features, features)), float(rational(layout.norm, "norm"))
    features *= (bound / np.maximum(norms, bound))[:, None]
    return rows


def eager(X: Any) -> nw.DataFrame[Any] | None:
    """The frame that X is, with names of text; or nothing."""
    if hasattr(type(X), "set_axis") and hasattr(X, "columns"):  # only pandas has names that are no text
        texts = [isinstance(name, str) for name in X.columns]
        if not any(texts):
            X = X.set_axis(list(numbered(len(texts))), axis=1)
        elif not all(texts):
            raise TypeError("the names of the columns must all be text, or none of them; rename them")
    return eager_frame(X)


def target_of(y: Any) -> Floats:
    """The targets as floats. An array of one column is taken for what it is, with scikit-learn's warning."""
    return vector(one_column(y, "target"))


def one_column(y: Any, what: str) -> Any:
    """What is given for every row: as it is, or the only column of a table or a matrix, with scikit-learn's warning.

    What has a declared type keeps it. As an array it could have another one because of one cell that is missing. A
    list is a column, whatever its entries are: one that is a list of one cell is that cell.
    """
    frame, wrong = eager(y), f"y should be a 1d array: one {what} for every row"
    if frame is not None:
        if len(frame.columns) != 1:
            raise ValueError(wrong)
        warnings.warn(_COLUMN, DataConversionWarning, stacklevel=5)
        y = frame.get_column(frame.columns[0]).to_native()
    if not (isinstance(y, list | tuple) or hasattr(y, "dtype") or hasattr(y, "type")) and hasattr(y, "__array__"):
        y = np.asarray(y)
    if getattr(y, "ndim", 1) != 1:
        if y.ndim != 2 or y.shape[1] != 1:
            raise ValueError(wrong)
        warnings.warn(_COLUMN, DataConversionWarning, stacklevel=5)
        y = y.reshape(-1)
    return y


def joined(frame: nw.DataFrame[Any], name: str, values: Floats | nw.Series[Any]) -> nw.DataFrame[Any]:
    """The table with its target as one more column: numbers, or labels as text."""
    same_length(frame, values)
    if isinstance(values, nw.Series):
        column = nw.new_series(name, values.to_list(), nw.String(), backend=frame.implementation)
    else:
        column = nw.new_series(name, values, nw.Float64(), backend=frame.implementation)
    index = getattr(frame.to_native(), "index", None)
    if index is not None:  # pandas would look for rows of the same label
        column = nw.from_native(column.to_native().set_axis(index), series_only=True)
    return frame.with_columns(column)


def numbered(width: int) -> tuple[str, ...]:
    """Names for the columns of an array."""
    return tuple(f"x{index}" for index in range(width))
