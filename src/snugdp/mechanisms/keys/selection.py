"""Showing the keys whose noisy counts reach a public threshold: what every such release has, whatever its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Cost
from snugdp.noise import Finite, Gaussian, Noise, tail
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret

KeyCounts: TypeAlias = tuple[Sequence[Any], NDArray[np.int64]]
STEP = "keys"
_FORECAST_PROBABILITY = Fraction(19, 20)
_TWO_SIDED = 1.959963984540054  # deviations that a Gaussian stays within in 19 of 20 cases
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class KeySelection:
    """Keys, each with how many owners of rows have it, shown if that count plus noise reaches the threshold.

    ``keys``: an owner counts for at most so many. ``cost``: by the theorem of whoever made this
    (``optimal.proof.md``, ``threshold.proof.md``).
    """

    law: Finite | Gaussian
    threshold: int
    keys: int
    cost: Cost

    def draw(self, counts: Secret[KeyCounts], noise: Noise) -> list[tuple[Any, float]]:
        """The keys that are shown, in the order of ``counts``, with their counts less the mean of the noise.

        ``counts``: every key that is there, once and in an order that is a function of their set.
        """
        shown, mean = noise.at(STEP).keys_above(counts, self.law, self.threshold), float(self._mean)
        return [(key, count - mean) for key, count in shown]

    @property
    def _mean(self) -> Fraction:
        return self.law.mean if isinstance(self.law, Finite) else Fraction(0)

    def chance(self, count: int) -> float:
        """The probability that a key of so many owners is shown."""
        if count < 1:
            return 0.0
        gap = self.threshold - count
        return float(self.law.at_least(gap)) if isinstance(self.law, Finite) else tail(self.law, gap - _HALF)

    @cached_property
    def usual_count(self) -> int:
        """The least count with which a key is shown in at least 19 of 20 cases."""
        if isinstance(self.law, Gaussian):
            return max(1, math.ceil(self.threshold - _HALF + Fraction(1.645) * self.law.sigma))
        left, missed = self.law.total, self.law.total * (1 - _FORECAST_PROBABILITY)
        for place, weight in enumerate(reversed(self.law.weights)):  # the largest noise first: the least count
            left -= weight
            if left <= missed:
                return max(1, self.threshold - (self.law.highest - place))
        raise AssertionError("weights add up to their total")

    @cached_property
    def count_error(self) -> float:
        """What the noise moves a count by, at most, in 19 of 20 cases."""
        if isinstance(self.law, Gaussian):
            return _TWO_SIDED * float(self.law.sigma)
        sizes, chances = self._noise
        order = np.argsort(sizes)
        place = int(np.searchsorted(np.cumsum(chances[order]), float(_FORECAST_PROBABILITY)))
        return float(sizes[order][min(place, len(sizes) - 1)])

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a count."""
        if isinstance(self.law, Gaussian):
            return float(self.law.sigma)
        sizes, chances = self._noise
        return float(np.sqrt((sizes**2 * chances).sum()))

    @cached_property
    def _noise(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far noise of a finite law is from its mean, and how likely that is, in floats: for forecasts alone."""
        assert isinstance(self.law, Finite)
        places = self.law.lowest + np.arange(len(self.law.weights), dtype=np.float64)
        chances = np.array([weight / self.law.total for weight in self.law.weights])
        return np.abs(places - float(self._mean)), chances

    def step(self) -> Step:
        """The step of a plan that draws."""
        law = "gaussian" if isinstance(self.law, Gaussian) else "optimal"
        numbers = {"threshold": self.threshold, "rows": self.usual_count, "error": self.count_error}
        return Step(STEP, StepKind.SELECT, StepNoise("keys", law, self.deviation, "rows", params=numbers), self.cost)
