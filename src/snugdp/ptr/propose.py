"""A plan: what will be done, what it costs and what to expect, before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from snugdp.accounting.rational import Real, rational
from snugdp.guarantee import Budget, Cost, shown


@dataclass(frozen=True)
class Step:
    """One noisy step of a plan and its share of the cost."""

    name: str
    noise: str
    cost: Cost


@dataclass(frozen=True)
class Plan:
    """Public from beginning to end: made without touching data, printed for free."""

    what: str
    proof: str
    proposal: Mapping[str, float]
    steps: tuple[Step, ...]
    forecast: tuple[str, ...] = ()
    budget: Budget | None = None

    @property
    def cost(self) -> Cost:
        """What the whole plan spends, whether it ends in a release or in a refusal."""
        return sum((step.cost for step in self.steps[1:]), self.steps[0].cost)

    def __str__(self) -> str:
        proposal = ", ".join(f"{name} = {value:.6g}" for name, value in self.proposal.items())
        lines = [("propose", proposal)] if proposal else []
        lines += [(step.name, f"{step.noise}  [{_short(step.cost)}]") for step in self.steps]
        lines += [("total", f"{_short(self.cost)}, neighbours: {self.cost.neighbours.value}")]
        if self.budget is not None and (self.cost.mu_squared or self.cost.atoms):
            lines += [("that is", f"epsilon {shown(self.budget.epsilon)} at delta {shown(self.budget.delta)}")]
        lines += [*(("expect", line) for line in self.forecast), ("proof", self.proof)]
        width = max(7, *(len(name) for name, _ in lines))
        return "\n".join([f"Plan: {self.what}", *(f"  {name:<{width}}  {words}" for name, words in lines)])


def share_of(test_share: Real) -> Fraction:
    """The part of the budget that pays for the test, as an exact number."""
    share = rational(test_share, "test_share")
    if not 0 < share < 1:
        raise ValueError("test_share, the part of the budget that pays for the test, must be between 0 and 1")
    return share


def _short(cost: Cost) -> str:
    parts: dict[str, float | Fraction] = {"mu": round(cost.mu, 5), "epsilon": cost.epsilon, "delta": cost.delta}
    shares = [f"{name} {shown(value)}" for name, value in parts.items() if value]
    runs = len(cost.atoms)
    shares += [f"{runs} perturbed objective{'s' if runs > 1 else ''}"] if runs else []
    return ", ".join(shares) or "free"
