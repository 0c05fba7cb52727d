"""A contest on tables of one's own: every method gets the same rows, bounds and budget; none is tuned to a table.

The fits are rehearsals, NOT PRIVATE: their noise is seeded, and the tables are scaled with numbers taken from
themselves.
"""

from __future__ import annotations

import hashlib
import importlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.speed import one_thread
from snugdp_studies.bench.contest.tables import Scaling, Split, Tables

if TYPE_CHECKING:
    from snugdp_studies.bench.contest.report import Cell, Report, Summary

Kind: TypeAlias = Literal["ours", "peer", "public", "reference"]


@dataclass(frozen=True)
class Setting:
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
    fit: Callable[[Split, Setting], Any]
    binary: bool = False

    @property
    def ranked(self) -> bool:
        """Whether it can be the best."""
        return self.kind in ("ours", "peer")


class Task(ABC):
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
    def measure(self, answer: Any, split: Split) -> tuple[float, float]:
        """What is measured of a contender's answer on the held-out rows."""

    @abstractmethod
    def title(self, cell: Cell) -> str:
        """The heading of the table in which a cell stands."""

    @abstractmethod
    def columns(self, cell: Cell, winner: Cell | None, group: Sequence[Cell]) -> dict[str, str]:
        """One row of the table of a group, by its headings."""

    def rivals(self, group: Sequence[Cell]) -> list[Cell]:
        """Those to which a method of ours is compared for the share of cells in which it is as good as all."""
        return [cell for cell in group if self.contenders[cell.method].kind == "peer"]

    @abstractmethod
    def extra(self, report: Report, method: str) -> float | None:
        """One more number about a method of ours over all tables."""

    def parts(self, variants: Sequence[Any]) -> Sequence[Any]:
        """The variants that are summed up apart; None for all together."""
        return (None,)

    def part_title(self, part: Any) -> str:
        """What a summary is about."""
        return "all cells"

    @abstractmethod
    def summary(self, found: Summary, plan: Plan) -> dict[str, str]:
        """A method of ours over all tables, by the headings of the summary."""

    def chosen(self, asked: list[str] | None) -> list[str]:
        """The contenders asked for, in our order; all of them without a wish."""
        if unknown := [name for name in asked or [] if name not in self.contenders]:
            raise ValueError(f"there is no method {', '.join(unknown)}; there are {', '.join(self.contenders)}")
        return [name for name in self.contenders if not asked or name in asked]


def named(name: str) -> Task:
    """The task of this name, in any process."""
    task: Task = importlib.import_module(f"snugdp_studies.bench.{name}").TASK
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
class Plan:
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
        cls, task: Task, data: str | None, datasets: list[str] | None, methods: list[str] | None, **rest: Any
    ) -> Plan:
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

    def jobs(self) -> list[Job]:
        """Every fit, in turn over the methods, so that a busy moment hits all of them alike."""
        task, missing = named(self.task), self.missing
        wanted = [task.contenders[name] for name in self.methods if name not in missing]
        return [
            Job(self.task, self.data, dataset, variant, each.name, epsilon, self.delta, number)
            for dataset, variant, number, epsilon, each in product(
                self.datasets, self.variants, range(self.seeds), self.epsilons, wanted
            )
            if not each.binary or tables.split(task.tables, self.data, dataset, 0).classes == 2
        ]


@dataclass(frozen=True)
class Job:
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
class Score:
    """What came of it: what the task measures, and the seconds of the fit."""

    job: Job
    measured: tuple[float, float]
    seconds: float


Watch: TypeAlias = Callable[[Iterable[Score], int], Iterable[Score]]


def one(job: Job) -> Score:
    """Run one fit on one thread."""
    task = named(job.task)
    split = tables.split(task.tables, job.data, job.dataset, job.number, task.scaling(job.variant))
    setting = Setting(job.epsilon, job.delta, noise_start(*(getattr(job, name) for name in task.noise_of)), job.variant)
    with one_thread():
        before = perf_counter()
        answer = task.contenders[job.method].fit(split, setting)
        seconds = perf_counter() - before
    return Score(job, task.measure(answer, split), seconds)


def run(plan: Plan, jobs: int = 1, watch: Watch | None = None) -> list[Score]:
    """All fits of the plan, in ``jobs`` processes. ``watch`` may count the scores as they come."""
    work = plan.jobs()
    scores = _scores(work, jobs)
    return list(watch(scores, len(work)) if watch else scores)


def _scores(work: Sequence[Job], jobs: int) -> Iterator[Score]:
    if jobs == 1:
        yield from map(one, work)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(one, job) for job in work]):
            yield done.result()
