"""The distance test by Renyi divergence: how many teachers must change before the labels cost too much.

Proof: ``renyi.proof.md``. Whether a distance is short enough is decided on whole numbers, so |D(X) - D(X')| <= 1 holds
for the numbers that are computed and not only for those that are meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.accounting import discrete
from snugdp.certify.distance import DistanceTest
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.table import LOWEST, STEP, UNIT, LossTable, table_for
from snugdp.mechanisms.teachers.tails import Tails, TestLaw, allowed, conversion, epsilons, tails, tested
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Noise
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, float_down, rational
from snugdp.secrecy.secret import Secret

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Totals = Callable[[Integers, int], Integers]

ORDERS = (
    1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 25.0, 28.0, 32.0,
    36.0, 40.0, 46.0, 52.0, 60.0, 70.0, 85.0, 100.0, 130.0, 170.0,
)  # fmt: skip
_SAFE = 2.0**-28  # nats, above the error of the floats in one public limit while order (epsilon + 1) is below _LARGE
_LARGE = 2.0**16
_MOST = 2**62


@dataclass(frozen=True, eq=False)
class LabelLosses:
    """The losses of all labels together, within so many moves: whole units of 2**-40, one for each order.

    Guarantee: ``of(X, d) <= of(X', d + 1)`` for neighbours, as computed; and the divergence from every neighbour of
    every data set within d moves of X is at most ``of(X, d)`` units (``renyi.proof.md``, Lemma 1).
    """

    table: LossTable

    def of(self, votes: Integers, moves: int) -> Integers:
        """The sums over the queries."""
        logs = inflated(log_miss(gaps(votes), self.table.sigma, moves), moves)
        counts = np.bincount(self.table.position(logs), minlength=len(self.table.nodes))
        totals: Integers = counts @ self.table.steps
        return totals

    def largest(self, queries: int) -> int:
        """What the totals never exceed."""
        return queries * int(self.table.steps.max())


def inflated(log_q: Floats, moves: int) -> Floats:
    """Log q, with room for the error of floats that grows with the moves (line 2)."""
    raised: Floats = np.maximum(log_q, LOWEST) + (moves + 1) * STEP
    return raised


@dataclass(frozen=True, eq=False)
class RenyiDistance:
    """Pass iff the number of teachers that can change before the loss exceeds the limits, plus noise, is enough.

    Build it with ``renyi_distance`` or ``confident_distance``.

    Guarantee: the labels, if this test passes, and nothing otherwise, cost ``cost`` altogether
    (``renyi.proof.md``, Theorem 1).
    """

    totals: Totals
    limits: Integers
    most: int
    law: TestLaw
    threshold: int
    cost: Cost

    def distance(self, votes: Integers) -> int:
        """How many teachers must change: private, 1-Lipschitz over neighbours (line 3)."""
        low, high, step = 0, self.most, 1  # the totals grow with the moves: all below low are fine, high is not
        while low < high:
            middle = min(low + step - 1, (low + high) // 2)  # few moves are cheaper to look at than many
            if bool((self.totals(votes, middle) <= self.limits).any()):
                low, step = middle + 1, 2 * step
            else:
                high = middle
        return low

    def passes(self, data: Secret[Integers], noise: Noise) -> bool:
        """One draw of the test."""
        test = DistanceTest(self.distance, self.law, Fraction(self.threshold), self.cost)
        return test.passes(data, noise)

    def chance(self, votes: Integers) -> float:
        """The probability to pass on public votes, such as a design profile. Of private votes it is private."""
        return math.exp(tails(self.law, self.threshold, self.most).log_pass[self.distance(votes)])


def renyi_distance(
    *,
    sigma: Real,
    epsilon: Real,
    delta: Real,
    law: DiscreteGaussian | DiscreteLaplace,
    teachers: int,
    queries: int,
    orders: Sequence[float] = ORDERS,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> RenyiDistance:
    """The test for noisy labels of deviation ``sigma``; all arguments are public."""
    losses = LabelLosses(table_for(float(rational(sigma, "sigma")), orders))
    return distance_test(
        losses.of,
        largest=losses.largest(queries),
        orders=orders,
        epsilon=epsilon,
        delta=delta,
        law=law,
        teachers=teachers,
        neighbours=neighbours,
    )


def distance_test(
    totals: Totals,
    *,
    largest: int,
    orders: Sequence[float],
    epsilon: Real,
    delta: Real,
    law: DiscreteGaussian | DiscreteLaplace,
    teachers: int,
    neighbours: Neighbours,
) -> RenyiDistance:
    """The test for any nested whole losses, at most ``largest``."""
    goal, failure = rational(epsilon, "epsilon"), rational(delta, "delta")
    if teachers < 1 or goal <= 0 or not 0 < failure < 1:
        raise ValueError("a distance test needs at least one teacher, an epsilon above 0 and a delta in (0, 1)")
    if largest >= _MOST:
        raise ValueError("the losses of so many queries do not fit: use fewer queries, a larger sigma or lower orders")
    threshold = threshold_for(law, goal, failure)
    known = tails(law, threshold, teachers + 1)
    limits = [_limit(order, goal, failure, known, largest) for order in orders]
    cost = Cost(epsilon=goal, delta=failure, neighbours=neighbours)
    return RenyiDistance(totals, np.array(limits, dtype=np.int64), teachers + 1, law, threshold, cost)


def threshold_for(law: DiscreteGaussian | DiscreteLaplace, epsilon: Real, delta: Real) -> int:
    """The least threshold that distance 0 passes with at most delta, and distance 1 with at most 1 - e^-epsilon."""
    goal, failure = rational(epsilon, "epsilon"), rational(delta, "delta")
    if not 0 < failure <= Fraction(1, 2) or goal <= 0:
        raise ValueError("a distance test needs an epsilon above 0 and a delta in (0, 1/2]; 1e-6 is typical")
    reach = 1
    while not _rare(law, reach, failure):
        reach *= 2
    low = reach // 2
    while reach - low > 1:
        middle = (low + reach) // 2
        low, reach = (low, middle) if _rare(law, middle, failure) else (middle, reach)
    while not balls.at_most(partial(_second, law, reach, goal), Fraction(1)):
        reach += 1
    return reach


def reached(law: DiscreteGaussian | DiscreteLaplace, start: int) -> arb:
    """P[Z >= start] as a ball, for start >= 0."""
    if isinstance(law, DiscreteGaussian):
        return discrete.tail(law.variance, start)
    rate = 1 / law.scale
    return balls.exp(balls.ball(-rate * start)) / (1 + balls.exp(balls.ball(-rate)))


def _second(law: DiscreteGaussian | DiscreteLaplace, threshold: int, epsilon: Fraction) -> arb:
    return reached(law, threshold - 1) + balls.exp(-balls.ball(epsilon))


def _rare(law: DiscreteGaussian | DiscreteLaplace, start: int, most: Fraction) -> bool:
    return balls.at_most(lambda: reached(law, start), most)


def needed(
    totals: Totals,
    profile: Integers,
    *,
    law: TestLaw,
    threshold: float,
    teachers: int,
    delta: float,
    orders: Sequence[float] = ORDERS,
    chance: float = 0.9,
) -> float:
    """The epsilon to propose so that public votes like ``profile`` pass with this chance; infinite if none does."""
    known = tails(law, threshold, teachers + 1)
    distance = known.distance_for(chance)
    if distance > teachers + 1:
        return math.inf
    wanted = totals(profile, max(distance - 1, 0)) * UNIT
    return float(epsilons(wanted, orders, known, delta)) + 2 * _SAFE


def _limit(order: float, epsilon: Fraction, delta: Fraction, known: Tails, largest: int) -> int:
    """The most units that the labels may cost at this order; -1 if even none is too much."""
    safe = _SAFE * max(1.0, order * (float_down(epsilon) + 1) / _LARGE)
    room = float_down(epsilon) - safe - max(float(conversion(order, float_down(delta))), 0.0)
    units = min(math.floor(allowed(order, room, known) / UNIT), largest)
    while units >= 0 and float(tested(order, units * UNIT, known)) > room:  # what decides is the divergence itself
        units -= 1 + (units >> 20)
    return max(units, -1)
