"""Losses of one noisy argmax in a public table: whole numbers, monotone in q, never too small.

Proof: ``table.proof.md``. A sum of whole numbers does not depend on its order and a look-up cannot lose monotonicity,
so what is decided with a table does not hang on rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.teachers.loss import Floats, ceiling, closed, log1mexp, log_moment, log_rest, log_sum, sides

Integers = NDArray[np.int64]
Positions = NDArray[np.intp]

UNIT = 2.0**-40  # nats: what one step of a stored loss is worth
MARGIN = 2.0**-34  # relative to every term, far above the error of a float
STEP = 2.0**-34  # added to log q for every move: far above the error of its computation
LOWEST = -1800.0  # log q below which nothing is told apart
_CLOSE, _ENOUGH = 1.0001, 64  # where the closed form is as good as the optimum, or small enough
_SLACK = 3  # units, for what rounding adds at the end
_FINE, _COARSE = 1 / 110, 1 / 80  # distances of nodes above and below the quantile -8
_MAX_NODES_BELOW = 4000  # nodes below
_LEAST_SIGMA = 1 / 16  # below, losses at high orders do not fit into whole numbers of 64 bits
_FIRST, _LAST = 1.05, 1000.0  # orders for which the margins are enough
_SHARES = np.concatenate([np.linspace(-9, -1.5, 7), np.linspace(-1, 4, 17), np.linspace(4.6, 14, 9)])  # logit of a/q


@dataclass(frozen=True, eq=False)
class LossTable:
    """Upper ends of the loss at ``nodes`` (values of log q), in whole units of 2**-40, one column for each order.

    Guarantee: ``at(log q)`` is at least the divergence from every neighbour at every order, if the label misses the
    plurality with at most q, and does not fall as q grows (``table.proof.md``, Theorem 1). It depends on public
    numbers alone.
    """

    sigma: float
    orders: tuple[float, ...]
    nodes: Floats
    steps: Integers

    def at(self, log_q: Floats) -> Integers:
        """The losses at the first node that is not below log q; the shape of ``log_q``, then the orders."""
        found: Integers = self.steps[self.position(log_q)]
        return found

    def position(self, log_q: Floats) -> Positions:
        """Which node answers for log q. The last node is q = 1 and answers for everything."""
        return np.minimum(np.searchsorted(self.nodes, log_q), len(self.nodes) - 1)


@lru_cache(maxsize=64)
def loss_table(sigma: float, orders: tuple[float, ...]) -> LossTable:
    """The table of this noise for these orders, made once.

    >>> table = loss_table(20.0, (2.0, 10.0))
    >>> (table.at(np.array([-30.0, 0.0])) * UNIT).round(6).tolist()
    [[0.0, 0.0], [0.005, 0.025]]
    """
    if not _LEAST_SIGMA <= sigma < math.inf or not orders or not _FIRST <= min(orders) <= max(orders) <= _LAST:
        raise ValueError(
            f"a table of losses needs sigma of at least {_LEAST_SIGMA} votes, and orders from {_FIRST} to {_LAST:g}"
        )
    nodes = _nodes(sigma, max(orders))
    losses = closed(nodes[:-1, None], sigma, orders) * (1 + MARGIN)
    ends = _Cells.of(nodes[:-1], sigma, np.empty(0))
    least = np.stack([ends.least(order) for order in orders], axis=1)
    gain = (losses > _ENOUGH * UNIT) & (least * _CLOSE < losses)  # elsewhere the optimum is not worth its time
    rows = np.flatnonzero(gain.any(axis=1))
    cells = _Cells.of(nodes[rows], sigma, _SHARES)
    most = np.ceil(ceiling(sigma, orders) * (1 + 2.0**-50) / UNIT).astype(np.int64) + 1
    steps = np.empty((len(nodes), len(orders)), dtype=np.int64)
    for column, order in enumerate(orders):
        here = gain[rows, column]
        found = losses[:, column]
        found[rows[here]] = np.fmin(found[rows[here]], cells.of_rows(np.flatnonzero(here)).loss(order))
        whole = np.minimum(np.ceil(found / UNIT) + _SLACK, most[column])
        steps[:-1, column] = np.maximum.accumulate(whole.astype(np.int64))
    steps[-1] = np.maximum(most, steps[-2])  # beyond 2**53 the least of two floats above is not exact
    return LossTable(sigma, orders, nodes, steps)


def _nodes(sigma: float, highest: float) -> Floats:
    """Values of log q, even in the normal quantile, down to where the loss is below one unit at every order."""
    from scipy.special import log_ndtr

    m = math.sqrt(2.0) / sigma
    lowest = max(-8.0 - (highest - 1) * m - math.sqrt(56 + highest * (highest - 1) * m**2), -59.0)
    below = min(math.ceil((-8.0 - lowest) / _COARSE), _MAX_NODES_BELOW)
    quantiles = np.concatenate(
        [np.linspace(lowest, -8.0, below, endpoint=False), np.arange(-8.0, 3.0, _FINE), [np.inf]]
    )
    nodes: Floats = log_ndtr(quantiles)
    return nodes


@dataclass(frozen=True, eq=False)
class _Cells:
    """The parts of q at every node, and what does not depend on the order. Rows are nodes, columns ends of cells."""

    m: float
    log_q: Floats
    x1: Floats
    z2: Floats
    log_rest: Floats
    width: Floats

    @classmethod
    def of(cls, nodes: Floats, sigma: float, logits: Floats) -> _Cells:
        log_share = np.concatenate([[-np.inf], -np.logaddexp(0.0, -logits), [0.0]])
        share = np.concatenate([[0.0], 1 / (1 + np.exp(-logits)), [1.0]])
        m, logs = math.sqrt(2.0) / sigma, nodes[:, None]
        x1, z2 = sides(logs, log_share)
        return cls(m, logs, x1, z2, log_rest(x1, z2, m), np.exp(logs) * np.diff(share))

    def of_rows(self, rows: Positions) -> _Cells:
        """The same for some of the nodes."""
        parts = (part[rows] for part in (self.log_q, self.x1, self.z2, self.log_rest, self.width))
        return _Cells(self.m, *parts)

    def least(self, order: float) -> Floats:
        """What the optimum is at least, in nats: the largest value at an end of a cell."""
        first = order * log1mexp(self.log_q) + (1 - order) * self.log_rest
        found: Floats = log_sum(first, log_moment(self.x1, self.z2, self.m, order)).max(axis=1) / (order - 1)
        return found

    def loss(self, order: float) -> Floats:
        """The optimum over all parts of q from above, in nats, with the margin."""
        stay = log1mexp(self.log_q)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            first = np.expm1(order * stay + (1 - order) * self.log_rest)
            moment = np.exp(log_moment(self.x1, self.z2, self.m, order))
            error = MARGIN * (moment + order * np.abs(first) - order * (stay + self.log_rest)).max(axis=1)
            value, bound = first + moment, first[:, :-1] + moment[:, 1:]
            row, cell = np.nonzero(bound > value.max(axis=1, keepdims=True) * _CLOSE)  # where a line can help
            lines = _crossing(value[row, cell], value[row, cell + 1], *self._slopes(order, row, cell))
            bound[row, cell] = np.fmin(bound[row, cell], lines)
            return np.asarray(np.log1p(np.maximum(bound.max(axis=1) + error, 0.0)) / (order - 1))

    def _slopes(self, order: float, row: Positions, cell: Positions) -> tuple[Floats, Floats, Floats]:
        """Upper and lower ends of the slope of S + W in a cell, whose parts are all monotone (Lemma 1); its width."""
        m, start, end = self.m, (row, cell), (row, cell + 1)
        left, left_end = -m * self.x1[start] + m**2 / 2, -m * self.x1[end] + m**2 / 2  # log r at x1
        right, right_end = m * self.z2[start] + m**2 / 2, m * self.z2[end] + m**2 / 2  # log r at -z2
        stay = log1mexp(self.log_q[row, 0])
        weight, weight_end = ((order - 1) * np.exp(order * (stay - self.log_rest[at])) for at in (start, end))
        rise, fall = np.exp((order - 1) * left), weight_end * np.maximum(np.exp(-right) - np.exp(-left_end), 0.0)
        upper = rise - np.exp((order - 1) * right_end) - fall + MARGIN * (rise + fall)
        rise, fall = np.exp((order - 1) * left_end), weight * (np.exp(-right_end) - np.exp(-left))
        lower = rise - np.exp((order - 1) * right) - fall - MARGIN * (rise + fall)
        return upper, lower, self.width[start]


def _crossing(start: Floats, end: Floats, upper: Floats, lower: Floats, width: Floats) -> Floats:
    """The highest point of a cell under a line from either end (Lemma 2); no number where there is no line."""
    way = np.clip((end - start - lower * width) / (upper - lower), 0.0, width)
    peak = np.where(upper <= 0, start, np.where(lower >= 0, end, start + upper * way))
    peak = np.where(np.isfinite(lower), peak, start + np.maximum(upper, 0.0) * width)
    return np.where(np.isfinite(upper), peak, end + np.maximum(-lower, 0.0) * width)


def table_for(sigma: float, orders: Sequence[float]) -> LossTable:
    """``loss_table`` for any sequence of orders."""
    return loss_table(float(sigma), tuple(float(order) for order in orders))
