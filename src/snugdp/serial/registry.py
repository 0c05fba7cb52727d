"""Which types a stored outcome may name: enums and frozen dataclasses of snugdp, and whether their fields suit them."""

from __future__ import annotations

import importlib
import numbers
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_ROOMS = "numerics|accounting|core|noise|propose|tables|release|certify|mechanisms|recipe|queries|pate|estimators"
_NAME = re.compile(rf"snugdp\.(?:{_ROOMS})(?:\.[a-z][a-z0-9_]*)*:[A-Za-z_]\w*", re.ASCII)
_LOOSE: dict[Any, type] = {float: numbers.Real, int: numbers.Integral, NoneType: NoneType}


def named(kind: type) -> str:
    """The name of a type that may be kept."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    if found(name) is not kind:
        raise TypeError("a type is kept by its own name only")
    return name


@cache
def found(name: str) -> Any:
    """The type of this name, if it may be kept."""
    if not _NAME.fullmatch(name):
        raise TypeError("only types of snugdp are kept")
    module, _, own = name.partition(":")
    kind: Any = getattr(importlib.import_module(module), own)
    if not isinstance(kind, type) or f"{kind.__module__}:{kind.__qualname__}" != name:
        raise TypeError("a type is kept by its own name only")
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if not (frozen or issubclass(kind, Enum)):
        raise TypeError("only enums and frozen dataclasses are kept")
    return kind


def suits(record: Any) -> bool:
    """Whether every field is roughly what its type says. Loosely: a whole number may stand for a real one."""
    hints = _hints(type(record))
    return all(_fits(getattr(record, field.name), hints.get(field.name, Any)) for field in fields(record))


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # a type that is only there for type checkers
        return {}


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is Callable or isinstance(hint, TypeVar) or hint is Any:
        return True
    if origin is tuple and isinstance(value, tuple) and inner[1:] == (...,):
        return all(_fits(item, inner[0]) for item in value)
    kind = _LOOSE.get(hint, origin or hint)
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol, of which nothing can be told
        return True
