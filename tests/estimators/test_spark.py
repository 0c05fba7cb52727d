"""Models of a table on a cluster: the same to the last bit, also where a released centre makes it be read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugdp import PCA, Category, LogisticRegression, Schema, Simulation
from tests.tables.clusters import MARKS, SCHEMA, TABLE, in_files, needs_pyspark, spark_session

pytestmark = MARKS
needs_pyspark()

LABEL = next(name for name, column in SCHEMA.columns.items() if isinstance(column, Category))
BY_LABEL = Schema({name: column for name, column in SCHEMA.columns.items() if name != SCHEMA.target}, target=LABEL)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session("local[2]") as session:
        yield session


@pytest.mark.parametrize("center", ["bounds", "private"])
def test_the_same_components_as_here(spark: Any, tmp_path: Path, center: str) -> None:
    given = {"schema": SCHEMA, "center": center, "method": "projector"}
    here, there = (PCA(2, **given, noise=Simulation(1)).fit(rows) for rows in (TABLE, in_files(spark, tmp_path)))
    assert np.array_equal(here.components_, there.components_)
    assert np.array_equal(here.mean_, there.mean_)


def test_the_same_coefficients_as_here(spark: Any, tmp_path: Path) -> None:
    """By the method that reads the table again around a released centre, labels and all."""
    tables = (TABLE, in_files(spark, tmp_path))
    here, there = (LogisticRegression(schema=BY_LABEL, noise=Simulation(1)).fit(rows) for rows in tables)
    assert np.array_equal(here.coef_, there.coef_)
    assert here.classes_.tolist() == there.classes_.tolist()
