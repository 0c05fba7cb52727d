"""Dates and times: one rule for one cell, in every container, whatever the other cells hold."""

import datetime
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.tables.cells import cell as one
from snugdp.tables.cells import dates, moments
from snugdp.tables.cells.cell import DAY
from snugdp.tables.cells.dates import MISSING, days
from snugdp_studies.audit.side_channels.inputs import object_array as objects
from tests.effort import often, repeated, sampled
from tests.tables.cells.loaders import LOADERS, load
from tests.tables.cells.odd import HOSTILE, ODD, cells

BERLIN = datetime.timezone(datetime.timedelta(hours=2))
BASES: dict[str, list[Any]] = {
    "days": [datetime.date(2020, 1, 1), datetime.date(1900, 5, 6)],
    "times": [datetime.datetime(2020, 1, 1, 12, 30), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)],
    "zones": [datetime.datetime(2020, 1, 1, tzinfo=BERLIN), datetime.datetime(1999, 1, 1, 7, tzinfo=BERLIN)],
    "stamps": [pd.Timestamp("2020-01-01T00:00:00.000000001"), pd.Timestamp("1960-01-01")],
    "text": ["2020-01-01", " 2020-01-02 12:30:00", "20200101", "2020-01-01T00:00:00.5+02:00", None],
}


def alone(cell: Any) -> int:
    found = one.moment(cell)
    return MISSING if found is None else found


def quiet(column: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return moments(column)


def refused(column: Any) -> bool:
    try:
        quiet(column)
    except TypeError as problem:
        return problem.__context__ is None and "must hold dates" in str(problem)
    return False


@sampled(12)
@repeated
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # loaders ask hostile cells
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("base", BASES)
def test_one_odd_cell_does_not_change_the_others(base: str, loader: str) -> None:
    plain, turn = LOADERS[loader](BASES[base]), sum(map(ord, base + loader))
    for more in ODD[turn % often(12, 4, 1) :: often(12, 4, 1)]:
        if loader == "polars" and any(more is cell for cell in HOSTILE):
            continue  # polars itself asks such a cell, and fails
        column = load(loader, [*BASES[base], more])
        if column is None or len(column) != len(plain) + 1 or getattr(column, "ndim", 1) != 1:
            continue  # this library cannot hold the cells, or makes a matrix of them
        if refused(column[:0]):
            assert refused(column)
        elif loader == "polars" and column.dtype.is_float():
            pass  # polars made numbers of dates
        elif not refused(plain):
            assert np.array_equal(quiet(column)[:-1], quiet(plain)), (base, loader, more)


UNTYPED: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "objects": objects,
    "pandas": lambda rows: pd.Series(objects(rows), dtype=object),
}


@pytest.mark.parametrize("container", UNTYPED)
@given(rows=st.lists(cells, max_size=12))
def test_cells_of_untyped_columns_do_not_see_each_other(container: str, rows: list[Any]) -> None:
    assert quiet(UNTYPED[container](rows)).tolist() == [alone(row) for row in rows]


WHEN = [
    datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 1),
    datetime.datetime(9999, 12, 31, 23, 59, 59), datetime.datetime(1970, 1, 1), None,
]  # fmt: skip
NEAR = [when if when is None or 1700 < when.year < 2200 else None for when in WHEN]  # what nanoseconds can hold
SHORT = [None if w is None else w.replace(microsecond=w.microsecond // 1000 * 1000) for w in NEAR]
LATE = [None if when is None else when.replace(microsecond=0) for when in WHEN]
DATES = [None if when is None else when.date() for when in WHEN]
TYPED: dict[str, tuple[Any, list[Any]]] = {
    "polars us": (pl.Series(WHEN, dtype=pl.Datetime("us")), WHEN),
    "polars ms": (pl.Series(LATE, dtype=pl.Datetime("ms")), LATE),
    "polars ns": (pl.Series(NEAR, dtype=pl.Datetime("ns")), NEAR),
    "polars zone": (pl.Series(NEAR, dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone("Asia/Tokyo"), NEAR),
    "polars dates": (pl.Series(DATES), DATES),
    "polars objects": (pl.Series(DATES, dtype=pl.Object), DATES),
    **{f"pandas {unit}": (pd.Series(LATE, dtype=f"datetime64[{unit}]"), LATE) for unit in ("s", "ms", "us")},
    "pandas ns": (pd.Series(NEAR, dtype="datetime64[ns]"), NEAR),
    "pandas zone": (pd.Series(NEAR, dtype="datetime64[us, UTC]").dt.tz_convert("America/New_York"), NEAR),
    "pandas dates": (pd.Series(objects(DATES), dtype=object), DATES),
    "pandas arrow": (pd.Series(pa.array(WHEN, pa.timestamp("us")), dtype=pd.ArrowDtype(pa.timestamp("us"))), WHEN),
    "pandas arrow dates": (pd.Series(pa.array(DATES), dtype=pd.ArrowDtype(pa.date32())), DATES),
    "pandas categories": (pd.Series(DATES).astype("category"), DATES),
    "pandas index": (pd.DatetimeIndex(NEAR), NEAR),
    "arrow us": (pa.array(WHEN, pa.timestamp("us")), WHEN),
    "arrow s": (pa.array(LATE, pa.timestamp("s")), LATE),
    "arrow zone": (pa.array(NEAR, pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", "Asia/Tokyo")), SHORT),
    "arrow date32": (pa.array(DATES, pa.date32()), DATES),
    "arrow date64": (pa.array(DATES, pa.date64()), DATES),
    "arrow chunks": (pa.chunked_array([pa.array(DATES[:2]), pa.array(DATES[2:])]), DATES),
    "numpy objects": (objects([None if d is None else np.datetime64(d) for d in DATES]), DATES),
    "numpy text": (np.array([str(d) for d in DATES]), DATES),
    "numpy bytes": (np.array([str(d).encode() for d in DATES]), DATES),
    "list": (list(WHEN), WHEN),
}


@pytest.mark.parametrize("kind", TYPED)
def test_every_container_has_the_same_moments(kind: str) -> None:
    column, expected = TYPED[kind]
    assert quiet(column).tolist() == [alone(cell) for cell in expected]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8), st.sampled_from(["ms", "us", "ns"]))
def test_typed_times_are_read_as_each_cell_by_itself(counts: list[int], unit: Any) -> None:
    per = {"ms": 1000, "us": 1}.get(unit, 0)
    first, last = alone("0001-01-01"), alone("9999-12-31T23:59:59.999999")
    exact = [count // 1000 if unit == "ns" else count * per for count in counts]
    expected = [
        value if first <= value <= last and count != -(2**63) else MISSING
        for count, value in zip(counts, exact, strict=True)
    ]
    frame = pl.Series(counts, dtype=pl.Int64)
    assert quiet(frame.cast(pl.Datetime(unit))).tolist() == expected
    assert quiet(frame.cast(pl.Datetime(unit, "Asia/Tokyo"))).tolist() == expected
    assert quiet(pa.array(counts, pa.int64()).cast(pa.timestamp(unit))).tolist() == expected
    assert quiet(pd.Series(np.array(counts, np.int64).view(f"M8[{unit}]"))).tolist() == expected
    small = [count % 2**32 - 2**31 for count in counts]
    whole = [count * DAY if first <= count * DAY <= last else MISSING for count in small]
    assert quiet(pl.Series(small, dtype=pl.Int32).cast(pl.Date)).tolist() == whole
    assert quiet(pa.array(small, pa.int32()).cast(pa.date32())).tolist() == whole


DIGITS = st.integers(0, 9999).map(str)
SPELLED = st.one_of(
    st.datetimes().map(lambda when: when.isoformat()),
    st.datetimes(timezones=st.just(BERLIN)).map(str),
    st.dates().map(str),
    st.text("0123456789-+:T .,ZW", max_size=25),
    st.from_regex(r"[ ]?[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2})?[ ]?", fullmatch=True),
    st.sampled_from(["2024-02-30", "0000-01-01", "2024-01-01T24:00:00", "2016-12-31 23:59:60", "２024-01-01", "\ud7ff",
                     "+2024-01-01", "24-1-1", "2024-1-1", "2024-01-01 00:00:00\n", "2024-01-01\x00", "", " ", "NaT"]),
)  # fmt: skip


@given(st.lists(st.one_of(SPELLED, st.none()), max_size=8))
def test_text_inside_polars_is_read_as_each_cell_by_itself(rows: list[str | None]) -> None:
    expected = [alone(row) for row in rows]
    assert quiet(pl.Series(rows, dtype=pl.String)).tolist() == expected
    assert quiet(pd.Series(rows, dtype="str")).tolist() == expected
    assert quiet(pa.array(rows, pa.string())).tolist() == expected


def test_days_are_whole_days_and_one_rounded_fraction() -> None:
    assert dates(["1970-01-02T06:00:00", "1969-12-31T18:00", "x"]).tolist()[:2] == [1.25, -0.25]
    assert days(np.array([MISSING, DAY])).tolist()[1:] == [1.0]
    assert np.isnan(days(np.array([MISSING, DAY]))[0])
    assert dates([]).tolist() == []


@pytest.mark.parametrize(
    "column",
    [
        np.array(["2020-01-01"], dtype="datetime64[D]"), np.array([1, 2]), np.array([True]), pl.Series([1]),
        pl.Series([datetime.time(12)]), pl.Series([datetime.timedelta(1)]), pa.array([1], pa.time64("us")),
        pl.Series([[1]]), pd.Series([1, 2]), pd.Series(pd.period_range("2020", periods=1)), pl.Series([True]),
    ],
    ids=lambda column: f"{type(column).__module__} {getattr(column, 'dtype', getattr(column, 'type', ''))}",
)  # fmt: skip
def test_types_that_are_no_dates_are_refused_by_type_alone(column: Any) -> None:
    with pytest.raises(TypeError, match="must hold dates") as caught:
        moments(column)
    assert "2020" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_column_of_nothing_is_missing() -> None:
    for column in (pa.nulls(2), pl.Series([None, None]), pd.Series([None, None]), pd.Series([np.nan, np.nan])):
        assert moments(column).tolist() == [MISSING] * 2
