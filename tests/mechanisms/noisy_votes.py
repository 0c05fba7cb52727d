"""The exact law of a noisy argmax by quadrature, and what it gives away: for comparison, independent of the library."""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Noise = Literal["laplace", "gaussian", "gumbel"]
Relation = Literal["add_remove", "replace"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(30)
_REACH = {"laplace": 60.0, "gaussian": 14.0}  # in scales: what lies beyond weighs less than 1e-25
_PANEL = 2.0  # in scales
_FAR = 800.0  # scales: whoever is farther behind has no chance that a float could tell
_SERIES = 1e-3  # where the powers of a ratio are closer to 1 than a float can tell


def log_probabilities(counts: ArrayLike, scale: float, noise: Noise = "gaussian") -> Floats:
    """The log-probability of every candidate to have the largest count after noise on each of them.

    Given the winner's noisy count x, all others are below it: the density at x times their distribution functions,
    integrated by Gauss and Legendre in panels that are broken at every count.
    """
    levels, which, copies = np.unique(np.asarray(counts, dtype=np.float64), return_inverse=True, return_counts=True)
    scores = np.maximum((levels - levels[-1]) / scale, -_FAR)
    if noise == "gumbel":
        return np.asarray((scores - logsumexp(scores, b=copies))[which])
    reach = _REACH[noise]
    breaks = np.union1d(np.arange(scores[0] - reach, reach + _PANEL, _PANEL), scores)
    centre, half = (breaks[1:] + breaks[:-1])[:, None] / 2, np.diff(breaks)[:, None] / 2
    density, below = _law((centre + half * _NODES).ravel() - scores[:, None], noise)
    logs: Floats = logsumexp(density + copies @ below - below + np.log(half * _WEIGHTS).ravel(), axis=1)
    if copies[-1] == 1 and len(levels) > 1:  # otherwise what is below 1e-15 is rounding
        logs[-1] = np.log1p(-min(float(np.exp(logs[:-1]) @ copies[:-1]), 1.0))
    return logs[which]


def _law(z: Floats, noise: Noise) -> tuple[Floats, Floats]:
    """The logarithms of the density and of the distribution function of the noise, in scales."""
    if noise == "gaussian":
        return -(z**2) / 2 - math.log(2 * math.pi) / 2, log_ndtr(z)
    tail = -np.abs(z) - math.log(2)
    return tail, np.where(z > 0, np.log1p(-np.exp(tail)), tail)


def probabilities(counts: ArrayLike, noise: Noise, scale: float) -> Floats:
    """The probability of every candidate to win."""
    return np.exp(log_probabilities(counts, scale, noise))


def phi(x: arb) -> arb:
    """The standard normal distribution function, in balls."""
    return (-x / arb(2).sqrt()).erfc() / 2


def joint(laws: Iterable[Floats]) -> Floats:
    """The law of independent answers together."""
    return functools.reduce(lambda found, law: np.outer(found, law).ravel(), laws, np.ones(1))


def largest_delta(
    counts: Counts, noise: Noise, scale: float, epsilon: float, relation: Relation, *, unlisted: bool = False
) -> float:
    """The largest delta(epsilon) between the answer here and at any neighbour, in both directions.

    ``unlisted``: a row may belong to no candidate, so that replacing a row may also change a single count.
    """
    here, bound = probabilities(counts, noise, scale), math.exp(epsilon)
    laws = [probabilities(near, noise, scale) for near in neighbours(counts, relation, unlisted=unlisted)]
    pairs = [pair for there in laws for pair in ((here, there), (there, here))]
    return max((float(np.maximum(p - bound * q, 0.0).sum()) for p, q in pairs), default=0.0)


def neighbours(counts: Counts, relation: Relation, *, unlisted: bool = False) -> Iterator[Counts]:
    """One neighbour of each kind: candidates with equal counts are alike. No count falls below 0."""
    single = {
        (int(counts[i]), change): {i: change}
        for i in range(len(counts))
        for change in (1, -1)
        if relation == "add_remove" or unlisted
    }
    moved = {
        (int(counts[i]), int(counts[j])): {i: -1, j: 1}
        for i in range(len(counts))
        for j in range(len(counts))
        if i != j and relation == "replace"
    }
    for changes in (*single.values(), *moved.values()):
        near = counts.copy()
        near[list(changes)] += list(changes.values())
        if near.min() >= 0:
            yield near


def histograms(total: int, classes: int) -> Iterator[tuple[int, ...]]:
    if classes == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in histograms(total - first, classes - 1):
            yield (first, *rest)


def moved(votes: tuple[int, ...], abstain: bool = True) -> set[tuple[int, ...]]:
    """Every histogram that one teacher can make of these votes."""
    found = {votes}
    for j, k in itertools.permutations(range(len(votes)), 2):
        if votes[j]:
            found.add(tuple(n - (i == j) + (i == k) for i, n in enumerate(votes)))
    if abstain:
        for j, n in enumerate(votes):
            found.add(tuple(m + (i == j) for i, m in enumerate(votes)))
            if n:
                found.add(tuple(m - (i == j) for i, m in enumerate(votes)))
    return found


def divergence(first: Floats, second: Floats, order: float) -> float:
    """The Renyi divergence of one law from another, given as log-probabilities, without loss where it is tiny.

    It is log(1 + sum p' [r^alpha - 1 - alpha (r - 1)]) / (alpha - 1), as the sum of p' (r - 1) is 0.
    """
    ratio = first - second
    power = order * ratio
    with np.errstate(over="ignore"):
        near = np.exp(second) * (np.expm1(np.minimum(power, 30.0)) - order * np.expm1(ratio))
        far = np.exp(power + second) - np.exp(second) * (1 + order * np.expm1(np.minimum(ratio, 700.0)))
    small = ratio**2 * order * (order - 1) / 2 * (1 + (order + 1) * ratio / 3 + (order**2 + order + 1) * ratio**2 / 12)
    excess = np.where(np.abs(power) < _SERIES, np.exp(second) * small, np.where(power < 30, near, far))
    if np.isfinite(excess).all():
        return float(np.log1p(excess.sum()) / (order - 1))
    return float(np.logaddexp.reduce(power + second) / (order - 1))


def largest_loss(votes: Sequence[int], sigma: float, order: float) -> tuple[float, float]:
    """The largest divergence over all neighbours that move one vote: from here, and from there to here."""
    here = log_probabilities(votes, sigma)
    laws = [log_probabilities(near, sigma) for near in neighbours(np.array(votes), "replace")]
    return (
        max((divergence(here, there, order) for there in laws), default=0.0),
        max((divergence(there, here, order) for there in laws), default=0.0),
    )
