"""What it costs that a table is one of persons: their rows kept, weighed and counted, beside polars' group_by.

The peak memory is that of a process of its own that reads a Parquet file, and all that it has loaded counts.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl

from snugdp.tables.persons import keep_rows, person_counts, weigh_rows
from snugdp.tables.sources import open_source
from snugdp_studies.bench.contest.speed import Timing, peak_megabytes, timed

KEY = 0x243F6A8885A308D313198A2E03707344
NAMES = ("x", "y")
JOBS: dict[str, Callable[[pl.DataFrame | Path], object]] = {
    "polars group_by, first row": lambda rows: _grouped(rows),
    "keep_rows, 1 row": lambda rows: keep_rows(open_source(rows), NAMES, "person", 1, KEY),
    "keep_rows, 3 rows": lambda rows: keep_rows(open_source(rows), NAMES, "person", 3, KEY),
    "weigh_rows": lambda rows: weigh_rows(open_source(rows), NAMES, "person", 1, KEY),
    "person_counts": lambda rows: person_counts(open_source(rows), "person"),
}


def run(rows: int = 10_000_000, people: int = 1_000_000, repeats: int = 5) -> list[Timing]:
    """All contenders in turn on a table in memory, and each once on a file."""
    made, size = table(rows, people), f"{rows:,} rows of {people:,} persons"
    jobs = {name: lambda job=job: job(made) for name, job in JOBS.items()}
    return [*timed(f"{size} in memory", jobs, repeats), *from_file(made, f"{size} in Parquet")]


def table(rows: int, people: int) -> pl.DataFrame:
    """Rows of random persons, with two columns of random numbers."""
    draw = np.random.default_rng(1)
    return pl.DataFrame({"person": draw.integers(0, people, rows), "x": draw.random(rows), "y": draw.random(rows)})


def from_file(made: pl.DataFrame, group: str) -> list[Timing]:
    """Time and peak memory of each contender, in a process of its own."""
    found: list[Timing] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        made.write_parquet(path)
        for name in JOBS:
            code = f"import snugdp_studies.bench.persons as p; p.report({name!r}, {str(path)!r})"
            ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            seconds, peak = (float(part) for part in ran.stdout.split())
            found.append(Timing(group, name, seconds, seconds, seconds, 1.0, peak))
    return [replace(row, relative=row.min_s / found[0].min_s) for row in found]


def report(name: str, path: str) -> None:
    """Print the seconds and the peak megabytes of one contender: the inside of ``from_file``."""
    start = perf_counter()
    JOBS[name](Path(path))
    sys.stdout.write(f"{perf_counter() - start} {peak_megabytes()}\n")


def _grouped(rows: pl.DataFrame | Path) -> pl.DataFrame:
    query = rows.lazy() if isinstance(rows, pl.DataFrame) else pl.scan_parquet(rows)
    return query.group_by("person").agg(pl.col(NAMES).first()).collect(engine="streaming")
