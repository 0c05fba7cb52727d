"""What to expect of a fit before anything is spent: the error against epsilon, and what more rows would bring.

All of it comes from public parameters: rows lie between their bounds as usual, are spread as somebody knows in public,
or are like those of a public sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sklearn.base import clone

from snugdp.core.guarantee import Budget
from snugdp.estimators.base import Forecaster
from snugdp.estimators.forecasts.public_sample import PublicSample
from snugdp.estimators.forecasts.usual import SAMPLED, Spread, Usual, refuse
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import ROWS_LIKE, ErrorOf, FitForecast, Note
from snugdp.propose.plan import Plan, whole_rows

FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
MORE = (1, 2, 4)


@dataclass(frozen=True)
class Outlook:
    """Forecasts around what was asked for. ``target``: its name, where errors are in its units. ``grid``: by epsilon,
    then by rows; every forecast says its epsilon. ``like``: of what rows they are true; None: of rows that fill their
    bounds evenly.
    """

    error_of: ErrorOf
    target: str | None
    asked: FitForecast
    grid: tuple[tuple[FitForecast, ...], ...]
    like: Note | None = None

    @property
    def by_epsilon(self) -> tuple[FitForecast, ...]:
        """For the rows that were asked for."""
        return tuple(line[0] for line in self.grid)

    def of_plan(self, plan: Plan) -> Plan:
        """The plan with what is expected here in place of its own forecast, and of what rows it is true."""
        notes = [note for note in plan.forecast.notes if not note.code.startswith(ROWS_LIKE)]
        notes += [] if self.like is None else [self.like]
        fits = (replace(self.asked, epsilon=None),) if plan.forecast.fits else ()
        return replace(plan, forecast=replace(plan.forecast, fits=fits, notes=tuple(notes)))

    def corrected(self, seen: Usual) -> Outlook:
        """The same as a rehearsal saw it."""
        grid = tuple(tuple(seen.of(fit) for fit in line) for line in self.grid)
        return replace(self, asked=seen.of(self.asked), grid=grid, like=seen.note)


def forecast(
    model: Any,
    rows: int,
    *,
    n_features: int | None = None,
    sample: Any = None,
    spread: Spread | None = None,
    factors: Sequence[Fraction | int] = FACTORS,
    more: Sequence[int] = MORE,
) -> Outlook:
    """The error of a linear model, a sparse one or a PCA, at several epsilons and numbers of rows. Free of charge.

    ``rows``: a public guess. ``n_features``: of an array; a schema knows. ``sample``: public rows, a table or a pair
    (X, y) as for a fit, on which the fit is rehearsed; the forecasts are then for rows like these. ``spread``: about
    the standard deviation of columns over the distance between their bounds, as in ``advise``. ``factors`` of the
    model's epsilon, and ``more``, multiples of the rows; 1 is always among both. An epsilon that is too small for the
    method is left out.

    >>> from snugdp import LinearRegression
    >>> outlook = forecast(LinearRegression(method="adassp", x_norm=1, y_bound=1), 1000, n_features=3)
    >>> few, many = outlook.grid[0][0].error, outlook.grid[-1][-1].error
    >>> outlook.asked.rows, bool(0 < many < outlook.asked.error < few)
    (1000, True)
    """
    count = whole_rows(rows)
    if count is None:
        raise ValueError("give rows=..., a public guess of the number of rows")
    if not hasattr(model, "_forecaster"):
        raise TypeError("forecasts are for linear models, sparse ones and PCA; for others look at plan()")
    budget: Budget = model._promised()
    counts = [count * times for times in sorted({1, *more})]
    lines: list[tuple[FitForecast, ...]] = []
    outlook: Outlook | None = None
    for factor in sorted({Fraction(1), *map(Fraction, factors)}):
        epsilon = budget.epsilon * factor
        try:
            look = forecaster(model, epsilon, n_features, spread)
            line = tuple(look.at(each, float(epsilon)) for each in counts)
        except (ValueError, OverflowError):
            if factor == 1:
                raise
            continue
        lines.append(line)
        if factor == 1:
            asked, outlook = look, Outlook(look.error_of, look.target, line[0], (), look.like)
    assert outlook is not None
    outlook = replace(outlook, grid=tuple(lines))
    if sample is None:
        return outlook
    return outlook.corrected(rehearsed(model, PublicSample.of(sample), asked, count, float(budget.epsilon)))


def forecaster(model: Any, epsilon: Real, n_features: int | None, spread: Spread | None = None) -> Forecaster:
    """The forecasts of a model at another epsilon."""
    other = clone(model).set_params(epsilon=epsilon, ledger=None)
    if not hasattr(other, "_usual"):
        refuse(spread)
    given = () if spread is None else (spread,)
    found: Forecaster = other._forecaster(n_features, *given)
    return found


def rehearsed(model: Any, sample: PublicSample, look: Forecaster, rows: int, epsilon: float) -> Usual:
    """What a rehearsal on public rows has for errors, over the forecast for as many rows from public numbers alone.

    Where rows are too many to be rehearsed in a moment, both are for fewer.
    """
    if look.error_of not in (ErrorOf.PREDICTION, ErrorOf.STANDARDISED, ErrorOf.LINEAR):
        raise TypeError("a sample is for linear, additive, logistic and Poisson models and GLMs: leave out sample=")
    count = min(rows, sample.most)
    (error, typical), expected = sample.errors(model, count, look.error_of), look.at(count, epsilon).error
    return Usual(error / expected, SAMPLED, typical / expected)
