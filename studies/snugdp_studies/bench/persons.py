"""What it costs that a table is one of persons: their rows kept, weighed and counted, beside polars.

Times are over those of one group_by for all, and of the same work in polars, in the same turn. Every turn on a file is
a process of its own that reads it, and of the peak memory all that it has loaded is a part.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import polars as pl

from snugdp.tables.persons import keep_rows, person_counts, weigh_rows
from snugdp.tables.sources import open_source
from snugdp_studies.bench.contest.speed import peak_megabytes

KEY = 0x243F6A8885A308D313198A2E03707344
NAMES = ("x", "y")
FIRST = "polars group_by, first row"
JOBS: dict[str, Callable[[pl.DataFrame | Path], object]] = {
    FIRST: lambda rows: _asked(_lazy(rows).group_by("person").agg(pl.col(NAMES).first())),
    "polars group_by, 3 rows": lambda rows: _asked(_lazy(rows).group_by("person").head(3)),
    "polars group_by, numbers of rows": lambda rows: _asked(_lazy(rows).group_by("person").len()),
    "polars, number of rows over persons": lambda rows: _asked(_lazy(rows).with_columns(rows=pl.len().over("person"))),
    "keep_rows, 1 row": lambda rows: keep_rows(open_source(rows), NAMES, "person", 1, KEY),
    "keep_rows, 3 rows": lambda rows: keep_rows(open_source(rows), NAMES, "person", 3, KEY),
    "weigh_rows": lambda rows: weigh_rows(open_source(rows), NAMES, "person", 1, KEY),
    "person_counts": lambda rows: person_counts(open_source(rows), "person"),
}
SAME_WORK = {
    "keep_rows, 1 row": FIRST,
    "keep_rows, 3 rows": "polars group_by, 3 rows",
    "weigh_rows": "polars, number of rows over persons",
    "person_counts": "polars group_by, numbers of rows",
}


@dataclass(frozen=True)
class PersonsSpent:
    """What one job took: seconds, seconds of all cores, and the peak memory of its process if it had its own."""

    seconds: float
    cpu: float
    peak_mb: float | None = None


@dataclass(frozen=True)
class PersonTiming:
    """One contender: fastest and median seconds, least seconds of all cores, median multiples in the same turn."""

    group: str
    name: str
    min_s: float
    median_s: float
    cpu_s: float
    relative: float
    same_work: float
    peak_mb: float | None


def run(rows: int = 10_000_000, people: int = 1_000_000, repeats: int = 5) -> list[PersonTiming]:
    """All contenders in turn on a table in memory, after one turn to warm up, and on a file."""
    made, size = table(rows, people), f"{rows:,} rows of {people:,} persons"
    in_memory = [{name: _spent(job, made) for name, job in JOBS.items()} for _ in range(repeats + 1)][1:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        made.write_parquet(path)
        del made
        in_file = [{name: _alone(name, path) for name in JOBS} for _ in range(repeats)]
    return [*_timings(f"{size} in memory", in_memory), *_timings(f"{size} in Parquet", in_file)]


def table(rows: int, people: int) -> pl.DataFrame:
    """Rows of random persons, with two columns of random numbers."""
    draw = np.random.default_rng(1)
    return pl.DataFrame({"person": draw.integers(0, people, rows), "x": draw.random(rows), "y": draw.random(rows)})


def _timings(group: str, turns: Sequence[dict[str, PersonsSpent]]) -> list[PersonTiming]:
    found = []
    for name in JOBS:
        spent, peer = [turn[name] for turn in turns], SAME_WORK.get(name, name)
        over = [median(turn[name].seconds / turn[other].seconds for turn in turns) for other in (FIRST, peer)]
        seconds, peaks = [one.seconds for one in spent], [one.peak_mb for one in spent if one.peak_mb is not None]
        least, peak = min(one.cpu for one in spent), max(peaks, default=None)
        found.append(PersonTiming(group, name, min(seconds), median(seconds), least, over[0], over[1], peak))
    return found


def _spent(job: Callable[[pl.DataFrame | Path], object], rows: pl.DataFrame | Path) -> PersonsSpent:
    start, cpu = perf_counter(), process_time()
    job(rows)
    return PersonsSpent(perf_counter() - start, process_time() - cpu)


def _alone(name: str, path: Path) -> PersonsSpent:
    code = f"import snugdp_studies.bench.persons as p; p.report({name!r}, {str(path)!r})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return PersonsSpent(*map(float, ran.stdout.split()))


def report(name: str, path: str) -> None:
    """Print what one contender took and its peak megabytes: the inside of a turn on a file."""
    spent = _spent(JOBS[name], Path(path))
    sys.stdout.write(f"{spent.seconds} {spent.cpu} {peak_megabytes()}\n")


def _lazy(rows: pl.DataFrame | Path) -> pl.LazyFrame:
    return rows.lazy() if isinstance(rows, pl.DataFrame) else pl.scan_parquet(rows)


def _asked(query: pl.LazyFrame) -> pl.DataFrame:
    return query.collect(engine="streaming")
