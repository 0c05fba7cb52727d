"""Cells of rows, one by one, as the public queries say: the type that a private table gives its columns never counts.

How one cell is read, and why 1, 1.0 and "1" are the same, is in ``tables/cells``. What cannot be read is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np

from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import Names, declared, inferred, numbers, numeric
from snugdp.tables.cells.cell import label, moment, number, text
from snugdp.tables.cells.columns import cells_of, listed_numbers

Kind = Literal["number", "text", "category", "moment", "date"]

_FARTHEST_MOMENT = 9_214_646_400_000_000  # microseconds from 1970 to 2262: some libraries count nanoseconds
_OTHER = (
    "the queries must hold numbers, booleans, text, categories or dates: one of their columns holds something "
    "else. Convert it, or leave it out"
)


@dataclass(frozen=True)
class Column:
    """What the public queries say about a column, and how a private cell is read into it.

    ``type``: of the queries' library, where it has several for a kind. ``choices``: the categories, or the time zone.
    """

    kind: Kind
    type: Any = None
    choices: tuple[Any, ...] = ()

    @classmethod
    def of_cells(cls, cells: Sequence[Any]) -> Column:
        """A column without a declared type: numbers if all public cells are, otherwise text."""
        sorts = set(map(_sort, cells))
        if "other" in sorts:
            raise TypeError(_OTHER)
        return cls("text" if "text" in sorts else "number")

    @classmethod
    def of(cls, series: nw.Series[Any]) -> Column:
        """A column of a public frame."""
        dtype = declared(series)
        native: Any = getattr(series.to_native(), "dtype", None)
        if dtype == nw.Object:
            return cls.of_cells(cells_of(series))
        if dtype.is_numeric() or dtype == nw.Boolean:
            return cls("number")
        pandas = series.implementation.is_pandas()
        if dtype == nw.String:
            return cls("text", native if pandas else None)
        if dtype in (nw.Categorical, nw.Enum):
            if hasattr(native, "categories") and pandas:
                return cls("category", native, tuple(native.categories.tolist()))
            if series.implementation.is_polars():
                listed = dtype.categories if isinstance(dtype, nw.Enum) else set(cells_of(series)) - {None}
                return cls("category", None, tuple(listed if isinstance(dtype, nw.Enum) else sorted(listed)))
            return cls("text")
        if isinstance(dtype, nw.Datetime):
            return cls("moment", None, (dtype.time_zone,))
        if dtype == nw.Date:
            return cls("date")
        raise TypeError(_OTHER)

    def read(self, series: nw.Series[Any]) -> Any:
        """The cells of a column of a frame, read by this one."""
        if self.kind == "number" and numeric(inferred(declared(series))):
            return numbers(series.to_native()) + 0.0  # one by one as well, and faster
        return self.cells(cells_of(series))

    def cells(self, cells: Sequence[Any]) -> Any:
        """The cells, each read by itself: floats, text, places among the categories, or microseconds."""
        if self.kind == "number":
            return listed_numbers(cells)
        if self.kind == "text":
            return [text(cell) for cell in cells]
        if self.kind == "category":
            return self._choices.indices(list(cells))
        moments = [_within(moment(cell)) for cell in cells]
        return np.array(["NaT" if found is None else found for found in moments], dtype="M8[us]")

    def series(self, name: str, cells: Any, backend: Any) -> nw.Series[Any]:
        """Cells that were read, as a column of the queries' library. Its type is the same for all cells."""
        if self.kind == "number":
            return nw.new_series(name, np.array(cells), nw.Float64(), backend=backend)
        if self.kind == "text" and not backend.is_pandas():
            return nw.new_series(name, cells, nw.String(), backend=backend)
        if self.kind == "category" and not backend.is_pandas():
            texts = [self.choices[place] if place >= 0 else None for place in cells.tolist()]
            return nw.new_series(name, texts, nw.Enum(self.choices), backend=backend)
        if self.kind in ("text", "category"):
            return nw.from_native(self._pandas(name, cells), series_only=True)
        moments = nw.new_series(name, cells, nw.Datetime("us"), backend=backend)
        if self.kind == "date":
            return moments.cast(nw.Date())
        zone = self.choices[0]
        return moments if zone is None else moments.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)

    def _pandas(self, name: str, cells: Any) -> Any:
        import pandas as pd

        if self.kind == "category":
            return pd.Series(pd.Categorical.from_codes(cells, dtype=self.type), name=name)
        if self.type is not None:
            return pd.Series(cells, name=name, dtype=self.type)
        return pd.Series([math.nan if cell is None else cell for cell in cells], name=name, dtype=object)

    @cached_property
    def _choices(self) -> Names:
        return Names(self.choices, "the categories of a column of the queries")


def _sort(cell: Any) -> str:
    """Whether a public cell is a number, text, missing or something else."""
    if isinstance(cell, str | bytes):
        return "text"
    if not math.isnan(number(cell)):
        return "number"
    if cell is None or type(cell).__name__ == "NAType" or attempt(lambda: bool(cell != cell))[1]:  # noqa: PLR0124
        return "missing"
    return "text" if label(cell) is not None else "other"


def _within(found: int | None) -> int | None:
    """A moment that every library can hold."""
    return found if found is not None and abs(found) <= _FARTHEST_MOMENT else None
