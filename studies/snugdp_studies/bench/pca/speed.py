"""How long private principal components take beside scikit-learn's on the same rows, in one run and on one thread."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from snugdp.estimators.pca.pca import PCA
from snugdp_studies.bench.contest.speed import Timing, one_thread, timed
from snugdp_studies.bench.contest.tables import Floats, spread

SKLEARN = "scikit-learn PCA"
GOAL = "Goal: at most 3 times scikit-learn's PCA."


def run(rows: int = 1_000_000, columns: int = 20, repeats: int = 3) -> list[Timing]:
    """Every fit in turn, ``repeats`` times over and twice in a row, with exact noise."""
    X, _ = spread(rows, columns)
    decomposition: Any = importlib.import_module("sklearn.decomposition")
    k = min(5, columns - 1)
    jobs: dict[str, Callable[[], object]] = {SKLEARN: lambda: decomposition.PCA(k).fit(X)}
    for method in ("crossing", "gauss", "projector", "dual"):
        jobs[method] = partial(_fit, X, k, method=method)
    jobs["crossing, k chosen"] = partial(_fit, X, "auto", method="crossing")
    jobs["crossing, private mean"] = partial(_fit, X, k, method="crossing", center="private")
    with one_thread():
        return timed(f"{rows:,} x {columns}", jobs, repeats, twice=True)


def _fit(X: Floats, n_components: int | str, **options: Any) -> PCA:
    return PCA(n_components, epsilon=1, delta=1e-6, x_norm=1, **options).fit(X)
