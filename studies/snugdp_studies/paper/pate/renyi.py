"""Renyi analyses of labels, for comparison: Theorem 6 of Papernot et al. 2018, and a distance test by divergences.

The test passes iff D + Z >= threshold, where D is the number of teachers that can change before the labels cost too
much. Proof: ``mechanisms/teachers/renyi.proof.md``. The product composes dominating pairs instead, which is sharper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from snugdp.accounting import discrete
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.confident import ORDERS, inflated
from snugdp.mechanisms.teachers.loss import ceiling, log1mexp, log_sum
from snugdp.mechanisms.teachers.smooth_test import conversion
from snugdp.mechanisms.teachers.table import UNIT, LossTable
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Totals = Callable[[Integers, int], Integers]
TestLaw: TypeAlias = DiscreteGaussian | DiscreteLaplace | Gaussian

_FAR = 60  # deviations: what is beyond is less than e^-1800
_SAFE = 2.0**-28  # nats, above the error of the floats in one public limit


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


@dataclass(frozen=True, eq=False)
class Tails:
    """The log-probabilities to pass and to fail at the distances 0, 1, ..."""

    log_pass: Floats
    log_fail: Floats

    def distance_for(self, chance: float) -> int:
        """The least distance that passes with at least this chance; one more than the last if none does."""
        return int(np.argmax(np.append(self.log_pass, 0.0) >= math.log(chance)))


def tails(law: TestLaw, threshold: float, most: int) -> Tails:
    """The probabilities that D + Z reaches the threshold, for D = 0 .. most.

    >>> np.exp(tails(DiscreteLaplace(1), 3, 6).log_pass).round(4).tolist()
    [0.0364, 0.0989, 0.2689, 0.7311, 0.9011, 0.9636, 0.9866]
    """
    from scipy.special import log_ndtr

    distances = np.arange(most + 1)
    if isinstance(law, Gaussian):
        away = (distances - threshold) / float(law.sigma)
        return Tails(log_ndtr(away), log_ndtr(-away))
    short = math.ceil(threshold) - distances  # passes iff Z >= short
    ahead, behind = np.maximum(short, 1), np.maximum(1 - short, 1)
    if isinstance(law, DiscreteLaplace):
        rate = 1 / float(law.scale)
        far = -rate * np.arange(max(ahead.max(), behind.max()) + 1) - np.log1p(math.exp(-rate))
    else:
        far = _gaussian_tails(float(law.variance), int(max(ahead.max(), behind.max())))
    log_pass = np.where(short > 0, far[ahead], log1mexp(far[behind]))
    log_fail = np.where(short > 0, log1mexp(far[ahead]), far[behind])
    return Tails(log_pass, log_fail)


def _gaussian_tails(variance: float, last: int) -> Floats:
    """The logarithms of P[Z >= k] of the discrete Gaussian, for k = 0 .. last; the first entry is not used."""
    k = np.arange(1, last + math.ceil(_FAR * math.sqrt(variance)) + 2)
    sums = np.logaddexp.accumulate(-(k[::-1].astype(np.float64) ** 2) / (2 * variance))[::-1]
    total = np.logaddexp(0.0, math.log(2.0) + sums[0])
    return np.concatenate([[0.0], sums[:last] - total])


def divergence_behind_test(order: ArrayLike, total: ArrayLike, known: Tails) -> Floats:
    """The Renyi divergence of the tested release where the labels' own is at most ``total``; the two broadcast.

    The largest over every distance 1 .. most and every distance of a neighbour, and at least the total.
    """
    orders, totals = np.broadcast_arrays(np.asarray(order, dtype=np.float64), np.asarray(total, dtype=np.float64))
    found = np.empty(orders.shape)
    for alpha in np.unique(orders):
        here = orders == alpha
        fail, passing = _undominated(_power(known.log_fail, alpha), _power(known.log_pass, alpha))
        logs = np.logaddexp(fail, passing + (alpha - 1) * totals[here][:, None])
        found[here] = np.maximum(logs.max(axis=1) / (alpha - 1), totals[here])
    return found


def _power(logs: Floats, alpha: float) -> Floats:
    """All alpha log p(D) + (1 - alpha) log p(D') for D = 1 .. most and D' next to it."""
    here = logs[1:]
    with np.errstate(invalid="ignore"):
        parts = [alpha * here + (1 - alpha) * logs[:-1], here, alpha * here[:-1] + (1 - alpha) * here[1:]]
    return np.concatenate(parts)


def _undominated(fail: Floats, passing: Floats) -> tuple[Floats, Floats]:
    """Those pairs that no other pair exceeds in both terms: the largest sum is among them for every total."""
    order = np.lexsort((-passing, -fail))
    best = np.maximum.accumulate(passing[order])
    kept = order[np.append(True, passing[order][1:] > best[:-1])]
    return fail[kept], passing[kept]


def epsilons(totals: ArrayLike, orders: Sequence[float], known: Tails, delta: float) -> Floats:
    """The epsilon of the tested release by the best order; orders are the last axis of ``totals``."""
    alphas = np.asarray(orders, dtype=np.float64)
    each = divergence_behind_test(alphas, totals, known) + np.maximum(conversion(alphas, delta), 0.0)
    best: Floats = each.min(axis=-1)
    return best


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


def theorem6(log_q: ArrayLike, sigma: float, order: ArrayLike) -> Floats:
    """The loss of Papernot et al. 2018, Theorem 6, with its side conditions; for comparison.

    It is proved in their paper, and monotone in q by experience only: no test here decides with it.

    >>> theorem6(-20.0, 10.0, 5.0) < ceiling(10.0, 5.0)
    np.True_
    """
    logs, order = np.broadcast_arrays(np.asarray(log_q, dtype=np.float64), np.asarray(order, dtype=np.float64))
    most = ceiling(sigma, order)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mu2 = sigma * np.sqrt(-logs)
        mu1 = mu2 + 1
        e1, e2 = mu1 / sigma**2, mu2 / sigma**2
        room = (mu2 - 1) * e2 - mu2 * (np.log(mu1 / (mu1 - 1)) + np.log(mu2 / (mu2 - 1)))
        valid = (order <= mu1) & (mu2 > 1) & (-logs > e2) & (logs <= room)
        stay = log1mexp(logs)
        log_a = stay - log1mexp((logs + e2) * (mu2 - 1) / mu2)
        log_b = e1 - logs / (mu1 - 1)
        found = log_sum(stay + (order - 1) * log_a, logs + (order - 1) * log_b) / (order - 1)
    bounded: Floats = np.where(valid & (found < most), np.maximum(found, 0.0), most)
    return bounded


def saturated(log_q: ArrayLike, sigma: float, order: float) -> Floats:
    """Theorem 6 up to where it first fails, and the worst case after: monotone in q by experience only."""
    logs = np.asarray(log_q, dtype=np.float64)
    found: Floats = np.where(logs <= log_saturation(sigma, order), theorem6(logs, sigma, order), ceiling(sigma, order))
    return found


@lru_cache(maxsize=256)
def log_saturation(sigma: float, order: float) -> float:
    """Log of the q up to which Theorem 6 is below the worst case, from q = 0 on without a break (by scanning)."""
    most = float(ceiling(sigma, order))
    scan = -np.geomspace(1e-6, 1e5, 20_000)[::-1]
    fails = np.append(theorem6(scan, sigma, order) >= most, True)
    first = int(np.argmax(fails))
    if first in (0, len(scan)):
        return float(scan[0]) if first == 0 else 0.0
    low, high = float(scan[first - 1]), float(scan[first])
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if theorem6(middle, sigma, order) >= most else (middle, high)
    return low
