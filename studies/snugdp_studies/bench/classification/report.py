"""What the scores of the classification benchmark say: means, who is best, and our methods over all tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from snugdp_studies.bench.classification.contest import Plan, Score, Watch
from snugdp_studies.bench.classification.methods import CONTENDERS
from snugdp_studies.bench.regression.report import versions

ABOUT = (
    "Rehearsals, NOT PRIVATE: seeded noise, and tables scaled with numbers taken from themselves. log_loss and wrong: "
    "on held-out rows, one for each split; seconds: the median of a fit"
)
NOTES = (
    "NOT PRIVATE: seeded noise, and tables scaled with their own numbers. norm: columns z-scored, rows of norm 1. box: "
    "columns between -1 and 1 by their least and largest values, over the root of their number. With an intercept. "
    "60 % to fit on, 10 % public, 30 % to measure on.",
    "All methods get the bounds, the classes, epsilon and delta, and nothing else that depends on the table, but for "
    "descent, which gets the number of rows to one digit. Its rate is the best on the made-up tables, and the best of "
    "its three lengths is known only afterwards: together they are more than one honest peer.",
    "*: the best private log-loss. public: needs public rows of the same kind, so it is not ranked. reference: not "
    "private. ±: standard error. diffprivlib is held to pure epsilon.",
)


@dataclass(frozen=True)
class Cell:
    """One method on one table at one epsilon, over all splits."""

    dataset: str
    scaling: str
    epsilon: float
    method: str
    log_loss: tuple[float, ...]
    wrong: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean log-loss."""
        return float(np.mean(self.log_loss))

    @property
    def error(self) -> float:
        """The mean share of wrong classes."""
        return float(np.mean(self.wrong))

    @property
    def deviation(self) -> float:
        """The standard error of the mean log-loss; 0 for one split."""
        if len(self.log_loss) < 2:
            return 0.0
        return float(np.std(self.log_loss, ddof=1) / len(self.log_loss) ** 0.5)


@dataclass(frozen=True)
class Summary:
    """One method over all tables and epsilons, against the best peer of each cell.

    ``log_loss``, ``wrong``: the share of cells where it is as good as every peer, give or take 1 % of the log-loss, or
    half a percent of all rows. ``ratio``, ``worst``: geometric mean and largest of the ratio of log-losses.
    """

    method: str
    cells: int
    log_loss: float
    wrong: float
    ratio: float
    worst: float


@dataclass(frozen=True)
class Report:
    """All scores of a run, and what they say."""

    plan: Plan
    scores: Sequence[Score]

    def contests(self) -> list[list[Cell]]:
        """The cells of one table, one scaling and one epsilon, for all of them."""
        order = {name: place for place, name in enumerate(CONTENDERS)}
        groups: dict[tuple[str, str, float], dict[str, list[Score]]] = {}
        for score in self.scores:
            key = score.job.dataset, score.job.scaling, score.job.epsilon
            groups.setdefault(key, {}).setdefault(score.job.method, []).append(score)
        return [
            [_cell(*key, name, found) for name, found in sorted(group.items(), key=lambda each: order[each[0]])]
            for key, group in sorted(groups.items())
        ]

    def summaries(self) -> list[Summary]:
        """Every method of ours over all contests that have a peer."""
        found = []
        for name in (name for name, each in CONTENDERS.items() if each.kind == "ours"):
            pairs = []
            for group in self.contests():
                peers = [cell for cell in group if CONTENDERS[cell.method].kind == "peer"]
                pairs += [(cell, peers) for cell in group if cell.method == name and peers]
            if pairs:
                found.append(_summary(name, pairs))
        return found

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain values."""
        cells = [cell for group in self.contests() for cell in group]
        return {
            "about": ABOUT,
            "parameters": asdict(self.plan) | {"not importable": self.plan.missing},
            "versions": versions(),
            "cells": [asdict(c) | {"mean": c.mean, "standard error": c.deviation, "error": c.error} for c in cells],
            "summaries": [asdict(summary) for summary in self.summaries()],
        }


def _cell(dataset: str, scaling: str, epsilon: float, method: str, found: list[Score]) -> Cell:
    found = sorted(found, key=lambda score: score.job.number)
    losses, wrong = tuple(score.log_loss for score in found), tuple(score.wrong for score in found)
    return Cell(dataset, scaling, epsilon, method, losses, wrong, float(np.median([s.seconds for s in found])))


def _summary(name: str, pairs: Sequence[tuple[Cell, list[Cell]]]) -> Summary:
    ratios = np.array([mine.mean / min(peer.mean for peer in peers) for mine, peers in pairs])
    behind = np.array([mine.error - min(peer.error for peer in peers) for mine, peers in pairs])
    share = float(np.mean(ratios <= 1.01)), float(np.mean(behind <= 0.005))
    return Summary(name, len(pairs), *share, float(np.exp(np.mean(np.log(ratios)))), float(ratios.max()))


def watched(console: Console) -> Watch:
    """A bar on a terminal."""

    def watch(scores: Iterable[Score], total: int) -> Iterator[Score]:
        yield from track(scores, "Fitting", total, console=console, disable=not console.is_terminal, transient=True)

    return watch


def show(report: Report, console: Console) -> None:
    """Print a table for each of the report's tables and epsilons, and a summary."""
    for note in NOTES:
        console.print(note, highlight=False)
    for name in report.plan.missing:
        console.print(f"{name}: not importable here, left out", highlight=False)
    console.print(f"delta {report.plan.delta:g}, {report.plan.seeds} splits", highlight=False)
    for group in report.contests():
        console.print(contest(group))
    if report.summaries():
        console.print(summary(report))


def contest(group: Sequence[Cell]) -> Table:
    """The methods on one table at one epsilon."""
    ranked = [cell for cell in group if CONTENDERS[cell.method].ranked]
    winner = min(ranked, key=lambda cell: cell.mean, default=None)
    title = f"{group[0].dataset} ({group[0].scaling}), epsilon {group[0].epsilon:g}"
    table = Table(
        *(Column(head, no_wrap=True) for head in ["", "", "log-loss", "±", "accuracy", "s per fit"]), title=title
    )
    for cell in group:
        name, kind = cell.method + (" *" if cell is winner else ""), CONTENDERS[cell.method].kind
        numbers = [f"{cell.mean:.4f}", f"{cell.deviation:.1g}", f"{1 - cell.error:.4f}", f"{cell.seconds:.3f}"]
        table.add_row(name, kind, *numbers)
    return table


def summary(report: Report) -> Table:
    """Our methods over all tables and epsilons."""
    heads = ["all cells", "cells", "log-loss as good as all peers", "accuracy too", "log-loss over the best", "worst"]
    table = Table(*heads)
    for found in report.summaries():
        shares = (f"{found.log_loss:.0%}", f"{found.wrong:.0%}", f"{found.ratio:.3f}", f"{found.worst:.3f}")
        table.add_row(found.method, str(found.cells), *shares)
    return table
