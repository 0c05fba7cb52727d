"""Sparse matrices: every cell once, whatever the format; dense some rows at a time; an odd cell is its own matter."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from snugdp.tables.layouts.arrays import ArraySchema, ArraySource
from snugdp.tables.sources.sparse import SparseBlock, canonical, read_matrix

FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]
TYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float32, np.float64]


def dense(X: Any) -> NDArray[Any]:
    """All rows, as they are read."""
    block = read_matrix(X)
    assert isinstance(block, SparseBlock)
    assert block.shape == X.shape
    return block[:]


def some(rows: int, columns: int, seed: int = 0) -> NDArray[np.float64]:
    """A matrix that is mostly 0."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((rows, columns)) < 0.2, rng.integers(-99, 100, (rows, columns)), 0).astype(np.float64)


@pytest.mark.parametrize("kind", [sp.coo_matrix, sp.coo_array])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("type_", TYPES)
def test_every_format_and_type_is_the_dense_matrix(kind: Any, form: str, type_: Any) -> None:
    X = some(30, 8).astype(type_)
    read = dense(kind(X).asformat(form))
    assert np.array_equal(read, X)
    assert read.dtype == X.dtype


def test_blocks_of_rows_are_those_of_the_dense_matrix() -> None:
    X, y = some(5000, 900), np.arange(5000.0)
    layout = ArraySchema(tuple(f"x{i}" for i in range(900)), 5, 1)
    plain, sparse = (list(ArraySource(form, y, layout).batches(())) for form in (X, sp.csc_array(X)))
    assert len(plain) == len(sparse) > 1
    for one, other in zip(plain, sparse, strict=True):
        assert np.array_equal(one.frame.X, other.frame.X)  # type: ignore[attr-defined]
        assert np.array_equal(one.frame.y, other.frame.y)  # type: ignore[attr-defined]


def test_memory_does_not_grow_with_the_number_of_rows() -> None:
    X = sp.random_array((200_000, 100), density=0.001, format="csr", rng=np.random.default_rng(1))
    layout = ArraySchema(tuple(f"x{i}" for i in range(100)), 5, 1)
    source = ArraySource(X, np.zeros(200_000), layout)
    tracemalloc.start()
    total = 0.0
    for batch in source.batches(()):
        total += batch.frame.X.sum()  # type: ignore[attr-defined]
        del batch
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == pytest.approx(X.sum())
    assert peak < X.shape[0] * X.shape[1] * 8 / 3


def twice(numbers: Any, form: str) -> Any:
    """A cell (0, 1) with all these numbers, between two others, in a format that can hold it."""
    data = np.concatenate([[1], numbers, [1]]).astype(np.asarray(numbers).dtype)
    places = np.array([0, *[1] * len(numbers), 2])[::-1]
    if form == "coo":
        return sp.coo_array((data[::-1], (np.zeros(len(data), int), places)), shape=(2, 3))
    by_rows = sp.csr_array((data[::-1], places, [0, len(data), len(data)]), shape=(2, 3))
    return by_rows if form == "csr" else by_rows.tocsc()


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        (np.array([100, 100], np.int8), 200.0),
        (np.array([3e38, 3e38], np.float32), 2 * float(np.float32(3e38))),
        (np.array([0.1, 0.2, 0.3]), 0.1 + (0.2 + 0.3)),
        (np.array([0.3, 0.2, 0.1]), 0.1 + (0.2 + 0.3)),
        (np.array([1e308, 1e308]), np.inf),
        (np.array([np.inf, -np.inf]), np.nan),
        (np.array([np.nan, 5.0]), np.nan),
        (np.array([0.0, 0.0]), 0.0),
        (np.array([True, True]), True),
    ],
)
def test_numbers_stored_for_one_cell_are_added_up(form: str, numbers: Any, total: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = dense(twice(numbers, form))
    assert np.array_equal(read.astype(float), [[1, total, 1], [0, 0, 0]], equal_nan=True)


def test_the_users_matrix_is_not_changed_and_its_flags_are_not_believed() -> None:
    X = twice(np.array([2.0, 3.0]), "csr")
    X.has_canonical_format = X.has_sorted_indices = True
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    assert dense(X).tolist() == [[1, 5, 1], [0, 0, 0]]
    for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
        assert np.array_equal(old, new)


def test_what_other_cells_hold_changes_nothing() -> None:
    """Not even that another row has an odd one: the images of all others stay what they were."""
    X = sp.csr_array(some(40, 30, seed=3))
    plain = dense(X)
    for odd in (np.nan, np.inf, 1e300, 0.0):
        data, indices, pointers = X.data.tolist(), X.indices.tolist(), X.indptr.copy()
        data[2:2], indices[2:2] = [odd, odd], [7, 7]
        pointers[1:] += 2
        changed = dense(sp.csr_array((data, indices, pointers), shape=X.shape))
        where = np.ones(X.shape, bool)
        where[0, 7] = False
        assert np.array_equal(changed[where], plain[where])


@pytest.mark.parametrize("place", [-1, 3, 10**6])
def test_a_number_for_a_column_that_is_not_there_is_left_out(place: int) -> None:
    X = sp.csr_array(np.eye(3))
    X.indices[1] = place
    assert dense(X).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert canonical(X).indices.tolist() == [0, 2]


def _pointers(X: Any) -> Any:
    X.indptr[1] = 400
    return X


def _short(X: Any) -> Any:
    X.indptr = X.indptr[:-1]
    return X


def _stranger(X: Any) -> Any:
    X.indices[1] = 4217
    return X


@pytest.mark.parametrize(
    "broken",
    [_pointers(sp.csr_array(np.eye(3))), _short(sp.csr_array(np.eye(3))), _stranger(sp.csc_array(np.eye(3)))],
    ids=["pointers", "short", "stranger"],
)
def test_what_is_not_well_formed_is_refused_without_a_number(broken: Any) -> None:
    with pytest.raises(ValueError, match="not well formed") as caught:
        read_matrix(broken)
    assert not any(digit in str(caught.value) for digit in "123456789")
    assert caught.value.__context__ is None


@pytest.mark.parametrize("shape", [(0, 3), (4, 3)])
def test_nothing_stored(shape: tuple[int, int]) -> None:
    assert np.array_equal(dense(sp.csr_array(shape)), np.zeros(shape))
    assert dense(sp.coo_array(shape))[:0].shape == (0, 3)
