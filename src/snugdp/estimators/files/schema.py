"""A schema in a model file: the keys of its TOML form, as JSON."""

from __future__ import annotations

import tomllib
from typing import Any

from snugdp.tables.schema.kinds import Boolean, Category, Column, Number
from snugdp.tables.schema.schema import Schema

_KEYS: dict[str, tuple[str, ...]] = {"number": ("lower", "upper"), "category": ("values",), "boolean": ()}


def schema_to(schema: Schema) -> dict[str, Any]:
    """The schema as JSON.

    >>> schema_to(Schema({"age": Number(0, 120)}))["columns"]
    {'age': {'type': 'number', 'lower': 0, 'upper': 120}}
    """
    if type(schema) is not Schema:
        raise TypeError("only a plain snugdp.Schema can be written to a model file")
    return tomllib.loads(schema.to_toml())


def schema_from(given: Any) -> Schema:
    """The schema again; whatever is wrong with it is a ``ValueError``."""
    if not isinstance(given, dict) or not given.keys() <= {"target", "intercept", "norm", "columns"}:
        raise ValueError('"schema" must have columns, and may have a target, an intercept and a norm')
    columns = given.get("columns")
    if not isinstance(columns, dict):
        raise ValueError('"schema" must have columns')  # noqa: TRY004  every fault of a file is a ValueError
    try:
        return Schema(**{**given, "columns": {name: _column(name, keys) for name, keys in columns.items()}})
    except TypeError as error:
        raise ValueError(f'"schema": {error}') from None


def _column(name: str, keys: Any) -> Column:
    kind = keys.get("type") if isinstance(keys, dict) else None
    if kind not in _KEYS or keys.keys() != {"type", *_KEYS[kind]}:
        raise ValueError(f'"schema": column "{name}" must be a number with lower and upper, a category or a boolean')
    if kind == "number":
        return Number(keys["lower"], keys["upper"])
    return Category(keys["values"]) if kind == "category" else Boolean()
