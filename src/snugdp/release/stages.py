"""Two stages: what the first one releases decides what the second one works on. Proof: ``stages.proof.md``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Outcome, Receipt
from snugdp.ledger import BudgetExceededError
from snugdp.noise import Noise
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import Certifier
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome

Data = TypeVar("Data")
Found = TypeVar("Found")
Output = TypeVar("Output")


class Advance(ReleaseContext):
    """The context of one stage of a plan that has been paid as a whole: it pays once, and no more than was planned."""

    def __init__(self, noise: Noise, limit: Cost, receipt: Receipt | None) -> None:
        self.noise, self._account = noise, None
        self._limit, self._receipt = limit, receipt
        self._unused = threading.Semaphore()  # of all copies together

    def _charged(self, plan: Plan) -> Receipt | None:
        """The receipt of the whole, for a part of it."""
        from snugdp.ledger.composition.limits import within  # only for those who pay

        if not within(plan.cost, self._limit) or not self._unused.acquire(blocking=False):
            raise BudgetExceededError("a stage may not spend more than was planned for it, and only once")
        return self._receipt


@dataclass(frozen=True)
class TwoStages(Generic[Data, Found, Output]):
    """A release, and a second one on what the first has found. The plan holds both. If either refuses, the whole does.

    ``second(data, found, context)``: a release of its own, paid from the context that it is given. ``limit``: its cost,
    whatever the first one finds.

    Guarantee: the plan's cost, for every pair of neighbours (``stages.proof.md``, Theorem 1).
    """

    plan: Plan
    first: Certifier[Data, Found | None]
    second: Callable[[Secret[Data], Found, ReleaseContext], Outcome[Output]]
    limit: Cost

    def release(self, data: Secret[Data], context: ReleaseContext) -> Outcome[tuple[Found, Output]]:
        """Pay for both, run the first, and the second on what was found: show what both have released."""

        def stored(found: Found, outcome: Outcome[Output]) -> StoredOutcome:
            return StoredOutcome(refused=False, value=(found, outcome.value), certificate=outcome.certificate)

        return context.pay(self.plan, self._walk(data, stored))  # 1. pay; 2. its outcome, if there is one

    def release_second(
        self, data: Secret[Data], context: ReleaseContext, certificate: Callable[[Found], object]
    ) -> Outcome[Output]:
        """The same, to show what the second has released; what the first one found is its certificate."""

        def stored(found: Found, outcome: Outcome[Output]) -> StoredOutcome:
            return StoredOutcome(refused=False, value=outcome.value, certificate=certificate(found))

        return context.pay(self.plan, self._walk(data, stored))

    def _walk(
        self, data: Secret[Data], stored: Callable[[Found, Outcome[Output]], StoredOutcome]
    ) -> Callable[[Noise, Receipt | None], StoredOutcome]:
        """Both stages. ``stored``: what is kept of them, a function of what both have released."""

        def walk(noise: Noise, receipt: Receipt | None) -> StoredOutcome:
            found = self.first.certify(data, noise)  # 3. first stage
            if found is None:
                return StoredOutcome(refused=True)
            outcome = self.second(data, found, Advance(noise, self.limit, receipt))  # 4. second stage
            return StoredOutcome(refused=True) if outcome.refused or outcome.value is None else stored(found, outcome)

        return walk
