"""What all queries share: reading a budget, paying, and turning cells back into the user's units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from snugdp.accounting.rational import Real, rational
from snugdp.guarantee import Budget, Neighbours
from snugdp.ledger import MemoryLedger
from snugdp.noise import Exact, Noise
from snugdp.outcome import Ledger, Outcome
from snugdp.ptr.propose import Plan
from snugdp.ptr.spine import Mechanism, PrivateTest, Purse, release_or_refuse
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


def share_of(test_share: Real) -> Fraction:
    """The part of epsilon that pays for the test."""
    share = rational(test_share, "test_share")
    if not 0 < share < 1:
        raise ValueError("test_share must be between 0 and 1; 0.5 is a good choice")
    return share


@dataclass(frozen=True)
class Shown(Generic[Data, Drawn, Seen]):
    """A mechanism whose public output is turned into the user's units."""

    mechanism: Mechanism[Data, Drawn]
    show: Callable[[Drawn], Seen]

    def draw(self, data: Secret[Data], noise: Noise) -> Seen:
        """Draw, then show."""
        return self.show(self.mechanism.draw(data, noise))


def run(
    plan: Plan,
    test: PrivateTest[Data],
    mechanism: Mechanism[Data, Seen],
    data: Secret[Data],
    budget: Budget,
    *,
    ledger: Ledger | None,
    noise: Noise | None,
) -> Outcome[Seen]:
    """Pay, test, release or refuse. Without a ledger the call has a budget of its own."""
    source = noise if noise is not None else Exact()
    if ledger is None and source.private:
        ledger = MemoryLedger(budget.epsilon, budget.delta, budget.neighbours, label="this call")
    return release_or_refuse(plan, test, mechanism, data, Purse(source, ledger))
