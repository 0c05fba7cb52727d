"""Private linear regression on tables of one's own, side by side with peers: errors on held-out rows.

Every method gets the same rows, the same bounds and the same budget, and no method is tuned to a table. The fits are
rehearsals, NOT PRIVATE: their noise is seeded, and the tables are scaled with numbers taken from themselves.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from snugdp_studies.bench.regression import data as tables
from snugdp_studies.bench.regression.methods import CONTENDERS, Setting, noise_start
from snugdp_studies.bench.regression.plan import Job, Plan, Score
from snugdp_studies.bench.regression.report import Report

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
