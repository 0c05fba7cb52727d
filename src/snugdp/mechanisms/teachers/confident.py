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
from numpy.typing import NDArray

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.renyi import ORDERS, RenyiDistance, distance_test, inflated
from snugdp.mechanisms.teachers.table import UNIT, LossTable, table_for
from snugdp.noise import DiscreteGaussian, DiscreteLaplace
from snugdp.numerics.rationals import Real, rational

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_STEP = 64  # units added for every move: 2**-34 nats, above what floats do to the order of joint losses
_BLOCK = 1 << 20  # entries of one temporary array
_FARTHEST = 2.0**40  # votes: beyond, a threshold is no threshold and its logarithms are no numbers


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
        if not 1 <= self.threshold_sigma < math.inf or not abs(self.threshold) <= _FARTHEST:
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
        """The sums over the queries."""
        logs = inflated(log_miss(gaps(votes), self.table.sigma, moves), moves)
        pairs, counts = np.unique(
            np.stack([votes.max(axis=-1), self.table.position(logs)], axis=-1), axis=0, return_counts=True
        )
        totals = np.zeros(len(self.table.orders), dtype=np.int64)
        rows = max(1, _BLOCK // ((2 * moves + 1) * 2 * len(totals)))
        for start in range(0, len(pairs), rows):
            each = self._units(pairs[start : start + rows, 0], pairs[start : start + rows, 1], moves)
            totals += counts[start : start + rows] @ each
        return totals

    def largest(self, queries: int) -> int:
        """What the totals never exceed."""
        fail, passing = self._powers
        alpha = np.array(self.table.orders)
        label = self.table.steps.max(axis=0) * UNIT
        worst = np.logaddexp(fail, passing + (alpha - 1) * label).max(axis=(0, 1)) / (alpha - 1)
        return queries * (math.ceil(float(worst.max()) / UNIT) + int(self._spare.max()) + _STEP * (self.teachers + 4))

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


def confident_curve(
    votes: Integers,
    *,
    sigma: Real,
    threshold: Real,
    threshold_sigma: Real,
    teachers: int,
    moves: int = 0,
    orders: Sequence[float] = ORDERS,
) -> Floats:
    """The Renyi curve of all answers together, for every data set within ``moves`` of these votes. It is private.

    Guarantee: neighbours' curves are nested as computed: the curve of X at d is at most that of X' at d + 1.
    """
    units = confident_losses(sigma, threshold, threshold_sigma, teachers, orders).of(votes, moves)
    return units.astype(np.float64) * UNIT


def confident_distance(
    *,
    sigma: Real,
    threshold: Real,
    threshold_sigma: Real,
    epsilon: Real,
    delta: Real,
    law: DiscreteGaussian | DiscreteLaplace,
    teachers: int,
    queries: int,
    orders: Sequence[float] = ORDERS,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> RenyiDistance:
    """The distance test for confident labels; all arguments are public."""
    losses = confident_losses(sigma, threshold, threshold_sigma, teachers, orders)
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
