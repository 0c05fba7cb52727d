"""What the commands of the studies share: options, lists with commas, notes, tables, and a bar on a terminal."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

Delta = Annotated[float, typer.Option(help="The delta of every budget.")]
Epsilons = Annotated[str, typer.Option(help="Budgets, separated by commas.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write every number to this file.")]
Pictures = Annotated[Path | None, typer.Option(help="A folder with the four files of MNIST, plain or gzipped.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of each contender.")]


def numbers(text: str) -> tuple[float, ...]:
    """Numbers that are separated by commas."""
    return tuple(float(value) for value in text.split(","))


def names(text: str, separator: str = ",") -> list[str]:
    """Names that are separated by commas."""
    return [name.strip() for name in text.split(separator)]


def say(console: Console, *notes: str) -> None:
    """Print notes, each on lines of its own."""
    for note in notes:
        console.print(note, highlight=False)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], title: str | None = None) -> Table:
    """A table of these rows."""
    drawn = Table(*heads, title=title)
    for row in rows:
        drawn.add_row(*row)
    return drawn


def writable(*files: Path | None) -> None:
    """A file that cannot be written is found before hours of work."""
    for file in files:
        if file is not None:
            file.touch()


def watched(console: Console, what: str, items: Iterable[Any], total: int) -> Iterator[Any]:
    """A bar on a terminal."""
    yield from track(items, what, total, console=console, disable=not console.is_terminal, transient=True)
