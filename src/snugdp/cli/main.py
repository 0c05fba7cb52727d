"""``snugdp``: the demonstration and the benchmarks."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import snugdp
from snugdp.cli import ledger as ledger_commands
from snugdp.cli import paper as paper_commands
from snugdp.cli import schema as schema_commands
from snugdp.cli.bounds import bounds
from snugdp.cli.classification import classification
from snugdp.cli.demo import show
from snugdp.cli.errors import in_plain_words
from snugdp.cli.pate import pate
from snugdp.cli.pca import pca
from snugdp.cli.regression import regression
from snugdp.cli.selection import selection

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # locals may be private
    help="Propose, test, release: differential privacy.",
)
bench = typer.Typer(no_args_is_help=True, help="Side-by-side runs against peers, in one run, on one thread.")
app.add_typer(bench, name="bench")
app.add_typer(ledger_commands.app, name="ledger")
app.add_typer(paper_commands.app, name="paper")
app.add_typer(schema_commands.app, name="schema")
app.command()(bounds)
bench.command()(classification)
bench.command()(pate)
bench.command()(pca)
bench.command()(regression)
bench.command()(selection)


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Propose, test, release: differential privacy."""
    if version:
        typer.echo(snugdp.__version__)
        raise typer.Exit


@app.command()
def demo() -> None:
    """Five questions about a made-up table, answered within one budget."""
    show(Console())


@bench.command()
def noise(repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender.")] = 15) -> None:
    """5,050 exact draws of each law, beside OpenDP's vectors and numpy's unprotected normals."""
    import snugdp.bench.noise as contest

    table = Table("5,050 draws", "fastest, ms", "median, ms", "relative to the exact Gaussian")
    try:
        rows = contest.run(repeats)
    except ImportError as missing:
        typer.echo(str(missing), err=True)
        raise typer.Exit(1) from None
    for row in rows:
        table.add_row(row.name, f"{row.min_ms:.2f}", f"{row.median_ms:.2f}", f"{row.relative:.2f}")
    Console().print(table)


@bench.command()
def queries(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the made-up column.")] = 5_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender.")] = 5,
) -> None:
    """Every query on millions of rows, beside numpy's sort of the same column."""
    import snugdp.bench.queries as contest

    table = Table(f"{rows:,} rows", "fastest, s", "median, s", "relative to numpy.sort")
    for row in contest.run(rows, repeats):
        table.add_row(row.name, f"{row.min_s:.3f}", f"{row.median_s:.3f}", f"{row.relative:.2f}")
    Console().print(table)


@bench.command()
def gram(
    parts: Annotated[
        str, typer.Option(help="Which comparisons: memory, stream, growth, files, separated by commas.")
    ] = "memory,stream,growth,files",
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender.")] = 7,
) -> None:
    """Exact sums of squares and products beside plain floats, in memory and streamed, and how they grow with rows."""
    import snugdp.bench.files as formats
    import snugdp.bench.gram as contest

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


@bench.command("ledger")
def bench_ledger(
    charges: Annotated[int, typer.Option(min=10, help="Charges of each kind.")] = 300,
    folder: Annotated[str | None, typer.Option(help="A folder on the disk to be measured.")] = None,
    url: Annotated[str | None, typer.Option(help="A PostgreSQL database, to be measured too.")] = None,
) -> None:
    """What a charge costs beside a bare fsync on the same disk."""
    import snugdp.bench.ledger as contest

    table = Table(f"{charges} times, in turn", "p50, ms", "p99, ms", "relative to a bare fsync")
    with in_plain_words():
        for row in contest.run(charges, folder, url):
            relative = "" if row.relative is None else f"{row.relative:.2f}"
            table.add_row(row.name, f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}", relative)
    Console().print(table)
