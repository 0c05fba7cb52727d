"""Boxes, sparse blocks and score passes: the same whole numbers from every container, whatever the cells hold."""

import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from snugdp.tables.candidates import Candidates
from snugdp.tables.layouts.arrays import Block
from snugdp.tables.layouts.boxes import BoxSchema, EntrySchema
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.vectors.scores import CELLS, ScorePass, Scores
from snugdp.tables.schema.schema import Boolean, Category, Number, Schema
from snugdp.tables.sources.sparse import SparseSource, canonical

STRANGE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -0.0, 1.0, -3.0]


def names(width: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(width))


def table(rows: int = 40, width: int = 6, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (rows, width)) * (rng.random((rows, width)) < 0.4)
    X.flat[rng.choice(X.size, len(STRANGE), replace=False)] = STRANGE
    y = rng.normal(0, 1, rows)
    y[: len(STRANGE)] = STRANGE
    return X, y


def by_hand(X: Any, y: Any, bounds: Any, centre: int) -> list[int]:
    """With Python's whole numbers, cell by cell."""

    def image(value: float, bound: float) -> int:
        return 0 if np.isnan(value) else round(float(np.clip(value, -bound, bound)) / bound * CELLS)

    known = [(row, t) for row, t in zip(X, y, strict=True) if not np.isnan(t)]
    pairs = [([image(x, b) for x, b in zip(row, bounds, strict=True)], image(t, 2.0)) for row, t in known]
    return [abs(sum(v[j] * (w - centre) for v, w in pairs)) for j in range(X.shape[1])]


def forms(X: Any, y: Any, box: BoxSchema) -> dict[str, Candidates]:
    frame = {**{name: X[:, j] for j, name in enumerate(box.names)}, box.target: y}
    twice = sp.coo_matrix(X)
    return {
        "array": Candidates(box, X=X, y=y),
        "fortran": Candidates(box, X=np.asfortranarray(X), y=y),
        "objects": Candidates(box, X=X.astype(object).astype(np.float64), y=y),
        "csr": Candidates(box, X=canonical(sp.csr_matrix(X)), y=y),
        "csc": Candidates(box, X=canonical(sp.csc_matrix(X)), y=y),
        "coo": Candidates(box, X=canonical(twice), y=y),
        "csr_array": Candidates(box, X=canonical(sp.csr_array(X)), y=y),
        "pandas": Candidates(box, table=pd.DataFrame(frame)),
        "polars": Candidates(box, table=pl.DataFrame(frame)),
        "lazy": Candidates(box, table=pl.LazyFrame(frame)),
    }


@pytest.mark.parametrize("x_bound", [Fraction(2), (1, 2, 4, Fraction(1, 2), 1, 8)])
@pytest.mark.parametrize("centre", [0, 777, -CELLS])
def test_every_container_gives_the_whole_numbers_of_the_definition(x_bound: Any, centre: int) -> None:
    X, y = table()
    box = BoxSchema(names(6), x_bound, 2)
    bounds = [float(b) for b in (x_bound if isinstance(x_bound, tuple) else [x_bound] * 6)]
    expected = by_hand(X, y, bounds, centre)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, form in forms(X, y, box).items():
            assert form.scores().centred(centre).tolist() == expected, name
            total, rows = form.scores().totals()
            assert rows == np.count_nonzero(~np.isnan(y)) * CELLS < len(X) * CELLS
            assert abs(total) <= rows


def test_sums_do_not_depend_on_blocks_order_or_bytes() -> None:
    X, y = table(200)
    work = ScorePass(BoxSchema(names(6), 1, 1))
    whole = work.fold(work.empty(), Block(X, y)).centred(5)
    order = np.random.default_rng(1).permutation(200)
    parts = [work.fold(work.empty(), Block(X[cut], y[cut])) for cut in np.array_split(order, 7)]
    state = work.empty()
    for part in parts:
        state = work.merge(state, work.unpack(work.pack(part)))
    assert state.centred(5).tolist() == whole.tolist()
    with pytest.raises(ValueError, match="not statistics"):
        Scores(5).restored(work.pack(state))
    with pytest.raises(ValueError, match="different grids, sizes"):
        work.empty().merge(Scores(2))
    assert repr(state) == "<private scores>"


def test_sums_that_no_word_can_hold_are_capped() -> None:
    scores = Scores(1)
    for _ in range(3):
        scores.add(np.array([2.0**62]), np.array([0.0]), 0.0, 1)
    assert scores.centred(0).tolist() == [2**62]


def test_a_cell_stored_twice_counts_once() -> None:
    """Otherwise one row could count for more than its bound."""
    doubled = sp.csr_matrix((np.array([0.75, 0.75, 0.5]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    before = doubled.data.copy()
    box = BoxSchema(names(2), 1, 1)
    scores = Candidates(box, X=canonical(doubled), y=np.ones(1)).scores().centred(0)
    assert (scores / CELLS**2).tolist() == [0.5, 1.0]
    assert doubled.data.tolist() == before.tolist()  # the user's own matrix is as it was
    assert not doubled.has_canonical_format


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16, np.int64, bool])
def test_all_kinds_of_numbers(dtype: Any) -> None:
    X = (np.arange(24).reshape(6, 4) % 3).astype(dtype)
    box = BoxSchema(names(4), 2, 1)
    y = np.linspace(-1, 1, 6)
    dense, sparse = (Candidates(box, X=form, y=y) for form in (X, canonical(sp.csr_matrix(X))))
    assert dense.scores().centred(9).tolist() == sparse.scores().centred(9).tolist()


@pytest.mark.parametrize(
    ("X", "error"), [(sp.csr_matrix(np.ones((2, 2)) * 1j), "Complex"), (sp.csr_matrix((3, 0)), "0 feature")]
)
def test_what_is_no_matrix_of_numbers(X: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        canonical(X)


@pytest.mark.parametrize("kind", ["array", "csr", "pandas", "lazy"])
def test_rows_of_chosen_entries(kind: str) -> None:
    X, y = table()
    box = BoxSchema(names(6), 2, 2)
    rows = forms(X, y, box)[kind].rows((1, 4), Fraction(3, 2))
    X, y = X[~np.isnan(y)], y[~np.isnan(y)]
    chosen = np.nan_to_num(np.clip(X[:, [1, 4]] / 2, -1, 1)) / 1.5
    unit = row_map(rows.schema).unit
    mapped, target = row_map(rows.schema).integers(np.c_[chosen, np.ones(len(y))], np.clip(y / 2, -1, 1))
    moments = rows.moments()
    assert moments.gram() == (mapped.T @ mapped).tolist()
    assert moments.cross() == (mapped.T @ target).tolist()
    assert rows.schema.features == ("x1", "x4", "intercept")
    assert float(moments.gram()[0][0] * unit**2) <= 40


def test_entries_of_a_schema() -> None:
    columns: dict[str, Any] = {"a": Number(0, 10), "c": Category(["u", "v"]), "b": Boolean(), "y": Number(-1, 3)}
    schema = Schema(columns, target="y")
    frame = pl.DataFrame({"a": [0.0, 10, 5, None], "c": ["u", "v", "w", "u"], "b": [True, False, None, True], "y": [3.0, -1, 1, 99]})  # fmt: skip # noqa: E501
    box = EntrySchema(schema)
    assert box.names == ("a", "c=u", "c=v", "b")
    form = Candidates(box, table=frame)
    y = np.array([1.0, -1, 0, 1])
    X = np.array([[-1, 1, 0, 1], [1, 0, 1, -1], [0, 0, 0, 0], [0, 1, 0, 1]])
    assert (form.scores().centred(0) / CELLS**2).tolist() == np.abs(X.T @ y).tolist()
    some = box.only((3, 0), 2)
    assert some.only((1,), 2).names == ("a",)
    (block, aims), *_ = some.blocks(form.source._frame)  # type: ignore[attr-defined]
    assert np.allclose(block, np.c_[X[:, [3, 0]] / 2, np.ones(4)])
    assert aims is not None
    assert np.allclose(aims, y)
    linear = some.coefficients([0.5, 1.0, 0.25])
    raw = np.array([[1, 0.0], [0, 10], [0.5, 5], [1, 5]])
    scaled = 1 + 2 * (block @ [0.5, 1.0, 0.25])
    assert np.allclose(raw @ linear.values + linear.intercept, scaled)
    assert row_map(some) == row_map(box.only((1, 2), 2))


def test_coefficients_of_a_box_are_in_the_users_units() -> None:
    box = BoxSchema(names(3), (1, 2, 4), (0, 10)).only((2, 0), 2)
    X = np.array([[3.0, 0.5], [-1, 1]])
    (rows, _), *_ = box.blocks(Block(X, None))
    theta = np.array([0.3, -0.2, 0.1])
    linear = box.coefficients(theta)
    assert np.allclose(X @ linear.values + linear.intercept, 5 + 5 * rows @ theta)
    assert linear.names == ("x2", "x0")
    with pytest.raises(ValueError, match="3 entries"):
        box.coefficients([1.0])


@pytest.mark.parametrize(
    "bad", [{"x_bound": 0}, {"x_bound": -1}, {"x_bound": (1, 2)}, {"y_bound": 0}, {"y_bound": (1, 2, 3)}, {"x_norm": 0}]
)
def test_bounds_that_are_none(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="bound|norm"):  # noqa: RUF043
        BoxSchema(names(3), **{"x_bound": 1, "y_bound": 1, **bad})


def test_types_are_checked_and_a_taken_name_is_no_target() -> None:
    box = BoxSchema(("y", "a"), 1, 1)
    assert box.target == "y_"
    with pytest.raises(TypeError, match="numbers"):
        Candidates(box, table=pl.DataFrame({"y": [[1.0]], "a": [1.0], "y_": [1.0]}))


@pytest.mark.parametrize("box", [BoxSchema(names(3), (1, 2, 3), 1), EntrySchema(Schema({"a": Number(0, 1), "y": Boolean()}, target="y"))])  # fmt: skip # noqa: E501
def test_a_pass_travels_to_other_processes(box: Any) -> None:
    work = ScorePass(box, Fraction(1, 2))
    again = pickle.loads(pickle.dumps(work))
    assert again == work
    assert again.schema.only((0,), 1).features == box.only((0,), 1).features
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(work.empty())


def test_too_many_columns_for_exact_norms_are_refused() -> None:
    class Wide:
        names = range((1 << 20) + 1)

    with pytest.raises(ValueError, match="columns"):
        ScorePass(Wide(), Fraction(1))  # type: ignore[arg-type]


def test_a_sparse_source_says_nothing_about_its_rows() -> None:
    source = SparseSource(canonical(sp.eye(7, format="csr")), np.ones(7), names(7), "y")
    assert repr(source) == "<table the sparse matrix>"
    assert len(source.types) == 8
