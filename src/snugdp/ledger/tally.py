"""Running totals with disjoint parts: whole charges add up, of the parts only the largest counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.serial import costs as amounts

_NONE: Mapping[str, Mapping[str, Cost]] = MappingProxyType({})
_NO_TOP: Mapping[str, Cost] = MappingProxyType({})


@dataclass(frozen=True)
class Tally:
    """What was spent on the whole and on every part.

    Guarantee: a row lies in at most one part of each partition, so whichever row is added or removed, the charges that
    could see it are the whole ones and those of one part of each partition. ``total`` dominates all of these sums.
    """

    whole: Cost | None = None
    parts: Mapping[str, Mapping[str, Cost]] = field(default_factory=lambda: _NONE)
    top: Mapping[str, Cost] = field(default_factory=lambda: _NO_TOP)  # of each partition, part by part the largest
    sum: Cost | None = None

    def total(self, neighbours: Neighbours) -> Cost:
        """The composed total."""
        return Cost(neighbours=neighbours) if self.sum is None else self.sum

    def after(self, cost: Cost, part: tuple[str, str] | None) -> Tally:
        """The tally after one more charge. Parts only grow, so the largest needs no look at the others."""
        if part is None:
            whole = cost if self.whole is None else amounts.added(self.whole, cost)
            if not self.top:
                return Tally(whole, self.parts, self.top, whole)
            return Tally(whole, self.parts, self.top, self._sum(whole, self.top))
        name, which = part
        of_name = self.parts.get(name, {})
        grown = amounts.added(of_name[which], cost) if which in of_name else cost
        tops = {**self.top, name: amounts.largest([grown, *([self.top[name]] if name in self.top else [])])}
        parts = {**self.parts, name: {**of_name, which: grown}}
        return Tally(self.whole, parts, tops, self._sum(self.whole, tops))

    @staticmethod
    def _sum(whole: Cost | None, tops: Mapping[str, Cost]) -> Cost:
        costs = [*([] if whole is None else [whole]), *(tops[name] for name in sorted(tops))]
        total = costs[0]
        for cost in costs[1:]:
            total = amounts.added(total, cost)
        return total
