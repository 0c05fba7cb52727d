"""What was found about columns, as people read it: a line for every column."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import NamedTuple

from snugdp.tables.found import Flag, FoundBounds, FoundColumn, FoundLevels, FoundNumber
from snugdp.tables.passes.columns.looks import HIGHEST
from snugdp.tables.schema.kinds import Boolean, Column, Date, described

HEADS = ("column", "holds", "lies in", "clipped to", "centre", "scale", "missing", "")
_MOST_LEVELS = 8  # that are listed
_ORIGIN, _FIRST, _LAST = date(1970, 1, 1), date.min.toordinal(), date.max.toordinal()
_FLAGS = {
    Flag.PUBLIC: "public",
    Flag.NOT_FOUND: "not found: left out",
    Flag.COARSE: "found to a factor of 2",
    Flag.FOUND: "found",
    Flag.CONSTANT: "one value",
}
_TOO_LARGE = "beyond 1.2e+18, where nothing can be told apart: use larger units"


class FoundLine(NamedTuple):
    """What is known of one column, in words; empty where there is nothing to say."""

    column: str
    holds: str
    lies: str  # where rows were seen, or the levels and their shares
    clipped: str
    centre: str
    scale: str
    missing: str
    flag: str


def lines(found: FoundBounds, names: Iterable[str] = ()) -> tuple[FoundLine, ...]:
    """A line for every column, the target last. ``names``: of all columns that were looked at.

    >>> from snugdp import Number, Schema
    >>> from snugdp.tables.found import FoundNumber
    >>> age = FoundNumber(20, 80, 50, 15, missing=0.02)
    >>> print(lines(FoundBounds(Schema({"age": Number()}), {"age": age}, 1000, 2))[0].lies)
    20 to 80
    """
    target = found.declared.target
    columns = sorted(found.declared.columns.items(), key=lambda item: item[0] == target)
    hidden = (FoundLine(name, "", "", "", "", "", "", _FLAGS[Flag.NOT_FOUND]) for name in _without_kind(found, names))
    return (*hidden, *(_line(name, kind, found.columns.get(name), name == target) for name, kind in columns))


def not_found(found: FoundBounds, names: Iterable[str] = ()) -> tuple[str, ...]:
    """The columns that are left out because noise hides what they hold, or where they lie."""
    hidden = (name for name, column in found.columns.items() if column.flag is Flag.NOT_FOUND)
    return (*_without_kind(found, names), *hidden)


def _without_kind(found: FoundBounds, names: Iterable[str]) -> tuple[str, ...]:
    """Columns of no declared type, of which could not be told what they hold."""
    return tuple(name for name in names if name not in found.declared.columns)


def as_text(found: FoundBounds) -> str:
    """A table of all columns."""
    rows = [HEADS, *lines(found)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    shown = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join([f"Bounds of about {found.rows:,.0f} rows", *shown])


def as_html(found: FoundBounds) -> str:
    """The same for notebooks."""
    head, *rows = ("".join(_cells(row, tag)) for row, tag in [(HEADS, "th"), *((line, "td") for line in lines(found))])
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    caption = f"Bounds of about {found.rows:,.0f} rows"
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: tuple[str, ...], tag: str) -> Iterator[str]:
    return (f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)


def _line(name: str, kind: Column, found: FoundColumn | None, target: bool) -> FoundLine:
    holds = f"{described(kind)}, the target" if target else described(kind)
    if found is None:
        words = "no or yes" if isinstance(kind, Boolean) else ""
        return FoundLine(name, holds, words, "", "", "", "", _FLAGS[Flag.PUBLIC])
    missing = "" if found.missing is None else _share(found.missing)
    flag = _FLAGS[found.flag]
    if found.flag is Flag.NOT_FOUND:
        return FoundLine(name, holds, "", "", "", "", missing, flag)
    if isinstance(found, FoundLevels):
        return FoundLine(name, holds, _levels(found), "", "", "", missing, flag)
    reach = 0.0 if found.hull is None else max(map(abs, found.hull))
    told = _TOO_LARGE if reach >= 2.0**HIGHEST else flag
    return FoundLine(name, holds, *_numbers(found, isinstance(kind, Date)), missing, told)


def _numbers(found: FoundNumber, dated: bool) -> tuple[str, str, str, str]:
    """Where a number lies, where it is clipped, its centre and its scale."""
    written = date_text if dated else _number
    ends = f"{written(found.lower)} to {written(found.upper)}"
    lies = ends if found.hull is None else " to ".join(map(written, found.hull))
    if found.flag is Flag.PUBLIC:  # nobody looked at the rows
        return lies, ends, "", ""
    return lies, ends, written(found.centre), _number(found.scale) + (" days" if dated else "")


def _levels(found: FoundLevels) -> str:
    public = found.flag is Flag.PUBLIC
    pairs = list(zip(found.values, found.shares, strict=True))[:_MOST_LEVELS]
    listed = [_printable(value) if public else f"{_printable(value)} {_share(share)}" for value, share in pairs]
    more = len(found.values) - _MOST_LEVELS
    return ", ".join(listed) + (f" and {more} more" if more > 0 else "")


def _printable(level: object) -> str:
    """A level on one line, without what a terminal would obey."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in str(level))


def _share(share: float) -> str:
    return "0 %" if share <= 0 else f"{100 * share:.2g} %" if share < 0.095 else f"{100 * share:.0f} %"


def _number(value: float) -> str:
    """Four digits, as people write them."""
    if abs(value) < 1e15 and (value == int(value) or abs(value) >= 1e4):
        return f"{value:,.0f}"
    return f"{value:.4g}"


def date_text(days: float) -> str:
    """Days since 1970 as a date; as a number where the calendar ends."""
    ordinal = _ORIGIN.toordinal() + days
    return str(_ORIGIN + timedelta(days=int(days // 1))) if _FIRST <= ordinal < _LAST else f"{_number(days)} days"
