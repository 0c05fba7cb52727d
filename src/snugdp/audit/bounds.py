"""Intervals around what was measured: each holds but for a stated probability, whatever the number of runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
ALPHA = 1e-7
_BETS = np.concatenate([2.0 ** -np.arange(1.0, 13.0), [0.65, 0.8, 0.9, 0.97]])  # parts of the capital
_ROUNDS = 32
_MARKS = 60  # thresholds to choose from


def clopper_pearson(hits: int, runs: int, alpha: float = ALPHA) -> tuple[float, float]:
    """An interval around the chance of an event, missed with probability at most alpha / 2 at each end.

    >>> [round(end, 4) for end in clopper_pearson(0, 100, 0.05)]
    [0.0, 0.0362]
    """
    from scipy.special import betaincinv

    _check(alpha)
    if not 0 <= hits <= runs:
        raise ValueError("hits must be between 0 and the number of runs")
    low = float(betaincinv(hits, runs - hits + 1, alpha / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, runs - hits, 1 - alpha / 2)) if hits < runs else 1.0
    return low, high


def mean_interval(values: ArrayLike, alpha: float = ALPHA) -> tuple[float, float]:
    """An interval around the mean of independent values in [0, 1]; they need not have the same law.

    By betting: whoever bets on a mean above m, at fair odds for m, has no more than 1 / alpha times the stake but for
    probability alpha, if no value has a mean above m. The stake is spread over several bets. The ends are where such a
    bet has just not won.
    """
    x = _within(values)
    _check(alpha)
    return lowest_mean(x, alpha / 2), 1 - lowest_mean(1 - x, alpha / 2)


def lowest_mean(values: ArrayLike, alpha: float = ALPHA) -> float:
    """What the mean is not below, but for probability alpha."""
    x = _within(values)
    low, high = 0.0, float(x.mean()) if len(x) else 0.0
    for _ in range(_ROUNDS if high > 0 else 0):
        middle = (low + high) / 2
        if middle and won(x, middle) < math.log(1 / alpha):
            high = middle
        else:
            low = middle
    return low


def won(values: ArrayLike, mean: float) -> float:
    """The logarithm of the capital of who bets that the mean is above this. It falls as ``mean`` grows."""
    x = _within(values)
    if mean <= 0:
        return math.inf if bool((x > 0).any()) else 0.0
    ratio = x / mean - 1
    logs = np.log1p(_BETS[:, None] * ratio).sum(axis=1)
    return float(np.logaddexp.reduce(logs)) - math.log(len(_BETS))


def epsilon_bound(true_low: float, false_high: float, delta: float) -> float:
    """The smallest epsilon at this delta that a test allows with these bounds on its chances to say yes.

    >>> round(epsilon_bound(0.5, 0.1, 0.05), 6) == round(math.log(4.5), 6)
    True
    """
    if true_low <= delta:
        return -math.inf
    return math.log(true_low - delta) - math.log(false_high) if false_high > 0 else math.inf


def gaussian_bound(first_high: float, second_high: float) -> float:
    """The smallest mu of a Gaussian trade-off curve that allows a test with at most these two errors.

    >>> round(gaussian_bound(0.308538, 0.308538), 4)
    1.0
    """
    from scipy.special import ndtri

    return float(ndtri(1 - first_high) - ndtri(second_high))


def best_threshold(first: ArrayLike, second: ArrayLike, worth: Callable[[float, float], float]) -> float:
    """The score from which on to say "the first": the one whose two bounds, as of ``rates``, are worth most."""
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    marks = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0, 1, _MARKS)))
    return float(max(marks, key=lambda mark: worth(*rates(one, two, mark))))


def rates(first: ArrayLike, second: ArrayLike, threshold: float, alpha: float = ALPHA) -> tuple[float, float]:
    """How often at least the first reaches the threshold, and how often at most the second does: alpha in all."""
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    low, _ = clopper_pearson(int((one >= threshold).sum()), len(one), alpha)
    _, high = clopper_pearson(int((two >= threshold).sum()), len(two), alpha)
    return low, high


def epsilon_from_scores(first: ArrayLike, second: ArrayLike, delta: float, alpha: float = ALPHA) -> float:
    """A lower bound on epsilon at delta, from scores of runs on two data sets; half of them choose the threshold."""
    (train, one), (other, two) = _halves(first), _halves(second)
    mark = best_threshold(train, other, lambda low, high: epsilon_bound(low, high, delta))
    return epsilon_bound(*rates(one, two, mark, alpha), delta)


def mu_from_scores(first: ArrayLike, second: ArrayLike, alpha: float = ALPHA) -> float:
    """A lower bound on the mu of a Gaussian trade-off curve, in the same way."""
    (train, one), (other, two) = _halves(first), _halves(second)
    mark = best_threshold(train, other, lambda low, high: gaussian_bound(high, 1 - low))
    low, high = rates(one, two, mark, alpha)
    return gaussian_bound(high, 1 - low)


def _halves(values: ArrayLike) -> tuple[Floats, Floats]:
    x = np.asarray(values, dtype=np.float64)
    return x[::2], x[1::2]


def _within(values: ArrayLike) -> Floats:
    """Numbers in [0, 1]; what is no number counts as 1, against the claim."""
    x = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(x), 1.0, np.clip(x, 0.0, 1.0))


def _check(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError("alpha is a probability between 0 and 1, such as 1e-7")
