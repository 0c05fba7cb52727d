"""Cells of public grids."""

from __future__ import annotations

import numpy as np
import pytest

from snugdp.tables.grid import Grid, StepGrid

GRIDS = [Grid.between((0, "1.1")), Grid.between(("-1.7", "1.7")), StepGrid.between((0, 2**31 - 57), 1)]


@pytest.mark.parametrize("grid", GRIDS, ids=["zero-to-1.1", "both-signs", "whole"])
@pytest.mark.parametrize("missing", [None, 0])
def test_cells_of_single_precision_stay_between_the_bounds(grid: Grid | StepGrid, missing: int | None) -> None:
    # the ends of a grid have up to 52 bits: single precision would round them outwards, by millions of cells
    values = np.array([-np.inf, -3e38, -0.3, 0.0, 0.7, 3e38, np.inf], dtype=np.float32)
    cells = grid.cells(values, missing)
    assert cells.min() == grid.lower
    assert cells.max() == grid.upper
    assert cells.tolist() == grid.cells(values.astype(np.float64), missing).tolist()
