"""Whether rows should be whitened for the fit: lines by the default and by ``method="whitened"``, beside least squares.

On made-up tables the error is the distance of a fitted line from the true one, at rows that were not fitted on, over
the spread of the truth; intercepts are left out, as a robust line has its own. On real tables it is R² on held-out
rows. Public bounds on real tables are their least and largest values, or as many times wider as is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from snugdp.estimators.linear import LinearRegression
from snugdp.noise import Simulation
from snugdp.tables.schema.schema import Number, Schema
from snugdp_studies.bench.bounds.tables import load
from snugdp_studies.bench.inference import DELTA, Floats, Population

METHODS = ("adaptive", "whitened")
DESIGNS = (
    Population("few rows", 500, 2, 1.0),
    Population("plain", 2000, 3, 1.0),
    Population("plain", 5000, 5, 1.0),
    Population("plain", 5000, 5, 0.5),
    Population("wide", 2000, 15, 1.0),
    Population("many columns", 20_000, 15, 1.0),
    Population("heteroskedastic", 20_000, 10, 1.0, errors="heteroskedastic"),
    Population("heavy tails", 20_000, 5, 1.0, errors="heavy"),
    Population("skewed errors", 2000, 3, 1.0, errors="lognormal"),
    Population("collinear", 2000, 5, 1.0, columns="collinear"),
    Population("collinear", 20_000, 5, 1.0, columns="collinear"),
    Population("skewed columns", 10_000, 6, 1.0, columns="skewed"),
    Population("powers of x", 10_000, 5, 1.0, columns="powers"),
    Population("rare levels", 20_000, 8, 1.0, columns="rare levels"),
    Population("x bounds 5 times too wide", 2000, 5, 1.0, wide=(5.0, 1.0)),
    Population("x bounds 20 times too wide", 20_000, 5, 1.0, wide=(20.0, 1.0)),
    Population("y bounds 20 times too wide", 20_000, 5, 1.0, wide=(1.0, 20.0)),
    Population("no bounds", 2000, 5, 1.0, wide=None),
    Population("no bounds", 5000, 5, 1.0, wide=None),
    Population("no bounds, many columns", 5000, 20, 1.0, wide=None),
    Population("no bounds, skewed columns", 10_000, 6, 1.0, columns="skewed", wide=None),
    Population("no bounds, collinear", 5000, 5, 1.0, columns="collinear", wide=None),
    Population("few rows", 1500, 8, 0.1),
    Population("few rows", 300, 3, 0.5),
    Population("few rows, y bounds 5 times too wide", 2000, 8, 0.1, wide=(1.0, 5.0)),
    Population("few rows, collinear", 3000, 10, 0.1, columns="collinear"),
)
BOUNDS = ("tight", "5 times too wide", "none")
_FRESH = 4000  # rows to measure on


@dataclass(frozen=True)
class WhitenedRow:
    """What came of a design or table: the error of least squares, then of each method; ``wins``: of the second."""

    name: str
    rows: int
    width: int
    epsilon: float
    bounds: str
    errors: tuple[float, ...]
    wins: float


def run(repeats: int, designs: Sequence[Population] = DESIGNS, seed: int = 1) -> Iterator[WhitenedRow]:
    """Each design: root mean squares over all tables."""
    for place, design in enumerate(designs):
        squares = np.array([_one(design, np.random.default_rng([seed, place, turn]), turn) for turn in range(repeats)])
        errors = tuple(np.sqrt(squares.mean(axis=0)).tolist())
        bounds = "none" if design.wide is None else "public"
        wins = float((squares[:, 2] < squares[:, 1]).mean())
        yield WhitenedRow(design.name, design.rows, design.width, design.epsilon, bounds, errors, wins)


def _one(design: Population, generator: np.random.Generator, seed: int) -> list[float]:
    """Squared errors of slopes, over the variance of the truth."""
    X, y = design.draw(generator)
    names = [f"x{place}" for place in range(design.width)]
    schema = None
    if design.wide is not None:
        across, up = design.wide
        columns: dict[str, Any] = dict.fromkeys(names, Number(-across, across))
        schema = Schema({**columns, "y": Number(-8 * up, 8 * up)}, target="y")
    table = pl.DataFrame(X, schema=names).with_columns(pl.Series("y", y))
    found = [np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0][:-1]]
    found += [np.asarray(_fitted(method, table, schema, design.epsilon, seed).coef_) for method in METHODS]
    fresh = design.drawn_columns(generator, _FRESH)
    fresh = fresh - fresh.mean(axis=0)
    return [float(np.mean((fresh @ (each - design.slopes)) ** 2) / np.var(fresh @ design.slopes)) for each in found]


def _fitted(method: str, table: pl.DataFrame, schema: Schema | None, epsilon: float, seed: int) -> LinearRegression:
    made = LinearRegression(epsilon, DELTA, method=method, schema=schema, noise=Simulation(seed))
    return made.fit(table, "y") if schema is None else made.fit(table)


def run_tables(
    data: str, names: Sequence[str], repeats: int, *, rows: int = 2000, epsilon: float = 1.0
) -> Iterator[WhitenedRow]:
    """Each table of a folder, or of a made-up kind, with each kind of bounds: means of R² on a fifth of its rows."""
    for name in names:
        X, y = load(data, name, rows)
        for bounds in BOUNDS:
            seen = np.array([_held_out(X, y, bounds, epsilon, turn) for turn in range(repeats)])
            means, wins = tuple(seen.mean(axis=0).tolist()), float((seen[:, 2] > seen[:, 1]).mean())
            yield WhitenedRow(name, len(y) * 4 // 5, X.shape[1], epsilon, bounds, means, wins)


def _held_out(X: Floats, y: Floats, bounds: str, epsilon: float, seed: int) -> list[float]:
    order = np.random.default_rng(seed).permutation(len(y))
    fit, held = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
    names = [f"x{place}" for place in range(X.shape[1])]
    whole = pl.DataFrame(X, schema=names).with_columns(pl.Series("y", y))
    schema = None
    if bounds != "none":
        times = 1.0 if bounds == "tight" else 5.0
        schema = Schema({column: _around(whole[column].to_numpy(), times) for column in whole.columns}, target="y")
    Z = np.column_stack([(X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), np.ones(len(y))])
    said = [Z[held] @ np.linalg.lstsq(Z[fit], y[fit], rcond=None)[0]]
    said += [_fitted(method, whole[fit], schema, epsilon, seed).predict(whole[held]) for method in METHODS]
    return [float(1 - np.mean((each - y[held]) ** 2) / np.var(y[held])) for each in said]


def _around(values: Floats, times: float) -> Number:
    middle, half = (values.min() + values.max()) / 2, max((values.max() - values.min()) / 2, 1e-9) * times
    return Number(float(middle - half), float(middle + half))
