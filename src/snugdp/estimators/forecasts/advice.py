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
from snugdp.estimators.forecasts.forecast import Outlook, forecaster, rehearsed
from snugdp.estimators.forecasts.public_sample import PublicSample
from snugdp.estimators.forecasts.usual import SAMPLED, Spread, Usual
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import EPSILONS, ErrorOf, FitForecast, Note
from snugdp.propose.plan import Plan, whole_rows

_LOGARITHMS = tuple(math.log(epsilon) for epsilon in EPSILONS)
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
    like : Note or None
        Of what rows the forecasts are true; None: of rows that fill their bounds evenly.
    typical : float or None
        By how much noise moves a typical prediction, where that is known: half of them by less. The error is mostly
        that of few rows far from the others.
    """

    epsilon: float | None
    error: float
    wanted: float | None
    rows: int
    rows_needed: int | None
    plan: Plan
    error_of: ErrorOf
    target: str | None
    like: Note | None = None
    typical: float | None = None

    def __str__(self) -> str:
        from importlib import import_module

        words: str = import_module("snugdp.report.plan_text").advice_text(self)  # above this package
        return words


def advise(
    model: Any,
    *,
    rows: int,
    error: Real | None = None,
    n_features: int | None = None,
    sample: Any = None,
    spread: Spread | None = None,
) -> Advice:
    """From a wanted error to the epsilon that it takes; without one, the error that the model's epsilon leaves.

    Guarantee: no private data are read, and nothing is spent. It is a forecast, not a promise: of privacy noise alone,
    for rows as they usually are, as they are said to be spread, or like those of a public sample.

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
    spread : float or mapping, optional
        About the standard deviation of columns over the distance between their bounds, such as 0.15, as far as it is
        known in public: one number, or one for each of some columns by name, the target above all, such as
        {"income": 0.05}. For linear regression with bounds for all columns.

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

    looks = _Looks(model, count, n_features, spread, None if sample is None else PublicSample.of(sample))
    if wanted is None:
        chosen: float | None = float(model._promised().epsilon)
        needed = None
    else:
        chosen, needed = looks.enough(wanted)
    told = EPSILONS[-1] if chosen is None else chosen
    found, expected = looks.at(told), looks.expected(told, count, told)
    like = found.like if sample is None else SAMPLED
    options = {} if n_features is None else {"n_features": n_features}
    if found.error_of is not ErrorOf.VARIANCE:  # the plan of a PCA is the same for any number of rows
        options["rows"] = count
    plan = _with(model, told).plan(**options)
    if sample is not None or spread is not None:
        plan = Outlook(found.error_of, found.target, expected, (), like).of_plan(plan)
    error_of, target = found.error_of, found.target
    return Advice(chosen, expected.error, wanted, count, needed, plan, error_of, target, like, expected.typical)


@dataclass(frozen=True, eq=False)
class _Looks:
    """The forecasts of one model at any epsilon, and rehearsals on a public sample, each made once."""

    model: Any
    rows: int
    n_features: int | None
    spread: Spread | None
    sample: PublicSample | None

    @cache  # noqa: B019  it lives as long as a search
    def at(self, epsilon: float) -> Forecaster:
        """By public numbers alone."""
        return forecaster(self.model, epsilon, self.n_features, self.spread)

    @cache  # noqa: B019
    def _seen(self, sample: PublicSample, epsilon: float) -> Usual:
        """What a rehearsal at this epsilon says, over what public numbers do."""
        return rehearsed(_with(self.model, epsilon), sample, self.at(epsilon), self.rows, epsilon)

    def expected(self, epsilon: float, rows: int, tried: float | None) -> FitForecast:
        """The forecast, as a rehearsal at another epsilon corrects it, if there was any."""
        found = self.at(epsilon).at(rows, epsilon)
        return found if self.sample is None or tried is None else self._seen(self.sample, tried).of(found)

    def _error(self, epsilon: float, rows: int, tried: float | None) -> float:
        """Of an epsilon that is too small for the method, or to find bounds, none is small enough."""
        try:
            return self.expected(epsilon, rows, tried).error if rows >= self.at(epsilon).least else math.inf
        except (ValueError, OverflowError):
            return math.inf

    def enough(self, wanted: float) -> tuple[float | None, int | None]:
        """The smallest epsilon whose noise is small enough; where none is, the rows with which a usual one is.

        With a sample, what public numbers say is rehearsed, and so is what follows from that, until it is enough.
        """
        tried, place = None, self._first(wanted, None)
        if self.sample is not None:
            tried = EPSILONS[min(place, len(EPSILONS) - 1)]
            place = self._first(wanted, tried)
        while place < len(EPSILONS) and self._error(EPSILONS[place], self.rows, EPSILONS[place]) > wanted:
            tried = EPSILONS[place]
            place = max(place + 1, self._first(wanted, tried))
        if place < len(EPSILONS):
            return EPSILONS[place], None
        return None, _rows_needed(lambda rows: self._error(USUAL, rows, tried), self.rows, wanted)

    def _first(self, wanted: float, tried: float | None) -> int:
        return _first_that_reaches(lambda epsilon: self._error(epsilon, self.rows, tried), wanted)


def _with(model: Any, epsilon: float) -> Any:
    return clone(model).set_params(epsilon=epsilon, ledger=None)


def _first_that_reaches(error_at: Callable[[float], float], wanted: float) -> int:
    """The place of the smallest epsilon whose noise is small enough; one beyond the last where none is.

    A forecast calibrates a whole plan, so few are looked at: the next epsilon is guessed from the last two, as if
    errors were powers of it; after a few guesses, halfway.
    """
    low, high, place, seen = -1, len(EPSILONS), EPSILONS.index(USUAL), [(0.0, math.inf)]
    while high - low > 1:
        error = error_at(EPSILONS[place])
        low, high = (low, place) if error <= wanted else (place, high)
        seen.append((_LOGARITHMS[place], math.log(error / wanted) if error > 0 else -math.inf))
        guess = (low + high) // 2
        if math.isfinite(seen[-1][1]) and len(seen) <= _GUESSED_LOOKS:
            guess = bisect.bisect_left(_LOGARITHMS, seen[-1][0] + seen[-1][1] / _power(seen))
        place = min(max(guess, low + 1), high - 1)
    return high


def _power(seen: Sequence[tuple[float, float]]) -> float:
    """Of 1 / epsilon, to which errors are about in proportion: by the last two looks, logarithms of both."""
    (x, y), (last, error) = seen[-2:]
    if len(seen) < 3 or last == x or not math.isfinite(y):
        return _USUAL_POWER
    return min(max((y - error) / (last - x), 0.3), 1.5)


def _rows_needed(error_at: Callable[[int], float], rows: int, wanted: float) -> int | None:
    """About how many rows it takes at a usual epsilon, to a factor of 2."""
    for doublings in range(1, _MOST_DOUBLINGS):
        if error_at(rows * 2**doublings) <= wanted:
            return rows * int(2**doublings)
    return None
