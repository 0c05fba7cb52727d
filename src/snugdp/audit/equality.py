"""Whether two results are the same, whatever they are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np


def equal(one: Any, other: Any) -> bool:
    """The same types and the same numbers, all the way down; what is no number equals itself.

    >>> equal([1.0, {"a": float("nan")}], [1.0, {"a": float("nan")}]), equal([1.0], [1.5])
    (True, False)
    """
    try:
        return one is other or (type(one) is type(other) and _same(one, other))
    except RecursionError:  # it holds itself
        return False


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return _arrays(one, other)
    if isinstance(one, float | np.floating):
        return bool(one == other) or bool(np.isnan(one) and np.isnan(other))
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, Sequence) and not isinstance(one, str | bytes):
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    return _objects(one, other)


def _arrays(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == np.object_:
        return all(equal(a, b) for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True))
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def _objects(one: Any, other: Any) -> bool:
    """Functions by what they carry: the rest of them is their code, which is the same object in both runs."""
    if isinstance(one, FunctionType):
        return _functions(one, other)
    if isinstance(one, partial):
        return equal((one.func, one.args, one.keywords), (other.func, other.args, other.keywords))
    if isinstance(one, MethodType):
        return equal((one.__func__, one.__self__), (other.__func__, other.__self__))
    if callable(getattr(type(one), "equals", None)):  # frames and their columns, of any library
        return bool(one.equals(other))
    if dataclasses.is_dataclass(one) and not hasattr(one, "get_params"):  # the fields of an estimator are not its fit
        names = [field.name for field in dataclasses.fields(one)]
        return all(equal(getattr(one, name), getattr(other, name)) for name in names)
    if any("__eq__" in vars(kind) for kind in type(one).__mro__[:-1]):
        return bool(one == other)
    slots = [name for kind in type(one).__mro__ for name in _slots(kind)]
    if not slots and not hasattr(one, "__dict__"):
        return False  # nothing is known of it: a generator, a file
    inside = [[getattr(each, name, None) for name in slots] for each in (one, other)]
    return equal(*inside) and equal(getattr(one, "__dict__", None), getattr(other, "__dict__", None))


def _functions(one: FunctionType, other: FunctionType) -> bool:
    cells = [[_inside(cell) for cell in each.__closure__ or ()] for each in (one, other)]
    kept = [(each.__defaults__, each.__kwdefaults__, vars(each)) for each in (one, other)]
    return one.__code__ == other.__code__ and equal(*cells) and equal(*kept)


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    names = (found,) if isinstance(found, str) else tuple(found)
    return tuple(name for name in names if not name.startswith("__"))


def _inside(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None
