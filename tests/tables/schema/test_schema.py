"""The schema: how a row becomes a vector and back, and which schemas and tables are refused."""

import math
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.tables.cells import numbers
from snugdp.tables.schema.scaling import part_of_norm
from snugdp.tables.schema.schema import Boolean, Category, Number, Schema
from tests.effort import sampled

SCHEMA = Schema(
    {"age": Number(0, 120), "city": Category(["Rome", "Oslo"]), "member": Boolean(), "income": Number(-1000, 9000)},
    target="income",
)
ROWS: dict[str, list[Any]] = {
    "age": [60.0, 120.0, -5.0, None, 30.0],
    "city": ["Rome", "Paris", None, "Oslo", "rome"],
    "member": [True, False, None, True, False],
    "income": [4000.0, 9000.0, None, 1e9, -1000.0],
}
THIRD = part_of_norm(3)
WHOLE = [[0, 1, 0, 1, 1], [1, 0, 0, -1, 1], [0, 0, 1, 1, 1], [-0.5, 0, 0, -1, 1]]  # one row has no target
VECTORS = np.array(WHOLE) * ([THIRD] * 4 + [1])
TARGETS = [0, 1, 1, -1]


def frame(native: Any) -> nw.DataFrame[Any]:
    wrapped: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
    return wrapped


def containers(rows: dict[str, list[Any]]) -> dict[str, Any]:
    return {
        "pandas": pd.DataFrame(rows),
        "pandas objects": pd.DataFrame(rows, dtype=object),
        "pandas nullable": pd.DataFrame(rows).astype({"age": "Float64", "member": "boolean", "city": "category"}),
        "pandas arrow": pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.DataFrame(rows),
        "polars categories": pl.DataFrame(rows, schema_overrides={"city": pl.Categorical}),
        "polars single": pl.DataFrame(rows, schema_overrides={"age": pl.Float32}),
        "polars enum": pl.DataFrame(rows, schema_overrides={"city": pl.Enum(["Oslo", "Paris", "Rome", "rome"])}),
        "arrow": pa.table(rows),
        "arrow chunks": pa.concat_tables([pa.table(rows).slice(0, 2), pa.table(rows).slice(2)]),
    }


@pytest.mark.parametrize("kind", containers(ROWS))
def test_every_container_has_the_same_vectors(kind: str) -> None:
    vectors, targets = SCHEMA.vectors(frame(containers(ROWS)[kind]))
    assert vectors.flags.c_contiguous
    assert vectors.tolist() == pytest.approx(VECTORS, abs=1e-15)
    assert targets is not None
    assert targets.tolist() == TARGETS
    assert SCHEMA.features == ("age", "city=Rome", "city=Oslo", "member", "intercept")


@pytest.mark.parametrize(
    "ages",
    [
        pa.array([2**63 - 1, 5, None], type=pa.int64()),
        pa.array([2**64 - 1, 5, None], type=pa.uint64()),
        pl.Series([2**63 - 1, 5, None]),
        pd.Series([2**63 - 1, 5, None], dtype="Int64"),
        pa.array([Decimal(10) ** 30, Decimal(5), None], type=pa.decimal128(38, 0)),
        pd.Series([10**400, 5, None], dtype=object),
        pd.Series([math.inf, 5, math.nan]),
    ],
    ids=lambda ages: f"{type(ages).__module__}-{getattr(ages, 'dtype', getattr(ages, 'type', ''))}",
)
def test_large_whole_numbers_are_clipped_and_not_noticed(ages: Any) -> None:
    table = pa.table({"age": ages}) if isinstance(ages, pa.Array) else type(ages.to_frame())({"age": ages})
    vectors, targets = Schema({"age": Number(0, 10)}, intercept=False).vectors(frame(table))
    assert vectors.ravel().tolist() == [1, 0, 0]
    assert targets is None


STRANGE: list[Any] = [
    math.nan, math.inf, -math.inf, None, "text", b"bytes", (1, 2), {"a": 1}, object(), 1j, 10**400,
    Decimal("sNaN"), Fraction(10**400, 3), np.datetime64("NaT", "D"), pd.NA, pd.NaT, np.float32("inf"), 5e-324,
]  # fmt: skip


@sampled(2)
@pytest.mark.parametrize("strange", STRANGE, ids=[f"{i}-{type(row).__name__}" for i, row in enumerate(STRANGE)])
@pytest.mark.parametrize("column", ["age", "city", "member", "income"])
def test_a_strange_row_has_an_image_or_none_and_moves_no_other(strange: Any, column: str) -> None:
    table = pd.DataFrame(ROWS, dtype=object)
    table[column] = pd.Series([strange, *ROWS[column][1:]], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors, targets = SCHEMA.vectors(frame(table))
    assert vectors[-3:].tolist() == pytest.approx(VECTORS[1:], abs=1e-15)
    assert targets is not None
    assert targets[-3:].tolist() == TARGETS[1:]
    assert len(vectors) == len(targets) == (3 if column == "income" and np.isnan(numbers([strange])[0]) else 4)
    assert np.isfinite(vectors).all()
    assert (np.abs(targets) <= 1).all()


def test_an_object_column_of_text_is_not_told_from_another() -> None:
    for rows in (["x", "y"], ["x", 60.0], [None, None], []):
        table = pd.DataFrame({"age": pd.Series(rows, dtype=object)})
        assert Schema({"age": Number(0, 120)}).vectors(frame(table))[0].shape == (len(rows), 2)


reals = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    kinds = draw(st.lists(st.sampled_from(["number", "category", "boolean"]), min_size=1, max_size=5))
    columns: dict[str, Any] = {}
    for i, kind in enumerate(kinds):
        low = draw(reals)
        columns[f"{kind}{i}"] = {
            "number": Number(low, low + draw(st.floats(0.01, 1e5).map(lambda x: round(x, 3)))),
            "category": Category(["a", "b", "c"][: 1 + i % 3]),
            "boolean": Boolean(),
        }[kind]
    columns["y"] = draw(st.sampled_from([Number(-3, 8), Boolean(), Number(1000, 1001)]))
    return Schema(columns, target=draw(st.sampled_from(["y", None])), intercept=draw(st.booleans()))


def raw(schema: Schema, share: float, turn: int) -> dict[str, Any]:
    """A row within bounds."""
    row: dict[str, Any] = {}
    for name, column in schema.columns.items():
        if isinstance(column, Number):
            low, high = map(float, column.bounds)
            row[name] = low + share * (high - low)
        else:
            row[name] = column.levels[turn % len(column.levels)] if isinstance(column, Category) else turn % 2 == 0
    return row


@given(schemas(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=6), st.integers(0, 99))
def test_coefficients_in_the_users_units_predict_the_same(
    schema: Schema, rows: list[tuple[float, int]], seed: int
) -> None:
    table = [raw(schema, *row) for row in rows]
    vectors, _ = schema.vectors(frame(pl.DataFrame(table)))
    theta = np.random.default_rng(seed).normal(size=len(schema.features))
    back = schema.coefficients(theta)
    target = schema.columns[schema.target] if schema.target is not None else None
    middle, half = (0.5, 0.5) if isinstance(target, Boolean) else (0.0, 1.0)
    if isinstance(target, Number):
        middle, half = float(target.middle), float(target.half)
    for row, vector in zip(table, vectors, strict=True):
        entries = [
            float(row[name.split("=")[0]] == name.split("=")[1]) if "=" in name else float(row[name])
            for name in back.names
        ]
        size = abs(back.intercept) + float(np.abs(back.values) @ np.abs(entries)) + 1
        assert back.intercept + back.values @ entries == pytest.approx(
            middle + half * (theta @ vector), abs=1e-9 * size
        )


@pytest.mark.slow
@given(schemas(), st.lists(st.tuples(st.floats(-2, 3), st.integers(0, 5)), max_size=8))
def test_rows_are_short_and_independent_of_their_place(schema: Schema, rows: list[tuple[float, int]]) -> None:
    table = [raw(schema, *row) for row in rows]
    types = {name: pl.Float64 if isinstance(column, Number) else None for name, column in schema.columns.items()}
    vectors, targets = schema.vectors(frame(pl.DataFrame(table, schema=None if table else types)))
    for i, row in enumerate(table):
        alone, target = schema.vectors(frame(pd.DataFrame([row])))
        assert (alone[0] == vectors[i]).all()
        assert target is None or targets is None or target[0] == targets[i]
        features = vectors[i, :-1] if schema.intercept else vectors[i]
        assert sum(Fraction(float(entry)) ** 2 for entry in features) <= 1
        assert sum(Fraction(float(entry)) ** 2 for entry in vectors[i]) <= schema.feature_bound**2


def test_blocks_are_the_vectors_piece_by_piece() -> None:
    columns = {f"x{i}": np.random.default_rng(i).normal(size=300_000) for i in range(3)}
    schema = Schema({name: Number(-2, 2) for name in columns}, target="x2")
    table = frame(pl.DataFrame(columns))
    vectors, targets = schema.vectors(table)
    assert targets is not None
    at = 0
    for block, aims in schema.blocks(table):
        assert (vectors[at : at + len(block)] == block).all()
        assert (targets[at : at + len(block)] == aims).all()
        at += len(block)
    assert at == 300_000
    order = np.random.default_rng(9).permutation(300_000)
    moved, _ = schema.vectors(frame(pd.DataFrame({name: column[order] for name, column in columns.items()})))
    assert (moved == vectors[order]).all()


@pytest.mark.parametrize("parts", range(1, 200))
def test_a_part_of_the_norm_is_the_largest_safe_float(parts: int) -> None:
    part = part_of_norm(parts)
    assert parts * Fraction(part) ** 2 <= 1 < parts * Fraction(math.nextafter(part, 2)) ** 2


def test_bounds_on_the_norm() -> None:
    one = {"x": Number(0, 1)}
    assert Schema(one, intercept=False).feature_bound == 1
    assert Schema(one).feature_bound ** 2 >= 2
    assert float(Schema(one).feature_bound) == Schema(one).feature_bound
    assert Schema(one).feature_bound == Fraction(math.nextafter(math.sqrt(2), 0)) + Fraction(1, 2**52)
    assert Schema(one, norm=0.75, intercept=True).feature_bound == Fraction(5, 4)
    assert Schema(one).target_bound == 1


WRONG: list[Any] = [{"x": (0, 1)}, {1: Number(0, 1)}, [("x", Number(0, 1))], 1, None, [[1]]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Number(1, 0), ValueError, "less than"),
        (lambda: Number(1, 1), ValueError, "less than"),
        (lambda: Number(0, math.inf), ValueError, "finite"),
        (lambda: Number(math.nan, 1), ValueError, "finite"),
        (lambda: Number(upper=1).middle, ValueError, "lower bound is missing.*private_bounds.*snugdp bounds"),
        (lambda: Number(upper="1e300"), ValueError, "1e290"),
        (lambda: Number(0, True), TypeError, "boolean"),
        (lambda: Number(0, "1e300"), ValueError, "1e290"),
        (lambda: Number(1, "1.00000000000000000001"), ValueError, "close"),
        (lambda: Category("abc"), TypeError, "list"),
        (lambda: Category([]), ValueError, "empty"),
        (lambda: Category(["a", "a"]), ValueError, "same label"),
        (lambda: Category(["a", 1]), TypeError, "all text"),
        (lambda: Category([1, True]), TypeError, "all text"),
        (lambda: Category([math.nan]), TypeError, "all text"),
        (lambda: Category([None]), TypeError, "all text"),
        (lambda: Category(WRONG[5]), TypeError, "all text"),
        (lambda: Schema({}), ValueError, "at least one column"),
        (lambda: Schema({"y": Number(0, 1)}, target="y"), ValueError, "besides the target"),
        (lambda: Schema({"x": Number(0, 1)}, target="y"), ValueError, "not one of the columns"),
        (lambda: Schema({"x": Number(0, 1), "y": Category(["a"])}, target="y"), TypeError, "not a Category"),
        (lambda: Schema(WRONG[0]), TypeError, "must be a Number"),
        (lambda: Schema(WRONG[1]), TypeError, "text"),
        (lambda: Schema(WRONG[2]), TypeError, "map names"),
        (lambda: Schema({"x": Number(0, 1)}, intercept=WRONG[3]), TypeError, "intercept"),
        (lambda: Schema({"x": Number(0, 1)}, norm=0), ValueError, "norm"),
        (lambda: Schema({"x": Number(0, 1)}, norm=2), ValueError, "norm"),
        (lambda: Schema({"intercept": Number(0, 1)}), ValueError, '"intercept"'),
        (lambda: Schema({"c": Category(["a"]), "c=a": Boolean()}), ValueError, '"c=a"'),
        (lambda: Schema({"x": Number(0, 1)}).coefficients([1.0]), ValueError, "2 entries"),
    ],
)
def test_bad_schemas(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"city": nw.String()}, 'no column "age"; it has "city"'),
        ({"age": nw.String()}, 'column "age" is of type String'),
        ({"age": nw.Date()}, 'column "age" is of type Date'),
        ({"age": nw.Float32(), "city": nw.Duration()}, 'column "city" is of type Duration'),
        ({"age": nw.Decimal(), "city": nw.Enum(["x"]), "member": nw.String()}, 'column "member" is of type String'),
        ({"age": nw.Object(), "city": nw.Object(), "member": nw.Int8(), "income": nw.List(nw.Int8())}, '"income"'),
    ],
)
def test_a_table_that_does_not_fit(types: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        SCHEMA.check(types)


def test_a_wrong_table_is_refused_without_quoting_it() -> None:
    for native in (pd.DataFrame({"age": pd.to_datetime(["2021-07-07"])}), pl.DataFrame({"age": [["secret-7"]]})):
        with pytest.raises(TypeError, match="convert the column") as caught:
            Schema({"age": Number(0, 1)}).vectors(frame(native))
        assert "secret" not in str(caught.value)
        assert "2021" not in str(caught.value)


def test_numbers_as_categories_and_truth_values() -> None:
    schema = Schema({"n": Category([1, 2]), "b": Boolean()}, intercept=False)
    part = part_of_norm(2)
    for native in (
        pl.DataFrame({"n": [2, 3, None], "b": [1, 0, 7]}),
        pd.DataFrame({"n": [2.0, 3.0, math.nan], "b": [1.0, 0.0, math.nan]}),
        pd.DataFrame(
            {"n": pd.Series([2, 3, None], dtype="category"), "b": pd.Series([True, False, "x"], dtype=object)}
        ),
    ):
        assert schema.vectors(frame(native))[0].tolist() == [[0, part, part], [0, 0, -part], [0, 0, 0]]


def test_a_schema_is_a_value() -> None:
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA
    assert hash(pickle.loads(pickle.dumps(SCHEMA))) == hash(SCHEMA)
    turned = Schema(dict(reversed(list(SCHEMA.columns.items()))), target="income")
    assert turned != SCHEMA  # the order of the columns is the order of the entries
    columns = {"x": Number(0, 1)}
    kept = Schema(columns)
    columns["y"] = Number(0, 1)
    assert kept.features == ("x", "intercept")
