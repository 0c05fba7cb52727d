"""Whether two results are the same, whatever they are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def alike(one: Any, other: Any) -> bool:
    """The same types and the same numbers, all the way down; what is no number equals itself.

    >>> alike([1.0, {"a": float("nan")}], [1.0, {"a": float("nan")}]), alike([1.0], [1.5])
    (True, False)
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return _arrays(one, other)
    if isinstance(one, float | np.floating):
        return bool(one == other) or bool(np.isnan(one) and np.isnan(other))
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, Sequence) and not isinstance(one, str | bytes):
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(one, other, strict=True))
    return _objects(one, other)


def _arrays(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == np.object_:
        return all(alike(a, b) for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True))
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def _objects(one: Any, other: Any) -> bool:
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(alike(getattr(one, name), getattr(other, name)) for name in names)
    if any("__eq__" in vars(kind) for kind in type(one).__mro__[:-1]):
        return bool(one == other)
    return hasattr(one, "__dict__") and alike(vars(one), vars(other))
