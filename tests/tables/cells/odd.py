"""Odd cells: what one row of a table may hold, and what decides nothing about the others."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from snugdp_studies.audit.side_channels.inputs import STRANGE

PLAIN: list[Any] = [
    0, 1, -1, 7, 2**24 + 1, 2**53 + 1, 2**63, 2**64 + 1, 10**400, -(10**400), 0.0, -0.0, 0.1, 0.5, 2.5, 1e-300, 1e300,
    math.inf, -math.inf, math.nan, True, False, None, "", " ", "x", "1", "1.0", " 1", "01", "+1", "1e0", "0.1", "true",
    "False", "yes", "nan", "NaN", "inf", "-Infinity", "1_0", "0x1", "1,0", "１", "½", "?", "None", "NA", "a\x00", "é",
    "2020-01-01", "1+0j", "1j", "9007199254740993", "1e400", "x" * 5000, b"1", b"x", b"\xff", 1 + 0j, 1j,
    Decimal("0.1"), Decimal("1"), Decimal("sNaN"), Decimal("1e9999"), Fraction(1, 3), Fraction(10**400, 3),
    np.float16(0.1), np.float32(0.1), np.float64(0.1), np.longdouble("0.1"), np.int8(1), np.uint64(2**63),
    np.bool_(True), np.complex64(1), np.datetime64("2020-01-01"), np.datetime64("2020"),
    np.datetime64("NaT"), np.timedelta64(5, "s"),
    np.str_("1"), np.bytes_(b"1"), np.array(1.0), np.array([1.0]), np.array([1, 2]), np.array(["1"]), np.void(b"ab"),
    pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), pd.Interval(0, 1), pd.Period("2020"),
    datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(1),
    [], [1], [1, 2], [[1]], ["1"], [None], (1,), (), {"a": 1}, {1}, range(1), range(3), object(), float, ..., "\ud800",
]  # fmt: skip
"""Cells of every type that Python and the libraries have."""

HOSTILE: list[Any] = [make() for make in STRANGE.values()]
"""Cells that run code when they are looked at, and the audit's own."""

ODD: list[Any] = [*PLAIN, *HOSTILE]

cells = st.integers(0, len(ODD) - 1).map(ODD.__getitem__)  # hypothesis would ask the cells themselves
