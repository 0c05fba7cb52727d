"""What all queries share: reading a budget, and turning cells back into the user's units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from snugdp.accounting.rational import Real
from snugdp.guarantee import Budget, Neighbours
from snugdp.noise import Noise
from snugdp.ptr.spine import Mechanism
from snugdp.secret import Secret

Data = TypeVar("Data")
Drawn = TypeVar("Drawn")
Seen = TypeVar("Seen")


def budget_for(epsilon: Real, delta: Real, neighbours: Neighbours | str, covered: tuple[Neighbours, ...]) -> Budget:
    """The budget, if the query has a proof in this neighbouring relation."""
    budget = Budget(epsilon, delta, neighbours)
    if budget.neighbours not in covered:
        names = " or ".join(f'"{relation.value}"' for relation in covered)
        raise ValueError(f"this query is proved for neighbours={names} only")
    return budget


def require_delta(budget: Budget) -> None:
    """A test needs a failure probability."""
    if not 0 < budget.delta <= Fraction(1, 2):
        raise ValueError("this release needs 0 < delta <= 1/2, the probability that its test fails; 1e-6 is typical")


@dataclass(frozen=True)
class Shown(Generic[Data, Drawn, Seen]):
    """A mechanism whose public output is turned into the user's units."""

    mechanism: Mechanism[Data, Drawn]
    show: Callable[[Drawn], Seen]

    def draw(self, data: Secret[Data], noise: Noise) -> Seen:
        """Draw, then show."""
        return self.show(self.mechanism.draw(data, noise))
