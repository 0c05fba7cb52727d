"""Private linear regression on tables of one's own, side by side with peers: errors on held-out rows.

Every method gets the same rows, the same bounds and the same budget, and no method is tuned to a table. The fits are
rehearsals, NOT PRIVATE: their noise is seeded, and the tables are scaled with numbers taken from themselves.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from snugdp.bench import regression_data as tables
from snugdp.bench.regression_methods import CONTENDERS, Setting, chosen, importable, noise_start

_PACKAGES = ("snugdp", "numpy", "scipy", "scikit-learn", "diffprivlib")


@dataclass(frozen=True)
class Plan:
    """What is to be run. ``loose``: a factor by which the bound on targets is too large in a second run of each."""

    data: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 4.0)
    delta: float = 1e-6
    seeds: int = 20
    loose: float | None = None

    @classmethod
    def of(
        cls, data: str | None, datasets: list[str] | None = None, methods: list[str] | None = None, **rest: Any
    ) -> Plan:
        """The plan, if there are such tables and such methods."""
        found = tables.chosen(data, datasets)
        plan = cls(str(data), tuple(found), tuple(chosen(methods)), **rest)
        for name in plan.datasets:
            tables.load(plan.data, name)  # what cannot be read is found before hours of work
        if plan.loose is not None and not plan.loose > 1:
            raise ValueError("--loose is a factor above 1: how many times too large the bound on targets is")
        if not plan.epsilons or min(plan.epsilons) <= 0 or not 0 < plan.delta < 1 or plan.seeds < 1:
            raise ValueError("epsilons must be above 0, delta between 0 and 1, seeds at least 1")
        return plan

    @property
    def missing(self) -> tuple[str, ...]:
        """Methods that cannot run here."""
        return tuple(name for name in self.methods if not importable(name))

    def jobs(self) -> list[Job]:
        """Every fit, in turn over the methods, so that a busy moment hits all of them alike."""
        methods = [name for name in self.methods if name not in self.missing]
        factors = (1.0,) if self.loose is None else (1.0, self.loose)
        return [
            Job(self.data, dataset, method, epsilon, self.delta, factor, number)
            for dataset, number, epsilon, factor, method in product(
                self.datasets, range(self.seeds), self.epsilons, factors, methods
            )
        ]


@dataclass(frozen=True)
class Job:
    """One fit."""

    data: str
    dataset: str
    method: str
    epsilon: float
    delta: float
    factor: float
    number: int


@dataclass(frozen=True)
class Score:
    """What came of it: the mean squared error on the held-out rows, the seconds of the fit, whether it was refused."""

    job: Job
    mse: float
    seconds: float
    refused: bool


Watch: TypeAlias = Callable[[Iterable[Score], int], Iterable[Score]]


def one(job: Job) -> Score:
    """Run one fit on one thread. A refusal predicts 0, as one would without a model."""
    split = tables.split(job.data, job.dataset, job.number)
    start = noise_start(job.dataset, job.method, job.epsilon, job.factor, job.number)
    setting = Setting(job.epsilon, job.delta, job.factor, start)
    with one_thread():
        before = perf_counter()
        theta = CONTENDERS[job.method].fit(split, setting)
        seconds = perf_counter() - before
    X, y = split.test
    with np.errstate(all="ignore"):  # a peer may answer with anything
        mse = float(np.mean((y if theta is None else y - X @ theta) ** 2))
    return Score(job, mse if np.isfinite(mse) else np.inf, seconds, theta is None)


def one_thread() -> Any:
    """A context in which BLAS has one thread."""
    pools: Any = importlib.import_module("threadpoolctl")
    return pools.threadpool_limits(1)


def run(plan: Plan, jobs: int = 1, watch: Watch | None = None) -> Report:
    """All fits of the plan, in ``jobs`` processes. ``watch`` may count the scores as they come."""
    work = plan.jobs()
    scores = _scores(work, jobs)
    return Report(plan, tuple(watch(scores, len(work)) if watch else scores))


def _scores(work: Sequence[Job], jobs: int) -> Iterator[Score]:
    if jobs == 1:
        yield from map(one, work)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(one, job) for job in work]):
            yield done.result()


@dataclass(frozen=True)
class Cell:
    """One method on one table at one epsilon, over all splits."""

    dataset: str
    epsilon: float
    factor: float
    method: str
    errors: tuple[float, ...]
    seconds: float
    refused: int

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(np.mean(self.errors))

    @property
    def deviation(self) -> float:
        """The standard error of the mean; 0 for one split."""
        if len(self.errors) < 2:
            return 0.0
        if not np.isfinite(self.mean):
            return np.inf
        return float(np.std(self.errors, ddof=1) / len(self.errors) ** 0.5)

    @property
    def ranked(self) -> bool:
        """Whether it can be the best: private, and without public rows."""
        return CONTENDERS[self.method].ranked


@dataclass(frozen=True)
class Summary:
    """One method over all tables and epsilons.

    ``near``: the share of cells where it is the best ranked method or within 1 % of it. ``ratio`` and ``worst``: the
    geometric mean and the largest of its error over that of the best peer in the same cell. ``loose``: the geometric
    mean of its error with the loose bound over that with the tight one.
    """

    method: str
    cells: int
    near: float
    ratio: float | None
    worst: float | None
    loose: float | None


@dataclass(frozen=True)
class Report:
    """All scores of a run, and what they say."""

    plan: Plan
    scores: tuple[Score, ...]

    @property
    def cells(self) -> list[Cell]:
        """The scores, gathered by table, bound, epsilon and method, in the order of the plan."""
        groups: dict[tuple[str, float, float, str], list[Score]] = {}
        for score in self.scores:
            key = (score.job.dataset, score.job.epsilon, score.job.factor, score.job.method)
            groups.setdefault(key, []).append(score)
        cells = []
        for (dataset, epsilon, factor, method), found in groups.items():
            found.sort(key=lambda score: score.job.number)
            errors = tuple(score.mse for score in found)
            seconds = float(np.median([score.seconds for score in found]))
            refused = sum(score.refused for score in found)
            cells.append(Cell(dataset, epsilon, factor, method, errors, seconds, refused))
        order = {name: place for place, name in enumerate(CONTENDERS)}
        return sorted(cells, key=lambda c: (c.dataset, c.factor, c.epsilon, order[c.method]))

    def contests(self, factor: float = 1.0) -> list[list[Cell]]:
        """The cells of one table and one epsilon, for all of them."""
        groups: dict[tuple[str, float], list[Cell]] = {}
        for cell in self.cells:
            if cell.factor == factor:
                groups.setdefault((cell.dataset, cell.epsilon), []).append(cell)
        return list(groups.values())

    def summaries(self, factor: float = 1.0) -> list[Summary]:
        """Every method of ours over all contests."""
        return [found for name in CONTENDERS if (found := self._summary(name, factor)) is not None]

    def _summary(self, method: str, factor: float) -> Summary | None:
        contests = [group for group in self.contests(factor) if any(cell.method == method for cell in group)]
        if CONTENDERS[method].kind != "ours" or not contests:
            return None
        near, ratios = 0, []
        for group in contests:
            mine = next(cell.mean for cell in group if cell.method == method)
            near += mine <= 1.01 * min(cell.mean for cell in group if cell.ranked)
            peers = [cell.mean for cell in group if CONTENDERS[cell.method].kind == "peer"]
            ratios += [mine / min(peers)] if peers else []
        share = near / len(contests)
        return Summary(method, len(contests), share, _middle(ratios), max(ratios, default=None), self._loose(method))

    def _loose(self, method: str) -> float | None:
        means = {(c.dataset, c.epsilon, c.factor): c.mean for c in self.cells if c.method == method}
        loose = self.plan.loose
        return _middle([means[d, e, f] / means[d, e, 1.0] for d, e, f in means if f == loose])

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain values."""
        return {
            "about": __doc__,
            "parameters": asdict(self.plan) | {"not importable": self.plan.missing},
            "versions": _versions(),
            "cells": [asdict(cell) | {"mean": cell.mean, "standard error": cell.deviation} for cell in self.cells],
            "summaries": [asdict(found) for found in self.summaries()],
        }


def best(group: Sequence[Cell]) -> Cell | None:
    """The ranked method with the smallest mean error."""
    return min((cell for cell in group if cell.ranked), key=lambda cell: cell.mean, default=None)


def _middle(ratios: Sequence[float]) -> float | None:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions
