"""Smooth sensitivity of the labels' Renyi loss: how much one teacher can change it, here and within d moves.

Proof: ``smooth.proof.md``. The nodes of the table are even in the normal quantile, so that what one moved vote can do
is always the same number of nodes; the envelope (a running maximum) makes the sensitivity monotone in q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.mechanisms.teachers.ball import Floats, Integers, gaps, log_miss
from snugdp.mechanisms.teachers.loss import ceiling, closed
from snugdp.mechanisms.teachers.table import MARGIN, STEP

Positions = NDArray[np.intp]
Loss: TypeAlias = Callable[[Floats, float, float], Floats]  # of one label, from log q, sigma and the order

_FARTHEST = -59.0  # quantile below which nothing is told apart
_NODES = 30_000  # about: a move is cut into so many parts that there are not more nodes
_BLOCK = 1 << 21  # entries of one temporary array


@dataclass(frozen=True, eq=False)
class Envelope:
    """The loss at ``nodes`` of log q, and the most that one move changes it at this node or below.

    Guarantee: for neighbours the position of q differs by at most ``reach`` (``smooth.proof.md``, Lemma 1), ``loss``
    and ``most`` do not fall, and ``loss`` is at least the divergence from every neighbour. Public.
    """

    nodes: Floats
    loss: Floats
    most: Floats
    reach: int
    full: int  # the first position from which the loss is the worst case everywhere

    def position(self, log_q: Floats, moves: int | Integers = 0) -> Positions:
        """The first node that is not below log q, with room for the error of floats."""
        raised = log_q + (np.expand_dims(np.asarray(moves), -1) + 1) * STEP
        found = np.full(raised.shape, len(self.nodes) - 1)
        inner = raised <= self.nodes[-2]
        found[inner] = np.searchsorted(self.nodes, raised[inner])
        return found

    def local(self, position: Positions, origin: Positions, moves: Integers) -> Floats:
        """The most that one move changes the loss within so many moves; ``origin`` is the position at no moves."""
        most = self.most[position]
        lowest = origin - np.expand_dims(moves, -1) * self.reach  # where q can get to
        inside = lowest > self.full
        if inside.any():
            below = self.loss[np.maximum(lowest - self.reach, 0)]
            most = np.where(inside, np.minimum(most, self.loss[-1] - below), most)
        return most


@lru_cache(maxsize=128)
def envelope(sigma: float, order: float, teachers: int, classes: int, loss: Loss = closed) -> Envelope:
    """The table for these public numbers, made once."""
    from scipy.special import log_ndtr, ndtri

    if teachers < 1 or classes < 2 or not sigma > 0 or not order > 1:
        raise ValueError("smooth sensitivity needs a teacher, two classes, a sigma above 0 and an order above 1")
    move = math.sqrt(2.0) / sigma
    top = float(ndtri(1 / classes))
    lowest = min(max(-(teachers + 1) * move / 2, _FARTHEST), top - move)
    parts = int(np.clip(_NODES * move / (top - lowest + move), 16, 512))
    count = math.ceil((top - lowest) / move * parts) + 1
    quantiles = top - np.arange(count)[::-1] * (move / parts)
    nodes = np.minimum(log_ndtr(quantiles) + math.log(classes - 1), math.log1p(-1 / classes))
    values = np.minimum(loss(nodes, sigma, order) * (1 + MARGIN), ceiling(sigma, order))
    values = np.maximum.accumulate(values)
    nodes[-1] = 0.0  # answers for everything
    reach, at = parts + 1, np.arange(count)
    up = values[np.minimum(at + reach, count - 1)] - values
    down = values - values[np.maximum(at - reach, 0)]
    full = int(np.argmax(values >= values[-1]))
    return Envelope(nodes, values, np.maximum.accumulate(np.maximum(up, down)), reach, full)


def local_sums(votes: Integers, sigma: float, order: float, teachers: int, loss: Loss = closed) -> Floats:
    """What one teacher can change of the loss of all labels within d moves, for d = 0 .. teachers. Private."""
    rows, counts = np.unique(np.sort(votes, axis=-1), axis=0, return_counts=True)
    table = envelope(sigma, order, teachers, votes.shape[-1], loss)
    leads = gaps(rows)
    origin = table.position(log_miss(leads, sigma))
    sums = np.empty(teachers + 1)
    step = max(1, _BLOCK // leads.size)
    for start in range(0, teachers + 1, step):
        moves = np.arange(start, min(start + step, teachers + 1))
        position = table.position(log_miss(leads, sigma, moves), moves)
        sums[moves] = (table.local(position, origin, moves) * counts).sum(axis=-1)  # summed in pairs
    return sums


def smooth_sensitivity(sums: Floats, beta: ArrayLike) -> Floats:
    """The largest of e^(-beta d) times the sum at d; one for each beta.

    Guarantee: S(X) <= e^beta S(X') for neighbours and S bounds the local sensitivity, up to the rounding of floats
    (``smooth.proof.md``, Theorem 1).
    """
    moves = np.arange(len(sums))
    found: Floats = (np.exp(-np.asarray(beta, dtype=np.float64)[..., None] * moves) * sums).max(axis=-1)
    return found


def total_loss(votes: Integers, sigma: float, order: float, teachers: int) -> float:
    """The loss of all labels together, on the nodes of the envelope. Private: this file bounds its sensitivity."""
    table = envelope(sigma, order, teachers, votes.shape[-1])
    return float(table.loss[table.position(log_miss(gaps(votes), sigma))].sum())
