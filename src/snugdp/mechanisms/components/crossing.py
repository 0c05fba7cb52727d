"""Analyze Gauss, and Analyze Gauss that stops early to look only at what crosses the subspace it found.

Proof: ``base.proof.md``, Theorems 1 and 2. Everything is Gaussian: mu**2 is split and adds up exactly, whatever
is decided on the way, and there is nothing that can fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.components.base import (
    Components,
    Floats,
    Labels,
    Start,
    Task,
    decomposed,
    edge,
    noisy_crossing,
    noisy_matrix,
)
from snugdp.noise import Noise
from snugdp.propose.forecast import Forecast, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import Theorem, theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.scatter import Scatter

GAUSS, THEOREM = theorem("pca-gauss/1"), theorem("pca-staged/1")

RELEASE = "release"  # the last step of every way to components
STAGES = (Fraction(1, 10), Fraction(1, 5), Fraction(2, 5), Fraction(3, 5), Fraction(1))  # of mu**2, added up
FOCUS = ("subspace", "components")
_SECOND = 0.5  # how much of the second-order error counts; with STAGES the better of two settings, see the proof


@dataclass(frozen=True)
class AnalyzeGauss:
    """The whole matrix with symmetric Gaussian noise, and its leading eigenvectors.

    Guarantee: the plan's cost, under add/remove, for all tables (``base.proof.md``, Theorem 1).
    """

    task: Task

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        return _plan(self.task, GAUSS, "matrix")

    def fit(self, data: Secret[Scatter], context: ReleaseContext) -> Outcome[Components]:
        """Pay and release; there is nothing to test."""
        return release(self.plan(), self, data, context)

    def draw(self, data: Secret[Scatter], noise: Noise) -> Components:
        """One noisy matrix."""
        task = self.task
        mu_squared = task.mu_squared(Fraction(0))
        start = task.begin(data, mu_squared, noise)
        main = task.shares[2] * mu_squared
        return of_matrix(noisy_matrix(data, task.view(start), main, noise.at(RELEASE)), main, task, start)


@dataclass(frozen=True)
class Crossing:
    """Analyze Gauss in stages; once the leading subspace stands out, only what crosses it is measured.

    One row can move what crosses a subspace by half of what it can move the matrix by, so the rest of the budget buys
    twice the precision there, and only that matters to the captured variance. If the subspace never stands out, the
    stages add up to Analyze Gauss with the whole budget. ``focus``: "subspace", or "components" to tell the components
    from one another as well, for which k components get (k + 1)/k of the precision.

    Guarantee: the plan's cost, under add/remove, for all tables (``base.proof.md``, Theorem 2).
    """

    task: Task
    focus: str = "subspace"

    def __post_init__(self) -> None:
        if self.focus not in FOCUS:
            raise ValueError(f"focus must be one of {', '.join(FOCUS)}")

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        return _plan(self.task, THEOREM, f"staged-matrix-{self.focus}")

    def fit(self, data: Secret[Scatter], context: ReleaseContext) -> Outcome[Components]:
        """Pay and release; there is nothing to test."""
        return release(self.plan(), self, data, context)

    def draw(self, data: Secret[Scatter], noise: Noise) -> Components:
        """Noisy matrices, and what crosses once it stands out."""
        task, done = self.task, Fraction(0)
        mu_squared = task.mu_squared(Fraction(0))
        start = task.begin(data, mu_squared, noise)
        main = task.shares[2] * mu_squared
        view, matrix = task.view(start), np.zeros((task.entries, task.entries))
        for stage in STAGES:  # 6.
            step = stage - done
            more = noisy_matrix(data, view, step * main, noise.at(RELEASE))
            matrix = (float(done) * matrix + float(step) * more) / float(stage)
            done = stage
            values, vectors = decomposed(matrix)
            k = task.rank.choose(values)
            labels = blocks_of(self.focus, task.entries, k)
            if k < task.entries and stands_out(values, labels, stage, float(main)):  # 7.
                crossing, sd = noisy_crossing(data, view, (vectors, labels), (1 - stage) * main, noise.at(RELEASE))
                before, after = 2 * float(stage * main), 1 / sd**2  # precisions of a crossing entry
                found = refined(values, vectors, crossing, after / (before + after))
                return _components(found, values, k, (stage * main, start, "crossing")).times(task.max_rows)
        return of_matrix(matrix, main, task, start)


def blocks_of(focus: str, entries: int, k: int) -> Labels:
    """The blocks whose crossings matter: all components and the rest, or every component by itself and the rest.

    >>> blocks_of("subspace", 5, 2).tolist(), blocks_of("components", 5, 2).tolist()
    ([0, 0, 1, 1, 1], [0, 1, 2, 2, 2])
    """
    places = np.arange(entries)
    return np.minimum(places, k) if focus == "components" else (places >= k).astype(np.int64)


def stands_out(values: Floats, labels: Labels, stage: Fraction, mu_squared: float) -> bool:
    """Whether to stop here: no later stage promises less lost variance, as far as these eigenvalues tell."""
    later = [other for other in STAGES if other > stage]
    here = forecast_loss(values, labels, stage, mu_squared)
    return bool(later) and all(here <= forecast_loss(values, labels, other, mu_squared) for other in later)


def forecast_loss(values: Floats, labels: Labels, stage: Fraction, mu_squared: float) -> float:
    """The lost variance to expect when the matrix gets ``stage`` of mu**2 and what crosses the blocks gets the rest.

    To first order the variance of the noise of a crossing entry over the gap of its pair; to second order, what the
    noise inside the blocks adds when they turn. No pair can lose more than its gap.
    """
    same = labels[:, None] == labels[None, :]
    gaps = np.maximum(np.abs(values[:, None] - values[None, :]), 1e-9)
    f, gain = float(stage), _gain(labels)
    variance = np.full(gaps.shape, 1 / (2 * mu_squared * (f + (1 - f) * gain)))
    if stage < 1:
        inverse = np.where(same, 0.0, 1 / gaps**2)
        variance += _SECOND * (same @ inverse + inverse @ same) / (2 * f * mu_squared) ** 2
    return float(np.minimum(variance / gaps, gaps)[~same].sum()) / 2


def _gain(labels: Labels) -> float:
    """How much more precise crossings are than a whole matrix at the same cost: 2 for two blocks, 3/2 for three."""
    number = len(set(labels.tolist()))
    return number / (number - 1)


def refined(values: Floats, vectors: Floats, crossing: Floats, weight: float) -> tuple[Floats, Floats]:
    """Eigenvalues and vectors once what crosses is known better; ``weight``: that of the new measurement.

    In its own eigenvectors the old matrix has nothing that crosses.
    """
    found, turned = decomposed(np.diag(values) + weight * crossing)
    return found, vectors @ turned


def of_matrix(matrix: Floats, mu_squared: Fraction, task: Task, start: Start, chosen: int | None = None) -> Components:
    """The leading eigenvectors of a released matrix: as many as were chosen before, or as its spectrum asks for."""
    values, vectors = decomposed(matrix)
    k = task.rank.choose(values) if chosen is None else chosen
    return _components((values, vectors), values, k, (mu_squared, start, "gauss")).times(task.max_rows)


def _components(found: tuple[Floats, Floats], spectrum: Floats, k: int, how: tuple[Fraction, Start, str]) -> Components:
    (values, vectors), (mu_squared, start, route) = found, how
    sd = 1 / math.sqrt(mu_squared)
    band = sd * edge(len(spectrum), 0.05 / len(STAGES))
    released = {"noise": sd}
    return Components(vectors[:, :k], values[:k], spectrum, band, float(spectrum.sum()), start, route, released)


def _plan(task: Task, proved: Theorem, on: str) -> Plan:
    mu_squared = task.mu_squared(Fraction(0))
    main = task.shares[2] * mu_squared
    sd = 1 / math.sqrt(main)
    noise = StepNoise(on, "gaussian", task.in_rows(sd), "rows")
    steps = task.steps(mu_squared, Step(RELEASE, StepKind.RELEASE, noise, Cost(mu_squared=main)))
    return Plan(proved.title, proved, steps, forecast=forecast(task, sd), budget=task.budget, unit=task.protects)


def forecast(task: Task, sd: float) -> Forecast:
    """What can be said without the data."""
    return noted("components-found", rows=task.in_rows(sd) * math.sqrt(2 * task.entries))
