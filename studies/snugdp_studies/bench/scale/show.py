"""The tables that ``snugdp bench scale`` prints."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from snugdp_studies.bench.scale import cluster
from snugdp_studies.bench.scale.process import JobSpent
from snugdp_studies.bench.scale.run import COLUMNS, SHOWN, GramRatio, JobPair, csv, grams, growth, medians, models
from snugdp_studies.cli.shared import say, table

PARTS = ("models", "gram", "csv", "median", "spark")
_GROWTH_GOAL = 1.05  # processor seconds for each time the rows


@dataclass(frozen=True)
class ScaleSizes:
    """Rows of tables, values of columns, and how often each job is run."""

    rows: Sequence[int]
    values: Sequence[int]
    repeats: int


def show(console: Console, parts: Sequence[str], sizes: ScaleSizes, folder: Path | None) -> None:
    """Measure these parts, and print each when it is there. Files are made in a folder, and kept if it is given."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        _show(console, parts, sizes, folder)
        return
    with tempfile.TemporaryDirectory() as made:
        _show(console, parts, sizes, Path(made))


def _show(console: Console, parts: Sequence[str], sizes: ScaleSizes, folder: Path) -> None:
    if "models" in parts:
        found = list(models(folder, sizes.rows, sizes.repeats))
        _pairs(console, f"rows x {COLUMNS}", found)
        _growth(console, found)
    if "gram" in parts:
        _grams(console, list(grams(max(sizes.rows), max(sizes.repeats, 5))))
    if "csv" in parts:
        _pairs(console, f"rows x {COLUMNS}", list(csv(folder, min(sizes.rows), sizes.repeats)))
    if "median" in parts:
        asked = list(medians(folder, sizes.values, sizes.repeats))
        _pairs(console, "values", asked)
        _growth(console, asked)
    if "spark" in parts:
        _spark(console, folder, min(sizes.rows))


def _pairs(console: Console, size: str, found: Sequence[JobPair]) -> None:
    heads = ("file", size, "job", "CPU-s", "s", "peak, MB", "over", "ratio", "goal")
    lines = []
    for pair in found:
        goal = "" if math.isinf(pair.versus.goal) else f"{pair.versus.goal:g}"
        shared = pair.file, f"{pair.rows:,}"
        lines.append((
            *shared, SHOWN[pair.versus.private], *_numbers(pair.private), SHOWN[pair.versus.plain],
            f"{pair.ratio:.2f}", goal,
        ))  # fmt: skip
        lines.append((*shared, SHOWN[pair.versus.plain], *_numbers(pair.plain), "", "", ""))
    console.print(table(heads, dict.fromkeys(lines)))


def _numbers(spent: JobSpent) -> tuple[str, str, str]:
    return f"{spent.cpu_s:.2f}", f"{spent.wall_s:.2f}", f"{spent.peak_mb:.0f}"


def _growth(console: Console, found: Sequence[JobPair]) -> None:
    lines = [
        (SHOWN[name], f"{times:g}", f"{cpu:.2f}", f"{_GROWTH_GOAL * times:g}", f"{peak:.2f}")
        for name, (times, cpu, peak) in growth(found).items()
    ]
    if lines:
        console.print(table(("growth", "rows, times", "CPU-s, times", "goal", "peak, times"), lines))


def _grams(console: Console, found: Sequence[GramRatio]) -> None:
    heads = ("X'X, X'y, y'y exactly, in memory", "columns", "over X'X in floats", "goal")
    console.print(table(heads, ((f"{r.rows:,} rows", str(r.columns), f"{r.ratio:.2f}", f"{r.goal:g}") for r in found)))


def _spark(console: Console, folder: Path, rows: int) -> None:
    path = folder / f"rows-{rows}.parquet"
    if not path.exists():
        from snugdp_studies.bench.scale.work import write_rows

        write_rows(path, rows, COLUMNS)
    costs = cluster.spark_costs(path)
    if costs is None:
        say(console, "Spark, or the Java that it needs, is not installed: nothing is said of clusters.")
        return
    heads: tuple[str, ...] = ("Spark, local", "seconds")
    console.print(
        table(
            heads,
            (
                ("a job beside its rows", f"{costs.job_s:.3f}"),
                ("a partition more", f"{costs.task_s:.4f}"),
                (f"a million rows x {costs.columns}, processor seconds", f"{1e6 * costs.row_s:.3f}"),
            ),
        )
    )
    heads = (f"Spark, {costs.rows:,} rows", "jobs", "s")
    console.print(table(heads, ((r.name, str(r.jobs), f"{r.wall_s:.1f}") for r in costs.releases)))
    heads = (
        f"planned: {cluster.ROWS:.0e} rows x {costs.columns}, {cluster.MACHINES} machines of {cluster.CORES} cores",
        "jobs", "minutes", "core hours",
    )  # fmt: skip
    console.print(
        table(
            heads,
            ((p.name, str(p.jobs), f"{p.wall_s / 60:.1f}", f"{p.core_hours:.0f}") for p in cluster.planned(costs)),
        )
    )
