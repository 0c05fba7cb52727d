"""Private scales: how large targets, or residuals at a released point, are. Proof: ``scale.proof.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from snugdp.core.guarantee import Cost
from snugdp.mechanisms.linear.base import Design
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.base import Pass, Sums, row_map
from snugdp.tables.passes.distances import ResidualHistogramPass, ScalePass
from snugdp.tables.passes.moments import Moments
from snugdp.tables.rows import Rows

Point = Sequence[float | Fraction] | None
_ROOT = Fraction(99, 70)  # not below the root of 2


class GaussianRelease:
    """What is released with Gaussian noise, ``mu`` being what it may cost."""

    mu: Fraction

    @property
    def cost(self) -> Cost:
        """A Gaussian release."""
        return Cost(mu=self.mu)


@dataclass(frozen=True)
class MeanSize(GaussianRelease):
    """The mean of min(|y - x . theta|, bound on y), as a part of that bound, shrunk towards a public guess.

    ``mu``: what it may cost, as a Gaussian release. ``guess`` counts like ``weight`` rows.

    Guarantee: cost mu when one row comes or goes (``scale.proof.md``, Theorem 1).
    """

    design: Design
    mu: Fraction
    guess: Fraction

    @property
    def weight(self) -> Fraction:
        """How many rows the guess counts for: a few deviations of the noise on the number of rows."""
        return 5 / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise, theta: Point = None) -> Fraction:
        """The released scale, in (0, 1]."""
        limit = self.design.row_map.target_limit
        sums = rows.map(lambda r: _values(r, self.design, ScalePass(r.schema, theta, r.bits)))
        near, far = noise.add_integers(sums, Gaussian(limit / self.mu))  # 1, 2
        size, count = max(Fraction(near, limit), Fraction(0)), max(Fraction(near + far, limit), Fraction(0))
        share = (min(size, count) + self.guess * self.weight) / (count + self.weight)  # 3
        return max(Fraction(math.ceil(share * 4096), 4096), Fraction(1, 4096))


@dataclass(frozen=True)
class MeanTarget(GaussianRelease):
    """The mean of the targets, shrunk towards the middle of their bounds: where the intercept may start.

    Guarantee: cost mu when one row comes or goes (``scale.proof.md``, Theorem 3).
    """

    design: Design
    mu: Fraction

    @property
    def deviation(self) -> Fraction:
        """Of the noise on the number of rows; that on the sum of targets is as many times their bound."""
        return _ROOT / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> Fraction:
        """The released mean, in the units of a scaled target."""
        limit = self.design.row_map.target_limit
        sums = rows.map(lambda r: _sums(of_design(r, self.design).moments(), self.design))
        total, count = noise.add_integers(sums, Gaussian(limit * self.deviation))  # 1, 2
        known = max(Fraction(count, limit), Fraction(0)) + 2 * self.deviation
        part = min(max(Fraction(total, limit) / known, Fraction(-1)), Fraction(1))  # 3
        return Fraction(round(part * 4096), 4096) * self.design.y_bound


@dataclass(frozen=True)
class SizeHistogram(GaussianRelease):
    """Noisy numbers of rows by the size of their residual, each bin smaller than the one before by the root of 2.

    Bin k holds B_y 2**(-(k+1)/2) <= |y - x . theta| < B_y 2**(-k/2); the first and the last also what lies beyond.

    Guarantee: cost mu when one row comes or goes, however many bins (``scale.proof.md``, Theorem 2).
    """

    design: Design
    mu: Fraction
    bins: int = 24

    @property
    def deviation(self) -> Fraction:
        """The standard deviation of the noise on a bin."""
        return 1 / self.mu

    @property
    def lower_ends(self) -> tuple[float, ...]:
        """The lower ends of the bins, in the units of a scaled target; the last is 0."""
        top = float(self.design.y_bound)
        return (*(top * 2 ** (-(k + 1) / 2) for k in range(self.bins - 1)), 0.0)

    def draw(self, rows: Secret[Rows], noise: Noise, theta: Point = None) -> list[int]:
        """The noisy counts, as whole numbers; some may be below zero."""
        counts = rows.map(
            lambda r: _values(r, self.design, ResidualHistogramPass(r.schema, theta, r.bits, count=self.bins))
        )
        return noise.add_integers(counts, Gaussian(self.deviation))  # 1


def _sums(moments: Moments, design: Design) -> list[int]:
    """The sum of the targets in cells, and the number of rows times the bound on a target."""
    total, rest = divmod(moments.cross()[-1], 1 << design.row_map.bits)
    if rest:  # the constant is 2**bits in every row
        raise ValueError("the sum of the targets needs rows with a constant")
    return [total, moments.count() * design.row_map.target_limit]


def of_design(rows: Rows, design: Design) -> Rows:
    """The rows, if theirs is this design: others have other sensitivities, and end like any private failure."""
    if row_map(rows.schema, rows.bits) != design.row_map:
        raise ValueError("the rows do not have the design that was planned for")
    return rows


def _values(rows: Rows, design: Design, work: Pass[Sums]) -> list[int]:
    return of_design(rows, design).state(work).values()
