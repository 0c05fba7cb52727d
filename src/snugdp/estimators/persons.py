"""Persons with several rows: from what scikit-learn's users bring to a table of the rows that are kept of each.

What is refused here depends on shapes, names, declared types and parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from snugdp.estimators.inputs import eager
from snugdp.ledger.parts import TablePart
from snugdp.ledger.question import column_name
from snugdp.noise import Noise
from snugdp.release.persons import Persons
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells.columns import cells_of, label_rows
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.sources import Source, open_source
from snugdp.tables.sources.base import TableError
from snugdp.tables.sources.sparse import SparseSource
from snugdp.tables.weighed_table import WeighableTable, WeighedTable

GROUPS = "groups"  # what the identifiers beside an array are called where they have no other name
_PERSONS_TWICE = (
    "groups are for the rows of an array: in a table the identifiers are a column, which person=... names, as in "
    'person="customer_id"'
)
_NO_COLUMN = (
    'person="{person}" names a column, and an array has none: give the identifiers as fit(X, y, groups=...), or X as a '
    "table"
)
_SPARSE = "persons with several rows need a dense array or a table: X.toarray() makes one of a sparse matrix"


@dataclass(frozen=True, repr=False)
class PersonRows:
    """Rows without their identifiers, and these; none where rows are protected one by one.

    ``identifiers``: those of an array, or of a table in memory; other tables keep them in their column.
    """

    X: Any
    persons: Persons | None = None
    identifiers: Any = None
    beside: Any = None  # as they were given
    part: TablePart | None = None  # of the table, if these are its rows

    @classmethod
    def of(cls, X: Any, persons: Persons | None, groups: Any) -> PersonRows:
        """``groups``: the identifiers of the rows of an array."""
        if persons is None:
            return cls(X)
        frame = eager(X)
        if groups is not None:
            if frame is not None or not _is_array(X):
                raise TypeError(_PERSONS_TWICE)
            return cls(X, persons, _column(groups), groups)
        if frame is None:
            if _is_array(X):
                raise TypeError(_NO_COLUMN.format(person=persons.column))
            return cls(X, persons)
        if persons.column not in frame.columns:
            raise TableError(f'the table has no column "{persons.column}", which says whose rows belong together')
        return cls(frame.drop(persons.column).to_native(), persons, frame.get_column(persons.column))

    @property
    def column(self) -> str | None:
        """The column that is no feature, in tables that have it."""
        return None if self.persons is None else self.persons.column

    @property
    def public(self) -> dict[str, Any]:
        """What a question says of identifiers that were given beside the rows."""
        return {} if self.beside is None else {"groups": ["groups", column_name(self.beside)]}

    def kept(self, data: Any, columns: Iterable[str], noise: Noise, *, progress: bool | None = None) -> Any:
        """The rows of a table that are kept of each person, with these columns; the table itself without persons."""
        if self.persons is None:
            return data
        source = self._with_identifiers(open_source(data))
        return self.persons.kept(source, tuple(columns), noise, progress=progress)

    def weighed(
        self, data: Any, columns: Iterable[str], noise: Noise, *, progress: bool | None = None
    ) -> WeighedTable | WeighableTable:
        """All rows of a table with their weights, and one row of each person."""
        assert self.persons is not None
        source = self._with_identifiers(open_source(data))
        return self.persons.weighed(source, tuple(columns), noise, progress=progress)

    def _with_identifiers(self, source: Source) -> Source:
        assert self.persons is not None
        from snugdp.tables.sources.frames import FrameSource  # polars: only for those who need it

        if isinstance(source, SparseSource):
            raise TypeError(_SPARSE)
        if isinstance(source, ArraySource):
            return source.framed(self.persons.column, self.identifiers)
        if isinstance(source, FrameSource) and self.identifiers is not None:
            return source.beside(self.persons.column, nw.from_native(self.identifiers, series_only=True))
        return source


def without_columns(X: Any, names: Iterable[str]) -> Any:
    """Rows to predict without columns that are no features, if they are a table in memory that has them."""
    frame = eager(X) if (dropped := list(names)) else None
    if frame is None:
        return X
    kept = frame.drop(dropped, strict=False)
    return X if len(kept.columns) == len(frame.columns) else kept.to_native()


def _is_array(X: Any) -> bool:
    """Whether it is rows of numbers rather than a table or the path of one."""
    if isinstance(X, list | tuple):
        return not X or not all(isinstance(path, str) for path in X)
    return isinstance(X, np.ndarray) or hasattr(type(X), "tocsr") or hasattr(X, "__array__")


def _column(groups: Any) -> Any:
    """Identifiers as a column of polars: of their declared type, or cell by cell.

    Of a type that was guessed numbers from 2**53 on are floats, which tell nobody apart: see ``person_image``.
    """
    from snugdp.tables.persons.images import guessed

    rows = label_rows(groups, "groups")
    if isinstance(rows, np.ma.MaskedArray) or not guessed(groups):
        return _as_given(rows)
    return _rounded(_as_given(rows))


def _as_given(rows: Any) -> Any:
    import polars as pl

    if isinstance(rows, nw.Series):
        worked, found = attempt(rows.to_polars)
        return found if worked and found is not None else pl.Series(cells_of(rows), dtype=pl.Object)
    if isinstance(rows, np.ndarray) and not isinstance(rows, np.ma.MaskedArray):
        worked, found = attempt(lambda: pl.Series(rows))  # text need not be UTF-8
        if worked and found is not None:
            return found
    return pl.Series(rows if isinstance(rows, list) else rows.tolist(), dtype=pl.Object)


def _rounded(column: Any) -> Any:
    """Numbers from 2**53 on as floats, also those that are spelled."""
    import polars as pl

    from snugdp.tables.persons.images import MAX_EXACT, image

    number = image(nw.from_native(column, series_only=True), lists=False).number
    large = np.abs(number) >= MAX_EXACT
    if not large.any() or column.dtype.is_numeric():
        return pl.Series(number) if large.any() else column
    cells = zip(column.to_list(), number.tolist(), large.tolist(), strict=True)
    return pl.Series([value if lost else cell for cell, value, lost in cells], dtype=pl.Object)
