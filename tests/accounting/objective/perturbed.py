"""Objective perturbation with one coefficient, exactly: densities in closed form, probabilities through the normal law.

Written from the definition of the mechanism alone. A set of outcomes on which the loss exceeds epsilon shows a delta; a
set that is slightly off shows a smaller one, so what is found here is never too large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Array = npt.NDArray[np.float64]
FAR = 9.0
CLASS_T = ("logcosh", "pseudo_huber")
LEEWAY = 1 + 1e-7  # floats in the exact laws


def slopes(kind: str, u: Array) -> tuple[Array, Array]:
    """The first and second derivative of the loss of scale 1."""
    if kind == "logcosh":
        slope = np.tanh(u)
        return slope, 1 / np.cosh(np.clip(u, -300, 300)) ** 2
    if kind == "pseudo_huber":
        return u / np.sqrt(1 + u * u), (1 + u * u) ** -1.5
    return np.clip(u, -1, 1), (np.abs(u) < 1).astype(np.float64)


@dataclass(frozen=True)
class Law:
    """The law of the minimiser on one data set: rows (x, y), loss of scale tau, noise sigma, centre."""

    x: Sequence[float]
    y: Sequence[float]
    kind: str
    tau: float
    ridge: float
    sigma: float
    centre: float = 0.0
    rows: tuple[Array, Array] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", (np.array(self.x, dtype=np.float64), np.array(self.y, dtype=np.float64)))

    def more(self, x: float, y: float = 0.0) -> Self:
        return replace(self, x=[*self.x, x], y=[*self.y, y])

    def _both(self, theta: Array) -> tuple[Array, Array]:
        """The b that has theta as its minimiser, over sigma; and the second derivative of the objective."""
        x, y = self.rows
        slope, curve = slopes(self.kind, (y - np.multiply.outer(theta, x)) / self.tau)
        b = self.tau * (slope @ x) - self.ridge * (theta - self.centre)
        return b / self.sigma, self.ridge + curve @ (x * x)

    def tilt(self, theta: float) -> float:
        """It falls with theta, and is standard normal."""
        if math.isinf(theta):
            return -theta
        return float(self._both(np.array([theta]))[0][0])

    def log_density(self, theta: Array) -> Array:
        t, curve = self._both(theta)
        return -t * t / 2 + np.log(curve)

    @property
    def largest_gradient(self) -> float:
        """Of all rows together."""
        return self.tau * float(np.abs(self.rows[0]).sum())

    def points(self, t: Array, steps: int = 60) -> Array:
        """The minimisers for these tilts, about: Newton's steps while they shrink by half, and halvings otherwise."""
        wide = (np.abs(t) * self.sigma + self.largest_gradient) / self.ridge + 1e-9
        low, high = self.centre - wide, self.centre + wide
        theta, moved = np.full_like(t, self.centre), 2 * wide
        for _ in range(steps):
            tilt, curve = self._both(theta)
            right = tilt > t
            low, high = np.where(right, theta, low), np.where(right, high, theta)
            newton = (tilt - t) * self.sigma / curve
            good = (low < theta + newton) & (theta + newton < high) & (2 * np.abs(newton) <= np.abs(moved))
            moved = np.where(good, newton, (low + high) / 2 - theta)
            theta = theta + moved
            if np.all(np.abs(moved) <= 1e-15 * wide):
                break
        return theta

    def mass(self, low: float, high: float) -> float:
        a, b = self.tilt(high), self.tilt(low)
        return float(ndtr(-a) - ndtr(-b) if a > 0 else ndtr(b) - ndtr(a))


def nobody(kind: str, m: float, kappa: float) -> Law:
    """Without rows: the ridge and the noise that m and kappa stand for, at scale 1."""
    return Law([], [], kind, 1.0, 1 / kappa, 1 / m)


def loss(p: Law, q: Law, theta: Array) -> Array:
    return p.log_density(theta) - q.log_density(theta)


def deltas(p: Law, q: Law, epsilons: Sequence[float], nodes: int = 200) -> list[float]:
    """P(S) - exp(epsilon) Q(S) on the set S where the loss exceeds epsilon: its ends by bisection, exact masses."""
    theta = np.unique(p.points(np.linspace(-FAR, FAR, nodes), 12))
    losses = loss(p, q, theta)
    return [_delta(p, q, epsilon, theta, losses) for epsilon in epsilons]


def _delta(p: Law, q: Law, epsilon: float, theta: Array, losses: Array) -> float:
    above = losses > epsilon
    turns = np.nonzero(above[1:] != above[:-1])[0]
    low, high, first = theta[turns], theta[turns + 1], above[turns]
    for _ in range(24):  # at the ends of the best set the delta does not change to first order
        middle = (low + high) / 2
        same = (loss(p, q, middle) > epsilon) == first
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    ends = [-math.inf, *((low + high) / 2).tolist(), math.inf]
    total = 0.0
    for place, inside in enumerate([bool(above[0]), *(~first).tolist()]):
        if inside:
            total += p.mass(*ends[place : place + 2]) - math.exp(epsilon) * q.mass(*ends[place : place + 2])
    return total


def beside(mu: float, p: Law, q: Law, epsilon: float, nodes: int = 1501) -> float:
    """The delta of an exact pair composed with a Gaussian release: an integral over the tilt."""
    t = np.linspace(-9.5, 9.5, nodes)
    weights = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])
    left = epsilon - loss(p, q, p.points(t))
    return float(weights @ np.maximum(ndtr(mu / 2 - left / mu) - np.exp(left) * ndtr(-mu / 2 - left / mu), 0.0))


def random_pair(rng: np.random.Generator, kind: str, m: float, kappa: float) -> tuple[Law, Law]:
    """A data set and the same with one row more, |x| <= 1; about half of the rows at their worst."""
    n, tau = int(rng.integers(0, 5)), float(np.exp(rng.uniform(-2, 1)))
    spread = tau * float(np.exp(rng.uniform(-2, 3)))
    x = rng.uniform(-1, 1, n + 1)
    if rng.random() < 0.6:
        x = np.sign(x)
    y = rng.standard_normal(n + 1) * spread
    if rng.random() < 0.3:
        y[-1] = 0.0
    law = Law(x[:-1].tolist(), y[:-1].tolist(), kind, tau, 1 / kappa, tau / m, float(rng.normal()) * tau)
    return law, law.more(float(x[-1]), float(y[-1]))
