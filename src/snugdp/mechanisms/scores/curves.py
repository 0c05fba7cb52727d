"""ROC and calibration curves from two noisy histograms of the score. Counts may be negative and are left as they are.

Negative counts are not set to 0: sums of noisy counts are right on average, and would not be then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.scores.intervals import ALPHA, WHOLE, Interval, at_kurtosis, proportion_interval, quantile

Floats: TypeAlias = NDArray[np.float64]
BINNING = 0.001  # what bins may add to the error of the area
_SMALL_CLASS = 5  # deviations of a class's noisy total
_SMALL_BIN = 10  # deviations of a count


@dataclass(frozen=True)
class ScoreBins:
    """Noisy counts of positives and negatives by bins of the score, in ascending order, and their noise variance.

    ``edges``: of the bins, the ends included; equal parts of [0, 1] if they are not given. ``kurtosis``: of the noise.
    """

    positives: tuple[int, ...]
    negatives: tuple[int, ...]
    noise: float
    edges: tuple[float, ...] = ()
    kurtosis: float = 0.0

    def edge(self, place: int) -> float:
        """The lower edge of a bin; the upper one of the last."""
        return self.edges[place] if self.edges else place / len(self.positives)

    @property
    def totals(self) -> tuple[float, float]:
        """The noisy numbers of positives and of negatives."""
        return float(sum(self.positives)), float(sum(self.negatives))

    @property
    def small(self) -> str | None:
        """A class of which there may be too few rows for its noise: "positive" or "negative"."""
        least = _SMALL_CLASS * math.sqrt(len(self.positives) * self.noise)
        named = zip(("positive", "negative"), self.totals, strict=True)
        return next((name for name, total in named if total < least), None)

    def area(self, *, slopes: bool = True) -> float:
        """The area under the ROC curve. ``slopes``: densities may rise or fall within a bin, as seen from its sides."""
        P, Q = self._arrays()
        below = np.cumsum(Q) - Q
        inner = float(P @ (below + Q / 2))
        if slopes and len(P) > 1:
            inner += float(Q @ _slope(P) - P @ _slope(Q)) / 12
        return float(inner / (P.sum() * Q.sum()))

    def area_variances(self) -> tuple[float, float]:
        """Of the area: by sampling (DeLong), and by noise."""
        P, Q = self._arrays()
        of_one, of_other = self._area_slopes()
        sampling = max(0.0, float(P @ of_one**2)) + max(0.0, float(Q @ of_other**2))
        return sampling, self.noise * float((of_one**2).sum() + (of_other**2).sum())

    def _area_slopes(self) -> tuple[Floats, Floats]:
        """By how much the area grows with a positive, and with a negative, in each bin."""
        P, Q = self._arrays()
        n1, n0 = P.sum(), Q.sum()
        F0 = (np.cumsum(Q) - Q / 2) / n0
        G1 = 1 - (np.cumsum(P) - P / 2) / n1
        A = float(P @ F0) / n1
        return (F0 - A) / n1, (G1 - A) / n0

    def area_interval(self, *, sampling: bool = True, alpha: float = ALPHA) -> Interval:
        """Of the area; [0, 1] where a class is too small."""
        if self.small is not None:
            return WHOLE
        drawn, noise = self.area_variances()
        variance = noise + (drawn if sampling else 0.0)
        fourth = self.kurtosis * self.noise**2 * float(sum((slope**4).sum() for slope in self._area_slopes()))
        half = quantile(at_kurtosis(alpha, fourth, variance)) * math.sqrt(variance) + (0.0 if sampling else BINNING)
        area = self.area()
        return max(0.0, area - half), min(1.0, area + half)

    def table(self, threshold: int) -> tuple[int, int, int, int]:
        """True and false positives, false and true negatives, if bins from ``threshold`` on are called positive."""
        return (
            sum(self.positives[threshold:]), sum(self.negatives[threshold:]),
            sum(self.positives[:threshold]), sum(self.negatives[:threshold]),
        )  # fmt: skip

    def table_noise(self, threshold: int) -> tuple[float, float, float, float]:
        """The noise variances of these four: a sum of k bins has k times that of one."""
        above, below = len(self.positives) - threshold, threshold
        return above * self.noise, above * self.noise, below * self.noise, below * self.noise

    def table_kurtosis(self, threshold: int) -> tuple[float, float, float, float]:
        """The kurtoses of their noise: a sum of k bins has one k-th of that of one."""
        above, below = (self.kurtosis / max(bins, 1) for bins in (len(self.positives) - threshold, threshold))
        return above, above, below, below

    def roc(self, *, sampling: bool = True, alpha: float = ALPHA) -> tuple[RocPoint, ...]:
        """The ROC curve at the edges of the bins, from (0, 0) to (1, 1), with an interval for either rate."""
        found = list[RocPoint]()
        for threshold in range(len(self.positives), -1, -1):
            tp, fp, fn, tn = self.table(threshold)
            v_tp, v_fp, v_fn, v_tn = self.table_noise(threshold)
            above, _, below, _ = self.table_kurtosis(threshold)
            told: Any = {"sampling": sampling, "alpha": alpha, "kurtosis": (above, below)}
            hit = proportion_interval(tp, fn, (v_tp, v_fn), **told)
            alarm = proportion_interval(fp, tn, (v_fp, v_tn), **told)
            found.append(RocPoint(self.edge(threshold), _rate(fp, tn), _rate(tp, fn), alarm, hit))
        return tuple(found)

    def calibration(self, *, sampling: bool = True, alpha: float = ALPHA) -> tuple[CalibrationBin, ...]:
        """The share of positives in each bin, with its interval; neighbouring bins are merged where rows are few."""
        found = list[CalibrationBin]()
        for start, stop in self._merged():
            yes, no = sum(self.positives[start:stop]), sum(self.negatives[start:stop])
            noise = (stop - start) * self.noise
            tails = (self.kurtosis / (stop - start),) * 2
            ends = proportion_interval(yes, no, (noise, noise), sampling=sampling, alpha=alpha, kurtosis=tails)
            found.append(
                CalibrationBin(
                    self.edge(start), self.edge(stop), self._centre(start, stop), yes, no, ends, stop - start
                )
            )
        return tuple(found)

    def _merged(self) -> list[tuple[int, int]]:
        """Runs of bins with enough rows for their noise; what is left at the end joins the last of them."""
        number, least = len(self.positives), _SMALL_BIN * math.sqrt(self.noise)
        found, start = list[tuple[int, int]](), 0
        for stop in range(1, number + 1):
            if sum(self.positives[start:stop]) + sum(self.negatives[start:stop]) >= least:
                found.append((start, stop))
                start = stop
        if start < number:
            first, _ = found.pop() if found else (start, number)
            found.append((first, number))
        return found

    def _centre(self, start: int, stop: int) -> float:
        """The mean score of some bins, by their middles and noisy counts."""
        rows = [self.positives[k] + self.negatives[k] for k in range(start, stop)]
        middles = [(self.edge(k) + self.edge(k + 1)) / 2 for k in range(start, stop)]
        total = sum(rows)
        mean = sum(n * x for n, x in zip(rows, middles, strict=True)) / total if total > 0 else 0.0
        return min(max(mean, middles[0]), middles[-1]) if total > 0 else (middles[0] + middles[-1]) / 2

    def calibration_error(self) -> float:
        """The root of the weighted mean square of share less score, without what the noise and sampling add to it."""
        total = max(sum(self.totals), 1.0)
        square = 0.0
        for each in self.calibration():
            rows = each.positives + each.negatives
            if rows <= 0:
                continue
            share = min(max(each.positives / rows, 0.0), 1.0)
            own = (share * (1 - share) + each.bins * self.noise * (share**2 + (1 - share) ** 2) / rows) / rows
            square += rows / total * max(0.0, (share - each.score) ** 2 - own)
        return math.sqrt(square)

    def _arrays(self) -> tuple[Floats, Floats]:
        return np.array(self.positives, dtype=np.float64), np.array(self.negatives, dtype=np.float64)


@dataclass(frozen=True)
class RocPoint:
    """A threshold of the score: the rates of false and of true positives above it, with their intervals."""

    threshold: float
    false_positive_rate: float
    true_positive_rate: float
    false_positive_interval: Interval
    true_positive_interval: Interval


@dataclass(frozen=True)
class CalibrationBin:
    """Rows with a score from ``lower`` to ``upper``, about ``score`` on average: noisy positives and negatives.

    ``interval``: for the share of positives. ``bins``: so many were merged.
    """

    lower: float
    upper: float
    score: float
    positives: int
    negatives: int
    interval: Interval
    bins: int

    @property
    def share(self) -> float:
        """Of positives, between 0 and 1."""
        return _rate(self.positives, self.negatives)


@dataclass(frozen=True)
class Placement:
    """The area from where the rare class stands among the common one. Proof: ``scores.proof.md``, Theorem 2.

    ``common``: noisy counts of the negatives by bins. ``above``, ``below``: noisy sums over the positives of the share
    of negatives below each, and of the rest. ``noise``: the variance of each of these sums, and ``count_noise`` that
    of a count; ``kurtosis``: of the noise.
    """

    common: tuple[int, ...]
    above: float
    below: float
    noise: float
    count_noise: float
    kurtosis: float

    @property
    def area(self) -> float:
        """The area under the ROC curve."""
        return self.above / (self.above + self.below)

    @property
    def noise_deviation(self) -> float:
        """What the noise of the two sums adds to the area."""
        a = self.area
        return math.sqrt(self.noise * (a**2 + (1 - a) ** 2)) / (self.above + self.below)

    @property
    def small(self) -> str | None:
        """A class of which there may be too few rows for its noise."""
        if self.above + self.below < _SMALL_CLASS * math.sqrt(2 * self.noise):
            return "positive"
        common = sum(self.common)
        return "negative" if common < _SMALL_CLASS * math.sqrt(len(self.common) * self.count_noise) else None

    def interval(self, *, sampling: bool = True, alpha: float = ALPHA) -> Interval:
        """Of the area; [0, 1] where a class is too small. The variance by sampling is a bound: a(1 - a)/min(n0, n1)."""
        if self.small is not None:
            return WHOLE
        area, n0, n1 = self.area, float(sum(self.common)), self.above + self.below
        held = min(max(area, 0.0), 1.0)
        variance = self.noise_deviation**2 + len(self.common) * self.count_noise / (4 * n0**2)
        variance += held * (1 - held) / min(n0, n1) if sampling else 0.0
        fourth = self.kurtosis * self.noise**2 * (area**4 + (1 - area) ** 4) / n1**4
        half = quantile(at_kurtosis(alpha, fourth, variance)) * math.sqrt(variance) + (0.0 if sampling else BINNING)
        return max(0.0, area - half), min(1.0, area + half)


def distribution(common: Sequence[int]) -> tuple[float, ...]:
    """The share of rows below each edge of the bins, by noisy counts: from 0 to 1, never falling."""
    total = sum(common)
    if total <= 0:
        return tuple(edge / len(common) for edge in range(len(common) + 1))
    raw = (min(max(each / total, 0.0), 1.0) for each in accumulate(common, initial=0))
    return (*tuple(accumulate(raw, max))[:-1], 1.0)


def _slope(counts: Floats) -> Floats:
    """Half of the difference of a bin's neighbours; at the ends, of the bin and its neighbour."""
    return np.asarray(np.gradient(counts), dtype=np.float64)


def _rate(yes: float, no: float) -> float:
    return min(max(yes / (yes + no), 0.0), 1.0) if yes + no > 0 else 0.5
