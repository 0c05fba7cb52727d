"""Paying before drawing: where the money and the randomness of a release come from, and the only maker of outcomes."""

from __future__ import annotations

from typing import Never, TypeVar

from snugdp.guarantee import Budget
from snugdp.ledger import MemoryLedger
from snugdp.noise import Exact, Noise
from snugdp.outcome import Ledger, NotPrivate, Receipt, Refused, Released
from snugdp.ptr.propose import Plan
from snugdp.secret import Secret

Output = TypeVar("Output")


class Purse:
    """Where the money and the randomness come from: a ledger for releases, a seed for rehearsals, never both.

    A release without a ledger has the budget of its own plan.
    """

    def __init__(self, noise: Noise | None = None, ledger: Ledger | None = None, budget: Budget | None = None) -> None:
        self.noise = Exact() if noise is None else noise
        if isinstance(noise, type) or not hasattr(self.noise, "private"):
            raise TypeError(
                "noise must be a source of noise, such as snugdp.Simulation(seed=1); leave it out to release"
            )
        if ledger is not None and not self.noise.private:
            raise ValueError("a simulation is NOT PRIVATE and cannot be charged: leave out the ledger")
        if ledger is not None and (isinstance(ledger, type) or not hasattr(ledger, "charge")):
            raise TypeError("ledger must be a ledger, such as snugdp.MemoryLedger(epsilon=1, delta=1e-6)")
        if ledger is None and self.noise.private:
            if budget is None:
                raise ValueError("a release needs a ledger to charge; give one, such as snugdp.MemoryLedger(...)")
            ledger = MemoryLedger(budget.epsilon, budget.delta, budget.neighbours, label="this call")
        self._ledger = ledger

    def pay(self, plan: Plan) -> Paid:
        """Charge the plan before anything is drawn; what a rehearsal would cost is only noted."""
        if self._ledger is None:
            return Paid(plan, None)
        receipt = self._ledger.charge(plan.cost, plan.what)
        if not isinstance(receipt, Receipt):
            raise TypeError("the ledger gave no receipt: nothing was drawn. Its charge method must return one")
        return Paid(plan, receipt)


class Paid:
    """A plan that has been charged (or is being rehearsed): the only maker of outcomes."""

    def __init__(self, plan: Plan, receipt: Receipt | None) -> None:
        self._cost, self._receipt = plan.cost, receipt

    def released(self, value: Output, certificate: object = None) -> Released[Output] | NotPrivate[Output]:
        """The outcome of a release."""
        if isinstance(value, Secret):
            raise TypeError("the draw returned a private value: release it through noise.add, noise.argmax, ...")
        if self._receipt is None:
            return NotPrivate(value, False, self._cost, certificate)
        return Released(value, self._cost, self._receipt, certificate)

    def refused(self) -> Refused | NotPrivate[Never]:
        """The outcome of a refusal."""
        if self._receipt is None:
            return NotPrivate(None, True, self._cost)
        return Refused(self._cost, self._receipt)

    def failed(self) -> Refused:
        """A computation on private values failed: a release fails closed, a rehearsal shows the mistake."""
        if self._receipt is None:
            raise  # noqa: PLE0704  the error being handled
        return Refused(self._cost, self._receipt)
