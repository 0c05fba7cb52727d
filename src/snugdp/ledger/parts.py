"""Disjoint parts of a table: by which column a row belongs to one of them is declared once, and written down.

Which rows these are in a table is in ``tables/parts.py``; that releases read no others, in ``release/parts.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snugdp.serial.costs import Json

MOST_HASHED = 1000  # parts by hash
_MISSING = ("", "nan", "nat")
KEY_DIGITS = 32  # of the key of the hash, hexadecimal


@dataclass(frozen=True)
class TablePartition:
    """Parts of a table. A row is in one of them at most, by the cell of that row in ``column`` alone.

    ``key``: of a hash of the cell that numbers the parts; without one, a part is a value of the column. Ledgers of
    earlier versions have parts without a column: mere names.
    """

    parts: tuple[str, ...]
    column: str | None = None
    key: str | None = None

    def to_json(self) -> Json:
        """For a checkpoint."""
        if self.column is None:
            return list(self.parts)
        return {"parts": list(self.parts), "column": self.column, "hash_key": self.key}

    @classmethod
    def from_json(cls, fields: Json) -> TablePartition:
        """From a checkpoint, or from the record that declares it."""
        if isinstance(fields, list):
            fields = {"parts": fields}
        parts, column, key = fields["parts"], fields.get("column"), fields.get("hash_key")
        if not isinstance(parts, list) or not all(isinstance(part, str) and part for part in parts):
            raise TypeError("parts have names")
        if not parts or len(set(parts)) < len(parts):
            raise ValueError("a partition has different parts")
        if not all(text is None or (isinstance(text, str) and text) for text in (column, key)):
            raise TypeError("a partition is by a column")
        if key is not None and (column is None or len(key) != KEY_DIGITS or int(key, 16) < 0):
            raise ValueError("the key of a hash has 128 bits, and a column")
        return cls(tuple(parts), column, key)

    @property
    def words(self) -> str:
        """How rows are divided."""
        if self.column is None:
            return f"the names {', '.join(self.parts)}"
        return f"the values {', '.join(self.parts)}" if self.key is None else f"a hash, into {len(self.parts)}"


@dataclass(frozen=True)
class TablePart:
    """One part of a table: the rows that a release for it may read."""

    partition: TablePartition
    part: str

    @property
    def column(self) -> str | None:
        """The column that decides; None where the part is a mere name."""
        return self.partition.column

    @property
    def index(self) -> int:
        """Its place among the parts."""
        return self.partition.parts.index(self.part)

    def __str__(self) -> str:
        return f"the part {self.part!r} by {self.partition.column!r}"


def declared(column: str, parts: Sequence[str | int] | int, key: str) -> TablePartition:
    """Parts by the values of a column, or so many by a hash with this key.

    >>> declared("year", [2025, 2026], "").parts
    ('2025', '2026')
    >>> declared("customer_id", 3, "0" * 32).parts
    ('1', '2', '3')
    """
    if isinstance(parts, int) and not isinstance(parts, bool):
        if not 2 <= parts <= MOST_HASHED:
            raise ValueError(f"the number of parts must be from 2 to {MOST_HASHED}")
        return TablePartition(tuple(str(number + 1) for number in range(parts)), column, key)
    if isinstance(parts, str | bool) or not isinstance(parts, Sequence) or not parts:
        raise ValueError('parts are the values of a column, such as ["north", "south"], or their number, by a hash')
    if not all(isinstance(part, str | int) for part in parts):
        raise TypeError("the values of a column are given as text or whole numbers")
    named = tuple(part if isinstance(part, str) else str(int(part)) for part in parts)
    if len({_label(part) for part in named}) < len(named):
        raise ValueError("two parts are the same value: 1, 1.0 and '1' are one")
    if any(part.strip().lower().lstrip("+-") in _MISSING for part in named):
        raise ValueError("'nan' stands for a missing cell, which is in no part")
    return TablePartition(named, column)


def _label(text: str) -> str | float:
    """What no loader tells apart is one value; ``tables.cells`` says it exactly, whenever a part is read."""
    try:
        return float(text)
    except ValueError:
        return text
