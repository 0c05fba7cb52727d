"""The test of an eigengap: how far a row can turn the projector, and what is released to be sure of it.

Proof: ``projector.proof.md``. Eigenvalues are those of X'X in units of what one row can add, so that a row raises
them by at most 1 together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf

import numpy as np
from flint import arb

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.components.base import Rank, Start
from snugdp.mechanisms.linear.noisy_sums import root_above
from snugdp.noise import Gaussian, Noise
from snugdp.numerics import balls
from snugdp.numerics.eigenvalues import ACCURACY, Spectrum
from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.secret import Secret

W0 = Fraction(3, 10)
KEPT = 5 * ACCURACY  # a certified gap is below the true one by this much: for the errors of projectors
_GRID = -20  # released eigenvalues are multiples of 2**_GRID
_HALF_CELL = Fraction(1, 2 ** (1 - _GRID))


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


@dataclass(frozen=True)
class PairTest:
    """Releases the gap after the k-th eigenvalue, and by how much the first k exceed the others on average.

    ``accuracy``: by which the eigenvalues may be wrong, in Euclidean norm.

    Guarantee: Gaussian DP with this mu, and ``gap`` is below the true gap, by ``KEPT``, but with probability
    ``failure`` (``projector.proof.md``, Lemma 2).
    """

    k: int
    entries: int
    mu_squared: Fraction
    failure: Fraction
    accuracy: Fraction = ACCURACY

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
class SpectrumTest:
    """Releases all eigenvalues; the number of components may be any function of them.

    Guarantee: Gaussian DP with this mu, and ``gap`` is below the true gap, by ``KEPT``, but with probability
    ``failure`` (``projector.proof.md``, Lemma 3).
    """

    rank: Rank
    entries: int
    mu_squared: Fraction
    failure: Fraction
    accuracy: Fraction = ACCURACY

    @property
    def sigma(self) -> Fraction:
        """The deviation of the noise of every eigenvalue."""
        return root_above((1 + 2 * self.accuracy) ** 2 / self.mu_squared)

    def draw(self, spectrum: Secret[Spectrum], start: Start, noise: Noise) -> GapCertificate:
        """One draw of all."""
        law, p = Gaussian(self.sigma), self.entries
        noisy = [noise.add(spectrum.map(_value(i)), law, grid=_GRID) for i in range(p)]  # 2.
        most = min(self.rank.most, p - 1)
        slack = self.accuracy * Fraction(3, 2) + KEPT + 2 * _HALF_CELL
        gaps = certified_gaps(noisy, self.sigma, self.failure, most, slack) if most else []  # 3.
        values = np.array([float(value) for value in noisy])
        k = self.rank.choose(values, np.array([float(gap) for gap in gaps]))
        spread = float(values[:k].mean() - values[k:].mean()) if k < p else 0.0
        gap = gaps[k - 1] if k <= most else -inf
        return GapCertificate(k, gap, spread, start, tuple(values.tolist()), float(self.sigma))


def _value(place: int) -> Callable[[Spectrum], Fraction]:
    return lambda spectrum: spectrum.values[place]
