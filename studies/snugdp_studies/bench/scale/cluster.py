"""What Spark costs: a job, a task, a row; how many jobs a release has; and from these what a large cluster would cost.

Measured on Spark in local mode, in a process of its own: ``python -m snugdp_studies.bench.scale.cluster FILE``.
Processor seconds are those of this process and of all that it started: Java, and Spark's Python workers.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import snugdp
from snugdp.noise import Simulation
from snugdp.tables.engines import measure
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.schema.schema import Category, Number, Schema
from snugdp_studies.bench.scale.work import line

_TIMES = 5  # passes over a table of one partition
_TASKS = 200  # partitions of the table of many
MACHINES, CORES, ROWS = 100, 16, 10**11


@dataclass(frozen=True)
class Release:
    """A release: how many jobs it had on the measured table, and its seconds there."""

    name: str
    jobs: int
    wall_s: float


@dataclass(frozen=True)
class SparkCosts:
    """Seconds of one job beside its rows, of one partition more, and processor seconds of one row in one pass."""

    rows: int
    columns: int
    job_s: float
    task_s: float
    row_s: float
    releases: tuple[Release, ...]


@dataclass(frozen=True)
class PlannedJob:
    """What a release would take on a cluster, if costs are as measured and work divides evenly."""

    name: str
    jobs: int
    wall_s: float
    core_hours: float


def planned(costs: SparkCosts, machines: int = MACHINES, cores: int = CORES, rows: int = ROWS) -> Iterator[PlannedJob]:
    """Every release, where each job reads all rows once: rows divide among the cores, jobs follow each other.

    A pass has at most so many tasks as ``snugdp.tables.engines`` lets it have; their overhead divides as well.
    """
    from snugdp.tables.engines import TASKS_PER_CORE

    workers = machines * cores
    for release in costs.releases:
        work = rows * costs.row_s + TASKS_PER_CORE * workers * costs.task_s
        yield PlannedJob(
            release.name, release.jobs, release.jobs * (costs.job_s + work / workers), release.jobs * work / 3600
        )


def spark_costs(path: Path) -> SparkCosts | None:
    """Measured in a process of its own; nothing where Spark or Java is not installed."""
    command = [sys.executable, "-W", "ignore", "-m", "snugdp_studies.bench.scale.cluster", str(path)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if ran.returncode:
        return None
    found = json.loads(ran.stdout.splitlines()[-1])
    return SparkCosts(**{**found, "releases": tuple(Release(**each) for each in found["releases"])})


def main(arguments: Sequence[str]) -> None:
    """Measure, and print the costs."""
    path = Path(arguments[0])
    session = _session()
    try:
        sys.stdout.write(json.dumps(asdict(_measured(session, path))) + "\n")
    finally:
        session.stop()


def _measured(session: Any, path: Path) -> SparkCosts:
    table, layout = session.read.parquet(str(path)), line(path)
    work = GramPass(layout)
    names = list(layout.columns)
    one, many = (
        session.range(0, 20 * parts, 1, parts).selectExpr(*(f"double(id % 7) / 7 as {name}" for name in names))
        for parts in (1, _TASKS)
    )
    rows = table.count()
    measure(one, work)
    job = _spent(lambda: [measure(one, work) for _ in range(_TIMES)])[0] / _TIMES
    tasks = max(_spent(lambda: measure(many, work))[0] - job, 0.0) / _TASKS
    job_cpu = _spent(lambda: measure(one, work))[1]
    row = max(_spent(lambda: measure(table, work))[1] - job_cpu, 0.0) / rows
    releases = tuple(_released(session, table, name, ask) for name, ask in _asked(names).items())
    return SparkCosts(rows, len(names) - 1, job, tasks, row, releases)


def _asked(names: Sequence[str]) -> dict[str, Callable[[Any], object]]:
    columns: dict[str, Any] = {name: Number(-1, 1) for name in names[:-1]}
    line, label = {**columns, "y": Number(-1, 1)}, {**columns, "yes": Category([0, 1])}
    given: dict[str, Any] = {"column": names[0], "bounds": (-1, 1), "epsilon": 1, "noise": Simulation(1)}
    lines: dict[str, Any] = {"schema": Schema(line, target="y"), "noise": Simulation(1)}
    return {
        "mean": lambda table: snugdp.mean(table, **given),
        "median": lambda table: snugdp.median(table, **given),
        'LinearRegression(method="adassp")': lambda table: snugdp.LinearRegression(method="adassp", **lines).fit(table),
        "LinearRegression": lambda table: snugdp.LinearRegression(**lines).fit(table),
        "LogisticRegression": lambda table: snugdp.LogisticRegression(
            schema=Schema(label, target="yes"), noise=Simulation(1)
        ).fit(table),
    }


def _released(session: Any, table: Any, name: str, ask: Callable[[Any], object]) -> Release:
    context = session.sparkContext
    context.setJobGroup(name, name)
    wall = _spent(lambda: ask(table))[0]
    return Release(name, len(context.statusTracker().getJobIdsForGroup(name)), wall)


def _spent(job: Callable[[], object]) -> tuple[float, float]:
    start, begin = perf_counter(), family_seconds()
    job()
    return perf_counter() - start, family_seconds() - begin


def family_seconds() -> float:
    """Processor seconds of this process, of all that it started and those started, as Linux counts them."""
    parents, seconds = {}, {}
    ticks = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            parents[int(entry.name)] = int(after[1])
            seconds[int(entry.name)] = sum(map(int, after[11:15])) / ticks
    family, found = {os.getpid()}, True
    while found:
        more = {child for child, parent in parents.items() if parent in family} - family
        family, found = family | more, bool(more)
    return math.fsum(seconds.get(each, 0.0) for each in family)


def _session() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "1g")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


if __name__ == "__main__":
    main(sys.argv[1:])
