"""Jobs timed in turn, so that a busy moment hits all of them alike, and on one thread where that is asked for."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

from rich.table import Table

Jobs: TypeAlias = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Timing:
    """One contender: seconds of the first run of the process, which calibrates and loads what later ones find, and
    of later runs; the median multiple of the group's first contender in the same turn; peak memory if measured.
    """

    group: str
    name: str
    first_s: float
    min_s: float
    median_s: float
    relative: float
    peak_mb: float | None = None

    @property
    def seconds(self) -> tuple[str, str, str]:
        """First, fastest and median, as they are printed."""
        return f"{self.first_s:.3f}", f"{self.min_s:.3f}", f"{self.median_s:.3f}"


def one_thread() -> Any:
    """A context in which BLAS has one thread."""
    pools: Any = importlib.import_module("threadpoolctl")
    return pools.threadpool_limits(1)


def timed(group: str, jobs: Jobs, repeats: int, *, twice: bool = False) -> list[Timing]:
    """Every job in turn, ``repeats`` times over, after one turn to warm up.

    ``twice``: no such turn, but each job twice in a row, of which the second counts. What a job pays for the memory
    that the one before it gave back is then no part of it.
    """
    first: dict[str, float] = {}
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + (not twice)):
        for name, job in jobs.items():
            spent = _seconds(job)
            first.setdefault(name, spent)
            if twice:
                spent = _seconds(job)
            if twice or turn:
                times[name].append(spent)
    base = next(iter(times.values()))
    relative = {name: median(t / unit for t, unit in zip(taken, base, strict=True)) for name, taken in times.items()}
    return [
        Timing(group, name, first[name], min(taken), median(taken), relative[name]) for name, taken in times.items()
    ]


def _seconds(job: Callable[[], object]) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start


def peak_megabytes() -> float:
    """The largest resident size of this process. Linux's rusage would report its parent's, if that was larger."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def table(rows: Sequence[Timing], over: str, head: str | None = None) -> Table:
    """Fit times, and how they compare with the first contender's."""
    drawn = Table(head or rows[0].group, "first, s", "fastest, s", "median, s", f"over {over}")
    for row in rows:
        drawn.add_row(row.name, *row.seconds, f"{row.relative:.2f}")
    return drawn
