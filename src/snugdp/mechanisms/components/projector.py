"""The projector on the leading eigenvectors, with noise that a tested eigengap permits.

Proof: ``projector.proof.md``, whose line numbers the comments carry. What is released first, the gap and the spread of
the spectrum or a noisy matrix, bounds the gap; the projector is used only where it loses less than Analyze Gauss to
first order. Eigenvalues are those of X'X in units of what one person can add, so that a person raises them by at most
1 together. The certified spectrum is ``numerics/eigenvalues.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import ClassVar

import numpy as np
from flint import arb

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.components.base import (
    Components,
    ComponentsView,
    Floats,
    Rank,
    Start,
    Task,
    decomposed,
    edge,
    floats,
    noisy_block,
    noisy_cells,
    noisy_matrix,
)
from snugdp.mechanisms.components.crossing import RELEASE, forecast, of_matrix
from snugdp.mechanisms.linear.noisy_sums import symmetric
from snugdp.noise import Gaussian, Noise
from snugdp.numerics import balls
from snugdp.numerics.eigenvalues import ACCURACY, Spectrum
from snugdp.numerics.eigenvalues import spectrum as certified_spectrum
from snugdp.numerics.rationals import Real, rational, root_above
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release, release
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.scatter import Scatter

THEOREM, DUAL = theorem("pca-projector/1"), theorem("pca-dual/1")

W0 = Fraction(3, 10)  # how much the spread counts beside the gap
KEPT = 5 * ACCURACY  # a certified gap is below the true one by this much: for the errors of projectors
FAILURE = Fraction(1, 10)  # of delta
TEST, FIRST = Fraction(1, 20), Fraction(3, 10)  # of mu**2: the test of the gap; the first matrix
_TESTED, _FIRST = "test-gap", "test-matrix"
_GRID = -20  # released eigenvalues are multiples of 2**_GRID
_HALF_CELL = Fraction(1, 2 ** (1 - _GRID))
_FINE = 1 << 16  # the grid of the projector is so much finer than its sensitivity


def sensitivity(gap: Real, neighbours: Neighbours | str = "add_remove") -> float | None:
    """How far the projector on the leading eigenvectors can move, in Frobenius norm, when the gap is at least this.

    None where no gap above 1 (above 2, if a row is replaced) is left. Rounded up.

    Guarantee: for all tables with that gap and all their neighbours (``projector.proof.md``, Theorem 1).

    >>> round(sensitivity(2), 12), sensitivity(1)
    (0.366025403784, None)
    """
    size = rational(gap, "gap")
    if Neighbours.of(neighbours) is Neighbours.REPLACE:
        size /= 2
    return None if size <= 1 else balls.above(lambda: _turned(size))


def sensitivity_above(gap: Fraction) -> Fraction:
    """The same for add/remove, as a rational; the gap must be above 1."""
    return balls.rational_above(lambda: _turned(gap))


def _turned(gap: Fraction) -> arb:
    return arb(2).sqrt() * ((1 / balls.ball(gap)).asin() / 2).sin()


@lru_cache(maxsize=64)
def margin(sigma: Fraction, failure: Fraction) -> Fraction:
    """What noise of this deviation exceeds with probability ``failure`` at most."""
    return Fraction(gaussian.threshold(sigma, failure))


def certified_gaps(
    noisy: Sequence[Fraction], sigma: Fraction, failure: Fraction, most: int, slack: Fraction
) -> list[Fraction]:
    """Bounds below the first ``most`` gaps that hold together but with probability ``failure``.

    ``noisy``: eigenvalues with independent noise of deviation sigma, not sorted again. ``slack``: what a difference
    of two may be wrong by before the noise.

    Guarantee: ``projector.proof.md``, Lemma 3.
    """
    off = margin(root_above(2 * sigma**2), failure / most) + slack
    return [a - b - off for a, b in pairwise(noisy[: most + 1])]


@dataclass(frozen=True)
class GapCertificate:
    """What the test released: the number of components, a bound below their gap, and the spread of the spectrum.

    ``gap`` is minus infinity where there is none to look at. ``spectrum``: all noisy eigenvalues, if they were.
    """

    k: int
    gap: Fraction | float
    spread: float
    start: Start
    spectrum: tuple[float, ...] = ()
    sd: float = 0.0

    @property
    def wins(self) -> bool:
        """Whether the projector loses less variance than Analyze Gauss, to first order (``projector.proof.md``)."""
        if not isinstance(self.gap, Fraction) or self.gap <= 1:
            return False
        return max(self.spread, 0.0) * float(sensitivity_above(self.gap)) < 1


@dataclass(frozen=True, kw_only=True)
class GapTest:
    """A test of the gap. ``accuracy``: by which the eigenvalues may be wrong, in Euclidean norm.

    Guarantee: Gaussian DP with this mu, and ``gap`` is below the true gap, by ``KEPT``, but with probability
    ``failure`` (``projector.proof.md``, Lemmas 2 and 3).
    """

    entries: int
    mu_squared: Fraction
    failure: Fraction
    accuracy: Fraction = ACCURACY


@dataclass(frozen=True)
class PairTest(GapTest):
    """Releases the gap after the k-th eigenvalue, and by how much the first k exceed the others on average.

    Guarantee: that of ``GapTest`` (``projector.proof.md``, Lemma 2).
    """

    k: int

    @property
    def _smaller(self) -> int:
        return min(self.k, self.entries - self.k)

    @property
    def sigma(self) -> Fraction:
        """The deviation of the noise of the gap."""
        error = self.accuracy * root_above(2 + 2 * W0**2 * self._smaller)
        return root_above((root_above(1 + W0**2) + 2 * error) ** 2 / self.mu_squared)

    @property
    def spread_sigma(self) -> Fraction:
        """The deviation of the noise of the spread."""
        return self.sigma / (W0 * self._smaller)

    def certified(self, noisy_gap: Fraction) -> Fraction:
        """The bound that follows from a noisy gap."""
        slack = self.accuracy * Fraction(3, 2) + KEPT + _HALF_CELL if self.accuracy else 0
        return noisy_gap - margin(self.sigma, self.failure) - slack

    def draw(self, spectrum: Secret[Spectrum], start: Start, noise: Noise) -> GapCertificate:
        """One draw of both."""
        k = self.k
        gap = noise.add(spectrum.map(lambda s: s.gap(k)), Gaussian(self.sigma), grid=_GRID)  # 2.
        spread = noise.add(spectrum.map(lambda s: s.spread(k)), Gaussian(self.spread_sigma), grid=_GRID)
        return GapCertificate(k, self.certified(gap), float(spread), start)  # 3.


@dataclass(frozen=True)
class SpectrumTest(GapTest):
    """Releases all eigenvalues; the number of components may be any function of them.

    Guarantee: that of ``GapTest`` (``projector.proof.md``, Lemma 3).
    """

    rank: Rank

    @property
    def sigma(self) -> Fraction:
        """The deviation of the noise of every eigenvalue."""
        return root_above((1 + 2 * self.accuracy) ** 2 / self.mu_squared)

    def draw(self, spectrum: Secret[Spectrum], start: Start, noise: Noise) -> GapCertificate:
        """One draw of all."""
        law, p, values = Gaussian(self.sigma), self.entries, spectrum.map(lambda s: s.values)
        noisy = [noise.add(values.map(itemgetter(i)), law, grid=_GRID) for i in range(p)]  # 2.
        most = min(self.rank.most, p - 1)
        slack = self.accuracy * Fraction(3, 2) + KEPT + 2 * _HALF_CELL
        gaps = certified_gaps(noisy, self.sigma, self.failure, most, slack) if most else []  # 3.
        shown = np.array([float(value) for value in noisy])
        k = self.rank.choose(shown, np.array([float(gap) for gap in gaps]))
        spread = float(shown[:k].mean() - shown[k:].mean()) if k < p else 0.0
        gap = gaps[k - 1] if k <= most else -math.inf
        return GapCertificate(k, gap, spread, start, tuple(shown.tolist()), float(self.sigma))


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
class GapTested:
    """A projector behind a bound on its gap, which may fail. ``part``: of mu**2, what is released for the bound."""

    task: Task
    part: ClassVar[Fraction]

    @property
    def _failure(self) -> Fraction:
        return FAILURE * self.task.budget.delta

    @property
    def _shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of mu**2: everything, what is released for the bound, and what follows."""
        whole = self.task.mu_squared(self._failure)
        main = self.task.shares[2] * whole
        return whole, self.part * main, (1 - self.part) * main


@dataclass(frozen=True)
class Projector(GapTested):
    """The tested projector, or Analyze Gauss where that is better.

    ``describe``: the part of what is left for the projector that measures the matrix inside the subspace, for the order
    of the components and their variances; without it they are in no order, and a test of one gap leaves no variances.

    Guarantee: the plan's cost, under add/remove, for all tables (``projector.proof.md``, Theorem 2).
    """

    part: ClassVar[Fraction] = TEST
    describe: Fraction = Fraction(1, 20)

    def __post_init__(self) -> None:
        if self.task.rank.number == self.task.entries:
            raise ValueError(
                f"all components (n_features = {self.task.entries}) have no gap to test: ask for fewer, or for "
                'method="gauss"'
            )

    @property
    def _test(self) -> PairTest | SpectrumTest:
        task, share = self.task, self._shares[1]
        if task.rank.number is not None:
            return PairTest(task.rank.number, entries=task.entries, mu_squared=share, failure=self._failure)
        return SpectrumTest(task.rank, entries=task.entries, mu_squared=share, failure=self._failure)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        whole, test, rest = self._shares
        sd = 1 / math.sqrt(rest)
        on = "gap-and-spread" if self.task.rank.number is not None else "spectrum"
        tested = StepNoise(on, "gaussian", self.task.in_rows(float(self._test.sigma)), "rows")
        released = StepNoise("projector-or-matrix", "gaussian", self.task.in_rows(sd), "rows")
        steps = (
            Step(_TESTED, StepKind.TEST, tested, Cost(mu_squared=test, delta=self._failure)),
            Step(RELEASE, StepKind.RELEASE, released, Cost(mu_squared=rest)),
        )
        return Plan(
            THEOREM.title,
            THEOREM,
            self.task.steps(whole, *steps),
            {"w0": float(W0)},
            forecast(self.task, sd),
            self.task.budget,
            self.task.protects,
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
        return _described(vectors, block, certificate, sd, float(inside)).times(task.max_rows)


@dataclass(frozen=True)
class Dual(GapTested):
    """Analyze Gauss is its own test: the projector joins the first matrix, or a second one completes it.

    Without a gap it is Analyze Gauss with the whole budget, but for a tenth of delta; it needs larger gaps than a test
    of one number.

    Guarantee: the plan's cost, under add/remove, for all tables (``projector.proof.md``, Theorem 3).
    """

    part: ClassVar[Fraction] = FIRST

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        whole, first, rest = self._shares
        tested = StepNoise("matrix", "gaussian", self.task.in_rows(1 / math.sqrt(first)), "rows")
        steps = (
            Step(_FIRST, StepKind.TEST, tested, Cost(mu_squared=first, delta=self._failure)),
            Step(RELEASE, StepKind.RELEASE, StepNoise("projector-or-second-matrix", "gaussian"), Cost(mu_squared=rest)),
        )
        task, lines = self.task, forecast(self.task, 1 / math.sqrt(first + rest))
        return Plan(DUAL.title, DUAL, task.steps(whole, *steps), {}, lines, task.budget, task.protects)

    def fit(self, data: Secret[Scatter], context: ReleaseContext) -> Outcome[Components]:
        """Pay, test, release."""
        return release(self.plan(), self, data, context)

    def certified(self, cells: list[list[int]], k: int) -> Fraction:
        """A bound below the k-th gap of X'X that follows from the first matrix."""
        p, unit = self.task.entries, self.task.unit
        found = certified_spectrum(cells, unit)
        tail = 2 * balls.rational_above(lambda: balls.ball(2 / self._failure).log())
        edges = (root_above(Fraction(2 * p)) + root_above(tail)) * root_above(1 / self._shares[1])
        wrong = Fraction(2 * p, unit) + Fraction(3, 2) * ACCURACY + KEPT + edges * Fraction(1, 2**40)
        return found.gap(k) - 2 * edges - wrong  # 6.

    def draw(self, data: Secret[Scatter], noise: Noise) -> Components:
        """The first matrix, and what it permits."""
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
        found = Components(
            vectors @ turned, totals, values, band, float(values.sum()), tested.start, "projector", released
        )
        return found.times(self.task.max_rows)


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
