"""Categories as entries of 0 and 1, with levels found privately."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snugdp.estimators.inputs import eager
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.open.tables import OpenInput, labels_frame, open_points
from snugdp.estimators.transformers.base import Floats, PrivateTransformer
from snugdp.tables.found import FoundColumn, FoundLevels
from snugdp.tables.schema.kinds import Category, Column
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import is_named


@dataclass(eq=False, repr=False)
class OneHotEncoder(PrivateTransformer):
    """An entry of 0 or 1 for every level of every category, where levels are found with differential privacy.

    A level that too few rows have stays unknown: like a missing cell, such a row is 0 everywhere. Text, whole numbers
    and booleans can be levels; 1, 1.0, True and "1" are one of them. What comes out is dense.

    Guarantee: each fit is (epsilon, delta)-DP in its relation; the theorem is ``guarantee_.theorem``. Levels that are
    listed cost nothing. Nothing is ever refused because of the rows. Not covered: what ``transform`` returns for
    private rows is as private as they are.

    Parameters
    ----------
    epsilon, delta : Real
        Privacy budget and failure probability of each fit; 1 and 1e-6 by default, both above 0.
    categories : "auto" or list
        "auto" finds the levels of all columns; a list has the public levels of every column, None for one whose levels
        are to be found.
    schema : Schema, optional
        Categories of a table by their names, instead of ``categories``.
    bounds : "private" or FoundBounds
        "private" finds the levels; those of an earlier fit, ``bounds_``, cost nothing.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    categories_ : list of ndarray
        The levels of every column, in ascending order, or as they were listed.
    bounds_, released_, plan_, outcome_, cost_, receipt_, guarantee_, n_features_in_, feature_names_in_
        As in ``Prepare``.

    Examples
    --------
    >>> X = [["Oslo"], ["Rome"], ["Rome"], ["a hamlet"]] + [["Oslo"], ["Rome"]] * 1000
    >>> encoder = OneHotEncoder(epsilon=1, delta=1e-6).fit(X)
    >>> encoder.categories_
    [array(['Oslo', 'Rome'], dtype=object)]
    >>> encoder.transform([["Rome"], ["a hamlet"]])
    array([[0., 1.],
           [0., 0.]])
    """

    categories: str | Sequence[Sequence[Hashable] | None] = "auto"

    def _kind(self, place: int) -> Column:
        if isinstance(self.categories, str):
            if self.categories != "auto":
                raise ValueError('categories must be "auto", or a list with the levels of every column')
            return Category()
        if place >= len(self.categories):
            raise ValueError(
                f"categories must list the levels of every column; it lists those of {len(self.categories)}"
            )
        listed = self.categories[place]
        return Category() if listed is None else Category(np.asarray(listed).tolist())

    def _declared(self, schema: Schema) -> Schema:
        if not all(isinstance(kind, Category) for kind in schema.columns.values()):
            raise TypeError("OneHotEncoder is for categories: snugdp.Prepare takes columns of all kinds")
        if not isinstance(self.categories, str):
            if self._schema is not None:
                raise ValueError("the schema, or the bounds found before, list the levels: leave out categories")
            if len(self.categories) != len(schema.columns):
                raise ValueError("categories must list the levels of every column, and no more")
        return super()._declared(schema)

    _usual = False  # its entries are 0 for levels that are not known

    def _points(self, X: Any, person: str | None) -> OpenInput:
        if eager(X) is not None or is_named(X):
            return super()._points(X, person)
        schema = self._schema
        frame = labels_frame(X, None if schema is None else list(schema.columns))
        named = np.empty((0, len(frame.columns))) if schema is None else None
        return replace(open_points(frame, schema, self._kind), named=named)

    @row_by_row("features")
    def transform(self, X: Any) -> Floats:
        """The entries of all rows. As private as the rows are."""
        self._require_release()
        if eager(X) is None:
            X = labels_frame(X, list(self._layout.columns))
        entries: Floats = np.where(super().transform(X) != 0, 1.0, 0.0)
        return entries

    def _describe(self, found: list[FoundColumn]) -> None:
        levels = (column.values for column in found if isinstance(column, FoundLevels))
        self.categories_ = [np.array(values, dtype=object) for values in levels]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
