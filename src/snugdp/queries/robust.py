"""Median, quantile and trimmed mean by propose–test–release. Proofs: ``mechanisms/*.proof.md``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting.rational import Real, rational
from snugdp.data.column import numbers
from snugdp.data.grid import Grid
from snugdp.guarantee import Budget, Neighbours
from snugdp.mechanisms import median as _median
from snugdp.mechanisms import quantile as _quantile
from snugdp.mechanisms import trimmed_mean as _trimmed
from snugdp.mechanisms.stable import BOUNDED_PROOF, Bounded, Stable, usual_error
from snugdp.noise import Noise
from snugdp.outcome import Ledger, Outcome
from snugdp.ptr.propose import Plan
from snugdp.queries.face import Shown, budget_for, require_delta, run, share_of
from snugdp.secret import Secret

Cells = NDArray[np.int64]


@dataclass(frozen=True)
class Statistic:
    """A query on ordered cells: value, distance at a proposal, what divides the value, global sensitivity."""

    value: Callable[[Cells], int]
    distance: Callable[[Cells, int], int | float]
    divisor: int
    largest: int


@dataclass(frozen=True, kw_only=True)
class RobustQuery(ABC):
    """A number that a few rows can hardly move, released if that is so for the data at hand.

    ``bounds``: public. ``beta``: the proposal, how much one row may move the answer; without it one is chosen from
    public quantities. ``rows``: the number of rows (replace), or a public guess of it (add/remove), for that choice.
    ``test_share``: the part of epsilon that pays for the test. ``missing``: what a row that is no number counts as; by
    default the lower bound.
    """

    epsilon: Real
    delta: Real = 0
    bounds: tuple[Real, Real] | None = None
    neighbours: Neighbours | str = Neighbours.REPLACE
    beta: Real | None = None
    rows: int | None = None
    test_share: Real = 0.5
    missing: Real | None = None

    name: ClassVar[str]
    proof: ClassVar[str]  # of the distance; the release itself is mechanisms/stable.proof.md
    covered: ClassVar[tuple[Neighbours, ...]] = (Neighbours.REPLACE,)

    def __post_init__(self) -> None:
        self._budget, self._grid  # noqa: B018  a bad parameter is refused here, before any data are seen
        share_of(self.test_share)
        if self.rows is not None and (isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1):
            raise ValueError("rows must be a whole number of at least 1, known or guessed without the data")
        if self.beta is not None and rational(self.beta, "beta") < 0:
            raise ValueError("beta, the proposed bound on the sensitivity, must not be negative")
        if self.missing is not None:
            self._grid.nearest(self.missing, "missing")

    def plan(self) -> Plan:
        """What will be done, what it costs, what to expect. No data are read."""
        if self.rows is None and self._budget.neighbours is Neighbours.REPLACE:
            raise ValueError("give rows=..., the number of rows: it is public when neighbours replace a row")
        return self._prepare(self.rows)[1]

    def release(self, data: object, *, ledger: Ledger | None = None, noise: Noise | None = None) -> Outcome[float]:
        """Pay, test, release or refuse.

        Guarantee: the plan's cost, for neighbours in the chosen relation; assumptions are in the privacy promise.
        """
        missing = self._grid.lower if self.missing is None else self._grid.nearest(self.missing, "missing")
        cells = self._grid.integers(numbers(data), missing)
        cells.sort()
        rows = len(cells) if self._budget.neighbours is Neighbours.REPLACE else self.rows
        if rows is not None and rows < 1:
            raise ValueError("the column is empty, and its length is public when neighbours replace a row")
        mechanism, plan = self._prepare(rows)
        divisor = self._statistic(rows).divisor
        shown = Shown(mechanism, lambda drawn: self._grid.number(Fraction(drawn, divisor)))
        test = mechanism.test() if isinstance(mechanism, Stable) else mechanism
        return run(plan, test, shown, Secret(cells), self._budget, ledger=ledger, noise=noise)

    @property
    def _budget(self) -> Budget:
        return budget_for(self.epsilon, self.delta, self.neighbours, self.covered)

    @property
    def _grid(self) -> Grid:
        return Grid.between(self.bounds)

    @property
    def _theorem(self) -> str:
        return self.proof

    @abstractmethod
    def _statistic(self, rows: int | None) -> Statistic:
        """The query on ordered cells."""

    def _prepare(self, rows: int | None) -> tuple[Stable[Cells] | Bounded[Cells], Plan]:
        """Proposal, mechanism and plan, from public quantities alone."""
        statistic, unit = self._statistic(rows), self._grid.unit
        beta = self._proposal(statistic, rows)
        scale = unit / statistic.divisor
        if beta >= statistic.largest:  # no data set can exceed the proposal
            bounded = Bounded(statistic.value, statistic.largest, self._budget)
            proposal = {"beta": float(statistic.largest * scale)}
            error = usual_error(bounded.scale * scale)
            return bounded, Plan(self.name, BOUNDED_PROOF, proposal, bounded.steps(), (_within(error),))
        require_delta(self._budget)
        stable = Stable(
            statistic.value,
            lambda cells: statistic.distance(cells, beta),
            beta,
            self._budget,
            share_of(self.test_share),
        )
        forecast = (
            _within(usual_error(stable.scale * scale)),
            f"released in 19 of 20 cases if at least {stable.safe_distance()} rows would have to change before one row "
            "could move the answer by more than beta",
        )
        plan = Plan(self.name, self._theorem, {"beta": float(beta * scale)}, stable.steps(), forecast)
        return stable, plan

    def _proposal(self, statistic: Statistic, rows: int | None) -> int:
        """The proposal in cells of the statistic, rounded down; the one asked for, or one from public quantities."""
        if self.beta is not None:
            return math.floor(rational(self.beta, "beta") / self._grid.unit * statistic.divisor)
        return self._default(statistic, rows)

    def _default(self, statistic: Statistic, rows: int | None) -> int:
        """Wide enough for rows as dense around the answer as if spread evenly over the bounds, and half more."""
        if rows is None:
            return statistic.largest // 100
        require_delta(self._budget)
        trial = Stable(statistic.value, lambda _: 0, 1, self._budget, share_of(self.test_share))
        return math.ceil(Fraction(3 * statistic.largest * trial.safe_distance(), 2 * rows))


@dataclass(frozen=True, kw_only=True)
class Median(RobustQuery):
    """The lower median. Example: ``Median(bounds=(0, 120), epsilon=1, delta=1e-6).release(ages)``."""

    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    name = "median"
    proof = "mechanisms/median.proof.md#theorem-1"
    covered = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)

    @property
    def _theorem(self) -> str:
        return self.proof if self._budget.neighbours is Neighbours.ADD_REMOVE else Quantile.proof

    def _statistic(self, rows: int | None) -> Statistic:
        if self._budget.neighbours is Neighbours.REPLACE:
            return _rank_statistic(self._grid, ((rows or 1) + 1) // 2)
        grid = self._grid
        return Statistic(
            lambda cells: int(_median.value(cells, grid.lower)),
            lambda cells, beta: _median.distance(cells, grid.lower, grid.upper, beta),
            1,
            grid.width,
        )


@dataclass(frozen=True, kw_only=True)
class Quantile(RobustQuery):
    """The q-quantile: the row of rank ceil(q n). ``Quantile(q=0.9, bounds=(0, 500), epsilon=1, delta=1e-6)``."""

    q: Real
    name = "quantile"
    proof = "mechanisms/quantile.proof.md#theorem-1"

    def __post_init__(self) -> None:
        if not 0 <= rational(self.q, "q") <= 1:
            raise ValueError("q must be between 0 and 1")
        super().__post_init__()

    def _statistic(self, rows: int | None) -> Statistic:
        return _rank_statistic(self._grid, max(1, math.ceil(rational(self.q, "q") * (rows or 1))))


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(RobustQuery):
    """The mean without the floor(trim n) smallest and largest rows.

    Without ``beta`` it takes the sensitivity that holds for all data, never refuses and spends no delta; propose a
    smaller ``beta`` when the bounds are loose.
    """

    trim: Real = 0.1
    name = "trimmed mean"
    proof = "mechanisms/trimmed_mean.proof.md#theorem-1"

    def __post_init__(self) -> None:
        if not 0 <= rational(self.trim, "trim") < Fraction(1, 2):
            raise ValueError("trim, the share dropped at each end, must be at least 0 and less than 1/2")
        super().__post_init__()

    def _statistic(self, rows: int | None) -> Statistic:
        grid, count = self._grid, rows or 1
        trim = math.floor(rational(self.trim, "trim") * count)
        kept = count - 2 * trim
        return Statistic(
            lambda cells: _trimmed.total(cells, trim),
            lambda cells, beta: _trimmed.distance(cells, trim, grid.lower, grid.upper, Fraction(beta, kept)),
            kept,
            grid.width,
        )

    def _default(self, statistic: Statistic, rows: int | None) -> int:
        return statistic.largest


def _rank_statistic(grid: Grid, rank: int) -> Statistic:
    return Statistic(
        lambda cells: int(_quantile.value(cells, rank, grid.lower)),
        lambda cells, beta: _quantile.distance(cells, rank, grid.lower, grid.upper, beta),
        1,
        grid.width,
    )


def _within(error: float) -> str:
    return f"the noise moves the answer by less than {error:,.4g} in 19 of 20 cases"


def median(
    data: object,
    *,
    bounds: tuple[Real, Real],
    epsilon: Real,
    delta: Real,
    neighbours: Neighbours | str = "add_remove",
    beta: Real | None = None,
    rows: int | None = None,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: Ledger | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private median of one column; the parameters are those of ``Median``.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/median.proof.md``; for replace
    ``mechanisms/quantile.proof.md``), whether it ends in a release or in a refusal.

    >>> import snugdp
    >>> ages = [30 + i % 20 for i in range(2000)]
    >>> snugdp.median(ages, bounds=(0, 120), epsilon=1, delta=1e-6).refused
    False
    """
    return Median(
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        beta=beta,
        rows=rows,
        test_share=test_share,
        missing=missing,
    ).release(data, ledger=ledger, noise=noise)


def quantile(
    data: object,
    q: Real,
    *,
    bounds: tuple[Real, Real],
    epsilon: Real,
    delta: Real,
    neighbours: Neighbours | str = "replace",
    beta: Real | None = None,
    rows: int | None = None,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: Ledger | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private q-quantile of one column; the parameters are those of ``Quantile``.

    Guarantee: (epsilon, delta)-DP when neighbours replace one row (``mechanisms/quantile.proof.md``).

    >>> import snugdp
    >>> waits = [i % 60 for i in range(5000)]
    >>> snugdp.quantile(waits, 0.9, bounds=(0, 60), epsilon=1, delta=1e-6, beta=5).refused
    False
    """
    return Quantile(
        q=q,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        beta=beta,
        rows=rows,
        test_share=test_share,
        missing=missing,
    ).release(data, ledger=ledger, noise=noise)


def trimmed_mean(
    data: object,
    *,
    trim: Real = 0.1,
    bounds: tuple[Real, Real],
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "replace",
    beta: Real | None = None,
    rows: int | None = None,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: Ledger | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private trimmed mean of one column; the parameters are those of ``TrimmedMean``.

    Guarantee: (epsilon, delta)-DP when neighbours replace one row (``mechanisms/trimmed_mean.proof.md``).

    >>> import snugdp
    >>> 4 < snugdp.trimmed_mean([5.0] * 1000, bounds=(0, 10), epsilon=5).value < 6
    True
    """
    return TrimmedMean(
        trim=trim,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        beta=beta,
        rows=rows,
        test_share=test_share,
        missing=missing,
    ).release(data, ledger=ledger, noise=noise)
