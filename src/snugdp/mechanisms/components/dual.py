"""A projector beside a noisy matrix that is its own test. Proof: ``projector.proof.md``, Theorem 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.components.base import Components, Floats, Task, decomposed, edge
from snugdp.mechanisms.components.crossing import RELEASE, MatrixDrawing, forecast, of_matrix
from snugdp.mechanisms.components.gap_test import KEPT, GapCertificate
from snugdp.mechanisms.components.noisy_matrix import floats, noisy_cells, noisy_matrix
from snugdp.mechanisms.components.projector import FAILURE, noisy_projector
from snugdp.mechanisms.linear.noisy_sums import root_above
from snugdp.noise import Noise
from snugdp.numerics import balls
from snugdp.numerics.eigenvalues import ACCURACY, spectrum
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.scatter import Scatter

THEOREM = theorem("pca-dual/1")
_FIRST = "test-matrix"

FIRST = Fraction(3, 10)  # of mu**2


@dataclass(frozen=True)
class Dual:
    """Analyze Gauss is its own test: the projector joins the first matrix, or a second one completes it.

    Without a gap it is Analyze Gauss with the whole budget, but for a tenth of delta; it needs larger gaps than a test
    of one number.

    Guarantee: the plan's cost, under add/remove, for all tables (``projector.proof.md``, Theorem 3).
    """

    task: Task

    @property
    def _failure(self) -> Fraction:
        return FAILURE * self.task.budget.delta

    @property
    def _shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of mu**2: everything, the first matrix, and what follows."""
        whole = self.task.mu_squared(self._failure)
        main = self.task.shares[2] * whole
        return whole, FIRST * main, (1 - FIRST) * main

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        whole, first, rest = self._shares
        sd = 1 / math.sqrt(first)
        steps = (
            Step(
                _FIRST,
                StepKind.TEST,
                StepNoise("matrix", "gaussian", sd, "rows"),
                Cost(mu_squared=first, delta=self._failure),
            ),
            Step(RELEASE, StepKind.RELEASE, StepNoise("projector-or-second-matrix", "gaussian"), Cost(mu_squared=rest)),
        )
        lines = forecast(self.task.entries, 1 / math.sqrt(first + rest))
        return Plan(THEOREM.title, THEOREM, self.task.steps(whole, *steps), forecast=lines, budget=self.task.budget)

    def fit(self, data: Secret[Scatter], context: ReleaseContext) -> Outcome[Components]:
        """Pay, test, release."""
        return release(self.plan(), MatrixDrawing(self._draw), data, context)

    def certified(self, cells: list[list[int]], k: int) -> Fraction:
        """A bound below the k-th gap of X'X that follows from the first matrix."""
        p, unit = self.task.entries, self.task.unit
        found = spectrum(cells, unit)
        tail = 2 * balls.rational_above(lambda: balls.ball(2 / self._failure).log())
        edges = (root_above(Fraction(2 * p)) + root_above(tail)) * root_above(1 / self._shares[1])
        wrong = Fraction(2 * p, unit) + Fraction(3, 2) * ACCURACY + KEPT + edges * Fraction(1, 2**40)
        return found.gap(k) - 2 * edges - wrong  # 6.

    def _draw(self, data: Secret[Scatter], noise: Noise) -> Components:
        task, (whole, first, rest) = self.task, self._shares
        start = task.begin(data, whole, noise)
        cells = noisy_cells(data, task.view(start), first, noise.at(_FIRST))
        one = floats(cells, task.unit)
        values, _ = decomposed(one)
        k = task.rank.choose(values)
        if k < task.entries:
            spread = float(values[:k].mean() - values[k:].mean())
            tested = GapCertificate(k, self.certified(cells, k), spread, start)
            if tested.wins and isinstance(tested.gap, Fraction):
                return self._joined(data, one, tested, noise.at(RELEASE))
        two = noisy_matrix(data, task.view(start), rest, noise.at(RELEASE))
        both = float(FIRST) * one + float(1 - FIRST) * two
        return of_matrix(both, first + rest, task, start, k)

    def _joined(self, data: Secret[Scatter], one: Floats, tested: GapCertificate, noise: Noise) -> Components:
        _, first, rest = self._shares
        assert isinstance(tested.gap, Fraction)
        k, view = tested.k, self.task.view(tested.start)
        two, sd = noisy_projector(data, view, (k, tested.gap), rest, noise)
        values, _ = decomposed(one)
        weight = float(first) * max(float(values[k - 1] - values[k]), 1.0)
        vectors = decomposed(weight * one + two / sd**2)[1][:, :k]
        totals, turned = decomposed(vectors.T @ one @ vectors)
        band = edge(self.task.entries) / math.sqrt(first)
        released = {"noise": sd, "gap": float(tested.gap), "spread": tested.spread}
        return Components(
            vectors @ turned, totals, values, band, float(values.sum()), tested.start, "projector", released
        )
