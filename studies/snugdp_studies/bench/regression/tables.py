"""The regression benchmark as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from snugdp_studies.bench.regression.contest import Watch
from snugdp_studies.bench.regression.methods import CONTENDERS
from snugdp_studies.bench.regression.plan import Plan, Score
from snugdp_studies.bench.regression.report import Cell, Report, best
from snugdp_studies.bench.regression.speed import GOALS, HUBER, RIDGE, Row

NOTES = (
    "NOT PRIVATE: seeded noise, and tables scaled with their own moments. Columns are z-scored, rows have norm 1, the "
    "target is centred by its mean and divided by its largest size; no intercept. 60 % to fit on, 10 % public, 30 % to "
    "measure the mean squared error on.",
    "All methods get the bounds, epsilon and delta, and nothing else that depends on the table, but for two: descent "
    "and ops_balanced get the number of rows to one digit, as a public guess. A refused fit predicts 0.",
    "*: the best private method. public: needs public rows of the same kind, so it is not ranked. reference: not "
    "private. ±: standard error. diffprivlib is held to pure epsilon.",
)


def watched(console: Console) -> Watch:
    """A bar on a terminal."""

    def watch(scores: Iterable[Score], total: int) -> Iterator[Score]:
        yield from track(scores, "Fitting", total, console=console, disable=not console.is_terminal, transient=True)

    return watch


def show(report: Report, console: Console) -> None:
    """Print a table for each of the report's tables and epsilons, and a summary."""
    notes(report.plan, console)
    factors = (1.0,) if report.plan.loose is None else (1.0, report.plan.loose)
    for factor in factors:
        for group in report.contests(factor):
            console.print(contest(group))
    for factor in factors if report.summaries() else ():
        console.print(summary(report, factor))


def notes(plan: Plan, console: Console) -> None:
    """Print what the numbers are."""
    for note in NOTES:
        console.print(note, highlight=False)
    for name in plan.missing:
        console.print(f"{name}: not importable here, left out", highlight=False)
    console.print(f"delta {plan.delta:g}, {plan.seeds} splits", highlight=False)


def contest(group: Sequence[Cell]) -> Table:
    """The methods on one table at one epsilon."""
    cell, winner = group[0], best(group)
    title = f"{cell.dataset}, epsilon {cell.epsilon:g}"
    if cell.factor != 1:
        title += f", bound on targets {cell.factor:g} times too large"
    refusals = ["refused"] if any(cell.refused for cell in group) else []
    table = Table(*map(_whole, ["", "", "error", "±", "over best", "s per fit", *refusals]), title=title)
    for cell in group:
        name, kind = cell.method + (" *" if cell is winner else ""), CONTENDERS[cell.method].kind
        ratio = _ratio(cell.mean / winner.mean if winner else None)
        row = [name, kind, f"{cell.mean:.4g}", f"{cell.deviation:.1g}", ratio, f"{cell.seconds:.3f}"]
        table.add_row(*row, *([str(cell.refused)] if refusals else []))
    return table


def summary(report: Report, factor: float) -> Table:
    """Our methods over all tables and epsilons."""
    title = "all cells" if factor == 1 else f"bound {factor:g} times"
    head: list[str | Column] = [_whole(title), "cells", "best or within 1 %", "error over the best peer", "worst"]
    head += [f"bound {report.plan.loose:g} times too large costs"] if report.plan.loose else []
    table = Table(*head)
    for found in report.summaries(factor):
        row = [found.method, str(found.cells), f"{found.near:.0%}", _ratio(found.ratio), _ratio(found.worst)]
        table.add_row(*row, *([_ratio(found.loose)] if report.plan.loose else []))
    return table


def speed(rows: Sequence[Row], console: Console) -> None:
    """Print fit times and ratios."""
    console.print(GOALS, highlight=False)
    medians = {row.name: row.median_s for row in rows}
    main = Table(rows[0].group, "first, s", "fastest, s", "median, s", "over Ridge", "over Huber")
    grids = Table("proposals", "first, s", "fastest, s", "median, s", "over one proposal")
    for row in rows:
        times = (f"{row.first_s:.3f}", f"{row.min_s:.3f}", f"{row.median_s:.3f}")
        if row.group == rows[0].group:
            over = (f"{row.median_s / medians[base]:.2f}" for base in (RIDGE, HUBER))
            main.add_row(row.name, *times, *over)
        else:
            grids.add_row(f"{row.group.removeprefix('proposals of ')}, {row.name}", *times, f"{row.relative:.2f}")
    console.print(main)
    if grids.row_count:
        console.print(grids)


def _whole(title: str) -> Column:
    """A column whose cells are not cut."""
    return Column(title, no_wrap=True)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 1000 else f"{value:.1e}"
