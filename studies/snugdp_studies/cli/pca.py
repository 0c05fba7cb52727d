"""``snugdp bench pca``: lost variance and fit times of private principal components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from snugdp.cli.errors import in_plain_words
from snugdp_studies.cli.shared import Delta, Epsilons, Repeats, names, numbers, say, table

if TYPE_CHECKING:
    from snugdp_studies.bench.pca import Cell


def pca(
    *,
    draws: Annotated[int, typer.Option(min=1, help="Draws for every number.")] = 60,
    epsilons: Epsilons = "0.5,1,2,4",
    delta: Delta = 1e-6,
    tables: Annotated[
        str | None, typer.Option(help="Names of tables, separated by semicolons; all if not given.")
    ] = None,
    speed: Annotated[bool, typer.Option(help="Measure fit times only.")] = False,
    rows: Annotated[int, typer.Option(min=0, help="Rows of the timed table; 0 leaves the times out.")] = 1_000_000,
    repeats: Repeats = 3,
) -> None:
    """Lost variance beside Analyze Gauss on digits and made-up spectra, and fit times beside scikit-learn's.

    Example: snugdp bench pca --draws 20 --epsilons 1
    """
    from snugdp_studies.bench import pca as contest
    from snugdp_studies.bench.contest.speed import table as timings

    console = Console()
    with in_plain_words():
        if not speed:
            chosen = list(contest.CASES) if tables is None else names(tables, ";")
            if unknown := [name for name in chosen if name not in contest.CASES]:
                raise ValueError(f"no table {', '.join(unknown)}; there are {'; '.join(contest.CASES)}")
            say(
                console,
                "NOT PRIVATE: seeded noise. Rows of norm 1, about 0; the number of rows is public. Lost variance in "
                f"units of one row, mean of {draws} draws, delta {delta:g}. The share of draws that did not end in a "
                "matrix is in brackets.",
            )
            cells = list(contest.run(draws, numbers(epsilons), tables=chosen, delta=delta))
            console.print(_losses("number of components given", cells))
            _summary(console, cells)
            picked = contest.chosen(draws, numbers(epsilons), tables=chosen, delta=delta)
            title = "number of components chosen in private; draws that chose another than most left out"
            console.print(_losses(title, picked))
        if rows:
            console.print(timings(contest.fit_times(rows, repeats=repeats), contest.SKLEARN))
            say(console, contest.GOAL)


def _losses(title: str, cells: Iterable[Cell]) -> Table:
    """A row for each table and budget: Analyze Gauss, then each method's ratio to it."""
    grouped: dict[tuple[str, int, float], list[Cell]] = {}
    for cell in cells:
        grouped.setdefault((cell.table, cell.k, cell.epsilon), []).append(cell)
    others = list(dict.fromkeys(cell.method for group in grouped.values() for cell in group if cell.method != "gauss"))
    drawn = Table("table", "k", "gap", "epsilon", "Analyze Gauss", "captured", *others, title=title)
    for (name, k, epsilon), group in grouped.items():
        ratios = {cell.method: f"{cell.ratio:.3f} ({cell.used:.0%})" for cell in group}
        first = group[0]
        base = first.lost / first.ratio
        captured = next((cell.captured for cell in group if cell.method == "crossing"), first.captured)
        drawn.add_row(
            name, str(k), f"{first.gap:.0f}", f"{epsilon:g}", f"{base:.4g}", f"{captured:.4%}",
            *(ratios.get(other, "") for other in others),
        )  # fmt: skip
    return drawn


def _summary(console: Console, cells: list[Cell]) -> None:
    from snugdp_studies.bench.pca import GOALS, summaries

    heads = ("average ratio to Analyze Gauss", "where it falls back", "where it never does", "worst of all")
    found = [(row.method, row.fallback, row.large, row.worst) for row in summaries(cells)]
    rows = ((method, *("" if ratio is None else f"{ratio:.3f}" for ratio in ratios)) for method, *ratios in found)
    console.print(table(heads, rows))
    say(console, GOALS)
