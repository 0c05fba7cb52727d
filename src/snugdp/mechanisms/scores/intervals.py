"""Intervals from noisy sums: of proportions, means and ratios. All of it is post-processing.

A *population* interval has sampling and noise in it, and is about rows that are not in the table; a *sample* interval
has the noise alone, and is about the score on the very rows of the table.

Discrete Laplace noise has longer tails than normal noise of the same deviation: with normal quantiles an interval that
holds nothing else would cover in 93.7 % instead of 95 %. So quantiles are corrected for the fourth cumulant of what is
in an interval (Cornish and Fisher).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

from snugdp.inference.means import Floats, SampledMean

Interval: TypeAlias = tuple[float, float]
WHOLE: Interval = (0.0, 1.0)
ALPHA = 0.05
LAPLACE = 3.0  # the excess kurtosis of Laplace noise; that of normal noise is 0


def quantile(alpha: float = ALPHA) -> float:
    """The normal quantile that is exceeded on either side together with probability ``alpha``."""
    return NormalDist().inv_cdf(1 - alpha / 2)


def at_kurtosis(alpha: float, fourth: float, variance: float) -> float:
    """The alpha at which the normal quantile is that of a law with this fourth cumulant and variance.

    >>> law = at_kurtosis(0.05, LAPLACE, 1.0)
    >>> round(quantile(law), 2), round(math.log(20) / math.sqrt(2), 2)  # Laplace's own
    (2.17, 2.12)
    """
    if not fourth > 0 or not variance > 0:
        return alpha
    z = quantile(alpha)
    return 2 * NormalDist().cdf(-z - (z**3 - 3 * z) * fourth / variance**2 / 24)


def proportion_interval(
    yes: float,
    no: float,
    noise: tuple[float, float],
    *,
    sampling: bool = True,
    alpha: float = ALPHA,
    kurtosis: tuple[float, float] = (0.0, 0.0),
) -> Interval:
    """The proportion of yes, from two noisy counts: Wilson's interval with the noise in it.

    ``noise``: the variances of the two; ``kurtosis``: of the noise of each. Without ``sampling``, that of the rows of
    the table. [0, 1] where the counts say nothing.

    >>> [round(end, 4) for end in proportion_interval(522, 2667, (13.14, 13.14))]
    [0.1511, 0.1771]
    """
    first, second = noise
    t = min(max(yes / (yes + no), 0.0), 1.0) if yes + no > 0 else 0.5
    alpha = at_kurtosis(
        alpha,
        kurtosis[0] * (first * (1 - t) ** 2) ** 2 + kurtosis[1] * (second * t**2) ** 2,
        first * (1 - t) ** 2 + second * t**2 + (max(yes + no, 0.0) * t * (1 - t) if sampling else 0.0),
    )
    sums = SampledMean(yes + no, yes, None if sampling else 0.0, (first + second, first, first))
    return _ends(sums.interval(alpha))


@dataclass(frozen=True)
class NoisyMean:
    """Noisy sums of t, 1 - t and ``factor`` times t(1 - t), for numbers t in [0, 1], each with the same deviation.

    ``kurtosis``: of the noise.
    """

    first: float
    second: float
    third: float
    deviation: float
    factor: float
    kurtosis: float = 0.0

    @property
    def count(self) -> float:
        """The noisy number of rows."""
        return self.first + self.second

    @property
    def mean(self) -> float:
        """The noisy mean, between 0 and 1; 1/2 where there may be no rows."""
        return min(max(self.first / self.count, 0.0), 1.0) if self.count > 0 else 0.5

    @property
    def variance(self) -> float:
        """That of t, with one deviation of its own noise added; at most 1/4."""
        if self.count <= 0:
            return 0.25
        m, n = self.first / self.count, self.count
        own = math.sqrt((1 - 2 * m) ** 2 * (m**2 + (1 - m) ** 2) + self.factor**-2)
        return min(0.25, max(0.0, m * (1 - m) - self.third / (self.factor * n)) + self.deviation * own / n)

    def interval(self, *, sampling: bool = True, alpha: float = ALPHA) -> Interval:
        """Of the mean; [0, 1] where the sums say nothing."""
        square, m = self.deviation**2, self.mean
        drawn = max(self.count, 0.0) * self.variance if sampling else 0.0
        fourth = self.kurtosis * square**2 * ((1 - m) ** 4 + m**4)
        alpha = at_kurtosis(alpha, fourth, square * ((1 - m) ** 2 + m**2) + drawn)
        sums = SampledMean(self.count, self.first, self.variance if sampling else 0.0, (2 * square, square, square))
        return _ends(sums.interval(alpha))

    @property
    def noise_deviation(self) -> float:
        """What the noise adds to the mean, as a standard deviation."""
        m = self.mean
        return self.deviation * math.hypot(m, 1 - m) / self.count if self.count > 0 else math.inf


@dataclass(frozen=True)
class NoisyRatio:
    """A ratio of two noisy numbers, with their variances and covariance.

    ``fourth``: the fourth cumulant of the first less the ratio times the second.
    """

    over: float
    under: float
    over_variance: float
    under_variance: float
    covariance: float = 0.0
    fourth: float = 0.0

    def interval(self, alpha: float = ALPHA) -> Interval:
        """Fieller's set; the whole line where the denominator may be 0."""
        t = self.over / self.under if self.under > 0 else 0.0
        variance = self.over_variance - 2 * t * self.covariance + t**2 * self.under_variance
        z2 = quantile(at_kurtosis(alpha, self.fourth, variance)) ** 2
        square = self.under**2 - z2 * self.under_variance
        linear = -2 * self.over * self.under + 2 * z2 * self.covariance
        found = _roots(square, linear, self.over**2 - z2 * self.over_variance)
        return (-math.inf, math.inf) if found is None or self.under <= 0 else found


def f1_of(share: float) -> float:
    """F1, from the share of true positives among all rows that are positive or are called so."""
    return 2 * share / (1 + share)


def averaged(values: Sequence[float], intervals: Sequence[Interval]) -> tuple[float, Interval]:
    """The mean of several numbers, and its interval if they are about independent rows."""
    number = len(values)
    mean = sum(values) / number
    low, high = (
        math.hypot(*(value - end[side] for value, end in zip(values, intervals, strict=True))) / number
        for side in range(2)
    )
    return mean, (max(0.0, mean - low), min(1.0, mean + high))


def _roots(square: float, linear: float, constant: float) -> Interval | None:
    """Where a parabola is at most 0; None where that is no interval."""
    root = linear**2 - 4 * square * constant
    if square <= 0 or root < 0:
        return None
    middle, half = -linear / (2 * square), math.sqrt(root) / (2 * square)
    return middle - half, middle + half


def _ends(found: tuple[Floats, Floats]) -> Interval:
    """As plain numbers."""
    return float(found[0]), float(found[1])
