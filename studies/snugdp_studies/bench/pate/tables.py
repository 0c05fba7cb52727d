"""What labels of given votes cost by every analysis, side by side. For votes that may be shown: it protects nothing.

All columns use the votes themselves, also to choose parameters: they say what is possible, not what may be released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.confident import ORDERS as ALL_ORDERS
from snugdp.mechanisms.teachers.smooth_test import conversion, smooth_plan
from snugdp.mechanisms.teachers.table import UNIT, table_for
from snugdp.noise import DiscreteGaussian
from snugdp_studies.paper.pate.renyi import LabelLosses, needed, theorem6, threshold_for

Integers = NDArray[np.int64]

SIGMAS = (13.8, 21.0, 30.3, 39.4, 48.6)
DEVIATIONS = (3, 4, 5, 6, 7, 8, 10, 12)
ORDERS = tuple(float(order) for order in (*range(4, 24), *range(24, 48, 2)))
ALONE = tuple(order for order in ALL_ORDERS if order <= 70)  # without a test


@dataclass(frozen=True)
class Row:
    """Epsilon at one noise: exact Gaussian, by Theorem 6 and J (not private), by smooth sensitivity, by distance."""

    sigma: float
    gaussian: float
    theorem6: float
    tight: float
    smooth: float
    distance: float


def run(votes: Integers, teachers: int, delta: float = 1e-5, sigmas: tuple[float, ...] = SIGMAS) -> list[Row]:
    """One row for each noise; the tests pass with a chance of 0.9."""
    return [_row(np.asarray(votes, dtype=np.int64), teachers, delta, sigma) for sigma in sigmas]


def _row(votes: Integers, teachers: int, delta: float, sigma: float) -> Row:
    logs = log_miss(gaps(votes), sigma)
    added = np.maximum(conversion(ALONE, delta), 0.0)
    tight = LabelLosses(table_for(sigma, ALONE)).of(votes, 0) * UNIT
    return Row(
        sigma=sigma,
        gaussian=gaussian.epsilon(math.sqrt(2 * len(votes)) / sigma, delta),
        theorem6=float((theorem6(logs[:, None], sigma, ALONE).sum(axis=0) + added).min()),
        tight=float((tight + added).min()),
        smooth=smooth_plan(votes, sigma=sigma, delta=delta, teachers=teachers).epsilon,
        distance=_distance(votes, teachers, delta, sigma),
    )


def _distance(votes: Integers, teachers: int, delta: float, sigma: float) -> float:
    losses = LabelLosses(table_for(sigma, ORDERS))
    found = []
    for deviation in DEVIATIONS:
        law = DiscreteGaussian(deviation**2)
        at = threshold_for(law, 1, delta)
        found.append(needed(losses.of, votes, law=law, threshold=at, teachers=teachers, delta=delta, orders=ORDERS))
    return min(found)
