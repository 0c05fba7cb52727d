"""A budget for one process: composed exactly, enforced before every draw, gone when the process ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from html import escape

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Receipt, Unit
from snugdp.ledger.composition.filter import Composition, Filter, Spent, as_gaussian, counted, satisfies
from snugdp.ledger.composition.limits import Remaining, within
from snugdp.ledger.errors import BudgetExceededError
from snugdp.ledger.requests import Announced, Costly, each, pair_of
from snugdp.ledger.shared import NeverCopied
from snugdp.numerics.rationals import Real


class MemoryLedger(NeverCopied):
    """A budget for one process, which keeps the total of many releases within one (epsilon, delta).

    By default every release counts with the epsilon and the delta that its plan announces, in any order. With
    ``composition="tight"`` Gaussian releases add in squares: many of one kind cost much less than their sum.

    Guarantee: everything charged satisfies the budget together, even if what to ask, how much to spend and in which
    kind was chosen by looking at earlier answers (``composition/limits.proof.md``, Theorems 3 to 5). Threads may share
    it; a forked process may not, because its charges would not be seen here. A copy is the ledger itself.

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
    composition : {"addition", "tight", "both"}
        How releases add up, "addition" by default; see ``Ledger.open``.

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

    >>> ledger = MemoryLedger(epsilon=1, delta=1e-6, composition="tight")
    >>> _ = ledger.charge(Cost(mu=0.07), "noisy mean")
    >>> print(ledger.remaining)
    epsilon 0.670354 and delta 1.49999e-07
    """

    def __init__(
        self,
        epsilon: Real,
        delta: Real = 0,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        *,
        label: str = "memory",
        unit: Unit | str = Unit.ROW,
        composition: Composition | str = Composition.ADDITION,
    ) -> None:
        self.budget = Budget(epsilon, delta, neighbours)
        self.label, self.unit = label, Unit.of(unit).value
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.composition = Composition.of(composition, self.budget)
        nothing = Cost(neighbours=self.budget.neighbours)
        self._total = Spent(nothing, nothing)
        self._filter = Filter.open(self.budget, self.composition)
        self._count = 0

    @property
    def spent(self) -> Cost:
        """Everything charged so far: what was announced, added up; or the costs, composed."""
        return self._total.composed if self.composition.composes else self._total.announced

    @property
    def neighbours(self) -> Neighbours:
        """The relation of every charge."""
        return self.budget.neighbours

    @property
    def remaining(self) -> Remaining:
        """The largest further charge."""
        with self._lock:
            return self._filter.remaining(self._total)

    def affords(self, cost: Costly) -> bool:
        """Whether a charge of this cost, or of this plan, would be taken now. Nothing is charged."""
        return self.payable([cost]) == 1

    def payable(self, costs: Sequence[Costly]) -> int:
        """How many of these charges would be taken, one after the other, up to the first that is not. None is made.

        >>> MemoryLedger(epsilon=1).payable([Cost(epsilon=0.25)] * 7)
        4
        """
        with self._lock:
            rule, total = self._filter, self._total
            for number, asked in enumerate(each(costs) if costs else []):
                rule, total, taken = self._after(rule, total, *asked)
                if not taken:
                    return number
            return len(costs)

    def remaining_after(self, cost: Costly) -> Remaining | None:
        """What would remain after this charge; None if it would not be accepted. Nothing is charged.

        >>> ledger = MemoryLedger(epsilon=1)
        >>> print(ledger.remaining_after(Cost(epsilon=0.25)))
        epsilon 0.75 and delta 0
        >>> ledger.remaining_after(Cost(epsilon=2)) is None
        True
        """
        with self._lock:
            rule, total, taken = self._after(self._filter, self._total, *each(cost)[0])
            return rule.remaining(total) if taken else None

    def charge(self, cost: Cost, what: str, *, announced: Announced = None) -> Receipt:
        """Add the cost to the total, or raise ``BudgetExceededError`` and leave the total as it was.

        ``announced``: as for ``Ledger.charge``.
        """
        with self._lock:
            self._require_process()
            pair = pair_of(announced)
            rule, total, taken = self._after(self._filter, self._total, cost, pair)
            if not taken:
                needs = cost if pair is None else pair
                raise BudgetExceededError(
                    f"the budget does not cover this release ({what}): it needs {needs.words}, the ledger has spent "
                    f"{self.spent.words} of {self.budget.cost.words}, left: {self._filter.remaining(self._total)}. "
                    "Ask for less epsilon or delta, or open a larger budget"
                )
            self._filter = rule
            return self._write(total, cost, what)

    def _after(self, rule: Filter, before: Spent, cost: Cost, pair: Cost | None) -> tuple[Filter, Spent, bool]:
        """The filter and the total after a charge, and whether it is taken."""
        composed, announced = before.composed, before.announced
        cost.neighbours.require(self.neighbours)
        if pair is not None and not satisfies(cost, pair):
            raise ValueError(
                f"a release of {cost.words} is not private by what it announces ({pair.words}): announce a larger "
                "epsilon or delta, or leave announced out"
            )
        if self.composition.adds:
            pair = counted(cost, pair, self.budget)
            if pair is None:
                return rule, before, False
            announced = announced + pair
        counts = as_gaussian(cost, self.budget) or cost if self.composition is Composition.BOTH else cost
        total = Spent(composed + counts if self.composition.composes else composed, announced)
        judged = rule.after(before, total)
        taken = judged.covers(total)
        return (judged, total, True) if taken else (rule, before, False)

    def _require_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError("this ledger belongs to another process: open one ledger per process")

    def _write(self, total: Spent, cost: Cost, what: str) -> Receipt:
        self._total, self._count = total, self._count + 1
        return Receipt(self.label, self._count, what, cost, unit=Unit.of_label(self.unit))

    def __repr__(self) -> str:
        return f"MemoryLedger({self.label!r}, budget={self.budget!r}, spent={self.spent!r})"

    def _repr_html_(self) -> str:
        spent = self.spent.words if self._count else "nothing yet"
        facts = ("ledger", self.label), ("budget", self.budget.cost.words), ("spent", spent)
        lines = (*facts, ("left", str(self.remaining)))
        return (
            "<table>" + "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in lines) + "</table>"
        )

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
        super().__init__(
            budget.epsilon, budget.delta, budget.neighbours, label=label, unit=unit, composition=Composition.TIGHT
        )
        self._limit, self._parts = limit, parts or (budget,)
        self._open = True
        self._given: list[Receipt] = []

    def payable(self, costs: Sequence[Costly]) -> int:
        """How many of these charges would be taken, one after the other, up to the first that is not. None is made."""
        with self._lock:
            several = [asked.cost for asked in each(costs)] if costs else []
            refused = (at for at, cost in enumerate(several) if not self._covers(cost, *several[:at]))
            return next(refused, len(costs)) if self._open else 0

    def charge(self, cost: Cost, what: str, *, announced: Announced = None) -> Receipt:
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
            receipt = self._write(Spent(self.spent + cost, self._total.announced), cost, what)
            self._given.append(receipt)
            return receipt

    def _covers(self, cost: Cost, *earlier: Cost) -> bool:
        """Whether it would be taken after all that was, and these."""
        if self._limit is not None:
            return within(sum((*earlier, cost), start=self.spent), self._limit)
        place = len(self._given) + len(earlier)
        return place < len(self._parts) and cost.fits(self._parts[place])

    def gave(self, receipt: object) -> bool:
        """Whether this very receipt was written here."""
        return any(receipt is own for own in self._given)

    def close(self) -> None:
        """Take no more charges."""
        self._open = False
