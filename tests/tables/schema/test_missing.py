"""Rows without a target are left out, and missing cells do what a schema declares: each row by itself."""

import pickle
import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from snugdp.core.guarantee import Neighbours
from snugdp.tables.candidates import Candidates
from snugdp.tables.images import ImagePass
from snugdp.tables.layouts.affine import AffineLayout
from snugdp.tables.layouts.arrays import ArraySchema, Block
from snugdp.tables.layouts.boxes import BoxSchema, EntrySchema
from snugdp.tables.layouts.points import centred, unlabelled
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.passes.vectors.scores import CELLS, ScorePass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Boolean, Category, Number, Schema
from snugdp.tables.sources.sparse import SparseSource, canonical
from tests.effort import sampled

COLUMNS: dict[str, Any] = {
    "age": Number(0, 100),
    "city": Category(["Rome", "Oslo"]),
    "member": Boolean(),
    "y": Number(-1, 1),
}
ROWS: dict[str, list[Any]] = {
    "age": [25.0, None, 50.0, 75.0, 100.0, None],
    "city": ["Rome", "Oslo", None, "Bonn", "", "Rome"],
    "member": [True, False, True, None, True, None],
    "y": [0.5, -0.5, 0.25, 1.0, None, 0.125],
}
POLICIES: list[Any] = ["centre", "drop", "indicator", {"age": "drop", "city": "indicator"}, {"member": "drop"}]
STRANGE: list[Any] = [
    None,
    np.nan,
    "?",
    "",
    b"\xff",
    object(),
    1j,
    (1, 2),
    pd.NA,
    pd.NaT,
    np.inf,
    10**400,
    "Rome",
    True,
]


def made(missing: Any = "centre", **more: Any) -> Schema:
    return Schema(COLUMNS, target="y", missing=missing, **more)


def frame(native: Any) -> nw.DataFrame[Any]:
    wrapped: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
    return wrapped


def images(schema: Any, native: Any) -> Any:
    X, y = schema.vectors(frame(native))
    return np.column_stack([X] if y is None else [X, y]).tolist()


@pytest.mark.parametrize(
    ("missing", "kept"),
    [("centre", [0, 1, 2, 3, 5]), ("drop", [0]), ("indicator", [0, 1, 2, 3, 5]), ({"age": "drop"}, [0, 2, 3])],
)
def test_which_rows_stay(missing: Any, kept: list[int]) -> None:
    """No target: left out always. An unlisted city is not missing, an empty one is."""
    schema = made(missing)
    answer = images(schema, pl.DataFrame(ROWS)[kept])
    for native in (pd.DataFrame(ROWS), pd.DataFrame(ROWS, dtype=object), pl.DataFrame(ROWS), pa.table(ROWS)):
        assert images(schema, native) == answer
        assert len(answer) == len(kept)


def test_indicators_are_told_apart_and_named() -> None:
    schema, part = made("indicator"), float(np.sqrt(1 / 3))
    names = ("age", "age is missing", "city=Rome", "city=Oslo", "city is missing", "member", "member is missing")
    assert schema.features == (*names, "intercept")
    X = np.array(images(schema, pd.DataFrame(ROWS)))[:, :7]
    assert np.allclose(X[:, 1], [0, part, 0, 0, part], atol=1e-15)
    assert np.allclose(X[:, 4], [0, 0, part, 0, 0], atol=1e-15)  # Bonn is none of the values, and not missing
    assert np.allclose(X[:, 6], [0, 0, 0, part, part], atol=1e-15)


@pytest.mark.parametrize("missing", POLICIES, ids=str)
def test_rows_are_no_longer_than_one(missing: Any) -> None:
    cells = product([25.0, -1e308, None], ["Rome", "x", None], [True, False, None])
    table = [dict(zip(COLUMNS, (*row, 1.0), strict=True)) for row in cells]
    X, _ = made(missing).vectors(frame(pd.DataFrame(table)))
    for row in X:
        assert sum(Fraction(float(entry)) ** 2 for entry in row[:-1]) <= 1


@sampled(6)
@pytest.mark.parametrize("missing", POLICIES, ids=str)
def test_a_strange_cell_moves_no_other_row(missing: Any) -> None:
    schema, others = made(missing), images(made(missing), pd.DataFrame(ROWS, dtype=object))
    for name, strange in product(COLUMNS, STRANGE):
        table = pd.DataFrame({key: pd.Series([*cells, cells[0]], dtype=object) for key, cells in ROWS.items()})
        table[name] = pd.Series([*ROWS[name], strange], dtype=object)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = images(schema, table)
        assert found[: len(others)] == others
        assert found[len(others) :] == images(schema, table.iloc[6:])
        assert len(found) - len(others) in (0, 1)


@pytest.mark.parametrize("missing", POLICIES, ids=str)
def test_coefficients_in_the_users_units_predict_the_same(missing: Any) -> None:
    schema = made(missing)
    theta = np.random.default_rng(1).normal(size=len(schema.features))
    table = pd.DataFrame(ROWS)
    rows, _ = schema.for_prediction.vectors(frame(table))
    assert len(rows) == 6  # of rows to predict none is left out
    back = schema.coefficients(theta)
    gaps = table.isna() | (table == "")
    known: dict[str, Any] = {
        "age": table["age"].fillna(50.0),
        "member": table["member"].map({True: 1.0, False: 0.0}).astype(float).fillna(0.5),
        **{f"city={city}": (table["city"] == city) * 1.0 for city in ("Rome", "Oslo")},
        **{f"{name} is missing": gaps[name] * 1.0 for name in COLUMNS},
    }
    found = back.intercept + sum(value * known[name] for name, value in zip(back.names, back.values, strict=True))
    assert np.allclose(found, rows @ theta, atol=1e-12)


@pytest.mark.parametrize("missing", POLICIES, ids=str)
def test_a_policy_is_part_of_the_schema(missing: Any) -> None:
    schema = made(missing)
    for copy in (
        pickle.loads(pickle.dumps(schema)),
        Schema.from_toml(schema.to_toml()),
        Schema.from_json(schema.to_json()),
    ):
        assert copy == schema
        assert hash(copy) == hash(schema)
        assert copy.features == schema.features
    assert (schema == made()) == (missing == "centre")
    assert made({"age": "centre", "y": "drop"}) == made()
    assert made({"age": "drop", "city": "drop", "member": "drop"}) == made("drop")
    assert ("missing" in schema.to_toml()) == (missing != "centre")


def test_a_policy_of_all_columns_and_of_one() -> None:
    text = made("drop").to_toml().replace("[columns.age]", '[columns.age]\nmissing = "indicator"')
    assert Schema.from_toml(text) == made({"age": "indicator", "city": "drop", "member": "drop"})


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("mean", 'missing must be one of "centre", "drop", "indicator"'),
        (None, "missing must be one of"),
        ({"age": 3}, 'missing of "age" must be one of'),
        ({"agee": "drop"}, 'missing names "agee", which is not one'),
        ({"y": "centre"}, "always left out"),
    ],
)
def test_bad_policies(missing: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(missing)
    with pytest.raises(ValueError, match=r"columns.age: unknown key|must be one of"):
        Schema.from_toml(made().to_toml().replace("[columns.age]", '[columns.age]\nmissing = "mean"'))
    with pytest.raises(ValueError, match='would be called "age is missing"'):
        Schema({"age": Number(0, 1), "age is missing": Number(0, 1)}, missing={"age": "indicator"})


def test_under_a_centre_a_missing_number_is_the_centre() -> None:
    schema = unlabelled(made("indicator"))
    width = len(schema.features)
    shift = tuple(np.linspace(0.1, 0.7, width).tolist())
    plain, moved = (np.array(images(one, pd.DataFrame(ROWS))) for one in (schema, centred(schema, shift)))
    assert len(plain) == len(moved) == 6  # the target is none of its columns
    expected = plain - np.array(shift)
    expected[[1, 5], 0] = 0.0  # age
    expected[[3, 5], 5] = 0.0  # member
    assert np.allclose(moved, expected, atol=1e-15)
    assert len(images(centred(unlabelled(made("drop")), shift[:4]), pd.DataFrame(ROWS))) == 1


POOL = [(0.5, 0.25), (-0.5, 1.0), (np.nan, -0.5), (1.0, np.nan), (np.nan, np.nan)]
LAYOUTS: dict[str, Any] = {
    "schema": Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y"),
    "drop": Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y", missing="drop"),
    "indicator": Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y", missing="indicator"),
    "array": ArraySchema(("x",), 1, 1),
    "box": BoxSchema(("x",), 1, 1),
    "affine": AffineLayout(ArraySchema(("x",), 1, 1), (0.25,), 2.0, 1),
}


Table: TypeAlias = tuple[int, ...]  # which rows of the pool


def tables(most: int) -> Iterator[Table]:
    for size in range(most + 1):
        yield from product(range(len(POOL)), repeat=size)


def folded(work: Any, table: Table, matrix: bool) -> Any:
    X, y = np.array([POOL[row] for row in table]).reshape(-1, 2).T.copy()
    block: Any = Block(X[:, None], y) if matrix else frame(pd.DataFrame({"x": X, "y": y}))
    return work.fold(work.empty(), block)


@sampled(12)
@pytest.mark.parametrize(("kind", "matrix"), [*product(LAYOUTS, [False]), *product(("array", "box", "affine"), [True])])
def test_one_row_more_is_one_image_more_or_none(kind: str, matrix: bool) -> None:
    """All tables of at most three rows, and every row in every place: sensitivities by brute force."""
    layout = LAYOUTS[kind]
    work, kept = GramPass(layout), ImagePass(layout)
    bound = work.row_map.limits.sensitivity(Neighbours.ADD_REMOVE)
    states = {table: folded(work, table, matrix) for table in tables(3)}
    counts = {table: folded(kept, table, matrix).count for table in tables(3)}
    for table, row in product(tables(2), range(len(POOL))):
        before, (x, y) = states[table], POOL[row]
        left_out = np.isnan(y) or (kind == "drop" and np.isnan(x))
        for place in range(len(table) + 1):
            more = (*table[:place], row, *table[place:])
            after = states[more]
            assert counts[more] - counts[table] == after.count() - before.count() == (not left_out)
            if left_out:
                assert after.to_bytes() == before.to_bytes()
            gram = np.subtract(after.gram(), before.gram(), dtype=object)
            cross = np.subtract(after.cross(), before.cross(), dtype=object)
            assert (gram**2).sum() <= bound.gram_squared
            assert (cross**2).sum() <= bound.cross_squared


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("row_norm", [None, Fraction(1, 2)])
def test_scores_of_rows_that_are_left_out(row_norm: Fraction | None) -> None:
    for layout in (LAYOUTS["box"], EntrySchema(LAYOUTS["schema"]), EntrySchema(LAYOUTS["drop"])):
        work = ScorePass(layout, row_norm)
        dense = isinstance(layout, BoxSchema)
        states = {table: folded(work, table, dense) for table in tables(3)}
        for table, row in product(tables(2), range(len(POOL))):
            before, after = states[table], states[(*table, row)]
            if np.isnan(POOL[row][1]):
                assert after.to_bytes() == before.to_bytes()
            assert abs(int(after.centred(3)[0]) - int(before.centred(3)[0])) <= CELLS * (CELLS + 3)


def test_sparse_rows_without_a_target() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 7)) * (rng.random((300, 7)) < 0.3)
    y = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    box, known = BoxSchema(tuple("abcdefg"), 2, 2), ~np.isnan(y)
    forms = {
        "dense": Candidates(box, X=X, y=y),
        "sparse": Candidates(box, X=canonical(sp.csr_matrix(X)), y=y),
        "frame": Candidates(box, table=pl.DataFrame({**dict(zip("abcdefg", X.T, strict=True)), box.target: y})),
        "known": Candidates(box, X=X[known], y=y[known]),
        "sparse and known": Candidates(box, X=canonical(sp.csr_matrix(X[known])), y=y[known]),
    }
    scores = {name: form.scores().to_bytes() for name, form in forms.items()}
    assert len(set(scores.values())) == 1
    moments = {name: form.rows((5, 2), 1).moments().to_bytes() for name, form in forms.items()}
    assert len(set(moments.values())) == 1
    lots = lambda n, parts: np.arange(n) % parts  # noqa: E731
    whole = [[part.tolist() for part in form.block_sums(5, lots)] for form in forms.values()]
    assert all(one == whole[0] for one in whole)
    (batch,) = SparseSource(canonical(sp.csr_matrix(X)), y, box.names, box.target).batches(())
    assert np.array_equal(batch.frame.with_targets()[:], X[known])  # type: ignore[attr-defined]


def gappy(values: Any, rng: np.random.Generator) -> list[float | None]:
    return [None if rng.random() < 0.2 else float(value) for value in values]


def test_files_and_frames_leave_out_the_same_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = pl.DataFrame(
        {
            "age": gappy(rng.uniform(0, 100, 500), rng),
            "city": [["Rome", "Oslo", "Bonn", None][k] for k in rng.integers(4, size=500)],
            "member": [[True, False, None][k] for k in rng.integers(3, size=500)],
            "y": gappy(rng.uniform(-1, 1, 500), rng),
        }
    )
    table.write_parquet(tmp_path / "t.parquet")
    table.write_csv(tmp_path / "t.csv")
    for missing in POLICIES:
        schema = made(missing)
        answer = Rows(table, schema, progress=False).moments().to_bytes()
        for data in (
            table.to_pandas(),
            table.to_arrow(),
            table.lazy(),
            tmp_path / "t.parquet",
            tmp_path / "t.csv",
            table.filter(pl.col("y").is_not_null()),
        ):
            rows = Rows(data, schema, progress=False)
            assert rows.moments().to_bytes() == answer
        kept = rows.images()
        assert kept is not None
        assert kept.count == rows.moments().count()


def test_a_batch_in_which_no_row_has_a_target() -> None:
    """Its blocks get nothing: whether all rows of a batch are left out must not end in an error."""
    box = BoxSchema(("a", "b"), 1, 1)
    for X in (np.ones((3, 2)), sp.csr_array(np.ones((3, 2)))):
        data = Candidates(box, X=canonical(X) if not isinstance(X, np.ndarray) else X, y=np.full(3, np.nan))
        sums = data.block_sums(4, lambda n, parts: np.arange(n) % parts)
        assert all(not part.any() for part in sums)
