"""Where rows lie and how long they are, in private: what decides how much noise a model needs. Proof: spread.proof.md.

The numbers in the comments are those of the proof's algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.scale import GaussianRelease, of_design
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.affine import AffineRows
from snugdp.tables.passes.distances import NormPass, RowSumPass
from snugdp.tables.rows import Rows

_MAX_DISTANCE = 2  # rows of norm 1 around a centre of norm 1
_CLEAR_BIN = 2.5  # a bin counts from so many deviations of its noise on
_GUESSED, _AT = 3.0, 3  # the guess, rows of 0.5 to 0.7 of the farthest, counts like so many deviations
_QUANTILE = 0.5  # so many of the rows are not shortened


@dataclass(frozen=True)
class Spread:
    """What is known before a fit: about where rows lie, how far from there, and how many there are. Released, noisy."""

    centre: tuple[float, ...]
    radius: float
    rows: float


@dataclass(frozen=True)
class MeanRow(GaussianRelease):
    """The mean of the features, shrunk towards the middle of their bounds. For rows with a constant.

    Guarantee: cost mu when one row comes or goes (``spread.proof.md``, Theorem 1).
    """

    design: Design
    mu: Fraction

    @property
    def deviation(self) -> Fraction:
        """Of the noise on a sum, in units of scaled rows."""
        return self.design.x_bound / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> tuple[float, ...]:
        """The released centre, one number for each feature, of norm at most 1."""
        unit = self.design.unit
        sums = rows.map(lambda r: _sums(of_design(r, self.design)))  # 1
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

    def draw(self, rows: Secret[Rows], noise: Noise, centre: Sequence[float]) -> Spread:
        """The released radius and number of rows."""
        counts = rows.map(lambda r: _norms(r, centre, self.bins))  # 1
        noisy = noise.add_integers(counts, Gaussian(1 / self.mu))  # 2
        radius, number = self.read(noisy)  # 3
        return Spread(tuple(centre), radius, number)

    def read(self, counts: Sequence[int]) -> tuple[float, float]:
        """The radius below which most rows lie, and the number of rows; bins below their noise do not count.

        >>> RowRadius(Fraction(1, 2)).read([0, 3, 0, 1, 2, 40, 600, 900, *[0] * 16])
        (0.1767766952966369, 1540.0)
        """
        deviation = float(1 / self.mu)
        clear = [float(count) if count > _CLEAR_BIN * deviation else 0.0 for count in counts]
        total = max(sum(clear), deviation)
        clear[_AT] += _GUESSED * deviation
        above = np.cumsum(clear)
        place = int(np.argmax(above >= (1 - _QUANTILE) * above[-1]))
        return _MAX_DISTANCE * 2.0 ** (-place / 2), total


def _sums(rows: Rows) -> list[int]:
    *sums, _ = rows.state(RowSumPass(rows.schema, rows.bits)).values()
    return sums


def _norms(rows: Rows, centre: Sequence[float], bins: int) -> list[int]:
    moved = AffineRows(rows, centre, 1.0, _MAX_DISTANCE)
    return moved.state(NormPass(moved.schema, None, bins)).values()
