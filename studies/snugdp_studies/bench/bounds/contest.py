"""Fits that find their bounds in private, beside fits whose public bounds are the true minima and maxima.

Those maxima are a gift that no user has. In return they are often outliers, so that a fit without them can be better.
Scores are taken on the rows of the fit, as the literature does: R squared for numbers, the log-loss for labels.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.estimators.linear import LinearRegression
from snugdp.estimators.logistic import LogisticRegression
from snugdp.noise import Simulation
from snugdp.tables.schema.schema import Category, Number, Schema
from snugdp_studies.bench.bounds.tables import Floats, Table, load

NOTE = (
    "NOT PRIVATE: seeded noise. Scores on the rows of the fit, the median of {draws} draws (the worst). public: the "
    "true minima and maxima as bounds, and predictions kept inside those of the target. A fit that releases nothing "
    "predicts the mean."
)
GOALS = (
    "Goals: lose less than 2 % to public bounds where rows times epsilon exceed 20,000, at most 5 % at 2,000 rows, 10 "
    "columns and epsilon 1. At epsilon ln 3, delta 1e-5: R squared of .996 on the synthetic table of 22,000 rows, .635 "
    "on California housing, .906 on diamonds, .74 on bike, .755 on elevators."
)
_SHARE = 0.6  # of the rows have the first label
_LEAST = 1e-15  # a probability that is not 0

Fit: TypeAlias = Callable[[Table, float, float, int], float]


@dataclass(frozen=True)
class BoundsSetting:
    """Which tables, budgets and draws."""

    data: str
    tables: Sequence[str]
    epsilons: Sequence[float]
    delta: float
    rows: int
    draws: int
    labels: bool = False


@dataclass(frozen=True)
class BoundsComparison:
    """All scores of one table and budget, by contender; ``larger``: whether a larger score is better."""

    table: str
    rows: int
    columns: int
    epsilon: float
    scores: Mapping[str, Sequence[float]]
    larger: bool

    def middle(self, name: str) -> float:
        """The median."""
        return median(self.scores[name])

    def worst(self, name: str) -> float:
        """The least or the largest."""
        return min(self.scores[name]) if self.larger else max(self.scores[name])

    @property
    def loss(self) -> float | None:
        """What is lost to public bounds, as a part of their score; None where theirs is worth nothing."""
        public, private = self.middle("public"), self.middle("private")
        if public <= 0:
            return None
        return (public - private if self.larger else private - public) / public


def run(setting: BoundsSetting, contenders: Mapping[str, Fit] | None = None) -> Iterator[BoundsComparison]:
    """Every table and budget in turn."""
    fits = contenders or (LABELS if setting.labels else NUMBERS)
    for name in setting.tables:
        X, y = load(setting.data, name, setting.rows)
        table = (X, (y > np.quantile(y, _SHARE)).astype(np.float64)) if setting.labels else (X, y)
        for epsilon in setting.epsilons:
            scores = {
                contender: [fit(table, epsilon, setting.delta, seed) for seed in range(setting.draws)]
                for contender, fit in fits.items()
            }
            yield BoundsComparison(name, len(X), X.shape[1], epsilon, scores, larger=not setting.labels)


# ---- numbers


def public_numbers(table: Table, epsilon: float, delta: float, seed: int) -> float:
    """With public bounds."""
    X, y = table
    schema = Schema({**_columns(X), "y": Number(*_ends(y))}, target="y")
    model = LinearRegression(epsilon, delta, schema=schema, noise=Simulation(seed)).fit(_frame(X, y))
    return r_squared(y, _predicted(model, _frame(X), y, lambda found: np.clip(found, *_ends(y))))


def private_numbers(table: Table, epsilon: float, delta: float, seed: int) -> float:
    """With nothing but the rows."""
    X, y = table
    model = LinearRegression(epsilon, delta, noise=Simulation(seed)).fit(X, y)
    return r_squared(y, _predicted(model, X, y))


def r_squared(y: Floats, found: Floats) -> float:
    """One, less the mean squared error over the variance."""
    return 1 - float(np.mean((y - found) ** 2) / y.var())


def _predicted(model: Any, X: Any, y: Floats, keep: Callable[[Floats], Floats] = np.asarray) -> Floats:
    return keep(np.asarray(model.predict(X), dtype=np.float64)) if model.released_ else np.full_like(y, y.mean())


# ---- labels


def public_labels(table: Table, epsilon: float, delta: float, seed: int) -> float:
    """With public bounds."""
    X, y = table
    schema = Schema({**_columns(X), "y": Category([0, 1])}, target="y")
    frame = _frame(X).with_columns(y=pl.Series(y.astype(np.int64)))
    model = LogisticRegression(epsilon, delta, schema=schema, noise=Simulation(seed)).fit(frame)
    return log_loss(y, model.predict_proba(_frame(X)))


def private_labels(table: Table, epsilon: float, delta: float, seed: int) -> float:
    """With nothing but the rows and the two labels."""
    X, y = table
    model = LogisticRegression(epsilon, delta, classes=[0, 1], noise=Simulation(seed)).fit(X, y.astype(np.int64))
    return log_loss(y, model.predict_proba(X))


def log_loss(y: Floats, found: NDArray[Any]) -> float:
    """The mean over the rows."""
    chance = np.asarray(found, dtype=np.float64)[np.arange(len(y)), y.astype(np.int64)]
    return -float(np.mean(np.log(np.maximum(chance, _LEAST))))


NUMBERS: Mapping[str, Fit] = {"public": public_numbers, "private": private_numbers}
LABELS: Mapping[str, Fit] = {"public": public_labels, "private": private_labels}


def _columns(X: Floats) -> dict[str, Any]:
    return {f"x{place}": Number(*_ends(column)) for place, column in enumerate(X.T)}


def _ends(column: Floats) -> tuple[float, float]:
    """The least and the largest value; a constant gets some room."""
    low, high = float(column.min()), float(column.max())
    return (low, high) if low < high else (low - 1, high + 1)


def _frame(X: Floats, y: Floats | None = None) -> pl.DataFrame:
    columns = {f"x{place}": column for place, column in enumerate(X.T)}
    return pl.DataFrame(columns if y is None else columns | {"y": y})
