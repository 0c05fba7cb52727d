"""A contest on tables of one's own: every method gets the same rows, bounds and budget; none is tuned to a table.

The fits are rehearsals, NOT PRIVATE: their noise is seeded, and the tables are scaled with numbers taken from
themselves.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import platform
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from time import perf_counter
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.speed import one_thread
from snugdp_studies.bench.contest.tables import Scaling, Tables, TableSplit

_PACKAGES = ("snugdp", "numpy", "scipy", "scikit-learn", "diffprivlib")
Kind: TypeAlias = Literal["ours", "peer", "public", "reference"]


@dataclass(frozen=True)
class ContestSetting:
    """What a contender is told besides the rows: the budget, where its noise starts, and the variant of the contest."""

    epsilon: float
    delta: float
    noise: int
    variant: Any = None


@dataclass(frozen=True)
class Contender:
    """One method. ``kind``: ours and peers are ranked; "public" ones need public rows and references are not private
    methods, so both are shown outside the ranking. ``binary``: it has no answer for more than two classes.
    """

    name: str
    kind: Kind
    fit: Callable[[TableSplit, ContestSetting], Any]
    binary: bool = False

    @property
    def ranked(self) -> bool:
        """Whether it can be the best."""
        return self.kind in ("ours", "peer")


class ContestTask(ABC):
    """One contest. A variant is one more way in which every method is run: a scaling, or a loose bound.

    ``measures``: the names of what a fit is measured by; the mean of the first decides who is best. ``noise_of``: on
    what of a job its noise depends, everything but the data.
    """

    name: ClassVar[str]
    tables: ClassVar[Tables]
    contenders: ClassVar[dict[str, Contender]]
    measures: ClassVar[tuple[str, str]]
    variant: ClassVar[str]
    noise_of: ClassVar[tuple[str, ...]]
    about: ClassVar[str]
    notes: ClassVar[tuple[str, ...]]

    def scaling(self, variant: Any) -> Scaling:
        """How the rows of a variant are scaled."""
        return "norm"

    @abstractmethod
    def check(self, variants: Sequence[Any]) -> None:
        """Raise a ValueError if there is no such variant."""

    @abstractmethod
    def measure(self, answer: Any, split: TableSplit) -> tuple[float, float]:
        """What is measured of a contender's answer on the held-out rows."""

    @abstractmethod
    def title(self, cell: ContestCell) -> str:
        """The heading of the table in which a cell stands."""

    @abstractmethod
    def columns(self, cell: ContestCell, winner: ContestCell | None, group: Sequence[ContestCell]) -> dict[str, str]:
        """One row of the table of a group, by its headings."""

    def rivals(self, group: Sequence[ContestCell]) -> list[ContestCell]:
        """Those to which a method of ours is compared for the share of cells in which it is as good as all."""
        return [cell for cell in group if self.contenders[cell.method].kind == "peer"]

    @abstractmethod
    def extra(self, report: ContestReport, method: str) -> float | None:
        """One more number about a method of ours over all tables."""

    def parts(self, variants: Sequence[Any]) -> Sequence[Any]:
        """The variants that are summed up apart; None for all together."""
        return (None,)

    def part_title(self, part: Any) -> str:
        """What a summary is about."""
        return "all cells"

    @abstractmethod
    def summary(self, found: ContestSummary, plan: ContestPlan) -> dict[str, str]:
        """A method of ours over all tables, by the headings of the summary."""

    def chosen(self, asked: list[str] | None) -> list[str]:
        """The contenders asked for, in our order; all of them without a wish."""
        if unknown := [name for name in asked or [] if name not in self.contenders]:
            raise ValueError(f"there is no method {', '.join(unknown)}; there are {', '.join(self.contenders)}")
        return [name for name in self.contenders if not asked or name in asked]


def named(name: str) -> ContestTask:
    """The task of this name, in any process."""
    task: ContestTask = importlib.import_module(f"snugdp_studies.bench.{name}").TASK
    return task


def noise_start(*parts: object) -> int:
    """A number that depends on the names alone: the same on every machine and in every process."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:8], "big")


def importable(name: str) -> bool:
    """Whether a contender can run here: diffprivlib is no dependency, and lags behind scikit-learn."""
    if name != "diffprivlib":
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("diffprivlib.models")
    except ImportError:
        return False
    return True


@dataclass(frozen=True)
class ContestPlan:
    """What is to be run."""

    task: str
    data: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    variants: tuple[Any, ...]
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 4.0)
    delta: float = 1e-6
    seeds: int = 10

    @classmethod
    def of(
        cls, task: ContestTask, data: str | None, datasets: list[str] | None, methods: list[str] | None, **rest: Any
    ) -> ContestPlan:
        """The plan, if there are such tables and such methods."""
        names = tuple(task.tables.chosen(data, datasets))
        plan = cls(task.name, str(data), names, tuple(task.chosen(methods)), **rest)
        task.check(plan.variants)
        if not plan.epsilons or min(plan.epsilons) <= 0 or not 0 < plan.delta < 1 or plan.seeds < 1:
            raise ValueError("epsilons must be above 0, delta between 0 and 1, seeds at least 1")
        for name in plan.datasets:
            tables.load(task.tables, plan.data, name)  # what cannot be read is found before hours of work
        return plan

    @property
    def missing(self) -> tuple[str, ...]:
        """Methods that cannot run here."""
        return tuple(name for name in self.methods if not importable(name))

    def jobs(self) -> list[ContestJob]:
        """Every fit, in turn over the methods, so that a busy moment hits all of them alike."""
        task, missing = named(self.task), self.missing
        wanted = [task.contenders[name] for name in self.methods if name not in missing]
        return [
            ContestJob(self.task, self.data, dataset, variant, each.name, epsilon, self.delta, number)
            for dataset, variant, number, epsilon, each in product(
                self.datasets, self.variants, range(self.seeds), self.epsilons, wanted
            )
            if not each.binary or tables.split(task.tables, self.data, dataset, 0).classes == 2
        ]


@dataclass(frozen=True)
class ContestJob:
    """One fit."""

    task: str
    data: str
    dataset: str
    variant: Any
    method: str
    epsilon: float
    delta: float
    number: int


@dataclass(frozen=True)
class ContestScore:
    """What came of it: what the task measures, and the seconds of the fit."""

    job: ContestJob
    measured: tuple[float, float]
    seconds: float


Watch: TypeAlias = Callable[[Iterable[ContestScore], int], Iterable[ContestScore]]


def one(job: ContestJob) -> ContestScore:
    """Run one fit on one thread."""
    task = named(job.task)
    split = tables.split(task.tables, job.data, job.dataset, job.number, task.scaling(job.variant))
    setting = ContestSetting(
        job.epsilon, job.delta, noise_start(*(getattr(job, name) for name in task.noise_of)), job.variant
    )
    with one_thread():
        before = perf_counter()
        answer = task.contenders[job.method].fit(split, setting)
        seconds = perf_counter() - before
    return ContestScore(job, task.measure(answer, split), seconds)


def run(plan: ContestPlan, jobs: int = 1, watch: Watch | None = None) -> list[ContestScore]:
    """All fits of the plan, in ``jobs`` processes. ``watch`` may count the scores as they come."""
    work = plan.jobs()
    scores = _scores(work, jobs)
    return list(watch(scores, len(work)) if watch else scores)


def _scores(work: Sequence[ContestJob], jobs: int) -> Iterator[ContestScore]:
    if jobs == 1:
        yield from map(one, work)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(one, job) for job in work]):
            yield done.result()


# ---- what the scores say: means, who is best, and our methods over all tables


@dataclass(frozen=True)
class ContestCell:
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
class ContestSummary:
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
class ContestReport:
    """All scores of a run, and what they say."""

    plan: ContestPlan
    scores: Sequence[ContestScore]

    @property
    def task(self) -> ContestTask:
        """What the contest is about."""
        return named(self.plan.task)

    def contests(self, part: Any = None) -> list[list[ContestCell]]:
        """The cells of one table, one variant and one epsilon, for all of them or those of one variant."""
        order = {name: index for index, name in enumerate(self.task.contenders)}
        groups: dict[tuple[str, Any, float], dict[str, list[ContestScore]]] = {}
        for score in self.scores:
            key = score.job.dataset, score.job.variant, score.job.epsilon
            if part in (None, score.job.variant):
                groups.setdefault(key, {}).setdefault(score.job.method, []).append(score)
        return [
            [_cell(*key, name, scores) for name, scores in sorted(group.items(), key=lambda each: order[each[0]])]
            for key, group in sorted(groups.items())
        ]

    @property
    def cells(self) -> list[ContestCell]:
        """All cells, in order."""
        return [cell for group in self.contests() for cell in group]

    def summaries(self, part: Any = None) -> list[ContestSummary]:
        """Every method of ours over all contests that have rivals."""
        ours = [name for name, each in self.task.contenders.items() if each.kind == "ours"]
        return [found for name in ours if (found := self._summary(name, part)) is not None]

    def pairs(self, method: str, part: Any = None) -> list[tuple[ContestCell, list[ContestCell]]]:
        """A method's cells, each with all others of its contest."""
        return [(cell, group) for group in self.contests(part) for cell in group if cell.method == method]

    def _summary(self, method: str, part: Any) -> ContestSummary | None:
        pairs = [(mine, group) for mine, group in self.pairs(method, part) if self.task.rivals(group)]
        if not pairs:
            return None
        near = np.mean([mine.mean <= 1.01 * _least(self.task.rivals(group)) for mine, group in pairs])
        peers = [(mine, [cell for cell in group if self.kind(cell) == "peer"]) for mine, group in pairs]
        ratios = [mine.mean / _least(found) for mine, found in peers if found]
        extra = self.task.extra(self, method)
        return ContestSummary(method, len(pairs), float(near), geometric(ratios), max(ratios, default=None), extra)

    def kind(self, cell: ContestCell) -> str:
        """Ours, peer, public or reference."""
        return self.task.contenders[cell.method].kind

    def best(self, group: Sequence[ContestCell]) -> ContestCell | None:
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

    def _plain(self, cell: ContestCell) -> dict[str, Any]:
        found = asdict(cell) | {"mean": cell.mean, "standard error": cell.deviation, "second mean": cell.second}
        found |= dict(zip(self.task.measures, found.pop("measured"), strict=True))
        return found | {self.task.variant: found.pop("variant")}


def _cell(dataset: str, variant: Any, epsilon: float, method: str, scores: list[ContestScore]) -> ContestCell:
    ordered = sorted(scores, key=lambda score: score.job.number)
    first, second = zip(*(score.measured for score in ordered), strict=True)
    return ContestCell(
        dataset, variant, epsilon, method, (first, second), float(np.median([s.seconds for s in scores]))
    )


def _least(cells: Sequence[ContestCell]) -> float:
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


def show(report: ContestReport, console: Console) -> None:
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


def contest(report: ContestReport, group: Sequence[ContestCell]) -> Table:
    """The methods on one table at one epsilon."""
    winner = report.best(group)
    rows = [report.task.columns(cell, winner, group) for cell in group]
    table = Table(*(Column(head, no_wrap=True) for head in ("", "", *rows[0])), title=report.task.title(group[0]))
    for cell, row in zip(group, rows, strict=True):
        table.add_row(cell.method + (" *" if cell is winner else ""), report.kind(cell), *row.values())
    return table


def summary(report: ContestReport, found: Sequence[ContestSummary], part: Any) -> Table:
    """Our methods over all tables and epsilons."""
    rows = [report.task.summary(each, report.plan) for each in found]
    table = Table(Column(report.task.part_title(part), no_wrap=True), "cells", *rows[0])
    for each, row in zip(found, rows, strict=True):
        table.add_row(each.method, str(each.cells), *row.values())
    return table
