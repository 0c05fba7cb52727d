"""The grid of columns without bounds: as fine for small numbers as for large ones, one function of a number alone."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from snugdp.tables.grid import StepGrid
from snugdp.tables.wide_grid import WideGrid

GRID = WideGrid()
SIZES = np.concatenate([np.exp(np.random.default_rng(1).uniform(-60, 60, 3000)), 2.0 ** np.arange(-30, 70)])


def test_numbers_come_back() -> None:
    numbers = np.concatenate([SIZES[SIZES < 2.0**60], -SIZES[SIZES < 2.0**60]])
    back = np.array([GRID.number(int(cell)) for cell in GRID.cells(numbers, None)])
    assert (np.abs(back - numbers) <= np.maximum(np.abs(numbers) * 2.0**-46, 2.0**-66)).all()


def test_the_order_is_kept_and_cells_are_those_of_their_numbers() -> None:
    numbers = np.sort(np.concatenate([SIZES, -SIZES, [0.0, -0.0, math.inf, -math.inf]]))
    cells = GRID.cells(numbers, None)
    assert (np.diff(cells) >= 0).all()
    inner = cells[(cells > GRID.lower) & (cells < GRID.upper)]
    again = GRID.cells(np.array([GRID.number(int(cell)) for cell in inner]), None)
    assert (again == inner).all()
    assert (GRID.cells(-numbers, None) == -cells).all()


def test_rounding_at_the_edge_of_a_doubling_goes_into_the_next() -> None:
    below = np.nextafter(8.0, 0.0)
    assert GRID.cells(np.array([below, 8.0]), None).tolist() == [GRID.nearest(8, "x")] * 2
    assert GRID.cells(np.array([2.0**-20, np.nextafter(2.0**-20, 0)]), None).tolist() == [1 << 45] * 2


def test_odd_cells_alone() -> None:
    """The image of a cell is the same whatever stands beside it, and nothing is said."""
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 1.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = GRID.cells(odd, 7).tolist()
        assert together == [GRID.cells(odd[i : i + 1], 7).tolist()[0] for i in range(len(odd))]
        assert together[0] == 7
        assert together[1] == GRID.upper
        assert together[2] == GRID.lower
        assert together[3] == together[4] == together[5] == 0
        assert len(GRID.cells(odd, None)) == len(odd) - 1
    assert GRID.cells(np.array([1.5], dtype=np.float32), None).tolist() == GRID.cells(np.array([1.5]), None).tolist()


def test_public_ends() -> None:
    grid = WideGrid.over((0, None))
    assert grid.lower == 0
    assert grid.beyond == (0, 1 << 45)
    assert grid.cells(np.array([-5.0, 3.0]), None).tolist() == [0, GRID.nearest(3, "x")]
    assert WideGrid.over((None, None)) == GRID
    with pytest.raises(ValueError, match=r"below 2\*\*58"):
        WideGrid.over((2**59, None))
    with pytest.raises(ValueError, match=r"below 2\*\*50 steps"):
        StepGrid.over((2**51, None), 1)
    assert StepGrid.over((None, 10), "0.5").beyond == (1 << 51, 0)
