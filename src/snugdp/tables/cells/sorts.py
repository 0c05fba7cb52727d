"""Of what sort each cell of a column is: missing, a number, a date or text. Every cell is judged by itself."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from snugdp.tables.cells.columns import Integers, declared, numbers
from snugdp.tables.cells.dates import MISSING, moments
from snugdp.tables.cells.names import Names

SORTS = ("missing", "number", "date", "text")
_NOBODY = Names(["\x00"])  # tells labels from missing cells; no label is needed


def sorts(data: object) -> Integers:
    """The place of every cell of a column without a declared type among ``SORTS``.

    Text that spells a number, true or false counts as a number, and what spells a number and a date too.

    >>> [SORTS[place] for place in sorts(["1", "2024-03-01", "Rome", "", None, True])]
    ['number', 'date', 'text', 'missing', 'missing', 'number']
    """
    kind = _declared(data)
    if kind in (nw.Date, nw.Datetime):
        return np.where(moments(data) == MISSING, 0, 2)
    found = (~np.isnan(numbers(data))).astype(np.int64)
    if kind is not None and (kind.is_numeric() or kind == nw.Boolean):
        return found  # what is no number is missing; other readers take no such column
    if not found.all():  # only a question of time: those that are numbers already stay what they are
        found = np.where((found == 0) & (moments(data) != MISSING), 2, found)
        found = np.where((found == 0) & (_NOBODY.places(data) >= 0), 3, found)
    return found


def _declared(data: object) -> nw.dtypes.DType | None:
    """The declared type of a column, where there is one: of dates no cell is a number or text, of numbers none else."""
    column: Any = nw.from_native(data, series_only=True, pass_through=True)
    return declared(column) if isinstance(column, nw.Series) else None
