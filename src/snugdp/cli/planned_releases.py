"""Planned releases from files, and what each way to add up would leave after them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.ledger.composition.filter import Composition, Filter, Spent, as_gaussian, counted, satisfies
from snugdp.ledger.composition.limits import Remaining
from snugdp.ledger.composition.tally import Tally
from snugdp.serial import costs

_FORM = (
    "planned releases are a plan as JSON (snugdp plan --json), or a list with epsilon, delta and neighbours, such as "
    '[[release]] epsilon = 0.5 delta = 1e-7 in TOML or [{"epsilon": 0.5, "delta": 1e-7}] in JSON'
)


@dataclass(frozen=True)
class PlannedRelease:
    """One planned release: its name, its cost, and the epsilon and delta that it announces."""

    name: str
    cost: Cost
    announced: Cost | None
    part: tuple[str, str] | None = None
    reserved: bool = False  # paid in advance: it is composed with its own cost


@dataclass(frozen=True)
class Comparison:
    """What one way to add up would take of a list of releases, and leave."""

    composition: Composition
    taken: int
    of: int
    left: Remaining
    refused: str | None  # the name of the first that would be refused

    def __str__(self) -> str:
        if self.refused is None:
            return f"{self.composition.value:<9} takes all {self.of} and leaves {self.left}"
        return (
            f"{self.composition.value:<9} takes the first {self.taken} of {self.of}, leaves {self.left} and refuses "
            f"{self.refused!r}"
        )

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        left = {"epsilon": self.left.epsilon, "delta": self.left.delta, "words": str(self.left)}
        counts = {"composition": self.composition.value, "taken": self.taken, "of": self.of}
        return {**counts, "refused": self.refused, "left": {**left, "exact": self.left.as_dict()}}


def read_releases(file: Path) -> list[PlannedRelease]:
    """The releases in a file."""
    text = file.read_text(encoding="utf-8")
    try:
        held: Any = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except ValueError:
        raise ValueError(f"{file} is not TOML or JSON: {_FORM}") from None
    if isinstance(held, Mapping):
        held = held.get("release", [held])
    if not isinstance(held, list) or not held or not all(isinstance(one, Mapping) for one in held):
        raise ValueError(f"{file}: {_FORM}")
    return [
        _release(one, f"{file.stem} {number}" if len(held) > 1 else file.stem) for number, one in enumerate(held, 1)
    ]


def _release(given: Mapping[str, Any], name: str) -> PlannedRelease:
    cost = given.get("cost")
    if isinstance(cost, Mapping) and isinstance(cost.get("exact"), Mapping):
        neighbours = Neighbours.of(cost.get("neighbours", Neighbours.ADD_REMOVE))
        whole, budget = costs.cost_from_json(dict(cost["exact"]), neighbours), given.get("budget")
        announced = None
        if isinstance(budget, Mapping):
            if not {"epsilon", "delta"} <= budget.keys():
                raise ValueError(f"{name}: {_FORM}")
            announced = Cost(epsilon=budget["epsilon"], delta=budget["delta"], neighbours=neighbours)
        kept = announced is not None and satisfies(whole, announced)  # as a ledger asks; else it counts with its own
        return PlannedRelease(str(given.get("title", name)), whole, announced if kept else None)
    known = {"name", "epsilon", "delta", "mu", "neighbours"}
    if not given.keys() <= known or not {"epsilon", "mu"} & given.keys():
        raise ValueError(f"{name}: {_FORM}")
    amounts = {key: given[key] for key in ("epsilon", "delta", "mu") if key in given}
    cost = Cost(**amounts, neighbours=given.get("neighbours", Neighbours.ADD_REMOVE))
    return PlannedRelease(str(given.get("name", name)), cost, None)


def compared(
    releases: Sequence[PlannedRelease], epsilon: str | None, delta: str | None, ledger: str | None
) -> list[Comparison]:
    """Every way to add up, beginning with an empty ledger of this budget, or with what a ledger has paid for."""
    before: list[PlannedRelease] = []
    if ledger is not None:
        from snugdp.ledger.address import opened

        book = opened(ledger)
        budget = book.budget
        before = [
            PlannedRelease(e.title, e.cost, e.announced, e.part, e.kind == "reserve")
            for e in book.entries()
            if e.within is None
        ]
    elif epsilon is None:
        raise ValueError("give the total to spend, --epsilon and --delta, or a --ledger")
    else:
        budget = Budget(epsilon, delta or 0, releases[0].cost.neighbours)
    if not isinstance(budget, Budget):
        raise TypeError("this ledger has caps on the parts of a cost, and no total epsilon and delta")
    return [_compared(way, budget, before, releases) for way in Composition]


def _compared(
    way: Composition, budget: Budget, before: Sequence[PlannedRelease], releases: Sequence[PlannedRelease]
) -> Comparison:
    rule, composed, added = Filter.open(budget, way), Tally(), Tally()
    total = Spent(composed.total(budget.neighbours), added.total(budget.neighbours))
    for number, release in enumerate([*before, *releases]):
        counted_as = counted(release.cost, release.announced, budget) if way.adds else None
        either = way is Composition.BOTH and not release.reserved
        gaussian = as_gaussian(release.cost, budget) if either else None
        then = composed.after(gaussian or release.cost, release.part)
        sums = added if counted_as is None else added.after(counted_as, release.part)
        after = Spent(then.total(budget.neighbours), sums.total(budget.neighbours))
        judged = rule.after(total, after)
        if (way.adds and counted_as is None) or not judged.covers(after):
            taken = max(0, number - len(before))
            name = release.name if number >= len(before) else "what was charged already"
            return Comparison(way, taken, len(releases), rule.remaining(total), name)
        rule, composed, added, total = judged, then, sums, after
    return Comparison(way, len(releases), len(releases), rule.remaining(total), None)
