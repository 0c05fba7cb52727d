"""Exact laws of objective perturbation with and without a person, written from the definition alone."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from snugdp.accounting.composition import Branch

Floats = NDArray[np.float64]

_LINE = np.linspace(-12.0, 12.0, 8001)
_WIDE = np.linspace(-8.5, 8.5, 341)


@dataclass(frozen=True)
class Person:
    """Rows with parts of the total weight, lengths up to 1, directions (angles; 0 and pi on a line) and offsets."""

    parts: Floats
    lengths: Floats
    angles: Floats
    offsets: Floats

    @classmethod
    def random(cls, random: np.random.Generator, *, plane: bool) -> "Person":
        """Two to five rows; often nearly parallel, of full length and weight, which is what costs most."""
        rows = int(random.integers(2, 6))
        parts = random.dirichlet(np.full(rows, random.choice([0.3, 1.0, 5.0]))) * random.choice([1.0, 1.0, 0.7])
        lengths = np.where(random.random(rows) < 0.6, 1.0, random.random(rows))
        if plane:
            angles = random.uniform(0, 2 * math.pi) + random.normal(size=rows) * random.choice([0.0, 0.3, 3.0])
        else:
            angles = math.pi * (random.random(rows) < random.choice([0.0, 0.5]))
        offsets = random.normal(size=rows) * random.choice([0.3, 2.0, 6.0]) + random.normal() * 3
        return cls(parts, lengths, angles, offsets)


def slopes(family: str, at: Floats) -> tuple[Floats, Floats]:
    """The slope p of a loss of this family as large as can be, and its derivative."""
    if family == "logistic":
        p = expit(at)
        return p, p * (1 - p)
    if family == "class_t":
        p = np.tanh(at)
        return p, 1 - p**2
    if family == "linear":  # one-sided: p' = 1 - p from 0 on
        p = -np.expm1(-np.maximum(at, 0.0))
        return p, np.where(at > 0, 1 - p, 0.0)
    return np.clip(at, -1.0, 1.0), (np.abs(at) < 1).astype(float)


def on_a_line(
    family: str, person: Person, m: float, kappa: float, held: Floats, *, line: Floats = _LINE
) -> tuple[Floats, Floats]:
    """Probabilities of cells with and without the person; ``held``: how far the table lets theta move, cell by cell.

    Probabilities of cells are exact, so what they tell two laws apart is never more than the truth.
    """
    step = line[1] - line[0]
    theta = np.concatenate([[0.0], np.cumsum(held * step)])
    theta -= np.interp(0.0, line, theta)
    moved = line.copy()
    for part, length, angle, offset in zip(person.parts, person.lengths, person.angles, person.offsets, strict=True):
        sign = math.cos(angle)
        moved += m * part * length * sign * slopes(family, offset + kappa / m * length * sign * theta)[0]
    return _masses(moved), _masses(line)


def _masses(ends: Floats) -> Floats:
    low, high = ends[:-1], ends[1:]
    found: Floats = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return found


def in_the_plane(family: str, person: Person, m: float, kappa: float, line: Floats = _WIDE) -> tuple[Floats, Floats]:
    """Masses of squares with and without the person, by the densities in their middles."""
    t = np.stack(np.meshgrid(line, line, indexing="ij"))
    moved = t.copy()
    hessian = np.zeros((3, *t.shape[1:]))
    for part, length, angle, offset in zip(person.parts, person.lengths, person.angles, person.offsets, strict=True):
        x = length * np.array([math.cos(angle), math.sin(angle)])
        p, curvature = slopes(family, offset + kappa / m * np.tensordot(x, t, 1))
        moved += m * part * p * x[:, None, None]
        hessian += kappa * part * curvature * np.array([x[0] ** 2, x[1] ** 2, x[0] * x[1]])[:, None, None]
    determinant = (1 + hessian[0]) * (1 + hessian[1]) - hessian[2] ** 2
    area = (line[1] - line[0]) ** 2 / (2 * math.pi)
    with_person = np.exp(-(moved**2).sum(axis=0) / 2) * determinant * area
    return with_person.ravel(), (np.exp(-(t**2).sum(axis=0) / 2) * area).ravel()


def hockey(first: Floats, second: Floats, losses: Floats) -> Floats:
    """How far the first law exceeds exp(loss) times the second."""
    return np.array([np.maximum(first - math.exp(loss) * second, 0.0).sum() for loss in losses])


def allowed(branches: tuple[Branch, ...], losses: Floats) -> Floats:
    """What an atom allows at each loss, on its own, in floats."""
    squares, shifts, weights = np.array([[float(b.mu_squared), float(b.shift), float(b.weight)] for b in branches]).T
    left = losses[:, None] - shifts
    mu = np.sqrt(np.where(squares > 0, squares, 1.0))
    gaussian = ndtr(mu / 2 - left / mu) - np.exp(left) * ndtr(-mu / 2 - left / mu)
    found: Floats = (weights * np.where(squares > 0, gaussian, np.maximum(-np.expm1(left), 0.0))).sum(axis=1)
    return found
