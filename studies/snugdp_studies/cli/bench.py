"""``snugdp bench``: side-by-side runs against peers."""

from __future__ import annotations

from typing import Annotated

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.lazy import Verb, lazy

VERBS = {
    "classification": Verb(
        "snugdp_studies.cli.contest:classification",
        "Log-loss and accuracy of every method on held-out rows of your tables; or, with --speed, fit times.",
    ),
    "gram": Verb(
        "snugdp_studies.cli.bench:gram",
        "Exact sums of squares and products beside plain floats, in memory and streamed, and how they grow with rows.",
    ),
    "imports": Verb("snugdp_studies.cli.bench:imports", "What an import costs beyond numpy, scipy and scikit-learn."),
    "ledger": Verb("snugdp_studies.cli.bench:ledger", "What a charge costs beside a bare fsync on the same disk."),
    "noise": Verb(
        "snugdp_studies.cli.bench:noise",
        "5,050 exact draws of each law, beside OpenDP's vectors and numpy's unprotected normals.",
    ),
    "pate": Verb(
        "snugdp_studies.cli.pate:pate",
        "Students of MNIST against total epsilon: distance test, Confident-GNMax and the Gaussian mechanism; times.",
    ),
    "pca": Verb(
        "snugdp_studies.cli.pca:pca",
        "Lost variance beside Analyze Gauss on digits and made-up spectra, and fit times beside scikit-learn's.",
    ),
    "queries": Verb(
        "snugdp_studies.cli.bench:queries", "Every query on millions of rows, beside numpy's sort of the same column."
    ),
    "regression": Verb(
        "snugdp_studies.cli.contest:regression",
        "Errors of every method on held-out rows of your tables; or, with --speed, fit times beside scikit-learn's.",
    ),
    "selection": Verb(
        "snugdp_studies.cli.selection:selection",
        "The Gaussian mu that each accounting leaves to one of many runs, beside dp-accounting's.",
    ),
}

app = typer.Typer(
    cls=lazy(VERBS),
    no_args_is_help=True,
    add_completion=False,
    help="Side-by-side runs against peers, in one run, on one thread.",
)


@app.callback()
def main() -> None:
    """Side-by-side runs against peers, in one run, on one thread.

    Example: snugdp bench noise --repeats 3
    """


def noise(repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender.")] = 15) -> None:
    """5,050 exact draws of each law, beside OpenDP's vectors and numpy's unprotected normals.

    Example: snugdp bench noise --repeats 3
    """
    from rich.console import Console
    from rich.table import Table

    import snugdp_studies.bench.noise as contest

    table = Table("5,050 draws", "fastest, ms", "median, ms", "relative to the exact Gaussian")
    with in_plain_words():
        for row in contest.run(repeats):
            table.add_row(row.name, f"{1000 * row.min_s:.2f}", f"{1000 * row.median_s:.2f}", f"{row.relative:.2f}")
    Console().print(table)


def imports(repeats: Annotated[int, typer.Option(min=1, help="Imports of each name.")] = 5) -> None:
    """What an import costs beyond numpy, scipy and scikit-learn.

    Example: snugdp bench imports --repeats 3
    """
    from rich.console import Console
    from rich.table import Table

    import snugdp_studies.bench.imports as contest

    console = Console()
    table = Table("from snugdp import", "fastest, CPU-s", "median, CPU-s", "own modules", "all modules")
    for row in contest.run(repeats=repeats):
        table.add_row(row.name, f"{row.min_s:.3f}", f"{row.median_s:.3f}", str(row.own), str(row.modules))
    console.print(table)
    console.print(contest.GOAL, highlight=False)


def queries(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the made-up column.")] = 5_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender.")] = 5,
) -> None:
    """Every query on millions of rows, beside numpy's sort of the same column.

    Example: snugdp bench queries --rows 100000
    """
    from rich.console import Console
    from rich.table import Table

    import snugdp_studies.bench.queries as contest

    table = Table(f"{rows:,} rows", "fastest, s", "median, s", "relative to numpy.sort")
    for row in contest.run(rows, repeats):
        table.add_row(row.name, f"{row.min_s:.3f}", f"{row.median_s:.3f}", f"{row.relative:.2f}")
    Console().print(table)


def gram(
    parts: Annotated[
        str, typer.Option(help="Which comparisons: memory, stream, growth, files, separated by commas.")
    ] = "memory,stream,growth,files",
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender.")] = 7,
) -> None:
    """Exact sums of squares and products beside plain floats, in memory and streamed, and how they grow with rows.

    Example: snugdp bench gram --parts memory
    """
    from rich.console import Console
    from rich.table import Table

    import snugdp_studies.bench.files as formats
    import snugdp_studies.bench.gram as contest

    tables: dict[str, Table] = {}
    asked = parts.split(",")
    rows = contest.run(tuple(part for part in asked if part != "files"), repeats)
    for row in [*rows, *(formats.run(min(repeats, 3)) if "files" in asked else [])]:
        head = (f"{row.group}", "fastest, s", "median, s", "relative", "peak, MB")
        table = tables.setdefault(row.group, Table(*head))
        peak = "" if row.peak_mb is None else f"{row.peak_mb:.0f}"
        table.add_row(row.name, f"{row.min_s:.3f}", f"{row.median_s:.3f}", f"{row.relative:.2f}", peak)
    console = Console()
    console.print(contest.threads(), highlight=False)
    for table in tables.values():
        console.print(table)


def ledger(
    charges: Annotated[int, typer.Option(min=10, help="Charges of each kind.")] = 300,
    folder: Annotated[str | None, typer.Option(help="A folder on the disk to be measured.")] = None,
    url: Annotated[str | None, typer.Option(help="A PostgreSQL database, to be measured too.")] = None,
) -> None:
    """What a charge costs beside a bare fsync on the same disk.

    Example: snugdp bench ledger --charges 100
    """
    from rich.console import Console
    from rich.table import Table

    import snugdp_studies.bench.ledger as contest

    table = Table(f"{charges} times, in turn", "p50, ms", "p99, ms", "relative to a bare fsync")
    with in_plain_words():
        for row in contest.run(charges, folder, url):
            relative = "" if row.relative is None else f"{row.relative:.2f}"
            table.add_row(row.name, f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}", relative)
    Console().print(table)
