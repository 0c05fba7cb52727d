"""``snugdp bench regression`` and ``snugdp bench classification``: contests on a folder of tables, beside peers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from snugdp.cli.errors import in_plain_words

Datasets = Annotated[str | None, typer.Option(help="Names of tables, separated by commas; all if not given.")]
Epsilons = Annotated[str, typer.Option(help="Budgets, separated by commas.")]
Delta = Annotated[float, typer.Option(help="The delta of every budget.")]
Seeds = Annotated[int, typer.Option(min=1, help="Splits of each table, each with noise of its own.")]
Methods = Annotated[str | None, typer.Option(help="Contenders, separated by commas; all if not given.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write every number to this file.")]
Speed = Annotated[bool, typer.Option(help="Measure fit times on made-up rows instead.")]
Rows = Annotated[int, typer.Option(min=1000, help="Rows for --speed.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of each contender for --speed.")]


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
    repeats: Repeats = 3,
) -> None:
    """Errors of every method on held-out rows of your tables; or, with --speed, fit times beside scikit-learn's.

    Example: snugdp bench regression --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench.regression import speed as times
    from snugdp_studies.bench.regression.task import TASK

    with in_plain_words():
        if speed:
            times.show(times.run(rows, repeats=repeats, methods=_names(methods)), Console())
            return
        factors = (1.0,) if loose is None else (1.0, loose)
        wish = {"variants": factors, "epsilons": _numbers(epsilons), "delta": delta, "seeds": seeds}
        _run(TASK, (data, _names(datasets), _names(methods)), wish, jobs, file)


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
    repeats: Repeats = 2,
) -> None:
    """Log-loss and accuracy of every method on held-out rows of your tables; or, with --speed, fit times.

    Example: snugdp bench classification --data synthetic --seeds 2 --epsilons 1
    """
    from snugdp_studies.bench.classification import speed as times
    from snugdp_studies.bench.classification.task import TASK

    with in_plain_words():
        if speed:
            times.show(times.run(rows, repeats=repeats, methods=_names(methods)), Console())
            return
        wish: dict[str, Any] = {"variants": tuple(_names(scalings) or ()), "epsilons": _numbers(epsilons)}
        wish |= {"delta": delta, "seeds": seeds}
        _run(TASK, (data, _names(datasets), _names(methods)), wish, jobs, file)


def _run(task: Any, wanted: tuple[Any, ...], wish: dict[str, Any], jobs: int, file: Path | None) -> None:
    from snugdp_studies.bench.contest import report, run

    console = Console()
    plan = run.Plan.of(task, *wanted, **wish)
    if file is not None:
        file.touch()  # a file that cannot be written is found before hours of work
    found = report.Report(plan, run.run(plan, jobs, report.watched(console)))
    report.show(found, console)
    if file is not None:
        file.write_text(json.dumps(found.as_json(), indent=1))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(value) for value in text.split(","))
