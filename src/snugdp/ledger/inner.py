"""The ledger of one run inside a larger release, which has paid for all of its runs at once."""

from __future__ import annotations

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Receipt
from snugdp.ledger.errors import BudgetExceededError
from snugdp.ledger.limits import within
from snugdp.ledger.memory import MemoryLedger

__all__ = ["RunLedger", "within"]


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
    snugdp.ledger.errors.BudgetExceededError: a run may not spend more than was planned for it...
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

    def affords(self, cost: Cost) -> bool:
        """Whether a charge of this cost would be taken now. Nothing is charged."""
        with self._lock:
            return self._open and self._covers(cost)

    def charge(self, cost: Cost, what: str) -> Receipt:
        """Take the cost, or raise ``BudgetExceededError`` and leave the total as it was."""
        with self._lock:
            self._require_process()
            if not self._open:
                raise BudgetExceededError(
                    "this run is over and its ledger closed: give the release a ledger of its own"
                )
            if not self._covers(cost):
                raise BudgetExceededError(
                    "a run without a plan has one release within its budget: give run a plan(proposal, budget) for more"
                    if self._limit is None
                    else "a run may not spend more than was planned for it: charge what its plan says, part by part"
                )
            receipt = self._write(self._spent + cost, cost, what)
            self._given.append(receipt)
            return receipt

    def _covers(self, cost: Cost) -> bool:
        if self._limit is not None:
            return within(self._spent + cost, self._limit)
        return len(self._given) < len(self._parts) and cost.fits(self._parts[len(self._given)])

    def gave(self, receipt: object) -> bool:
        """Whether this very receipt was written here."""
        return any(receipt is own for own in self._given)

    def close(self) -> None:
        """Take no more charges."""
        self._open = False
