"""The test by distance: how many rows would have to change before the privacy loss exceeds the budget.

Proof: ``distance.proof.md``. The noise on an integer distance is discrete, with its exact tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from snugdp.accounting import discrete, gaussian
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise
from snugdp.noise.number import number
from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.secret import Secret

Data = TypeVar("Data")
Distance = Callable[[Data], Any]  # a number of any type (noise.number)


@dataclass(frozen=True)
class DistanceTest(Generic[Data]):
    """Pass iff distance + noise >= threshold.

    Guarantee: if ``distance`` is 1-Lipschitz over neighbours and at most 0 on every uncertified data set, the bit
    has ``cost`` (its delta is the probability to pass when the distance is 0). Build it with a function below. A
    distance that is no number, or minus infinity, counts as 0; plus infinity always passes.
    """

    distance: Distance[Data]
    law: Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian
    threshold: Fraction
    cost: Cost

    def passes(self, data: Secret[Data], noise: Noise) -> bool:
        """One draw of the test: the exact decision of distance + noise >= threshold."""
        return noise.at_least(data.map(lambda rows: distance_of(self.distance(rows))), self.law, self.threshold)


def integer_laplace(
    distance: Distance[Data], *, epsilon: Real, delta: Real, neighbours: Neighbours
) -> DistanceTest[Data]:
    """Discrete Laplace noise on an integer distance: pure ``epsilon``, failure at most ``delta``."""
    rate, failure = rational(epsilon, "epsilon"), _failure(delta)
    threshold, _ = discrete.discrete_laplace_threshold(rate, failure)
    cost = Cost(epsilon=rate, delta=failure, neighbours=neighbours)
    return DistanceTest(distance, DiscreteLaplace(1 / rate), Fraction(threshold), cost)


def integer_gaussian(
    distance: Distance[Data], *, sigma: Real, delta: Real, neighbours: Neighbours
) -> DistanceTest[Data]:
    """Discrete Gaussian noise on an integer distance. Its mu is larger than 1/sigma: see the proof."""
    spread, failure = rational(sigma, "sigma"), _failure(delta)
    threshold, _ = discrete.discrete_gaussian_threshold(spread, failure)
    cost = Cost(mu=discrete.discrete_gaussian_mu(spread), delta=failure, neighbours=neighbours)
    return DistanceTest(distance, DiscreteGaussian(spread**2), Fraction(threshold), cost)


def laplace(distance: Distance[Data], *, epsilon: Real, delta: Real, neighbours: Neighbours) -> DistanceTest[Data]:
    """Laplace noise on a real distance: pure ``epsilon``, failure at most ``delta``."""
    rate, failure = rational(epsilon, "epsilon"), _failure(delta)
    threshold = Fraction(discrete.laplace_threshold(rate, failure))
    return DistanceTest(
        distance, Laplace(1 / rate), threshold, Cost(epsilon=rate, delta=failure, neighbours=neighbours)
    )


def normal(distance: Distance[Data], *, sigma: Real, delta: Real, neighbours: Neighbours) -> DistanceTest[Data]:
    """Gaussian noise on a real distance: mu = 1/sigma, failure at most ``delta``."""
    spread, failure = rational(sigma, "sigma"), _failure(delta)
    threshold = Fraction(gaussian.threshold(spread, failure))
    return DistanceTest(
        distance, Gaussian(spread), threshold, Cost(mu=1 / spread, delta=failure, neighbours=neighbours)
    )


def distance_of(value: object) -> Fraction | float:
    """A returned distance as an exact number or infinity. Total: what is no number is as near as can be."""
    found = number(value)
    return found if isinstance(found, Fraction) or found == math.inf else Fraction(0)


def _failure(delta: Real) -> Fraction:
    failure = rational(delta, "delta")
    if not 0 < failure <= Fraction(1, 2):
        raise ValueError("a test by distance needs a failure probability delta in (0, 1/2]; 1e-6 is typical")
    return failure
