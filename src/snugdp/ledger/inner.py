"""The ledger of one run inside a larger release, which has paid for all of its runs at once."""

from __future__ import annotations

from collections import Counter

from snugdp.guarantee import Budget, Cost
from snugdp.ledger.memory import BudgetExceededError, MemoryLedger
from snugdp.outcome import Receipt


class RunLedger(MemoryLedger):
    """Takes the charges of one run, up to what its owner has paid for, and nothing afterwards.

    ``limit``: every part of what is charged in all must stay below its own part of this cost. Without it there is one
    charge for every one of ``parts`` (by default the budget itself), and each must satisfy its part: a total that fits
    would not do, for a later charge could be of another kind because of an earlier answer. Every run has a ledger of
    its own, so a receipt tells nothing about other runs.

    Guarantee: what is charged here is dominated by ``limit``, or each charge satisfies its part. It is no budget of its
    own: whoever makes one has charged a ledger for it.

    >>> ledger = RunLedger(Budget(1, 1e-6), Cost(mu=0.2))
    >>> _ = ledger.charge(Cost(mu=0.1), "a run")
    >>> ledger.charge(Cost(epsilon=0.1), "a pure part")
    Traceback (most recent call last):
        ...
    snugdp.ledger.memory.BudgetExceededError: a run may not spend more than was planned for it...
    """

    def __init__(
        self,
        budget: Budget,
        limit: Cost | None = None,
        *,
        parts: tuple[Budget, ...] = (),
        label: str = "one run of a selection",
    ) -> None:
        super().__init__(budget.epsilon, budget.delta, budget.neighbours, label=label)
        self._limit, self._parts = limit, parts or (budget,)
        self._open = True
        self._given: list[Receipt] = []

    def charge(self, cost: Cost, what: str) -> Receipt:
        """Take the cost, or raise ``BudgetExceededError`` and leave the total as it was."""
        if not self._open:
            raise BudgetExceededError("this run is over and its ledger closed: give the release a ledger of its own")
        receipt = self._one(cost, what) if self._limit is None else self._below(self._limit, cost, what)
        self._given.append(receipt)
        return receipt

    def _one(self, cost: Cost, what: str) -> Receipt:
        if len(self._given) >= len(self._parts) or not cost.fits(self._parts[len(self._given)]):
            raise BudgetExceededError(
                "a run without a plan has one release within its budget: give run a plan(proposal, budget) for more"
            )
        return super().charge(cost, what)

    def _below(self, limit: Cost, cost: Cost, what: str) -> Receipt:
        with self._lock:
            total = self._spent + cost
            if not within(total, limit):
                raise BudgetExceededError(
                    "a run may not spend more than was planned for it: charge what its plan says, part by part"
                )
            self._spent, self._count = total, self._count + 1
            return Receipt(self.label, self._count, what, cost)

    def gave(self, receipt: object) -> bool:
        """Whether this very receipt was written here."""
        return any(receipt is own for own in self._given)

    def close(self) -> None:
        """Take no more charges."""
        self._open = False


def within(cost: Cost, limit: Cost) -> bool:
    """Whether every part of a cost is at most that of the limit, so that the limit dominates it."""
    return (
        cost.neighbours is limit.neighbours
        and cost.mu_squared <= limit.mu_squared
        and cost.epsilon <= limit.epsilon
        and cost.delta <= limit.delta
        and cost.variation <= limit.variation
        and Counter(cost.atoms) <= Counter(limit.atoms)
    )
