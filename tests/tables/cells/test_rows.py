"""Rows by features: a row of a list that is odd is missing, and nothing else changes."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.tables.cells import cell as one
from snugdp.tables.cells import grid, matrix
from tests.tables.cells.odd import cells

ROWS: list[Any] = [[1, 2.5], (True, "3"), np.array([0.5, np.nan]), ["x", None]]
IMAGES = np.array([[1, 2.5], [1, 3], [0.5, np.nan], [np.nan, np.nan]])


@given(st.integers(0, 4), cells)
def test_an_odd_row_is_its_own_problem(index: int, row: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = matrix([*ROWS[:index], row, *ROWS[index:]])
    assert found.shape == (5, 2)
    assert np.array_equal(np.delete(found, index, axis=0), IMAGES, equal_nan=True)


@given(st.lists(st.lists(cells, min_size=3, max_size=3), max_size=6))
def test_every_cell_is_read_by_itself(rows: list[list[Any]]) -> None:
    expected = np.array([[one.number(cell) for cell in row] for row in rows]).reshape(len(rows), 3)
    assert np.array_equal(matrix(rows, 3), expected, equal_nan=True)


def test_the_width_of_a_list() -> None:
    assert matrix([]).shape == (0, 1)
    assert matrix([], 4).shape == matrix(np.array([]), 4).shape == (0, 4)
    assert matrix([[1, 2], [3, 4], [5, 6, 7]]).tolist()[:2] == [[1, 2], [3, 4]]
    assert np.isnan(matrix([[1, 2], [3]], 1)).tolist() == [[True], [False]]
    assert matrix([1, "2", [3]]).tolist() == [[1], [2], [3]]
    assert grid([[1, 2], 5, []]) == [[1, 2], [None, None], [None, None]]


def test_cells_whose_class_raises_when_it_is_hashed() -> None:
    class Meta(type):
        def __hash__(cls) -> int:
            raise RuntimeError("somebody")

    class Cell(metaclass=Meta):
        pass

    assert np.array_equal(matrix([[1.0], [Cell()]]), np.array([[1.0], [np.nan]]), equal_nan=True)


def test_rows_that_would_not_fit_into_memory() -> None:
    found = matrix([[1, 2], range(10**12), np.broadcast_to(1.0, 10**11), [3, 4]])
    assert found[[0, 3]].tolist() == [[1, 2], [3, 4]]


def test_objects_that_are_rows_of_different_lengths() -> None:
    ragged = np.empty(3, dtype=object)
    ragged[:] = [[1, 2], [3, 4], [5]]
    assert np.array_equal(matrix(ragged), np.array([[1, 2], [3, 4], [np.nan, np.nan]]), equal_nan=True)


@pytest.mark.parametrize("X", [np.array(["1"]).reshape(1, 1), np.array([[b"1"]]), np.zeros((1, 1), dtype="M8[s]")])
def test_declared_types_that_are_not_numbers_are_refused(X: Any) -> None:
    for rows in (X, X[:0]):
        with pytest.raises(TypeError, match="must hold numbers"):
            matrix(rows)
