"""A query about one part of a table: the part's rows are a table of their own."""

from __future__ import annotations

from typing import Any

from snugdp.ledger.parts import TablePart
from snugdp.queries.table import library_of
from snugdp.tables.parts import restricted
from snugdp.tables.sources import Source, open_source

_NO_NAMES = (
    "this ledger pays for a part of a table, by its column {column!r}, and these data have no names: give a table with "
    "that column and the one that is asked about"
)


def in_part(
    data: Any, part: TablePart, columns: tuple[str, ...] | None, person: str | None
) -> tuple[Source, str | None]:
    """The rows of a part, and the only column beside the one that decides, where no ``columns`` are named.

    What is refused depends on names and declared types alone.
    """
    assert part.column is not None
    if isinstance(data, list | tuple) and not (data and all(isinstance(path, str) for path in data)):
        raise TypeError(_NO_NAMES.format(column=part.column))
    try:
        source = open_source(data)
    except TypeError:
        source = None
    if source is None:
        raise TypeError(_NO_NAMES.format(column=part.column))
    found = restricted(source, part, hidden=part.column not in (*(columns or ()), person))
    found.library = library_of(data)
    others = [name for name in found.types if name != person]
    if columns is None and len(others) != 1:
        raise ValueError(
            f'the table has several columns beside "{part.column}": say which one is asked about by column=...'
        )
    return found, others[0] if columns is None else None
