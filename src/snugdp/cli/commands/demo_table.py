"""The table of the demonstration, made up by a formula, and rehearsals of a line through it."""

from __future__ import annotations

import warnings
from statistics import NormalDist, median
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.estimators.base import NotPrivateWarning
from snugdp.estimators.linear import LinearRegression
from snugdp.tables.schema.schema import Boolean, Number, Schema

ROWS, KEPT = 3_000, 1_000  # to learn from, and to look at the error: the latter would have to be public
WAGES = Schema(
    {"age": Number(16, 75), "school": Number(5, 22), "city": Boolean(), "hours": Number(0, 60), "wage": Number(0, 120)},
    target="wage",
)
_RUNS = 9


def people() -> pl.DataFrame:
    """Made-up people: 0.25 of hourly wage for a year of age, 1.5 for a year at school, 4 in a city, and luck.

    Every other one has a bonus, and all bonuses are the same: no table to ask for a median.
    """
    index = np.arange(ROWS + KEPT)
    roots = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0])
    age, school, city, hours, luck = (np.modf((index + 0.5) * root)[0] for root in roots)
    seen = {
        "age": np.floor(18 + 50 * age),
        "school": np.floor(8 + 12 * school),
        "city": city < 0.4,
        "hours": np.floor(10 + 40 * hours),
    }
    noise = np.array([NormalDist(0, 5).inv_cdf(float(part)) for part in luck])
    wage = -6 + 0.25 * seen["age"] + 1.5 * seen["school"] + 4 * seen["city"] + 0.1 * seen["hours"] + noise
    return pl.DataFrame({**seen, "wage": np.round(wage, 2), "bonus": 5_000.0 * (index % 2)})


def plain_line(table: pl.DataFrame) -> NDArray[np.float64]:
    """Least squares without privacy; the intercept comes last."""
    line: NDArray[np.float64] = np.linalg.lstsq(_design(table), table["wage"].to_numpy(), rcond=None)[0]
    return line


def plain_error(line: NDArray[np.float64], test: pl.DataFrame) -> float:
    """How far that line is off on other rows."""
    return error(_design(test) @ line, test)


def error(predicted: Any, table: pl.DataFrame) -> float:
    """The root of the mean square of what predictions are off by."""
    off = np.asarray(predicted) - table["wage"].to_numpy()
    return float(np.sqrt(np.mean(off**2)))


def rehearsed(train: pl.DataFrame, test: pl.DataFrame, epsilon: float, delta: float) -> float:
    """The error that a fit with this epsilon usually has: the median of seeded fits. NOT PRIVATE."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # whoever shows the number says so
        fits = [LinearRegression(epsilon, delta, schema=WAGES, random_state=seed).fit(train) for seed in range(_RUNS)]
    return median(error(fit.predict(test), test) if fit.released_ else np.inf for fit in fits)


def _design(table: pl.DataFrame) -> NDArray[np.float64]:
    columns = [table[name].cast(pl.Float64).to_numpy() for name in ("age", "school", "city", "hours")]
    return np.column_stack([*columns, np.ones(len(table))])
