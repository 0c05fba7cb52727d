"""What a release asks for: a key of a ledger is good for this very question and for no other.

All that enters is public: a class, its parameters, bounds, names of columns. Equal questions have equal digests, in
every process and for every container: 1, 1.0 and Fraction(1) are one number, lists, tuples, arrays and columns are one
list, and mappings and sets have no order. Classes of ours count by their ids (``serial/registry.py``), wherever they
live. Other classes, what can be called, and objects that say nothing about themselves count by their qualified name
alone, for a function may hold rows: another one of the same name is the same question.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Set
from dataclasses import is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.rationals import rational
from snugdp.serial.registry import entries_of, identity

_MAX_LISTED_NUMBERS = 4096  # numbers of an array that are written one by one; more of them as their bits
_BITS = {"b": "?", "i": "<i8", "u": "<u8", "f": "<f8"}


class Question(NamedTuple):
    """What was asked. ``words``: for people; ``digest``: of everything public, which alone tells questions apart."""

    words: str
    digest: str

    def __str__(self) -> str:
        return f"{self.words} [{self.digest}]"


def question(words: str, /, **public: Any) -> Question:
    """Words for people, which may change between versions, and a digest of everything public that was asked for.

    >>> asked = question("median of age", bounds=(0, 120))
    >>> asked.digest == question("age", bounds=[0.0, Fraction(120)]).digest
    True
    >>> asked.digest == question("median of age", bounds=(0, 121)).digest
    False
    """
    text = json.dumps(plain(public), separators=(",", ":"))
    return Question(" ".join(words.split()), hashlib.sha256(text.encode()).hexdigest()[:32])


def column_name(data: Any) -> str | None:
    """The name of a column, or of the only column of a table; None for what has none, such as an array."""
    found = _native(data)
    if found is None:
        return None
    names = found.columns if hasattr(found, "columns") else [found.name]
    return None if len(names) != 1 or names[0] in (None, "") else str(names[0])


def qualified(thing: Any) -> str:
    """The id of a class of ours; of all else the name with its module, the same in worker processes."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(name, str):
        return qualified(type(thing))
    if isinstance(thing, type) and (own := identity(thing)) is not None:
        return own
    return f"{'__main__' if module == '__mp_main__' else module}:{name}"


def plain(value: Any) -> Any:
    """Any public value as lists and text for JSON, equal for equal values."""
    for kinds, written in _KINDS:
        if isinstance(value, kinds):
            return written(value)
    if callable(value):  # whose fields, arguments and closures may hold rows
        return ["name", qualified(value.func if isinstance(value, partial) else value)]
    if hasattr(value, "get_params"):  # an estimator of scikit-learn's kind, whose class may add to its base's fields
        return ["model", qualified(type(value)), _pairs(value.get_params(deep=False))]
    if is_dataclass(value):
        return ["record", qualified(type(value)), _pairs(entries_of(value))]
    if hasattr(value, "tocsr"):
        return _sparse(value)
    if hasattr(value, "to_pylist") and not hasattr(value, "columns"):  # pyarrow's arrays
        return _list(value.to_pylist())
    found = _native(value)
    if found is None:
        return ["name", qualified(value)]
    if hasattr(found, "columns"):
        return ["table", [[str(name), _column(found.get_column(name))] for name in found.columns]]
    return _column(found)


def _number(value: Any) -> Any:
    """As ``rational`` reads it: 0.1 is one tenth. NaN is missing."""
    if value != value:  # noqa: PLR0124
        return None
    try:
        return ["number", str(rational(value, "number"))]
    except ValueError:
        return ["number", str(value)]


def _list(value: Any) -> Any:
    return ["list", [plain(item) for item in value]]


def _pairs(held: Mapping[Any, Any]) -> Any:
    return sorted(([plain(key), plain(item)] for key, item in held.items()), key=json.dumps)


def _array(value: NDArray[Any]) -> Any:
    if isinstance(value, np.ma.MaskedArray) or value.dtype.kind not in _BITS or value.size <= _MAX_LISTED_NUMBERS:
        return plain(value.tolist())
    kind = value.dtype.kind
    wide = np.ascontiguousarray(value, dtype=_BITS[kind])
    if kind == "f":
        wide = wide + 0.0  # there is one zero, and one NaN
        wide[np.isnan(wide)] = math.nan
    return ["array", list(value.shape), _BITS[kind], hashlib.sha256(wide.tobytes()).hexdigest()]


def _sparse(value: Any) -> Any:
    rows = value.tocsr().copy()
    rows.sum_duplicates()
    places = [np.asarray(part, dtype=np.int64) for part in (rows.indptr, rows.indices)]
    return ["sparse", list(rows.shape), *(_array(part) for part in (*places, np.asarray(rows.data)))]


def _native(value: Any) -> Any:
    """The table or column of a library that narwhals knows; nothing for anything else."""
    import narwhals as nw

    found: Any = nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)
    return None if found is value else found


def _column(series: Any) -> Any:
    import narwhals as nw

    if series.dtype.is_float():
        return _array(np.asarray(series.cast(nw.Float64).fill_null(math.nan).to_numpy(), dtype=np.float64))
    return _array(series.to_numpy()) if series.dtype.is_integer() and not series.is_null().any() else _list(series)


_KINDS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((type(None), bool), lambda value: value),
    (np.bool_, bool),
    (Enum, lambda value: ["enum", qualified(type(value)), value.name]),
    (str, lambda value: ["text", str.__str__(value)]),
    (bytes, lambda value: ["bytes", bytes.hex(value)]),
    ((np.datetime64, np.timedelta64, date, datetime), lambda value: ["text", str(value)]),
    ((int, float, Fraction, Decimal, np.integer, np.floating), _number),
    ((list, tuple, range), _list),
    (np.ndarray, _array),
    (Mapping, lambda value: ["map", _pairs(value)]),
    (Set, lambda value: ["set", sorted((plain(item) for item in value), key=json.dumps)]),
)
