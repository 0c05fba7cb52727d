"""A confidence interval for a quantile of the population. Proof: ``mechanisms/order_statistics/interval.proof.md``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from snugdp.mechanisms.order_statistics.interval import QuantileIntervalDraw
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Note
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.order_statistics.base import RankQuery, usual_ranks
from snugdp.queries.order_statistics.quantiles import inner_quantile
from snugdp.queries.statistics.moments import check_inference


@dataclass(frozen=True, kw_only=True)
class QuantileInterval(RankQuery[tuple[float, float]]):
    """A 95 % confidence interval for a quantile of the population that the rows were drawn from.

    Sampling and privacy noise are in it. Where too few rows lie beyond the quantile for this budget, an end is the
    bound; without bounds there is a refusal.

    Guarantee: epsilon-DP for the chosen neighbours (``mechanisms/order_statistics/interval.proof.md``).

    Parameters
    ----------
    q : Real, default=0.5
        Which quantile, between 0 and 1; 0.5 is the median.

    Examples
    --------
    >>> query = QuantileInterval(q=0.5, bounds=(0, 1000), epsilon=1)
    >>> low, high = query.release([i % 1000 for i in range(10_000)]).value
    >>> 470 < low < high < 530
    True
    """

    q: Real = 0.5
    name = "Quantile interval"
    theorem = theorem("quantile-interval/1")

    def __post_init__(self) -> None:
        self._q  # noqa: B018  what is wrong is said here
        check_inference(True, self._persons)
        super().__post_init__()

    @cached_property
    def _q(self) -> Fraction:
        return inner_quantile(self.q)

    @cached_property
    def _mechanism(self) -> QuantileIntervalDraw:
        return QuantileIntervalDraw(self._q, self._points, Share.pure(self._budget))

    def _proposal(self) -> dict[str, float | Fraction]:
        return {"q": float(rational(self.q, "q"))}

    def _notes(self, made: QuantileIntervalDraw) -> tuple[Note, ...]:
        return Note("ranks-off", {"ranks": usual_ranks(made.end.scale)}), Note("population-quantile")

    def _rows_needed(self, made: QuantileIntervalDraw) -> int:
        return made.end.rows_needed()

    def _drawn_points(self, drawn: tuple[int, int]) -> Iterable[int]:
        return drawn

    def _show(self, drawn: tuple[int, int]) -> tuple[float, float]:
        low, high = map(self._grid.number, drawn)
        return low, high
