"""What is looked at in private before a run: how large targets or residuals are, where rows lie and how long they are.

Proofs: ``scale.proof.md`` for targets, ``spread.proof.md`` for rows; the numbers in the comments are those of their
algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.core.guarantee import Cost
from snugdp.mechanisms.linear.base import Design, one_of_each
from snugdp.noise import Gaussian, Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.affine import AffineRows
from snugdp.tables.passes.base import Pass, Sums
from snugdp.tables.passes.vectors.distances import (
    NormPass,
    ResidualHistogramPass,
    ResidualSumPass,
    ScalePass,
    TargetHistogramPass,
)
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rows import Rows

Point = Sequence[float | Fraction] | None
_ROOT = Fraction(99, 70)  # not below the root of 2
_MAX_DISTANCE = 2  # rows of norm 1 around a centre of norm 1
_CLEAR_BIN = 2.5  # a bin counts from so many deviations of its noise on
_GUESSED, _AT = 3.0, 3  # the guess, rows of 0.5 to 0.7 of the farthest, counts like so many deviations
_GUESSED_SQUARE = 0.75  # the mean square that is guessed
_QUANTILE = 0.5  # so many of the rows are not shortened, where nobody says
_DOUBT = 4.0  # variances of its noise are taken off the square of a mean


class GaussianRelease:
    """What is released with Gaussian noise, ``mu`` being what it may cost."""

    mu: Fraction

    @property
    def cost(self) -> Cost:
        """A Gaussian release."""
        return Cost(mu=self.mu)

    def step(self, name: str, on: str, deviation: Fraction | None = None) -> Step:
        """The step of a plan; ``deviation``: of the noise, in rows, where that says something."""
        noise = StepNoise(on, "gaussian") if deviation is None else StepNoise(on, "gaussian", float(deviation), "rows")
        return Step(name, StepKind.STATISTIC, noise, self.cost)


@dataclass(frozen=True)
class DesignRelease(GaussianRelease):
    """One about rows of this design."""

    design: Design
    mu: Fraction


@dataclass(frozen=True)
class MeanSize(DesignRelease):
    """The mean of min(|y - x . theta|, bound on y), as a part of that bound, shrunk towards a public guess.

    ``mu``: what it may cost, as a Gaussian release. ``guess`` counts like ``weight`` rows.

    Guarantee: cost mu when one row comes or goes (``scale.proof.md``, Theorem 1).
    """

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
class MeanTarget(DesignRelease):
    """The mean of the targets, shrunk towards the middle of their bounds: where the intercept may start.

    Guarantee: cost mu when one row comes or goes (``scale.proof.md``, Theorem 3).
    """

    @property
    def deviation(self) -> Fraction:
        """Of the noise on the number of rows; that on the sum of targets is as many times their bound."""
        return _ROOT / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> Fraction:
        """The released mean, in the units of a scaled target."""
        limit = self.design.row_map.target_limit
        sums = rows.map(lambda r: _sums(one_of_each(r, self.design).moments(), self.design))
        total, count = noise.add_integers(sums, Gaussian(limit * self.deviation))  # 1, 2
        known = max(Fraction(count, limit), Fraction(0)) + 2 * self.deviation
        part = min(max(Fraction(total, limit) / known, Fraction(-1)), Fraction(1))  # 3
        return Fraction(round(part * 4096), 4096) * self.design.y_bound


@dataclass(frozen=True)
class TargetSum(DesignRelease):
    """The sum of the targets alone, where something else tells how many there are.

    Guarantee: cost mu when one row comes or goes (``scale.proof.md``, Theorem 7).
    """

    @property
    def deviation(self) -> Fraction:
        """Of the noise, in bounds on a target."""
        return 1 / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> float:
        """The released sum, in bounds on a target."""
        limit = self.design.row_map.target_limit
        sums = rows.map(lambda r: _sums(one_of_each(r, self.design).moments(), self.design)[:1])
        (total,) = noise.add_integers(sums, Gaussian(limit * self.deviation))  # 1
        return total / limit


@dataclass(frozen=True)
class SquareSum(DesignRelease):
    """The sum of the squared targets.

    Guarantee: cost mu when one row comes or goes (``scale.proof.md``, Theorem 4).
    """

    @property
    def deviation(self) -> Fraction:
        """Of the noise, in squared bounds."""
        return 1 / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> float:
        """The released sum, in squared bounds on a target."""
        square = self.design.row_map.target_limit**2
        sums = rows.map(lambda r: [one_of_each(r, self.design).moments().square()])
        (total,) = noise.add_integers(sums, Gaussian(square / self.mu))
        return total / square


@dataclass(frozen=True)
class TargetHistogram(DesignRelease):
    """Noisy numbers of rows by their target, in bins of one width between its bounds.

    Guarantee: cost mu when one row comes or goes, however many bins (``scale.proof.md``, Theorem 6).
    """

    bins: int = 12

    @property
    def deviation(self) -> Fraction:
        """The standard deviation of the noise on a bin."""
        return 1 / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> list[int]:
        """The noisy counts, from the lower bound up; some may be below zero."""
        counts = rows.map(lambda r: _values(r, self.design, TargetHistogramPass(r.schema, r.bits, self.bins)))
        return noise.add_integers(counts, Gaussian(self.deviation))  # 1


@dataclass(frozen=True)
class MeanResidual(DesignRelease):
    """How far the mean of the targets lies above a line that was released, as far as that is not noise.

    Guarantee: cost mu when one row comes or goes (``scale.proof.md``, Theorem 5).
    """

    def draw(self, rows: Secret[Rows], noise: Noise, theta: Point, clip: Fraction, count: float) -> Fraction:
        """The released distance; residuals are clipped to ``clip``. ``count``: about how many rows there are."""
        cells = max(math.floor(clip / self.design.unit), 1)
        sums = rows.map(lambda r: _values(r, self.design, ResidualSumPass(r.schema, theta, r.bits, clip=cells)))
        (total,) = noise.add_integers(sums, Gaussian(cells / self.mu))  # 1
        noisy = total / float(cells / self.mu)  # in deviations
        part = max(0.0, 1 - _DOUBT / noisy**2) if noisy else 0.0  # 2
        return Fraction(part * total / count) * self.design.unit


@dataclass(frozen=True)
class SizeHistogram(DesignRelease):
    """Noisy numbers of rows by the size of their residual, each bin smaller than the one before by the root of 2.

    Bin k holds B_y 2**(-(k+1)/2) <= |y - x . theta| < B_y 2**(-k/2); the first and the last also what lies beyond.

    Guarantee: cost mu when one row comes or goes, however many bins (``scale.proof.md``, Theorem 2).
    """

    bins: int = 24

    @property
    def deviation(self) -> Fraction:
        """The standard deviation of the noise on a bin."""
        return 1 / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise, theta: Point = None) -> list[int]:
        """The noisy counts, as whole numbers; some may be below zero."""
        counts = rows.map(
            lambda r: _values(r, self.design, ResidualHistogramPass(r.schema, theta, r.bits, count=self.bins))
        )
        return noise.add_integers(counts, Gaussian(self.deviation))  # 1


@dataclass(frozen=True)
class TargetLooks:
    """What is looked at before a line is fitted: the mean of the targets, if it has an intercept, and their sizes.

    Guarantee: ``cost``, when one row comes or goes (``scale.proof.md``, Theorems 2 and 3).
    """

    centre: MeanTarget | None
    sizes: SizeHistogram

    @property
    def cost(self) -> Cost:
        """Of both."""
        return self.sizes.cost if self.centre is None else self.centre.cost + self.sizes.cost

    def steps(self) -> tuple[Step, ...]:
        """Those of a plan."""
        mean = () if self.centre is None else (self.centre.step("centre", "mean-target"),)
        return (*mean, self.sizes.step("sizes", "target-sizes", self.sizes.deviation))

    def draw(self, rows: Secret[Rows], noise: Noise) -> tuple[Fraction, list[int]]:
        """The released mean, 0 without an intercept, and the noisy counts of distances from it by size."""
        centre = self.draw_centre(rows, noise)
        return centre, self.draw_sizes(rows, centre, noise)

    def draw_centre(self, rows: Secret[Rows], noise: Noise) -> Fraction:
        """The released mean, 0 without an intercept."""
        return Fraction(0) if self.centre is None else self.centre.draw(rows, noise.at("centre"))

    def draw_sizes(self, rows: Secret[Rows], centre: Fraction, noise: Noise) -> list[int]:
        """The noisy counts of distances from a centre that was released."""
        return self.sizes.draw(rows, noise.at("sizes"), constant_at(centre, self.sizes.design))


def constant_at(centre: Fraction, design: Design) -> tuple[Fraction, ...]:
    """The line that is the same everywhere."""
    return (*(Fraction(0),) * (design.entries - 1), centre)


@dataclass(frozen=True)
class Spread:
    """What is known before a fit: about where rows lie, how far from there, and how many there are. Released, noisy.

    ``square``: the mean square of their distances, in parts of the radius and each at most 1.
    """

    centre: tuple[float, ...]
    radius: float
    rows: float
    square: float = 1.0


@dataclass(frozen=True)
class MeanRow(DesignRelease):
    """The mean of the features, shrunk towards the middle of their bounds. For rows with a constant.

    Guarantee: cost mu when one row comes or goes (``spread.proof.md``, Theorem 1).
    """

    @property
    def deviation(self) -> Fraction:
        """Of the noise on a sum, in units of scaled rows."""
        return self.design.x_bound / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> tuple[float, ...]:
        """The released centre, one number for each feature, of norm at most 1."""
        unit = self.design.unit
        sums = rows.map(lambda r: one_of_each(r, self.design).sums()[:-1])  # 1
        *totals, count = noise.add_integers(sums, Gaussian(self.deviation / unit))  # 2
        return self._centre([float(total * unit) for total in totals], float(count * unit))  # 3

    def _centre(self, totals: Sequence[float], count: float) -> tuple[float, ...]:
        """Sums over the number of rows, less the part that noise alone would make up."""
        deviation = float(self.deviation)
        known = max(count, 0.0) + 2 * deviation
        mean = np.array(totals) / known
        square, noise = float(mean @ mean), len(mean) * (deviation / known) ** 2
        mean *= max(0.0, 1 - noise / square) if square else 0.0
        mean /= max(1.0, math.sqrt(float(mean @ mean)))
        return tuple(mean.tolist())


@dataclass(frozen=True)
class RowRadius(GaussianRelease):
    """How far most rows lie from a released centre, and about how many there are, from a noisy histogram.

    Guarantee: cost mu when one row comes or goes, for any centre that is public or was released before
    (``spread.proof.md``, Theorem 2).
    """

    mu: Fraction
    bins: int = 24
    clear: float = _CLEAR_BIN
    squares: bool = False
    kept: float = _QUANTILE

    def draw(self, rows: Secret[Rows], noise: Noise, centre: Sequence[float]) -> Spread:
        """The released radius and number of rows."""
        counts = rows.map(lambda r: _norms(r, centre, self.bins))  # 1
        noisy = noise.add_integers(counts, Gaussian(1 / self.mu))  # 2
        radius, number = self.read(noisy)  # 3
        return Spread(tuple(centre), radius, number, self.square(noisy, radius) if self.squares else 1.0)

    def read(self, counts: Sequence[int]) -> tuple[float, float]:
        """The radius below which most rows lie, and the number of rows; bins below their noise do not count.

        >>> RowRadius(Fraction(1, 2)).read([0, 3, 0, 1, 2, 40, 600, 900, *[0] * 16])
        (0.1767766952966369, 1540.0)
        """
        deviation = float(1 / self.mu)
        clear = self._clear(counts)
        total = max(sum(clear), deviation)
        clear[_AT] += _GUESSED * deviation
        above = np.cumsum(clear)
        place = int(np.argmax(above >= (1 - self.kept) * above[-1]))
        return _MAX_DISTANCE * 2.0 ** (-place / 2), total

    def square(self, counts: Sequence[int], radius: float) -> float:
        """The mean square of distances, in parts of the radius and each at most 1; a guess counts like in ``read``.

        >>> round(RowRadius(Fraction(1, 2)).square([0] * 6 + [600, 900] + [0] * 16, 0.25), 3)
        0.496
        """
        guessed = _GUESSED * float(1 / self.mu)
        middles = (_MAX_DISTANCE / radius) ** 2 * 2.0 ** -(np.arange(self.bins) + 0.5)
        clear = np.array(self._clear(counts))
        return (float(clear @ np.minimum(middles, 1.0)) + _GUESSED_SQUARE * guessed) / (float(clear.sum()) + guessed)

    def _clear(self, counts: Sequence[int]) -> list[float]:
        """The counts that are well above their noise, and 0 in place of the others."""
        return [float(count) if count > self.clear * float(1 / self.mu) else 0.0 for count in counts]


def _sums(moments: Moments, design: Design) -> list[int]:
    """The sum of the targets in cells, and the number of rows times the bound on a target."""
    total, rest = divmod(moments.cross()[-1], 1 << design.row_map.bits)
    if rest:  # the constant is 2**bits in every row
        raise ValueError("the sum of the targets needs rows with a constant")
    return [total, moments.count() * design.row_map.target_limit]


def _values(rows: Rows, design: Design, work: Pass[Sums]) -> list[int]:
    return one_of_each(rows, design).state(work).values()


def _norms(rows: Rows, centre: Sequence[float], bins: int) -> list[int]:
    moved = AffineRows(rows.one, centre, 1.0, _MAX_DISTANCE)
    return moved.state(NormPass(moved.schema, None, bins)).values()
