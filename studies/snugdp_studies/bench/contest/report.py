"""What the scores of a contest say: means, who is best, and our methods over all tables."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from snugdp_studies.bench.contest.run import Plan, Score, Task, named

_PACKAGES = ("snugdp", "numpy", "scipy", "scikit-learn", "diffprivlib")


@dataclass(frozen=True)
class Cell:
    """One method on one table at one epsilon, over all splits. ``measured``: a list for each measure of the task."""

    dataset: str
    variant: Any
    epsilon: float
    method: str
    measured: tuple[tuple[float, ...], tuple[float, ...]]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean of the first measure."""
        return float(np.mean(self.measured[0]))

    @property
    def deviation(self) -> float:
        """The standard error of that mean; 0 for one split."""
        if len(self.measured[0]) < 2:
            return 0.0
        if not np.isfinite(self.mean):
            return np.inf
        return float(np.std(self.measured[0], ddof=1) / len(self.measured[0]) ** 0.5)

    @property
    def second(self) -> float:
        """The mean of the second measure."""
        return float(np.mean(self.measured[1]))


@dataclass(frozen=True)
class Summary:
    """One method over all tables and epsilons.

    ``near``: the share of cells where it is as good as all its rivals, give or take 1 %. ``ratio`` and ``worst``: the
    geometric mean and the largest of its mean over that of the best peer in the same cell. ``extra``: the task's own.
    """

    method: str
    cells: int
    near: float
    ratio: float | None
    worst: float | None
    extra: float | None


@dataclass(frozen=True)
class Report:
    """All scores of a run, and what they say."""

    plan: Plan
    scores: Sequence[Score]

    @property
    def task(self) -> Task:
        """What the contest is about."""
        return named(self.plan.task)

    def contests(self, part: Any = None) -> list[list[Cell]]:
        """The cells of one table, one variant and one epsilon, for all of them or those of one variant."""
        order = {name: index for index, name in enumerate(self.task.contenders)}
        groups: dict[tuple[str, Any, float], dict[str, list[Score]]] = {}
        for score in self.scores:
            key = score.job.dataset, score.job.variant, score.job.epsilon
            if part in (None, score.job.variant):
                groups.setdefault(key, {}).setdefault(score.job.method, []).append(score)
        return [
            [_cell(*key, name, scores) for name, scores in sorted(group.items(), key=lambda each: order[each[0]])]
            for key, group in sorted(groups.items())
        ]

    @property
    def cells(self) -> list[Cell]:
        """All cells, in order."""
        return [cell for group in self.contests() for cell in group]

    def summaries(self, part: Any = None) -> list[Summary]:
        """Every method of ours over all contests that have rivals."""
        ours = [name for name, each in self.task.contenders.items() if each.kind == "ours"]
        return [found for name in ours if (found := self._summary(name, part)) is not None]

    def pairs(self, method: str, part: Any = None) -> list[tuple[Cell, list[Cell]]]:
        """A method's cells, each with all others of its contest."""
        return [(cell, group) for group in self.contests(part) for cell in group if cell.method == method]

    def _summary(self, method: str, part: Any) -> Summary | None:
        pairs = [(mine, group) for mine, group in self.pairs(method, part) if self.task.rivals(group)]
        if not pairs:
            return None
        near = np.mean([mine.mean <= 1.01 * _least(self.task.rivals(group)) for mine, group in pairs])
        peers = [(mine, [cell for cell in group if self.kind(cell) == "peer"]) for mine, group in pairs]
        ratios = [mine.mean / _least(found) for mine, found in peers if found]
        extra = self.task.extra(self, method)
        return Summary(method, len(pairs), float(near), geometric(ratios), max(ratios, default=None), extra)

    def kind(self, cell: Cell) -> str:
        """Ours, peer, public or reference."""
        return self.task.contenders[cell.method].kind

    def best(self, group: Sequence[Cell]) -> Cell | None:
        """The ranked method with the smallest mean."""
        ranked = (cell for cell in group if self.task.contenders[cell.method].ranked)
        return min(ranked, key=lambda cell: cell.mean, default=None)

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain values."""
        return {
            "about": self.task.about,
            "parameters": asdict(self.plan) | {"not importable": self.plan.missing},
            "versions": versions(),
            "cells": [self._plain(cell) for cell in self.cells],
            "summaries": [asdict(summary) for summary in self.summaries()],
        }

    def _plain(self, cell: Cell) -> dict[str, Any]:
        found = asdict(cell) | {"mean": cell.mean, "standard error": cell.deviation, "second mean": cell.second}
        found |= dict(zip(self.task.measures, found.pop("measured"), strict=True))
        return found | {self.task.variant: found.pop("variant")}


def _cell(dataset: str, variant: Any, epsilon: float, method: str, scores: list[Score]) -> Cell:
    ordered = sorted(scores, key=lambda score: score.job.number)
    first, second = zip(*(score.measured for score in ordered), strict=True)
    return Cell(dataset, variant, epsilon, method, (first, second), float(np.median([s.seconds for s in scores])))


def _least(cells: Sequence[Cell]) -> float:
    return min(cell.mean for cell in cells)


def geometric(ratios: Sequence[float]) -> float | None:
    """The geometric mean, if there is anything."""
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str | None]:
    """Of what the numbers depend on."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def show(report: Report, console: Console) -> None:
    """Print a table for each of the report's tables and epsilons, and a summary."""
    for note in report.task.notes:
        console.print(note, highlight=False)
    for name in report.plan.missing:
        console.print(f"{name}: not importable here, left out", highlight=False)
    console.print(f"delta {report.plan.delta:g}, {report.plan.seeds} splits", highlight=False)
    parts = report.task.parts(report.plan.variants)
    for part in parts:
        for group in report.contests(part):
            console.print(contest(report, group))
    for part in parts:
        if found := report.summaries(part):
            console.print(summary(report, found, part))


def contest(report: Report, group: Sequence[Cell]) -> Table:
    """The methods on one table at one epsilon."""
    winner = report.best(group)
    rows = [report.task.columns(cell, winner, group) for cell in group]
    table = Table(*(Column(head, no_wrap=True) for head in ("", "", *rows[0])), title=report.task.title(group[0]))
    for cell, row in zip(group, rows, strict=True):
        table.add_row(cell.method + (" *" if cell is winner else ""), report.kind(cell), *row.values())
    return table


def summary(report: Report, found: Sequence[Summary], part: Any) -> Table:
    """Our methods over all tables and epsilons."""
    rows = [report.task.summary(each, report.plan) for each in found]
    table = Table(Column(report.task.part_title(part), no_wrap=True), "cells", *rows[0])
    for each, row in zip(found, rows, strict=True):
        table.add_row(each.method, str(each.cells), *row.values())
    return table
