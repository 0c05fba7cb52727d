"""``snugdp bench pca``: lost variance and fit times of private principal components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from snugdp.cli.errors import in_plain_words

if TYPE_CHECKING:
    from snugdp_studies.bench.pca.contest import Cell


def pca(
    *,
    draws: Annotated[int, typer.Option(min=1, help="Draws for every number.")] = 60,
    epsilons: Annotated[str, typer.Option(help="Budgets, separated by commas.")] = "0.5,1,2,4",
    delta: Annotated[float, typer.Option(help="The delta of every budget.")] = 1e-6,
    tables: Annotated[
        str | None, typer.Option(help="Names of tables, separated by semicolons; all if not given.")
    ] = None,
    speed: Annotated[bool, typer.Option(help="Measure fit times only.")] = False,
    rows: Annotated[int, typer.Option(min=0, help="Rows of the timed table; 0 leaves the times out.")] = 1_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each contender.")] = 3,
) -> None:
    """Lost variance beside Analyze Gauss on digits and made-up spectra, and fit times beside scikit-learn's.

    Example: snugdp bench pca --draws 20 --epsilons 1
    """
    from snugdp_studies.bench.contest.speed import table as timings
    from snugdp_studies.bench.pca import contest, data
    from snugdp_studies.bench.pca import speed as pca_speed

    console = Console()
    with in_plain_words():
        if not speed:
            budgets = tuple(float(value) for value in epsilons.split(","))
            names = list(data.CASES) if tables is None else [name.strip() for name in tables.split(";")]
            if unknown := [name for name in names if name not in data.CASES]:
                raise ValueError(f"no table {', '.join(unknown)}; there are {'; '.join(data.CASES)}")
            _notes(console, draws, delta)
            cells = list(contest.run(draws, budgets, tables=names, delta=delta))
            console.print(_losses("number of components given", cells))
            _summary(console, cells)
            picked = list(contest.chosen(draws, budgets, tables=names, delta=delta))
            console.print(
                _losses("number of components chosen in private; draws that chose another than most left out", picked)
            )
        if rows:
            console.print(timings(pca_speed.run(rows, repeats=repeats), pca_speed.SKLEARN))
            console.print(pca_speed.GOAL, highlight=False)


def _notes(console: Console, draws: int, delta: float) -> None:
    console.print(
        "NOT PRIVATE: seeded noise. Rows of norm 1, about 0; the number of rows is public. Lost variance in units of "
        f"one row, mean of {draws} draws, delta {delta:g}. The share of draws that did not end in a matrix is in "
        "brackets.",
        highlight=False,
    )


def _losses(title: str, cells: Iterable[Cell]) -> Table:
    """A row for each table and budget: Analyze Gauss, then each method's ratio to it."""
    grouped: dict[tuple[str, int, float], list[Cell]] = {}
    for cell in cells:
        grouped.setdefault((cell.table, cell.k, cell.epsilon), []).append(cell)
    others = list(dict.fromkeys(cell.method for group in grouped.values() for cell in group if cell.method != "gauss"))
    table = Table("table", "k", "gap", "epsilon", "Analyze Gauss", "captured", *others, title=title)
    for (name, k, epsilon), group in grouped.items():
        ratios = {cell.method: f"{cell.ratio:.3f} ({cell.used:.0%})" for cell in group}
        first = group[0]
        base = first.lost / first.ratio
        captured = next((cell.captured for cell in group if cell.method == "crossing"), first.captured)
        table.add_row(
            name, str(k), f"{first.gap:.0f}", f"{epsilon:g}", f"{base:.4g}", f"{captured:.4%}",
            *(ratios.get(other, "") for other in others),
        )  # fmt: skip
    return table


def _summary(console: Console, cells: list[Cell]) -> None:
    from snugdp_studies.bench.pca.contest import GOALS, summaries

    table = Table("average ratio to Analyze Gauss", "where it falls back", "where it never does", "worst of all")
    for row in summaries(cells):
        ends = ("" if value is None else f"{value:.3f}" for value in (row.fallback, row.large))
        table.add_row(row.method, *ends, f"{row.worst:.3f}")
    console.print(table)
    console.print(GOALS, highlight=False)
