"""Times on one thread: a median of millions of numbers beside their sort, groups of rows beside the same in polars."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import numpy as np

from snugdp_studies.bench.contest.speed import Timing, timed

VALUES, ROWS, KEYS = 5_000_000, 10_000_000, 100_000
GOALS = "Goals: a median at most 1.4 times numpy.sort, groups at most 3 times polars."


def run(values: int = VALUES, rows: int = ROWS, repeats: int = 3) -> list[Timing]:
    """All times, in a process of one thread."""
    alone = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    code = f"from snugdp_studies.bench.statistics import speed; speed.tell({values}, {rows}, {repeats})"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **alone}, stdout=subprocess.PIPE, text=True, check=True
    )
    return [Timing(**one) for one in json.loads(done.stdout)]


def tell(values: int, rows: int, repeats: int) -> None:
    """Measure in this process, on one of its cores, and print the times as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    found = [*medians(values, repeats), *groups(rows, repeats)]
    sys.stdout.write(json.dumps([asdict(one) for one in found]))


def medians(values: int, repeats: int) -> list[Timing]:
    """A column of lognormal numbers, none twice."""
    import snugdp

    column = np.exp(np.random.default_rng(61).normal(10.3, 0.7, values))
    given: dict[str, Any] = {"bounds": (0, 10**6), "epsilon": 1}
    jobs = {
        "numpy.sort": lambda: np.sort(column),
        "median": lambda: snugdp.median(column, **given),
        "5 quantiles": lambda: snugdp.quantiles(column, [0.1, 0.25, 0.5, 0.75, 0.9], **given),
        "mean": lambda: snugdp.mean(column, **given),
    }
    return timed(f"{values:,} numbers", jobs, repeats)


def groups(rows: int, repeats: int) -> list[Timing]:
    """Counts and means of keys that are whole numbers, words, and words of digits, which are labels of numbers."""
    import polars as pl

    import snugdp

    generator = np.random.default_rng(67)
    numbers = pl.Series(generator.integers(0, KEYS, rows))
    values = pl.Series(generator.random(rows))
    kinds = {"whole numbers": numbers, "text": "k" + numbers.cast(pl.String), "text of digits": numbers.cast(pl.String)}
    asked: dict[str, Any] = {"statistics": {"x": "mean"}, "bounds": {"x": (0, 1)}, "epsilon": 1, "delta": 1e-6}
    found = []
    for kind, keys in kinds.items():
        frame = pl.DataFrame({"key": keys, "x": values})
        jobs = {
            "polars": lambda frame=frame: frame.group_by("key").agg(pl.len(), pl.col("x").mean()),
            "group_by": lambda frame=frame: snugdp.group_by(frame, "key", **asked),
        }
        found += timed(f"{rows:,} rows, {KEYS:,} keys: {kind}", jobs, repeats)
    return found
