"""How long labels take, from votes to a release with exact noise: plan, reading, test and draws together."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from snugdp import pate
from snugdp.core.guarantee import Budget
from snugdp.noise import Noise
from snugdp_studies.bench.pate.speed import made_up

Integers = NDArray[np.int64]

BUDGET = Budget(2, 1e-5)  # with which the plans take the test
GOALS = "Goals: smooth sensitivity 50 times as fast as the loop; plan, test and labels of 200 queries in under 2 s."


@dataclass(frozen=True)
class Row:
    """One task: seconds of the first run, and the median of those after it (if there were any); peak memory so far.

    ``processor``: the least processor time of a run, which other programs on the machine hardly change.
    """

    name: str
    first: float
    median: float | None
    processor: float
    peak_mb: float


def run(
    repeats: int = 3,
    large: tuple[int, int] | None = (100_000, 1_000),
    noise: Noise | None = None,
    *,
    confident: bool = True,
) -> Iterator[Row]:
    """All tasks, from the small to the large."""
    votes = made_up(200, 400, 10)
    yield _row("plan only, 200 queries, 400 teachers", lambda: _plan(votes), repeats)
    yield _row("plan, test and labels, 200 queries, 400 teachers", lambda: _label(votes, noise), repeats)
    if confident:
        yield _row("the same with Confident-GNMax", lambda: _label(votes, noise, threshold=280), repeats)
    if large is not None:
        queries, teachers = large
        ballots = cast(agreeing(queries, teachers, 10))
        name = f"{queries:,} queries, {teachers:,} teachers, votes as labels"
        yield _row(name, lambda: _label_many(ballots, noise), 1)


def _plan(votes: Integers) -> None:
    pate.plan(BUDGET, n_queries=len(votes), n_teachers=400, n_classes=10, proxy=votes)


def _label(votes: Integers, noise: Noise | None, threshold: int | None = None) -> None:
    pate.label(votes, BUDGET, proxy=votes, threshold=threshold, noise=noise)


def _label_many(ballots: NDArray[np.uint8], noise: Noise | None) -> None:
    few = agreeing(200, ballots.shape[1], 10)
    pate.label(ballots, BUDGET, form="queries", classes=range(10), proxy=few, noise=noise)


def agreeing(queries: int, teachers: int, classes: int) -> Integers:
    """Histograms in which the plurality has at least 8 of 10 votes, of a different class in every query."""
    rows = made_up(queries, teachers, classes)
    others = rows[:, 1:] * 3 // 10
    rows = np.concatenate([teachers - others.sum(axis=1, keepdims=True), others], axis=1)
    places = (np.arange(classes)[None, :] + np.arange(queries)[:, None]) % classes
    return np.take_along_axis(rows, places, axis=1)


def cast(histograms: Integers) -> NDArray[np.uint8]:
    """Votes as labels, a row for a query and a column for a teacher."""
    queries, classes = histograms.shape
    labels = np.tile(np.arange(classes, dtype=np.uint8), queries)
    return np.repeat(labels, histograms.ravel()).reshape(queries, -1)


def _row(name: str, task: object, repeats: int) -> Row:
    assert callable(task)
    times, busy = [], []
    for _ in range(repeats):
        start, used = perf_counter(), process_time()
        task()
        times.append(perf_counter() - start)
        busy.append(process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Row(name, times[0], median(times[1:]) if times[1:] else None, min(busy), peak)
