"""Paying before drawing: where the money and the randomness of a release come from, and the only maker of outcomes."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any, Never, Protocol, Self, TypeVar, runtime_checkable

from snugdp.guarantee import Budget, Cost
from snugdp.ledger import LedgerError, MemoryLedger
from snugdp.ledger.address import opened
from snugdp.ledger.question import ASKS
from snugdp.noise import Exact, Noise
from snugdp.outcome import Account, LedgerLike, NotPrivate, Outcome, Receipt, Refused, Released
from snugdp.ptr.keeping import Kept, UnreadableError, read, written
from snugdp.ptr.propose import Plan
from snugdp.secret import Secret

Output = TypeVar("Output")


@runtime_checkable
class Keeper(Protocol):
    """An account that keeps the outcome of every charge: one charge, one output, however often it is asked for."""

    def charge(self, cost: Cost, what: str, *, plan: str = "") -> Receipt:
        """Write the cost down, or refuse."""
        ...

    def recall(self, receipt: Receipt) -> str | None:
        """The outcome of a charge; nothing if there is none yet."""
        ...

    def settle(self, receipt: Receipt, body: str | None) -> str | None:
        """Store the outcome of a charge unless there is one, and return what is stored; nothing if it is consumed."""
        ...


class Purse:
    """Where the money and the randomness come from: a ledger for releases, a seed for rehearsals, never both.

    ``ledger``: a ledger, or the path or URL of one that exists. A release without one has the budget of its own plan.
    """

    _question: Callable[[], str] | None = None

    def __init__(
        self, noise: Noise | None = None, ledger: LedgerLike | None = None, budget: Budget | None = None
    ) -> None:
        self.noise = Exact() if noise is None else noise
        if isinstance(noise, type) or not hasattr(self.noise, "private"):
            raise TypeError(
                "noise must be a source of noise, such as snugdp.Simulation(seed=1); leave it out to release"
            )
        if ledger is not None and not self.noise.private:
            raise ValueError("a simulation is NOT PRIVATE and cannot be charged: leave out the ledger")
        self._account = None if ledger is None else account(ledger)
        if self._account is None and self.noise.private:
            if budget is None:
                raise ValueError("a release needs a ledger to charge; give one, such as snugdp.MemoryLedger(...)")
            self._account = MemoryLedger(budget.epsilon, budget.delta, budget.neighbours, label="this call")

    def asking(self, question: Callable[[], str]) -> Self:
        """The same purse for one question (``ledger.question``), which is written beside the plan where that is kept.

        A key is then good for this very question: of other columns, with other parameters, it is refused.
        """
        asked = copy.copy(self)
        asked._question = question
        return asked

    def known(self, plan: Plan) -> bool:
        """Whether this very release was charged before; a key of another one is refused. For what takes long to draw.

        Nothing is charged. An account without keys knows nothing.
        """
        asked = getattr(self._account, "knows", None)
        return asked is not None and bool(asked(plan.cost, plan.what, plan=self._text(plan)))

    def pay(self, plan: Plan) -> Paid:
        """Charge the plan before anything is drawn; what a rehearsal would cost is only noted."""
        if self._account is None:
            if (told := getattr(self.noise, "told", None)) is not None:  # the witness of an audit
                told([step.cost for step in plan.steps])
            return Paid(plan, None)
        keeper = self._account if isinstance(self._account, Keeper) else None
        if keeper is None:
            receipt = self._account.charge(plan.cost, plan.what)
        else:
            receipt = keeper.charge(plan.cost, plan.what, plan=self._text(plan))
        if not isinstance(receipt, Receipt):
            raise TypeError("the ledger gave no receipt: nothing was drawn. Its charge method must return one")
        return Paid(plan, receipt, keeper)

    def affords(self, plan: Plan) -> bool:
        """Whether the ledger has enough left, as far as it tells. Only ``pay`` decides."""
        asked = getattr(self._account, "affords", None)
        return asked is None or bool(asked(plan.cost))

    def _text(self, plan: Plan) -> str:
        return str(plan) if self._question is None else f"{plan}{ASKS}{self._question()}"


def account(ledger: LedgerLike) -> Account:
    """The ledger itself, or the one at this path or URL."""
    if isinstance(ledger, str | os.PathLike):
        return opened(ledger)
    if isinstance(ledger, type) or not hasattr(ledger, "charge"):
        raise TypeError(
            "ledger must be a ledger, such as snugdp.MemoryLedger(epsilon=1, delta=1e-6), or the path or URL of one"
        )
    return ledger


class Paid:
    """A plan that has been charged (or is being rehearsed): the only maker of outcomes.

    Where the account keeps outcomes, every one is stored before it is shown, and what is shown is the stored one.
    """

    def __init__(self, plan: Plan, receipt: Receipt | None, keeper: Keeper | None = None) -> None:
        self._cost, self._unit, self.receipt, self._keeper = plan.cost, plan.unit, receipt, keeper

    def earlier(self) -> Outcome[Any] | None:
        """What this very charge has bought before, if anything: a retry shows it and draws nothing."""
        if self.receipt is None or self._keeper is None:
            return None
        body = self._keeper.recall(self.receipt)
        return None if body is None else self._made(self.receipt, _read(body))

    def released(self, value: Output, certificate: object = None) -> Released[Output] | Refused | NotPrivate[Output]:
        """The outcome of a release; that of another process, if it was faster under the same key."""
        if isinstance(value, Secret):
            raise TypeError("the draw returned a private value: release it through noise.add, noise.argmax, ...")
        if self.receipt is None:
            return NotPrivate(value, False, self._cost, certificate, self._unit)
        return self._settled(self.receipt, Kept(False, value, certificate))

    def refused(self) -> Released[Any] | Refused | NotPrivate[Never]:
        """The outcome of a refusal."""
        if self.receipt is None:
            return NotPrivate(None, True, self._cost, unit=self._unit)
        return self._settled(self.receipt, Kept(True))

    def failed(self) -> Released[Any] | Refused:
        """A computation on private values failed: a release fails closed, a rehearsal shows the mistake."""
        if self.receipt is None:
            raise  # noqa: PLE0704  the error being handled
        return self._settled(self.receipt, Kept(True))

    def _settled(self, receipt: Receipt, kept: Kept) -> Released[Any] | Refused:
        stored = None if self._keeper is None else self._keeper.settle(receipt, written(kept))
        return self._made(receipt, kept if stored is None else _read(stored))

    def _made(self, receipt: Receipt, kept: Kept) -> Released[Any] | Refused:
        if kept.refused:
            return Refused(self._cost, receipt, self._unit)
        return Released(kept.value, self._cost, receipt, kept.certificate, self._unit)


def _read(body: str) -> Kept:
    try:
        return read(body)
    except UnreadableError:
        pass
    raise LedgerError(
        "the outcome of this charge is stored in a form that this version of snugdp cannot read: nothing was drawn. "
        "Use the version that stored it (snugdp ledger export shows which), or another key, which is charged again"
    )
