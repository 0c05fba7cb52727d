"""How long a private query takes on millions of rows, beside the sort that any quantile needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median as middle
from time import perf_counter
from typing import Any

import numpy as np

from snugdp.queries.columns import median, quantile, trimmed_mean
from snugdp.queries.labels import mode, vote

CATEGORIES = 20


@dataclass(frozen=True)
class Row:
    """One query: seconds, and the median as a multiple of ``numpy.sort`` on the same column."""

    name: str
    min_s: float
    median_s: float
    relative: float


def run(rows: int = 5_000_000, repeats: int = 5) -> list[Row]:
    """Time every query in turn, ``repeats`` times over, on the same made-up column."""
    jobs = _jobs(rows)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            start = perf_counter()
            job()
            times[name].append(perf_counter() - start)
    unit = middle(next(iter(times.values())))
    return [Row(name, min(taken), middle(taken), middle(taken) / unit) for name, taken in times.items()]


def _jobs(rows: int) -> dict[str, Callable[[], object]]:
    values = (np.arange(rows, dtype=np.float64) * 0.6180339887498949) % 1 * 100  # evenly spread, out of order
    labels = (values * 7919).astype(np.int64) % CATEGORIES
    common: dict[str, Any] = {"bounds": (0, 100), "epsilon": 1, "delta": 1e-6, "neighbours": "replace"}
    listed: dict[str, Any] = {"epsilon": 1, "neighbours": "replace"}
    categories = list(range(CATEGORIES))
    return {
        "numpy.sort": lambda: np.sort(values),
        "median": lambda: median(values, **common),
        "quantile": lambda: quantile(values, 0.9, **common),
        "trimmed mean, beta given": lambda: trimmed_mean(values, **common, beta=50 / rows),
        "mode": lambda: mode(labels, categories=categories, delta=1e-6, **listed),
        "vote": lambda: vote(labels, candidates=categories, **listed),
    }
