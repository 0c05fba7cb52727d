"""Objective perturbation of a model with one coefficient, from its definition: masses of cells by the normal law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """The law of the minimiser on rows (x, y): ``kind`` is "logistic" (y = 1 or -1) or "poisson" (y a count)."""

    x: Sequence[float]
    y: Sequence[float]
    ridge: float
    sigma: float
    kind: str = "logistic"
    rate: float = 1.0
    force: float = 0.0  # of many tiny rows that only shift the minimiser

    def tilt(self, theta: Array) -> Array:
        """The b that has theta as its minimiser, over sigma: it falls with theta and is standard normal."""
        x, y = np.array(self.x, dtype=float), np.array(self.y, dtype=float)
        u = np.multiply.outer(theta, x)
        if self.kind == "logistic":
            slope = -y * expit(-u * y)
        else:
            v = np.clip(u - np.log(self.rate), -700, 700)
            slope = self.rate * np.where(v > 0, 2 - np.exp(-np.abs(v)), np.exp(-np.abs(v))) - y
        total: Array = (self.force - slope @ x - self.ridge * theta) / self.sigma
        return total

    def masses(self, ends: Array) -> Array:
        """Of the cells between the ends, and of what lies beyond."""
        t = np.concatenate([[np.inf], self.tilt(ends), [-np.inf]])
        left, right = t[:-1], t[1:]
        found: Array = np.where(right > 0, ndtr(-right) - ndtr(-left), ndtr(left) - ndtr(right))
        return found


def leak(one: Law, other: Law, epsilon: float, cells: int = 2500) -> float:
    """A delta that is certainly there at epsilon: of the best set of cells."""
    reach = (12 * one.sigma + 3 * len(one.x) + abs(one.force)) / one.ridge
    ends = np.sinh(np.linspace(-1, 1, cells) * np.arcsinh(reach * 50)) / 50
    gaps = one.masses(ends) - np.exp(epsilon) * other.masses(ends)
    return float(np.maximum(gaps, 0).sum())
