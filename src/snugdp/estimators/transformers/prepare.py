"""A table made ready for any model: numbers, categories, dates and gaps, by one charged look."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from snugdp.estimators.open.tables import OpenInput, open_points
from snugdp.estimators.transformers.base import PrivateTransformer
from snugdp.tables.schema.kinds import Column, Number
from snugdp.tables.schema.missing import Policies
from snugdp.tables.schema.schema import Schema


@dataclass(eq=False, repr=False)
class Prepare(PrivateTransformer):
    """A table made ready with differential privacy: the first step of a pipeline.

    A fit finds bounds, centres and scales of numbers and dates, and the levels of categories, by noisy counts of all
    columns at once. ``transform`` clips numbers, subtracts the centre and divides by the scale; a category has an entry
    for every level, 0 but for the level of the row, where it is one over the standard deviation of that entry (a level
    that is not known has 0 everywhere); a boolean is 1 or -1; a date is a number of days, with sines and cosines for
    its parts. Rows are read bit by bit as a private model reads them whose bounds were found.

    Columns of a table are what their declared types say, unless a schema declares them; identifiers, free text and
    types that cannot be read are left out (``left_out_``). What is missing becomes 0, and has an entry of its own on
    request. Rows are never dropped.

    Guarantee: each fit is (epsilon, delta)-DP in its relation; the theorem is ``guarantee_.theorem``. A table
    of which no column has a declared type is refused, and paid for, if nothing can be told of any; no other is. Not
    covered: what ``transform`` returns for private rows is as private as they are. A
    model behind it pays for itself, or is not private.

    Parameters
    ----------
    epsilon, delta : Real
        Privacy budget and failure probability of each fit; 1 and 1e-6 by default, both above 0.
    schema : Schema, optional
        What is known of the columns; what it leaves open is found. Its target is left out.
    bounds : "private" or FoundBounds
        "private" finds them; those of an earlier fit, ``bounds_``, cost nothing.
    missing : {"centre", "indicator"} or mapping of str to one of them, optional
        What becomes of missing cells, for all columns or by column; "indicator" adds an entry for it. By default as
        the schema says, or "centre". "drop" is for models.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    bounds_ : FoundBounds
        What was found; models take it as ``bounds=`` at no cost.
    x_norm_ : float
        No transformed row is longer: public once the fit is released, for models that ask for ``x_norm``.
    left_out_ : dict
        Columns that are not used, and why.
    released_, plan_, outcome_, cost_, receipt_, guarantee_, n_features_in_, feature_names_in_
        As in ``LinearRegression``.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"age": [20, 30, 40, 50] * 5_000, "city": ["Oslo", "Rome", "Rome", None] * 5_000})
    >>> prepare = Prepare(epsilon=1, delta=1e-6).set_output(transform="polars").fit(table)
    >>> prepare.transform(table).columns
    ['age', 'city=Oslo', 'city=Rome']
    """

    missing: Policies | None = None

    def _kind(self, place: int) -> Column:
        return Number()

    def _points(self, X: Any, person: str | None) -> OpenInput:
        return open_points(X, self._schema, person=person)

    def _declared(self, schema: Schema) -> Schema:
        return super()._declared(schema if self.missing is None else replace(schema, missing=self.missing))
