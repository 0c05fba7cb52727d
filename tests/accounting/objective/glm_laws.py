"""Objective perturbation of a classifier with one coefficient, exactly; written from the definition alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr

from tests.accounting.objective.perturbed import Array, Law

B = 1.0


@dataclass(frozen=True)
class Classifier(Law):
    """Rows x stand for label times features; y is not used. Losses of slope 1; tau is the width h of a soft hinge.

    A centre moves the minimiser as many rows far away would.
    """

    def _both(self, theta: Array) -> tuple[Array, Array]:
        rows, _ = self.rows
        u = np.multiply.outer(theta, rows)
        p = expit(-u) if self.kind == "logistic" else expit((1 - u) / self.tau)
        width = 1.0 if self.kind == "logistic" else self.tau
        b = p @ rows - self.ridge * (theta - self.centre)
        return b / self.sigma, self.ridge + (p * (1 - p) / width) @ (rows * rows)

    @property
    def largest_gradient(self) -> float:
        return float(np.abs(self.rows[0]).sum())


def random_pair(rng: np.random.Generator, kind: str, m: float, kappa: float) -> tuple[Classifier, Classifier]:
    """A data set and the same with one row more, |x| <= 1, kappa = c0/ridge; often a single row of size 1."""
    width = 1.0 if kind == "logistic" else float(np.exp(rng.uniform(-2.5, 1)))
    ridge = 1 / (kappa * width)
    n = int(rng.choice([0, 0, 1, 3, 8]))
    x = rng.uniform(-1, 1, n + 1) * rng.choice([1.0, 0.05])
    x[-1] = 1.0 if rng.random() < 0.7 else rng.uniform(-1, 1)
    reach = rng.uniform(-1.5, 2.5) * 5 / (m * ridge) if rng.random() < 0.5 else rng.normal() * 3 * max(width, 1)
    law = Classifier(x[:-1].tolist(), [0.0] * n, kind, width, ridge, 1 / m, float(reach))
    return law, law.more(float(x[-1]))


@dataclass(frozen=True)
class Counts(Law):
    """Rows (x, y) of a tamed Poisson regression; ``tau`` is the cap U, ``kind`` is not used."""

    def _both(self, theta: Array) -> tuple[Array, Array]:
        rows, y = self.rows
        slope, curve = tamed_poisson(np.multiply.outer(theta, rows), y, self.tau)
        return (-(slope @ rows) - self.ridge * (theta - self.centre)) / self.sigma, self.ridge + curve @ (rows * rows)

    @property
    def largest_gradient(self) -> float:
        return max([2 * math.exp(self.tau), *self.y]) * float(np.abs(self.rows[0]).sum())


def tamed_poisson(u: Array, y: Array, cap: float) -> tuple[Array, Array]:
    """The first and second derivative."""
    inner, outer = np.exp(np.minimum(u, cap)), np.exp(2 * cap - np.maximum(u, cap))
    return np.where(u <= cap, inner, 2 * math.exp(cap) - outer) - y, np.where(u <= cap, inner, outer)


def path_deltas(tau: Array, w: Array, m: float, epsilons: list[float]) -> tuple[list[float], list[float]]:
    """Of removing and adding along one line: tau and tau + m w are standard normal. Cells, so never too large."""
    p, q = (_cells(points) for points in (tau + m * w, tau))

    def side(a: Array, b: Array) -> list[float]:
        return [float(np.maximum(a - math.exp(e) * b, 0).sum()) for e in epsilons]

    return side(p, q), side(q, p)


def _cells(points: Array) -> Array:
    ends = np.concatenate([[-np.inf], points, [np.inf]])
    found: Array = np.where(ends[:-1] > 0, ndtr(-ends[:-1]) - ndtr(-ends[1:]), ndtr(ends[1:]) - ndtr(ends[:-1]))
    return found


def random_path(rng: np.random.Generator, m: float, kappa: float, curve: str) -> tuple[Array, Array]:
    """A rising w with m w' <= kappa c(w), at its largest or at rest: c is w (1 - w), 1 - w, or 1 up to w = 1."""
    tau = np.linspace(-9, 9, 3001)
    moves = np.ones(len(tau) - 1, dtype=bool) if rng.random() < 0.5 else _stretches(rng, tau[:-1])
    reach = np.concatenate([[0.0], np.cumsum(moves * np.diff(tau))]) * kappa / m
    if curve == "logistic":
        return tau, expit(reach - kappa / m * rng.uniform(0, 14) + rng.uniform(-2, 4))
    late = np.maximum(reach - kappa / m * rng.uniform(0, 14), 0.0)
    start = rng.choice([0.0, rng.random()])
    if curve == "linear":
        return tau, 1 - (1 - start) * np.exp(-late)
    return tau, np.minimum(1.0, start + late)


def _stretches(rng: np.random.Generator, tau: Array) -> npt.NDArray[np.bool_]:
    cuts = np.sort(rng.uniform(-7, 7, 4))
    found: npt.NDArray[np.bool_] = np.searchsorted(cuts, tau) % 2 == int(rng.integers(2))
    return found
