"""What was spent on the whole table and on every part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from types import MappingProxyType

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.serial import costs
from snugdp.serial.costs import Json

_NO_PARTS: Mapping[str, Mapping[str, Cost]] = MappingProxyType({})
_NO_TOP: Mapping[str, Cost] = MappingProxyType({})


@lru_cache
def nothing(neighbours: Neighbours) -> Cost:
    """What costs nothing."""
    return Cost(neighbours=neighbours)


@dataclass(frozen=True)
class Tally:
    """What was spent on the whole and on every part.

    Guarantee: a row lies in at most one part of each partition, so whichever row is added or removed, the charges that
    could see it are the whole ones and those of one part of each partition. ``total`` dominates all of these sums.
    """

    whole: Cost | None = None
    parts: Mapping[str, Mapping[str, Cost]] = field(default_factory=lambda: _NO_PARTS)
    top: Mapping[str, Cost] = field(default_factory=lambda: _NO_TOP)  # of each partition, part by part the largest
    sum: Cost | None = None

    def total(self, neighbours: Neighbours) -> Cost:
        """The composed total."""
        return nothing(neighbours) if self.sum is None else self.sum

    def after(self, cost: Cost, part: tuple[str, str] | None) -> Tally:
        """The tally after one more charge. Parts only grow, so the largest needs no look at the others."""
        if part is None:
            whole = cost if self.whole is None else costs.added(self.whole, cost)
            if not self.top:
                return Tally(whole, self.parts, self.top, whole)
            return Tally(whole, self.parts, self.top, self._sum(whole, self.top))
        name, which = part
        of_name = self.parts.get(name, {})
        grown = costs.added(of_name[which], cost) if which in of_name else cost
        tops = {**self.top, name: costs.largest([grown, *([self.top[name]] if name in self.top else [])])}
        parts = {**self.parts, name: {**of_name, which: grown}}
        return Tally(self.whole, parts, tops, self._sum(self.whole, tops))

    @staticmethod
    def _sum(whole: Cost | None, tops: Mapping[str, Cost]) -> Cost:
        several = [*([] if whole is None else [whole]), *(tops[name] for name in sorted(tops))]
        return reduce(costs.added, several)

    def to_json(self) -> Json:
        """For a checkpoint."""
        parts = {
            name: {which: costs.cost_to_json(cost) for which, cost in of.items()} for name, of in self.parts.items()
        }
        return {"whole": None if self.whole is None else costs.cost_to_json(self.whole), "parts": parts}

    @classmethod
    def from_json(cls, fields: Json, neighbours: Neighbours) -> Tally:
        """From a checkpoint: the largest part of each partition and the sum follow."""
        whole = None if fields["whole"] is None else costs.cost_from_json(fields["whole"], neighbours)
        parts = {
            name: {which: costs.cost_from_json(cost, neighbours) for which, cost in of.items()}
            for name, of in fields["parts"].items()
        }
        tops = {name: costs.largest(list(of.values())) for name, of in parts.items()}
        return cls(whole, parts, tops, cls._sum(whole, tops) if whole is not None or tops else None)
