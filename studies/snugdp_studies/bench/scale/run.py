"""The comparisons: each release beside the same work without privacy, in processes of their own, in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time

import polars as pl

from snugdp_studies.bench.contest.speed import one_thread
from snugdp_studies.bench.scale.process import JobSpent, spent
from snugdp_studies.bench.scale.work import in_memory, write_rows, write_values

ROWS, VALUES = (2_000_000, 20_000_000), (10_000_000, 100_000_000)
COLUMNS = 10
GRAMS = ((20, 1.5), (100, 1.2))  # columns, and the goal
_WARM = 2000  # rows of the small file on which a process starts
_ENTRIES = 20_000_000  # of a matrix in memory, at most


@dataclass(frozen=True)
class Versus:
    """A job with privacy beside one without, and how many times the latter's processor seconds it may take."""

    private: str
    plain: str
    goal: float


MODELS = (
    Versus("logistic", "newton", 2.0),
    Versus("linear", "gram", 3.0),
    Versus("wide linear", "gram", 3.0),
    Versus("wide linear", "robust", float("inf")),
    Versus("exact gram", "gram", 1.15),
)
MEDIAN = Versus("median", "plain median", float("inf"))
CSV = Versus("exact gram", "gram", 2.5)
SHOWN = {
    "logistic": "LogisticRegression",
    "newton": "Newton's method in numpy",
    "linear": "LinearRegression",
    "wide linear": "LinearRegression, bounds ten times too wide",
    "robust": "the same line in numpy, all rows in memory",
    "gram": "polars and X'X in floats",
    "exact gram": "one exact pass",
    "median": "median",
    "plain median": "polars' median",
}


@dataclass(frozen=True)
class JobPair:
    """What both jobs took on a file of so many rows: the fastest of all runs, and the largest peak."""

    versus: Versus
    file: str
    rows: int
    private: JobSpent
    plain: JobSpent

    @property
    def ratio(self) -> float:
        """Of processor seconds."""
        return self.private.cpu_s / self.plain.cpu_s


@dataclass(frozen=True)
class GramRatio:
    """X'X, X'y, y'y in whole numbers over X'X in floats, in memory."""

    rows: int
    columns: int
    ratio: float
    goal: float


def models(folder: Path, rows: Sequence[int], repeats: int) -> Iterator[JobPair]:
    """Fits and a pass over Parquet files of these sizes."""
    small = _made(folder / "warm.parquet", partial(write_rows, rows=_WARM, d=COLUMNS))
    for n in rows:
        path = _made(folder / f"rows-{n}.parquet", partial(write_rows, rows=n, d=COLUMNS))
        yield from _pairs(MODELS, path, small, file="Parquet", rows=n, repeats=repeats)


def csv(folder: Path, rows: int, repeats: int) -> Iterator[JobPair]:
    """One pass over a CSV file, beside polars and X'X in floats."""
    paths = []
    for n in (_WARM, rows):
        made = _made(folder / f"rows-{n}.parquet", partial(write_rows, rows=n, d=COLUMNS))
        paths.append(_made(folder / f"rows-{n}.csv", pl.scan_parquet(made).drop("yes").sink_csv))
    yield from _pairs((CSV,), paths[1], paths[0], file="CSV", rows=rows, repeats=repeats)


def medians(folder: Path, values: Sequence[int], repeats: int) -> Iterator[JobPair]:
    """The median of a column of different values in a file."""
    small = _made(folder / "warm-values.parquet", partial(write_values, rows=_WARM))
    for n in values:
        path = _made(folder / f"values-{n}.parquet", partial(write_values, rows=n))
        yield from _pairs((MEDIAN,), path, small, file="Parquet, one column", rows=n, repeats=repeats)


def grams(most: int, repeats: int) -> Iterator[GramRatio]:
    """Matrices in memory; both in turn, the median of the ratios of processor seconds."""
    with one_thread():
        for d, goal in GRAMS:
            rows = min(most, _ENTRIES // d)
            jobs = in_memory(rows, d)
            turns = [[_seconds(job) for job in jobs.values()] for _ in range(repeats + 1)][1:]
            yield GramRatio(rows, d, median(private / plain for plain, private in turns), goal)


def growth(pairs: Sequence[JobPair]) -> dict[str, tuple[float, float, float]]:
    """For every private job: how many times the rows, the processor seconds and the peak memory grew."""
    found = {}
    for name in dict.fromkeys(pair.versus.private for pair in pairs):
        first, last = (next(pair for pair in order if pair.versus.private == name) for order in (pairs, pairs[::-1]))
        if last.rows > first.rows:
            grown = (getattr(last.private, part) / getattr(first.private, part) for part in ("cpu_s", "peak_mb"))
            cpu, peak = grown
            found[name] = last.rows / first.rows, cpu, peak
    return found


def _pairs(
    wanted: Sequence[Versus], path: Path, small: Path, *, file: str, rows: int, repeats: int
) -> Iterator[JobPair]:
    names = dict.fromkeys(name for each in wanted for name in (each.private, each.plain))
    turns = [{name: spent(name, path, small) for name in names} for _ in range(repeats)]
    best = {name: _best([turn[name] for turn in turns]) for name in names}
    for versus in wanted:
        yield JobPair(versus, file, rows, best[versus.private], best[versus.plain])


def _best(runs: Sequence[JobSpent]) -> JobSpent:
    return JobSpent(min(run.cpu_s for run in runs), min(run.wall_s for run in runs), max(run.peak_mb for run in runs))


def _made(path: Path, make: Callable[[Path], object]) -> Path:
    if not path.exists():
        make(path)
    return path


def _seconds(job: Callable[[], object]) -> float:
    start = process_time()
    job()
    return process_time() - start
