"""What to expect of a fit before anything is spent: the error against epsilon, and what more rows would bring.

All of it comes from public parameters; the rows are taken to fill their bounds evenly, as in the plans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sklearn.base import clone

from snugdp.core.guarantee import Budget
from snugdp.estimators.base import fit_forecast, whole_rows
from snugdp.estimators.pca.pca import PCA
from snugdp.estimators.sparse.base import SparseModel
from snugdp.mechanisms.components.base import Rank, Task
from snugdp.propose.forecast import ErrorOf, FitForecast

FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
MORE = (1, 2, 4)


@dataclass(frozen=True)
class Outlook:
    """Forecasts around what was asked for. ``target``: its name, where errors are in its units. ``grid``: by epsilon,
    then by rows; every forecast says its epsilon.
    """

    error_of: ErrorOf
    target: str | None
    asked: FitForecast
    grid: tuple[tuple[FitForecast, ...], ...]

    @property
    def by_epsilon(self) -> tuple[FitForecast, ...]:
        """For the rows that were asked for."""
        return tuple(line[0] for line in self.grid)


@dataclass(frozen=True)
class _Forecaster:
    """The forecasts of one model: by rows and epsilon."""

    error_of: ErrorOf
    target: str | None
    at: Callable[[int, float], FitForecast]


def forecast(
    model: Any,
    rows: int,
    *,
    n_features: int | None = None,
    factors: Sequence[Fraction | int] = FACTORS,
    more: Sequence[int] = MORE,
) -> Outlook:
    """The error of a linear model, a sparse one or a PCA, at several epsilons and numbers of rows. Free of charge.

    ``rows``: a public guess. ``n_features``: of an array; a schema knows. ``factors`` of the model's epsilon, and
    ``more``, multiples of the rows; 1 is always among both. An epsilon that is too small for the method is left out.

    >>> from snugdp import LinearRegression
    >>> found = forecast(LinearRegression(method="adassp", x_norm=1, y_bound=1), 1000, n_features=3)
    >>> few, many = found.grid[0][0].error, found.grid[-1][-1].error
    >>> found.asked.rows, bool(0 < many < found.asked.error < few)
    (1000, True)
    """
    count = whole_rows(rows)
    if count is None:
        raise ValueError("give rows=..., a public guess of the number of rows")
    budget: Budget = model._budget()
    counts = [count * times for times in sorted({1, *more})]
    lines: list[tuple[FitForecast, ...]] = []
    found: Outlook | None = None
    for factor in sorted({Fraction(1), *map(Fraction, factors)}):
        epsilon = budget.epsilon * factor
        try:
            look = _look(clone(model).set_params(epsilon=epsilon, ledger=None), n_features)
            line = tuple(look.at(each, float(epsilon)) for each in counts)
        except (ValueError, OverflowError):
            if factor == 1:
                raise
            continue
        lines.append(line)
        if factor == 1:
            found = Outlook(look.error_of, look.target, line[0], ())
    assert found is not None
    return replace(found, grid=tuple(lines))


def _look(model: Any, n_features: int | None) -> _Forecaster:
    if isinstance(model, PCA):
        return _components(model, n_features)
    if isinstance(model, SparseModel):
        return _sparse(model, n_features)
    if not hasattr(model, "_make"):
        raise TypeError("forecasts are for linear models, sparse ones and PCA; for others look at plan()")
    bounds = model._bounds()
    layout = bounds.array_schema(_names(n_features)) if bounds.schema is None else bounds.layout
    error_of: ErrorOf = model._error_of
    target = layout.target if error_of is ErrorOf.PREDICTION and bounds.schema is not None else None
    method, shown = model._make(layout, model._budget()), model._shown(layout)
    return _Forecaster(error_of, target, lambda rows, epsilon: fit_forecast(method, shown, rows, epsilon))


def _sparse(model: Any, n_features: int | None) -> _Forecaster:
    bounds = model._bounds()
    box = bounds.box(_names(n_features)) if bounds.schema is None else bounds.entries
    layout = box.only(tuple(range(model._size())), model._norm())
    method = model._make(box, model._budget()).method

    def at(rows: int, epsilon: float) -> FitForecast:
        found = fit_forecast(method, layout, rows, epsilon)
        ends = {"a chosen column, least": min(found.noise.values()), "a chosen column, most": max(found.noise.values())}
        return replace(found, noise=ends)  # which columns there will be is not known

    return _Forecaster(ErrorOf.CHOSEN, None, at)


def _components(model: Any, n_features: int | None) -> _Forecaster:
    """Principal components: the share of the largest possible variance that noise alone would reach."""
    bounds = model._bounds()
    layout = bounds.layout(() if bounds.schema is not None else _names(n_features))
    rank = Rank.of(model.n_components, len(layout.features))
    task = Task(layout, model._budget(), rank, whole_rows(model.rows), bounds.moves)
    deviation = 1 / math.sqrt(task.shares[2] * task.mu_squared(Fraction(0)))

    def at(rows: int, epsilon: float) -> FitForecast:
        noise = {"an entry of the matrix of squares, a row": deviation / rows}
        return FitForecast(rows, deviation / rows * math.sqrt(2 * task.entries), noise, epsilon)

    return _Forecaster(ErrorOf.VARIANCE, None, at)


def _names(n_features: int | None) -> tuple[str, ...]:
    width = whole_rows(n_features, "n_features")
    if width is None:
        raise ValueError("give n_features=..., the number of columns of X, or a schema")
    return tuple(f"x{place}" for place in range(width))
