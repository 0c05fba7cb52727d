"""Medians and quantiles of one column: points of a public grid, drawn by their ranks.

Proofs: ``mechanisms/order_statistics/rank_draw.proof.md`` and ``several.proof.md``. Medians and quantiles can also be
proposed, tested and released (``queries/order_statistics/robust.py``).
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
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.order_statistics.rank_draw import OneRank, RankTarget
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, share_of, whole_rows
from snugdp.propose.theorem import theorem
from snugdp.queries.order_statistics.base import RankKeywords, RankQuery, SingleRank, usual_ranks
from snugdp.queries.order_statistics.robust import RobustQuery, TestedMedian, TestedQuantile
from snugdp.release.context import ReleaseContext

Method: TypeAlias = Literal["auto", "exponential", "test"]

_METHODS = ("auto", "exponential", "test")
_QUARTILES = (Fraction(1, 4), Fraction(3, 4))


class MiddleRankKeywords(RankKeywords, total=False):
    """The keyword arguments of ``median`` and ``quantile``."""

    method: Method
    beta: Real | None
    rows: int | None
    test_share: Real


@dataclass(frozen=True, kw_only=True)
class MiddleRank(SingleRank):
    """A point that is drawn by its rank, or a row that is proposed, tested and released with noise.

    Parameters
    ----------
    delta : Real, default=0
        Failure probability, which a test needs. A draw by rank does not spend it.
    method : {"auto", "exponential", "test"}
        "exponential": draw a point of a public grid by its rank; pure, without a proposal, never refused. "test":
        propose how far one row may move the answer, test that, and release with noise or refuse. "auto": "test" where
        a ``beta`` is given, else "exponential".
    beta : Real, optional
        The proposal of a test: how far one row may move the answer. By default it is derived from public quantities.
    rows : int, optional
        For a test, the number of rows ("replace"), or a public guess of it ("add_remove").
    test_share : Real, default=0.5
        The share of epsilon that pays for a test.
    missing : Real, optional
        What missing and invalid entries count as. Without it they are left out; only a test between neighbours that
        replace a row counts them as the lower bound, because it needs the public number of rows. The plan says so.
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

    @property
    def _plan(self) -> Plan:
        return super()._plan if self._tested is None else self._tested.plan()

    @cached_property
    def _tested(self) -> RobustQuery | None:
        """The query that proposes and tests, where that is asked for."""
        tested = self.method == "test" or (self.method == "auto" and self.beta is not None)
        return self._by_test() if tested else None

    @property
    def _weighed(self) -> tuple[Fraction, ...] | None:
        """The only one, but for a test."""
        target = self._target
        return None if self._tested is not None else (Fraction(target.share, target.slope),)

    @abstractmethod
    def _by_test(self) -> RobustQuery:
        """The same question to a test."""

    @property
    def _for_test(self) -> dict[str, Any]:
        """The parameters of a test."""
        given = ("epsilon", "delta", "bounds", "column", "neighbours", "beta", "rows", "step", "test_share", "missing")
        return {name: getattr(self, name) for name in given}

    def _release(self, data: object, context: ReleaseContext) -> Outcome[float]:
        return super()._release(data, context) if self._tested is None else self._tested._answered(data, context)

    def _count_rows(self, rows: int) -> None:
        super()._count_rows(rows)
        if self.rows not in (None, rows):
            raise ValueError(
                "rows differs from the length of the column, which is public when neighbours replace a row"
            )

    def _notes(self, made: OneRank) -> tuple[Note, ...]:
        return *super()._notes(made), Note("drawn-or-tested")


@dataclass(frozen=True, kw_only=True)
class Median(MiddleRank):
    """A median of a column, with a plan before the release.

    Guarantee: epsilon-DP for the chosen neighbours (``order_statistics/rank_draw.proof.md``). By a test, (epsilon,
    delta)-DP (``order_statistics/median.proof.md``; for replace ``order_statistics/quantile.proof.md``), whether it
    ends in a release or in a refusal.

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

    Guarantee: epsilon-DP for the chosen neighbours (``order_statistics/rank_draw.proof.md``). By a test, (epsilon,
    delta)-DP when neighbours replace one row (``order_statistics/quantile.proof.md``).

    Parameters
    ----------
    q : Real
        Which quantile, between 0 and 1. For the ends themselves there are ``minimum`` and ``maximum``.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours; a test is proved for "replace" alone.

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

    Guarantee: epsilon-DP for the chosen neighbours, or (epsilon, delta)-DP where a delta is given and leaves less noise
    (``order_statistics/several.proof.md``).

    Parameters
    ----------
    delta : Real, default=0
        Failure probability: with many quantiles it leaves less noise. The plan says whether it is spent.
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

    @property
    def _weighed(self) -> tuple[Fraction, ...]:
        """All of them."""
        return tuple(sorted(set(self._wanted)))

    @cached_property
    def _mechanism(self) -> SeveralQuantiles:
        return SeveralQuantiles.within(self._budget, sorted(set(self._wanted)), self._points)

    def _notes(self, made: SeveralQuantiles) -> tuple[Note, ...]:
        return (Note("ranks-off", {"ranks": usual_ranks(made.scale)}),)

    def _rows_needed(self, made: SeveralQuantiles) -> int:
        return made.rows_needed

    def _show(self, drawn: tuple[int, ...]) -> tuple[float, ...]:
        found = dict(zip(sorted(set(self._wanted)), drawn, strict=True))
        return tuple(self._grid.number(found[q]) for q in self._wanted)


@dataclass(frozen=True, kw_only=True)
class InterquartileRange(RankQuery[float]):
    """The distance of the quartiles of a column, with a plan before the release.

    Guarantee: epsilon-DP for the chosen neighbours, or (epsilon, delta)-DP where a delta is given and leaves less noise
    (``order_statistics/several.proof.md``).

    Examples
    --------
    >>> query = InterquartileRange(bounds=(0, 60), step=1, epsilon=2)
    >>> 27 <= query.release([i % 60 for i in range(6000)]).value <= 33
    True
    """

    name = "Interquartile range"
    theorem = theorem("several-quantiles/1")

    _weighed = _QUARTILES

    @cached_property
    def _mechanism(self) -> SeveralQuantiles:
        return SeveralQuantiles.within(self._budget, _QUARTILES, self._points)

    def _notes(self, made: SeveralQuantiles) -> tuple[Note, ...]:
        return (Note("ranks-off", {"ranks": usual_ranks(made.scale)}),)

    def _rows_needed(self, made: SeveralQuantiles) -> int:
        return made.rows_needed

    def _show(self, drawn: tuple[int, ...]) -> float:
        return self._grid.distance(*drawn)


def inner_quantile(q: Real) -> Fraction:
    """A quantile that is one, and no end."""
    found = rational(q, "q")
    if not 0 <= found <= 1:
        raise ValueError("q must be between 0 and 1")
    if found in (0, 1):
        raise ValueError("q=0 and q=1 are the ends of a column: ask for its minimum or its maximum")
    return found
