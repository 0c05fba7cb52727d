"""Paying before drawing: where the money and the randomness of a release come from, and the only maker of outcomes.

What happens between the charge and the outcome is in ``once.py``.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any, Self

from snugdp.core.guarantee import Budget, Neighbours, RelationMismatchError, other_relation
from snugdp.core.outcome import Account, LedgerLike, NotPrivate, Outcome, Receipt, Refused, Released, Unit
from snugdp.ledger.address import opened
from snugdp.ledger.parts import TablePart
from snugdp.ledger.question import Question
from snugdp.noise import Exact, Noise
from snugdp.noise.steps import InSteps
from snugdp.propose.plan import Plan
from snugdp.release.once import Keeper, Purchase, checked
from snugdp.release.parts import NOT_RESTRICTED
from snugdp.release.persons import Persons
from snugdp.serial.codec import StoredOutcome
from snugdp.serial.costs import recorded


class ReleaseContext:
    """Where the money and the randomness come from: a ledger for releases, a seed for rehearsals, never both.

    ``ledger``: a ledger, or the path or URL of one that exists. A release without one has the budget of its own plan.
    ``part``: the part of the table that the data were restricted to; a ledger for a part takes no other release.
    """

    _question: Callable[[], Question] | None = None
    persons: Persons | None = None  # for whom the plans of single rows are carried over

    def __init__(
        self,
        noise: Noise | None = None,
        ledger: LedgerLike | None = None,
        budget: Budget | None = None,
        *,
        unit: Unit = Unit.ROW,
        part: TablePart | None = None,
    ) -> None:
        self.noise = Exact() if noise is None else noise
        if isinstance(noise, type) or not all(hasattr(self.noise, name) for name in ("private", "at")):
            raise TypeError(
                "noise must be a source of noise, such as snugdp.Simulation(seed=1); leave it out to release"
            )
        if ledger is not None and not self.noise.private:
            raise ValueError("a simulation is NOT PRIVATE and cannot be charged: leave out the ledger")
        self._account = None if ledger is None else account(ledger)
        if self._account is None and self.noise.private:
            if budget is None:
                raise ValueError("a release needs a ledger to charge; give one, such as snugdp.MemoryLedger(...)")
            from snugdp.ledger.memory import MemoryLedger

            amounts = budget.epsilon, budget.delta, budget.neighbours
            self._account = MemoryLedger(*amounts, label="this call", unit=unit, composition="tight")
        kept = getattr(self._account, "restricted_to", None)
        if isinstance(kept, TablePart) and kept != part:
            raise TypeError(NOT_RESTRICTED)
        require_same(self._account, unit, None if budget is None else budget.neighbours)

    def with_question(self, question: Callable[[], Question]) -> Self:
        """The same context for one question, which is written beside the plan where that is kept.

        A key is then good for this very question: of other columns, with other parameters, it is refused.
        """
        asked = copy.copy(self)
        asked._question = question
        return asked

    def for_persons(self, persons: Persons | None) -> Self:
        """The same context for releases about a table of kept rows, each planned for single rows of it."""
        carried = copy.copy(self)
        carried.persons = persons
        return carried

    def _whole(self, plan: Plan) -> Plan:
        """The plan as it is paid: for persons where there are some."""
        whole = plan if self.persons is None else self.persons.plan(plan)
        require_same(self._account, whole.unit)
        return whole

    def known(self, plan: Plan) -> bool:
        """Whether this very release was charged before; a key of another one is refused. For what takes long to draw.

        Nothing is charged. An account without keys knows nothing.
        """
        plan = self._whole(plan)
        asked = getattr(self._account, "knows", None)
        return asked is not None and bool(asked(plan.cost, plan.title, **self._written(plan), **self._announced(plan)))

    def pay(self, plan: Plan, walk: Callable[[Noise, Receipt | None], StoredOutcome]) -> Outcome[Any]:
        """Charge the plan, then walk: the only way to an outcome. What a rehearsal would cost is only noted.

        ``walk``: tests and draws with this noise, each in a step of the plan (``noise.at``), and says what came of it;
        it gets the receipt too, which a rehearsal has not. In a release nothing else leaves it: whatever it raises is
        a refusal, and a user's interrupt goes on as a new one after that is stored. A rehearsal shows the mistake, also
        a draw outside the steps. Where the account keeps outcomes, what is shown is the stored one.
        """
        plan = self._whole(plan)
        if not self.noise.private:
            self._charged(plan)
            shown = checked(walk(InSteps(self.noise, plan.step_ids), None))
            return NotPrivate(shown.value, shown.refused, plan.cost, shown.certificate, plan.unit)
        kept, receipt = Purchase(
            lambda: self._charged(plan), self._keeper, lambda receipt: walk(self.noise, receipt)
        ).outcome()
        if kept.refused:
            return Refused(plan.cost, receipt, plan.unit)
        return Released(kept.value, plan.cost, receipt, kept.certificate, plan.unit)

    def _charged(self, plan: Plan) -> Receipt | None:
        """The receipt of the account; none in a rehearsal."""
        if self._account is None:
            if (record := getattr(self.noise, "record_plan", None)) is not None:  # the recorder of an audit
                record({step.id: step.cost for step in plan.steps})
            return None
        announced = self._announced(plan)
        if self._keeper is None:
            return self._account.charge(plan.cost, plan.title, **announced)
        return self._keeper.charge(plan.cost, plan.title, **self._written(plan), **announced)

    @property
    def _keeper(self) -> Keeper | None:
        return self._account if isinstance(self._account, Keeper) else None

    def affords(self, plan: Plan) -> bool:
        """Whether the ledger has enough left, as far as it tells. Only ``pay`` decides."""
        asked, whole = getattr(self._account, "affords", None), self._whole(plan)
        return asked is None or bool(asked(whole if self._adds else whole.cost))

    @property
    def _adds(self) -> bool:
        """Whether the account is a ledger that knows what releases announce; one of yours may know costs alone."""
        return getattr(self._account, "composition", None) is not None

    def _announced(self, plan: Plan) -> dict[str, Any]:
        """The epsilon and the delta of the plan, for ledgers that add them up."""
        from snugdp.ledger.composition.filter import pair, satisfies  # limits: only for those who pay

        way = getattr(self._account, "composition", None)
        if way is None or not (way.adds or self._keeper is not None):
            return {}
        fits = plan.budget is not None and satisfies(recorded(plan.cost), pair(plan.budget))
        return {"announced": plan.budget if fits else None}

    def _written(self, plan: Plan) -> dict[str, Any]:
        """What a ledger that keeps a history writes down beside a cost."""
        return {"plan": str(plan), "question": None if self._question is None else self._question()}


def require_same(ledger: LedgerLike | None, unit: Unit, neighbours: Neighbours | None = None) -> None:
    """Raise unless a ledger protects this unit, by this relation, as far as it says. Nothing is read or charged."""
    if ledger is None:
        return
    payer = account(ledger)
    if (label := getattr(payer, "unit", None)) is not None:
        Unit.of_label(label).require(unit)
    kept = getattr(payer, "neighbours", None)
    if isinstance(kept, Neighbours) and neighbours not in (None, kept):
        raise RelationMismatchError(other_relation(kept, neighbours))


def account(ledger: LedgerLike) -> Account:
    """The ledger itself, or the one at this path or URL."""
    if isinstance(ledger, str | os.PathLike):
        return opened(ledger)
    if isinstance(ledger, type) or not hasattr(ledger, "charge"):
        raise TypeError(
            "ledger must be a ledger, such as snugdp.MemoryLedger(epsilon=1, delta=1e-6), or the path or URL of one"
        )
    return ledger
