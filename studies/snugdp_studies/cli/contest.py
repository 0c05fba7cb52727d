"""``snugdp bench regression`` and ``snugdp bench classification``: contests on a folder of tables, beside peers."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from snugdp.cli.errors import in_plain_words
from snugdp_studies.cli.shared import Delta, Epsilons, Json, names, numbers, watched, writable

Datasets = Annotated[str | None, typer.Option(help="Names of tables, separated by commas; all if not given.")]
Seeds = Annotated[int, typer.Option(min=1, help="Splits of each table, each with noise of its own.")]
Methods = Annotated[str | None, typer.Option(help="Contenders, separated by commas; all if not given.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Speed = Annotated[bool, typer.Option(help="Measure fit times on made-up rows instead.")]
Rows = Annotated[int, typer.Option(min=1000, help="Rows for --speed.")]
Times = Annotated[int, typer.Option(min=1, help="Runs of each contender for --speed.")]


def regression(
    *,
    data: Annotated[
        str | None, typer.Option(help='A folder of NAME.csv.gz or NAME.csv with the target last, or "synthetic".')
    ] = None,
    datasets: Datasets = None,
    epsilons: Epsilons = "0.1,0.5,1,4",
    delta: Delta = 1e-6,
    seeds: Seeds = 20,
    methods: Methods = None,
    loose: Annotated[
        float | None, typer.Option(help="Also with a bound on targets so many times too large, such as 5.")
    ] = None,
    jobs: Jobs = 1,
    file: Json = None,
    speed: Speed = False,
    rows: Rows = 1_000_000,
    repeats: Times = 3,
) -> None:
    """Errors of every method on held-out rows of your tables; or, with --speed, fit times beside scikit-learn's.

    Example: snugdp bench regression --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench import regression as contest

    with in_plain_words():
        if speed:
            contest.show_times(contest.fit_times(rows, repeats=repeats, methods=_asked(methods)), Console())
            return
        variants = (1.0,) if loose is None else (1.0, loose)
        budgets = {"epsilons": numbers(epsilons), "delta": delta, "seeds": seeds}
        _run(contest.TASK, (data, _asked(datasets), _asked(methods)), {"variants": variants, **budgets}, jobs, file)


def classification(
    *,
    data: Annotated[
        str | None,
        typer.Option(help='A folder of NAME.csv.gz or NAME.csv with the label last, "synthetic" or "sklearn".'),
    ] = None,
    datasets: Datasets = None,
    epsilons: Epsilons = "0.1,0.5,1,4",
    delta: Delta = 1e-6,
    seeds: Seeds = 10,
    methods: Methods = None,
    scalings: Annotated[str, typer.Option(help="How rows are bounded: norm, box, or both with a comma.")] = "norm",
    jobs: Jobs = 1,
    file: Json = None,
    speed: Speed = False,
    rows: Rows = 1_000_000,
    repeats: Times = 2,
) -> None:
    """Log-loss and accuracy of every method on held-out rows of your tables; or, with --speed, fit times.

    Example: snugdp bench classification --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench import classification as contest

    with in_plain_words():
        if speed:
            contest.show_times(contest.fit_times(rows, repeats=repeats, methods=_asked(methods)), Console())
            return
        variants = tuple(names(scalings))
        budgets = {"epsilons": numbers(epsilons), "delta": delta, "seeds": seeds}
        _run(contest.TASK, (data, _asked(datasets), _asked(methods)), {"variants": variants, **budgets}, jobs, file)


def _run(task: Any, wanted: tuple[Any, ...], settings: dict[str, Any], jobs: int, file: Path | None) -> None:
    from snugdp_studies.bench.contest import report, run

    console = Console()
    plan = run.Plan.of(task, *wanted, **settings)
    writable(file)
    result = report.Report(plan, run.run(plan, jobs, partial(watched, console, "Fitting")))
    report.show(result, console)
    if file is not None:
        file.write_text(json.dumps(result.as_json(), indent=1))


def _asked(text: str | None) -> list[str] | None:
    return None if text is None else names(text)
