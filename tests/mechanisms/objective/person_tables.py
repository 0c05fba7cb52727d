"""Small tables of persons, and the exact laws of a run on them, written from the definition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from snugdp import Budget, Simulation
from snugdp.mechanisms.objective.perturbation import ObjectiveRun
from snugdp.release.persons import Persons
from snugdp.tables.losses.losses import LogCosh
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.vectors.weighted import WEIGHT
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import open_source

Floats = NDArray[np.float64]
People = dict[str, list[tuple[float, float]]]  # the rows (x, y) of each


@dataclass(frozen=True)
class Weighed:
    """The rows that a run sees: vectors, targets and weights, in scaled units."""

    X: Floats
    y: Floats
    a: Floats

    @classmethod
    def of(cls, people: People, schema: Schema, most: int) -> Weighed:
        """Through the library: identifiers, weights, layout and row map."""
        rows = weighed_rows(people, schema, most)
        images, unit = rows.images(), float(row_map(schema).unit)
        assert images is not None
        if not images.blocks:
            return cls(np.zeros((0, len(schema.features))), np.zeros(0), np.zeros(0))
        X = np.concatenate([V.astype(np.float64) for V, _, _ in images.blocks]) * unit
        y = np.concatenate([w.astype(np.float64) for _, w, _ in images.blocks]) * unit
        return cls(X, y, np.concatenate([np.full(len(w), a / WEIGHT) for _, w, a in images.blocks]))


def weighed_rows(people: People, schema: Schema, most: int) -> Rows:
    """As an estimator makes them."""
    persons = Persons("who", most, Budget(1, 1e-6))
    return Rows(persons.weighed(open_source(frame_of(people)), ("x", "y"), Simulation(1), progress=False), schema)


def frame_of(people: People) -> pl.DataFrame:
    """One row after the other."""
    rows = [(who, x, y) for who, some in people.items() for x, y in some]
    return pl.DataFrame(rows, schema={"who": pl.String, "x": pl.Float64, "y": pl.Float64}, orient="row")


def _parts(run: ObjectiveRun, seen: Weighed, theta: Floats) -> tuple[Floats, Floats]:
    """Weighted slopes and curvatures of all rows at points theta (last axis: entries)."""
    linear = theta @ seen.X.T
    if isinstance(run.loss, LogCosh):
        tau = float(run.loss.slope)
        p = np.tanh((linear - seen.y) / tau)
        return seen.a * tau * p, seen.a * (1 - p**2)
    label = np.where(seen.y > 0, 1.0, -1.0)
    p = expit(-label * linear)
    return -seen.a * label * p, seen.a * p * (1 - p)


def on_a_line(run: ObjectiveRun, tables: tuple[Weighed, Weighed]) -> tuple[Floats, Floats]:
    """Masses of the same cells of theta: exact, so that what they tell apart is never more than the truth."""
    sigma, ridge = float(run.sigma), float(run.ridge)
    far = 14 * sigma / ridge + 2 * float(run.design.together) * float(run.loss.slope) / ridge
    theta = np.linspace(-far, far, 24_001)
    found = []
    for seen in tables:
        slopes, _ = _parts(run, seen, theta[:, None])
        ends = (slopes @ seen.X[:, 0] + ridge * theta) / sigma  # minus b, which falls in theta
        low, high = ends[:-1], ends[1:]
        found.append(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))
    return found[0], found[1]


def in_the_plane(run: ObjectiveRun, tables: tuple[Weighed, Weighed], cells: int = 261) -> tuple[Floats, Floats]:
    """Masses of squares of theta by the densities in their middles."""
    sigma, ridge = float(run.sigma), float(run.ridge)
    far = 7.5 * sigma / ridge
    line = np.linspace(-far, far, cells)
    theta = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    area = (line[1] - line[0]) ** 2 / (2 * math.pi * sigma**2)
    found = []
    for seen in tables:
        slopes, curvatures = _parts(run, seen, theta)
        b = (slopes @ seen.X + ridge * theta) / sigma
        h = np.einsum("ti,ij,ik->tjk", curvatures, seen.X, seen.X) + ridge * np.eye(2)
        determinant = h[:, 0, 0] * h[:, 1, 1] - h[:, 0, 1] ** 2
        found.append(np.exp(-(b**2).sum(axis=1) / 2) * determinant * area)
    return found[0], found[1]


def worst_person(random: np.random.Generator, rows: int) -> list[tuple[float, float]]:
    """Rows at the ends of their bounds, often all alike: that is what costs most."""
    x = random.choice([-1.0, 1.0]) * np.where(random.random(rows) < 0.8, 1.0, random.uniform(-1, 1, rows))
    y = random.choice([-1.0, 1.0]) * np.where(random.random(rows) < 0.8, 1.0, random.uniform(-1, 1, rows))
    if random.random() < 0.3:
        y = random.choice([-1.0, 0.0, 1.0], rows)
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def weight_of(seen: Weighed) -> Fraction:
    """The total weight, exactly."""
    return sum((Fraction(round(a * WEIGHT), WEIGHT) for a in seen.a), Fraction(0))
