"""Curves beside lines and beside DP-EBM: R squared on rows that were held out. None of it is private.

Lines and curves find their bounds in private. DP-EBM (``pip install interpret-core``) has to be given bounds: it gets
the least and the largest values of the table, as if these were public. Noise is that of a rehearsal with a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from statistics import mean
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp import AdditiveRegressor, LinearRegression, Simulation
from snugdp_studies.bench.bounds import tables

Floats: TypeAlias = NDArray[np.float64]
Table: TypeAlias = tuple[Floats, Floats]
PEER = "DP-EBM"
NOTE = (
    "Means over {splits} splits, 30 % of the rows held out. NOT PRIVATE: seeded noise. DP-EBM has true minima and "
    "maxima as public bounds; lines and curves find theirs in private. No constant was chosen on tables of a folder."
)
MISSING = "DP-EBM is left out: pip install interpret-core"
_HELD_OUT = 0.3
_COLUMNS = 6


def waves(rows: int, draw: np.random.Generator) -> Table:
    """Two waves, a bend, a line and two columns without effect."""
    X = draw.uniform(-1, 1, (rows, _COLUMNS))
    return X, np.sin(4 * X[:, 0]) + np.cos(6 * X[:, 1]) + X[:, 2] ** 2 + X[:, 3] + draw.normal(0, 0.3, rows)


def skewed(rows: int, draw: np.random.Generator) -> Table:
    """Logarithms of lognormal columns."""
    X = draw.lognormal(1, 1, (rows, _COLUMNS))
    return X, np.log(X[:, 0]) + np.abs(np.log(X[:, 1]) - 1) + draw.normal(0, 0.5, rows)


def lines(rows: int, draw: np.random.Generator) -> Table:
    """A straight line, where curves have nothing to win."""
    X = draw.normal(0, 1, (rows, _COLUMNS))
    return X, X @ np.linspace(1, -1, _COLUMNS) + draw.normal(0, 1, rows)


KINDS: Mapping[str, Callable[[int, np.random.Generator], Table]] = {"waves": waves, "skewed": skewed, "lines": lines}


@dataclass(frozen=True)
class CurveComparison:
    """The mean R squared of every contender, by its name."""

    table: str
    rows: int
    columns: int
    epsilon: float
    scores: Mapping[str, float]


def names(data: str) -> list[str]:
    """The tables of a folder, or those that are made up."""
    return list(KINDS) if data == tables.MADE_UP else tables.names(data)


def contenders() -> list[str]:
    """Those that can run here."""
    return ["line", "curves", *([PEER] if find_spec("interpret") else [])]


@dataclass(frozen=True)
class CurveSetting:
    """Which tables, budgets and splits. ``rows``: of a made-up table."""

    data: str
    tables: Sequence[str]
    epsilons: Sequence[float]
    delta: float = 1e-6
    rows: int = 10_000
    splits: int = 2


def run(setting: CurveSetting) -> Iterator[CurveComparison]:
    """Every table and budget in turn."""
    for name in setting.tables:
        draw = np.random.default_rng([25, setting.rows])
        whole = KINDS[name](setting.rows, draw) if name in KINDS else tables.load(setting.data, name, setting.rows)
        for epsilon in setting.epsilons:
            scores = {
                contender: mean(
                    _score(contender, whole, (epsilon, setting.delta), number) for number in range(setting.splits)
                )
                for contender in contenders()
            }
            yield CurveComparison(name, len(whole[0]), whole[0].shape[1], epsilon, scores)


def _score(contender: str, table: Table, budget: tuple[float, float], number: int) -> float:
    X, y = table
    held_out = np.random.default_rng([number, len(X)]).random(len(X)) < _HELD_OUT
    model = _model(contender, table, budget, number).fit(X[~held_out], y[~held_out])
    errors = y[held_out] - model.predict(X[held_out])
    return float(1 - np.mean(errors**2) / np.var(y[held_out]))


def _model(contender: str, table: Table, budget: tuple[float, float], number: int) -> Any:
    (X, y), (epsilon, delta) = table, budget
    if contender == PEER:
        peer = import_module("interpret.privacy").DPExplainableBoostingRegressor
        ends = np.column_stack([X.min(axis=0), X.max(axis=0)])
        return peer(
            epsilon=epsilon, delta=delta, privacy_bounds=ends, privacy_target_min=float(y.min()),
            privacy_target_max=float(y.max()), random_state=number, n_jobs=1,
        )  # fmt: skip
    kind: type[LinearRegression] = AdditiveRegressor if contender == "curves" else LinearRegression
    return kind(epsilon, delta, noise=Simulation(number))
