"""PCA of a table on a cluster: the same to the last bit, also where a released centre makes it be read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugdp import PCA, Simulation
from tests.tables.clusters import MARKS, SCHEMA, TABLE, in_files, needs_pyspark, spark_session

pytestmark = MARKS
needs_pyspark()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session("local[2]") as session:
        yield session


@pytest.mark.parametrize("center", ["bounds", "private"])
def test_the_same_components_as_here(spark: Any, tmp_path: Path, center: str) -> None:
    table = in_files(spark, tmp_path)
    here = PCA(2, schema=SCHEMA, center=center, method="projector", noise=Simulation(1)).fit(TABLE)
    there = PCA(2, schema=SCHEMA, center=center, method="projector", noise=Simulation(1)).fit(table)
    assert np.array_equal(here.components_, there.components_)
    assert np.array_equal(here.mean_, there.mean_)
