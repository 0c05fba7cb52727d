"""The test by statistics: Gaussian bounds on numbers of known sensitivity, then a monotone loss.

Proof: ``statistics.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.noise import Gaussian, Noise
from snugdp.noise.grid import grid_below
from snugdp.noise.number import number
from snugdp.numerics.rationals import Real, float_down, float_up, rational
from snugdp.secrecy.secret import Secret

Data = TypeVar("Data")


@dataclass(frozen=True)
class Statistic(Generic[Data]):
    """A number of known sensitivity, and the side from which the loss needs it bounded.

    Parameters
    ----------
    name : str
        The argument of the loss that it is given as.
    of : callable
        ``of(data)``: the number, of any type (``noise.number``).
    sensitivity : Real
        How much it changes between neighbours, at most.
    side : {"lower", "upper"}
        "lower" if the loss falls as the statistic grows (rows, an eigenvalue), "upper" if it grows (a norm).
    between : (float, float)
        The public range. Values outside are clipped; what is not a finite number counts as the end with the larger loss
        (the lower end for "lower"), which must be finite.

    Examples
    --------
    >>> rows = Statistic("rows", of=len, sensitivity=1, side="lower", between=(1, 1000))
    >>> rows.value([3, 4, 5])
    Fraction(3, 1)
    """

    name: str
    of: Callable[[Data], Any]
    sensitivity: Real
    side: Literal["lower", "upper"]
    between: tuple[float, float]

    def __post_init__(self) -> None:
        if rational(self.sensitivity, "sensitivity") <= 0:
            raise ValueError(f"the sensitivity of {self.name!r} must be greater than 0")
        if self.side not in ("lower", "upper"):
            raise ValueError(f'the side of {self.name!r} must be "lower" or "upper"')
        low, high = self._ends
        if not low < high:
            raise ValueError(f"the range of {self.name!r} is the wrong way round: give between=(lower, upper)")
        if abs(self._worst) == math.inf:
            raise ValueError(
                f"the {self.side} end of the range of {self.name!r} must be finite: give between=(lower, upper)"
            )

    @property
    def _ends(self) -> tuple[Fraction | float, Fraction | float]:
        low, high = self.between
        return number(low), number(high)

    @property
    def _worst(self) -> Fraction | float:
        return self._ends[0 if self.side == "lower" else 1]

    def value(self, data: Data) -> Fraction:
        """The statistic as an exact number within its public range. Total: whatever ``of`` returns has an image."""
        found, (low, high) = number(self.of(data)), self._ends
        if not isinstance(found, Fraction):
            found = self._worst
        return Fraction(max(low, min(found, high)))

    def released(self, bound: Fraction) -> float:
        """A bound within the public range, as a float on the safe side of it."""
        low, high = self._ends
        inside = Fraction(max(low, min(bound, high)))
        return float_down(inside) if self.side == "lower" else float_up(inside)


@dataclass(frozen=True)
class GaussianBounds(Generic[Data]):
    """One-sided bounds on several statistics, each with its own mu and failure probability.

    Guarantee: releases of joint cost ``cost``; every bound holds except with total probability ``cost.delta``.
    """

    statistics: tuple[Statistic[Data], ...]
    mus: tuple[Fraction, ...]
    failures: tuple[Fraction, ...]
    neighbours: Neighbours

    @property
    def cost(self) -> Cost:
        """Gaussian parts add in squares, failures plainly."""
        return Cost(
            mu_squared=sum((mu**2 for mu in self.mus), Fraction(0)),
            delta=sum(self.failures, Fraction(0)),
            neighbours=self.neighbours,
        )

    def certify(self, data: Secret[Data], noise: Noise) -> Mapping[str, float]:
        """Draw the bounds. The value released for each name is a safe bound, clipped to its public range."""
        return {
            statistic.name: _bound(statistic, mu, failure, data, noise)
            for statistic, mu, failure in zip(self.statistics, self.mus, self.failures, strict=True)
        }


def gaussian_bounds(
    statistics: tuple[Statistic[Data], ...], *, mu: Real, delta: Real, neighbours: Neighbours
) -> GaussianBounds[Data]:
    """Split one ``mu`` (in squares) and one failure probability evenly over the statistics."""
    names = [statistic.name for statistic in statistics]
    if not names or len(set(names)) != len(names):
        raise ValueError("give at least one statistic, each with a name of its own")
    total, failure, count = rational(mu, "mu"), rational(delta, "delta"), len(statistics)
    if total <= 0 or not 0 < failure < 1:
        raise ValueError("mu must be greater than 0 and the failure probability delta in (0, 1)")
    share = total * Fraction(math.isqrt(10**30 // count), 10**15)  # not above total / sqrt(count)
    return GaussianBounds(statistics, (share,) * count, (failure / count,) * count, neighbours)


def _bound(statistic: Statistic[Data], mu: Fraction, failure: Fraction, data: Secret[Data], noise: Noise) -> float:
    sigma = rational(statistic.sensitivity, "sensitivity") / mu
    grid = grid_below(sigma)
    noisy = noise.add(data.map(statistic.value), Gaussian(sigma), grid=grid)
    margin = Fraction(gaussian.threshold(sigma, failure)) + Fraction(2) ** (grid - 1)  # half a cell for the rounding
    return statistic.released(noisy - margin if statistic.side == "lower" else noisy + margin)
