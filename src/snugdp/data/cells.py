"""Cells of rows, one by one: what a cell is read as depends on itself alone, not on the type of its column.

Libraries give a column the type that all its cells have in common, so one cell can turn a column of numbers into text.
Here 1, 1.0 and "1" are the same number, and the same text. What cannot be read is missing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.data.column import number
from snugdp.data.quiet import quietly

T = TypeVar("T")

_PLAIN = {int, float, bool}
_TRUTH = {"true": 1.0, "false": 0.0}
_YEARS = range(1678, 2262)  # that fit into nanoseconds since 1970, as some libraries count


@contextmanager
def hushed() -> Iterator[None]:
    """No warning leaves, not even one that the code inside insists on."""
    with warnings.catch_warnings(record=True), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def as_number(cell: Any) -> float:
    """One cell as a float; NaN for what is no number.

    >>> [as_number(cell) for cell in (1, "1.0", True, "True", "?", None)]
    [1.0, 1.0, 1.0, 1.0, nan, nan]
    """
    return tried(_number, cell, math.nan)


def as_text(cell: Any) -> str | None:
    """One cell as text; None for what has none.

    >>> [as_text(cell) for cell in (1, 1.0, "1", 0.5, "red", True, float("nan"), object())]
    ['1', '1', '1', '0.5', 'red', 'True', None, None]
    """
    return tried(_text, cell, None)


def as_moment(cell: Any) -> int | None:
    """Microseconds since 1970 of a date, a time or text that spells one; None for anything else.

    >>> as_moment("1970-01-02") == as_moment(date(1970, 1, 2)) == 86_400_000_000, as_moment("?")
    (True, None)
    """
    return tried(_moment, cell, None)


def as_numbers(cells: Sequence[Any]) -> NDArray[np.float64]:
    """Each cell as a float."""
    if set(map(type, cells)) <= _PLAIN:  # then numpy converts one by one, as ``as_number`` does
        worked, floats = quietly(lambda: np.array(cells, dtype=np.float64))
        if worked and floats is not None:
            return floats
    return np.fromiter(map(as_number, cells), dtype=np.float64, count=len(cells))


def cells_of(series: nw.Series[Any]) -> list[Any]:
    """The cells of a column. One that its library cannot hand out is missing, and the others are not."""
    worked, cells = quietly(series.to_list)
    if worked and cells is not None:
        return cells
    return [quietly(lambda place=place: series[place])[1] for place in range(len(series))]  # type: ignore[misc]


def tried(read: Callable[[Any], T], cell: Any, missing: T) -> T:
    """What a function makes of a cell; ``missing`` where it raises or returns nothing."""
    worked, value = quietly(lambda: read(cell))
    return missing if not worked or value is None else value


def _string(cell: Any) -> str | None:
    """Text that every library can hold."""
    if isinstance(cell, bytes):
        return bytes.decode(cell)
    if not isinstance(cell, str):
        return None
    text = str.__str__(cell)
    return text if text.isascii() else text.encode().decode()


def _number(cell: Any) -> float:
    text = _string(cell)
    if text is None:
        if isinstance(cell, complex | np.complexfloating):
            return float(cell.real) if cell.imag == 0 else math.nan
        return number(cell)
    if "_" in text:
        return math.nan
    truth = _TRUTH.get(text.lower())
    if truth is not None:
        return truth
    worked, value = quietly(lambda: float(text))
    return value if worked and value is not None else _number(complex(text))


def _text(cell: Any) -> str | None:
    text = _string(cell)
    if text is not None:
        return text
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, int | np.integer):
        return None if math.isnan(number(cell)) else str(int(cell))  # numpy counts durations among the integers
    if isinstance(cell, datetime | date | np.datetime64):
        moment = _moment(cell)
        spelled = None if moment is None else np.datetime64(moment, "us").item().isoformat()
        return None if spelled is None else spelled.removesuffix("T00:00:00")
    value = _number(cell)
    if math.isnan(value):
        return None
    return str(int(value)) if value.is_integer() else repr(value)


def _moment(cell: Any) -> int | None:
    text = _string(cell)
    if text is not None:
        cell = datetime.fromisoformat(text.strip())
    elif isinstance(cell, np.datetime64):
        cell = cell.astype("M8[us]").item()
    if isinstance(cell, datetime):
        if cell.tzinfo is not None:
            cell = cell.astimezone(UTC)
        parts = (cell.year, cell.month, cell.day, cell.hour, cell.minute, cell.second, cell.microsecond)
        moment = datetime(*parts)
    elif isinstance(cell, date):
        moment = datetime(cell.year, cell.month, cell.day)
    else:
        return None
    return int(np.datetime64(moment, "us").astype(np.int64)) if moment.year in _YEARS else None
