"""Whether forecasts come true: what a plan and a public sample expect of noise, and what fits of other rows show.

The sample is some rows of a table, and the fits are made on the others: what noise adds to their predictions is the
root mean square deviation among fits of the same rows. Public bounds are the least and largest values of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from snugdp.estimators.forecast import forecast
from snugdp.estimators.linear import LinearRegression
from snugdp.noise import Simulation
from snugdp.tables.schema.schema import Number, Schema
from snugdp_studies.bench.bounds.tables import load

EPSILONS = (0.5, 1.0, 4.0)
BOUNDS = ("public", "none")
DELTA = 1e-6
_FACTOR = 2.0


@dataclass(frozen=True)
class ForecastCell:
    """What noise adds to predictions, in standard deviations of the target."""

    name: str
    rows: int
    width: int
    bounds: str
    epsilon: float
    by_bounds: float
    by_sample: float
    seen: float

    def comes_true(self, expected: float) -> bool:
        """Whether it is off by a factor of 2 at most."""
        return self.seen / _FACTOR <= expected <= self.seen * _FACTOR


def run(
    data: str, names: Sequence[str], *, rows: int = 5000, sample: int = 300, fits: int = 10
) -> Iterator[ForecastCell]:
    """Each table with each kind of bounds at each epsilon."""
    for name in names:
        X, y = load(data, name, rows + sample)
        columns = [f"x{place}" for place in range(X.shape[1])]
        whole = pl.DataFrame(X, schema=columns).with_columns(pl.Series("y", y))
        order = np.random.default_rng(len(y)).permutation(len(y))
        public, private = whole[order[:sample]], whole[order[sample:]]
        for bounds in BOUNDS:
            for epsilon in EPSILONS:
                model = LinearRegression(epsilon, DELTA, schema=_schema(whole) if bounds == "public" else None)
                expected, seen = _forecasts(bounds, model, public, private), _seen(bounds, model, private, fits)
                yield ForecastCell(name, len(private), len(columns), bounds, epsilon, *expected, seen)


def _forecasts(
    bounds: str, model: LinearRegression, public: pl.DataFrame, private: pl.DataFrame
) -> tuple[float, float]:
    """By bounds alone, and by the sample."""
    declared, width = bounds == "public", private.width - 1
    options: dict[str, Any] = {"n_features": None if declared else width, "factors": (), "more": ()}
    rows, unit = (public, _spread(private)) if declared else ((public, "y"), 1.0)
    plain = forecast(model, len(private), **options).asked.error / unit
    return plain, forecast(model, len(private), sample=rows, **options).asked.error / unit


def _seen(bounds: str, model: LinearRegression, private: pl.DataFrame, fits: int) -> float:
    said = [each for seed in range(100, 100 + fits) if (each := _said(model, private, bounds, seed)) is not None]
    if len(said) < 2:
        return math.inf  # too few rows to find bounds
    return float(np.sqrt(np.mean(np.var(said, axis=0, ddof=1)))) / _spread(private)


def _spread(table: pl.DataFrame) -> float:
    return float(table["y"].to_numpy().std())


def _said(model: LinearRegression, table: pl.DataFrame, bounds: str, seed: int) -> Any:
    made = LinearRegression(model.epsilon, DELTA, schema=model.schema, noise=Simulation(seed))
    fitted = made.fit(table) if bounds == "public" else made.fit(table, "y")
    return fitted.predict(table) if fitted.released_ else None


def _schema(table: pl.DataFrame) -> Schema:
    ends = {name: (float(table[name].to_numpy().min()), float(table[name].to_numpy().max())) for name in table.columns}
    return Schema({name: Number(low, max(high, low + 1e-9)) for name, (low, high) in ends.items()}, target="y")
