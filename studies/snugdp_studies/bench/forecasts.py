"""Whether forecasts come true: what a plan and a public sample expect of noise, and what fits of other rows show.

The sample is some rows of a table, and the fits are made on the others: what noise adds to their predictions is the
root mean square deviation among fits of the same rows, on all of these rows; that of a typical row is the root of the
median square. Public bounds are the least and largest values of the table, and spreads are known to one digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.estimators.additive.models import AdditiveRegressor
from snugdp.estimators.forecasts.forecast import forecast
from snugdp.estimators.linear import LinearRegression
from snugdp.estimators.logistic import LogisticRegression
from snugdp.estimators.poisson import PoissonRegression
from snugdp.noise import Simulation
from snugdp.propose.forecast import ErrorOf
from snugdp.tables.schema.kinds import Category
from snugdp.tables.schema.schema import Number, Schema
from snugdp_studies.bench.bounds.tables import load

EPSILONS = (0.5, 1.0, 4.0)
BOUNDS = ("public", "none")
DELTA = 1e-6
FORECASTS = ("by_bounds", "by_spread", "by_sample")
_MOST_COUNTED = 20  # the bound on a made-up count

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Moved:
    """How far noise moves predictions: their root mean square, and a typical one, if that is known."""

    root: float
    typical: float | None

    @classmethod
    def among(cls, answers: Sequence[Floats], unit: float) -> Moved:
        """Predictions of several fits for the same rows; where all fits but one are refused, without end."""
        if len(answers) < 2:
            return cls(math.inf, math.inf)
        squares = np.var(answers, axis=0, ddof=1)
        return cls(math.sqrt(float(np.mean(squares))) / unit, math.sqrt(float(np.median(squares))) / unit)


@dataclass(frozen=True)
class ForecastCell:
    """What noise adds to predictions, in standard deviations of the target; of labels and counts, to linear scores."""

    name: str
    rows: int
    width: int
    bounds: str
    epsilon: float
    by_bounds: Moved
    by_spread: Moved  # without public bounds, and for labels and counts, there is none: as by bounds
    by_sample: Moved
    seen: Moved

    def comes_true(self, how: str, factor: float = 2.0, of: str = "root") -> bool | None:
        """Whether it is off by this factor at most; where all fits but one are refused, whether it says so.

        None where nothing was said.
        """
        expected, seen = getattr(getattr(self, how), of), getattr(self.seen, of)
        if expected is None:
            return None
        if not math.isfinite(seen):
            return not math.isfinite(expected)
        return bool(seen / factor <= expected <= seen * factor)


def share(cells: Sequence[ForecastCell], how: str, factor: float, of: str = "root") -> float:
    """Of the cells whose forecast comes true to this factor."""
    said = [come for each in cells if (come := each.comes_true(how, factor, of)) is not None]
    return sum(said) / len(said) if said else math.nan


def _thirds(y: Floats) -> pl.Series:
    return pl.Series("y", np.array(["low", "middle", "high"])[np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)])


def _halves(y: Floats) -> pl.Series:
    return pl.Series("y", np.where(y > np.median(y), "high", "low"))


def _counts(y: Floats) -> pl.Series:
    """About 1 on average, and skewed."""
    return pl.Series("y", np.minimum(np.floor(np.exp((y - y.mean()) / y.std())), _MOST_COUNTED))


@dataclass(frozen=True)
class Kind:
    """A model, and its target, made from that of a table."""

    model: Callable[..., Any]
    target: Callable[[Floats], pl.Series]


MODELS = {
    "linear": Kind(LinearRegression, partial(pl.Series, "y")),
    "additive": Kind(AdditiveRegressor, partial(pl.Series, "y")),
    "logistic": Kind(LogisticRegression, _halves),
    "classes": Kind(LogisticRegression, _thirds),
    "poisson": Kind(PoissonRegression, _counts),
}


def run(
    data: str, names: Sequence[str], model: str = "linear", *, rows: int = 5000, sample: int = 300, fits: int = 10
) -> Iterator[ForecastCell]:
    """Each table with each kind of bounds at each epsilon."""
    kind = MODELS[model]
    for name in names:
        X, y = load(data, name, rows + sample)
        columns = [f"x{place}" for place in range(X.shape[1])]
        whole = pl.DataFrame(X, schema=columns).with_columns(kind.target(y))
        order = np.random.default_rng(len(y)).permutation(len(y))
        public, private = whole[order[:sample]], whole[order[sample:]]
        for bounds in BOUNDS:
            for epsilon in EPSILONS:
                asked = kind.model(epsilon, DELTA, schema=_schema(whole) if bounds == "public" else None)
                expected, seen = _forecasts(asked, public, private), _seen(asked, private, fits)
                yield ForecastCell(name, len(private), len(columns), bounds, epsilon, *expected, seen)


def _forecasts(asked: Any, public: pl.DataFrame, private: pl.DataFrame) -> tuple[Moved, Moved, Moved]:
    """By bounds alone, by bounds and spreads, and by the sample."""
    declared, width = asked.schema is not None, private.width - 1
    options: dict[str, Any] = {"n_features": None if declared else width, "factors": (), "more": ()}
    told = declared and type(asked) is LinearRegression
    given: Sequence[dict[str, Any]] = (
        {},
        {"spread": _rounded_spreads(asked.schema, private)} if told else {},
        {"sample": public if declared else (public, "y")},
    )
    plain, spread, sampled = (_expected(asked, private, {**options, **each}) for each in given)
    return plain, spread, sampled


def _expected(asked: Any, private: pl.DataFrame, options: dict[str, Any]) -> Moved:
    outlook = forecast(asked, len(private), **options)
    unit = _spread(private) if outlook.error_of is ErrorOf.PREDICTION else 1.0
    typical = outlook.asked.typical
    return Moved(outlook.asked.error / unit, None if typical is None else typical / unit)


def _rounded_spreads(schema: Schema, table: pl.DataFrame) -> dict[str, float]:
    """Standard deviations over the distance between bounds, to one digit, as somebody may know them in public."""
    widths = {name: float(2 * kind.half) for name, kind in schema.columns.items() if isinstance(kind, Number)}
    parts = {name: float(f"{table[name].to_numpy().std() / width:.1g}") for name, width in widths.items()}
    return {name: min(part, 0.5) for name, part in parts.items() if part > 0}


def _seen(asked: Any, private: pl.DataFrame, fits: int) -> Moved:
    said = [each for seed in range(100, 100 + fits) if (each := _said(asked, private, seed)) is not None]
    shapes = [each.shape for each in said]
    alike = [each for each in said if each.shape == max(shapes, key=shapes.count)]  # of as many classes
    return Moved.among(alike, _spread(private) if _is_line(asked) else 1.0)


def _is_line(asked: Any) -> bool:
    return isinstance(asked, LinearRegression)


def _spread(table: pl.DataFrame) -> float:
    return float(table["y"].to_numpy().std())


def _said(asked: Any, table: pl.DataFrame, seed: int) -> Floats | None:
    """Predictions; of labels and counts, linear scores, without what those of all classes share."""
    made = type(asked)(asked.epsilon, DELTA, schema=asked.schema, noise=Simulation(seed))
    fitted = made.fit(table) if asked.schema is not None else made.fit(table, "y")
    if not fitted.released_:
        return None
    scores: Floats = fitted.predict(table) if _is_line(asked) else fitted._linear(table)
    return scores if scores.ndim == 1 else scores - scores.mean(axis=1, keepdims=True)


def _schema(table: pl.DataFrame) -> Schema:
    columns: dict[str, Any] = {}
    for name in table.columns:
        if not table[name].dtype.is_numeric():
            columns[name] = Category(tuple(sorted(table[name].unique())))
            continue
        low, high = float(table[name].to_numpy().min()), float(table[name].to_numpy().max())
        columns[name] = Number(low, max(high, low + 1e-9))
    return Schema(columns, target="y")
