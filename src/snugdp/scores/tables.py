"""From what users bring, a model, rows and targets, to a table and how its rows come before the model.

What is refused here depends on shapes, names, declared types and parameters alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.inputs import eager, joined, target_of
from snugdp.estimators.labels import as_numbers, labels_of
from snugdp.estimators.open.tables import framed
from snugdp.mechanisms.scores.images import AnswerScale, Integers
from snugdp.mechanisms.scores.passes import ScoringBatch
from snugdp.tables.cells import Names, labelled, numbers, numeric, type_name
from snugdp.tables.cells import cell as one
from snugdp.tables.cells.columns import cells_of
from snugdp.tables.cells.rows import is_sparse
from snugdp.tables.schema.scaling import floats
from snugdp.tables.sources import Source, TableError, open_source
from snugdp.tables.sources.base import Frame, listed

Form: TypeAlias = Literal["matrix", "frame", "numbers", "labels"]
Question: TypeAlias = Literal["predict_proba", "decision_function", "predict"]
_SPARSE = "scores need a dense array or a table: X.toarray() makes one of a sparse matrix"
_NO_TARGET = 'give y: the targets, or the name of their column in the table, such as score(model, table, "bought", ...)'


@dataclass(frozen=True)
class ModelQuestion:
    """How a model is asked about a batch. ``classes``: to read the labels that it says; none for other answers."""

    model: Any
    method: Question
    classes: Names | None = None
    positive: bool = False  # whether the logit of the second class is asked for

    def __call__(self, rows: Any) -> NDArray[Any]:
        """Its answers, one line for each row: about a copy, as a model may change what it is given and then fail."""
        native = rows.to_native() if isinstance(rows, nw.DataFrame) else rows
        answers = getattr(self.model, self.method)(native.copy() if hasattr(native, "copy") else native)
        if self.classes is not None:
            return as_numbers(self.classes.indices(answers))
        found = np.asarray(answers, dtype=np.float64)
        with np.errstate(all="ignore"):
            return self._scored(found)

    def _scored(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.method == "decision_function":
            return np.arcsinh(found)  # a public monotone map: ranks and signs stay as they are
        if self.positive and self.method == "predict_proba":
            return np.asarray(np.log(found[:, 1]) - np.log(found[:, 0]), dtype=np.float64)
        return found


@dataclass(frozen=True)
class TableReader:
    """The rows of a table as a model gets them, and their targets.

    ``form``: "matrix": numbers in an array; "frame": the columns as they are, for models of ours, which read cell by
    cell; "numbers": a frame of numbers; "labels": a frame of numbers and text, for pipelines. ``names``: the classes,
    if the target is one of them. ``given``: the target holds their indices already. ``scale``: that of a number.
    """

    question: ModelQuestion
    features: tuple[str, ...]
    target: str
    form: Form
    names: Names | None
    given: bool
    scale: AnswerScale

    @property
    def columns(self) -> tuple[str, ...]:
        """The features and the target."""
        return (*self.features, self.target)

    def check(self, source: Source) -> None:
        """Whether the table has these columns, of types that can be read."""
        absent = [name for name in self.columns if name not in source.types]
        if absent:
            raise TableError(f"{source.name} has no column {listed(absent)}; it has {listed(list(source.types))}")
        fits = labelled if self.form == "labels" else numeric
        checked = () if self.form == "frame" else self.features
        wrong = [name for name in checked if not fits(source.type_for_reading(name))]
        if wrong:
            found = type_name(source.types[wrong[0]])
            raise TypeError(f'column "{wrong[0]}" must hold numbers, not {found}: this model takes only numbers')
        fits = numeric if self.names is None or self.given else labelled
        if not fits(source.type_for_reading(self.target)):
            kind = "numbers" if fits is numeric else "labels"
            raise TypeError(f'the target "{self.target}" must hold {kind}, not {type_name(source.types[self.target])}')

    def read(self, frame: Frame) -> Iterator[ScoringBatch]:
        """All rows of a frame."""
        yield ScoringBatch(self._rows(frame), self.question, self._targets(frame))

    def _targets(self, frame: Frame) -> Integers:
        column = frame.get_column(self.target)
        if self.names is not None and not self.given:
            return self.names.indices(column.to_native())
        values = floats(column)
        known = ~np.isnan(values)
        indices = self.names is not None
        cells = np.nan_to_num(values).astype(np.int64) if indices else self.scale.cells(np.nan_to_num(values))
        return np.where(known, cells, -1)

    def _rows(self, frame: Frame) -> Any:
        if self.form == "frame":
            return frame.select(*self.features)
        columns = {name: frame.get_column(name) for name in self.features}
        if self.form == "matrix":
            return np.column_stack([floats(column) for column in columns.values()])
        read = _labels if self.form == "labels" else floats
        return _frame({name: read(column) for name, column in columns.items()})

    def made_up(self) -> Iterator[Any]:
        """Rows that nobody brought, to try the model on before anything is charged."""
        for value in (0.0, 1.0):
            columns = {name: np.full(1, value) for name in self.features}
            yield np.column_stack(list(columns.values())) if self.form == "matrix" else _frame(columns)


@dataclass(frozen=True, repr=False)
class ScoringTable:
    """A table with its target, opened. ``arrays``: whether the rows came without names."""

    source: Source
    target: str
    given: bool
    arrays: bool

    @classmethod
    def of(cls, X: Any, y: Any, classes: Sequence[Any] | None) -> ScoringTable:
        """``y``: the targets, or the name of their column. ``classes``: if the target is one of them."""
        if is_sparse(X):
            raise TypeError(_SPARSE)
        if y is None:
            raise ValueError(_NO_TARGET)
        frame = eager(X)
        if isinstance(y, str):
            return cls(open_source(X if frame is None else frame), y, given=False, arrays=False)
        if frame is None:
            frame, arrays = framed(X), True
        else:
            arrays = False
        values = target_of(y) if classes is None else as_numbers(labels_of(y, classes))
        name = "target"
        while name in frame.columns:
            name += "_"
        return cls(open_source(joined(frame, name, values)), name, given=True, arrays=arrays)


def features_of(model: Any, table: ScoringTable, person: str | None) -> tuple[str, ...]:
    """Those that the model names; otherwise all columns but the target and the identifiers."""
    named = getattr(model, "feature_names_in_", None)
    if named is not None and not table.arrays:
        return tuple(map(str, named))
    found = tuple(name for name in table.source.types if name not in (table.target, person))
    width = getattr(model, "n_features_in_", len(found))
    if len(found) != width:
        raise ValueError(f"the rows have {len(found)} features, but the model was fitted on {width}")
    return found


def _labels(column: nw.Series[Any]) -> NDArray[Any]:
    """The number of each cell, or else its text, or else NaN: each a function of that cell alone."""
    try:
        values = numbers(column.to_native())
    except TypeError:  # a column of declared text or dates
        values = np.full(len(column), np.nan)
    found, rest = values.astype(object), np.isnan(values)
    if rest.any() and not column.dtype.is_numeric():
        texts = (one.text(cell) for cell in cells_of(column.filter(rest.tolist())))
        found[rest] = [np.nan if text is None else text for text in texts]
    return found


def _frame(columns: dict[str, NDArray[Any]]) -> nw.DataFrame[Any]:
    """A frame of pandas where it is installed, for which most pipelines were written; otherwise of polars."""
    if importlib.util.find_spec("pandas") is not None:
        import pandas as pd

        return nw.from_native(pd.DataFrame(columns), eager_only=True)
    import polars as pl

    kinds = {name: pl.Object if values.dtype == object else pl.Float64 for name, values in columns.items()}
    made = {name: pl.Series(values, dtype=kinds[name]) for name, values in columns.items()}
    return nw.from_native(pl.DataFrame(made), eager_only=True)
