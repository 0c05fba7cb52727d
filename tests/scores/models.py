"""Models of others: public, by hand, and some that misbehave."""

import warnings
from typing import Any

import numpy as np


class Panic(BaseException):
    """As native libraries raise it."""


class Threshold:
    """The larger the first entry, the more probable is the second class."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X: Any) -> Any:
        p = 1 / (1 + np.exp(-4 * np.asarray(X, dtype=np.float64)[:, 0]))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: Any) -> Any:
        return (self.predict_proba(X)[:, 1] >= 0.5).astype(int)


class Told(Threshold):
    """Labels alone."""

    predict_proba = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "predict_proba":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def predict(self, X: Any) -> Any:
        return (np.asarray(X, dtype=np.float64)[:, 0] >= 0).astype(int)


class Ranked(Told):
    """A decision function."""

    def decision_function(self, X: Any) -> Any:
        return np.asarray(X, dtype=np.float64)[:, 0]


class Hostile(Threshold):
    """Says what it saw in every way it can, and fails on rows above 2."""

    def __init__(self, error: Any) -> None:
        self.error = error

    def predict_proba(self, X: Any) -> Any:
        rows = np.asarray(X, dtype=np.float64)
        if (rows[:, 0] > 2).any():
            warnings.warn(f"saw {rows}", stacklevel=1)
            raise self.error(f"saw {rows}")
        return super().predict_proba(rows)


class Failing(Threshold):
    """Answers nothing."""

    def predict_proba(self, X: Any) -> Any:
        raise RuntimeError(f"made up: {X}")


class Ranks(Threshold):
    """Scores a row by its rank among the rows beside it."""

    def predict_proba(self, X: Any) -> Any:
        rows = np.asarray(X, dtype=np.float64)[:, 0]
        p = (np.argsort(np.argsort(rows)) + 1) / (len(rows) + 1)
        return np.stack([1 - p, p], axis=1)


class Line:
    """A number: twice the first entry."""

    def predict(self, X: Any) -> Any:
        return 2 * np.asarray(X, dtype=np.float64)[:, 0]


def rows_of(number: int, seed: int = 1) -> tuple[Any, Any]:
    """Rows with two entries, and labels that the first one tells about."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(number, 2))
    return X, (generator.random(number) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
