"""Many candidates, noise on every count, the largest wins: the law of the answer and what it gives away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Noise: TypeAlias = Literal["laplace", "gaussian", "gumbel"]
Relation: TypeAlias = Literal["add_remove", "replace"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(30)
_REACH = {"laplace": 60.0, "gaussian": 11.0}  # in scales: what lies beyond weighs less than 1e-25
_PANEL = 2.0  # in scales
_erfc = np.frompyfunc(math.erfc, 1, 1)


class WorstCase(NamedTuple):
    """The guarantee of a noisy vote over all data: a pure epsilon and a Gaussian mu, one of them 0."""

    epsilon: float
    mu: float


def probabilities(counts: Counts, noise: Noise, scale: float) -> Floats:
    """The chance of every candidate to win, each within 1e-10 (closer for Gumbel noise).

    >>> probabilities(np.array([3, 3]), "laplace", 2.0).round(12).tolist()
    [0.5, 0.5]
    """
    if not 0 < scale < math.inf:
        raise ValueError("the scale of the noise must be positive and finite")
    levels, which, copies = np.unique(counts, return_inverse=True, return_counts=True)
    scores = (levels - levels[-1]) / scale
    if noise == "gumbel":
        weights = np.exp(scores)
        result: Floats = (weights / (weights @ copies))[which]
        return result
    return _integrate(scores, copies, noise)[which]


def data_dependent_delta(
    counts: Counts, noise: Noise, scale: float, epsilon: float, relation: Relation, *, unlisted: bool = False
) -> float:
    """The largest delta(epsilon) between the answer here and at any neighbour, in both directions.

    It describes one data set and is itself private; it is no guarantee. ``unlisted`` says that a row may
    belong to no candidate, so that replacing a row may also change a single count.

    >>> round(data_dependent_delta(np.array([40, 20, 0]), "laplace", 2.0, 0.2, "add_remove"), 6)
    4.9e-05
    """
    here, bound = probabilities(counts, noise, scale), math.exp(epsilon)
    worst = 0.0
    for near in _neighbours(counts, relation, unlisted):
        there = probabilities(near, noise, scale)
        for p, q in ((here, there), (there, here)):
            worst = max(worst, float(np.maximum(p - bound * q, 0.0).sum()))
    return worst


def worst_case(noise: Noise, scale: float, relation: Relation) -> WorstCase:
    """The guarantee that holds whatever the counts, rounded up (vote.proof.md, Theorem 5).

    >>> worst_case("laplace", 2.0, "replace").epsilon
    1.0000000000000002
    """
    if not 0 < scale < math.inf:
        raise ValueError("the scale of the noise must be positive and finite")
    votes = {"add_remove": 1, "replace": 2}[relation]
    if noise == "gaussian":
        return WorstCase(0.0, _up(_up(math.sqrt(votes)) / scale))
    return WorstCase(_up(votes / scale), 0.0)


def _integrate(scores: Floats, copies: NDArray[np.int64], noise: Noise) -> Floats:
    """PassChance of one candidate of each level, by Gauss-Legendre panels broken at every score.

    Scores are in scales, the largest is 0. Below -reach the leader's own factor is negligible.
    """
    reach = _REACH[noise]
    breaks = np.union1d(np.arange(-reach, reach + _PANEL, _PANEL), scores[scores > -reach])
    centre, half = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks) / 2
    x = (centre[:, None] + half[:, None] * _NODES).ravel()
    z = x - scores[:, None]
    density, log_below = _law(z, noise)
    everyone = copies @ log_below
    weights = (half[:, None] * _WEIGHTS).ravel()
    result: Floats = (density * np.exp(everyone - log_below)) @ weights
    return result


def _law(z: Floats, noise: Noise) -> tuple[Floats, Floats]:
    """Density and logarithm of the distribution function of the noise, in scales."""
    if noise == "laplace":
        tail = np.exp(-np.abs(z)) / 2
        return tail, np.where(z > 0, np.log1p(-tail), np.minimum(z, 0.0) - math.log(2))
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    upper = np.asarray(_erfc(np.abs(z) / math.sqrt(2)), dtype=np.float64) / 2
    return density, np.where(z > 0, np.log1p(-upper), np.log(np.maximum(upper, 1e-300)))


def _neighbours(counts: Counts, relation: Relation, unlisted: bool) -> Iterator[Counts]:
    """One neighbour of each kind: candidates with equal counts are alike. No count falls below 0."""
    _, first = np.unique(counts, return_index=True)
    second = [int(np.flatnonzero(counts == counts[i])[-1]) for i in first]
    if relation == "add_remove" or unlisted:
        yield from (_moved(counts, {int(i): change}) for i in first for change in (1, -1) if counts[i] + change >= 0)
    if relation == "replace":
        for i in map(int, first):
            for j in {*map(int, first), *second} - {i}:
                if counts[i] > 0:
                    yield _moved(counts, {i: -1, j: 1})


def _moved(counts: Counts, changes: dict[int, int]) -> Counts:
    near = counts.copy()
    for candidate, change in changes.items():
        near[candidate] += change
    return near


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)
