"""Curves beside lines and beside DP-EBM, for numbers and labels, on rows that were held out. None of it is private.

Lines and curves find their bounds in private. DP-EBM (``pip install interpret-core``) has to be given bounds: it gets
the least and the largest values of the table, as if these were public. Noise is that of a rehearsal with a seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from statistics import mean
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp import AdditiveClassifier, AdditiveRegressor, LinearRegression, LogisticRegression, Simulation
from snugdp_studies.bench.bounds import tables
from snugdp_studies.bench.contest.speed import Timing, one_thread, timed

Floats: TypeAlias = NDArray[np.float64]
Table: TypeAlias = tuple[Floats, Floats]
PEER = "DP-EBM"
NOTE = (
    "Means over {splits} splits, 30 % of the rows held out. NOT PRIVATE: seeded noise. DP-EBM has true minima and "
    "maxima as public bounds; lines and curves find theirs in private. Constants were chosen on other tables, made up "
    "and real; what has bends at all after a look at bike and elevators."
)
MISSING = "DP-EBM is left out: pip install interpret-core"
_HELD_OUT = 0.3
_LEAST = 1e-6  # a chance that a model gives
_COLUMNS = 6


def _wave_effects(X: Floats) -> Floats:
    return np.column_stack([np.sin(4 * X[:, 0]), np.cos(6 * X[:, 1]), X[:, 2] ** 2, X[:, 3], 0 * X[:, 4], 0 * X[:, 5]])


def _skewed_effects(X: Floats) -> Floats:
    with np.errstate(all="ignore"):
        logs = np.log(np.maximum(X, 0.02))
    return np.column_stack([logs[:, 0], np.abs(logs[:, 1] - 1), *(0 * X[:, 2:].T)])


def _line_effects(X: Floats) -> Floats:
    return X * np.linspace(1, -1, _COLUMNS)


def waves(rows: int, draw: np.random.Generator) -> Table:
    """Two waves, a bend, a line and two columns without effect."""
    X = draw.uniform(-1, 1, (rows, _COLUMNS))
    return X, _wave_effects(X).sum(axis=1) + draw.normal(0, 0.3, rows)


def skewed(rows: int, draw: np.random.Generator) -> Table:
    """Logarithms of lognormal columns."""
    X = draw.lognormal(1, 1, (rows, _COLUMNS))
    return X, _skewed_effects(X).sum(axis=1) + draw.normal(0, 0.5, rows)


def lines(rows: int, draw: np.random.Generator) -> Table:
    """A straight line, where curves have nothing to win."""
    X = draw.normal(0, 1, (rows, _COLUMNS))
    return X, _line_effects(X).sum(axis=1) + draw.normal(0, 1, rows)


KINDS: Mapping[str, Callable[[int, np.random.Generator], Table]] = {"waves": waves, "skewed": skewed, "lines": lines}
EFFECTS: Mapping[str, Callable[[Floats], Floats]] = {
    "waves": _wave_effects,
    "skewed": _skewed_effects,
    "lines": _line_effects,
}


@dataclass(frozen=True)
class CurveComparison:
    """The mean R squared of every contender, or the mean log-loss, by its name."""

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
    """Which tables, budgets and splits. ``rows``: of a made-up table. ``labels``: is a target above its median?"""

    data: str
    tables: Sequence[str]
    epsilons: Sequence[float]
    delta: float = 1e-6
    rows: int = 10_000
    splits: int = 2
    labels: bool = False


def run(setting: CurveSetting) -> Iterator[CurveComparison]:
    """Every table and budget in turn."""
    for name in setting.tables:
        draw = np.random.default_rng([25, setting.rows])
        X, y = KINDS[name](setting.rows, draw) if name in KINDS else tables.load(setting.data, name, setting.rows)
        whole = X, (y > np.median(y)).astype(np.float64) if setting.labels else y
        score = _log_loss if setting.labels else _r_squared
        for epsilon in setting.epsilons:
            scores = {
                contender: mean(
                    score(contender, whole, (epsilon, setting.delta), number) for number in range(setting.splits)
                )
                for contender in contenders()
            }
            yield CurveComparison(name, len(whole[0]), whole[0].shape[1], epsilon, scores)


@dataclass(frozen=True)
class BandCheck:
    """How often bands of 95 % hold the true curve at a knot, and how wide they are beside its mean error there."""

    table: str
    epsilon: float
    held: float
    width: float
    error: float


def bands(setting: CurveSetting) -> Iterator[BandCheck]:
    """Of made-up tables, whose true curves are known: one fit a split, each on rows of its own."""
    for name, epsilon in product(setting.tables, setting.epsilons):
        held, width, error = [], [], []
        for number in range(setting.splits):
            X, y = KINDS[name](setting.rows, np.random.default_rng([26, number]))
            model = AdditiveRegressor(epsilon, setting.delta, noise=Simulation(number)).fit(X, y)
            for place, curve in enumerate(model.curves().values()):
                at = np.zeros((len(curve.knots), _COLUMNS))
                at[:, place] = curve.knots
                truth = EFFECTS[name](at)[:, place]
                off = np.abs(curve.values - truth + truth.mean())
                half = curve.band()[1] - curve.values
                held.append(float(np.mean(off <= half)))
                width.append(float(half.mean()))
                error.append(float(off.mean()))
        yield BandCheck(name, epsilon, mean(held), mean(width), mean(error))


def fit_times(rows: int = 1_000_000, columns: int = 20, repeats: int = 3) -> list[Timing]:
    """A fit beside scikit-learn's of the same curves: a ridge regression on linear splines with as many knots."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    draw = np.random.default_rng(27)
    X = draw.normal(0, 1, (rows, columns))
    y = np.sin(X).sum(axis=1) + draw.normal(0, 1, rows)
    peer = make_pipeline(SplineTransformer(n_knots=17, degree=1), Ridge())
    own = AdditiveRegressor(1, 1e-6, noise=Simulation(1))
    with one_thread():
        jobs = {
            "SplineTransformer, Ridge": lambda: _fitted(peer, X, y),
            "AdditiveRegressor": lambda: _fitted(own, X, y),
        }
        return timed(f"{rows:,} x {columns}", jobs, repeats)


def _r_squared(contender: str, table: Table, budget: tuple[float, float], number: int) -> float:
    X, y = table
    held_out = _held_out(number, len(X))
    model = _fitted(_numbers(contender, table, budget, number), X[~held_out], y[~held_out])
    errors = y[held_out] - model.predict(X[held_out])
    return float(1 - np.mean(errors**2) / np.var(y[held_out]))


def _log_loss(contender: str, table: Table, budget: tuple[float, float], number: int) -> float:
    X, y = table
    held_out, labels = _held_out(number, len(X)), y.astype(np.intp)
    model = _fitted(_labels(contender, table, budget, number), X[~held_out], labels[~held_out])
    chances = model.predict_proba(X[held_out])[np.arange(held_out.sum()), labels[held_out]]
    return -float(np.mean(np.log(np.maximum(chances, _LEAST))))


def _held_out(number: int, rows: int) -> NDArray[np.bool_]:
    drawn: NDArray[np.bool_] = np.random.default_rng([number, rows]).random(rows) < _HELD_OUT
    return drawn


def _fitted(model: Any, X: Floats, y: NDArray[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peer, about the seed of a rehearsal
        return model.fit(X, y)


def _numbers(contender: str, table: Table, budget: tuple[float, float], number: int) -> Any:
    (_, y), (epsilon, delta) = table, budget
    if contender == PEER:
        ends = {"privacy_target_min": float(y.min()), "privacy_target_max": float(y.max())}
        return _peer("DPExplainableBoostingRegressor", table, budget, number, ends)
    kind: type[LinearRegression] = AdditiveRegressor if contender == "curves" else LinearRegression
    return kind(epsilon, delta, noise=Simulation(number))


def _labels(contender: str, table: Table, budget: tuple[float, float], number: int) -> Any:
    epsilon, delta = budget
    if contender == PEER:
        return _peer("DPExplainableBoostingClassifier", table, budget, number, {})
    kind: type[LogisticRegression] = AdditiveClassifier if contender == "curves" else LogisticRegression
    return kind(epsilon, delta, classes=[0, 1], noise=Simulation(number))


def _peer(name: str, table: Table, budget: tuple[float, float], number: int, ends: Mapping[str, float]) -> Any:
    (X, _), (epsilon, delta) = table, budget
    bounds = np.column_stack([X.min(axis=0), X.max(axis=0)])
    kind = getattr(import_module("interpret.privacy"), name)
    return kind(epsilon=epsilon, delta=delta, privacy_bounds=bounds, random_state=number, n_jobs=1, **ends)
