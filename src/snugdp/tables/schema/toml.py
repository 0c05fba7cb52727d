"""A schema as a TOML file: read, write, and one with comments to begin with."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.schema import missing as gaps
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, Number, Spline, Undeclared

ABOUT = ("owner", "purpose", "period", "dataset", "contact")  # for reports; no part of the schema
_PARTS = ("target", "person", "intercept", "norm", "missing", "columns")
_TOP_LEVEL_KEYS = (*_PARTS, "about")
_KEYS = {
    "number": ("lower", "upper"),
    "spline": ("lower", "upper", "cells"),
    "category": ("values", "reference"),
    "boolean": (),
    "date": ("lower", "upper", "parts"),
    "any": (),
}
_KINDS: dict[str, type[Column]] = {
    "number": Number, "spline": Spline, "category": Category, "boolean": Boolean, "date": Date, "any": Undeclared,
}  # fmt: skip
_TYPES = '"number", "spline", "category", "boolean", "date" or "any"'
_TABLE = re.compile(r"^\s*\[\s*columns\s*\.\s*(.+?)\s*\]\s*(#.*)?$")
_BLANK = re.compile(r"^\s*(type|lower|upper)\s*=\s*(#.*)?$")


def read(source: str | Path) -> tuple[str, dict[str, Any]]:
    """What to call the schema in errors, and its parts: columns, target, person, intercept, norm, missing."""
    where, parts, problems = inspected(source)
    if problems:
        raise type(problems[0])(f"{where}: {problems[0]}")
    return where, parts


def inspected(source: str | Path) -> tuple[str, dict[str, Any], list[Exception]]:
    """What to call the schema, the parts that can be made, and everything that is wrong with the others."""
    where, text = _text(source)
    try:
        return where, *_parts(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        blanks = _blank_lines(text)
        return where, {}, [ValueError(blank) for blank in blanks or [f"it is not valid TOML: {error}"]]


def parts_of(table: Any) -> dict[str, Any]:
    """The parts of a schema, from the keys of its TOML form."""
    parts, problems = _parts(table)
    if problems:
        raise problems[0]
    return parts


def _parts(table: Any) -> tuple[dict[str, Any], list[Exception]]:
    if not isinstance(table, dict):
        return {}, [TypeError("it must have keys, such as columns")]
    known = ", ".join(_TOP_LEVEL_KEYS)
    problems: list[Exception] = [
        ValueError(f'unknown key "{key}"; known are {known}') for key in table if key not in _TOP_LEVEL_KEYS
    ]
    columns, made = table.get("columns"), {}
    if not isinstance(columns, dict) or not columns:
        problems.append(ValueError("it has no columns; describe each one in a section such as [columns.age]"))
        columns = {}
    for key in ("target", "person"):
        if not isinstance(table.get(key, ""), str):
            problems.append(TypeError(f"{key} must be the name of a column"))
    for name, keys in columns.items():
        try:
            made[name] = _column(name, keys)
        except (TypeError, ValueError) as problem:
            problems.append(problem)
    try:
        _about(table)
    except (TypeError, ValueError) as problem:
        problems.append(problem)
    parts = {**{key: table[key] for key in _PARTS if key in table}, "columns": made}
    policies = {name: columns[name]["missing"] for name in made if "missing" in columns[name]}
    if policies:  # of single columns, beside that of all others
        others = {name: table.get("missing", "centre") for name in columns if name != table.get("target")}
        parts["missing"] = others | policies
    return parts, problems


def about(source: str | Path) -> dict[str, str]:
    r"""What the section [about] tells the readers of reports; it changes no release, and no question of a ledger.

    >>> about('[about]\nowner = "The shop"\n[columns.age]\ntype = "number"')
    {'owner': 'The shop'}
    """
    where, text = _text(source)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: it is not valid TOML: {error}") from None
    with named(where):
        return _about(table)


def _about(table: Mapping[str, Any]) -> dict[str, str]:
    told = table.get("about", {})
    if not isinstance(told, dict):
        raise TypeError('about must be a section [about] with lines such as owner = "The shop"')
    unknown = [key for key in told if key not in ABOUT]
    if unknown:
        raise ValueError(f'about: unknown key "{unknown[0]}"; known are {", ".join(ABOUT)}')
    for key, value in told.items():
        if not isinstance(value, str):
            raise TypeError(f'about.{key} must be text, such as {key} = "..."')
    return told


@contextmanager
def named(where: str) -> Iterator[None]:
    """Errors inside, which are about the schema and so public, say where."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def write(
    columns: Mapping[str, Column],
    target: str | None,
    intercept: bool,
    norm: Real,
    missing: gaps.Policies = "centre",
    *,
    person: str | None = None,
) -> str:
    """The text of a schema."""
    named = {"target": target, "person": person}
    lines = [f"{key} = {_string(name)}" for key, name in named.items() if name is not None]
    lines += [f"intercept = {str(intercept).lower()}", f"norm = {_number(norm)}"]
    one_by_one = missing if isinstance(missing, Mapping) else {}
    lines += [f"missing = {_string(missing)}"] if isinstance(missing, str) and missing != "centre" else []
    for name, column in columns.items():
        lines += ["", section(name), *column_lines(column)]
        lines += [f"missing = {_string(one_by_one[name])}"] if name in one_by_one else []
    return "\n".join(lines) + "\n"


def column_lines(column: Column) -> list[str]:
    """The lines of a column's section. What is open is left out.

    >>> column_lines(Number(lower=0)), column_lines(Date("2020-01-01"))
    (['type = "number"', 'lower = 0'], ['type = "date"', 'lower = "2020-01-01"'])
    """
    kind = next(kind for kind, made in _KINDS.items() if type(column) is made)
    held = {key: getattr(column, key) for key in _KEYS[kind]}
    write = _number if kind in ("number", "spline") else _written
    return [f'type = "{kind}"', *(f"{key} = {write(value)}" for key, value in held.items() if value not in (None, ()))]


def section(name: str) -> str:
    """The heading of a column's section."""
    return f"[columns.{_key(name)}]"


def template(
    columns: Mapping[str, Column], target: str | None, left_out: Mapping[str, str], person: str | None = None
) -> str:
    """A schema with comments, to be used as it is or filled in; ``left_out`` says why other columns are not in it.

    >>> print(template({"age": Number(), "member": Boolean()}, "age", {}))  # doctest: +ELLIPSIS
    # What is public about the table...
    """
    lines = [
        "# What is public about the table. It can be used as it is: bounds and values that are not declared are found",
        "# privately by a fit, for a part of its budget. Declare what is known without these data (an age lies",
        "# between 0 and 120), never what was read off them. Delete the sections of columns that are not to be used.",
        "",
        f"target = {_string(target)}" if target is not None else '# target = "name of the column to be predicted"',
        f"person = {_string(person)}" if person is not None else _PERSON_HINT,
        "intercept = true",
        "norm = 1  # smaller: long rows are shortened to this norm",
    ]
    for name, column in columns.items():
        lines += ["", section(name), *column_lines(column), *(f"# {hint}" for hint in _HINTS[type(column)])]
    lines += ["", f"# A section [about] with {', '.join(ABOUT)}, each a text, is shown in reports."]
    if left_out:
        lines += ["", "# Left out:"]
    lines += [f"# {_string(name)}: {reason}" for name, reason in left_out.items()]
    return "\n".join(lines) + "\n"


_PERSON_HINT = '# person = "customer_id"  # if a person may have several rows: the column that says whose they are'
_HINTS: dict[type[Column], tuple[str, ...]] = {
    Number: ("lower = 0", "upper = 120"),
    Spline: ("lower = 0", "upper = 120", "cells = 16"),
    Category: ('values = ["red", "blue"]', 'reference = "red"'),
    Boolean: (),
    Date: ("lower = 2020-01-01", "upper = 2030-01-01", 'parts = ["month", "weekday", "hour"]'),
    Undeclared: (
        "the file declares no type for this column: what it holds is found privately, or write",
        '"number", "category", "boolean" or "date"',
    ),
}


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
        raise ValueError(f"{at}.type must be {_TYPES}")
    unknown = [key for key in keys if key not in ("type", *_KEYS[kind], "missing")]
    if unknown:
        known = ", ".join(("type", *_KEYS[kind], "missing"))
        raise ValueError(f'{at}: unknown key "{unknown[0]}"; known for type "{kind}" are {known}')
    with named(at):
        return _KINDS[kind](**{key: value for key, value in keys.items() if key in _KEYS[kind]})


def _blank_lines(text: str) -> list[str]:
    """What to say about lines that were left to fill in."""
    column, found = "?", []
    for line in text.splitlines():
        if heading := _TABLE.match(line):
            column = heading[1]
        elif blank := _BLANK.match(line):
            found.append(
                f"columns.{column}.type is missing: write {_TYPES}"
                if blank[1] == "type"
                else f"columns.{column}: the {blank[1]} bound is missing. Delete the line to have it found privately, "
                "or write down what is known without these data; the minimum and maximum of the data are private"
            )
    return found


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: Real) -> str:
    if isinstance(value, int | float):
        return repr(float(value) if isinstance(value, float) else int(value))  # numpy's floats print otherwise
    exact: Fraction = rational(value, "the number")
    return str(exact) if exact.denominator == 1 else _string(str(exact))


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _string(value) if isinstance(value, str) else _number(value)
