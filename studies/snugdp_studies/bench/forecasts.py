"""Whether forecasts come true: what a plan and a public sample expect of noise, and what fits of other rows show.

The sample is some rows of a table, and the fits are made on the others: what noise adds to their predictions is the
root mean square deviation among fits of the same rows, on all of these rows. Public bounds are the least and largest
values of the table, and spreads are known to one digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from snugdp.estimators.forecasts.forecast import forecast
from snugdp.estimators.linear import LinearRegression
from snugdp.noise import Simulation
from snugdp.tables.schema.schema import Number, Schema
from snugdp_studies.bench.bounds.tables import load

EPSILONS = (0.5, 1.0, 4.0)
BOUNDS = ("public", "none")
DELTA = 1e-6
FORECASTS = ("by_bounds", "by_spread", "by_sample")


@dataclass(frozen=True)
class ForecastCell:
    """What noise adds to predictions, in standard deviations of the target."""

    name: str
    rows: int
    width: int
    bounds: str
    epsilon: float
    by_bounds: float
    by_spread: float  # without public bounds there is none: as by bounds
    by_sample: float
    seen: float

    def comes_true(self, expected: float, factor: float = 2.0) -> bool:
        """Whether it is off by this factor at most; where all fits but one are refused, whether it says so."""
        if not math.isfinite(self.seen):
            return not math.isfinite(expected)
        return self.seen / factor <= expected <= self.seen * factor


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


def share(cells: Sequence[ForecastCell], how: str, factor: float) -> float:
    """Of the cells whose forecast comes true to this factor."""
    return sum(each.comes_true(getattr(each, how), factor) for each in cells) / len(cells)


def _forecasts(
    bounds: str, model: LinearRegression, public: pl.DataFrame, private: pl.DataFrame
) -> tuple[float, float, float]:
    """By bounds alone, by bounds and spreads, and by the sample."""
    declared, width = bounds == "public", private.width - 1
    options: dict[str, Any] = {"n_features": None if declared else width, "factors": (), "more": ()}
    rows, unit = (public, _spread(private)) if declared else ((public, "y"), 1.0)
    spread = _rounded_spreads(model.schema, private) if model.schema is not None else None
    given: Sequence[dict[str, Any]] = ({}, {"spread": spread}, {"sample": rows})
    plain, told, seen = (forecast(model, len(private), **options, **each).asked.error / unit for each in given)
    return plain, told, seen


def _rounded_spreads(schema: Schema, table: pl.DataFrame) -> dict[str, float]:
    """Standard deviations over the distance between bounds, to one digit, as somebody may know them in public."""
    widths = {name: float(2 * kind.half) for name, kind in schema.columns.items() if isinstance(kind, Number)}
    parts = {name: float(f"{table[name].to_numpy().std() / width:.1g}") for name, width in widths.items()}
    return {name: min(part, 0.5) for name, part in parts.items() if part > 0}


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
