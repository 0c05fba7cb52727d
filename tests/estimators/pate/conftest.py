"""Labels by a plain noisy vote: what the classifier does around them is tested without the accounting, and fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from snugdp import Budget, Cost, Outcome, Plan
from snugdp.noise import Noise
from snugdp.noise.laws import Gaussian
from snugdp.pate import labelling
from snugdp.pate.proposals import Size
from snugdp.pate.votes import Panel
from snugdp.propose.forecast import noted
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret, unwrap
from snugdp.serial.codec import StoredOutcome
from tests.plans import plan_of


@dataclass(frozen=True, eq=False)
class Labels:
    labels: Any
    answered: Any


@dataclass(frozen=True)
class Proposed:
    plan: Plan
    sigma: Any
    gap: Any


class Tiny:
    """A stand-in for ``snugdp.pate``; it remembers what it was given. ``gap``: "refuse", "one" class, or "none"."""

    votes: Any = None
    calls: int = 0
    plans: int = 0

    @staticmethod
    def propose(budget: Budget, size: Size, _test: Any, given: Any) -> Proposed:
        if given.sigma is not None and given.sigma <= 0:
            raise ValueError("sigma must be greater than 0")
        Tiny.plans += 1
        cost = Cost(epsilon=budget.epsilon, delta=budget.delta, neighbours=budget.neighbours)
        told = noted("lead-wins", rows=size.queries, teachers=size.teachers, classes=size.classes)
        plan = plan_of("tiny", cost, forecast=told)
        return Proposed(plan, given.sigma, given.gap)

    @staticmethod
    def run(proposal: Proposed, panel: Panel, secret: Secret[Any], context: ReleaseContext) -> Outcome[Labels]:
        votes = unwrap(secret)
        assert votes.dtype == np.int64
        assert votes.shape == (panel.queries, len(panel.classes))
        assert votes.min() >= 0
        assert votes.sum(axis=1).max() <= panel.teachers
        Tiny.votes, Tiny.calls = votes.copy(), Tiny.calls + 1

        def walk(noise: Noise, _: object) -> StoredOutcome:
            if proposal.gap == "refuse":
                return StoredOutcome(refused=True)
            found = noise.at("release").argmaxes(secret, Gaussian(proposal.sigma or 1))
            answered = np.full(len(votes), proposal.gap != "none")
            if proposal.gap == "half":
                answered[::2] = False
            if proposal.gap == "one":
                found[:] = 1
            return StoredOutcome(refused=False, value=Labels(np.array(panel.classes)[found], answered))

        return context.pay(proposal.plan, walk)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> type[Tiny]:
    """In place of the real labels."""
    monkeypatch.setattr(labelling, "propose", Tiny.propose)
    monkeypatch.setattr(labelling, "run", Tiny.run)
    monkeypatch.setattr(Tiny, "calls", 0)
    monkeypatch.setattr(Tiny, "plans", 0)
    return Tiny
