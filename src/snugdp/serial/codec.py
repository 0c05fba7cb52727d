"""Outcomes as text, so that a ledger can keep what a charge bought. Open, versioned, and without any code in it.

What JSON has is written as JSON: null, truth values, text, small whole numbers, finite real numbers and lists. All
else is an object with one key, which says what it is: ``int``, ``float`` (bits of what is not finite), ``bytes``,
``fraction``, ``decimal``, ``tuple``, ``dict`` (pairs), ``scalar`` and ``array`` (numpy: type, shape, little-endian
bytes), ``objects`` (an array of anything), ``enum`` and ``record`` (enums and frozen dataclasses of snugdp, by name).

Reading builds such values and calls nothing else: a name outside snugdp, or of anything but an enum or a frozen
dataclass, is refused; a record is made by its own ``__init__`` and must come out as it was written.
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

from snugdp.serial.registry import found, named, suits

VERSION = 1
_EXACT = 2**53  # whole numbers that every reader of JSON gets right
_DTYPES = "biufcUSMm"
_WIDEST = {"f": 8, "c": 16}  # wider ones differ between machines


class UnreadableError(ValueError):
    """The text is no outcome that this version can read."""


@dataclass(frozen=True, eq=False)
class Kept:
    """An outcome as it was stored."""

    refused: bool
    value: Any = None
    certificate: Any = None


def written(kept: Kept) -> str | None:
    """The outcome as text, or nothing if it holds what cannot be read back bit by bit.

    >>> written(Kept(False, Fraction(1, 3)))
    '{"snugdp outcome":1,"refused":false,"value":{"fraction":"1/3"},"certificate":null}'
    >>> written(Kept(False, object())) is None
    True
    """
    try:
        body = _text(kept)
        return body if _text(read(body)) == body else None
    except Exception:  # paid for and drawn: what cannot be kept must still be shown
        return None


def read(body: str) -> Kept:
    """The outcome again, equal bit by bit.

    >>> read('{"snugdp outcome":1,"refused":false,"value":{"fraction":"1/3"},"certificate":null}').value
    Fraction(1, 3)
    """
    try:
        whole = json.loads(body)
        if whole["snugdp outcome"] == VERSION and isinstance(whole["refused"], bool):
            return Kept(whole["refused"], _read(whole["value"]), _read(whole["certificate"]))
    except Exception:  # whatever is wrong with it
        pass
    raise UnreadableError("this is no outcome that this version of snugdp can read")


def _text(kept: Kept) -> str:
    parts = {"value": _write(kept.value), "certificate": _write(kept.certificate)}
    whole = {"snugdp outcome": VERSION, "refused": kept.refused, **parts}
    return json.dumps(whole, allow_nan=False, separators=(",", ":"))


def _write(value: Any) -> Any:
    """By the very type: a subclass may hold more than its base would tell."""
    kind = type(value)
    if kind in _WRITERS:
        return _WRITERS[kind](value)
    if isinstance(value, np.generic):
        return {"scalar": _bits(np.asarray(value))}
    if isinstance(value, Enum):
        return {"enum": [named(kind), value.name]}
    return {"record": [named(kind), {field.name: _write(getattr(value, field.name)) for field in fields(value)}]}


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


def _array(value: NDArray[Any]) -> dict[str, Any]:
    if value.dtype.kind == "O":
        return {"objects": {"shape": list(value.shape), "items": [_write(item) for item in value.ravel().tolist()]}}
    column_wise = value.flags.f_contiguous and not value.flags.c_contiguous
    order = {"order": "F"} if column_wise else {}  # the order of sums, and so their last bit, may hang on it
    return {"array": {"shape": list(value.shape), **order, **_bits(value.T if column_wise else value)}}


def _bits(value: NDArray[Any]) -> dict[str, Any]:
    kind = value.dtype
    if kind.kind not in _DTYPES or kind.itemsize > _WIDEST.get(kind.kind, kind.itemsize):
        raise TypeError("an array of this type is not kept")
    little = value.astype(kind.newbyteorder("<"), copy=False)
    return {"dtype": little.dtype.str, "data": base64.b64encode(little.tobytes()).decode("ascii")}


def _from_bits(held: dict[str, Any], shape: list[int]) -> NDArray[Any]:
    kind = np.dtype(held["dtype"])
    if kind.kind not in _DTYPES or held["dtype"] != kind.newbyteorder("<").str:
        raise TypeError("an array of this type is not kept")
    data = base64.b64decode(held["data"], validate=True)
    if len(data) != kind.itemsize * math.prod(shape):
        raise ValueError("an array has as many bytes as its shape says")
    return np.ndarray(shape, kind, bytearray(data))


def _to_array(held: dict[str, Any]) -> NDArray[Any]:
    shape = held["shape"]
    return _from_bits(held, shape[::-1]).T if held.get("order") == "F" else _from_bits(held, shape)


def _to_objects(held: dict[str, Any]) -> NDArray[Any]:
    made = np.empty(len(held["items"]), dtype=object)
    for place, item in enumerate(held["items"]):
        made[place] = _read(item)
    return made.reshape(held["shape"])


def _to_fraction(text: str) -> Fraction:
    over, under = text.split("/")
    return Fraction(int(over, 16), int(under, 16))


def _to_enum(held: list[str]) -> Any:
    kind = found(held[0])
    if not issubclass(kind, Enum):
        raise TypeError("only the members of an enum are kept by name")
    return kind[held[1]]


def _to_record(held: list[Any]) -> Any:
    kind, given = found(held[0]), {name: _read(value) for name, value in held[1].items()}
    told = kind.__dataclass_params__.init  # otherwise its __init__ is written by hand and takes what it likes
    made = kind(**{field.name: given[field.name] for field in fields(kind) if field.init or not told})
    if not suits(made) or _write(made) != {"record": held}:
        raise ValueError("a record must come out as it was written")
    return made


_WRITERS: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    str: lambda value: value,
    int: _whole,
    float: _real,
    bytes: lambda value: {"bytes": base64.b64encode(value).decode("ascii")},
    Fraction: lambda value: {"fraction": f"{value.numerator:x}/{value.denominator:x}"},
    Decimal: lambda value: {"decimal": str(value)},
    list: lambda value: [_write(item) for item in value],
    tuple: lambda value: {"tuple": [_write(item) for item in value]},
    dict: lambda value: {"dict": [[_write(key), _write(held)] for key, held in value.items()]},
    np.ndarray: _array,
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda held: int(held, 16),
    "float": lambda held: struct.unpack(">d", bytes.fromhex(held))[0],
    "bytes": lambda held: base64.b64decode(held, validate=True),
    "fraction": _to_fraction,
    "decimal": Decimal,
    "tuple": lambda held: tuple(_read(item) for item in held),
    "dict": lambda held: {_read(key): _read(value) for key, value in held},
    "scalar": lambda held: _from_bits(held, [1])[0],
    "array": _to_array,
    "objects": _to_objects,
    "enum": _to_enum,
    "record": _to_record,
}
