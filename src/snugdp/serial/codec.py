"""Values as JSON that are read back bit by bit: what a ledger stores of a charge, and what a model file holds.

What JSON has is written as JSON: null, booleans, text, small integers, finite real numbers and lists. All else is an
object with one key, which says what it is: ``int``, ``float`` (bits of what is not finite), ``bytes``, ``fraction``,
``decimal``, ``tuple``, ``dict`` (pairs), ``scalar`` and ``array`` (numpy: type, shape, little-endian bytes),
``objects`` (an array of anything), ``enum`` and ``record`` (enums and frozen dataclasses, by their ids in
``registry.py``). Where people shall read it, arrays of finite floats are nested lists of decimal numbers (``floats``)
and fractions are decimal (``ratio``): every float has as many digits as tell it from all others.

Reading builds such values and runs nothing else: an id that is not in the table is refused, and a record is made by its
own ``__init__`` and must come out as it was written.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.serial.registry import LATER, entries_of, identity, resolve, suits

VERSION = 2  # of stored outcomes; version 1 had Python paths for ids
_EXACT = 2**53  # whole numbers that every reader of JSON gets right
_MAX_DIGITS = 4000  # of a decimal integer, which every Python converts
_MAX_EMPTY_SIDE = 10**7  # of an array without entries
_DTYPES = "biufcUSMm"
_WIDEST = {"f": 8, "c": 16}  # wider ones differ between machines


class UnreadableError(ValueError):
    """The text is not an outcome or value that this version can read."""


@dataclass(frozen=True, eq=False)
class StoredOutcome:
    """What came of a charge, as a ledger stores it."""

    refused: bool
    value: Any = None
    certificate: Any = None


def dumps(outcome: StoredOutcome) -> str | None:
    """The outcome as text, or nothing if it holds what cannot be read back bit by bit.

    >>> dumps(StoredOutcome(False, Fraction(1, 3)))
    '{"snugdp outcome":2,"refused":false,"value":{"fraction":"1/3"},"certificate":null}'
    >>> dumps(StoredOutcome(False, object())) is None
    True
    """
    try:
        body = _body(outcome)
        return body if _body(loads(body)) == body else None
    except Exception:  # paid for and drawn: what cannot be stored must still be shown
        return None


def loads(body: str) -> StoredOutcome:
    """The outcome again, equal bit by bit.

    >>> loads('{"snugdp outcome":2,"refused":false,"value":{"fraction":"1/3"},"certificate":null}').value
    Fraction(1, 3)
    """
    try:
        whole = json.loads(body)
        if whole["snugdp outcome"] in range(1, VERSION + 1) and isinstance(whole["refused"], bool):
            return StoredOutcome(whole["refused"], _read(whole["value"]), _read(whole["certificate"]))
    except Exception:  # whatever is wrong with it
        pass
    raise UnreadableError("this is not an outcome that this version of snugdp can read")


def encode(value: Any) -> Any:
    """A value as JSON for people to read, from which ``decode`` makes it again bit by bit; TypeError if it cannot.

    >>> encode({"ridge": np.array([0.1, 2.0]), "share": Fraction(1, 3)})
    {'dict': [['ridge', {'floats': [0.1, 2.0]}], ['share', {'ratio': '1/3'}]]}
    """
    try:
        tree = _write(value, readable=True)
        if _text(_write(decode(tree), readable=True)) == _text(tree):
            return tree
    except Exception:  # whatever it holds
        pass
    raise TypeError("it is not made of numbers, text, lists and arrays")


def decode(tree: Any) -> Any:
    """The value again. Nothing is run: what is not known is refused.

    >>> decode({"ratio": "1/3"})
    Fraction(1, 3)
    """
    try:
        return _read(tree)
    except Exception:  # whatever is wrong with it
        pass
    raise UnreadableError("this is not a value that this version of snugdp can read")


def record(kind: type, **trees: Any) -> dict[str, Any]:
    """The tree of a frozen dataclass of ours, from the trees of its fields."""
    return {"record": [identity(kind), trees]}


def _body(outcome: StoredOutcome) -> str:
    parts = {"value": _write(outcome.value), "certificate": _write(outcome.certificate)}
    return _text({"snugdp outcome": VERSION, "refused": outcome.refused, **parts})


def _text(tree: Any) -> str:
    return json.dumps(tree, allow_nan=False, separators=(",", ":"))


def _write(value: Any, readable: bool = False) -> Any:
    """By the very type: a subclass may hold more than its base would tell."""
    kind = type(value)
    if kind in _LEAVES:
        return _LEAVES[kind](value)
    if kind in _NESTED:
        return _NESTED[kind](value, readable)
    if isinstance(value, np.generic):
        return {"scalar": _bits(np.asarray(value))}
    own = identity(kind)
    if own is None:
        raise TypeError("a type without an id is not stored")
    if isinstance(value, Enum):
        return {"enum": [own, value.name]}
    return {"record": [own, {name: _write(part, readable) for name, part in entries_of(value).items()}]}


def _read(given: Any) -> Any:
    if isinstance(given, list):
        return [_read(item) for item in given]
    if not isinstance(given, dict):
        return given
    ((kind, held),) = given.items()
    return _READERS[kind](held)


def _whole(value: int) -> Any:
    return value if abs(value) <= _EXACT else {"int": f"{value:x}"}


def _real(value: float) -> Any:
    return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}


def _fraction(value: Fraction, readable: bool) -> dict[str, str]:
    over, under = value.numerator, value.denominator
    if readable and max(abs(over), under).bit_length() * math.log10(2) <= _MAX_DIGITS:
        return {"ratio": f"{over}/{under}"}
    return {"fraction": f"{over:x}/{under:x}"}


def _array(value: NDArray[Any], readable: bool) -> dict[str, Any]:
    shape = list(value.shape)
    if value.dtype.kind == "O":
        return {"objects": {"shape": shape, "items": [_write(item, readable) for item in value.ravel().tolist()]}}
    column_wise = value.flags.f_contiguous and not value.flags.c_contiguous
    if readable and value.dtype == "<f8" and value.size and not column_wise and np.isfinite(value).all():
        return {"floats": value.tolist()}
    order = {"order": "F"} if column_wise else {}  # the order of sums, and so their last bit, may hang on it
    return {"array": {"shape": shape, **order, **_bits(value.T if column_wise else value)}}


def _bits(value: NDArray[Any]) -> dict[str, Any]:
    kind = value.dtype
    if kind.kind not in _DTYPES or kind.itemsize > _WIDEST.get(kind.kind, kind.itemsize):
        raise TypeError("an array of this type is not stored")
    little = value.astype(kind.newbyteorder("<"), copy=False)
    return {"dtype": little.dtype.str, "data": base64.b64encode(little.tobytes()).decode("ascii")}


def _from_bits(held: dict[str, Any], shape: list[int]) -> NDArray[Any]:
    kind = np.dtype(held["dtype"])
    if kind.kind not in _DTYPES or held["dtype"] != kind.newbyteorder("<").str or not kind.itemsize:
        raise TypeError("an array of this type is not stored")
    data = base64.b64decode(held["data"], validate=True)
    if len(data) != kind.itemsize * math.prod(_checked(shape)):
        raise ValueError("an array has as many bytes as its shape says")
    return np.ndarray(shape, kind, bytearray(data))


def _checked(shape: list[int]) -> list[int]:
    """A shape that costs nothing to have: one with a 0 in it can be absurd in all its other sides."""
    if any(type(side) is not int or side < 0 for side in shape):
        raise TypeError("a shape is a list of whole numbers")
    if not math.prod(shape) and max(shape) > _MAX_EMPTY_SIDE:
        raise ValueError("an empty array has no such shape")
    return shape


def _to_array(held: dict[str, Any]) -> NDArray[Any]:
    shape = held["shape"]
    return _from_bits(held, shape[::-1]).T if held.get("order") == "F" else _from_bits(held, shape)


def _to_floats(held: Any) -> NDArray[Any]:
    values = np.array(held, dtype="<f8")
    if values.tolist() != held or not values.size or not np.isfinite(values).all():
        raise ValueError("an array of floats must be a list of finite numbers, or lists of the same length")
    return values


def _to_objects(held: dict[str, Any]) -> NDArray[Any]:
    made = np.empty(len(held["items"]), dtype=object)
    for place, item in enumerate(held["items"]):
        made[place] = _read(item)
    return made.reshape(_checked(held["shape"]))


def _to_fraction(text: str, base: int) -> Fraction:
    over, under = text.split("/")
    return Fraction(int(over, base), int(under, base))


def _to_enum(held: list[str]) -> Any:
    kind = resolve(held[0])
    if not issubclass(kind, Enum):
        raise TypeError("only the members of an enum are stored by name")
    return kind[held[1]]


def _to_record(held: list[Any]) -> Any:
    kind, given = resolve(held[0]), {name: _read(value) for name, value in held[1].items()}
    told = kind.__dataclass_params__.init  # otherwise its __init__ is written by hand and takes what it likes
    absent = set(LATER.get(identity(kind) or "", ())) - given.keys()
    names = [field.name for field in fields(kind) if (field.init or not told) and field.name not in absent]
    made = kind(**{name: given[name] for name in names})
    again = _write(made)["record"][1]
    if not suits(made) or (again != held[1] and again != {name: _write(value) for name, value in given.items()}):
        raise ValueError("a record must come out as it was written")
    return made


_LEAVES: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    str: lambda value: value,
    int: _whole,
    float: _real,
    bytes: lambda value: {"bytes": base64.b64encode(value).decode("ascii")},
    Decimal: lambda value: {"decimal": str(value)},
}
_NESTED: dict[type, Callable[[Any, bool], Any]] = {
    Fraction: _fraction,
    np.ndarray: _array,
    list: lambda value, how: [_write(item, how) for item in value],
    tuple: lambda value, how: {"tuple": [_write(item, how) for item in value]},
    dict: lambda value, how: {"dict": [[_write(key, how), _write(held, how)] for key, held in value.items()]},
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda held: int(held, 16),
    "float": lambda held: struct.unpack(">d", bytes.fromhex(held))[0],
    "bytes": lambda held: base64.b64decode(held, validate=True),
    "fraction": lambda held: _to_fraction(held, 16),
    "ratio": lambda held: _to_fraction(held, 10),
    "decimal": Decimal,
    "tuple": lambda held: tuple(_read(item) for item in held),
    "dict": lambda held: {_read(key): _read(value) for key, value in held},
    "scalar": lambda held: _from_bits(held, [1])[0],
    "array": _to_array,
    "floats": _to_floats,
    "objects": _to_objects,
    "enum": _to_enum,
    "record": _to_record,
}
