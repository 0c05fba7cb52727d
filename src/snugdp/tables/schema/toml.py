"""A schema as a TOML file: read, write, and a template to fill in."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.schema.kinds import HOW_TO_GET_BOUNDS, Boolean, Category, Column, DType, Number

_TOP_LEVEL_KEYS = ("target", "intercept", "norm", "columns")
_KEYS = {"number": ("lower", "upper"), "category": ("values",), "boolean": ()}
_TABLE = re.compile(r"^\s*\[\s*columns\s*\.\s*(.+?)\s*\]\s*(#.*)?$")
_BLANK = re.compile(r"^\s*(type|lower|upper)\s*=\s*(#.*)?$")


def read(source: str | Path) -> tuple[str, dict[str, Any]]:
    """What to call the schema in errors, and its parts: columns, target, intercept, norm."""
    where, text = _text(source)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        blank = _blank_line(text)
        if blank is None:
            raise ValueError(f"{where} is not valid TOML: {error}") from None
        raise ValueError(f"{where}: {blank}") from None
    with named(where):
        return where, parts_of(table)


def parts_of(table: Any) -> dict[str, Any]:
    """The parts of a schema, from the keys of its TOML form."""
    if not isinstance(table, dict):
        raise TypeError("it must have keys, such as columns")
    unknown = [key for key in table if key not in _TOP_LEVEL_KEYS]
    if unknown:
        raise ValueError(f'unknown key "{unknown[0]}"; known are {", ".join(_TOP_LEVEL_KEYS)}')
    columns = table.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise ValueError("it has no columns; describe each one in a section such as [columns.age]")
    if not isinstance(table.get("target", ""), str):
        raise TypeError("target must be the name of a column")
    return {**table, "columns": {name: _column(name, keys) for name, keys in columns.items()}}


@contextmanager
def named(where: str) -> Iterator[None]:
    """Errors inside, which are about the schema and so public, say where."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def write(columns: Mapping[str, Column], target: str | None, intercept: bool, norm: Real) -> str:
    """The text of a schema."""
    lines = [f"target = {_string(target)}"] if target is not None else []
    lines += [f"intercept = {str(intercept).lower()}", f"norm = {_number(norm)}"]
    for name, column in columns.items():
        lines += ["", section(name)]
        if isinstance(column, Number):
            lines += ['type = "number"', *bound_lines(column.lower, column.upper)]
        elif isinstance(column, Category):
            lines += ['type = "category"', f"values = [{', '.join(_value(value) for value in column.values)}]"]
        else:
            lines += ['type = "boolean"']
    return "\n".join(lines) + "\n"


def bound_lines(lower: Real, upper: Real) -> list[str]:
    """The lines that give a number its bounds."""
    return [f"lower = {_number(lower)}", f"upper = {_number(upper)}"]


def section(name: str) -> str:
    """The heading of a column's section."""
    return f"[columns.{_key(name)}]"


def template(types: Mapping[str, DType]) -> str:
    """A schema to fill in, from names and declared types alone.

    >>> print(template({"age": nw.Float64(), "member": nw.Boolean()}))  # doctest: +ELLIPSIS
    # What is public about the table...
    """
    lines = [
        "# What is public about the table. Fill in bounds and values from outside the data; delete what is not used.",
        "# Bounds: what is known without these data (an age lies between 0 and 120), or a private estimate from",
        "# 'snugdp bounds FILE --column NAME', which spends budget. Never the minimum and maximum of the data.",
        "",
        '# target = "name of the column to be predicted"',
        "intercept = true",
        "norm = 1  # smaller: long rows are shortened to this norm",
    ]
    for name, dtype in types.items():
        lines += ["", *_section(name, dtype)]
    return "\n".join(lines) + "\n"


def _section(name: str, dtype: DType) -> list[str]:
    if dtype == nw.Boolean:
        return [section(name), 'type = "boolean"']
    if dtype.is_numeric():
        return [
            section(name),
            'type = "number"',
            "lower =   # fill in: the smallest value that counts, from public knowledge or from 'snugdp bounds'",
            "upper =   # fill in: the largest value that counts",
        ]
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return [
            section(name),
            'type = "category"',
            "values = []  # fill in: the values that count, from outside the data; other rows are in no category",
        ]
    if dtype in (nw.Object, nw.Unknown):
        return [
            section(name),
            'type =   # fill in: "number" (with lower and upper), "category" (with values) or "boolean"',
            "# lower =",
            "# upper =",
            "# values = []",
        ]
    return [f"# The column {_string(name)} is of type {dtype}: convert it to numbers or text to use it."]


def _text(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "\n" in source:
        return "the schema", source
    path = Path(source)
    try:
        return str(path), path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8") from None
    except OSError as error:
        raise ValueError(f"cannot read the schema {path}: {error.strerror}") from None


def _column(name: str, keys: object) -> Column:
    at = f"columns.{_key(name)}"
    if not isinstance(keys, dict):
        raise TypeError(f'{at} must be a section with a type, such as type = "number"')
    kind = keys.get("type")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise ValueError(f'{at}.type must be "number", "category" or "boolean"')
    unknown = [key for key in keys if key not in ("type", *_KEYS[kind])]
    if unknown:
        known = ", ".join(("type", *_KEYS[kind]))
        raise ValueError(f'{at}: unknown key "{unknown[0]}"; known for type "{kind}" are {known}')
    missing = [key for key in _KEYS[kind] if key not in keys]
    if missing and kind == "number":
        raise ValueError(f"{at}: the {missing[0]} bound is missing. {HOW_TO_GET_BOUNDS}")
    with named(at):
        return _made(kind, keys)


def _made(kind: str, keys: Mapping[str, Any]) -> Column:
    if kind == "number":
        return Number(keys["lower"], keys["upper"])
    return Category(keys.get("values", [])) if kind == "category" else Boolean()


def _blank_line(text: str) -> str | None:
    """What to say about the first line that was left to fill in."""
    column = "?"
    for line in text.splitlines():
        if heading := _TABLE.match(line):
            column = heading[1]
        elif blank := _BLANK.match(line):
            if blank[1] == "type":
                return f'columns.{column}.type is missing: write "number", "category" or "boolean"'
            return f"columns.{column}: the {blank[1]} bound is missing. {HOW_TO_GET_BOUNDS}"
    return None


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: Real) -> str:
    if isinstance(value, int | float):
        return repr(float(value) if isinstance(value, float) else int(value))  # numpy's floats print otherwise
    exact: Fraction = rational(value, "the number")
    return str(exact) if exact.denominator == 1 else _string(str(exact))


def _value(value: Hashable) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _string(value) if isinstance(value, str) else _number(value)  # type: ignore[arg-type]
