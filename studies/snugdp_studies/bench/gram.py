"""How much exactness costs: whole-number moments beside ``X.T @ X`` on the same rows, in one run.

Set OPENBLAS_NUM_THREADS=1 before the program starts, as ``make bench`` does: numpy reads it once.
"""

import gzip
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.tables.engines import Local, measure
from snugdp.tables.passes.vectors.moments import GramPass, Moments
from snugdp.tables.rowmap import RowMap
from snugdp.tables.schema.schema import Number, Schema
from snugdp.tables.sources import Csv, open_source
from snugdp.tables.sources.base import Batch, UndividedSource
from snugdp_studies.bench.contest.speed import Jobs, Timing, peak_megabytes, timed

Floats = NDArray[np.float64]

PARTS = ("memory", "stream", "growth", "files")
IN_MEMORY = ((1_000_000, 20), (200_000, 100))
STREAMED = (5_000_000, 20)
GENERATED = (5_000_000, 50_000_000)
_STEP = 100_000


def run(parts: Sequence[str] = PARTS, repeats: int = 7) -> list[Timing]:
    """The contenders of every part, in turn, ``repeats`` times over, so that a busy moment hits all of them alike."""
    measured: dict[str, Callable[[], list[Timing]]] = {
        "memory": lambda: in_memory(repeats),
        "stream": lambda: streamed(repeats),
        "growth": growth,
        "files": lambda: from_files(min(repeats, 3)),
    }
    if not set(parts) <= set(PARTS):
        raise ValueError(f"parts are {', '.join(PARTS)}")
    return [row for part in parts for row in measured[part]()]


def threads() -> str:
    """The BLAS setting under which the numbers were taken."""
    return f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS', 'not set')}"


def in_memory(repeats: int = 7, sizes: Sequence[tuple[int, int]] = IN_MEMORY) -> list[Timing]:
    """A float64 matrix in memory: rows within bounds, and rows nearly all of which are shortened."""
    return [row for n, d in sizes for row in timed(f"{n:,} x {d} in memory", _memory_jobs(n, d), repeats)]


def _memory_jobs(n: int, d: int) -> Jobs:
    X, y = numbers(n, d) / d**0.5, numbers(n, 1)[:, 0]
    far = X * 10
    alone, with_target = RowMap(d, 1, target_bound=0), RowMap(d, 1)
    return {
        "X'X in floats": lambda: X.T @ X,
        "X'X exactly": lambda: exact(alone, X, None),
        "X'X exactly, rows shortened": lambda: exact(alone, far, None),
        "X'X, X'y, y'y in floats": lambda: (X.T @ X, X.T @ y, y @ y),
        "X'X, X'y, y'y exactly": lambda: exact(with_target, X, y),
        "X'X, X'y, y'y exactly, rows shortened": lambda: exact(with_target, far, y),
        **_ridge(X, y),
    }


def _ridge(X: Floats, y: Floats) -> Jobs:
    try:
        linear: Any = importlib.import_module("sklearn.linear_model")
    except ImportError:
        return {}
    return {
        "scikit-learn Ridge": lambda: linear.Ridge(fit_intercept=False).fit(X, y),
        "scikit-learn Ridge with intercept": lambda: linear.Ridge().fit(X, y),
    }


def exact(row_map: RowMap, X: Floats, y: Floats | None) -> Moments:
    """The exact moments of a matrix in memory."""
    moments = Moments(row_map.limits)
    for V, w in row_map.blocks(X, y):
        moments.add(V, V, w)
    return moments


def numbers(n: int, d: int, start: int = 0) -> Floats:
    """Made-up numbers, evenly spread over [-1, 1] and out of order."""
    spread: Floats = (np.arange(start * d, (start + n) * d, dtype=np.float64) * 0.6180339887498949) % 1.0
    return (spread * 2 - 1).reshape(n, d)


def streamed(repeats: int = 3, rows: int = STREAMED[0], d: int = STREAMED[1]) -> list[Timing]:
    """A Parquet file read by Polars in batches: decoded only, multiplied in floats, and exactly."""
    work = GramPass(schema(d))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        parts = (table(min(_STEP, rows - start), d, start).lazy() for start in range(0, rows, _STEP))
        pl.concat(parts).sink_parquet(path)
        jobs: Jobs = {
            "Polars and X'X in floats": lambda: _float_stream(path, d),
            "exactly, one thread": lambda: Local(threads=1, progress=False).run(open_source(path), work),
            "exactly, every core": lambda: measure(path, work, progress=False),
        }
        return timed(f"{rows:,} x {d} streamed from Parquet", jobs, repeats)


def _float_stream(path: Path, d: int) -> Floats:
    gram = np.zeros((d, d))
    for batch in pl.scan_parquet(path).collect_batches(maintain_order=False, lazy=True):
        X = batch.to_numpy()
        gram += X.T @ X
    return gram


def from_files(repeats: int = 3, rows: int = 500_000, d: int = 20) -> list[Timing]:
    """One exact pass over the same rows in different files: what a format costs.

    Parquet, and CSV as it is, with every cell in quotes, gzipped, and line by line with quotes inside cells.
    """
    work = GramPass(schema(d))
    with tempfile.TemporaryDirectory() as folder:
        jobs = {
            name: partial(measure, path, work, progress=False) for name, path in _files(Path(folder), rows, d).items()
        }
        return timed(f"{rows:,} x {d} from a file", jobs, repeats)


def _files(folder: Path, rows: int, d: int) -> dict[str, Path | Csv]:
    values = table(rows, d, 0)
    names = {
        "Parquet": "rows.parquet",
        "Arrow": "rows.arrow",
        "CSV": "rows.csv",
        "CSV, every cell in quotes": "quoted.csv",
        "CSV, gzipped": "rows.csv.gz",
        "CSV, quotes inside cells": "irregular.csv",
    }
    paths = {name: folder / file for name, file in names.items()}
    values.write_parquet(paths["Parquet"])
    values.write_ipc(paths["Arrow"])
    values.write_csv(paths["CSV"])
    values.write_csv(paths["CSV, every cell in quotes"], quote_style="always")
    with paths["CSV"].open("rb") as plain, gzip.open(paths["CSV, gzipped"], "wb", compresslevel=1) as packed:
        shutil.copyfileobj(plain, packed)
    inches = values.with_columns(note=pl.lit('5" pipe'))
    inches.write_csv(paths["CSV, quotes inside cells"], quote_style="never")
    return {**paths, "CSV, quotes inside cells": Csv(paths["CSV, quotes inside cells"], multiline=False)}


def growth(rows: Sequence[int] = GENERATED, d: int = STREAMED[1]) -> list[Timing]:
    """Time and peak memory of a pass over generated rows, each in a process of its own."""
    found: list[Timing] = []
    for n in rows:
        code = f"import snugdp_studies.bench.gram as g; g.report_generated({n}, {d})"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds, peak = (float(part) for part in ran.stdout.split())
        base = found[0].median_s if found else seconds
        found.append(Timing(f"generated rows x {d}", f"{n:,} rows", seconds, seconds, seconds, seconds / base, peak))
    return found


def report_generated(rows: int, d: int) -> None:
    """Print the seconds and the peak megabytes of one pass over generated rows: the inside of ``growth``."""
    source, work = Generated(rows, d), GramPass(schema(d))
    measure(Generated(_STEP, d), work, progress=False)
    start = perf_counter()
    measure(source, work, progress=False)
    seconds = perf_counter() - start
    sys.stdout.write(f"{seconds} {peak_megabytes()}\n")


class Generated(UndividedSource):
    """Rows made up as they are read: slices of one table at different places, so that making them costs nothing."""

    name = "the generated table"

    def __init__(self, rows: int, d: int) -> None:
        self._rows, self._table = rows, nw.from_native(table(2 * _STEP, d, 0), eager_only=True)
        self.types = dict(self._table.schema)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows."""
        for start in range(0, self._rows, _STEP):
            first = start // 7 % _STEP
            yield Batch(self._table[first : first + min(_STEP, self._rows - start)].select(*columns))


def schema(d: int) -> Schema:
    """Columns x0, x1, ... between -1 and 1."""
    return Schema({f"x{j}": Number(-1, 1) for j in range(d)}, intercept=False)


def table(n: int, d: int, start: int) -> Any:
    """Made-up rows, the same for the same ``start``."""
    return pl.DataFrame(numbers(n, d, start), schema=[f"x{j}" for j in range(d)], orient="row")
