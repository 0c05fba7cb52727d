"""One cell at a time: what its number, its label, its text and its moment are, whatever a library says its type is."""

import datetime
import math
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
from snugdp.tables.cells.cell import in_single, label, moment, number, sequence, text, truth
from snugdp.tables.cells.columns import cells_of
from tests.tables.cells.odd import ODD


def test_numbers() -> None:
    cells = ("1e3", " 2 ", "TRUE", np.int8(3), b"4", 5 + 0j, [6], np.array(7))
    assert [number(c) for c in cells] == [1e3, 2, 1, *range(3, 8)]
    for cell in ("1_0", "", "x", b"\xff", 5 + 1j, pd.NaT, pd.NA, np.timedelta64(1), [1, 2], [], [[1]], "１"):
        assert math.isnan(number(cell)), cell
    assert number(10**400) == math.inf


def test_truth_values() -> None:
    assert [truth(c) for c in ("Yes", "t", b"TRUE", 1, "1.0", True)] == [1.0] * 6
    assert [truth(c) for c in ("no", "F", "false", 0, "0", np.bool_(False))] == [0.0] * 6
    assert all(math.isnan(truth(c)) for c in (2, "2", "maybe", None, "", math.nan))


def test_labels_are_the_same_in_every_type_that_a_library_may_give_them() -> None:
    for same in (
        [1, 1.0, True, "1", " 1", "1.0", b"1", np.int8(1), np.float32(1), "True", 1 + 0j, [1], "01"],
        [0.1, "0.1", np.float32(0.1), float(np.float32(0.1)), "0.10", np.longdouble(0.1)],
        [2**53 + 1, float(2**53), "9007199254740993", np.int64(2**53 + 1), "9007199254740992.0"],
        ["red", b"red", np.str_("red"), ["red"]],
        [datetime.date(2020, 1, 1), "2020-01-01", np.datetime64("2020-01-01", "ns"), pd.Timestamp("2020-01-01")],
    ):
        assert len({label(cell) for cell in same}) == 1
        assert len({text(cell) for cell in same}) == 1
    assert all(label(c) is None for c in (None, math.nan, "nan", "", pd.NaT, pd.NA, object(), [], [1, 2], b"\xff"))
    assert len({label(cell) for cell in ("red", "Red", " red", 1, "2020-01-01", 20200101)}) == 6


def test_texts() -> None:
    cells = (2**52 + 1, -0.0, np.str_("é"), b"\xff", "\ud800", pd.NA, math.inf)
    assert [text(c) for c in cells] == [str(2**52 + 1), "0", "é", None, None, None, "inf"]


def test_large_identifiers_are_told_apart() -> None:
    assert len({label(number) for number in range(123_456_700, 123_456_800)}) == 100


def test_one_zero_and_missing_entries_of_arrays() -> None:
    assert [math.copysign(1, number(cell)) for cell in (-0.0, "-0", np.float32(-0.0), [-0.0])] == [1.0] * 4
    assert all(math.isnan(number(cell)) for cell in np.ma.array([1.0, 2.0], mask=True))
    assert math.isnan(number(np.array("2020", dtype="M8[ns]")))
    assert math.isnan(number(range(10**12)))
    assert math.isnan(number(np.broadcast_to(1.0, 10**11)))


def test_moments() -> None:
    assert moment("2020-01-02T00:00:00+01:00") == moment(np.datetime64("2020-01-01T23")) != moment("2020-01-02")
    assert [moment(c) for c in (pd.NaT, "x", 5, None, np.datetime64("NaT"))] == [None] * 5
    assert moment(np.datetime64("1969-12-31T23:59:59.999999999")) == moment("1969-12-31T23:59:59.999999999") == -1


@given(st.floats(allow_nan=False))
def test_single_precision_has_one_name_for_each_of_its_numbers(value: float) -> None:
    with np.errstate(all="ignore"):
        single = np.float32(value)
    if not float(single).is_integer() or abs(value) < 2**24:
        assert label(single) == label(float(single)) == label(str(single)) == in_single(float(single))
    assert in_single(in_single(value)) == in_single(value)


@pytest.mark.parametrize("read", [number, truth, label, text, moment, sequence])
def test_every_cell_has_an_image(read: Any) -> None:
    for cell in ODD:
        first, second = read(cell), read(cell)
        assert repr(first) == repr(second) or first == second


SPELLED = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text(alphabet="0123456789.eE+- _infatyINFTRUEruej(),x１٣\t\x0b\x1c\x85\xa0\u2003\n\x00", max_size=8),
    st.text(max_size=5),
)


@given(st.lists(SPELLED, max_size=20))
def test_text_inside_polars_is_read_as_each_cell_by_itself(cells: list[str]) -> None:
    found = numbers(pl.Series(cells, dtype=pl.String))
    assert np.array_equal(found, [number(cell) for cell in cells], equal_nan=True)


def test_a_column_with_bytes_that_are_not_text() -> None:
    ends, raw = np.array([0, 1, 2], dtype=np.int32), b"a\xff"
    broken = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(ends), pa.py_buffer(raw)])
    assert cells_of(nw.from_native(pa.table({"a": broken}), eager_only=True).get_column("a")) == ["a", None]
