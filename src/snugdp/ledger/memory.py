"""A budget for one process: composed exactly, enforced before every draw, gone when the process ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Receipt, Unit
from snugdp.ledger.errors import BudgetExceededError
from snugdp.ledger.limits import Limits, Remaining, within
from snugdp.ledger.shared import NeverCopied
from snugdp.numerics.rationals import Real


class MemoryLedger(NeverCopied):
    """A budget for one process, which keeps the total of many releases within one (epsilon, delta).

    Pure parts may be spent in any order. After a first Gaussian release, more of its kind are covered almost to the
    end, and other kinds a little less than their total would fit.

    Guarantee: everything charged satisfies the budget together, even if what to ask, how much to spend and in which
    kind was chosen by looking at earlier answers (``limits.proof.md``, Theorem 3). Threads may share it; a forked
    process may not, because its charges would not be seen here. A copy is the ledger itself.

    Parameters
    ----------
    epsilon : Real
        What may be spent in all.
    delta : Real, default=0
        The failure probability of all of it.
    neighbours : Neighbours or str
        The relation of every charge, "add_remove" by default.
    label : str, default="memory"
        Its name on receipts.
    unit : {"row", "person", "teacher"}
        Whom it protects. Releases that protect somebody else are refused.

    Attributes
    ----------
    budget : Budget
        What may be spent in all.

    Examples
    --------
    >>> ledger = MemoryLedger(epsilon=0.3)
    >>> _ = ledger.charge(Cost(epsilon=0.1), "first")
    >>> _ = ledger.charge(Cost(epsilon=0.2), "second")
    >>> ledger.charge(Cost(epsilon=0.01), "third")
    Traceback (most recent call last):
        ...
    snugdp.ledger.errors.BudgetExceededError: the budget does not cover this release ...

    >>> ledger = MemoryLedger(epsilon=1, delta=1e-6)
    >>> _ = ledger.charge(Cost(mu=0.07), "noisy mean")
    >>> print(ledger.remaining)
    mu 0.223542 or epsilon 0.670354 or delta 1.49999e-07
    """

    def __init__(
        self,
        epsilon: Real,
        delta: Real = 0,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        *,
        label: str = "memory",
        unit: Unit | str = Unit.ROW,
    ) -> None:
        self.budget = Budget(epsilon, delta, neighbours)
        self.label, self.unit = label, Unit.of(unit).value
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._spent = Cost(neighbours=self.budget.neighbours)
        self._limits = Limits.open(self.budget)
        self._count = 0

    @property
    def spent(self) -> Cost:
        """The composition of everything charged so far."""
        return self._spent

    @property
    def remaining(self) -> Remaining:
        """The largest further charge: Gaussian, pure or failure only, each alone."""
        with self._lock:
            return self._limits.remaining(self._spent)

    def affords(self, cost: Cost) -> bool:
        """Whether a charge of this cost would be taken now. Nothing is charged."""
        with self._lock:
            total = self._spent + cost
            return self._limits.after(self._spent, total).covers(total)

    def payable(self, costs: Sequence[Cost]) -> int:
        """How many of these charges would be taken, one after the other, up to the first that is not. None is made.

        >>> MemoryLedger(epsilon=1).payable([Cost(epsilon=0.25)] * 7)
        4
        """
        with self._lock:
            limits, total = self._limits, self._spent
            for number, cost in enumerate(costs):
                after = total + cost
                limits = limits.after(total, after)
                if not limits.covers(after):
                    return number
                total = after
            return len(costs)

    def remaining_after(self, cost: Cost) -> Remaining | None:
        """What would remain after this charge; None if it would not be accepted. Nothing is charged.

        >>> ledger = MemoryLedger(epsilon=1)
        >>> print(ledger.remaining_after(Cost(epsilon=0.25)))
        mu 0 or epsilon 0.75 or delta 0
        >>> ledger.remaining_after(Cost(epsilon=2)) is None
        True
        """
        with self._lock:
            total = self._spent + cost
            limits = self._limits.after(self._spent, total)
            return limits.remaining(total) if limits.covers(total) else None

    def charge(self, cost: Cost, what: str) -> Receipt:
        """Add the cost to the total, or raise ``BudgetExceededError`` and leave the total as it was."""
        with self._lock:
            self._require_process()
            total = self._spent + cost
            limits = self._limits.after(self._spent, total)
            if not limits.covers(total):
                raise BudgetExceededError(
                    f"the budget does not cover this release ({what}): it needs {cost!r}, the ledger has spent "
                    f"{self._spent!r} of {self.budget!r} and has {self._limits.remaining(self._spent)} left. "
                    "Ask for less epsilon or delta, or open a larger budget"
                )
            self._limits = limits
            return self._write(total, cost, what)

    def _require_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError("this ledger belongs to another process: open one ledger per process")

    def _write(self, total: Cost, cost: Cost, what: str) -> Receipt:
        self._spent, self._count = total, self._count + 1
        return Receipt(self.label, self._count, what, cost)

    def __repr__(self) -> str:
        return f"MemoryLedger({self.label!r}, budget={self.budget!r}, spent={self._spent!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a ledger cannot be pickled: a copy would forget what the original spends")


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
        unit: Unit = Unit.ROW,
    ) -> None:
        super().__init__(budget.epsilon, budget.delta, budget.neighbours, label=label, unit=unit)
        self._limit, self._parts = limit, parts or (budget,)
        self._open = True
        self._given: list[Receipt] = []

    def affords(self, cost: Cost) -> bool:
        """Whether a charge of this cost would be taken now. Nothing is charged."""
        with self._lock:
            return self._open and self._covers(cost)

    def payable(self, costs: Sequence[Cost]) -> int:
        """How many of these charges would be taken, one after the other, up to the first that is not. None is made."""
        with self._lock:
            refused = (at for at, cost in enumerate(costs) if not self._covers(cost, *costs[:at]))
            return next(refused, len(costs)) if self._open else 0

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

    def _covers(self, cost: Cost, *earlier: Cost) -> bool:
        """Whether it would be taken after all that was, and these."""
        if self._limit is not None:
            return within(sum((*earlier, cost), start=self._spent), self._limit)
        place = len(self._given) + len(earlier)
        return place < len(self._parts) and cost.fits(self._parts[place])

    def gave(self, receipt: object) -> bool:
        """Whether this very receipt was written here."""
        return any(receipt is own for own in self._given)

    def close(self) -> None:
        """Take no more charges."""
        self._open = False
