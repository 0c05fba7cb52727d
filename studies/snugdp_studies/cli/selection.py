"""``snugdp bench selection``: what one of many private runs may cost, by each accounting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from snugdp.cli.errors import in_plain_words


def selection(
    *,
    runs: Annotated[float, typer.Option(min=1.5, help="Runs on average.")] = 30.0,
    delta: Annotated[float, typer.Option(help="The delta of every budget.")] = 1e-6,
    plot: Annotated[Path | None, typer.Option(help="Draw the picture into this file instead, such as x.svg.")] = None,
) -> None:
    """The Gaussian mu that each accounting leaves to one of many runs, beside dp-accounting's.

    Example: snugdp bench selection --runs 30
    """
    import snugdp_studies.bench.selection as contest

    console = Console()
    with in_plain_words():
        if plot is not None:
            plot.touch()  # a file that cannot be written is found before the work
            contest.plot(plot, delta=delta)
            return
        table = Table(f"mu of a run, {runs:g} on average, delta {delta:g}", *(f"{e:g}" for e in contest.EPSILONS))
        for row in contest.run(runs, delta):
            table.add_row(row.name, *(f"{int(mu * 10_000) / 10_000:.4f}" for mu in row.mu))
        console.print(table)
        console.print(f"one calibration by C2: {contest.calibration_seconds(runs):.2f} s", highlight=False)
