"""A column of dates and times, cell by cell: microseconds since 1970 in UTC, and days as floats.

``cell.moment`` is the rule: dates, times (in UTC where they have a zone, and taken to be in UTC where they have none)
and ISO 8601 text between the years 1 and 9999; all else is missing, numbers too. Columns of a declared type of dates,
and text inside polars that is plainly spelled, are read at once with the same images.

numpy's arrays of dates are refused, as they are for labels: numpy makes dates of whole numbers and changes the unit of
a whole array, so that early and late dates wrap around, if one cell asks for it.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from snugdp.tables.cells import cell as one
from snugdp.tables.cells.columns import (
    Floats,
    Integers,
    Rows,
    by_distinct,
    declared,
    images,
    inferred,
    open_column,
    refusal,
)  # fmt: skip

if TYPE_CHECKING:
    import polars as pl

MISSING = np.iinfo(np.int64).min  # among microseconds, as numpy and pandas have it
_EPOCH = date(1970, 1, 1).toordinal()
_UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}  # microseconds
_FIRST, _LAST = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH  # days
_PLAIN = (
    r"^(?<day>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ](?<time>(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    r"(?:[.](?<fraction>[0-9]{1,6}))?(?:Z|(?<sign>[+-])(?<hours>[01][0-9]|2[0-3]):(?<minutes>[0-5][0-9]))?)?$"
)


def dated(dtype: nw.dtypes.DType) -> bool:
    """Whether a column of this declared type is read as dates. Floats are: pandas makes them of missing cells alone."""
    return dtype in (nw.Date, nw.Datetime, nw.Float64) or inferred(dtype) in (nw.Object, nw.Unknown)


def moments(data: object) -> Integers:
    """The column as microseconds since 1970; ``MISSING`` for what is no date.

    >>> moments(["1970-01-01", "1970-01-01T00:00:01+00:00", 5]).tolist() == [0, 1_000_000, MISSING]
    True
    """
    rows = open_column(data)
    if isinstance(rows, np.ndarray) and rows.dtype.kind not in "USf":
        raise refusal("the column must hold dates", rows)
    if isinstance(rows, nw.Series) and not dated(declared(rows)):
        raise refusal("the column must hold dates", rows)
    return images(rows, lambda: _moments(rows))


def dates(data: object) -> Floats:
    """The column as days since 1970, with fractions for times; NaN for what is no date.

    >>> dates(["1970-01-02", "1970-01-01T12:00:00", "?", None]).tolist()
    [1.0, 0.5, nan, nan]
    """
    return days(moments(data))


def days(microseconds: Integers) -> Floats:
    """Microseconds as days: whole ones, and one correctly rounded fraction added to them."""
    whole = microseconds // one.DAY
    found: Floats = whole + (microseconds - whole * one.DAY) / float(one.DAY)
    found[microseconds == MISSING] = np.nan
    return found


def _moments(rows: Rows) -> Integers:
    if isinstance(rows, nw.Series):
        typed = _typed(rows)
        if typed is not None:
            return typed
        native: Any = rows.to_native()
        if rows.dtype == nw.String and nw.dependencies.is_polars_series(native):
            return _spelled(native)
    elif isinstance(rows, np.ndarray) and rows.dtype.kind == "f":
        return np.full(len(rows), MISSING)
    return by_distinct(rows, _moment, MISSING)


def _moment(cell: Any) -> int:
    found = one.moment(cell)
    return MISSING if found is None else found


def _typed(rows: nw.Series[Any]) -> Integers | None:
    """Dates of a declared type, where its library shows the whole numbers behind them."""
    if rows.dtype.is_float():
        return np.full(len(rows), MISSING)
    found = _counts(rows.to_native()) if declared(rows) in (nw.Date, nw.Datetime) else None
    if found is None:
        return None
    return _within_years(*found)


def _within_years(counts: Integers, unit: str) -> Integers:
    """Microseconds, from whole numbers of a unit; ``MISSING`` for what is not between the years 1 and 9999."""
    per_day = 1 if unit == "D" else one.DAY * 1000 if unit == "ns" else one.DAY // _UNITS[unit]
    whole = counts // per_day
    rest = counts - whole * per_day
    rest = rest // 1000 if unit == "ns" else rest * _UNITS.get(unit, 0)
    is_known = (counts != MISSING) & (whole >= _FIRST) & (whole <= _LAST)
    return np.where(is_known, np.where(is_known, whole, 0) * one.DAY + rest, MISSING)


def _counts(native: Any) -> tuple[Integers, str] | None:
    """The whole numbers behind a column of dates in UTC, ``MISSING`` where there is none, and their unit."""
    if nw.dependencies.is_polars_series(native):
        import polars as pl

        counts = native.to_physical().cast(pl.Int64).fill_null(MISSING)
        return counts.to_numpy(), getattr(native.dtype, "time_unit", "D")
    if nw.dependencies.is_pandas_series(native):
        if hasattr(native.dtype, "pyarrow_dtype"):
            return _of_arrow(native.array.__arrow_array__())
        plain = native if getattr(native.dtype, "tz", None) is None else native.dt.tz_convert(None)
        values = plain.to_numpy()
        return values.view(np.int64), np.datetime_data(values.dtype)[0]
    return _of_arrow(native) if nw.dependencies.is_pyarrow_chunked_array(native) else None


def _of_arrow(native: Any) -> tuple[Integers, str]:
    import pyarrow as pa

    if native.type == pa.date32():
        native, unit = native.cast(pa.int32()), "D"
    else:
        unit = getattr(native.type, "unit", "ms")  # date64 has milliseconds
    return np.asarray(native.cast(pa.int64()).fill_null(MISSING).to_numpy()), unit


def _spelled(rows: pl.Series) -> Integers:
    """Dates that text spells: by polars where they are plainly spelled, and all others one by one."""
    import polars as pl

    part = rows.str.strip_chars().str.extract_groups(_PLAIN).struct.unnest()
    local = part["day"] + "T" + part["time"].fill_null("00:00:00")
    fraction, hours, minutes = (
        digits.cast(pl.Int64).fill_null(0)
        for digits in (part["fraction"].str.pad_end(6, "0"), part["hours"], part["minutes"])
    )
    east = (hours * 60 + minutes) * (1 - 2 * (part["sign"].fill_null("+") == "-").cast(pl.Int64))
    found = local.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False).to_physical()
    read = _within_years((found + fraction - east * 60_000_000).fill_null(MISSING).to_numpy(), "us")
    left = (read == MISSING) & rows.is_not_null().to_numpy()
    if left.any():
        read[left] = by_distinct(nw.from_native(rows.filter(pl.Series(left)), series_only=True), _moment, MISSING)
    return read
