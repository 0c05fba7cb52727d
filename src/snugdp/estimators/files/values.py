"""Values of model files: the exact codec of ``ptr.keeping``, with numbers written out in decimal.

Finite floats in an array become a nested list under ``floats``, exact ratios become ``ratio``: every float is written
with as many digits as tell it from all others, so reading gives the same bits. All else is as the codec has it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from snugdp.serial.codec import VERSION, Kept, read, written

_LONGEST = 4000  # digits that every Python converts


def encode(value: Any, what: str) -> Any:
    """A value as JSON, from which ``decode`` makes it again bit by bit.

    >>> encode({"ridge": np.array([0.1, 2.0])}, "proposals")
    {'dict': [['ridge', {'floats': [0.1, 2.0]}]]}
    """
    text = written(Kept(False, value))
    if text is None:
        raise TypeError(f"{what} cannot be written to a model file: it is not made of numbers, text, lists and arrays")
    return _shown(json.loads(text)["value"])


def decode(tree: Any) -> Any:
    """The value again. Nothing is run: what is not known is refused with a ``ValueError``.

    >>> decode({"ratio": "1/3"})
    Fraction(1, 3)
    """
    whole = {"snugdp outcome": VERSION, "refused": False, "value": exact(tree), "certificate": None}
    return read(json.dumps(whole)).value


def record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The tree of a frozen dataclass of snugdp, such as "snugdp.core.outcome:Receipt"."""
    return {"record": [name, fields]}


def exact(tree: Any) -> Any:
    """As the codec reads it."""
    return _walked(tree, {"floats": _to_array, "ratio": _to_hex})


def _shown(tree: Any) -> Any:
    return _walked(tree, {"array": _to_floats, "fraction": _to_ratio})


def _walked(tree: Any, leaves: dict[str, Callable[[Any], Any]]) -> Any:
    if isinstance(tree, list):
        return [_walked(item, leaves) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, held),) = tree.items()
    if kind in leaves:
        return leaves[kind](held)
    if kind == "record":
        name, fields = held
        return {kind: [name, {field: _walked(value, leaves) for field, value in fields.items()}]}
    if kind in ("tuple", "dict"):
        return {kind: _walked(held, leaves)}
    if kind == "objects":
        return {kind: {"shape": held["shape"], "items": _walked(held["items"], leaves)}}
    return tree


def _to_floats(held: dict[str, Any]) -> dict[str, Any]:
    if held["dtype"] == "<f8" and "order" not in held and all(held["shape"]):
        values = np.frombuffer(base64.b64decode(held["data"]), "<f8").reshape(held["shape"])
        if np.isfinite(values).all():
            return {"floats": values.tolist()}
    return {"array": held}


def _to_array(held: Any) -> dict[str, Any]:
    values = np.array(held, dtype="<f8")
    if values.tolist() != held or not np.isfinite(values).all():
        raise ValueError("an array of floats must be a list of finite numbers, or lists of the same length")
    return {"array": {"shape": list(values.shape), "dtype": "<f8", "data": base64.b64encode(values.tobytes()).decode()}}


def _to_ratio(held: str) -> dict[str, str]:
    over, under = (int(part, 16) for part in held.split("/"))
    if max(abs(over), under).bit_length() * math.log10(2) > _LONGEST:
        return {"fraction": held}
    return {"ratio": f"{over}/{under}"}


def _to_hex(held: Any) -> dict[str, str]:
    over, under = (int(part) for part in held.split("/"))
    return {"fraction": f"{over:x}/{under:x}"}
