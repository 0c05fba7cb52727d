"""What tells one key from another: how the cells of a key column are read, by its declared type.

In a table whose loader may have taken the types from the cells (a frame in memory), a key is the label of its cell
(``tables.cells``): 1, 1.0, True and "1" are one key, whatever the other cells made of their column. Where types are
declared (Parquet, Arrow, DuckDB, Spark), and in CSV files, which are read as text always, a cell is taken as it is:
"01234" stays "01234".
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt, muted
from snugdp.tables.cells import Names, declared, labelled, numbers, type_name
from snugdp.tables.cells import cell as one
from snugdp.tables.cells.columns import cells_of
from snugdp.tables.grid import Grid
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources.base import Source
from snugdp.tables.wide_grid import WideGrid

Encoded: TypeAlias = int | str | None

_MARK = "\x00"  # before a whole number among labels, and before a text that begins with it
_MAX_WHOLE = 2.0**63
_MAY_BE_ODD = r"^[\s\x00-\x1f\x7f-\x9f0-9+\-.(]|^(?i:inf|nan|nat|true|false)|^$"  # what may be more than its text
_IS_WHOLE = "^(?:0|-?[1-9][0-9]{0,14})$"  # text that is the usual form of a whole number, exact as a float


class KeyKind(enum.Enum):
    """How a cell is read."""

    LISTED = "listed"  # the place of its label in a public list
    WHOLE = "whole"  # a whole number, as it is declared
    TEXT = "text"  # as it is
    LABEL = "label"  # by its label


@dataclass(frozen=True)
class KeyColumn:
    """A key column. ``lists``: each of its cells may hold several keys.

    ``listed``: the public values of a listed one; what is none of them is missing, or ``other``.
    """

    name: str
    kind: KeyKind
    lists: bool = False
    listed: tuple[Hashable, ...] = ()
    other: bool = False

    def __post_init__(self) -> None:
        self.names  # noqa: B018  a bad list is refused here, before any row is read

    @cached_property
    def names(self) -> Names:
        """The listed values."""
        return Names(self.listed, f'the keys of "{self.name}"')

    def raw(self, column: nw.Series[Any]) -> pl.Series:
        """The cells in a form that polars groups by: equal ones have equal keys."""
        if self.kind is KeyKind.LISTED and not self.lists:
            places = self.names.indices(column.to_native())
            return pl.Series(np.where(places < 0, len(self.listed), places) if self.other else places)
        if type(getattr(column.to_native(), "dtype", None)).__name__ == "CategoricalDtype":
            return _categories(column.to_native())
        series = None if declared(column) == nw.Object else attempt(column.to_polars)[1]
        if self.lists:
            return series if series is not None and _plain_lists(series.dtype) else _lists(cells_of(column))
        if series is not None and series.dtype in (pl.String, pl.Categorical, pl.Enum):
            return series.cast(pl.String)
        if series is not None and series.dtype.is_float():
            return series
        if series is not None and (series.dtype.is_integer() or series.dtype == pl.Boolean):
            return series.cast(pl.Int64, strict=False)  # a decimal would lose its fraction
        return pl.Series([one.text(cell) for cell in cells_of(column)], dtype=pl.String)

    def encoded(self, raw: pl.Series) -> pl.Series:
        """The keys of raw cells: whole numbers, or text; null for what is missing."""
        if self.kind is KeyKind.LISTED:
            places = raw if not self.lists else pl.Series(self._places(raw), dtype=pl.Int64)
            return places.set(places < 0, None) if len(places) else places.cast(pl.Int64)
        if self.kind is KeyKind.WHOLE:
            return raw.cast(pl.Int64, strict=False)
        if self.kind is KeyKind.TEXT:
            return raw.set(raw == "", None) if raw.dtype == pl.String else raw.cast(pl.String)
        return _labels(raw)

    def _places(self, raw: pl.Series) -> list[int]:
        places = [self.names.index(cell) for cell in raw.to_list()]
        return [len(self.listed) if place < 0 else place for place in places] if self.other else places

    def decoded(self, key: Encoded) -> Any:
        """A key as people know it."""
        if key is None:
            return None
        if self.kind is KeyKind.LISTED:
            assert isinstance(key, int)
            return self.names.names[key] if key < len(self.listed) else OTHER
        if self.kind is KeyKind.LABEL and isinstance(key, str) and key.startswith(_MARK):
            return key[1:] if key.startswith(_MARK, 1) else int(key[1:])
        return key


@dataclass(frozen=True)
class CellColumn:
    """A column of numbers as cells of a public grid, beside the keys: for the ranks of its values by key."""

    name: str
    grid: Grid | WideGrid
    lists = False

    def raw(self, column: nw.Series[Any]) -> pl.Series:
        """The cells; null for what is not a number."""
        values = numbers(column.to_native())
        return pl.Series(self.grid.integers(values, self.grid.lower)).set(pl.Series(np.isnan(values)), None)

    def encoded(self, raw: pl.Series) -> pl.Series:
        """As they are."""
        return raw

    def decoded(self, key: Encoded) -> Any:
        """As they are."""
        return key


OTHER = "(other)"


def _categories(native: Any) -> pl.Series:
    """Categories of pandas, which may be anything: each is read once, by itself. Other libraries may crash on one."""
    texts = [one.text(cell) for cell in native.cat.categories.tolist()]
    known: pl.Series = pl.Series([*texts, None], dtype=pl.String)
    places = native.cat.codes.to_numpy().astype(np.int64)
    return known.gather(pl.Series(np.where(places < 0, len(texts), places)))


def label(cell: Any) -> str | None:
    r"""The label of a cell as text that tells all labels apart; None for what is missing, and for fractions.

    >>> [label(cell) for cell in (1, "1", True, "red", 0.5, None, "")]
    ['\x001', '\x001', '\x001', 'red', None, None, None]
    """
    found = one.label(cell)
    if isinstance(found, float):
        return f"{_MARK}{int(found)}" if found.is_integer() and abs(found) < _MAX_WHOLE else None
    spelled = one.text(cell) if isinstance(found, tuple) else found
    return spelled if spelled is None or not spelled.startswith(_MARK) else _MARK + spelled


def _labels(raw: pl.Series) -> pl.Series:
    """The labels of text, or of numbers; text that may be more than that one by one."""
    if raw.dtype != pl.String:
        return _whole(raw.cast(pl.Float64).to_numpy())
    odd = raw.str.contains(_MAY_BE_ODD).fill_null(False)
    if not odd.any():
        return raw
    whole = raw.str.contains(_IS_WHOLE).fill_null(False)
    marked = pl.select(pl.when(whole).then(pl.lit(_MARK) + raw).otherwise(raw)).to_series()
    odd &= ~whole
    if not odd.any():
        return marked
    distinct = raw.filter(odd).unique()
    images = pl.Series([label(cell) for cell in distinct.to_list()], dtype=pl.String)
    replaced = raw.replace_strict(distinct, images, default=None, return_dtype=pl.String)
    return pl.select(pl.when(odd).then(replaced).otherwise(marked)).to_series()


def _whole(values: NDArray[np.float64]) -> pl.Series:
    """The labels of numbers; null for fractions and what is beyond 64 bits."""
    with muted():
        fits = (np.floor(values) == values) & (np.abs(values) < _MAX_WHOLE)
        spelled = pl.Series(np.where(fits, values, 0.0).astype(np.int64)).cast(pl.String)
    return pl.select(pl.when(pl.Series(fits)).then(pl.lit(_MARK) + spelled)).to_series()


def _plain_lists(dtype: pl.DataType) -> bool:
    """Whether a column holds lists whose entries are read as they are."""
    return isinstance(dtype, pl.List) and (dtype.inner in (pl.String, pl.Boolean) or dtype.inner.is_integer())


def _lists(cells: Sequence[Any]) -> pl.Series:
    """Lists of cells, as text that has their labels. A cell that is no list is one key."""
    lists = [[one.text(entry) for entry in attempt(partial(one.sequence, cell))[1] or [cell]] for cell in cells]
    return pl.Series(lists, dtype=pl.List(pl.String))


def key_column(
    source: Source,
    name: str,
    listed: Sequence[Hashable] | None = None,
    *,
    other: bool = False,
    several: bool = False,
) -> KeyColumn:
    """How the key column of a table is read, from public facts alone; floats, dates and the like are refused.

    ``several``: whether a cell may hold more keys than one.
    """
    dtype: Any = source.types[name]
    lists = dtype in (nw.List, nw.Array)
    inner = (dtype.inner if isinstance(dtype.inner, nw.dtypes.DType) else dtype.inner()) if lists else dtype
    if several and not lists and inner != nw.Object:
        raise TypeError(
            f'max_keys is for a column whose cells are lists of keys, and "{name}" is of type {type_name(inner)}: '
            "leave max_keys=1, or put the keys of each row into a list"
        )
    if listed is None:
        return KeyColumn(name, _kind(source, name, inner), lists or several)
    if not labelled(inner):
        raise _refusal(name, inner)
    return KeyColumn(name, KeyKind.LISTED, lists or several, tuple(listed), other)


def _kind(source: Source, name: str, dtype: DType) -> KeyKind:
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Unknown):
        return KeyKind.LABEL if source.inferred else KeyKind.TEXT
    if dtype in (nw.Object, nw.Binary):
        return KeyKind.LABEL
    if (dtype.is_integer() or dtype == nw.Boolean) and dtype not in (nw.Int128, nw.UInt128):
        return KeyKind.LABEL if source.inferred else KeyKind.WHOLE
    if dtype == nw.Float64 and source.floats_for_missing:
        return KeyKind.LABEL
    raise _refusal(name, dtype)


def _refusal(name: str, dtype: DType) -> TypeError:
    kind = type_name(dtype)
    if dtype.is_float() or dtype.is_decimal():
        advice = "round it to whole numbers, or cut it into classes with public edges"
    elif dtype in (nw.Date, nw.Datetime, nw.Duration, nw.Time):
        advice = "take a part of it, such as the year or the month, as a whole number or as text"
    else:
        advice = "convert it to text or whole numbers"
    return TypeError(f'the key column "{name}" must hold text, whole numbers or booleans, not {kind}; {advice} first')
