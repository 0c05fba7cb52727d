"""A sign on the terminal that something is going on. It shows the time, and never how far along it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def waiting(what: str, progress: bool | None) -> Iterator[None]:
    """A spinner and the seconds since it began; by default where there is a terminal, or a notebook with ipywidgets.

    How much is left, or how many steps were done, would tell a hidden number of runs.
    """
    if not (sys.stderr.isatty() or _in_notebook() if progress is None else progress):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(what), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        yield


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules and find_spec("ipywidgets") is not None
