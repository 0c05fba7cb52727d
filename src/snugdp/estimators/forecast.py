"""What to expect of a fit before anything is spent: the error against epsilon, and what more rows would bring.

All of it comes from public parameters; the rows are taken to fill their bounds evenly, as in the plans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from snugdp.core.guarantee import Budget
from snugdp.estimators.base import as_long_rows, in_users_units, whole_rows
from snugdp.estimators.pca.pca import PCA
from snugdp.estimators.sparse.base import SparseModel
from snugdp.mechanisms.components.base import Rank, Task
from snugdp.mechanisms.linear.base import Method
from snugdp.tables.schema.schema import Layout

FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
MORE = (1, 2, 4)


@dataclass(frozen=True)
class Expected:
    """What to expect at one epsilon with so many rows. ``noise``: the deviation in every coefficient, by name."""

    epsilon: float
    rows: int
    error: float
    noise: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is not bounded is null."""
        noise = {name: _finite(value) for name, value in self.noise.items()}
        return {"epsilon": self.epsilon, "rows": self.rows, "error": _finite(self.error), "noise": noise}


@dataclass(frozen=True)
class Outlook:
    """Forecasts around what was asked for. ``error_is``: what the error is; ``grid``: by epsilon, then by rows."""

    error_is: str
    asked: Expected
    grid: tuple[tuple[Expected, ...], ...]

    @property
    def by_epsilon(self) -> tuple[Expected, ...]:
        """For the rows that were asked for."""
        return tuple(line[0] for line in self.grid)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        grid = [[each.as_dict() for each in line] for line in self.grid]
        return {"error_is": self.error_is, "asked": self.asked.as_dict(), "grid": grid}


class _Look(Protocol):
    """The forecasts of one model at one epsilon."""

    @property
    def error_is(self) -> str:
        """What the error is."""
        ...

    def __call__(self, rows: int) -> tuple[float, dict[str, float]]:
        """Error and noise."""
        ...


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
    lines: list[tuple[Expected, ...]] = []
    words, asked = "", None
    for factor in sorted({Fraction(1), *map(Fraction, factors)}):
        epsilon = budget.epsilon * factor
        try:
            look = _look(clone(model).set_params(epsilon=epsilon, ledger=None), n_features)
            line = tuple(_expected(look, float(epsilon), each) for each in counts)
        except (ValueError, OverflowError):
            if factor == 1:
                raise
            continue
        lines.append(line)
        if factor == 1:
            words, asked = look.error_is, line[0]
    assert asked is not None
    return Outlook(words, asked, tuple(lines))


def _expected(look: _Look, epsilon: float, rows: int) -> Expected:
    error, noise = look(rows)
    return Expected(epsilon, rows, error, noise)


def _look(model: Any, n_features: int | None) -> _Look:
    if isinstance(model, PCA):
        return _Components(model, n_features)
    if isinstance(model, SparseModel):
        return _sparse(model, n_features)
    if not hasattr(model, "_make"):
        raise TypeError("forecasts are for linear models, sparse ones and PCA; for others look at plan()")
    bounds = model._bounds()
    layout = bounds.array_schema(_names(n_features)) if bounds.schema is None else bounds.layout
    off = "the linear function" if model._off_in == "the linear function" else "predictions"
    unit = f", in units of {layout.target}" if off == "predictions" and bounds.schema is not None else ""
    words = f"how far {off} will be off by noise{unit}"
    return _Line(model._make(layout, model._budget()), model._shown(layout), words)


def _sparse(model: Any, n_features: int | None) -> _Line:
    bounds = model._bounds()
    box = bounds.box(_names(n_features)) if bounds.schema is None else bounds.entries
    layout = box.only(tuple(range(model._size())), model._norm())
    method = model._make(box, model._budget()).method
    return _Line(method, layout, "how far predictions will be off by noise, once columns are chosen", chosen=True)


@dataclass(frozen=True)
class _Line:
    """A linear model: its method's forecast, in the user's units."""

    method: Method
    layout: Layout
    error_is: str
    chosen: bool = False  # which columns there will be is not known

    def __call__(self, rows: int) -> tuple[float, dict[str, float]]:
        found = self.method.forecast(as_long_rows(rows, self.layout))
        error = float(np.sqrt(found.excess)) * self.layout.target_units[1]
        names = self.layout.coefficients(np.zeros(len(self.layout.features))).names
        values = in_users_units(self.layout, found.noise) if np.isfinite(found.noise) else [math.inf] * len(names)
        noise = {name: float(value) for name, value in zip(names, values, strict=True)}
        if self.chosen:
            ends = {"least": min(noise.values()), "most": max(noise.values())}
            noise = {f"a chosen column, {name}": value for name, value in ends.items()}
        return error, noise


class _Components:
    """Principal components: the share of the largest possible variance that noise alone would reach."""

    error_is = "the share of the variance (rows of full length) that a component must exceed to stand out from noise"

    def __init__(self, model: Any, n_features: int | None) -> None:
        bounds = model._bounds()
        layout = bounds.layout(() if bounds.schema is not None else _names(n_features))
        rank = Rank.of(model.n_components, len(layout.features))
        task = Task(layout, model._budget(), rank, whole_rows(model.rows), bounds.moves)
        self._entries = task.entries
        self._deviation = 1 / math.sqrt(task.shares[2] * task.mu_squared(Fraction(0)))

    def __call__(self, rows: int) -> tuple[float, dict[str, float]]:
        each = self._deviation / rows
        return each * math.sqrt(2 * self._entries), {"an entry of the matrix of squares, a row": each}


def _names(n_features: int | None) -> tuple[str, ...]:
    width = whole_rows(n_features, "n_features")
    if width is None:
        raise ValueError("give n_features=..., the number of columns of X, or a schema")
    return tuple(f"x{place}" for place in range(width))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
