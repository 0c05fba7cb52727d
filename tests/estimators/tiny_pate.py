"""Labels by a plain noisy vote: what the classifier does around them is tested without the accounting, and fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import Budget, Cost, Outcome, Plan
from snugdp.noise.laws import Gaussian
from snugdp.ptr.propose import Step
from snugdp.ptr.purse import Purse
from snugdp.secret import Secret

__all__ = ["Tiny", "plain"]


@dataclass(frozen=True, eq=False)
class Labels:
    labels: Any
    answered: Any


class Tiny:
    """The face of ``snugdp.pate``; it remembers what it was given. ``gap``: "refuse", "one" class, or "none"."""

    votes: Any = None
    calls: int = 0

    @staticmethod
    def plan(budget: Budget, *, n_queries: int, n_teachers: int, n_classes: int, sigma: Any = None, **_: Any) -> Plan:
        if sigma is not None and sigma <= 0:
            raise ValueError("sigma must be greater than 0")
        cost = Cost(epsilon=budget.epsilon, delta=budget.delta, neighbours=budget.neighbours)
        told = f"{n_queries} queries, {n_teachers} teachers, {n_classes} classes"
        return Plan("tiny", "mechanisms/sufficient.proof.md#theorem-1", {}, (Step("all", "noise", cost),), (told,))

    @staticmethod
    def label(
        votes: Any, budget: Budget, sigma: Any = None, *, n_teachers: int, classes: Any, **given: Any
    ) -> Outcome[Labels]:
        assert given["form"] == "histograms"
        assert votes.dtype == np.int64
        assert votes.min() >= 0
        assert votes.sum(axis=1).max() <= n_teachers
        Tiny.votes, Tiny.calls = votes.copy(), Tiny.calls + 1
        plan = Tiny.plan(budget, n_queries=len(votes), n_teachers=n_teachers, n_classes=len(classes), sigma=sigma)
        purse = Purse(given["noise"], given["ledger"], budget)
        paid = purse.pay(plan)
        if given["gap"] == "refuse":
            return paid.refused()
        found = purse.noise.argmaxes(Secret(votes), Gaussian(sigma or 1))
        answered = np.full(len(votes), given["gap"] != "none")
        if given["gap"] == "half":
            answered[::2] = False
        if given["gap"] == "one":
            found[:] = 1
        return paid.released(Labels(np.array(classes)[found], answered))


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> type[Tiny]:
    """In place of the real labels."""
    monkeypatch.setattr(snugdp.pate, "label", Tiny.label, raising=False)
    monkeypatch.setattr(snugdp.pate, "plan", Tiny.plan, raising=False)
    monkeypatch.setattr(Tiny, "calls", 0)
    return Tiny
