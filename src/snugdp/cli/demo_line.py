"""The second part of the demonstration: a private line through a made-up table."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from snugdp.data.schema import Boolean, Number, Schema
from snugdp.estimators.linear import LinearRegression

_ROWS, _KEPT = 20_000, 5_000  # the last rows are for a look at the error, and would be public
_WAGES = Schema(
    {"age": Number(16, 75), "school": Number(5, 22), "city": Boolean(), "wage": Number(0, 120)}, target="wage"
)


def wages() -> pl.DataFrame:
    """Made-up hourly wages: 0.25 for every year of age, 1.5 for every year at school, 4 in a city, and luck."""
    place = np.arange(_ROWS)
    age, school, city, luck = (np.modf((place + 0.5) * root)[0] for root in np.sqrt([2.0, 3.0, 5.0, 7.0]))
    table = {"age": np.floor(18 + 50 * age), "school": np.floor(8 + 12 * school), "city": city < 0.4}
    noise = np.array([NormalDist(0, 5).inv_cdf(float(part)) for part in np.clip(luck, 1e-9, 1 - 1e-9)])
    wage = -4 + 0.25 * table["age"] + 1.5 * table["school"] + 4 * table["city"] + noise
    return pl.DataFrame({**table, "wage": wage})


def show_line(console: Console) -> None:
    """Print the plan, fit at several epsilons, and compare with the line that is not private."""
    table = wages()
    train, test = table[:-_KEPT], table[-_KEPT:]
    model = LinearRegression(epsilon=1, delta=1e-6, schema=_WAGES)
    text = f"\nA line through {_ROWS - _KEPT:,} made-up wages.\n\n{model.plan(rows=_ROWS - _KEPT)}\n"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    answers = Table("epsilon", "age", "school", "city", "error", title="wage = ...", title_justify="left")
    for epsilon in (0.1, 0.5, 1, 4):
        fit = LinearRegression(epsilon=epsilon, delta=1e-6, schema=_WAGES).fit(train)
        answers.add_row(f"{epsilon:g}", *(f"{value:.2f}" for value in fit.coef_), _error(fit.predict(test), test))
    plain = np.linalg.lstsq(_design(train), train["wage"].to_numpy(), rcond=None)[0]
    answers.add_row("not private", *(f"{value:.2f}" for value in plain[:-1]), _error(_design(test) @ plain, test))
    console.print(answers)


def _design(table: pl.DataFrame) -> NDArray[np.float64]:
    columns = [table[name].cast(pl.Float64).to_numpy() for name in ("age", "school", "city")]
    return np.column_stack([*columns, np.ones(len(table))])


def _error(predicted: NDArray[np.float64], table: pl.DataFrame) -> str:
    return f"{np.sqrt(np.mean((predicted - table['wage'].to_numpy()) ** 2)):.3f}"
