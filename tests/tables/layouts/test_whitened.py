"""Rows in other directions: a function of each row alone, whatever the block, and of the matrix as it is released."""

import warnings
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp.mechanisms.inference.whitening import whitened_design
from snugdp.mechanisms.linear.base import Design
from snugdp.tables.layouts.whitened import Long, WhitenedLayout
from snugdp.tables.passes.base import row_map
from snugdp.tables.schema.schema import Number, Schema

SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y")
MATRIX = ((0.9, 0.1), (-0.4, 1.7), (0.3, 0.2))


def frame(rows: Any) -> Any:
    return nw.from_native(pl.DataFrame(rows, schema=dict.fromkeys("aby", pl.Float64), orient="row"), eager_only=True)


def images(rows: Any, long: Long = "shorten", matrix: Any = MATRIX) -> tuple[np.ndarray, np.ndarray]:
    layout = WhitenedLayout(SCHEMA, matrix, long)
    parts = [(V.copy(), w.copy()) for X, y in layout.blocks(frame(rows)) for V, w in row_map(layout).blocks(X, y)]
    return np.concatenate([np.empty((0, 2)), *(V for V, _ in parts)]), np.concatenate([[], *(w for _, w in parts)])


def points(rows: Any, long: Long) -> set[tuple[float, ...]]:
    return {(*v, w) for v, w in zip(*images(rows, long), strict=True)}


def table(n: int = 3000) -> list[list[Any]]:
    rows: list[list[Any]] = np.random.default_rng(2).uniform(-1.2, 1.2, (n, 3)).tolist()
    return rows


@pytest.mark.parametrize("long", ["shorten", "drop", "keep"])
def test_the_image_of_a_row_does_not_depend_on_its_place(long: Long) -> None:
    rows = table(600)
    alone = set().union(*(points(rows[start : start + 1], long) for start in (0, 1, 7, 300, 599)))
    assert alone <= points(rows, long) == points(rows[::-1], long)


def test_it_is_the_product_and_shortened_with_its_target() -> None:
    rows = [[0.1, -0.2, 0.5], [1.0, 1.0, -1.0]]
    V, w = images(rows)
    X = np.concatenate([X for X, _ in SCHEMA.blocks(frame(rows))])
    Z, unit = X @ np.array(MATRIX), float(row_map(WhitenedLayout(SCHEMA, MATRIX)).unit)
    lengths = np.maximum(np.linalg.norm(Z, axis=1), 1.0)
    assert lengths[0] == 1.0 < lengths[1]
    assert V * unit == pytest.approx(Z / lengths[:, None], abs=1e-4)
    assert w * unit == pytest.approx(np.array([0.5, -1.0]) / lengths, abs=1e-4)


def test_long_rows_are_left_out_by_themselves() -> None:
    kept, _ = images([[0.1, -0.2, 0.5], [1.0, 1.0, -1.0]], "drop")
    assert len(kept) == 1
    bare = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y", norm=0.5)
    layout = WhitenedLayout(bare, ((0.1,), (0.1,), (0.1,)), "drop")
    blocks = [X for X, _ in layout.blocks(frame([[0.1, 0.1, 0.0], [1.0, 1.0, 0.0]]))]
    assert sum(map(len, blocks)) == 1, "a row that the first layout would shorten is left out too"


def test_odd_cells_have_an_image_and_change_no_other() -> None:
    rows = table(40)
    for odd in (None, float("nan"), float("inf"), -1e300):
        for long in ("shorten", "drop", "keep"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                V, w = images([*rows[:20], [odd, 0.5, 0.5], *rows[20:]], long)
            plain = {tuple(v) for v in images(rows, long)[0]}
            assert len({tuple(v) for v in V} - plain) <= 1
            assert np.isfinite(V).all()
            assert np.isfinite(w).all()


def test_the_design_depends_on_the_number_of_directions_alone() -> None:
    sizes = [tuple(map(tuple, (np.array(MATRIX) * size).tolist())) for size in (1e-20, 1.0, 1e20)]
    designs = {Design(row_map(WhitenedLayout(SCHEMA, matrix))) for matrix in sizes}
    assert designs == {whitened_design(2)}
    assert whitened_design(1).x_squared == whitened_design(5000).x_squared


def test_functions_go_back() -> None:
    layout = WhitenedLayout(SCHEMA, MATRIX)
    assert layout.back([1.0, -2.0]) == pytest.approx(np.array(MATRIX) @ [1.0, -2.0], abs=1e-8)
    assert layout.coefficients([1.0, 2.0]).values == pytest.approx(SCHEMA.coefficients(layout.back([1.0, 2.0])).values)


@pytest.mark.parametrize("matrix", [((1.0,),), ((np.inf,),) * 3, ((),) * 3, ((2.0**101,),) * 3])
def test_other_matrices_are_refused(matrix: Any) -> None:
    with pytest.raises(ValueError, match="matrix"):
        WhitenedLayout(SCHEMA, matrix)
