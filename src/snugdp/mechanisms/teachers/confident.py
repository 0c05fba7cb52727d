"""Confident noisy argmax: the joint loss of "no answer" and the label, within some vote moves.

Proof: ``confident.proof.md``. A query is answered iff its top vote plus Gaussian noise reaches a public threshold.
Queries without an answer cost as well: the sum is over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from snugdp.mechanisms.teachers.ball import Floats, Integers, gaps, log_miss
from snugdp.mechanisms.teachers.table import LOWEST, STEP, UNIT, LossTable, table_for
from snugdp.numerics.rationals import Real, rational

ORDERS = (
    1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 25.0, 28.0, 32.0,
    36.0, 40.0, 46.0, 52.0, 60.0, 70.0, 85.0, 100.0, 130.0, 170.0,
)  # fmt: skip
_STEP = 64  # units added for every move: 2**-34 nats, above what floats do to the order of joint losses
MAX_LOSS = 2**62  # units: a sum of so many exceeds every epsilon
_HALF = 32  # bits
_BLOCK = 1 << 20  # entries of one temporary array
_MAX_THRESHOLD = 2.0**40  # votes: beyond, a threshold is no threshold and its logarithms are no numbers


def inflated(log_q: Floats, moves: int) -> Floats:
    """Log q, with room for the error of floats that grows with the moves (line 2)."""
    raised: Floats = np.maximum(log_q, LOWEST) + (moves + 1) * STEP
    return raised


@dataclass(frozen=True, eq=False)
class ConfidentLosses:
    """The joint losses of all queries together, within so many moves: whole units, one for each order.

    Guarantee: that of ``LabelLosses``, for "no answer" and labels together (``confident.proof.md``, Theorem 1).
    """

    table: LossTable
    threshold: float
    threshold_sigma: float
    teachers: int

    def __post_init__(self) -> None:
        if not 1 <= self.threshold_sigma < math.inf or not abs(self.threshold) <= _MAX_THRESHOLD:
            raise ValueError("threshold_sigma must be at least 1 vote, and the threshold at most 2**40 votes in size")

    @cached_property
    def _powers(self) -> tuple[Floats, Floats]:
        """For every top vote, neighbour's top vote and order: the logarithms of the two terms without the labels."""
        from scipy.special import log_ndtr

        away = (np.arange(self.teachers + 1) - self.threshold) / self.threshold_sigma
        near = np.clip(np.arange(self.teachers + 1)[:, None] + np.array([-1, 1]), 0, self.teachers)
        alpha = np.array(self.table.orders)
        answer, none = log_ndtr(away), log_ndtr(-away)
        fail, passing = (alpha * logs[:, None, None] + (1 - alpha) * logs[near][:, :, None] for logs in (none, answer))
        return fail, passing

    @cached_property
    def _spare(self) -> Integers:
        """Units at every order, not less than the error of the floats in one joint loss."""
        alpha = np.array(self.table.orders)
        label = self.table.steps.max(axis=0) * UNIT
        far = alpha - 1 + np.sqrt((alpha - 1) ** 2 + 2 * (alpha - 1) * (2 + label) + 100)  # deviations that matter
        units: Integers = np.ceil(alpha / (alpha - 1) * (far**2 + abs(self.threshold)) / 256).astype(np.int64)
        return units

    def of(self, votes: Integers, moves: int) -> Integers:
        """The sums over the queries; ``MAX_LOSS`` if they are not smaller."""
        logs = inflated(log_miss(gaps(votes), self.table.sigma, moves), moves)
        pairs, counts = np.unique(
            np.stack([votes.max(axis=-1), self.table.position(logs)], axis=-1), axis=0, return_counts=True
        )
        high, low = np.zeros((2, len(self.table.orders)), dtype=np.int64)  # halves: whole sums may not fit
        rows = max(1, _BLOCK // ((2 * moves + 1) * 2 * len(high)))
        for start in range(0, len(pairs), rows):
            each = self._units(pairs[start : start + rows, 0], pairs[start : start + rows, 1], moves)
            high += counts[start : start + rows] @ (each >> _HALF)
            low += counts[start : start + rows] @ (each & (2**_HALF - 1))
        high += low >> _HALF
        return np.where(high < MAX_LOSS >> _HALF, (high << _HALF) + (low & (2**_HALF - 1)), MAX_LOSS)

    def _units(self, top: Integers, position: Integers, moves: int) -> Integers:
        """Joint losses of single queries: the largest over all top votes in reach, and their neighbours."""
        fail, passing = self._powers
        alpha = np.array(self.table.orders)
        reach = np.clip(top[:, None] + np.arange(-moves, moves + 1), 0, self.teachers)
        label = (alpha - 1) * (self.table.steps[position] * UNIT)
        logs = np.logaddexp(fail[reach], passing[reach] + label[:, None, None, :])
        loss = np.maximum(logs.max(axis=(1, 2)), 0.0) / (alpha - 1)
        units: Integers = np.ceil(loss / UNIT).astype(np.int64) + self._spare + _STEP * (moves + 1)
        return units


def confident_losses(
    sigma: Real, threshold: Real, threshold_sigma: Real, teachers: int, orders: Sequence[float] = ORDERS
) -> ConfidentLosses:
    """The losses for these public numbers."""
    return ConfidentLosses(
        table_for(float(rational(sigma, "sigma")), orders),
        float(rational(threshold, "threshold")),
        float(rational(threshold_sigma, "threshold_sigma")),
        teachers,
    )
