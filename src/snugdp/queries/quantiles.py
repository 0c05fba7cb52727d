"""Medians and quantiles of one column: points of a public grid, drawn by their ranks.

Proofs: ``mechanisms/order_statistics/rank_draw.proof.md`` and ``several.proof.md``. Medians and quantiles can also be
proposed, tested and released (``queries/robust.py``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike, Outcome
from snugdp.mechanisms.order_statistics.rank_draw import RankTarget
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, share_of, whole_rows
from snugdp.propose.theorem import theorem
from snugdp.queries.ranks import RankQuery, SingleRank, usual_ranks
from snugdp.queries.robust import RobustQuery, TestedMedian, TestedQuantile
from snugdp.release.context import ReleaseContext

Method: TypeAlias = Literal["auto", "exponential", "test"]

_METHODS = ("auto", "exponential", "test")
_QUARTILES = (Fraction(1, 4), Fraction(3, 4))


@dataclass(frozen=True, kw_only=True)
class MiddleRank(SingleRank):
    """A point that is drawn by its rank, or a row that is proposed, tested and released with noise.

    Parameters
    ----------
    epsilon, delta, bounds, column, neighbours, step, missing
        As in ``median``.
    method : {"auto", "exponential", "test"}
        How: "exponential" draws a point by its rank; "test" proposes, tests and releases. "auto": "test" where a
        ``beta`` is given, else "exponential".
    beta, rows, test_share
        Of "test" alone, as in ``median``.
    """

    method: Method = "auto"
    beta: Real | None = None
    rows: int | None = None
    test_share: Real = 0.5

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise ValueError('method must be "auto", "exponential" or "test"')
        if self.method == "exponential" and self.beta is not None:
            raise ValueError('beta is a proposal, which method="test" makes: leave one of the two out')
        if self.rows is not None:
            object.__setattr__(self, "rows", whole_rows(self.rows))
        share_of(self.test_share)
        if self._tested is None:
            super().__post_init__()
        elif self.column is not None:
            raise ValueError('method="test" takes the column by itself, as in table["age"], without column=')

    def plan(self) -> Plan:
        """What will be done, what it costs, what to expect. No data are read."""
        return super().plan() if self._tested is None else self._tested.plan()

    @cached_property
    def _tested(self) -> RobustQuery | None:
        """The query that proposes and tests, where that is asked for."""
        tested = self.method == "test" or (self.method == "auto" and self.beta is not None)
        return self._by_test() if tested else None

    @abstractmethod
    def _by_test(self) -> RobustQuery:
        """The same question to a test."""

    @property
    def _for_test(self) -> dict[str, Any]:
        """The parameters of a test."""
        given = ("epsilon", "delta", "bounds", "neighbours", "beta", "rows", "step", "test_share", "missing")
        return {name: getattr(self, name) for name in given}

    def _release(self, data: object, context: ReleaseContext) -> Outcome[float]:
        return super()._release(data, context) if self._tested is None else self._tested._release(data, context)

    def _count_rows(self, rows: int) -> None:
        super()._count_rows(rows)
        if self.rows not in (None, rows):
            raise ValueError(
                "rows differs from the length of the column, which is public when neighbours replace a row"
            )

    def _notes(self) -> tuple[Note, ...]:
        return *super()._notes(), Note("drawn-or-tested")


@dataclass(frozen=True, kw_only=True)
class Median(MiddleRank):
    """A median of a column, with a plan before the release.

    Parameters
    ----------
    epsilon, delta, bounds, column, neighbours, method, beta, rows, step, test_share, missing
        As in ``median``.

    Examples
    --------
    >>> import snugdp
    >>> query = snugdp.Median(bounds=(0, 120), step=1, epsilon=1)
    >>> query.plan().cost.fits(snugdp.Budget(1))
    True
    >>> 38 <= query.release([30 + i % 20 for i in range(2000)]).value <= 41
    True
    """

    name = "Median"

    @property
    def _target(self) -> RankTarget:
        return RankTarget.quantile(Fraction(1, 2))

    def _by_test(self) -> RobustQuery:
        return TestedMedian(**self._for_test)


@dataclass(frozen=True, kw_only=True)
class Quantile(MiddleRank):
    """A quantile of a column, with a plan before the release.

    Parameters
    ----------
    epsilon, delta, bounds, column, neighbours, method, beta, rows, step, test_share, missing
        As in ``quantile``.
    q : Real
        Which quantile, between 0 and 1.

    Examples
    --------
    >>> query = Quantile(q=0.9, bounds=(0, 60), step=1, epsilon=1)
    >>> 52 <= query.release([i % 60 for i in range(6000)]).value <= 55
    True
    """

    q: Real
    name = "Quantile"

    @property
    def _target(self) -> RankTarget:
        return RankTarget.quantile(inner_quantile(self.q))

    def _proposal(self) -> dict[str, float | Fraction]:
        return {"q": float(rational(self.q, "q"))}

    def _by_test(self) -> RobustQuery:
        if self._budget.neighbours is not Neighbours.REPLACE:
            raise ValueError(
                'a test of a quantile (beta=..., method="test") is proved for neighbours="replace": say so, or leave '
                "beta out"
            )
        return TestedQuantile(q=self.q, **self._for_test)


@dataclass(frozen=True, kw_only=True)
class Quantiles(RankQuery[tuple[float, ...]]):
    """Several quantiles of a column, paid for together, with a plan before the release.

    Parameters
    ----------
    epsilon, delta, bounds, column, neighbours, step, missing
        As in ``quantiles``.
    q : sequence of Real
        Which quantiles, each between 0 and 1.

    Examples
    --------
    >>> query = Quantiles(q=[0.25, 0.5, 0.75], bounds=(0, 60), step=1, epsilon=3)
    >>> low, middle, high = query.release([i % 60 for i in range(6000)]).value
    >>> 12 <= low <= 17 < 27 <= middle <= 32 < 42 <= high <= 47
    True
    """

    q: Sequence[Real]
    name = "Quantiles"
    theorem = theorem("several-quantiles/1")

    def __post_init__(self) -> None:
        if isinstance(self.q, str) or not isinstance(self.q, Sequence | np.ndarray) or not len(self.q):
            raise ValueError("q must be a list of quantiles, such as [0.25, 0.5, 0.75]")
        object.__setattr__(self, "q", tuple(self.q))
        super().__post_init__()

    @cached_property
    def _wanted(self) -> tuple[Fraction, ...]:
        """The quantiles, in the order that was asked for."""
        return tuple(inner_quantile(q) for q in self.q)

    @cached_property
    def _mechanism(self) -> SeveralQuantiles:
        return SeveralQuantiles.within(self._budget, sorted(set(self._wanted)), self._points)

    def _notes(self) -> tuple[Note, ...]:
        return (Note("ranks-off", {"ranks": usual_ranks(self._mechanism.scale)}),)

    def _show(self, drawn: tuple[int, ...]) -> tuple[float, ...]:
        found = dict(zip(sorted(set(self._wanted)), drawn, strict=True))
        return tuple(self._grid.number(found[q]) for q in self._wanted)


@dataclass(frozen=True, kw_only=True)
class InterquartileRange(RankQuery[float]):
    """The distance of the quartiles of a column, with a plan before the release.

    Parameters
    ----------
    epsilon, delta, bounds, column, neighbours, step, missing
        As in ``interquartile_range``.

    Examples
    --------
    >>> query = InterquartileRange(bounds=(0, 60), step=1, epsilon=2)
    >>> 27 <= query.release([i % 60 for i in range(6000)]).value <= 33
    True
    """

    name = "Interquartile range"
    theorem = theorem("several-quantiles/1")

    @cached_property
    def _mechanism(self) -> SeveralQuantiles:
        return SeveralQuantiles.within(self._budget, _QUARTILES, self._points)

    def _notes(self) -> tuple[Note, ...]:
        return (Note("ranks-off", {"ranks": usual_ranks(self._mechanism.scale)}),)

    def _show(self, drawn: tuple[int, ...]) -> float:
        return float((drawn[1] - drawn[0]) * self._grid.unit)


def inner_quantile(q: Real) -> Fraction:
    """A quantile that is one, and no end."""
    found = rational(q, "q")
    if not 0 <= found <= 1:
        raise ValueError("q must be between 0 and 1")
    if found in (0, 1):
        raise ValueError("q=0 and q=1 are the ends of a column: ask for its minimum or its maximum")
    return found


def median(
    data: object,
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    method: Method = "auto",
    beta: Real | None = None,
    rows: int | None = None,
    step: Real = 0,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private median of one column: ``Median(...).release(data)``.

    Guarantee: epsilon-DP for the chosen neighbours (``order_statistics/rank_draw.proof.md``). By a test, (epsilon,
    delta)-DP (``order_statistics/median.proof.md``; for replace ``order_statistics/quantile.proof.md``), whether it
    ends in a release or in a refusal.

    Parameters
    ----------
    data : array-like or table
        The column; with ``column``, a table: a frame, the path of files, a database table or a Spark table.
    bounds : (Real, Real)
        Public bounds on the values of the column; required. Values beyond them count as the bound.
    column : str, optional
        The name of the column, if the data are a table.
    epsilon : Real
        Privacy budget.
    delta : Real, default=0
        Failure probability, which a test needs. A draw by rank does not spend it.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    method : {"auto", "exponential", "test"}
        "exponential": draw a point of a public grid by its rank; pure, without a proposal, never refused. "test":
        propose how far one row may move the answer, test that, and release with noise or refuse. "auto": "test" where
        a ``beta`` is given, else "exponential".
    beta : Real, optional
        The proposal of a test: how far one row may move the answer. By default it is derived from public quantities.
    rows : int, optional
        For a test, the number of rows ("replace"), or a public guess of it ("add_remove").
    step : Real, default=0
        The public spacing of the values, such as 1 for whole years; answers are then multiples of it.
    test_share : Real, default=0.5
        The share of epsilon that pays for a test.
    missing : Real, optional
        What missing and invalid entries count as. Without it they are left out; a test counts them as the lower bound.
    ledger : Ledger, MemoryLedger, str or path, optional
        The ledger to charge, or its path or URL. Without one this release is not counted against any budget; the
        outcome still states its ``cost``.
    noise : Noise, optional
        A ``Simulation`` rehearses the release, which is then NOT PRIVATE.


    Returns
    -------
    Outcome
        ``Released`` with the value; after a test perhaps ``Refused``; ``NotPrivate`` after a rehearsal.

    Examples
    --------
    >>> import snugdp
    >>> ages = [30 + i % 20 for i in range(2000)]
    >>> 38 <= snugdp.median(ages, bounds=(0, 120), step=1, epsilon=1).value <= 41
    True
    """
    return Median._answer(locals())


def quantile(
    data: object,
    q: Real,
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    method: Method = "auto",
    beta: Real | None = None,
    rows: int | None = None,
    step: Real = 0,
    test_share: Real = 0.5,
    missing: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private q-quantile of one column: ``Quantile(...).release(data)``.

    Guarantee: epsilon-DP for the chosen neighbours (``order_statistics/rank_draw.proof.md``). By a test, (epsilon,
    delta)-DP when neighbours replace one row (``order_statistics/quantile.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column; with ``column``, a table.
    q : Real
        Which quantile, between 0 and 1. For the ends themselves there are ``minimum`` and ``maximum``.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours; a test is proved for "replace" alone.
    bounds, column, epsilon, delta, method, beta, rows, step, test_share, missing, ledger, noise
        As in ``median``.


    Returns
    -------
    Outcome
        ``Released`` with the value; after a test perhaps ``Refused``; ``NotPrivate`` after a rehearsal.

    Examples
    --------
    >>> import snugdp
    >>> waits = [i % 60 for i in range(6000)]
    >>> 52 <= snugdp.quantile(waits, 0.9, bounds=(0, 60), step=1, epsilon=1).value <= 55
    True
    """
    return Quantile._answer(locals())


def quantiles(
    data: object,
    q: Sequence[Real],
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    step: Real = 0,
    missing: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[tuple[float, ...]]:
    """Several private quantiles of one column: ``Quantiles(...).release(data)``.

    Guarantee: epsilon-DP for the chosen neighbours, or (epsilon, delta)-DP where a delta is given and leaves less noise
    (``order_statistics/several.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column; with ``column``, a table.
    q : sequence of Real
        Which quantiles, each between 0 and 1.
    delta : Real, default=0
        Failure probability: with many quantiles it leaves less noise. The plan says whether it is spent.
    bounds, column, epsilon, neighbours, step, missing, ledger, noise
        As in ``median``; there is no test, and nothing is refused.


    Returns
    -------
    Outcome
        Its value is a tuple, in the order of ``q``.

    Examples
    --------
    >>> import snugdp
    >>> waits = [i % 60 for i in range(6000)]
    >>> low, high = snugdp.quantiles(waits, [0.25, 0.75], bounds=(0, 60), step=1, epsilon=2).value
    >>> 12 <= low <= 17 and 42 <= high <= 47
    True
    """
    return Quantiles._answer(locals())


def interquartile_range(
    data: object,
    *,
    bounds: tuple[Real, Real] | None = None,
    column: str | None = None,
    epsilon: Real,
    delta: Real = 0,
    neighbours: Neighbours | str = "add_remove",
    step: Real = 0,
    missing: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[float]:
    """The private distance of the quartiles of one column: ``InterquartileRange(...).release(data)``.

    Guarantee: epsilon-DP for the chosen neighbours, or (epsilon, delta)-DP where a delta is given and leaves less noise
    (``order_statistics/several.proof.md``).

    Parameters
    ----------
    data : array-like or table
        The column; with ``column``, a table.
    bounds, column, epsilon, delta, neighbours, step, missing, ledger, noise
        As in ``quantiles``.


    Returns
    -------
    Outcome
        ``Released`` with the value; ``NotPrivate`` after a rehearsal.

    Examples
    --------
    >>> import snugdp
    >>> waits = [i % 60 for i in range(6000)]
    >>> 27 <= snugdp.interquartile_range(waits, bounds=(0, 60), step=1, epsilon=2).value <= 33
    True
    """
    return InterquartileRange._answer(locals())
