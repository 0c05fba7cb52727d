"""Lists of proposals: every combination is one proposal, a private selection finds the best on public rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import LedgerLike, Outcome, Unit
from snugdp.mechanisms.linear.base import Fit, Method
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows

_MAX_COMBINATIONS = 10_000
_FORECASTS = 6  # proposals that a forecast looks at
OPTIONS = ("law", "mean_runs", "most_runs", "route")


class Maker(Protocol):
    """Makes the method for one proposal and a budget, or refuses the proposal."""

    def __call__(self, proposal: Mapping[str, Any], budget: Budget) -> Method:
        """One method."""
        ...


def is_list(value: object) -> bool:
    """Whether a proposal is a list of them."""
    return isinstance(value, list | tuple | range | np.ndarray)


def combinations(proposals: Mapping[str, Any], listed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Every combination of the listed proposals, with the others as they are.

    >>> combinations({"ridge": [1, 2], "clip": [3, 4], "steps": 5}, ("ridge", "clip"))[1]
    {'ridge': 1, 'clip': 4, 'steps': 5}
    """
    values = [list(proposals[name]) for name in listed]
    count = math.prod(map(len, values))
    if not count:
        raise ValueError("a list of proposals is empty: give at least one value")
    if count > _MAX_COMBINATIONS:
        raise ValueError(f"that makes {count:,} proposals: give at most {_MAX_COMBINATIONS:,}")
    return [{**proposals, **dict(zip(listed, chosen, strict=True))} for chosen in product(*values)]


@dataclass(frozen=True)
class Run:
    """One fit of one proposal, as a run of a selection."""

    make: Maker
    unit: Unit = Unit.ROW

    def __call__(
        self,
        proposal: Mapping[str, Any],
        budget: Budget,
        ledger: LedgerLike | None,
        *,
        rows: Secret[Rows] | None = None,
        noise: Noise | None = None,
    ) -> Outcome[Fit]:
        """Pay from the ledger of the run, test, release or refuse."""
        assert rows is not None
        return self.make(proposal, budget).fit(rows, ReleaseContext(noise, ledger, budget, unit=self.unit))

    def plan(self, proposal: Mapping[str, Any], budget: Budget) -> Plan:
        """What that will cost."""
        return self.make(proposal, budget).plan()


@dataclass(frozen=True, eq=False)
class ValidationScore:
    """How good the linear function of a run is on public rows: the larger the ``value``, the better."""

    rows: NDArray[np.float64]
    target: NDArray[np.float64]
    value: Callable[[NDArray[np.float64], NDArray[np.float64]], float]

    def __post_init__(self) -> None:
        if not len(self.target) or self.rows.shape[:1] != self.target.shape:
            raise ValueError("validation must hold at least one public row, and one target for each")

    def __call__(self, release: Outcome[Fit]) -> float:
        """Of what a run released."""
        fit = release.value
        assert fit is not None
        with np.errstate(all="ignore"):
            return self.value(self.rows @ fit.theta.T, self.target)


class Searched:
    """The best of many proposals on public rows; a ``Method`` whose outcome holds a ``Selected``.

    Guarantee: (epsilon, delta) of the budget in all (``mechanisms/selection/select.proof.md``, Theorem 1).
    """

    def __init__(
        self,
        make: Maker,
        proposals: list[dict[str, Any]],
        budget: Budget,
        *,
        score: Callable[[Outcome[Fit]], float],
        options: Mapping[str, Any],
        progress: bool | None = None,
        unit: Unit = Unit.ROW,
    ) -> None:
        from snugdp.mechanisms.selection.select import Selection

        self._make, self._progress = make, progress
        self.selection = Selection(proposals, Run(make, unit), score, budget=budget, unit=unit, **options)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        return self.selection.plan()

    def forecast(self, rows: int) -> Accuracy:
        """What to expect of the proposal with the least forecast error, among a few of them."""
        budget, proposals = self.selection.run_budget, self.selection.proposals
        some = proposals[:: math.ceil(len(proposals) / _FORECASTS)]
        found = [self._make(proposal, budget).forecast(rows) for proposal in some]
        return min(found, key=lambda forecast: forecast.excess)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Any]:
        """Pay once, run, keep the best: a ``Selected`` whose release is the winner's."""
        return self.selection.paid_from(context, self._progress, rows=rows)


def options_of(selection: object) -> dict[str, Any]:
    """How to select, as the user said it."""
    if not isinstance(selection, Mapping | None):
        raise TypeError(f"selection must map names to values; allowed: {', '.join(OPTIONS)}")
    given = dict(selection or {})
    if unknown := [name for name in given if name not in OPTIONS]:
        raise ValueError(f"selection has no option {', '.join(map(str, unknown))}; allowed: {', '.join(OPTIONS)}")
    return given
