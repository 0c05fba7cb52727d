"""Tables whose bounds are found privately: from what users bring to declared columns and rows, and back.

What is refused here depends on shapes, names, declared types and parameters alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.inputs import NO_TARGET, Floats, eager, joined, numbered, schema_table
from snugdp.ledger.question import column_name
from snugdp.tables.cells.rows import check_shape, grid, is_sparse, undeclared_rows
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource, Block
from snugdp.tables.layouts.boxes import BoxSchema
from snugdp.tables.layouts.points import MatrixSchema, MatrixSource, unlabelled
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.schema.kinds import Boolean, Category, Column, Number
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import Source, is_named, open_source
from snugdp.tables.sources.base import step
from snugdp.tables.sources.sparse import SparseBlock, read_matrix


@dataclass(frozen=True, repr=False)
class OpenInput:
    """What was brought: rows, which are private, and what is public about their columns.

    ``left_out``: columns that are not used, and why. ``named``: what scikit-learn takes the names of features from.
    """

    source: Source
    declared: Schema
    left_out: Mapping[str, str]
    named: Any = None

    def is_empty(self) -> bool:
        """Whether an array or a frame has no rows; those of other tables are not counted here."""
        from snugdp.tables.sources.frames import FrameSource  # polars: only for those who bring a table

        return isinstance(self.source, ArraySource | FrameSource) and self.source.is_empty()


@dataclass(frozen=True)
class OpenTarget:
    """What is public about a target. ``values``: those that were given beside the rows, as floats or as labels.

    ``given``: of what kind these are. ``own``: of what kind the target is that a table holds itself.
    """

    given: Column
    own: Column
    values: Floats | nw.Series[Any] | None = None
    name: str | None = None


def open_input(
    X: Any, target: OpenTarget, schema: Schema | None, intercept: bool, *, person: str | None = None
) -> OpenInput:
    """The table, opened, and its columns. Those of no schema are declared by their types; ``person`` is not used."""
    frame = eager(X)
    if schema is not None:
        return _under_schema(X, frame, target, schema)
    if target.values is None:
        if target.name is None:
            raise ValueError(NO_TARGET)
        source = open_source(X if frame is None else frame)
        declared, left_out = _inferred(source, target.name, person)
        own = declared.columns[target.name] if target.own == Category() else target.own
        declared = with_target(declared, target.name, own if isinstance(own, Boolean) else target.own, intercept)
        return _checked(source, declared, left_out)
    if frame is None:
        rows = read_matrix(X)
        names = numbered(rows.shape[1])
        layout = ArraySchema(names, 1, 1)
        columns: dict[str, Column] = {**dict.fromkeys(names, Number()), layout.target: target.given}
        declared = Schema(columns, layout.target, intercept)
        return OpenInput(ArraySource(rows, target.values, layout), declared, {}, rows[:0])
    name = _free(target.name or "y", frame.columns)
    source = open_source(joined(frame, name, target.values))
    declared, left_out = _inferred(source, name)
    named = X if hasattr(type(X), "set_axis") else None
    return replace(_checked(source, with_target(declared, name, target.given, intercept), left_out), named=named)


def _under_schema(X: Any, frame: nw.DataFrame[Any] | None, target: OpenTarget, schema: Schema) -> OpenInput:
    if schema.target is None and target.values is None and target.name is None:
        raise ValueError(NO_TARGET)
    name, values = target_in(schema, target), target.values
    if values is None and target.name not in (None, name):
        raise ValueError(f'the target is "{name}" by its bounds or schema, not "{target.name}": leave out y')
    declared = with_target(schema, name, target.own if values is None else target.given, schema.intercept)
    if frame is None and values is not None:
        rows = read_matrix(X)
        return OpenInput(_array(rows, values, declared), declared, {}, rows[:0])
    source = open_source(schema_table(X, frame, name, values))
    return _checked(source, declared, {})


def target_in(schema: Schema, target: OpenTarget) -> str:
    """The name of the target beside the columns of a schema, which may not have one."""
    return (
        schema.target or (target.name if target.values is None else None) or _free(target.name or "y", schema.columns)
    )


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _array(rows: NDArray[Any] | SparseBlock, values: Floats | nw.Series[Any], declared: Schema) -> ArraySource:
    """Rows without names, whose columns are those of bounds that were found before, in their order."""
    return ArraySource(rows, values, BoxSchema(_numbers_alone(declared), 1, 1, target_name=declared.target))


def _numbers_alone(declared: Schema | StandardisedLayout) -> tuple[str, ...]:
    """The names of features that rows without names can have."""
    names = tuple(name for name in declared.columns if name != declared.target)
    if not all(isinstance(declared.columns[name], Number) for name in names):
        raise TypeError("these bounds belong to named columns: give X as a pandas, polars or pyarrow table")
    return names


def _inferred(source: Source, target: str | None, person: str | None = None) -> tuple[Schema, Mapping[str, str]]:
    """What the declared types and names of columns tell."""
    from snugdp.tables.schema.infer import declared_types, inferred

    types = {name: dtype for name, dtype in source.types.items() if name != person}
    return inferred(declared_types(types, loaded=source.inferred), target=target)


def with_target(declared: Schema, name: str, kind: Column, intercept: bool) -> Schema:
    """The schema with a target of this kind: that of labels lists the classes in their order."""
    return replace(declared, columns={**declared.columns, name: kind}, target=name, intercept=intercept)


def _checked(source: Source, declared: Schema, left_out: Mapping[str, str]) -> OpenInput:
    declared.check({name: source.type_for_reading(name) for name in source.types})
    return OpenInput(source, declared, left_out)


def open_points(
    X: Any, schema: Schema | None, kind: Callable[[int], Column] | None = None, *, person: str | None = None
) -> OpenInput:
    """As ``open_input`` for rows without a target.

    ``kind``: what the columns of a table hold by their places, where it is not for their types to say.
    """
    frame = eager(X)
    if frame is None and _has_no_names(X, schema is None):
        rows = read_matrix(X)
        declared = declared_points(numbered(rows.shape[1])) if schema is None else unlabelled(schema)
        matrix = MatrixSource(rows, MatrixSchema(_numbers_alone(declared), 1))
        return OpenInput(matrix, declared, {}, rows[:0] if schema is None else None)
    source = open_source(X if frame is None else frame)
    if schema is not None:
        return _checked(source, unlabelled(schema), {})
    if kind is None:
        declared, left_out = _inferred(source, None, person)
    else:
        names = (name for name in source.types if name != person)
        declared, left_out = Schema({name: kind(place) for place, name in enumerate(names)}), {}
    named = X if hasattr(type(X), "set_axis") else None
    return replace(_checked(source, replace(declared, intercept=False), left_out), named=named)


def _has_no_names(X: Any, undescribed: bool) -> bool:
    """Whether it is rows of an array or a list; of what is described by a schema, neither a list of paths."""
    if undescribed:
        return not is_named(X)
    paths = isinstance(X, list | tuple) and all(isinstance(path, str | os.PathLike) for path in X)
    return (isinstance(X, list | tuple | np.ndarray) and not paths) or is_sparse(X)


def labels_frame(X: Any, names: Sequence[str] | None = None) -> nw.DataFrame[Any]:
    """The cells of an array or a list as a frame, to be read as labels: with these names, or numbered ones."""
    import polars as pl

    columns = [pl.Series(cells, dtype=pl.Object if isinstance(cells, list) else None) for cells in _label_columns(X)]
    named = numbered(len(columns)) if names is None else names
    if len(columns) != len(named):
        raise ValueError(
            f"X has {len(columns)} features, but OneHotEncoder is expecting {len(named)} features as input"
        )
    return nw.from_native(pl.DataFrame(dict(zip(named, columns, strict=True))), eager_only=True)


def _label_columns(X: Any) -> list[Any]:
    """Column by column: arrays of numbers, or lists of cells."""
    if is_sparse(X):
        raise TypeError("sparse data are not supported: give a dense array, as X.toarray() makes it")
    listed = undeclared_rows(X)
    if listed is None:
        rows = np.asanyarray(X)
        check_shape(rows)
        if rows.dtype.kind == "c":
            raise ValueError("Complex data not supported: give text, whole numbers or booleans")
        if rows.dtype.kind in "biuf" and not isinstance(rows, np.ma.MaskedArray):
            return list(rows.astype(np.float64).T if rows.dtype.kind == "f" else rows.T)
        listed, width = rows.tolist(), rows.shape[1]
    else:
        width = len(next(iter(grid(listed)), [None]))
    cells = grid(listed, width)
    return [[row[place] for row in cells] for place in range(width)]


def framed(X: Any, names: Sequence[str] | None = None) -> nw.DataFrame[Any]:
    """The rows of an array as a frame: with these names, or numbered ones."""
    import polars as pl

    rows = read_matrix(X)
    columns = numbered(rows.shape[1]) if names is None else names
    if len(columns) != rows.shape[1]:
        raise ValueError(f"the rows have {rows.shape[1]} features, but {len(columns)} are expected")
    dense = np.asarray(rows[:], dtype=np.float64)
    return nw.from_native(pl.DataFrame({name: dense[:, place] for place, name in enumerate(columns)}), eager_only=True)


def declared_points(names: Sequence[str]) -> Schema:
    """What is declared of an array without a target."""
    return Schema(dict.fromkeys(names, Number()), intercept=False)


def standardised_rows(X: Any, layout: StandardisedLayout) -> Iterator[Floats]:
    """The vectors of rows without targets, part by part, in their order."""
    frame = eager(X)
    names = tuple(name for name in layout.columns if name != layout.target)
    if frame is not None:
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise ValueError(f'the rows have no column "{absent[0]}", which the model was fitted on')
        return layout.predictors(frame)
    return (block for part in matrix_blocks(X, layout) for block in layout.predictors(part))


def matrix_blocks(X: Any, layout: Schema | StandardisedLayout) -> Iterator[Block]:
    """The rows of an array, some at a time, with the names that the columns of a layout have."""
    names, rows = _numbers_alone(layout), read_matrix(X)
    if rows.shape[1] != len(names):
        raise ValueError(f"the rows have {rows.shape[1]} features, but {len(names)} are expected")
    places, size = {name: place for place, name in enumerate(names)}, step(len(names))
    return (Block(rows[start : start + size], None, places) for start in range(0, len(rows), size))


def target_name(y: Any) -> str | None:
    """The name that a target has by itself, or that stands for it."""
    return y if isinstance(y, str) else column_name(y)


def declared_numbers(width: int, target: Column, intercept: bool) -> Schema:
    """What is declared of an array with so many columns."""
    layout = ArraySchema(numbered(width), 1, 1)
    columns: dict[str, Column] = {**dict.fromkeys(layout.names, Number()), layout.target: target}
    return Schema(columns, layout.target, intercept)
