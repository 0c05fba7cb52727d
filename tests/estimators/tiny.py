"""A method that looks at no row: whatever an estimator shows beyond its answer comes from somewhere else."""

from __future__ import annotations

from typing import Any

import numpy as np

from snugdp import Budget, Cost, Outcome, Plan
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.propose.forecast import Accuracy, noted
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome
from snugdp.tables.rows import Rows
from tests.plans import plan_of


class Tiny:
    """Releases the public ``theta``, or refuses."""

    last: dict[str, Any]

    def __init__(
        self, design: Design, budget: Budget, *, theta: float = 1.0, refuse: bool = False, **given: Any
    ) -> None:
        if theta < 0:
            raise ValueError("theta must not be negative")
        self.theta, self.refuse, self.budget, self.design = np.full(design.entries, theta), refuse, budget, design
        Tiny.last = given

    def plan(self) -> Plan:
        cost = Cost(epsilon=self.budget.epsilon, delta=self.budget.delta)
        return plan_of("tiny", cost, forecast=noted("best-tried-surely"), budget=self.budget)

    def forecast(self, rows: int) -> Accuracy:
        return Accuracy(noise=1 / rows, excess=1 / rows**2)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        shown = StoredOutcome(False, Fit(self.theta, 0.5, {"ridge": 3.0}), "certificate")
        return context.pay(self.plan(), lambda *_: StoredOutcome(refused=True) if self.refuse else shown)
