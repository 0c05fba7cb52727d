"""``snugdp bench classification``: private logistic regression on a folder of tables, beside peers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from snugdp.cli.errors import in_plain_words


def classification(
    *,
    data: Annotated[
        str | None,
        typer.Option(help='A folder of NAME.csv.gz or NAME.csv with the label last, "synthetic" or "sklearn".'),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Names of tables, separated by commas; all if not given.")
    ] = None,
    epsilons: Annotated[str, typer.Option(help="Budgets, separated by commas.")] = "0.1,0.5,1,4",
    delta: Annotated[float, typer.Option(help="The delta of every budget.")] = 1e-6,
    seeds: Annotated[int, typer.Option(min=1, help="Splits of each table, each with noise of its own.")] = 10,
    methods: Annotated[str | None, typer.Option(help="Contenders, separated by commas; all if not given.")] = None,
    scalings: Annotated[str, typer.Option(help="How rows are bounded: norm, box, or both with a comma.")] = "norm",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    file: Annotated[Path | None, typer.Option("--json", help="Write every number to this file.")] = None,
    speed: Annotated[bool, typer.Option(help="Measure fit times on made-up rows instead.")] = False,
    rows: Annotated[int, typer.Option(min=1000, help="Rows for --speed.")] = 1_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender for --speed.")] = 2,
) -> None:
    """Log-loss and accuracy of every method on held-out rows of your tables; or, with --speed, fit times.

    Example: snugdp bench classification --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench.classification import contest
    from snugdp_studies.bench.classification import report as classification_report
    from snugdp_studies.bench.classification import speed as classification_speed

    console = Console()
    with in_plain_words():
        if speed:
            times = classification_speed.run(rows, repeats=repeats, methods=_names(methods))
            classification_speed.show(times, console)
            return
        wish: dict[str, Any] = {"epsilons": tuple(float(value) for value in epsilons.split(","))}
        wish |= {"delta": delta, "seeds": seeds, "scalings": tuple(_names(scalings) or ())}
        plan = contest.Plan.of(data, _names(datasets), _names(methods), **wish)
        if file is not None:
            file.touch()  # a file that cannot be written is found before hours of work
        scores = contest.run(plan, jobs, classification_report.watched(console))
        report = classification_report.Report(plan, scores)
        classification_report.show(report, console)
        if file is not None:
            file.write_text(json.dumps(report.as_json(), indent=1))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
