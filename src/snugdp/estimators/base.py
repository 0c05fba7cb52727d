"""What private estimators have in common: the promise they made, the refusal, and a pickle without a context."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Receipt, Unit
from snugdp.estimators.coefficients import deviations, shown
from snugdp.estimators.forecasts.usual import EVEN, Usual
from snugdp.mechanisms.linear.base import Method
from snugdp.noise import Noise, Simulation
from snugdp.numerics.printed import printed_up
from snugdp.numerics.rationals import written_up
from snugdp.propose.forecast import ErrorOf, FitForecast, Note
from snugdp.propose.plan import Plan
from snugdp.propose.theorem import Theorem
from snugdp.tables.layouts.arrays import NumberLayout, WrappedLayout
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.schema.missing import policy_of
from snugdp.tables.schema.schema import Layout

LATER: Mapping[str, Any] = {
    "bounds": "private", "missing": None, "person": None, "max_rows": 1, "inference": False, "target": "robust",
    "effects": "auto",
}  # fmt: skip
"""Parameters that came later, with their defaults: while they have them, nothing is written of them."""
_TYPICAL = (1_000, 10_000, 100_000, 1_000_000)
_GAPS = {  # the notes about missing cells: of all columns, or of some
    "centre": ("missing-centre", "missing-centre-in"),
    "drop": ("missing-drop", "missing-drop-in"),
    "indicator": ("missing-indicator", "missing-indicator-in"),
}
_GAPS_FOUND = {  # the same where centres are found
    **_GAPS,
    "centre": ("missing-found", "missing-found-in"),
    "indicator": ("missing-found-indicator", "missing-found-indicator-in"),
}


class NotReleased(RuntimeError):  # noqa: N818  it is an outcome, not a mistake
    """The fit was paid for and ended in a refusal: there is nothing to predict with."""


class NotPrivateWarning(UserWarning):
    """A fit was rehearsed with a seed. Anyone who knows the seed knows the noise, so nothing is protected."""


def rehearsal(random_state: Any, noise: Noise | None) -> Noise:
    """A seeded source of noise, with a warning: people set ``random_state`` out of habit."""
    if noise is not None and not isinstance(noise, Simulation):
        raise ValueError("give noise or random_state, not both; leave both out to release")
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise TypeError("random_state must be a whole number, for a rehearsal that is NOT PRIVATE, or None to release")
    warnings.warn(
        "random_state makes this fit a rehearsal: its noise can be repeated, so it is NOT PRIVATE and must not be "
        "published. Leave random_state out to release",
        NotPrivateWarning,
        stacklevel=5,
    )
    return Simulation(int(random_state))


def require_rows(noise: Noise, is_empty: Callable[[], bool]) -> None:
    """A rehearsal needs rows. A release does not ask: how many there are is private."""
    if not noise.private and is_empty():
        raise ValueError("Found array with 0 sample(s): a rehearsal needs at least one row")


@dataclass(frozen=True)
class Promise:
    """What a fit promises about every person in the table, in plain numbers.

    >>> from snugdp.propose.theorem import theorem
    >>> print(Promise(Budget(1, 1e-6), theorem("linear-objective/1")))
    (1, 1e-06)-differential privacy, neighbours: add_remove
    """

    budget: Budget
    theorem: Theorem
    unit: Unit = Unit.ROW

    @property
    def epsilon(self) -> float:
        """As it was given, or rounded up where a float cannot say it."""
        return written_up(self.budget.epsilon)

    @property
    def delta(self) -> float:
        """As it was given, or rounded up where a float cannot say it."""
        return written_up(self.budget.delta)

    @property
    def neighbours(self) -> str:
        """The name of the relation."""
        return self.budget.neighbours.value

    def __str__(self) -> str:
        epsilon, delta = printed_up(self.budget.epsilon), printed_up(self.budget.delta)
        person = " of persons, whatever the number of their rows" if self.unit is Unit.PERSON else ""
        return f"({epsilon}, {delta})-differential privacy{person}, neighbours: {self.neighbours}"


class AbsentLedger:
    """Stands where the ledger was before an estimator was pickled: charges made elsewhere would not be seen there."""

    def charge(self, cost: Cost, what: str) -> Receipt:
        """Refuse."""
        raise RuntimeError(
            "this estimator was pickled, or sent to another process, and its ledger stayed behind: nothing was "
            "charged. It can predict; to fit again give it a ledger with set_params(ledger=...); search with n_jobs=1, "
            "or with a ledger that other processes can open: snugdp.Ledger.open(...)"
        )

    def __repr__(self) -> str:
        return "<ledger of another process>"


def refused(name: str, without_test: str = "adassp", *, looked: bool = False) -> NoReturn:
    """The error of a refused estimator when it is asked for predictions. ``looked``: its bounds were to be found."""
    if looked:
        raise NotReleased(
            f"the fit of this {name} was refused: there may have been too few rows to find the bounds of its target, "
            "or two classes, privately; or its test, if its method has one, could not show that these data permit the "
            "proposal. The budget is spent, and why is private. Try more rows (plan() says how many find a column or a "
            "class), a larger epsilon or delta, fewer columns, or bounds or classes that are known without the data"
        )
    raise NotReleased(
        f"the fit of this {name} was refused: its test could not show that these data permit the proposal, or the "
        "table was not the same each time that it was read. The budget is spent, and why is private. Try more rows, a "
        "larger epsilon or delta, tighter bounds, other proposals (look at plan()), or a method without a test, such "
        f'as method="{without_test}"'
    )


@dataclass(frozen=True)
class Forecaster:
    """The forecasts of one model, by rows and epsilon. ``target``: its name, where errors are in its units.

    ``like``: of what rows they are true; None: of rows that fill their bounds evenly. ``least``: of fewer rows hardly
    any fit is released.
    """

    error_of: ErrorOf
    target: str | None
    at: Callable[[int, float], FitForecast]
    like: Note | None = None
    least: int = 0


def forecaster_of(
    method: Method, layout: Layout, error_of: ErrorOf, target: str | None, *, usual: Usual, least: int = 0
) -> Forecaster:
    """Those of a method, where rows lie between their bounds as usual."""

    def at(rows: int, epsilon: float) -> FitForecast:
        return usual.of(fit_forecast(method, layout, rows, epsilon))

    return Forecaster(error_of, target, at, usual.note, least)


def fit_forecast(method: Method, layout: Layout, rows: int, epsilon: float | None = None) -> FitForecast:
    """What to expect of so many rows in the user's units, if they fill their bounds evenly."""
    return _fit_forecasts(method, layout, [rows], epsilon)[0]


def _fit_forecasts(
    method: Method, layout: Layout, counts: Sequence[int], epsilon: float | None = None
) -> tuple[FitForecast, ...]:
    names, (_, unit) = shown(layout, np.zeros(len(layout.features))).names, layout.target_units
    scales = deviations(layout, 1.0)  # of coefficients, for a scaled one of deviation 1

    def of(rows: int) -> FitForecast:
        accuracy = method.forecast(as_long_rows(rows, layout))
        values = accuracy.noise * scales if np.isfinite(accuracy.noise) else np.full(len(names), math.inf)
        noise = dict(zip(names, values.tolist(), strict=True))
        return FitForecast(rows, float(np.sqrt(accuracy.excess)) * unit, noise, epsilon)

    return tuple(of(rows) for rows in counts)


def with_fits(
    plan: Plan,
    method: Method,
    layout: Layout,
    rows: int | None,
    error_of: ErrorOf,
    *,
    least: int = 0,
    usual: Usual = EVEN,
) -> Plan:
    """The plan with what to expect in the user's units, for a guess of the number of rows or for several.

    ``least``: of fewer rows nothing can be said. ``usual``: how rows lie between their bounds.
    """
    counts = _TYPICAL if rows is None else (rows,)
    even = _fit_forecasts(method, layout, [count for count in counts if count >= least])
    fits = tuple(usual.of(fit) for fit in even)
    whole = replace(plan, forecast=replace(plan.forecast, fits=fits, error_of=error_of))
    like = () if usual.note is None or not fits else (usual.note,)
    return whole.with_notes(*like, *missing_notes(layout))


def missing_notes(layout: Layout) -> tuple[Note, ...]:
    """What is done with missing cells.

    >>> from snugdp import Number, Schema
    >>> schema = Schema({"a": Number(0, 1), "b": Number(0, 1), "y": Number(0, 1)}, target="y", missing={"a": "drop"})
    >>> [note.code for note in missing_notes(schema)]
    ['missing-target', 'missing-drop-in', 'missing-centre-in']
    """
    notes = () if layout.target is None else (Note("missing-target"),)
    inner: Any = layout
    while isinstance(inner, WrappedLayout):
        inner = inner.layout
    if isinstance(inner, NumberLayout):
        return (*notes, Note("missing-zero"))
    said = _GAPS_FOUND if isinstance(inner, StandardisedLayout) else _GAPS
    columns: dict[str, list[str]] = {}
    for name in inner.columns:
        if name != inner.target:
            columns.setdefault(policy_of(inner.missing, name), []).append(name)
    if len(columns) == 1:
        return (*notes, *(Note(said[policy][0]) for policy in columns))
    return (*notes, *(Note(said[policy][1], {"columns": ", ".join(names)}) for policy, names in columns.items()))


def as_long_rows(rows: int, layout: Layout) -> int:
    """How many rows of full length tell as much: numbers spread evenly over their bounds have a third of the square."""
    features = len(layout.features) - layout.intercept
    share = (features + 1) / (6 * features) if layout.intercept else 1 / 3
    return max(1, round(rows * share))


def told(name: str, value: Any) -> bool:
    """Whether files and keys tell of a parameter: not of one that came later while it has its default."""
    return name not in LATER or not (value is None or isinstance(value, str | int)) or value != LATER[name]
