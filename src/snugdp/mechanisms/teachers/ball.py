"""How likely is it that a noisy argmax misses the plurality, here and within some vote moves. Proof: ``ball.proof.md``.

All probabilities are logarithms: between teachers who agree they are far below the smallest float.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_LEADS = 1 << 16  # of more, the rounding of the sum would count


def gaps(votes: Integers) -> Integers:
    """For every histogram the lead of the plurality over each other class, smallest first.

    >>> gaps(np.array([[1, 7, 4]])).tolist()
    [[3, 6]]
    """
    ordered = np.sort(np.asarray(votes, dtype=np.int64), axis=-1)
    leads: Integers = ordered[..., -1:] - ordered[..., -2::-1]
    return leads


def log_miss(leads: Integers, sigma: float, moves: int | Integers = 0) -> Floats:
    """An upper bound on the log-probability that the label is not the plurality, after at most so many vote moves.

    ``leads`` are those of ``gaps``. ``moves`` may be an array, which is put before the histograms' own axis:
    the result has the shape ``moves.shape + leads.shape[:-1]``.

    Guarantee: with q at its exponential, no histogram that ``moves`` teachers can reach misses with more than q, and
    moving one vote and allowing one move more never lowers it (``ball.proof.md``, Theorems 1 and 2).

    >>> log_miss(gaps(np.array([[400, 0]])), 10.0).round(3).tolist()
    [-404.262]
    """
    if leads.shape[-1] > _MOST_LEADS:
        raise ValueError(f"labels are taken from at most {_MOST_LEADS + 1} classes")
    steps = np.asarray(moves, dtype=np.int64)
    rows = leads.reshape(-1, leads.shape[-1])
    first = rows[:, 0] - 2 * steps.reshape(-1, 1)  # the runner-up gains what the leader loses
    cap = math.log1p(-1.0 / (leads.shape[-1] + 1))
    found = np.full(first.shape, cap)
    step, row = np.nonzero(first >= 0)
    if step.size:
        chance, lost = _log_chance(int(leads.max()), first.size, sigma), steps.reshape(-1)[step]
        highest = chance(first[step, row])  # the smallest lead has the largest chance
        others = sum((np.exp(chance(column[row] - lost) - highest) for column in rows.T[1:]), np.zeros(len(row)))
        found[step, row] = np.minimum(np.log1p(others) + highest, cap)
    return found.reshape(steps.shape + leads.shape[:-1])


def _log_chance(most: int, size: int, sigma: float) -> Callable[[Integers], Floats]:
    """The log-probability that noise makes up for a lead of at most ``most``; in a list, if there are many to ask."""
    from scipy.special import log_ndtr

    scale = -1.0 / (math.sqrt(2.0) * sigma)
    if most >= size:
        return lambda leads: np.asarray(log_ndtr(leads * scale))
    listed: Floats = log_ndtr(np.arange(most + 1) * scale)
    return lambda leads: listed[leads]
