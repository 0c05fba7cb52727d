"""The exact law of a noisy argmax by quadrature: a diagnostic. It must not decide anything private.

The exact loss can fall when a vote moves the wrong way, so a test built on it has no bounded sensitivity; and its
accuracy is measured, not proved. Proof of the formulas: ``exact.proof.md``.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_NODES = 4001
_REACH = 14.0  # deviations of the noise: beyond, less than 1e-43 is left
_SERIES = 1e-3  # where the powers of a ratio are closer to 1 than a float can tell


def log_probabilities(votes: ArrayLike, sigma: float) -> Floats:
    """The log-probability of every class to be the label. A diagnostic: it must not decide anything private.

    >>> np.exp(log_probabilities([30, 30], 4.0)).round(12).tolist()
    [0.5, 0.5]
    """
    counts = np.asarray(votes, dtype=np.float64)
    z = _grid(counts, sigma)
    return _integrate(_ahead(counts, sigma, z).sum(axis=1), z, counts)


def _grid(counts: Floats, sigma: float) -> Floats:
    return np.linspace(-_REACH, _REACH + np.ptp(counts) / sigma, _NODES)


def _ahead(counts: Floats, sigma: float, z: Floats, shift: int = 0) -> Floats:
    """Log-probabilities that class j, at noise z, is before class k, when its lead is larger by ``shift`` votes."""
    from scipy.special import log_ndtr

    found: Floats = log_ndtr((counts[:, None] - counts[None, :] + shift)[:, :, None] / sigma + z)
    found[np.arange(len(counts)), np.arange(len(counts))] = 0.0
    return found


def _integrate(logs: Floats, z: Floats, counts: Floats) -> Floats:
    """The law from the log-probabilities, for every class and noise z, that the class is before all others."""
    density = logs - z**2 / 2
    peak = density.max(axis=1)
    found: Floats = np.log(np.exp(density - peak[:, None]).sum(axis=1) * (z[1] - z[0])) + peak - np.log(2 * np.pi) / 2
    top = int(np.argmax(counts))
    found[top] = np.log1p(-np.exp(np.delete(found, top)).sum())  # otherwise what is below 1e-25 is rounding
    return found


def divergence(first: Floats, second: Floats, order: float) -> float:
    """The Renyi divergence of one law from another, given as log-probabilities: of (M(X), M(X')) in this order.

    A diagnostic: it must not decide anything private.
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


def largest_loss(votes: ArrayLike, sigma: float, order: float) -> tuple[float, float]:
    """The largest divergence over all neighbours that move one vote: from here, and from there to here.

    A diagnostic: it must not decide anything private.
    """
    counts = np.asarray(votes, dtype=np.float64)
    z = _grid(counts, sigma)
    ahead = {shift: _ahead(counts, sigma, z, shift) for shift in range(-2, 3)}
    before = ahead[0].sum(axis=1)
    here = _integrate(before, z, counts)
    there, back = 0.0, 0.0
    moves = {(counts[j], counts[k]): (j, k) for j, k in itertools.permutations(range(len(counts)), 2)}  # one of a kind
    for source, target in moves.values():
        if counts[source] > 0:
            moved = before + ahead[1][:, source] - ahead[0][:, source] + ahead[-1][:, target] - ahead[0][:, target]
            for j, other, sign in ((source, target, -1), (target, source, 1)):
                moved[j] = ahead[sign][j].sum(axis=0) - ahead[sign][j, other] + ahead[2 * sign][j, other]
            after = counts.copy()
            after[source], after[target] = counts[source] - 1, counts[target] + 1
            other_law = _integrate(moved, z, after)
            there = max(there, divergence(here, other_law, order))
            back = max(back, divergence(other_law, here, order))
    return there, back
