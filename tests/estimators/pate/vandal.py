"""A teacher that writes over what it is given. Workers, which are other processes, import this file and no test."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin


class Vandal(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Writes over everything that it is given, and fails if what it is given was written over."""

    def fit(self, X: Any, y: Any) -> Vandal:
        self.classes_ = np.unique(y)
        _spoil(X)
        _spoil(y)
        return self

    def predict(self, X: Any) -> Any:
        if (X.to_numpy() if hasattr(X, "iloc") else X.toarray() if issparse(X) else X).astype(float).max() > 100:
            raise ValueError("written over")
        _spoil(X)
        return np.full(X.shape[0], self.classes_[-1])


def _spoil(rows: Any) -> None:
    if hasattr(rows, "iloc"):
        rows.iloc[:, :] = 12345.0
        rows["more"] = 5
    elif issparse(rows):
        rows.data[:], rows.indices[:] = 12345.0, 0
    else:
        rows[:] = 12345
