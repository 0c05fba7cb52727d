"""Where targets lie: their noisy sum, and noisy counts of them where the budget is small.

Between loose bounds the noise of a mean is as wide as the bounds, and that of a bin is not: targets that lie close
together stand out of a histogram. What is likely, of normal targets of all places and spreads, has its mean, and that
and the noisy mean count by their variances. Proof: ``scale.proof.md``, Theorems 6 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Cost
from snugdp.mechanisms.objective.scale import TargetHistogram, TargetSum
from snugdp.noise import Noise
from snugdp.propose.plan import Step
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows

_PLACES = np.linspace(-1.0, 1.0, 65)  # of normal targets, in bounds, that are tried
_SPREADS = np.array([0.01, 0.03, 0.06, 0.1, 0.17, 0.28, 0.45])
_STEPS = 4096  # the place is rounded to such a part of the bound
_COUNTS = 24  # numbers of rows that are tried, and how far they lie from the noisy one
_LEAST_COUNT, _MOST_COUNT = 0.25, 4.0  # deviations
_UNLIKE = 0.3  # by such a part targets are not normal, in each bin
_UNSURE_SPREADS, _UNSURE_BINS = 0.5, 0.5  # the place is not known better than that


@dataclass(frozen=True)
class TargetPlace:
    """Where targets lie, once it is known about how many rows there are.

    Guarantee: ``cost``, when one row comes or goes (``scale.proof.md``, Theorems 6 and 7).
    """

    total: TargetSum
    places: TargetHistogram | None

    @property
    def cost(self) -> Cost:
        """Of both."""
        return self.total.cost if self.places is None else self.total.cost + self.places.cost

    def steps(self) -> tuple[Step, ...]:
        """Those of a plan."""
        places = () if self.places is None else (self.places.step("places", "target-places", self.places.deviation),)
        return (self.total.step("centre", "target-sum"), *places)

    def draw(self, data: Secret[Rows], noise: Noise, rows: tuple[float, float]) -> tuple[Fraction, Fraction]:
        """The place and the mean, in the units of a scaled target. ``rows``: their number, and how unsure that is."""
        total = (self.total.draw(data, noise.at("centre")), float(self.total.deviation))
        mean = min(max(total[0] / (max(rows[0], 0.0) + 2 * total[1]), -1.0), 1.0)
        place = mean
        if self.places is not None:
            counts = self.places.draw(data, noise.at("places"))
            place = located(counts, float(self.places.deviation), rows, total)
        return self._scaled(place), self._scaled(mean)

    def _scaled(self, part: float) -> Fraction:
        return Fraction(round(part * _STEPS), _STEPS) * self.total.design.y_bound


def located(counts: Sequence[float], deviation: float, rows: tuple[float, float], total: tuple[float, float]) -> float:
    """The place of the targets, as a part of their bound.

    ``counts``: by bins of one width, with noise of ``deviation``. ``rows`` and ``total``: how many targets there are
    and their sum, each with the deviation of its noise.

    >>> round(located([0, 3, 500, 2, 0, 1, 0, 0], 20.0, (510.0, 30.0), (-200.0, 400.0)), 2)  # the third of eight bins
    -0.37
    """
    place, spread, unsure = _likely(np.asarray(counts, dtype=np.float64), deviation, rows)
    number = max(rows[0], 2 * rows[1])
    mean = min(max(total[0] / number, -1.0), 1.0)
    of_mean = (total[1] ** 2 + (mean * rows[1]) ** 2) / number**2
    of_place = max(unsure, _UNSURE_SPREADS * spread + _UNSURE_BINS * 2 / len(counts)) ** 2
    return (place * of_mean + mean * of_place) / (of_mean + of_place)


def _likely(counts: NDArray[np.float64], deviation: float, rows: tuple[float, float]) -> tuple[float, float, float]:
    """The mean place and spread after the counts, and the deviation of the place."""
    shares, (about, error) = _shares(len(counts)), rows
    numbers = np.geomspace(max(_LEAST_COUNT * error, 1.0), max(about + _MOST_COUNT * error, 2 * error, 2.0), _COUNTS)
    weights = np.stack(
        [_log_weights(n * shares, counts, deviation) - 0.5 * ((n - about) / error) ** 2 for n in numbers]
    )
    chances = np.exp(weights - weights.max()).sum(axis=0)
    chances /= chances.sum()
    places, spreads = np.repeat(_PLACES, len(_SPREADS)), np.tile(_SPREADS, len(_PLACES))
    place = float(chances @ places)
    return place, float(chances @ spreads), math.sqrt(float(chances @ (places - place) ** 2))


def _log_weights(expected: NDArray[np.float64], counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """How likely counts are, of so many rows in each bin."""
    variances = deviation**2 + (_UNLIKE * expected) ** 2 / 2 + expected
    weights: NDArray[np.float64] = -0.5 * ((counts - expected) ** 2 / variances + np.log(variances)).sum(axis=-1)
    return weights


@lru_cache(maxsize=8)
def _shares(bins: int) -> NDArray[np.float64]:
    """Of normal targets in each bin, what lies beyond the bounds in the outer ones: for every place and spread."""
    edges = np.linspace(-1.0, 1.0, bins + 1)[1:-1]
    deviates = (edges - _PLACES[:, None]).ravel() / _SPREADS[:, None]  # spread by spread
    below = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in deviates.ravel()])
    below = below.reshape(len(_SPREADS), len(_PLACES), -1).swapaxes(0, 1)
    ends = np.zeros((*below.shape[:2], 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=2), axis=2).reshape(-1, bins)
