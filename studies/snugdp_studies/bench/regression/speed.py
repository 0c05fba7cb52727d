"""How long a private fit takes beside scikit-learn's on the same rows, in one run and on one thread."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from snugdp.estimators.linear import LinearRegression
from snugdp_studies.bench.gram import Jobs
from snugdp_studies.bench.regression.contest import one_thread
from snugdp_studies.bench.regression.data import Floats, made_up
from snugdp_studies.bench.regression.methods import chosen

RIDGE, HUBER = "scikit-learn Ridge", "scikit-learn HuberRegressor"
GOALS = (
    "Goals: at most 3 times Ridge for methods from sums of squares and products, at most 2 times HuberRegressor for "
    "robust ones, and little more for 30 proposals than for one."
)
_GRID = tuple(float(value) for value in np.geomspace(1, 1e5, 30))
_METHODS: dict[str, dict[str, Any]] = {
    "auto": {"method": "auto"},
    "objective": {"method": "objective"},
    "objective-scale": {"method": "objective", "proposals": {"rule": "scale"}},
    "objective-two-stage": {"method": "objective", "proposals": {"rule": "two_stage"}},
    "sufficient": {"method": "sufficient"},
    "posterior": {"method": "posterior"},
    "ops_balanced": {"method": "ops_balanced"},
    "adaops": {"method": "adaops"},
    "output": {"method": "output"},
    "adassp": {"method": "adassp"},
    "descent": {"method": "descent"},
}
_NEED_ROWS = ("ops_balanced", "descent")


@dataclass(frozen=True)
class Row:
    """One contender: the first fit of the process, which calibrates and loads what later ones find, and later fits.

    ``relative``: the median multiple of the group's first contender in the same turn.
    """

    group: str
    name: str
    first_s: float
    min_s: float
    median_s: float
    relative: float


def run(rows: int = 1_000_000, columns: int = 20, repeats: int = 3, methods: Sequence[str] | None = None) -> list[Row]:
    """Every fit in turn, ``repeats`` times over, with exact noise; the target has heavy tails."""
    wanted = [name for name in chosen(list(methods) if methods else None) if name in _METHODS]
    X, y = made_up(rows, columns)
    with one_thread():
        first = timed(f"{rows:,} x {columns}", _peers(X, y) | _ours(X, y, wanted), repeats)
        grids = [row for name, jobs in _grids(X, y, wanted).items() for row in timed(name, jobs, repeats)]
    return first + grids


def fit(X: Floats, y: Floats, **options: Any) -> LinearRegression:
    """One private fit without an intercept unless asked for."""
    wish = {"epsilon": 1, "delta": 1e-6, "x_norm": 1, "y_bound": 2, "fit_intercept": False} | options
    return LinearRegression(**wish).fit(X, y)


def _peers(X: Floats, y: Floats) -> dict[str, Callable[[], object]]:
    linear: Any = importlib.import_module("sklearn.linear_model")
    return {
        RIDGE: lambda: linear.Ridge(fit_intercept=False).fit(X, y),
        f"{RIDGE} with intercept": lambda: linear.Ridge().fit(X, y),
        HUBER: lambda: linear.HuberRegressor(fit_intercept=False).fit(X, y),
    }


def _ours(X: Floats, y: Floats, wanted: Sequence[str]) -> dict[str, Callable[[], object]]:
    guess = {name: {"rows": len(y)} if name in _NEED_ROWS else {} for name in wanted}
    jobs: dict[str, Callable[[], object]] = {
        name: partial(fit, X, y, **_METHODS[name], **guess[name]) for name in wanted
    }
    if "auto" in wanted:
        jobs["auto with intercept"] = partial(fit, X, y, fit_intercept=True)
    return jobs


def _grids(X: Floats, y: Floats, wanted: Sequence[str]) -> dict[str, Jobs]:
    """One proposal beside thirty, of which the best is taken."""
    public = made_up(10_000, X.shape[1])
    found: dict[str, Jobs] = {}
    for name, options in (("sufficient", {"validation": public}), ("posterior", {})):
        if name in wanted:
            found[f"proposals of {name}"] = {
                "1 ridge": partial(fit, X, y, method=name, proposals={"ridge": _GRID[15:16]}, **options),
                "30 ridges": partial(fit, X, y, method=name, proposals={"ridge": _GRID}, **options),
            }
    return found


def timed(group: str, jobs: Jobs, repeats: int) -> list[Row]:
    """Every job in turn, ``repeats`` times over: twice in a row each time, of which the second counts.

    What a job pays for the memory that the one before it gave back is no part of a fit.
    """
    cold: dict[str, float] = {}
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            start = perf_counter()
            job()
            middle = perf_counter()
            job()
            times[name].append(perf_counter() - middle)
            cold.setdefault(name, middle - start)
    units = next(iter(times.values()))
    over = {name: median(t / unit for t, unit in zip(taken, units, strict=True)) for name, taken in times.items()}
    return [Row(group, name, cold[name], min(taken), median(taken), over[name]) for name, taken in times.items()]
