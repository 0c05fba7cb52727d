"""How likely the corners of a softmax removal are, by quadrature without rounding up: the reference of corners.py."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from tests.accounting.objective.perturbed import Array

_NODES = 48


def corner(t: float, classes: int, m: float, kappa: float, points: int = 240) -> float:
    """P[no loss of another class exceeds t, and the squares of Lemma 2 add up to more than their bound]."""
    c, deviation = kappa - m * m / 4, m / math.sqrt(2)
    if c <= 0:
        return 0.0
    x, w = leggauss(points)
    low, high = m * m / 2 - 12 * deviation, min(m * m / 2 + 12 * deviation, t + 10 * deviation)
    own = (low + high) / 2 + (high - low) / 2 * x
    weights = (high - low) / 2 * w * np.exp(-(((own - m * m / 2) / deviation) ** 2) / 2) / math.sqrt(2 * math.pi)
    tails = _Tails(own, t, c, deviation)
    left = math.sqrt(max(0.0, 1 - max(0.0, 1 - t / (2 * c)) ** 2))
    return float(weights / deviation @ tails.of_sum(classes - 1, left))


class _Tails:
    """Of sums of squares of u, none of them above 1, given the deviate of the row's own class."""

    def __init__(self, own: Array, t: float, c: float, deviation: float) -> None:
        self._start, self._reach, self._deviation = (t - 2 * c - own) / deviation, 2 * c / deviation, deviation
        self._end = (t - own) / deviation
        self._rho = (1 - np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)) / 2
        self._inverse = np.linalg.inv(chebyshev.chebvander(2 * self._rho - 1, _NODES - 1))

    def _above(self, u: float) -> Array:
        at = self._start + self._reach * u
        above: Array = np.where(at > 0, ndtr(-at) - ndtr(-self._end), ndtr(self._end) - ndtr(at))
        return above

    def of_sum(self, others: int, root: float) -> Array:
        """P[all <= 1, sum > root^2]."""
        tails = np.stack([self._above(float(u)) for u in self._rho])
        v, w = leggauss(64)
        angle, w = (v + 1) / 2 * np.pi / 2, w / 2 * np.pi / 2
        for before in range(1, others):
            shape, result = self._inverse @ tails, np.empty_like(tails)
            for i, r in enumerate(self._rho):
                u, rest, du = r * np.sin(angle), r * np.cos(angle), w * r * np.cos(angle)
                at = self._start + self._reach * u[:, None]
                density = np.exp(-at * at / 2) / math.sqrt(2 * math.pi) * self._reach
                inside = (du[:, None] * density * (chebyshev.chebvander(2 * rest - 1, _NODES - 1) @ shape)).sum(axis=0)
                result[i] = ndtr(self._start) * tails[i] + inside + self._above(float(r)) * ndtr(self._end) ** before
            tails = result
        found: Array = (chebyshev.chebvander(np.array([2 * root - 1]), _NODES - 1) @ (self._inverse @ tails))[0]
        return found


def removal_delta(classes: int, m: float, kappa: float, epsilon: float) -> float:
    """(K - 1) G_m(epsilon) and the corners beyond epsilon."""
    x, w = leggauss(24)
    end = 0.4 * m * m / epsilon * 40
    t = epsilon + end * (x + 1) / 2
    corners = sum(
        wi * math.exp(epsilon - ti) * corner(ti, classes, m, kappa) for wi, ti in zip(w * end / 2, t, strict=True)
    )
    vertex = ndtr(m / 2 - epsilon / m) - math.exp(epsilon) * ndtr(-m / 2 - epsilon / m)
    return float((classes - 1) * vertex + corners)
