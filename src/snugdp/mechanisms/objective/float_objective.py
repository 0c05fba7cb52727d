"""A summed loss in floats: where a minimiser is about, before anything exact is read.

Nothing rests on these numbers but time (``minimiser.py``): they may be rounded in any way, and differ from machine to
machine and from partition to partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.losses.losses import LogCosh, Logistic, Loss, OneAgainst, SoftHinge, counts, labels, shares
from snugdp.tables.rowmap import Floats


class FloatSums(PrivateState):
    """A gradient and a Hessian. Private."""

    __slots__ = ("gradient", "matrix")

    def __init__(self, entries: int) -> None:
        self.gradient, self.matrix = np.zeros(entries), np.zeros((entries, entries))


@dataclass(frozen=True)
class FloatGradient:
    """Sums over kept rows of the derivatives of a loss at ``theta``, in floats; of the second one with ``hessian``.

    ``unit``: of a cell of a row and its target; ``limit``: cells of a target, at most.
    """

    theta: Floats
    loss: Loss
    unit: float
    limit: int
    hessian: bool

    def empty(self) -> FloatSums:
        """Those of no rows."""
        return FloatSums(len(self.theta))

    def merge(self, one: FloatSums, other: FloatSums) -> FloatSums:
        """Those of both parts."""
        one.gradient += other.gradient
        one.matrix += other.matrix
        return one

    def add(self, state: FloatSums, V: NDArray[Any], w: NDArray[Any], weight: Floats | float = 1.0) -> None:
        """Add some rows, each with its weight or all with one."""
        V, w = V.astype(np.float64, copy=False), w.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):  # a warning would depend on private values
            u = np.dot(V, self.theta * self.unit)
            label = labels(self.loss, w, self.limit) if self.loss.classifies else None
            if label is not None:
                u *= label
            elif not counts(self.loss):
                u -= w * self.unit
            slope, second = float_parts(self.loss, u)
            if label is not None:
                slope *= label
            elif counts(self.loss):
                slope = slope - shares(self.loss, w, self.limit)
            state.gradient += np.dot(slope * (weight * float(self.loss.slope) * self.unit), V)
            if self.hessian:
                Z = V.T * (second * (weight * float(self.loss.curvature) * self.unit**2))
                state.matrix += np.dot(Z, V)


def float_parts(loss: Loss, u: Floats) -> tuple[Floats, Floats]:
    """The first derivative over its bound, and the second over its bound, by the exponentials of the library.

    >>> slope, second = float_parts(Logistic(), np.array([0.0, -800.0]))
    >>> slope.tolist(), second.tolist()
    ([-0.5, -1.0], [1.0, 0.0])
    """
    if isinstance(loss, OneAgainst):
        return float_parts(loss.loss, u)
    if isinstance(loss, SoftHinge):
        return float_parts(Logistic(), (u - 1.0) * float(loss.c0))
    if isinstance(loss, Logistic):
        slope = -1.0 / (1.0 + np.exp(u))
        return slope, -4.0 * slope * (1.0 + slope)
    if isinstance(loss, LogCosh):
        slope = np.tanh(u * (1 / float(loss.slope)))
        return slope, 1.0 - slope * slope
    slope, root = loss.parts(u)
    return slope, root * root


@dataclass(frozen=True)
class FloatObjective:
    """The tilted objective in floats. ``summed``: over rows; one that counts in full counts ``unit`` times there."""

    at: FloatGradient
    summed: Callable[[FloatGradient], FloatSums]
    ridge: float
    b: Floats
    centre: Floats
    unit: float = 1.0

    def derivatives(self, theta: Floats, hessian: bool) -> tuple[Floats, Floats | None]:
        """The gradient, and the Hessian of the losses if asked for."""
        sums = self.summed(replace(self.at, theta=theta, hessian=hessian))
        gradient = sums.gradient / self.unit + self.ridge * (theta - self.centre) + self.b
        return gradient, sums.matrix / self.unit if hessian else None
