"""A row's image depends on that row alone, and no row can make a column raise: the ground every guarantee stands on."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.data.column import numbers, places
from snugdp.data.named import counts
from snugdp.data.named import places as named

NAN = math.nan
ODD: list[Any] = [
    1, 0, -1, True, False, 2**53 + 1, 2**60 + 1, 2**63 + 1, 10**400, -(10**400), 0.0, -0.0, 0.5, 1.0, NAN,
    math.inf, 1e308, "a", "b", "", "1", b"a", None, Decimal("1"), Decimal("sNaN"), Decimal("1e9999"), Fraction(1, 3),
    Fraction(10**400, 3), 1j, np.int64(1), np.float32(0.1), np.bool_(True), np.timedelta64(5, "s"),
    np.datetime64("2020-01-01"), np.array(5.0), np.array([1, 2]), [1, 2], (1, 2), {"a": 1}, {1}, object(),
    datetime.date(2020, 1, 1), "x" * 10_000, float, range(3),
]  # fmt: skip
CATEGORIES: list[Any] = [1, 0, 2**53 + 1, 2**60 + 1, 2**63 + 1, "a", "b", 0.5, None, (1, 2), b"a"]
UNTYPED: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": lambda rows: np.fromiter(rows, dtype=object, count=len(rows)),
    "pandas": lambda rows: pd.Series(np.fromiter(rows, dtype=object, count=len(rows)), dtype=object),
    "polars": lambda rows: pl.Series("count", rows, dtype=pl.Object),
}
odd = st.lists(st.sampled_from(ODD), max_size=12)


@pytest.mark.parametrize("container", UNTYPED)
@given(rows=odd)
def test_rows_of_untyped_columns_do_not_see_each_other(container: str, rows: list[Any]) -> None:
    column = UNTYPED[container]([*rows, 7])  # never only text, which is a type of its own
    together = numbers(column)
    alone = np.array([numbers([row, 7])[0] for row in [*rows, 7]])
    assert np.array_equal(together, alone, equal_nan=True)
    found = places(column, CATEGORIES)
    assert found.tolist() == [places([row], CATEGORIES)[0] for row in [*rows, 7]]


@given(rows=odd, more=st.sampled_from(ODD))
def test_one_more_row_adds_one_image(rows: list[Any], more: Any) -> None:
    before, after = numbers([*rows, 7]), numbers([7, more, *rows])
    assert len(after) == len(before) + 1
    assert np.array_equal(np.sort(after[np.r_[0, 2 : len(after)]]), np.sort(before), equal_nan=True)
    difference = np.array(counts([*rows, more], CATEGORIES)) - counts(rows, CATEGORIES)
    assert difference.sum() <= 1
    assert set(difference.tolist()) <= {0, 1}


def invalid_text() -> pa.Array:
    offsets = np.array([0, 1, 2], dtype=np.int32).tobytes()
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"\xffa")])


@pytest.mark.parametrize(
    ("column", "label", "count"),
    [
        (pa.array([0.0] * 9 + [-0.0]), 0.0, 10),
        (pl.Series([0.0] * 9 + [-0.0]), 0.0, 10),
        (pd.Series([0.0] * 9 + [-0.0]), 0.0, 10),
        (pd.Series([0.0] * 9 + [-0.0], dtype="double[pyarrow]"), 0.0, 10),
        (np.array([2**60 + 1, 2**60]), 2**60 + 1, 1),
        (pa.array([2**60 + 1, 2**60, None]), 2**60 + 1, 1),
        (pl.Series("count", ["a", "b", None, "a"]), "a", 2),
        (pd.Series(["a", "b", None, "a"], name="count"), "a", 2),
        (pd.Series([1, 2, None, 1], dtype="category"), 1, 2),
        (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), "b", 1),
        (pl.Series([True, None, False]), True, 1),
        (np.ma.array(["a", "b", "a"], mask=[False, False, True]), "a", 1),
        (np.ma.array([1, 2, 1], mask=[False, False, True]), 1, 1),
        (pl.Series([{"a": 1}, [1], 3], dtype=pl.Object), 3, 1),
        (invalid_text(), "a", 1),
    ],
    ids=lambda value: type(value).__module__ if hasattr(value, "__len__") and not isinstance(value, str) else None,
)
def test_typed_labels_are_counted_exactly(column: Any, label: Any, count: int) -> None:
    assert counts(column, ["nobody's", label]) == [0, count]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 2**30], pa.date32()),
        pl.Series([2**61], dtype=pl.Datetime("us")),
        pl.Series([2**30], dtype=pl.Date),
        pa.array([2**62], pa.timestamp("s")),
        pa.array([b"x"]),
        np.array([(1, "a")], dtype=[("n", int), ("o", object)]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        pl.Series([[1, 2]]),
        pa.array([b"a", b"b"], pa.large_binary()),
        pa.array([b"a", None], pa.large_binary()),
        pa.array([b"a", b"b"], pa.binary(1)),
    ],
    ids=lambda column: type(column).__module__,
)
def test_other_types_are_refused_by_type_alone(column: Any) -> None:
    for read in (lambda c: places(c, ["a"]), numbers):
        with pytest.raises(TypeError, match="convert") as caught:
            read(column)
        assert "2020" not in str(caught.value)
        assert caught.value.__context__ is None
    assert counts(column, ["nobody's"]) == [0]  # names are looked for in every cell, whatever its type


@pytest.mark.parametrize("make", [list, np.array, pl.Series, pd.Series, pa.array], ids=lambda make: make.__name__)
def test_one_odd_cell_does_not_change_what_the_others_are(make: Any) -> None:
    whole, spelled = make([1, 2, 2, 3]), make(["1", "2", "2", "?"])  # as a loader has them with and without the "?"
    for categories in ([1, 2, 3], ["1", "2", "3"], [1.0, 2.0, 3.0]):
        assert counts(whole, categories) == [1, 2, 1]
        assert counts(spelled, categories) == [1, 2, 0]
        assert named(spelled, categories).tolist() == [0, 1, 1, -1]


@given(rows=odd)
def test_counts_are_those_of_the_places(rows: list[Any]) -> None:
    found = named(rows, CATEGORIES)
    assert counts(rows, CATEGORIES) == [int((found == place).sum()) for place in range(len(CATEGORIES))]
    assert found.tolist() == [named([row], CATEGORIES)[0] for row in rows]


def test_a_message_names_no_label_and_no_length() -> None:
    for column in (pd.Series(pd.Categorical(["alice", "bob"], ordered=True)), np.array(["alice", "bob"])):
        with pytest.raises(TypeError) as caught:
            numbers(column)
        assert "alice" not in str(caught.value)
        assert "5" not in str(caught.value)


def test_masked_columns_go_by_their_type() -> None:
    for mask in ([False, False], [True, False]):
        with pytest.raises(TypeError, match="text"):
            numbers(np.ma.array(["a", "b"], mask=mask))
    assert np.isnan(numbers(np.ma.array([1, 2], mask=[True, False]))).tolist() == [True, False]


def test_a_long_text_does_not_blow_up_the_others() -> None:
    rows: list[Any] = [1.0] * 1000 + ["x" * 1_000_000]
    assert len(numbers(rows)) == 1001
    assert counts(rows, [1.0]) == [1000]


@pytest.mark.parametrize(
    "column", [pa.nulls(2), pl.Series([None, None]), pd.Series([None, None], dtype="null[pyarrow]")]
)
def test_a_column_of_nothing_is_missing(column: Any) -> None:
    assert np.isnan(numbers(column)).all()
    assert counts(column, ["a"]) == [0]


def test_decimals_are_rounded_alike_by_every_backend() -> None:
    cents = [Decimal(i) / 100 for i in range(2000)]
    for column in (
        cents,
        pa.array(cents),
        pl.Series(cents),
        pd.Series(pa.array(cents), dtype=pd.ArrowDtype(pa.decimal128(10, 2))),
    ):
        assert numbers(column).tolist() == [float(cent) for cent in cents]
