"""A fit on one part of a table: from what scikit-learn's users bring to the rows of the part that a ledger pays for.

What is refused here depends on names, declared types and parameters alone.
"""

from __future__ import annotations

from typing import Any

from snugdp.estimators.inputs import eager
from snugdp.ledger.parts import TablePart
from snugdp.secrecy.silence import attempt
from snugdp.tables.parts import restricted
from snugdp.tables.sources import open_source
from snugdp.tables.sources.chosen import ChosenSource, taken
from snugdp.tables.sources.frames import FrameSource

_NO_COLUMN = (
    'this ledger pays for a part of a table, by its column "{column}", and an array has no names: give X as a table '
    "with that column"
)
_LENGTHS = "X and y have inconsistent numbers of rows: give one target for every row"


def in_part(X: Any, y: Any, part: TablePart, *, hidden: bool) -> tuple[Any, Any]:
    """Rows and targets of the part. ``hidden``: whether the column that decides is no feature."""
    assert part.column is not None
    frame = eager(X)
    if frame is None:
        if isinstance(X, list | tuple) and not (X and all(isinstance(path, str) for path in X)):
            raise TypeError(_NO_COLUMN.format(column=part.column))
        if hasattr(X, "__array__") or hasattr(type(X), "tocsr"):
            raise TypeError(_NO_COLUMN.format(column=part.column))
        return restricted(open_source(X), part, hidden=hidden), y
    rows = restricted(FrameSource(frame), part, hidden=hidden)
    assert isinstance(rows, ChosenSource)
    mask = rows.mask(frame)
    apart = y is not None and not isinstance(y, str)
    if apart and hasattr(y, "__len__") and len(y) != len(mask):  # before a library says how many there are
        raise ValueError(_LENGTHS)
    kept = frame.drop(part.column) if hidden else frame
    worked, both = attempt(lambda: (taken(kept.to_native(), mask), taken(y, mask) if apart else y))
    if not worked or both is None:  # what a library says of targets without a length may hold the number of rows
        raise ValueError(_LENGTHS)
    return both
