"""What is asked of every engine, to fill the table "What runs where" of docs/tables.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.naive_bayes import GaussianNB

import snugdp
from snugdp import Number, Schema, Simulation
from snugdp.tables.losses.losses import SoftHinge

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
ENGINES = ("frame", "Parquet file", "DuckDB", "Spark")
RNG = np.random.default_rng(5)
POINTS = RNG.uniform(-1, 1, (300, 2))
TABLE = pl.DataFrame(
    {
        "a": POINTS[:, 0],
        "b": POINTS[:, 1],
        "y": np.clip(POINTS[:, 0] - POINTS[:, 1], -1, 1),
        "yes": np.where(POINTS[:, 0] > 0, "y", "n"),
        "visits": RNG.poisson(2, 300),
        "shop": RNG.choice(["Rome", "Oslo"], 300),
    }
)
NUMBERS: dict[str, Any] = {"a": Number(-1, 1), "b": Number(-1, 1)}
LINE = Schema({**NUMBERS, "y": Number(-1, 1)}, target="y")
LABEL = Schema({**NUMBERS, "yes": snugdp.Category(["n", "y"])}, target="yes")
COUNT = Schema({**NUMBERS, "visits": Number(0, 20)}, target="visits")
Ask = Callable[[Any], Any]


def _query(function: Any, **given: Any) -> Ask:
    return lambda data: str(function(data, epsilon=1, noise=Simulation(3), **given).value)


def _fit(kind: Any, *given: Any, **more: Any) -> Ask:
    def ask(data: Any) -> Any:
        model = kind(*given, noise=Simulation(3), **more).fit(data)
        shown = ("coef_", "components_", "scale_", "bounds_", "categories_", "selected_names_")
        return str([getattr(model, name) for name in shown if hasattr(model, name)] or model.outcome_)

    return ask


def _scored(data: Any) -> str:
    model = snugdp.LogisticRegression(schema=LABEL, method="output", noise=Simulation(1)).fit(TABLE)
    return str(snugdp.score(model, data, epsilon=1, noise=Simulation(3)).value)


def _taught(data: Any) -> str:
    model = snugdp.PATEClassifier(GaussianNB(), GaussianNB(), 20, classes=["n", "y"], noise=Simulation(3))
    return str(model.fit(data, "yes", queries=TABLE.select("a", "b")[:9]).outcome_)


A: dict[str, Any] = {"column": "a", "bounds": (-1, 1)}
ASKED: dict[str, Ask] = {
    "count": _query(snugdp.count),
    "sum": _query(snugdp.sum, **A),
    "mean": _query(snugdp.mean, **A),
    "variance": _query(snugdp.variance, **A),
    "standard_deviation": _query(snugdp.standard_deviation, **A),
    "covariance": _query(snugdp.covariance, columns=("a", "b"), bounds=((-1, 1), (-1, 1))),
    "correlation": _query(snugdp.correlation, columns=("a", "b"), bounds=((-1, 1), (-1, 1))),
    "proportion": _query(snugdp.proportion, column="shop", values=["Rome"]),
    "histogram": _query(snugdp.histogram, column="a", edges=[-1, 0, 1]),
    "median": _query(snugdp.median, **A),
    "quantile": _query(snugdp.quantile, q=0.3, **A),
    "quantiles": _query(snugdp.quantiles, q=[0.3, 0.6], **A),
    "quantile_table": _query(snugdp.quantile_table, **A),
    "quantile_interval": _query(snugdp.quantile_interval, q=0.5, **A),
    "interquartile_range": _query(snugdp.interquartile_range, **A),
    "minimum": _query(snugdp.minimum, **A),
    "maximum": _query(snugdp.maximum, **A),
    "trimmed_mean": _query(snugdp.trimmed_mean, delta=1e-6, **A),
    "mode": _query(snugdp.mode, column="shop", delta=1e-6, categories=["Rome", "Oslo"]),
    "private_bounds": _query(snugdp.private_bounds, columns=["a", "b"]),
    "group_by": _query(snugdp.group_by, by="shop", keys=["Rome", "Oslo"]),
    "describe": _query(snugdp.describe, schema=LINE),
    "score": _scored,
    "LinearRegression": _fit(snugdp.LinearRegression, schema=LINE),
    "LogisticRegression": _fit(snugdp.LogisticRegression, schema=LABEL),
    "PoissonRegression": _fit(snugdp.PoissonRegression, schema=COUNT),
    "GLM": _fit(snugdp.GLM, SoftHinge(), schema=LABEL),
    "AdditiveRegressor": _fit(snugdp.AdditiveRegressor, schema=LINE),
    "AdditiveClassifier": _fit(snugdp.AdditiveClassifier, schema=LABEL),
    "SparseLinearRegression": _fit(snugdp.SparseLinearRegression, 1, schema=LINE),
    "SparseLogisticRegression": _fit(snugdp.SparseLogisticRegression, 1, schema=LABEL),
    "PCA": _fit(snugdp.PCA, 1, schema=Schema(NUMBERS)),
    "PATEClassifier": _taught,
    "StandardScaler": _fit(snugdp.StandardScaler, schema=Schema(NUMBERS)),
    "OneHotEncoder": _fit(snugdp.OneHotEncoder, schema=Schema({"shop": snugdp.Category()})),
    "Prepare": _fit(snugdp.Prepare, schema=Schema(NUMBERS)),
}


def runs(ask: Ask, data: Any) -> bool:
    """Whether it gives what it gives in memory; or else it must say so before it reads anything."""
    here = ask(TABLE)
    try:
        there = ask(data)
    except (TypeError, ValueError):
        return False
    assert there == here
    return True


def documented() -> dict[str, dict[str, bool]]:
    """The table of the page: for every name, on which engines it runs."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    found = [row for row in rows if row[0].strip("`") in ASKED and len(row) == 1 + len(ENGINES)]
    return {name.strip("`"): {e: mark == "yes" for e, mark in zip(ENGINES, m, strict=True)} for name, *m in found}


def column_of(data: Any) -> dict[str, bool]:
    """What the page should say of one engine."""
    return {name: runs(ask, data) for name, ask in ASKED.items()}


def table(columns: Iterable[dict[str, bool]]) -> str:
    """The table for the page."""
    marks = list(columns)
    head = [f"| | {' | '.join(ENGINES)} |", "|---" * (1 + len(ENGINES)) + "|"]
    lines = (f"| `{name}` | {' | '.join('yes' if one[name] else 'no' for one in marks)} |" for name in ASKED)
    return "\n".join([*head, *lines])
