"""What private estimators have in common: the promise they made, the refusal, and a pickle without a purse."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Receipt
from snugdp.mechanisms.linear.base import Method
from snugdp.noise import Noise, Simulation
from snugdp.numerics.printed import printed_up
from snugdp.numerics.rationals import written_up
from snugdp.propose.plan import Plan
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.schema.schema import Layout

_TYPICAL = (1_000, 10_000, 100_000, 1_000_000)
_FEW = 6


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
        stacklevel=4,
    )
    return Simulation(int(random_state))


def require_rows(data: object) -> None:
    """A rehearsal needs rows. A release does not ask: how many there are is private."""
    if isinstance(data, ArraySource) and data.is_empty():
        raise ValueError("Found array with 0 sample(s): a rehearsal needs at least one row")


@dataclass(frozen=True)
class Promise:
    """What a fit promises about every person in the table, in plain numbers.

    >>> print(Promise(Budget(1, 1e-6), "mechanisms/objective/robust.proof.md#theorem-1"))
    (1, 1e-06)-differential privacy, neighbours: add_remove
    """

    budget: Budget
    proof: str

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
        return f"({epsilon}, {delta})-differential privacy, neighbours: {self.neighbours}"


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


def refused(name: str, without_test: str = "adassp") -> NoReturn:
    """The error of a refused estimator when it is asked for predictions."""
    raise NotReleased(
        f"the fit of this {name} was refused: its test could not show that these data permit the proposal. The budget "
        "is spent, and why is private. Try more rows, a larger epsilon or delta, tighter bounds, other proposals (look "
        f'at plan()), or a method without a test, such as method="{without_test}"'
    )


def whole_rows(rows: Any, name: str = "rows") -> int | None:
    """A public number of rows, or of something else, or none."""
    if rows is None:
        return None
    try:
        count = operator.index(rows)
    except TypeError:
        count = 0
    if count < 1 or isinstance(rows, bool):
        raise ValueError(f"{name} must be a whole number of at least 1, known or guessed without the data")
    return count


def forecast_lines(method: Method, layout: Layout, rows: int | None, off_in: str = "predictions") -> tuple[str, ...]:
    """What to expect in the user's units, for a guess of the number of rows or for several."""
    lines = []
    for count in _TYPICAL if rows is None else (rows,):
        expected = method.forecast(as_long_rows(count, layout))
        off = float(np.sqrt(expected.excess)) * layout.target_units[1]
        lines.append(
            f"with {count:,} rows that fill their bounds evenly: noise of about "
            f"{_per_coefficient(layout, expected.noise)} in a coefficient, {off_in} off by about {off:.3g} more "
            "than without noise"
        )
    return tuple(lines)


def as_long_rows(rows: int, layout: Layout) -> int:
    """How many rows of full length tell as much: numbers spread evenly over their bounds have a third of the square."""
    features = len(layout.features) - layout.intercept
    share = (features + 1) / (6 * features) if layout.intercept else 1 / 3
    return max(1, round(rows * share))


def in_users_units(layout: Layout, noise: float) -> Any:
    """The deviation of every coefficient, from that of a scaled one."""
    return np.abs(layout.coefficients(np.full(len(layout.features), noise)).values)


def described(method: Method, layout: Layout, rows: int | None, off_in: str = "predictions") -> Plan:
    """The plan of a method, with what to expect in the user's units."""
    plan = method.plan()
    own = tuple(f"scaled rows: {line}" for line in plan.forecast)
    return replace(plan, forecast=(*forecast_lines(method, layout, rows, off_in), *own))


def _per_coefficient(layout: Layout, noise: float) -> str:
    names = layout.coefficients(np.zeros(len(layout.features))).names
    if not np.isfinite(noise):
        return "unbounded size"
    values = in_users_units(layout, noise)
    if np.ptp(values) <= 1e-9 * values.max():
        return f"{values[0]:.3g}"
    if len(values) <= _FEW:
        return _listed([f"{value:.3g} ({name})" for name, value in zip(names, values, strict=True)])
    return f"{values.min():.3g} to {values.max():.3g}"


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts)
