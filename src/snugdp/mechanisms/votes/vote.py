"""The largest of noisy counts; and for two candidates with Laplace noise, what the answer gives away.

For two candidates the noise has scale 1 / ``noise_epsilon``; the gap is the winner's count minus the loser's. Every
value that serves a guarantee is rounded up: the logarithm of a losing probability at u is computed within
2**-50 * (2 + |u|), and four times that is conceded on either side of every ratio (vote.proof.md, Lemma 2).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.noise import Continuous, Noise
from snugdp.secrecy.secret import Secret

Relation: TypeAlias = Literal["add_remove", "replace"]
Floats: TypeAlias = NDArray[np.float64]

_SLACK = 2.0**-48
_DOUBT = 2.0**-38  # about where the loss peaks: costs 4 * _DOUBT of a step's loss at most (Lemma 2)
_POINTS = 256  # of the scan that looks for the largest admissible noise epsilon
_HALVINGS = 60


@dataclass(frozen=True)
class NoisyMax:
    """The position of the largest count after independent noise of one law on every count, decided exactly.

    Guarantee: ``vote.proof.md``, Theorem 5 over all data; Theorem 4 after a test on the lead of two candidates.
    """

    law: Continuous

    def draw(self, data: Secret[NDArray[np.int64]], noise: Noise) -> int:
        """The position of the winner."""
        return noise.at("release").argmax(data.map(lambda tally: [int(count) for count in tally]), self.law)


def log_losing_probability(u: float) -> float:
    """The logarithm of the chance that the noise of a vote with gap u, in noise scales, turns the answer round.

    >>> log_losing_probability(1e6)
    -999987.5707...
    """
    return float(_log_losing(u))


def epsilon_at(noise_epsilon: float, gap: int, delta: float, relation: Relation) -> float:
    """The least epsilon at which the vote with this gap and all its neighbours are (epsilon, delta)-close.

    It is not monotone in the gap: a test must use ``envelope`` (vote.proof.md, Theorem 2).

    >>> [round(epsilon_at(1, gap, 1e-6, "add_remove"), 4) for gap in (0, 10, 14, 16)]
    [0.5945, 0.9126, 0.8099, 0.0]
    """
    return float(epsilons_at(noise_epsilon, np.array([float(abs(gap))]), delta, relation)[0])


def epsilons_at(noise_epsilon: float, gaps: Floats, delta: float, relation: Relation) -> Floats:
    """``epsilon_at`` many gaps of at least 0. Of both neighbours only the rarer answer counts (Theorem 2)."""
    _check(noise_epsilon, delta)
    u, move = noise_epsilon * gaps, step(relation) * noise_epsilon
    near = noise_epsilon * np.maximum(gaps, step(relation) - gaps)  # the pair (gap, gap - step), turned round
    losses = np.maximum(_loss(u, u + move, delta), _loss(near - move, near, delta))
    return np.minimum(losses, move)


def envelope(noise_epsilon: float, gap_lower_bound: float, delta: float, relation: Relation) -> float:
    """The largest ``epsilon_at`` over all whole gaps of at least ``gap_lower_bound``.

    Formal guarantee: an upper bound, found where the concave loss peaks (vote.proof.md, Theorem 3).

    >>> round(envelope(1, 0, 1e-6, "add_remove"), 4), envelope(1, 16, 1e-6, "add_remove")
    (0.9126, 0.0)
    """
    _check(noise_epsilon, delta)
    pure = step(relation) * noise_epsilon
    if delta == 0:
        return pure  # 1
    gap = max(0, math.ceil(gap_lower_bound))
    start = max(0, gap - step(relation))
    worst = _peak(noise_epsilon, start, delta, pure)
    if relation == "replace" and gap <= 1:
        worst = max(worst, float(_loss(-noise_epsilon, noise_epsilon, delta)))  # 5
    return min(pure, worst)


def worst_case_epsilon(noise_epsilon: float, delta: float, relation: Relation) -> float:
    """The epsilon of the plain noisy vote, over all data, at this delta: better than the noise's own.

    >>> round(worst_case_epsilon(0.0239727598728087, 1e-6, "add_remove"), 6)
    0.020848
    """
    return envelope(noise_epsilon, 0, delta, relation)


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


def distance(gap: int, least_gap: float, relation: Relation) -> int | float:
    """How many rows must change before the gap falls below ``least_gap``, from where on the test may fail.

    Formal guarantee: 1-Lipschitz, 0 exactly below ``least_gap`` (vote.proof.md, Theorem 4); infinite when
    every gap is good.

    >>> distance(20, 16, "add_remove"), distance(20, 16, "replace"), distance(15, 16, "replace")
    (5, 3, 0)
    """
    if least_gap <= 0:
        return math.inf
    if gap < least_gap:
        return 0
    return -(-(gap - int(least_gap) + 1) // step(relation))


def step(relation: Relation) -> int:
    """How far one row can move the gap.

    >>> step("replace")
    2
    """
    return {"add_remove": 1, "replace": 2}[relation]


def vanishing_gap(noise_epsilon: float, delta: float, relation: Relation) -> int:
    """A gap from which on the vote is (0, delta)-close to all its neighbours.

    >>> vanishing_gap(1, 1e-6, "add_remove")
    17
    """
    return _beyond(noise_epsilon, delta) + step(relation)


def _log_losing(u: ArrayLike) -> Floats:
    size = np.abs(u)
    tail = np.log((2 + size) / 4) - size
    return np.where(np.asarray(u) >= 0, tail, np.log1p(-np.exp(tail)))


def _top(u: ArrayLike) -> Floats:
    return _log_losing(u) + _SLACK * (2 + np.abs(u))


def _loss(u: ArrayLike, v: ArrayLike, delta: float) -> Floats:
    """Not below ln((p(u) - delta) / p(v)), nor below 0: chance p(u) here, p(v) at the neighbour."""
    top = _top(u)
    bottom = _log_losing(v) - _SLACK * (2 + np.abs(v))
    if delta == 0:
        return np.maximum(top - bottom, 0.0)
    over = np.maximum(top - math.log(delta), 0.0)
    kept = np.log(-np.expm1(-np.where(over > 0, over, 1.0)))
    return np.where(over > 0, np.maximum(top + kept - bottom, 0.0), 0.0)


def _beyond(noise_epsilon: float, delta: float) -> int:
    """The least whole v >= 0 with p(noise_epsilon * v) <= delta, on the far side of rounding."""
    top = math.ceil((4 - 2 * math.log(delta)) / noise_epsilon) + 1
    return bisect_left(range(top), True, key=lambda v: float(_top(noise_epsilon * v)) <= math.log(delta))


def _peak(noise_epsilon: float, start: int, delta: float, move: float) -> float:
    """Not below any loss ln((p(u) - delta) / p(u + move)) with u = noise_epsilon * v, whole v >= start."""
    stop = _beyond(noise_epsilon, delta)  # 2
    if start >= stop:
        return 0.0

    def falling(v: int) -> bool:
        u = noise_epsilon * v
        over = float(_log_losing(u)) - math.log(delta)
        if over <= 0:
            return True
        rise = move / ((2 + u) * (2 + u + move)) * -math.expm1(-over)
        fall = (1 + u) / (2 + u) * math.exp(-over)
        return rise * (1 + _DOUBT * (2 + u)) <= fall * (1 - _DOUBT * (2 + u))

    turn = bisect_left(range(stop), True, lo=start, key=falling)  # 3
    points = noise_epsilon * np.array([max(start, turn - 1), turn], dtype=np.float64)
    doubt = 4 * _DOUBT * move if turn - 1 > start else 0.0
    return float(_loss(points, points + move, delta).max()) + doubt  # 4


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


def _check(noise_epsilon: float, delta: float) -> None:
    if not 1e-12 <= noise_epsilon <= 1e12:
        raise ValueError("the epsilon of the noise must lie between 1e-12 and 1e12")
    if not 0 <= delta < 1:
        raise ValueError("delta must be at least 0 and below 1")
