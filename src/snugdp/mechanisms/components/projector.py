"""The projector on the leading eigenvectors, with noise that a tested eigengap permits.

Proof: ``projector.proof.md``. The gap and the spread of the spectrum are released first; the projector is used only
where it loses less than Analyze Gauss to first order. The certified spectrum is ``numerics/eigenvalues.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.components.base import Components, ComponentsView, Floats, Start, Task, decomposed, edge
from snugdp.mechanisms.components.crossing import RELEASE, forecast, of_matrix
from snugdp.mechanisms.components.gap_test import KEPT, W0, GapCertificate, PairTest, SpectrumTest, sensitivity_above
from snugdp.mechanisms.components.noisy_matrix import floats, noisy_block, noisy_matrix, symmetric
from snugdp.mechanisms.linear.noisy_sums import root_above
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.scatter import Scatter

THEOREM = theorem("pca-projector/1")
_TESTED = "test-gap"

TEST, FAILURE = Fraction(1, 20), Fraction(1, 10)
_FINE = 1 << 16  # the grid of the projector is so much finer than its sensitivity


def numbers(budget: Budget, k: int, entries: int, noisy: tuple[Real, Real]) -> dict[str, float | bool]:
    """The noise and the decision for a noisy gap and a noisy spread, without numerical errors. For reading.

    >>> found = numbers(Budget(1, 1e-6), k=1, entries=64, noisy=(1150, 1232))
    >>> found["use_projector"], round(found["certified_gap"], 1)
    (True, 1046.9)
    """
    failure = FAILURE * budget.delta
    whole = Fraction(gaussian.mu(budget.epsilon, budget.delta - failure)) ** 2
    test = PairTest(k, entries, TEST * whole, failure, Fraction(0))
    gap = test.certified(rational(noisy[0], "the noisy gap"))
    tested = GapCertificate(k, gap, float(rational(noisy[1], "the noisy spread")), Start())
    left = math.sqrt((1 - TEST) * whole)
    return {
        "mu_test": math.sqrt(test.mu_squared),
        "mu_release": left,
        "gap_noise_std": float(test.sigma),
        "U_noise_std": float(test.spread_sigma),
        "certified_gap": float(gap),
        "use_projector": tested.wins,
        "noise_sigma": (float(sensitivity_above(gap)) if tested.wins else 1.0) / left,
    }


def noisy_projector(
    data: Secret[Scatter], view: ComponentsView, proved: tuple[int, Fraction], mu_squared: Fraction, noise: Noise
) -> tuple[Floats, float]:
    """The projector on the first k eigenvectors of X'X, and the deviation of its noise. ``proved``: k and a gap.

    Guarantee: mu-Gaussian DP under add/remove towards all neighbours of a table whose k-th gap is at least that, which
    is above 1, and ``KEPT`` (``projector.proof.md``, Lemma 4).
    """
    k, gap = proved
    sensitivity = sensitivity_above(gap)
    bits = math.ceil(view.entries * _FINE / sensitivity).bit_length()
    cell = Fraction(1, 2**bits)
    moved = sensitivity + KEPT / gap + view.entries * cell
    law = Gaussian(root_above((moved / cell) ** 2 / mu_squared))  # 5.
    grid = data.map(lambda s: s.spectrum(view.shift, view.unit).projector(k, bits))
    return floats(symmetric(grid, law, noise), 2**bits), float(law.sigma * cell)


@dataclass(frozen=True)
class Projector:
    """The tested projector, or Analyze Gauss where that is better.

    ``describe``: the part of what is left for the projector that measures the matrix inside the subspace, for the order
    of the components and their variances; without it they are in no order, and a test of one gap leaves no variances.

    Guarantee: the plan's cost, under add/remove, for all tables (``projector.proof.md``, Theorem 2).
    """

    task: Task
    describe: Fraction = Fraction(1, 20)

    def __post_init__(self) -> None:
        if self.task.rank.number == self.task.entries:
            raise ValueError(
                f"all components (n_features = {self.task.entries}) have no gap to test: ask for fewer, or for "
                'method="gauss"'
            )

    @property
    def _failure(self) -> Fraction:
        return FAILURE * self.task.budget.delta

    @property
    def _shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of mu**2: everything, the test, and what follows."""
        whole = self.task.mu_squared(self._failure)
        main = self.task.shares[2] * whole
        return whole, TEST * main, (1 - TEST) * main

    @property
    def _test(self) -> PairTest | SpectrumTest:
        task, share = self.task, self._shares[1]
        if task.rank.number is not None:
            return PairTest(task.rank.number, task.entries, share, self._failure)
        return SpectrumTest(task.rank, task.entries, share, self._failure)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        whole, test, rest = self._shares
        sd = 1 / math.sqrt(rest)
        on = "gap-and-spread" if self.task.rank.number is not None else "spectrum"
        tested = StepNoise(on, "gaussian", float(self._test.sigma), "rows")
        released = StepNoise("projector-or-matrix", "gaussian", sd, "rows")
        steps = (
            Step(_TESTED, StepKind.TEST, tested, Cost(mu_squared=test, delta=self._failure)),
            Step(RELEASE, StepKind.RELEASE, released, Cost(mu_squared=rest)),
        )
        return Plan(
            THEOREM.title,
            THEOREM,
            self.task.steps(whole, *steps),
            {"w0": float(W0)},
            forecast(self.task.entries, sd),
            self.task.budget,
        )

    def fit(self, data: Secret[Scatter], context: ReleaseContext) -> Outcome[Components]:
        """Pay, test, release."""
        return certify_and_release(self.plan(), self, self, data, context)

    def certify(self, data: Secret[Scatter], noise: Noise) -> GapCertificate:
        """The test."""
        start = self.task.begin(data, self._shares[0], noise)
        unit = self.task.unit
        return self._test.draw(data.map(lambda s: s.spectrum(start.shift, unit)), start, noise.at(_TESTED))  # 1.

    def draw(self, data: Secret[Scatter], certificate: GapCertificate, noise: Noise) -> Components:
        """What the test permits."""
        rest, task, view = self._shares[2], self.task, self.task.view(certificate.start)
        noise = noise.at(RELEASE)
        if not (certificate.wins and isinstance(certificate.gap, Fraction)):  # 4.
            found = noisy_matrix(data, view, rest, noise)
            return of_matrix(found, rest, task, certificate.start, certificate.k)
        inside = self.describe * rest
        released, sd = noisy_projector(data, view, (certificate.k, certificate.gap), rest - inside, noise)
        vectors = decomposed(released)[1][:, : certificate.k]
        block = noisy_block(data, view, vectors, inside, noise) if inside else None
        return _described(vectors, block, certificate, sd, float(inside))


def _described(
    vectors: Floats, block: Floats | None, certificate: GapCertificate, sd: float, inside: float
) -> Components:
    """The components of a projector: ordered, and with their sums of squares, by the block inside."""
    k, p = len(vectors.T), len(vectors)
    noisy = np.array(certificate.spectrum)
    totals = noisy[:k] if len(noisy) else np.full(k, np.nan)
    if block is not None:
        totals, turned = decomposed(block)
        vectors = vectors @ turned
    trace = float(noisy.sum()) if len(noisy) else float(totals.sum() + (p - k) * (totals.mean() - certificate.spread))
    if len(noisy):
        band = certificate.sd * gaussian.threshold(1, Fraction(1, 40 * p))
    else:
        band = edge(k) / math.sqrt(inside) if inside else math.inf
    shown = noisy if len(noisy) else totals
    released = {"noise": sd, "gap": float(certificate.gap), "spread": certificate.spread}
    return Components(vectors, totals, shown, band, trace, certificate.start, "projector", released)
