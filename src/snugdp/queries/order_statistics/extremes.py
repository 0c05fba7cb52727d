"""Lower and upper ends of one column. Proof: ``mechanisms/order_statistics/rank_draw.proof.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from snugdp.mechanisms.order_statistics.rank_draw import RankTarget
from snugdp.queries.order_statistics.base import RankKeywords, SingleRank

_RARELY = 200  # the empty part is hit once in so many cases
_EMPTY = 1 << 14  # so many times as wide as the gap at its edge may the empty part of the bounds be
_OPEN = 1 << 30  # the same where there are no bounds


class ExtremeKeywords(RankKeywords, total=False):
    """The keyword arguments of ``minimum`` and ``maximum``."""

    beyond: int | None


@dataclass(frozen=True, kw_only=True)
class Extreme(SingleRank):
    """A point beyond which about so many rows lie.

    Guarantee: epsilon-DP for the chosen neighbours (``order_statistics/rank_draw.proof.md``).

    Parameters
    ----------
    beyond : int, optional
        About how many rows lie beyond the answer: the smallest and the largest value each belong to one person. By
        default so many that noise hardly ever finds the empty part of the bounds. Where many rows share a value, as
        whole years do, give the ``step`` too.
    """

    beyond: int | None = None

    def __post_init__(self) -> None:
        if self.beyond is not None and (isinstance(self.beyond, bool) or not isinstance(self.beyond, int)):
            raise TypeError("beyond, a number of rows, must be a whole number")
        if self.beyond is not None and not 0 <= self.beyond < 1 << 40:
            raise ValueError("beyond, a number of rows, must be at least 0 and below 2**40")
        super().__post_init__()

    @property
    def _rows(self) -> int:
        """So many rows beyond the answer."""
        if self.beyond is not None:
            return self.beyond
        empty = math.log(_OPEN if any(self._grid.beyond) else min(self._grid.width + 1, _EMPTY)) + math.log(_RARELY)
        return math.ceil(2 * empty / float(self._budget.epsilon))

    def _proposal(self) -> dict[str, float | Fraction]:
        return {"rows beyond": float(self._rows)}


@dataclass(frozen=True, kw_only=True)
class Minimum(Extreme):
    """A lower end of a column, below which only a few rows lie, with a plan before the release.

    Examples
    --------
    >>> query = Minimum(bounds=(0, 120), step=1, epsilon=1, beyond=50)
    >>> query.release([18 + i % 50 for i in range(5000)]).value
    18.0
    """

    name = "Minimum"

    @property
    def _target(self) -> RankTarget:
        return RankTarget.from_bottom(self._rows)


@dataclass(frozen=True, kw_only=True)
class Maximum(Extreme):
    """An upper end of a column, above which only a few rows lie, with a plan before the release.

    Examples
    --------
    >>> query = Maximum(bounds=(0, 120), step=1, epsilon=1, beyond=50)
    >>> query.release([18 + i % 50 for i in range(5000)]).value
    67.0
    """

    name = "Maximum"

    @property
    def _target(self) -> RankTarget:
        return RankTarget.from_top(self._rows)
