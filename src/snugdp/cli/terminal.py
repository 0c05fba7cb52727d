"""What is said in the terminal: words of a table, made harmless, and small pictures of block characters."""

from __future__ import annotations

import math
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

import typer

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # a line break or a tab is none


def harmless(text: str) -> str:
    r"""Names and cells of a table as a terminal may show them: what it would obey, or turn round, is shown as a code.

    >>> harmless("red \x1b[31m")
    'red \\x1b[31m'
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def say(text: str, *, err: bool = False) -> None:
    """Print what may hold names or cells of a table."""
    typer.echo(harmless(text), err=err)


def bars(
    rows: Sequence[tuple[str, float]], *, marked: int | None = None, width: int = 40, plain: bool | None = None
) -> list[str]:
    """A bar for every number, the longest as wide as ``width``; the marked one has an arrow. Larger is longer.

    >>> for line in bars([("0.5", 8.0), ("1", 4.0), ("2", float("inf"))], marked=1, width=8, plain=False):
    ...     print(line)
      0.5  ████████  8
    >   1  ████      4
        2            unbounded
    """
    finite = [value for _, value in rows if math.isfinite(value)]
    longest = max(finite, default=0.0)
    label = max((len(text) for text, _ in rows), default=0)
    simple = not draws_blocks() if plain is None else plain
    lines = []
    for index, (text, value) in enumerate(rows):
        arrow = ">" if index == marked else " "
        share = value / longest if longest > 0 and math.isfinite(value) else 0.0
        shown = f"{value:.3g}" if math.isfinite(value) else "unbounded"
        lines.append(f"{arrow} {text:>{label}}  {_bar(share, width, simple):<{width}}  {shown}")
    return lines


def _bar(share: float, width: int, plain: bool) -> str:
    if plain:
        return "#" * round(share * width)
    eighths = max(1, round(share * width * 8)) if share > 0 else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def draws_blocks(stream: Any = None) -> bool:
    """Whether the output can hold block characters."""
    encoding = getattr(sys.stdout if stream is None else stream, "encoding", None) or "ascii"
    try:
        _EIGHTHS.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def is_terminal() -> bool:
    """Whether a person sits there, to be asked."""
    return all(getattr(stream, "isatty", lambda: False)() for stream in (sys.stdin, sys.stderr))


def agrees(question: str) -> bool:
    """Ask on the error stream; Ctrl-C and the end of the input mean no."""
    if hasattr(signal, "siginterrupt"):  # polars lets a read begin again after Ctrl-C, and nothing would happen
        signal.siginterrupt(signal.SIGINT, True)
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo(err=True)
        return False
