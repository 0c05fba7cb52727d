"""One cell at a time: what its number, its text and its moment are, whatever the library says its type is."""

from __future__ import annotations

import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from snugdp.data.cells import as_moment, as_number, as_text, cells_of


def test_numbers() -> None:
    assert [as_number(c) for c in ("1e3", " 2 ", "TRUE", np.int8(3), b"4", 5 + 0j)] == [1e3, 2, 1, 3, 4, 5]
    assert all(np.isnan(as_number(c)) for c in ("1_0", "", "x", b"\xff", 5 + 1j, pd.NaT, pd.NA, np.timedelta64(1), [1]))
    assert as_number(10**400) == float("inf")


def test_texts() -> None:
    assert [as_text(c) for c in (2**60, -0.0, np.str_("é"), b"\xff", "\ud800", pd.NA, 10**5000)] == [
        str(2**60), "0", "é", None, None, None, None,
    ]  # fmt: skip
    assert as_text(pd.Timestamp("2020-01-02")) == as_text(datetime.date(2020, 1, 2)) == "2020-01-02"


def test_moments() -> None:
    assert (
        as_moment("2020-01-02T00:00:00+01:00") == as_moment(np.datetime64("2020-01-01T23")) != as_moment("2020-01-02")
    )
    assert [as_moment(c) for c in (pd.NaT, "x", 5, None, datetime.date(9999, 1, 1), np.datetime64("NaT"))] == [None] * 6


def test_a_column_with_bytes_that_are_no_text() -> None:
    ends, text = np.array([0, 1, 2], dtype=np.int32), b"a\xff"
    broken = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(ends), pa.py_buffer(text)])
    assert cells_of(nw.from_native(pa.table({"a": broken}), eager_only=True).get_column("a")) == ["a", None]
