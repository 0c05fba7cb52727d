"""Pass probabilities of a distance test in log space, and the Renyi divergence of a tested release.

Proof: ``renyi.proof.md``. The test passes iff D + Z >= threshold; all distances 0 .. most are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.mechanisms.teachers.loss import log1mexp
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian

Floats = NDArray[np.float64]
TestLaw: TypeAlias = DiscreteGaussian | DiscreteLaplace | Gaussian

_FAR = 60  # deviations: what is beyond is less than e^-1800


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


def tested(order: ArrayLike, total: ArrayLike, known: Tails) -> Floats:
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


def allowed(order: float, most: float, known: Tails) -> float:
    """About the largest total for which ``tested`` is at most ``most``; below 0 if there is none."""
    fail, passing = _undominated(_power(known.log_fail, order), _power(known.log_pass, order))
    moment = (order - 1) * most
    if moment <= 0 or bool((fail >= moment).any()):
        return -1.0
    return min(most, float((moment + log1mexp(fail - moment) - passing).min()) / (order - 1))


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


def conversion(order: ArrayLike, delta: float) -> Floats:
    """What turning a divergence at this order into an epsilon at ``delta`` adds.

    >>> conversion([1.5, 4.0], 1e-5).round(9).tolist()
    [21.116308425, 3.087861629]
    """
    alpha = np.asarray(order, dtype=np.float64)
    added: Floats = (-math.log(delta) - np.log(alpha)) / (alpha - 1) + np.log1p(-1 / alpha)
    return added


def epsilons(totals: ArrayLike, orders: Sequence[float], known: Tails, delta: float) -> Floats:
    """The epsilon of the tested release by the best order; orders are the last axis of ``totals``."""
    alphas = np.asarray(orders, dtype=np.float64)
    each = tested(alphas, totals, known) + np.maximum(conversion(alphas, delta), 0.0)
    best: Floats = each.min(axis=-1)
    return best
