"""An open schema from the names and declared types of a table, which are public. No row is looked at.

Numbers, booleans, dates and text are what their types say. Columns without a declared type (CSV files, pandas' objects)
are ``Undeclared``: what they hold is found privately (``settled``). Left out, with a sentence that says why:

- identifiers, by name: the last word is one of ``IDENTIFIERS``, or the whole name is one of ``ROW_NAMES``;
- columns without a name, which readers of tables call ``Unnamed: 0`` and so on;
- free text, by type and name: text, or of no declared type, and the last word is one of ``FREE_TEXT``;
- types that cannot be read as numbers, categories or dates.

A column that is left out by its name is used as soon as a schema declares it. A target is never left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import narwhals as nw

from snugdp.numerics.rounded import clear
from snugdp.tables.cells import type_name
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, DType, Number, Undeclared
from snugdp.tables.schema.schema import Schema

IDENTIFIERS = frozenset(
    ("id", "ids", "identifier", "nr", "uuid", "guid", "key", "hash", "token", "rowid", "ssn", "iban", "passport",
     "phone", "telephone", "mobile", "fax")
)  # fmt: skip
ROW_NAMES = frozenset(("index", "rownames", "row names", "row number"))
FREE_TEXT = frozenset(
    ("address", "body", "comment", "comments", "description", "email", "firstname", "fullname", "lastname", "link",
     "mail", "message", "name", "note", "notes", "remark", "remarks", "street", "summary", "surname", "text", "url",
     "website")
)  # fmt: skip
MIN_DEVIATIONS = 3.0  # of the noise: what exceeds it no more often is clear enough to decide
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
_LABELS = (nw.Categorical, nw.Enum)
_UNTYPED = (nw.Object, nw.Unknown)


def inferred(types: Mapping[str, DType], target: str | None = None) -> tuple[Schema, dict[str, str]]:
    """The schema of all columns that can be used, open where bounds and values are to be found, and why others cannot.

    >>> types = {"customer_id": nw.Int64(), "age": nw.Int64(), "city": nw.String(), "comment": nw.String()}
    >>> schema, left_out = inferred({**types, "amount": nw.Float64()}, target="amount")
    >>> list(schema.columns), schema.open_columns
    (['age', 'city', 'amount'], ('age', 'city', 'amount'))
    >>> left_out["comment"]
    'its name suggests free text. To use it, declare it in a schema'
    """
    if target is not None and target not in types:
        raise ValueError(f'the table has no column "{target}", which is to be predicted')
    columns, left_out = _usable(types, () if target is None else (target,))
    if target is not None and target not in columns:
        raise TypeError(f'the target "{target}" is {_unreadable(types[target])}')
    if not columns.keys() - {target}:
        raise ValueError(
            "no column is left to learn from: identifiers, free text and types that cannot be read are not used. "
            "Declare the columns in a schema"
        )
    return Schema(columns, target), left_out


def readable(
    types: Mapping[str, DType], wanted: Sequence[str] | None = None
) -> tuple[dict[str, Column], dict[str, str]]:
    """All columns that can be described, and why others cannot. ``wanted``: these columns, whatever their names mean.

    >>> columns, left_out = readable({"customer_id": nw.Int64(), "age": nw.Int64(), "city": nw.String()})
    >>> list(columns), list(left_out)
    (['age', 'city'], ['customer_id'])
    """
    if wanted is not None:
        if absent := [name for name in wanted if name not in types]:
            raise ValueError(f'the table has no column "{absent[0]}"')
        types = {name: types[name] for name in wanted}
    columns, left_out = _usable(types, wanted or ())
    if unread := [name for name in wanted or () if name not in columns]:
        raise TypeError(f'column "{unread[0]}" is {_unreadable(types[unread[0]])}')
    if not columns:
        raise ValueError(
            "no column is left to describe: identifiers, free text and types that cannot be read are left out. Name "
            "the columns, as in columns=[...], or declare them in a schema"
        )
    return columns, left_out


def declared_types(types: Mapping[str, DType], *, loaded: bool) -> dict[str, DType]:
    """The types as far as somebody declared them. ``loaded``: into memory, where one cell may have made that of all.

    Types that cannot be read stay what they are: no loader makes them of cells that can.

    >>> declared_types({"age": nw.Int64(), "tags": nw.List(nw.String())}, loaded=True)
    {'age': Object, 'tags': List(String)}
    """
    return {name: nw.Object() if loaded and column_of(dtype) is not None else dtype for name, dtype in types.items()}


def column_of(dtype: DType) -> Column | None:
    """What a column of this declared type holds; None for what cannot be read."""
    if dtype == nw.Boolean:
        return Boolean()
    if dtype.is_numeric():
        return Number()
    if dtype in (nw.Date, nw.Datetime):
        return Date()
    if dtype in _LABELS:
        return Category()
    return Undeclared() if dtype in (nw.String, *_UNTYPED) else None  # text may spell numbers or dates


def _usable(types: Mapping[str, DType], wanted: Collection[str]) -> tuple[dict[str, Column], dict[str, str]]:
    """What columns hold, and why others are left out; those that are wanted are not left out by their names."""
    reasons = {name: why_not(name, dtype) for name, dtype in types.items() if name not in wanted}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    columns = {name: column for name, dtype in types.items() if name not in left_out and (column := column_of(dtype))}
    return columns, left_out


def why_not(name: str, dtype: DType) -> str | None:
    """Why a column is left out, or nothing.

    >>> why_not("orderId", nw.Int64()), why_not("paid", nw.Boolean())
    ('its name suggests an identifier. To use it, declare it in a schema', None)
    """
    if column_of(dtype) is None:
        return _unreadable(dtype)
    words = [word.lower() for word in _WORDS.findall(name)] or [""]
    named = words[-1] in IDENTIFIERS or " ".join(words) in ROW_NAMES
    if words[0] == "unnamed" and words[1:2] and words[1].isdecimal():
        return "it has no name. To use it, declare it in a schema"
    if named and dtype not in (nw.Boolean, nw.Date, nw.Datetime):
        return "its name suggests an identifier. To use it, declare it in a schema"
    if words[-1] in FREE_TEXT and dtype in (nw.String, *_UNTYPED):
        return "its name suggests free text. To use it, declare it in a schema"
    return None


def settled(counts: Sequence[float], deviation: float) -> Column | None:
    """What an undeclared column holds, from noisy counts of its cells as ``cells.sorts`` tells them apart.

    The most frequent sort decides, cells of the others are missing; None where no count is clear of the noise, whose
    deviation is given.

    >>> settled([5, 950, 0, 45], 10), settled([990, 12, 3, -8], 10)
    (Number(lower=None, upper=None), None)
    """
    _, *sorts = counts
    best = max(range(len(sorts)), key=sorts.__getitem__)
    if sorts[best] <= clear(1, deviation, MIN_DEVIATIONS):
        return None
    return (Number(), Date(), Category())[best]


def _unreadable(dtype: DType) -> str:
    return f"of type {type_name(dtype)}, which cannot be read: convert it to numbers, text or dates to use it"
