"""Numbers, centred and scaled privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from snugdp.estimators.transformers.base import Floats, PrivateTransformer
from snugdp.tables.cells import matrix
from snugdp.tables.found import FoundColumn, FoundNumber
from snugdp.tables.schema.kinds import Column, Number
from snugdp.tables.schema.schema import Schema


@dataclass(eq=False, repr=False)
class StandardScaler(PrivateTransformer):
    """Numbers less their mean, divided by their standard deviation, both found with differential privacy.

    Numbers are clipped to bounds that are found as well; what is missing, or no number, becomes the mean, which is 0.
    A column of which too few rows lie together is not found, and all 0. ``snugdp.Prepare`` takes columns of all kinds.

    Guarantee: each fit is (epsilon, delta)-DP in its relation; the theorem is ``guarantee_.theorem``. Nothing is ever
    refused because of the rows. Not covered: what ``transform`` returns for private rows is as private as they are.

    Parameters
    ----------
    epsilon, delta : Real
        Privacy budget and failure probability of each fit; 1 and 1e-6 by default, both above 0.
    schema : Schema, optional
        Numbers of a table, with the bounds of them that are known. Without one all columns must hold numbers.
    bounds : "private" or FoundBounds
        "private" finds them; those of an earlier fit, ``bounds_``, cost nothing.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    mean_, scale_, var_ : ndarray
        About the mean, the standard deviation and the variance of every column, as released: from counts in 32 parts
        of its range.
    n_samples_seen_ : float
        About the number of rows, as released.
    bounds_, x_norm_, released_, plan_, outcome_, cost_, receipt_, guarantee_, n_features_in_, feature_names_in_
        As in ``Prepare``.

    Examples
    --------
    >>> X = [[i % 10, i % 7 * 100] for i in range(20_000)]
    >>> scaler = StandardScaler(epsilon=1, delta=1e-6).fit(X)
    >>> bool(abs(scaler.mean_[0] - 4.5) < 1), float(scaler.transform([[None, 300.0]])[0, 0])
    (True, 0.0)
    """

    def _kind(self, place: int) -> Column:
        return Number()

    def _declared(self, schema: Schema) -> Schema:
        if not all(isinstance(kind, Number) for kind in schema.columns.values()):
            raise TypeError("StandardScaler is for numbers: snugdp.Prepare takes columns of all kinds")
        return super()._declared(schema)

    def _describe(self, found: list[FoundColumn]) -> None:
        pairs = [(column.centre, column.scale) for column in found if isinstance(column, FoundNumber)]
        self.mean_, self.scale_ = (np.array(part) for part in zip(*pairs, strict=True))
        self.var_ = self.scale_**2
        self.n_samples_seen_ = float(self.bounds_.rows)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows in the units of the table, from scaled ones."""
        self._require_release()
        given = matrix(X)
        if given.shape[1] != len(self.mean_):
            raise ValueError(f"X must have {len(self.mean_)} columns, one for each feature")
        with np.errstate(all="ignore"):  # a warning would depend on private values
            rows: Floats = np.asarray(given, dtype=np.float64) * self.scale_ + self.mean_
        return rows
