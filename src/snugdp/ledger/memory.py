"""A budget for one process: composed exactly, enforced before every draw, gone when the process ends."""

from __future__ import annotations

import os
import threading

from snugdp.accounting.rational import Real
from snugdp.guarantee import Budget, Cost, Neighbours
from snugdp.outcome import Receipt


class BudgetExceededError(RuntimeError):
    """The ledger has not enough left. Nothing was charged and nothing was drawn."""


class MemoryLedger:
    """Keeps the total of many releases within one (epsilon, delta).

    Guarantee: the composition of everything charged satisfies the budget (Theorem T), if what each release spends, and
    in which kind, was not chosen by looking at earlier answers; the questions may be. Threads may share it; a forked
    process may not, because its charges would not be seen here. A copy is the ledger itself.

    >>> ledger = MemoryLedger(epsilon=0.3)
    >>> _ = ledger.charge(Cost(epsilon=0.1), "first")
    >>> _ = ledger.charge(Cost(epsilon=0.2), "second")
    >>> ledger.charge(Cost(epsilon=0.01), "third")
    Traceback (most recent call last):
        ...
    snugdp.ledger.memory.BudgetExceededError: the budget does not cover this release ...
    """

    def __init__(
        self,
        epsilon: Real,
        delta: Real = 0,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        *,
        label: str = "memory",
    ) -> None:
        self.budget = Budget(epsilon, delta, neighbours)
        self.label = label
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._spent = Cost(neighbours=self.budget.neighbours)
        self._count = 0

    @property
    def spent(self) -> Cost:
        """The composition of everything charged so far."""
        return self._spent

    def charge(self, cost: Cost, what: str) -> Receipt:
        """Add the cost to the total, or raise ``BudgetExceededError`` and leave the total as it was."""
        if os.getpid() != self._process:
            raise RuntimeError("this ledger belongs to another process: open one ledger per process")
        with self._lock:
            total = self._spent + cost
            if not total.fits(self.budget):
                raise BudgetExceededError(
                    f"the budget does not cover this release ({what}): it needs {cost!r}, the ledger has spent "
                    f"{self._spent!r} of {self.budget!r}. Ask for less epsilon or delta, or open a larger budget"
                )
            self._spent, self._count = total, self._count + 1
            return Receipt(self.label, self._count, what, cost)

    def __repr__(self) -> str:
        return f"MemoryLedger({self.label!r}, budget={self.budget!r}, spent={self._spent!r})"

    def __copy__(self) -> MemoryLedger:
        return self  # a second ledger would be a second budget: scikit-learn's clone must share this one

    def __deepcopy__(self, memo: object) -> MemoryLedger:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a ledger cannot be pickled: a copy would forget what the original spends")
