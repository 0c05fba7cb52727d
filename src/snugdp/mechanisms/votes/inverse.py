"""From a wish to the noise of a two-candidate vote: an error rate, a guarantee, a test."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

from snugdp.mechanisms.votes.vote import (
    Relation,
    envelope,
    log_losing_probability,
    step,
    vanishing_gap,
    worst_case_epsilon,
)

_POINTS = 256  # of the scan that looks for the largest admissible noise epsilon
_HALVINGS = 60


def noise_epsilon_for_error(gap: float, error: float) -> float:
    """The smallest noise epsilon with which a vote of this gap goes wrong with at most this probability.

    >>> round(noise_epsilon_for_error(100, 0.1), 6)
    0.023973
    """
    if not (gap > 0 and 0 < error < 1):
        raise ValueError("the gap must be positive and the error between 0 and 1")
    if error >= 0.5:
        return 0.0
    goal = math.log(error)
    low = _last(lambda u: log_losing_probability(u) > goal, 0.0, 4 - 2 * goal)
    return math.nextafter(low * (1 + 2**-52), math.inf) / gap


@lru_cache(maxsize=256)
def noise_epsilon_for(epsilon: float, delta: float, relation: Relation) -> float:
    """A large noise epsilon whose worst case stays within (epsilon, delta); never below the pure choice.

    Formal guarantee: ``worst_case_epsilon`` of the result, rounded up, is at most ``epsilon``. The worst case
    is not monotone in the noise (vote.proof.md, Remark 1), so the result is checked directly.

    >>> round(noise_epsilon_for(1.0, 1e-6, "add_remove"), 4)
    1.0948
    """
    if not (0 < epsilon < math.inf and 0 <= delta < 0.5):
        raise ValueError("epsilon must be positive and finite, delta at least 0 and below 1/2")
    pure = epsilon / step(relation)

    def fits(noise_epsilon: float) -> bool:
        return worst_case_epsilon(noise_epsilon, delta, relation) <= epsilon

    if delta == 0:
        return pure
    # 1: a tied vote alone loses more than epsilon beyond this.
    top = _tied_limit(epsilon, delta) / step(relation)
    if top <= pure or fits(top):
        return max(top, pure)
    width = (top - pure) / _POINTS
    low = next((top - i * width for i in range(1, _POINTS) if fits(top - i * width)), pure)  # 2
    return _last(fits, low, min(top, low + width))  # 3


def least_gap(noise_epsilon: float, epsilon: float, delta: float, relation: Relation) -> int | float:
    """The smallest gap from which on the vote stays within (epsilon, delta); infinite when there is none.

    >>> least_gap(1, 0.9, 1e-6, "add_remove"), least_gap(1, 0.9, 0, "add_remove")
    (13, inf)
    """
    if worst_case_epsilon(noise_epsilon, delta, relation) <= epsilon:
        return 0
    if delta == 0 or epsilon < 0:
        return math.inf
    top = vanishing_gap(noise_epsilon, delta, relation)
    return bisect_left(range(top), True, key=lambda gap: envelope(noise_epsilon, gap, delta, relation) <= epsilon)


def classic_epsilon_for_error(gap: int, distance: int, error: float, delta: float) -> float:
    """The epsilon of a classic test that releases the exact winner, or a fair coin when it fails.

    The distance is that of the mode, at most the gap; the coin is wrong half of the time.

    >>> round(classic_epsilon_for_error(100, 99, 0.1, 1e-6), 4)
    0.1418
    """
    if not (0 < distance <= gap and 0 < error < 0.5 and 0 < delta <= 0.5):
        raise ValueError("needs 0 < distance <= gap, 0 < error < 1/2 and 0 < delta <= 1/2")
    failing = 2 * error
    short = math.log(2 * failing) if failing <= 0.5 else -math.log(2 * (1 - failing))
    return max(0.0, -math.log(2 * delta) - short) / distance


def _tied_limit(epsilon: float, delta: float) -> float:
    """The u with ln((1/2 - delta) / p(u)) = epsilon: no larger one can fit."""
    goal = math.log(0.5 - delta) - epsilon
    return _last(lambda u: log_losing_probability(u) >= goal, 0.0, 4 - 2 * goal)


def _last(true: Callable[[float], bool], low: float, high: float) -> float:
    """Where ``true`` ends between low, where it holds, and high: the last point seen to hold."""
    if true(high):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if true(middle) else (low, middle)
    return low
