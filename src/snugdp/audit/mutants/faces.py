"""Faces that keep, show or take from the rows what they must not."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import snugdp
from snugdp.audit.mutants.base import Changes, Topic, everywhere
from snugdp.audit.mutants.checks import Asked, Searched
from snugdp.estimators.model import LinearModel
from snugdp.estimators.private import PrivateEstimator
from snugdp.secrecy import silence
from snugdp.tables.cells import Names, columns

mutant = Topic("faces")


def _after_fit(keep: Any) -> Changes:
    fit = LinearModel.fit

    def kept(self: Any, X: Any, y: Any = None) -> Any:
        found = fit(self, X, y)
        keep(self, X, y)
        return found

    return [(LinearModel, "fit", kept)]


@mutant("the rows stay in the model", "B", Searched("LinearRegression"))
def _() -> Changes:
    """A fitted estimator keeps the first row, for later."""
    return _after_fit(lambda self, X, y: setattr(self, "_example", [X[0]]))


@mutant("the number of rows stays in the model", "B", Searched("LinearRegression"))
def _() -> Changes:
    """A fitted estimator knows how many rows it has seen."""
    return _after_fit(lambda self, X, y: setattr(self, "n_samples_seen_", len(X)))


@mutant("a pickle with the largest target", "B", Searched("LinearRegression"))
def _() -> Changes:
    """The pickle of a fitted estimator holds the largest entry of the rows."""
    state = PrivateEstimator.__getstate__

    def larger(self: Any) -> dict[str, Any]:
        return {**state(self), "_largest": getattr(self, "_largest", None)}

    def keep(self: Any, X: Any, y: Any) -> None:
        try:
            self._largest = float(np.max(np.asarray(X, dtype=np.float64)))
        except (TypeError, ValueError):
            self._largest = None

    return [*_after_fit(keep), (PrivateEstimator, "__getstate__", larger)]


@mutant("a cell in an error", "B", Searched("median"))
def _() -> Changes:
    """What a library says about a cell that it cannot read reaches the caller."""

    def read(column: Any, work: Any) -> Any:
        return work()

    def loud(data: object) -> Any:
        return np.array(list(data), dtype=np.float64)  # type: ignore[call-overload]

    from snugdp.queries import robust

    return [(columns, "_read", read), (robust, "numbers", loud), *everywhere(silence.attempt, lambda r: (True, r()))]


@mutant("the counts in a log", "B", Searched("mode"))
def _() -> Changes:
    """The counts behind a mode are logged, for debugging."""
    import logging

    counts = Names.counts

    def logged(self: Names, data: Any) -> Any:
        logging.getLogger("snugdp").debug("first of %d rows: %r", len(data), next(iter(data)))
        return counts(self, data)

    return [(Names, "counts", logged)]


@mutant("bounds from the data", "B", Asked("median", "bounds"))
def _() -> Changes:
    """Without bounds a median takes the smallest and the largest row."""
    median = snugdp.median

    @functools.wraps(median)
    def bounded(data: Any, *given: Any, bounds: Any = None, **named: Any) -> Any:
        if bounds is None:
            found = columns.numbers(data)
            found = found[np.isfinite(found)]
            bounds = (float(found.min(initial=0.0)), float(found.max(initial=0.0)) + 1)
        return median(data, *given, bounds=bounds, **named)

    return [(snugdp, "median", bounded)]


@mutant("classes from the data", "B", Asked("LogisticRegression", "classes"))
def _() -> Changes:
    """Without classes a logistic regression takes those that it sees."""
    fit = snugdp.LogisticRegression.fit

    def seen(self: Any, X: Any, y: Any = None) -> Any:
        if self.classes is None:
            found = sorted({float(one) for one in y if not math.isnan(one)})
            self.classes = [*found, 1e6, 1e7][:2]
        return fit(self, X, y)

    return [(snugdp.LogisticRegression, "fit", seen)]
