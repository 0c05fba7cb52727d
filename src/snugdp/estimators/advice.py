"""Which epsilon a wanted error takes, or which error an epsilon leaves: from public numbers alone, for free."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sklearn.base import clone

from snugdp.estimators.base import Forecaster
from snugdp.estimators.forecast import sample_ratio
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import ErrorOf, FitForecast
from snugdp.propose.plan import Plan, whole_rows

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
EPSILONS = (*(float(f"{step * size:g}") for size in (0.01, 0.1, 1.0) for step in _STEPS), 10.0)
USUAL = 1.0  # the epsilon for which rows are counted, where no epsilon is enough
_MOST_DOUBLINGS = 24
_GUESSED_LOOKS = 6
_USUAL_POWER = 0.7  # of a fit: between 1/2, where rows are few for a robust line, and 1


@dataclass(frozen=True)
class Advice:
    """What to ask for. The forecasts are of noise alone: as in the plan, or for rows like those of a public sample.

    Parameters
    ----------
    epsilon : float or None
        The smallest epsilon of a list of round ones that brings the wanted error, or the one that was given; None where
        none up to 10 is enough.
    error : float
        What noise adds to the error at that epsilon; without one, at epsilon 10.
    wanted : float or None
        The error that was asked for.
    rows : int
        The number of rows.
    rows_needed : int or None
        Where no epsilon is enough: about how many rows would bring the wanted error at epsilon 1, if that is known.
    plan : Plan
        The plan behind it.
    error_of : ErrorOf
        What the error is an error of.
    target : str or None
        The name of the target, where the error is in its units.
    by_sample : bool
        Whether the forecasts are for rows like those of a public sample; otherwise for rows that fill their bounds
        evenly.
    """

    epsilon: float | None
    error: float
    wanted: float | None
    rows: int
    rows_needed: int | None
    plan: Plan
    error_of: ErrorOf
    target: str | None
    by_sample: bool = False

    def __str__(self) -> str:
        from importlib import import_module

        words: str = import_module("snugdp.report.plan_text").advice_text(self)  # above this package
        return words


def advise(
    model: Any, *, rows: int, error: Real | None = None, n_features: int | None = None, sample: Any = None
) -> Advice:
    """From a wanted error to the epsilon that it takes; without one, the error that the model's epsilon leaves.

    Guarantee: no private data are read, and nothing is spent. It is a forecast, not a promise: privacy noise alone, for
    rows that fill their bounds evenly, or for rows like those of a public sample.

    Parameters
    ----------
    model : estimator
        A linear model, a sparse one or a PCA, with a delta and what else is public; its epsilon counts only where no
        error is given.
    rows : int
        A public guess of the number of rows.
    error : Real, optional
        What privacy noise may add to the error of predictions: in units of the target where its bounds are declared,
        in standard deviations of the target where they are found privately.
    n_features : int, optional
        The number of columns, for a model without a schema.
    sample : table or tuple, optional
        Public rows with their targets, such as those of a table that was published before: a table with the target of
        the schema, or a pair (X, y) as for ``fit``. The fit is rehearsed on them, repeated to ``rows`` rows. Never the
        private rows themselves, nor some of them: what is printed would depend on them, and be unpaid.

    Returns
    -------
    Advice
        In words if it is printed.

    Examples
    --------
    >>> import snugdp
    >>> model = snugdp.LinearRegression(delta=1e-6, method="adassp", x_norm=1, y_bound=1)
    >>> advice = snugdp.advise(model, rows=20_000, n_features=3, error=0.01)
    >>> 0 < advice.epsilon <= 10, advice.error <= 0.01
    (True, True)
    """
    count = whole_rows(rows)
    if count is None:
        raise ValueError("give rows=..., a public guess of the number of rows")
    if not hasattr(model, "_forecaster"):
        raise TypeError("advice is for linear models, sparse ones and PCA; for others compare plans")
    wanted = None if error is None else float(rational(error, "error"))
    if wanted is not None and wanted <= 0:
        raise ValueError("error must be above 0: what privacy noise may add to the error of predictions")

    @cache
    def look(epsilon: float) -> Forecaster:
        found: Forecaster = _with(model, epsilon)._forecaster(n_features)
        return found

    @cache
    def ratio(epsilon: float) -> float:
        if sample is None:
            return 1.0
        return sample_ratio(_with(model, epsilon), sample, look(epsilon).error_of, look(epsilon).at(count, epsilon))

    def at(epsilon: float, number: int = count, seen: float = USUAL) -> FitForecast:
        return look(epsilon).at(number, epsilon).scaled(ratio(seen))

    if wanted is None:
        chosen: float | None = float(model._promised().epsilon)
    else:
        place = _first_that_reaches(at, wanted)
        while sample is not None and place < len(EPSILONS) and at(EPSILONS[place], seen=EPSILONS[place]).error > wanted:
            place += 1  # rehearsed at that epsilon itself
        chosen = EPSILONS[place] if place < len(EPSILONS) else None
    told = EPSILONS[-1] if chosen is None else chosen
    needed = None if chosen is not None or wanted is None else _rows_needed(at, count, wanted)
    plan = _with(model, told).plan(rows=count) if n_features is None else _with(model, told).plan(n_features, count)
    seen = look(told)
    expected = at(told, seen=told).error
    return Advice(chosen, expected, wanted, count, needed, plan, seen.error_of, seen.target, sample is not None)


def _with(model: Any, epsilon: float) -> Any:
    return clone(model).set_params(epsilon=epsilon, ledger=None)


def _first_that_reaches(at: Callable[[float], FitForecast], wanted: float) -> int:
    """The place of the smallest epsilon whose noise is small enough; one beyond the last where none is.

    A forecast calibrates a whole plan, so few are looked at: the next epsilon is guessed from the last two, as if
    errors were powers of it; after a few guesses, halfway.
    """
    low, high, place, seen = -1, len(EPSILONS), EPSILONS.index(USUAL), [(0.0, math.inf)]
    while high - low > 1:
        error = _error(at, EPSILONS[place])
        low, high = (low, place) if error <= wanted else (place, high)
        seen.append((math.log(EPSILONS[place]), math.log(error / wanted) if error > 0 else -math.inf))
        guess = (low + high) // 2
        if math.isfinite(seen[-1][1]) and len(seen) <= _GUESSED_LOOKS:
            guess = bisect.bisect_left(EPSILONS, math.exp(seen[-1][0] + seen[-1][1] / _power(seen)))
        place = min(max(guess, low + 1), high - 1)
    return high


def _power(seen: Sequence[tuple[float, float]]) -> float:
    """Of 1 / epsilon, to which errors are about in proportion: by the last two looks, logarithms of both."""
    (x, y), (last, error) = seen[-2:]
    if len(seen) < 3 or last == x or not math.isfinite(y):
        return _USUAL_POWER
    return min(max((y - error) / (last - x), 0.3), 1.5)


def _error(at: Callable[[float], FitForecast], epsilon: float) -> float:
    """The forecast; an epsilon that is too small for the method has none that is small enough."""
    try:
        return at(epsilon).error
    except (ValueError, OverflowError):
        return math.inf


def _rows_needed(at: Callable[[float, int], FitForecast], rows: int, wanted: float) -> int | None:
    """About how many rows it takes at a usual epsilon, to a factor of 2."""
    for doublings in range(1, _MOST_DOUBLINGS):
        if at(USUAL, rows * 2**doublings).error <= wanted:
            return rows * int(2**doublings)
    return None
