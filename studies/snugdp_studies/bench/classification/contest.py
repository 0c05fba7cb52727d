"""Private logistic regression on tables of one's own, side by side with peers: log-loss and errors on held-out rows.

Every method gets the same rows, the same bounds and the same budget, and no method is tuned to a table. The fits are
rehearsals, NOT PRIVATE: their noise is seeded, and the tables are scaled with numbers taken from themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from time import perf_counter
from typing import Any, TypeAlias, get_args

import numpy as np

from snugdp_studies.bench.classification import data as tables
from snugdp_studies.bench.classification.data import Floats, Places, Scaling
from snugdp_studies.bench.classification.methods import BINARY, CONTENDERS, Setting, chosen, importable
from snugdp_studies.bench.regression.contest import one_thread
from snugdp_studies.bench.regression.methods import noise_start

_LEAST = 1e-15  # a probability that is not 0


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    data: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 4.0)
    delta: float = 1e-6
    seeds: int = 10
    scalings: tuple[Scaling, ...] = ("norm",)

    @classmethod
    def of(
        cls, data: str | None, datasets: list[str] | None = None, methods: list[str] | None = None, **rest: Any
    ) -> Plan:
        """The plan, if there are such tables and such methods."""
        plan = cls(str(data), tuple(tables.chosen(data, datasets)), tuple(chosen(methods)), **rest)
        unknown = [name for name in plan.scalings if name not in get_args(Scaling)]
        if unknown or not plan.scalings:
            raise ValueError(f"--scalings are {', '.join(get_args(Scaling))}")
        if not plan.epsilons or min(plan.epsilons) <= 0 or not 0 < plan.delta < 1 or plan.seeds < 1:
            raise ValueError("epsilons must be above 0, delta between 0 and 1, seeds at least 1")
        for name in plan.datasets:
            tables.load(plan.data, name)  # what cannot be read is found before hours of work
        return plan

    @property
    def missing(self) -> tuple[str, ...]:
        """Methods that cannot run here."""
        return tuple(name for name in self.methods if not importable(name))

    def jobs(self) -> list[Job]:
        """Every fit, in turn over the methods, so that a busy moment hits all of them alike."""
        methods = [name for name in self.methods if name not in self.missing]
        return [
            Job(self.data, dataset, scaling, method, epsilon, self.delta, number)
            for dataset, scaling, number, epsilon, method in product(
                self.datasets, self.scalings, range(self.seeds), self.epsilons, methods
            )
            if method not in BINARY or tables.split(self.data, dataset, 0).classes == 2
        ]


@dataclass(frozen=True)
class Job:
    """One fit."""

    data: str
    dataset: str
    scaling: Scaling
    method: str
    epsilon: float
    delta: float
    number: int


@dataclass(frozen=True)
class Score:
    """What came of it: mean log-loss and share of wrong classes on the held-out rows, and the seconds of the fit."""

    job: Job
    log_loss: float
    wrong: float
    seconds: float


Watch: TypeAlias = Callable[[Iterable[Score], int], Iterable[Score]]


def one(job: Job) -> Score:
    """Run one fit on one thread."""
    split = tables.split(job.data, job.dataset, job.number, job.scaling)
    start = noise_start(job.dataset, job.scaling, job.method, job.epsilon, job.number)
    with one_thread():
        before = perf_counter()
        chances = CONTENDERS[job.method].fit(split, Setting(job.epsilon, job.delta, start))
        seconds = perf_counter() - before
    return Score(job, *measured(chances, split.test[1]), seconds)


def measured(chances: Floats, labels: Places) -> tuple[float, float]:
    """Mean log-loss and share of wrong classes. What is no number is a probability of 0.

    >>> measured(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0]))
    (1.0397207708399179, 0.5)
    """
    known = np.nan_to_num(chances, nan=0.0)
    logs = np.log(np.clip(known[np.arange(len(labels)), labels], _LEAST, 1.0))
    return float(-np.mean(logs)), float(np.mean(np.argmax(known, axis=1) != labels))


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
