"""A plan: what will be done, what it costs and what to expect, before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from snugdp.core.guarantee import Budget, Cost, Unit
from snugdp.numerics.printed import printed_up
from snugdp.numerics.rationals import Real, rational


@dataclass(frozen=True)
class Step:
    """One noisy step of a plan and its share of the cost."""

    name: str
    noise: str
    cost: Cost


@dataclass(frozen=True)
class Plan:
    """Public from beginning to end: made without touching data, printed for free.

    ``proposal``: by name; an amount of privacy is a fraction and is printed rounded up. ``unit``: whom it protects.
    """

    what: str
    proof: str
    proposal: Mapping[str, float | Fraction]
    steps: tuple[Step, ...]
    forecast: tuple[str, ...] = ()
    budget: Budget | None = None
    unit: Unit = Unit.ROW

    @property
    def cost(self) -> Cost:
        """What the whole plan spends, whether it ends in a release or in a refusal."""
        return sum((step.cost for step in self.steps[1:]), self.steps[0].cost)

    def __str__(self) -> str:
        proposal = ", ".join(f"{name} = {_number(value)}" for name, value in self.proposal.items())
        lines = [("propose", proposal)] if proposal else []
        lines += [(step.name, f"{step.noise}  [{step.cost.words}]") for step in self.steps]
        lines += [("total", f"{self.cost.words}, neighbours: {self.cost.neighbours.value}")]
        if self.budget is not None and (self.cost.mu_squared or self.cost.atoms or self.cost.variation):
            epsilon, delta = printed_up(self.budget.epsilon), printed_up(self.budget.delta)
            lines += [("that is", f"epsilon {epsilon} at delta {delta}")]
        lines += [("unit", "one teacher, with all its votes")] if self.unit is Unit.TEACHER else []
        lines += [*(("expect", line) for line in self.forecast), ("proof", self.proof)]
        width = max(7, *(len(name) for name, _ in lines))
        return "\n".join([f"Plan: {self.what}", *(f"  {name:<{width}}  {words}" for name, words in lines)])


def share_of(test_share: Real) -> Fraction:
    """The part of the budget that pays for the test, as an exact number."""
    share = rational(test_share, "test_share")
    if not 0 < share < 1:
        raise ValueError("test_share, the part of the budget that pays for the test, must be between 0 and 1")
    return share


def _number(value: float | Fraction) -> str:
    return printed_up(value) if isinstance(value, Fraction) else f"{value:.6g}"
