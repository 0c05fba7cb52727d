"""Classic propose–test–release for an integer statistic: if nearby data cannot move it much, release it.

Proof: ``stable.proof.md``. What is special to a query is its value and its distance; all else is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Generic, TypeVar

from snugdp.certify.distance import DistanceTest, integer_laplace
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.noise import DiscreteLaplace, Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret

Data = TypeVar("Data")
_FORECAST_CASES = 20  # forecasts are for 19 cases in 20


@dataclass(frozen=True)
class Stable(Generic[Data]):
    """Release ``value`` with noise for ``sensitivity`` when ``distance`` is safely above 0.

    Guarantee: epsilon_test + epsilon_release, and failure delta (``stable.proof.md``, Theorem 1), for values that
    move by at most ``sensitivity`` between neighbours wherever the distance is at least 1. Sensitivity 0 releases
    the value as it is.
    """

    value: Callable[[Data], int]
    distance: Callable[[Data], int | float]
    sensitivity: int
    budget: Budget
    share: Fraction

    @property
    def epsilon_test(self) -> Fraction:
        """All of epsilon when the release itself is free."""
        return self.budget.epsilon * self.share if self.sensitivity else self.budget.epsilon

    @property
    def epsilon_release(self) -> Fraction:
        """What the test leaves."""
        return self.budget.epsilon - self.epsilon_test

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noise on the value."""
        return self.sensitivity / self.epsilon_release if self.sensitivity else Fraction(0)

    def test(self) -> DistanceTest[Data]:
        """The private test."""
        known = _threshold_test(self.epsilon_test, self.budget.delta, self.budget.neighbours)
        return replace(known, distance=self.distance)

    def draw(self, data: Secret[Data], noise: Noise) -> int:
        """The release, after the test has passed."""
        value, noise = data.map(self.value), noise.at("release")
        return int(noise.add(value, DiscreteLaplace(self.scale))) if self.sensitivity else noise.reveal(value)

    def safe_distance(self) -> int:
        """A distance at which the test passes in at least 19 of 20 cases."""
        test = self.test()
        return math.ceil(test.threshold + Fraction(math.log(_FORECAST_CASES)) / self.epsilon_test)

    def steps(self) -> tuple[Step, Step]:
        """The two steps of the plan."""
        release = Cost(epsilon=self.epsilon_release, neighbours=self.budget.neighbours)
        how = StepNoise("value", "discrete Laplace") if self.sensitivity else StepNoise("stable-value")
        return distance_step(self.test()), Step("release", StepKind.RELEASE, how, release)


@dataclass(frozen=True)
class Bounded(Generic[Data]):
    """Release an integer that no pair of neighbours can move by more than ``sensitivity``. No test, no delta.

    Guarantee: pure epsilon (the discrete Laplace mechanism; ``stable.proof.md``, Lemma 1).
    """

    value: Callable[[Data], int]
    sensitivity: int
    budget: Budget

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noise on the value."""
        return self.sensitivity / self.budget.epsilon

    def draw(self, data: Secret[Data], noise: Noise) -> int:
        """The release."""
        return int(noise.at("release").add(data.map(self.value), DiscreteLaplace(self.scale)))

    def steps(self) -> tuple[Step]:
        """The one step of the plan."""
        cost = Cost(epsilon=self.budget.epsilon, neighbours=self.budget.neighbours)
        return (Step("release", StepKind.RELEASE, StepNoise("bounded-value", "discrete Laplace"), cost),)


@lru_cache(maxsize=256)
def _threshold_test(epsilon: Fraction, delta: Fraction, neighbours: Neighbours) -> DistanceTest[Any]:
    """A test without a distance: its threshold hangs on the budget alone, and is searched once."""
    return integer_laplace(lambda _: 0, epsilon=epsilon, delta=delta, neighbours=neighbours)


def distance_step(test: DistanceTest[Data]) -> Step:
    """The test of a distance, as a step of a plan."""
    return Step(
        "test",
        StepKind.TEST,
        StepNoise("distance", "discrete Laplace", params={"threshold": test.threshold}),
        test.cost,
    )


def usual_error(scale: Fraction) -> float:
    """The size that discrete Laplace noise stays below in 19 of 20 cases."""
    return float(scale) * math.log(_FORECAST_CASES)
