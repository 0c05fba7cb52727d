"""Counts of values: exact however a table is cut, each row by itself, on every engine."""

from __future__ import annotations

import math
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import Local, measure, merged, numeric_source
from snugdp.tables.grid import Grid, StepGrid
from snugdp.tables.passes.counts.value_counts import ColumnCells, GatheredCounts, ValueCounts
from snugdp.tables.sources import TableError, open_source

WORK = ColumnCells("x", StepGrid.between((-5, 5), 1))
CELLS = [1.0, 2.0, math.nan, 2.4, math.inf, -99.0, 2.0]


def counted(state: GatheredCounts) -> dict[int, int]:
    found = state.total()
    return dict(zip(found.values.tolist(), found.counts.tolist(), strict=True))


def folded(work: ColumnCells, rows: list[float]) -> GatheredCounts:
    return work.fold(work.empty(), nw.from_native(pl.DataFrame({"x": np.array(rows, dtype=float)}), eager_only=True))


def test_rows_are_rounded_clipped_and_left_out_one_by_one() -> None:
    assert counted(folded(WORK, CELLS)) == {-5: 1, 1: 1, 2: 3, 5: 1}
    assert counted(folded(ColumnCells("x", WORK.grid, 4), CELLS)) == {-5: 1, 1: 1, 2: 3, 4: 1, 5: 1}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.floats(-6, 6), max_size=9), max_size=9), st.randoms())
def test_parts_in_any_order_make_the_whole(parts: list[list[float]], random: Any) -> None:
    whole = counted(folded(WORK, [row for part in parts for row in part]))
    states = [folded(WORK, part) for part in parts]
    random.shuffle(states)
    packed = [WORK.unpack(WORK.pack(state)) for state in states]
    assert counted(merged(WORK, packed)) == whole
    assert sum(whole.values()) == sum(map(len, parts))


def test_many_small_parts_take_little_time() -> None:
    """Parts are of falling size, so that a row is merged a few times and not once for every part."""
    state = WORK.empty()
    for start in range(0, 3000, 3):
        state = state.add(ValueCounts.of(np.arange(start, start + 3)))
        sizes = [len(part.values) for part in state._parts]
        assert all(one > 2 * other for one, other in pairwise(sizes))
    assert state.total().rows == 3000


@pytest.mark.parametrize("grid", [Grid.between((0, 1000)), StepGrid.between((0, 1000), "0.5")])
def test_engines_and_files_agree_with_arrays(grid: Any, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(500, 200, 20_000).round(1)
    rows[::97] = math.nan
    table = pl.DataFrame({"x": rows, "y": rows})
    table.write_parquet(tmp_path / "t.parquet", row_group_size=1000)
    table.write_csv(tmp_path / "t.csv")
    work = ColumnCells("x", grid)
    values, counts = np.unique(grid.cells(rows, None), return_counts=True)
    for data in (table, pd.DataFrame({"x": rows}), tmp_path / "t.parquet", tmp_path / "t.csv"):
        for found in (unwrap(measure(data, work)), Local(threads=3).run(open_source(data), work)):
            assert found.total().values.tolist() == values.tolist()
            assert found.total().counts.tolist() == counts.tolist()


def test_what_is_wrong_in_public_is_said() -> None:
    with pytest.raises(TableError, match="no column"):
        measure(pl.DataFrame({"y": [1.0]}), WORK)
    with pytest.raises(TypeError, match='"x" must hold numbers'):
        numeric_source(pl.DataFrame({"x": [date(2026, 1, 1)]}), WORK.columns)
    for wrong in (b"", b"value-counts/1\nabc", WORK.pack(folded(WORK, CELLS))[:-1]):
        with pytest.raises(ValueError, match="bytes"):
            WORK.unpack(wrong)


def test_nothing_is_shown() -> None:
    state = folded(WORK, CELLS)
    assert repr(state) == "<private gatheredcounts>"
    assert repr(state.total()) == "<private valuecounts>"


@pytest.mark.parametrize(
    ("bounds", "step", "message"),
    [((0, 10), 0, "greater than 0"), ((0, 10), 11, "two multiples"), ((0, 10), 1e-20, "too small")],
)
def test_steps_that_make_no_grid(bounds: tuple[int, int], step: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StepGrid.between(bounds, step)


def test_a_step_grid_has_the_multiples_between_its_bounds() -> None:
    grid = StepGrid.between((-0.95, 2), "0.1")
    assert (grid.lower, grid.upper, grid.width) == (-9, 20, 29)
    assert [grid.number(cell) for cell in (-99, -9, 3, 20, 99)] == [-0.9, -0.9, 0.3, 2.0, 2.0]
    assert grid.cells(np.array([0.3, 0.30000000000000004, 0.1 + 0.2]), None).tolist() == [3, 3, 3]
    assert grid.nearest(0.72, "missing") == 7
    with pytest.raises(ValueError, match="missing must lie"):
        grid.nearest(3, "missing")
