"""``snugdp bench``: side-by-side runs against peers. The work is loaded when a command is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from snugdp.cli.errors import in_plain_words
from snugdp_studies.cli.contest import classification, regression
from snugdp_studies.cli.pate import pate
from snugdp_studies.cli.pca import pca
from snugdp_studies.cli.shared import Delta, Repeats, say, table, writable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Side-by-side runs against peers, in one run, on one thread.",
)


def noise(repeats: Repeats = 15) -> None:
    """5,050 exact draws of each law, beside OpenDP's vectors and numpy's unprotected normals.

    Example: snugdp bench noise --repeats 3
    """
    from snugdp_studies.bench.noise import run

    heads = ("5,050 draws", "fastest, ms", "median, ms", "relative to the exact Gaussian")
    with in_plain_words():
        times = [(row.name, 1000 * row.min_s, 1000 * row.median_s, row.relative) for row in run(repeats)]
    Console().print(table(heads, ((name, *(f"{value:.2f}" for value in values)) for name, *values in times)))


def imports(repeats: Annotated[int, typer.Option(min=1, help="Imports of each name.")] = 5) -> None:
    """What an import costs beyond numpy, scipy and scikit-learn.

    Example: snugdp bench imports --repeats 3
    """
    from snugdp_studies.bench.imports import GOAL, run

    console = Console()
    heads = ("from snugdp import", "fastest, CPU-s", "median, CPU-s", "own modules", "all modules")
    rows = run(repeats=repeats)
    cells = ((r.name, f"{r.min_s:.3f}", f"{r.median_s:.3f}", str(r.own), str(r.modules)) for r in rows)
    console.print(table(heads, cells))
    say(console, GOAL)


def queries(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the made-up column.")] = 5_000_000, repeats: Repeats = 5
) -> None:
    """Every query on millions of rows, beside numpy's sort of the same column.

    Example: snugdp bench queries --rows 100000
    """
    from snugdp_studies.bench.queries import run

    heads = (f"{rows:,} rows", "fastest, s", "median, s", "relative to numpy.sort")
    times = ((r.name, f"{r.min_s:.3f}", f"{r.median_s:.3f}", f"{r.relative:.2f}") for r in run(rows, repeats))
    Console().print(table(heads, times))


def gram(
    parts: Annotated[
        str, typer.Option(help="Which comparisons: memory, stream, growth, files, separated by commas.")
    ] = "memory,stream,growth,files",
    repeats: Repeats = 7,
) -> None:
    """Exact sums of squares and products beside plain floats, in memory and streamed, and how they grow with rows.

    Example: snugdp bench gram --parts memory
    """
    from snugdp_studies.bench.gram import run, threads

    console = Console()
    groups: dict[str, list[tuple[str, ...]]] = {}
    with in_plain_words():
        for row in run(parts.split(","), repeats):
            peak = "" if row.peak_mb is None else f"{row.peak_mb:.0f}"
            cells = (row.name, f"{row.min_s:.3f}", f"{row.median_s:.3f}", f"{row.relative:.2f}", peak)
            groups.setdefault(row.group, []).append(cells)
    say(console, threads())
    for group, rows in groups.items():
        console.print(table((group, "fastest, s", "median, s", "relative", "peak, MB"), rows))


def ledger(
    charges: Annotated[int, typer.Option(min=10, help="Charges of each kind.")] = 300,
    folder: Annotated[str | None, typer.Option(help="A folder on the disk to be measured.")] = None,
    url: Annotated[str | None, typer.Option(help="A PostgreSQL database, to be measured too.")] = None,
) -> None:
    """What a charge costs beside a bare fsync on the same disk.

    Example: snugdp bench ledger --charges 100
    """
    from snugdp_studies.bench.ledger import run

    heads = (f"{charges} times, in turn", "p50, ms", "p99, ms", "relative to a bare fsync")
    with in_plain_words():
        rows = [
            (r.name, f"{r.p50_ms:.2f}", f"{r.p99_ms:.2f}", "" if r.relative is None else f"{r.relative:.2f}")
            for r in run(charges, folder, url)
        ]
    Console().print(table(heads, rows))


def selection(
    *,
    runs: Annotated[float, typer.Option(min=1.5, help="Runs on average.")] = 30.0,
    delta: Delta = 1e-6,
    plot: Annotated[Path | None, typer.Option(help="Draw the picture into this file instead, such as x.svg.")] = None,
) -> None:
    """The Gaussian mu that each accounting leaves to one of many runs, beside dp-accounting's.

    Example: snugdp bench selection --runs 30
    """
    from snugdp_studies.bench import selection as contest

    console = Console()
    with in_plain_words():
        if plot is not None:
            writable(plot)
            contest.plot(plot, delta=delta)
            return
        heads = (f"mu of a run, {runs:g} on average, delta {delta:g}", *(f"{e:g}" for e in contest.EPSILONS))
        rows = contest.run(runs, delta).items()
        down = ((name, *(f"{int(mu * 10_000) / 10_000:.4f}" for mu in found)) for name, found in rows)
        console.print(table(heads, down))
        say(console, f"one calibration by C2: {contest.calibration_seconds(runs):.2f} s")


for command in (classification, gram, imports, ledger, noise, pate, pca, queries, regression, selection):
    app.command()(command)
