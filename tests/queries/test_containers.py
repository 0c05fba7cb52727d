"""The same rows in any container give the same answer, in any order, and missing rows follow the documented rule."""

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import snugdp
from snugdp import Simulation
from snugdp.tables.cells import Names, numbers
from snugdp.tables.grid import Grid

ROWS = [float(i % 37) + 0.25 for i in range(999)]


def containers(rows: list[Any]) -> dict[str, Any]:
    return {
        "list": rows,
        "tuple": tuple(rows),
        "numpy": np.array(rows),
        "float32": np.array(rows, dtype=np.float32),
        "strided": np.repeat(np.array(rows), 2)[::2],
        "objects": np.array(rows, dtype=object),
        "pandas": pd.Series(rows),
        "pandas nullable": pd.Series(rows, dtype="Float64"),
        "pandas arrow": pd.Series(rows, dtype="double[pyarrow]"),
        "polars": pl.Series(rows),
        "arrow": pa.array(rows),
        "arrow chunks": pa.chunked_array([rows[:400], rows[400:]]),
    }


@pytest.mark.parametrize("kind", containers(ROWS))
def test_every_container_reads_alike(kind: str) -> None:
    assert numbers(containers(ROWS)[kind]).tolist() == ROWS
    arguments: dict[str, Any] = {"bounds": (0, 40), "epsilon": 1, "delta": 1e-6, "neighbours": "replace"}
    one = snugdp.median(containers(ROWS)[kind], **arguments, noise=Simulation(3))
    assert one == snugdp.median(ROWS[::-1], **arguments, noise=Simulation(3))


@pytest.mark.parametrize(
    "column",
    [
        [1, None, 3],
        np.array([1, math.nan, 3]),
        pd.Series([1, None, 3]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype="int64[pyarrow]"),
        pl.Series([1, None, 3]),
        pa.array([1, None, 3]),
        pl.Series([1.0, math.nan, 3.0]),
    ],
    ids=lambda column: f"{type(column).__module__}-{getattr(column, 'dtype', '')}",
)
def test_missing_rows_become_the_lower_bound_or_what_was_asked(column: Any) -> None:
    grid = Grid.between((0, 8))
    cells = grid.integers(numbers(column), grid.lower)
    assert [grid.number(int(cell)) for cell in cells] == [1, 0, 3]
    assert grid.number(int(grid.integers(numbers(column), grid.nearest(5, "missing"))[1])) == 5


@pytest.mark.parametrize("column", [[True, False, True], np.array([True, False, True]), pl.Series([True, False, True])])
def test_truth_values_are_zero_and_one(column: Any) -> None:
    assert numbers(column).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "a", None, "z"],
        np.array(["a", "b", "a", "y", "z"]),
        np.array(["a", "b", "a", None, "z"], dtype=object),
        pd.Series(["a", "b", "a", None, "z"]),
        pd.Series(["a", "b", "a", None, "z"], dtype="category"),
        pl.Series(["a", "b", "a", None, "z"]),
        pl.Series(["a", "b", "a", None, "z"], dtype=pl.Categorical),
        pa.array(["a", "b", "a", None, "z"]),
    ],
    ids=lambda labels: f"{type(labels).__module__}-{getattr(labels, 'dtype', '')}",
)
def test_labels_are_counted_alike(labels: Any) -> None:
    assert Names(["a", "b", "c"]).counts(labels).tolist() == [2, 1, 0]


def test_whole_number_labels() -> None:
    for labels in ([1, 1, 2], np.array([1, 1, 2]), pl.Series([1, 1, 2]), range(1, 3)):
        assert Names([2, 1]).counts(labels)[0] == 1


@pytest.mark.parametrize(
    "bounds", [(0, 1), (-1, 1), (0, 120), (0.1, 0.3), (1e9, 1e9 + 1), (-1e-9, 1e-9), (-5, "1e200")]
)
def test_the_grid_is_float_resolution_at_the_larger_bound(bounds: Any) -> None:
    grid = Grid.between(bounds)
    assert max(abs(grid.lower), abs(grid.upper)) <= 2**52
    assert max(abs(grid.lower), abs(grid.upper)) > 2**51 - 1
    low, high = float(bounds[0]), float(bounds[1])
    values = np.array([low, high, -1e308, 1e308, math.nan, (low + high) / 2])
    back = [grid.number(int(cell)) for cell in grid.integers(values, grid.lower)]
    tolerance = float(grid.unit)
    assert back == pytest.approx([low, high, low, high, low, (low + high) / 2], abs=tolerance)
    assert all(low - tolerance <= value <= high + tolerance for value in back)


def test_a_row_has_the_same_cell_wherever_it_stands() -> None:
    grid = Grid.between((-3, 11))
    values = np.random.default_rng(0).normal(4, 5, 5000)
    cells = grid.integers(values, grid.lower)
    order = np.random.default_rng(1).permutation(5000)
    assert (grid.integers(values[order], grid.lower) == cells[order]).all()
    assert [int(grid.integers(values[i : i + 1], 0)[0]) for i in range(50)] == cells[:50].tolist()


def test_answers_are_close_when_the_noise_is_small() -> None:
    rows = np.random.default_rng(5).normal(50, 10, 200_000)
    common: dict[str, Any] = {"bounds": (0, 100), "epsilon": 2, "delta": 1e-6, "neighbours": "replace"}
    assert snugdp.median(rows, **common).value == pytest.approx(np.median(rows), abs=1.5)
    assert snugdp.quantile(rows, 0.75, **common).value == pytest.approx(np.quantile(rows, 0.75), abs=1.5)
    assert snugdp.trimmed_mean(rows, trim=0.1, **common).value == pytest.approx(50, abs=0.2)
