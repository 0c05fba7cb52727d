"""``snugdp bench regression``: private linear regression on a folder of tables, beside peers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from snugdp.cli.errors import in_plain_words


def regression(
    *,
    data: Annotated[
        str | None, typer.Option(help='A folder of NAME.csv.gz or NAME.csv with the target last, or "synthetic".')
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Names of tables, separated by commas; all if not given.")
    ] = None,
    epsilons: Annotated[str, typer.Option(help="Budgets, separated by commas.")] = "0.1,0.5,1,4",
    delta: Annotated[float, typer.Option(help="The delta of every budget.")] = 1e-6,
    seeds: Annotated[int, typer.Option(min=1, help="Splits of each table, each with noise of its own.")] = 20,
    methods: Annotated[str | None, typer.Option(help="Contenders, separated by commas; all if not given.")] = None,
    loose: Annotated[
        float | None, typer.Option(help="Also with a bound on targets so many times too large, such as 5.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    file: Annotated[Path | None, typer.Option("--json", help="Write every number to this file.")] = None,
    speed: Annotated[bool, typer.Option(help="Measure fit times on made-up rows instead.")] = False,
    rows: Annotated[int, typer.Option(min=1000, help="Rows for --speed.")] = 1_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender for --speed.")] = 3,
) -> None:
    """Errors of every method on held-out rows of your tables; or, with --speed, fit times beside scikit-learn's.

    Example: snugdp bench regression --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench.regression import contest, tables
    from snugdp_studies.bench.regression import speed as regression_speed
    from snugdp_studies.bench.regression.plan import Plan

    console = Console()
    with in_plain_words():
        if speed:
            times = regression_speed.run(rows, repeats=repeats, methods=_names(methods))
            tables.speed(times, console)
            return
        plan = Plan.of(
            data,
            _names(datasets),
            _names(methods),
            epsilons=tuple(float(value) for value in epsilons.split(",")),
            delta=delta,
            seeds=seeds,
            loose=loose,
        )
        if file is not None:
            file.touch()  # a file that cannot be written is found before hours of work
        report = contest.run(plan, jobs, tables.watched(console))
        tables.show(report, console)
        if file is not None:
            file.write_text(json.dumps(report.as_json(), indent=1))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
