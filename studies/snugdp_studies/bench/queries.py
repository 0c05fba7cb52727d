"""How long a private query takes on millions of rows, beside the sort that any quantile needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from snugdp.queries.labels import mode, vote
from snugdp.queries.robust import median, quantile, trimmed_mean
from snugdp_studies.bench.contest.speed import Timing, timed

CATEGORIES = 20


def run(rows: int = 5_000_000, repeats: int = 5) -> list[Timing]:
    """Every query in turn, ``repeats`` times over, on the same made-up column."""
    return timed(f"{rows:,} rows", _jobs(rows), repeats)


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
