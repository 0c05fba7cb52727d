"""How long a private fit takes beside scikit-learn's on the same rows, in one run and on one thread."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from snugdp.estimators.linear import LinearRegression
from snugdp_studies.bench.contest.speed import Jobs, Timing, one_thread, timed
from snugdp_studies.bench.contest.tables import Floats
from snugdp_studies.bench.regression.methods import OURS
from snugdp_studies.bench.regression.task import TASK, made_up

RIDGE, HUBER = "scikit-learn Ridge", "scikit-learn HuberRegressor"
GOALS = (
    "Goals: at most 3 times Ridge for methods from sums of squares and products, at most 2 times HuberRegressor for "
    "robust ones, and little more for 30 proposals than for one."
)
_GRID = tuple(float(value) for value in np.geomspace(1, 1e5, 30))


def run(
    rows: int = 1_000_000, columns: int = 20, repeats: int = 3, methods: Sequence[str] | None = None
) -> list[Timing]:
    """Every fit in turn, ``repeats`` times over, with exact noise; the target has heavy tails."""
    wanted = [name for name in TASK.chosen(list(methods) if methods else None) if name in OURS]
    X, y = made_up(rows, columns)
    with one_thread():
        first = timed(f"{rows:,} x {columns}", _peers(X, y) | _ours(X, y, wanted), repeats, twice=True)
        grids = [row for name, jobs in _grids(X, y, wanted).items() for row in timed(name, jobs, repeats, twice=True)]
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
    told = {name: OURS[name] | ({"rows": len(y)} if "rows" in OURS[name] else {}) for name in wanted}
    jobs: dict[str, Callable[[], object]] = {name: partial(fit, X, y, **options) for name, options in told.items()}
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


def show(rows: Sequence[Timing], console: Console) -> None:
    """Print fit times and ratios."""
    console.print(GOALS, highlight=False)
    medians = {row.name: row.median_s for row in rows}
    main = Table(rows[0].group, "first, s", "fastest, s", "median, s", "over Ridge", "over Huber")
    grids = Table("proposals", "first, s", "fastest, s", "median, s", "over one proposal")
    for row in rows:
        if row.group == rows[0].group:
            main.add_row(row.name, *row.seconds, *(f"{row.median_s / medians[base]:.2f}" for base in (RIDGE, HUBER)))
        else:
            name = f"{row.group.removeprefix('proposals of ')}, {row.name}"
            grids.add_row(name, *row.seconds, f"{row.relative:.2f}")
    console.print(main)
    if grids.row_count:
        console.print(grids)
