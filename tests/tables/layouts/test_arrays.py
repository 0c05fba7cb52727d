"""Matrices as tables: the images of their rows are those of frames, each row for itself, whatever it holds."""

import datetime
import math
import warnings
from array import array
from collections import UserList, deque
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from snugdp.tables.cells import matrix
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource, Block, vector
from snugdp.tables.losses.losses import Huber
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema
from tests.effort import sampled

NAMES = ("a", "b", "c")
LAYOUT = ArraySchema(NAMES, x_norm=2, y_bound=(-1, 7))


def made(n: int = 500, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(3, 2, size=n)


def moments(X: Any, y: Any, layout: ArraySchema = LAYOUT) -> bytes:
    return Rows(ArraySource(X, y, layout), layout).moments().to_bytes()


def images(X: Any, y: Any, layout: ArraySchema = LAYOUT) -> list[tuple[Any, ...]]:
    """Row by row, each in a table of its own; nothing for a row that is left out."""
    work, out = row_map(layout), []
    for row, target in zip(matrix(X), vector(y), strict=True):
        out.append(())
        for block, answers in layout.blocks(Block(row[None, :], np.array([target]))):
            V, w = work.integers(block, answers)
            out[-1] = (*V[0].tolist(), int(w[0]))
    return out


def test_the_rows_are_those_of_a_frame() -> None:
    X, y = made()
    columns = {**dict(zip(NAMES, X.T, strict=True)), "y": y}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        assert Rows(frame, LAYOUT).moments().to_bytes() == moments(X, y)


def test_the_rows_are_those_of_a_schema_with_the_same_bounds() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1, 1, (300, 4)), rng.uniform(-5, 5, 300)  # in a box of half width 1, so of norm at most 2
    names = ("a", "b", "c", "d")
    schema = Schema({**dict.fromkeys(names, Number(-1, 1)), "y": Number(-5, 5)}, target="y")
    frame = pl.DataFrame({**dict(zip(names, X.T, strict=True)), "y": y})
    assert Rows(frame, schema).moments().to_bytes() == moments(X, y, ArraySchema(names, x_norm=2, y_bound=5))


def test_the_image_is_the_shortened_row_and_the_clipped_target() -> None:
    X, y = made()
    unit, got = float(row_map(LAYOUT).unit), images(X, y)
    long = np.maximum(1, np.linalg.norm(X, axis=1) / 2)
    assert (long > 1).mean() > 0.2
    expected = np.column_stack([X / 2 / long[:, None], np.ones(len(X)), np.clip((y - 3) / 4, -1, 1)])
    assert np.allclose(np.array(got) * unit, expected, atol=3e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_any_order_any_partition_any_memory(intercept: bool) -> None:
    layout = ArraySchema(NAMES, x_norm=2, y_bound=7, intercept=intercept)
    X, y = made(3000)
    X[5, 1], X[6] = math.nan, math.inf
    whole, rng = moments(X, y, layout), np.random.default_rng(3)
    order = rng.permutation(len(X))
    for rows, target in (
        (X[order], y[order]), (np.asfortranarray(X), y), (X[::-1], y[::-1]), (np.repeat(X, 2, axis=1)[:, ::2], y),
        (X.tolist(), y.tolist()), (X.astype(object), y.astype(object)), ([tuple(row) for row in X], tuple(y)),
        (list(X), list(y)), (np.ma.array(X), np.ma.array(y)),
    ):  # fmt: skip
        assert moments(rows, target, layout) == whole
    work, total = GramPass(layout), GramPass(layout).empty()
    for start, stop in pairwise([0, 1, 2, 700, 2999, 3000]):
        part: Any = Block(X[start:stop], y[start:stop])
        total = work.merge(total, work.fold(work.empty(), part))
    assert work.pack(total) == whole


def test_gradients() -> None:
    X, y = made()
    frame = pd.DataFrame(X, columns=list(NAMES)).assign(y=y)
    work = FixedGradient(LAYOUT, (0.1, -0.2, 0.3, 0.4), Huber(Fraction(1, 4)))
    states = [Rows(data, LAYOUT).state(work) for data in (ArraySource(X, y, LAYOUT), frame)]
    assert states[0].to_bytes() == states[1].to_bytes()
    assert any(states[0].cross())


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "int64", "uint64", "bool", "longdouble", ">f8"])
def test_declared_types(kind: str) -> None:
    X, y = made(200)
    X, y = np.abs(np.round(X)), np.abs(np.round(y))
    if kind == "bool":
        X, y = X > 0, y > 2
    assert moments(X.astype(kind), y) == moments(X.astype(kind).astype(np.float64), y)
    if kind != "longdouble":
        assert moments(X, y.astype(kind)) == moments(X, y.astype(kind).astype(np.float64))


STRANGE: list[Any] = [
    math.nan, math.inf, -math.inf, None, "text", b"bytes", {"a": 1}, object(), 1j, 10**400, -(10**400), Decimal("sNaN"),
    Decimal("1e9999"), Fraction(1, 3), np.datetime64("NaT", "D"), 1e308, 5e-324, True, np.float32(2), pd.NA, (1, 2),
]  # fmt: skip


@sampled(4)
@pytest.mark.parametrize("strange", STRANGE, ids=[f"{i}-{type(cell).__name__}" for i, cell in enumerate(STRANGE)])
def test_a_strange_cell_moves_its_own_row_alone(strange: Any) -> None:
    X, y = made(20)
    for place in ((0, 0), (7, 2), (19, 1)):
        cells: Any = [list(row) for row in X.tolist()]
        cells[place[0]][place[1]] = strange
        array = np.empty(X.shape, dtype=object)
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                array[i, j] = cell
        targets: Any = y.tolist()
        targets[place[0]] = strange
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plain = images(X, y)
            for rows, answers in ((cells, y), (array, y), (X, targets)):
                got = images(rows, answers)
                assert all(got[i] == row for i, row in enumerate(plain) if i != place[0])
                assert (got[place[0]] == ()) == bool(np.isnan(vector(answers)[place[0]]))
                moments(rows, answers)


def test_what_is_no_number_is_missing_and_infinities_are_clipped() -> None:
    unit = float(row_map(LAYOUT).unit)
    rows = [[math.nan, 1.0, 0.0], [math.inf, 1.0, 0.0], [-1e308, 1e300, math.nan], ["x", None, 2.0]]
    assert images(rows, [math.nan, None, "", "x"]) == [()] * 4
    got = np.array(images(rows, [3.0, math.inf, -math.inf, 3])) * unit
    expected = [[0, 0.5, 0, 1, 0], [1, 0, 0, 1, 1], [-1, 0, 0, 1, -1], [0, 0, 1, 1, 0]]
    assert np.allclose(got[[0, 1, 3]], np.array(expected)[[0, 1, 3]], atol=0.01)
    assert got[2, -1] == -1
    assert np.linalg.norm(got[:, :3], axis=1).max() <= 1
    masked = np.ma.array([[5.0, 1.0, 0.0]], mask=[[True, False, False]])
    assert images(masked, [3.0]) == images([[math.nan, 1.0, 0.0]], [3.0])


def test_no_row_reads_what_all_rows_have_in_common() -> None:
    """A list of whole numbers and text becomes text in numpy, and large whole numbers lose digits beside a float."""
    plain = images([[1, 2, 3], [2**53 + 1, 0, 0]], [1, 2])
    for other in ("text", 0.5, None, 10**400):
        assert images([[1, 2, 3], [2**53 + 1, 0, 0], [other, 0, 0]], [1, 2, other])[:2] == plain


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (sparse.csr_array(np.eye(3) * 1j), ValueError, "Complex data not supported"),
        (sparse.coo_matrix(np.ones((3, 2))), ValueError, "2 entries"),
        (sparse.csc_array(np.ones((4, 3))), ValueError, "inconsistent"),
        (np.ones(3), ValueError, "Reshape your data"),
        (np.ones((3, 3, 1)), ValueError, "Expected 2D array, got 3D"),
        (5, ValueError, "Expected 2D"),
        ("table", ValueError, "Expected 2D"),
        ([[1]], ValueError, "1 entries"),
        (np.ones((3, 0)), ValueError, "0 feature"),
        (np.ones((3, 3)) * 1j, ValueError, "Complex data not supported"),
        (np.array([["a", "b", "c"]] * 3), TypeError, "numbers"),
        (np.zeros((3, 3), dtype="datetime64[D]"), TypeError, "numbers"),
        (np.ones((3, 2)), ValueError, "2 entries"),
        (np.ones((4, 3)), ValueError, "inconsistent"),
    ],
    ids=str,
)
def test_bad_shapes_and_types(X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ArraySource(X, [1.0, 2.0, 3.0], LAYOUT)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (sparse.csr_array(np.eye(3)), TypeError, "sparse"),
        (np.ones(3) * 1j, ValueError, "Complex data not supported"),
        (np.ones((3, 2)), ValueError, "one-dimensional"),
        (np.array(["a", "b", "c"]), TypeError, "text"),
        (None, TypeError, "cannot read"),
    ],
    ids=str,
)
def test_bad_targets(y: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ArraySource(np.ones((3, 3)), y, LAYOUT)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"x_norm": 0}, "x_norm"),
        ({"x_norm": -1}, "x_norm"),
        ({"x_norm": math.inf}, "x_norm"),
        ({"x_norm": "1e300"}, "x_norm"),
        ({"y_bound": 0}, "y_bound"),
        ({"y_bound": -2}, "y_bound"),
        ({"y_bound": (1, 1)}, "lower bound"),
        ({"y_bound": (1, 2, 3)}, "pair"),
        ({"y_bound": math.nan}, "y_bound"),
        ({"names": ()}, "0 features"),
    ],
)
def test_bad_bounds(bounds: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArraySchema(**{"names": NAMES, "x_norm": 1, "y_bound": 1, **bounds})


def test_columns_that_are_not_numbers() -> None:
    with pytest.raises(TypeError, match='"b" must hold numbers, not Date'):
        Rows(pl.DataFrame({"a": [1.0], "b": [datetime.date(2020, 1, 1)], "c": [1.0], "y": [1.0]}), LAYOUT)


def test_a_column_called_y() -> None:
    layout = ArraySchema(("y", "y_"), x_norm=1, y_bound=1)
    assert layout.target == "y__"
    assert layout.features == ("y", "y_", "intercept")


def test_coefficients_are_in_the_units_of_the_user() -> None:
    theta, X = np.array([0.3, -0.2, 0.1, 0.25]), made()[0] / 10
    linear = LAYOUT.coefficients(theta)
    middle, half = LAYOUT.target_units
    scaled = np.column_stack([X / 2, np.ones(len(X))]) @ theta
    assert np.allclose(X @ linear.values + linear.intercept, middle + half * scaled)
    with pytest.raises(ValueError, match="4 entries"):
        LAYOUT.coefficients([1.0])


def test_large_matrices_are_read_in_place() -> None:
    X, y = made(1000)
    assert np.shares_memory(matrix(X), X)
    assert np.shares_memory(vector(y), y)
    source = ArraySource(X, y, LAYOUT)
    for batch in source.batches(()):
        block: Any = batch.frame
        assert np.shares_memory(block.X, X)
        assert repr(block) == "<private block>"
    assert source.types == dict.fromkeys((*NAMES, "y"), nw.Float64())
    assert repr(source) == "<table the array>"


class Rowed:
    """Rows in a container that numpy reads one by one."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Any:
        return self.rows[place]


@pytest.mark.parametrize("wrap", [deque, UserList, Rowed])
@pytest.mark.parametrize("cell", ["a name", None, 10**400, [], float("nan")])
def test_containers_like_lists_are_read_cell_by_cell(wrap: Any, cell: Any) -> None:
    found = matrix(wrap([[1, 2], [3, cell], [5.0, True]]))
    assert np.array_equal(np.isnan(found), [[False, False], [False, cell != 10**400], [False, False]])
    assert found[2].tolist() == [5, 1]
    with pytest.raises(ValueError, match="2D"):
        matrix(array("d", [1.0, 2.0]))
