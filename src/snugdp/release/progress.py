"""A sign that something is going on. It shows the time, and never how far along it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from snugdp.core.screen import watched


@contextmanager
def waiting(what: str, progress: bool | None) -> Iterator[None]:
    """A spinner and the seconds since it began; by default where there is a terminal, or a notebook with ipywidgets.

    How much is left, or how many steps were done, would tell a hidden number of runs.
    """
    if not watched(progress):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(what), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        yield
