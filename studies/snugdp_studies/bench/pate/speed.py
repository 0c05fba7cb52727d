"""How long PATE takes: smooth sensitivity beside a loop with scalar formulas, and labels from votes to a release.

The loop has the structure of public reference code: query by query, distance by distance, one number at a time. It is
written to be fair: the same special functions on plain numbers, nothing recomputed that does not change. That the
sensitivity of one query has a single peak, beyond which its envelope is flat, is known to the loop beforehand.
"""

import math
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from snugdp import pate
from snugdp.core.guarantee import Budget
from snugdp.mechanisms.teachers import loss
from snugdp.mechanisms.teachers import smooth_test as smooth
from snugdp.noise import Noise

Integers = NDArray[np.int64]

SIGMA, ORDER, BETA = 40.0, 12.0, 0.02
BUDGET = Budget(2, 1e-5)  # with which the plans take the test
GOALS = "Goals: smooth sensitivity 50 times as fast as the loop; plan, test and labels of 200 queries in under 2 s."


@dataclass(frozen=True)
class SpeedRow:
    """One way: seconds (best and median), what it found, and how many times faster than the loop (by medians)."""

    name: str
    best: float
    median: float
    sensitivity: float
    faster: float


def run(queries: int = 200, teachers: int = 400, classes: int = 10, repeats: int = 3) -> list[SpeedRow]:
    """Time the loop, then ours with the table to make and with the table made. The results agree to 3 percent."""
    if min(queries, teachers, repeats) < 1 or classes < 2:
        raise ValueError("queries, teachers and repeats must be at least 1, and classes at least 2")
    votes = made_up(queries, teachers, classes)
    _vectorised(votes, teachers)  # libraries are loaded outside the clock
    loops, cold, warm = [], [], []
    for _ in range(repeats):
        loops.append(_timed(lambda: _loop(votes, teachers)))
        smooth.envelope.cache_clear()
        cold.append(_timed(lambda: _vectorised(votes, teachers)))
        warm.append(_timed(lambda: _vectorised(votes, teachers)))
    slow = median(time for time, _ in loops)
    rows = []
    for name, runs in (("loop", loops), ("snugdp", cold), ("snugdp, table made", warm)):
        times = [time for time, _ in runs]
        rows.append(SpeedRow(name, min(times), median(times), runs[0][1], slow / median(times)))
    return rows


def made_up(queries: int, teachers: int, classes: int) -> Integers:
    """Histograms of all degrees of agreement, hardly two alike."""
    rows = []
    for i in range(queries):
        top = teachers // 3 + (2 * teachers // 3) * i // queries
        left, row = teachers - top, [top]
        for j in range(1, classes):
            share = left if j == classes - 1 else min(left, left * (2 + (i + j) % 3) // 6)
            row.append(share)
            left -= share
        rows.append(row)
    return np.array(rows, dtype=np.int64)


def _timed(job: Callable[[], float]) -> tuple[float, float]:
    start = perf_counter()
    found = job()
    return perf_counter() - start, found


def _vectorised(votes: Integers, teachers: int) -> float:
    return float(smooth.smooth_sensitivity(smooth.local_sums(votes, SIGMA, ORDER, teachers), BETA))


def _loop(votes: Integers, teachers: int) -> float:
    """Smooth sensitivity one number at a time."""
    sums = [0.0] * (teachers + 1)
    scalar = _Scalar(votes.shape[1])
    for row in votes.tolist():
        ordered = sorted(row, reverse=True)
        leads = [ordered[0] - count for count in ordered[1:]]
        origin = scalar.quantile(scalar.log_q(leads, 0))
        for d in range(teachers + 1):
            log_q = scalar.log_q(leads, d)
            most = max(scalar.local(log_q), scalar.largest if log_q >= scalar.at_largest else 0.0)
            sums[d] += min(most, scalar.above(origin, d))
    return max(math.exp(-BETA * d) * value for d, value in enumerate(sums))


class _Scalar:
    """The formulas for single numbers."""

    def __init__(self, classes: int) -> None:
        from scipy.special import log_ndtr, ndtri_exp

        self.log_ndtr, self.ndtri_exp, self.others = log_ndtr, ndtri_exp, classes - 1
        self.cap, self.move = math.log1p(-1 / classes), math.sqrt(2.0) / SIGMA
        self.peak, self.most = float(loss.log_peak(SIGMA, ORDER)), ORDER / SIGMA**2
        steps = (self.quantile(self.cap) - 0.001 * k for k in range(5000))
        self.full = next(z for z in steps if self.loss(self.log_ndtr(z) + math.log(self.others)) < self.most)
        self.largest, self.at_largest = max((self.local(at), at) for at in (self.cap - 0.02 * k for k in range(500)))

    def log_q(self, leads: list[int], d: int) -> float:
        if leads[0] < 2 * d:
            return self.cap
        logs = [self.log_ndtr((-lead + d) * self.move / 2) for lead in leads]
        logs[0] = self.log_ndtr((-leads[0] + 2 * d) * self.move / 2)
        top = max(logs)
        return float(min(top + math.log(sum(math.exp(value - top) for value in logs)), self.cap))

    def quantile(self, log_q: float) -> float:
        return float(self.ndtri_exp(log_q - math.log(self.others)))

    def above(self, origin: float, d: int) -> float:
        """What is left above the loss where d moves cannot leave the worst case."""
        if origin - d * self.move <= self.full:
            return math.inf
        return self.most - self.loss(self.log_ndtr(origin - (d + 1) * self.move) + math.log(self.others))

    def local(self, log_q: float) -> float:
        z, here = self.quantile(log_q), self.loss(log_q)
        up = min(self.log_ndtr(z + self.move) + math.log(self.others), self.cap)
        down = self.log_ndtr(z - self.move) + math.log(self.others)
        return max(self.loss(up) - here, here - self.loss(down))

    def loss(self, log_q: float) -> float:
        first, m = min(log_q, self.peak), self.move
        x = ORDER * math.log1p(-math.exp(first)) + (1 - ORDER) * self.log_ndtr(-(self.ndtri_exp(first) + m))
        y = ORDER * (ORDER - 1) * m**2 / 2 + self.log_ndtr(self.ndtri_exp(log_q) + (ORDER - 1) * m)
        return min(math.log1p(math.expm1(x) + math.exp(y)) / (ORDER - 1), self.most)


@dataclass(frozen=True)
class LabelTime:
    """One task: seconds of the first run, and the median of those after it (if there were any); peak memory so far.

    ``processor``: the least processor time of a run, which other programs on the machine hardly change.
    """

    name: str
    first: float
    median: float | None
    processor: float
    peak_mb: float


def label_times(
    repeats: int = 3,
    large: tuple[int, int] | None = (100_000, 1_000),
    noise: Noise | None = None,
    *,
    confident: bool = True,
) -> Iterator[LabelTime]:
    """Plan, reading, test and draws together, with exact noise unless told otherwise; from small tasks to large."""
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


def _row(name: str, task: Callable[[], None], repeats: int) -> LabelTime:
    times, busy = [], []
    for _ in range(repeats):
        start, used = perf_counter(), process_time()
        task()
        times.append(perf_counter() - start)
        busy.append(process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return LabelTime(name, times[0], median(times[1:]) if times[1:] else None, min(busy), peak)
