"""A contest on tables of one's own: every method gets the same rows, bounds and budget; none is tuned to a table.

The fits are rehearsals, NOT PRIVATE: their noise is seeded, and the tables are scaled with numbers taken from
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from time import perf_counter
from typing import Any, TypeAlias

from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.speed import one_thread
from snugdp_studies.bench.contest.task import Setting, Task, importable, named, noise_start


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
    setting = Setting(job.epsilon, job.delta, noise_start(*task.noise_key(job)), job.variant)
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
