"""Layer I seen from outside: no release of the library repeats the noise of another one."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

import snugdp
from snugdp.audit.finding import Finding
from snugdp.audit.freshness.repeats import fresh, fresh_models, power
from snugdp_studies.audit.side_channels.entry_points import LEDGER


def fresh_library() -> list[Finding]:
    """Releases of a query, of regressions and of components; and the check that noise drawn twice would be found."""
    found = [power(), *fresh("trimmed_mean", example, spawn=example)]
    X, y = np.eye(3)[np.arange(30) % 3], np.arange(30) % 2
    line = snugdp.LinearRegression(method="adassp", x_norm=1, y_bound=1, ledger=LEDGER)
    odds = snugdp.LogisticRegression(method="objective", x_norm=1, classes=[0, 1], ledger=LEDGER)
    axes = snugdp.PCA(1, method="gauss", x_norm=1, ledger=LEDGER)
    models = {"LinearRegression": (line, "coef_"), "LogisticRegression": (odds, "coef_"), "PCA": (axes, "components_")}
    for name, (model, released) in models.items():

        def fit(model: Any, released: str = released) -> Any:
            return getattr(model.fit(X, y), released)

        found += fresh(name, lambda model=model, fit=fit: fit(copy.copy(model)))  # type: ignore[misc]
        found.append(fresh_models(name, model, fit))
    return found


def example() -> float:
    """A release of a number with many random bits, for processes that know nothing else."""
    outcome = snugdp.trimmed_mean([0.5] * 100, bounds=(0, 1), epsilon=1, ledger=LEDGER)
    return float(outcome.value) if outcome.value is not None else math.nan
