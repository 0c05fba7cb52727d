"""A small table of all kinds of columns, and teachers that vote by its rows; workers of Spark can import them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from snugdp.estimators.pate.records import RowRecords
from snugdp.estimators.pate.rows import Form
from snugdp.estimators.pate.tables import table_votes
from snugdp.estimators.pate.teachers import Ballot, Tolerance
from snugdp.tables.sources import open_source

RNG = np.random.default_rng(8)
TEACHERS = 6
DISTINCT = pl.DataFrame(
    {
        "a": [None if i % 17 == 0 else x for i, x in enumerate(RNG.normal(0, 1, 150).tolist())],
        "city": [None if i % 23 == 0 else ["Rome", "Oslo", "Århus", ""][i % 4] for i in range(150)],
        "day": [None if i % 29 == 0 else datetime(2020, 1, 1) + timedelta(days=i % 9) for i in range(150)],
        "b": [i % 5 for i in range(150)],
        "who": [None if i % 3 == 0 else f"person {i % 40}" for i in range(150)],
    }
).with_columns(
    pl.Series("label", ["yes" if x > 0 else ["no", "other"][i % 11 == 0] for i, x in enumerate(RNG.normal(0, 1, 150))])
)
TABLE = pl.concat([DISTINCT, DISTINCT[:80], DISTINCT[:80], DISTINCT[20:30]])  # rows that occur several times
FEATURES = ("a", "city", "day", "b")
QUERIES = DISTINCT.select(FEATURES)[[3, 5, 9, 14, 40, 77]]


class Watchful(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Votes by everything that it has seen, the order of its rows and its seed too. ``fails``: how, for some parts."""

    def __init__(self, random_state: Any = None, fails: Any = None) -> None:
        self.random_state = random_state
        self.fails = fails

    def fit(self, X: Any, y: Any) -> Watchful:
        """Learn a number."""
        cells = [tuple(map(str, row)) for row in (X.rows() if isinstance(X, pl.DataFrame) else X.to_numpy().tolist())]
        seen = repr((cells, list(map(str, y)), self.random_state))
        self.number_ = sum((place + 1) * ord(letter) for place, letter in enumerate(seen))
        if self.fails is not None and self.number_ % 2:
            raise self.fails("somebody's row")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        """Bits of the number."""
        return np.array([["no", "yes"][self.number_ >> place & 1] for place in range(len(X))])


def lines() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression())


def records_of(person: str | None = None, *, key: int = 12345, nan: bool = True, queries: Any = QUERIES) -> RowRecords:
    takes = Tolerance(nan, nan)
    return RowRecords(Form.of(queries), "label", ("no", "yes"), takes, TEACHERS, key, person)


def votes(
    data: Any, model: Any, person: str | None = None, *, n_jobs: Any = None, queries: Any = QUERIES, **how: Any
) -> Any:
    """The votes of the panel about the queries, by the rows of any table."""
    records = records_of(person, queries=queries, **how)
    ballot = Ballot(model, np.arange(TEACHERS), records.form.read(queries), np.array(["no", "yes"]))
    return table_votes(open_source(data), records, ballot, n_jobs=n_jobs, progress=False).tolist()
