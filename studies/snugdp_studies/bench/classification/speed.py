"""How long a private fit takes beside scikit-learn's on the same rows, in one run and on one thread."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from snugdp.estimators.logistic import LogisticRegression
from snugdp_studies.bench.classification.task import Labels, made_up
from snugdp_studies.bench.contest.speed import Timing, one_thread, table, timed
from snugdp_studies.bench.contest.tables import Floats

GOAL = "Goal: at most 3 times scikit-learn's LogisticRegression for auto."
_METHODS = ("auto", "objective", "output")


def run(
    rows: int = 1_000_000, columns: int = 20, repeats: int = 2, methods: Sequence[str] | None = None
) -> list[Timing]:
    """Every fit in turn, ``repeats`` times over, with exact noise; with an intercept."""
    X, y = made_up(rows, columns)
    linear: Any = importlib.import_module("sklearn.linear_model")
    jobs: dict[str, Callable[[], object]] = {
        "scikit-learn (lbfgs)": lambda: linear.LogisticRegression().fit(X, y),
        "scikit-learn (newton-cholesky)": lambda: linear.LogisticRegression(solver="newton-cholesky").fit(X, y),
    }
    jobs |= {name: partial(fit, X, y, method=name) for name in _METHODS if methods is None or name in methods}
    with one_thread():
        return timed(f"{rows:,} x {columns}", jobs, repeats, twice=True)


def fit(X: Floats, y: Labels, **options: Any) -> LogisticRegression:
    """One private fit."""
    model: LogisticRegression = LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], x_norm=1, **options).fit(X, y)
    return model


def show(rows: Sequence[Timing], console: Console) -> None:
    """Print fit times and ratios."""
    console.print(GOAL, highlight=False)
    console.print(table(rows, "scikit-learn"))
