"""Logistic regression of a table on a cluster: the same to the last bit, labels and all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugdp import Category, LogisticRegression, Schema, Simulation
from tests.tables.clusters import MARKS, SCHEMA, TABLE, in_files, needs_pyspark, spark_session

pytestmark = MARKS
needs_pyspark()

LABEL = next(name for name, column in SCHEMA.columns.items() if isinstance(column, Category))
BY_LABEL = Schema({name: column for name, column in SCHEMA.columns.items() if name != SCHEMA.target}, target=LABEL)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session("local[2]") as session:
        yield session


def test_the_same_coefficients_as_here(spark: Any, tmp_path: Path) -> None:
    """By the method that reads the table again around a released centre."""
    table = in_files(spark, tmp_path)
    fits = [LogisticRegression(schema=BY_LABEL, noise=Simulation(1)).fit(rows) for rows in (TABLE, table)]
    here, there = fits
    assert np.array_equal(here.coef_, there.coef_)
    assert here.classes_.tolist() == there.classes_.tolist()
