"""Least squares in place of a run, where rows are so many that its noise does not matter: one pass over the table.

Proof: ``least_squares.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.linear.noisy_sums import noisy_cross, noisy_gram
from snugdp.mechanisms.linear.sufficient import (
    FitUnits,
    NoisySpectrum,
    cross_floats,
    even_spectrum,
    forecast_of,
    gram_floats,
    solution_noise,
)
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy, Note
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows

Cells = list[list[int]]
Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-4  # of the variance of the target: what noise may add to the squared error of a prediction
_UNSEEN = 0.1  # of what chance alone leaves open in a direction, if nothing is explained: the variance of its noise
_CLEAR_EIGENVALUE = 4.0  # times the norm of the noise: from here on a direction is known
_CLEAR = 3.0  # deviations of noise


@dataclass(frozen=True)
class LeastSquares:
    """X'X again and X'y with noise, with what a run would have cost; and when that is the better end.

    ``gram``: mu of the noisy X'X that was released before. ``mean``: that of the mean of the targets, 0 without an
    intercept. ``squares``: that of y'y, which only the choice needs. ``mu_squared``: what the run would have had.
    ``basis``: orthonormal columns that span what is identified.

    Guarantee: ``draw`` costs ``mu_squared``, when one row comes or goes (``least_squares.proof.md``, Lemma 1).
    """

    design: Design
    gram: Fraction
    mean: Fraction
    squares: Fraction
    mu_squared: Fraction
    basis: tuple[tuple[float, ...], ...] | None = None

    @cached_property
    def _deviations(self) -> tuple[float, float]:
        """Of the noise of X'X, of both releases together, and of X'y; in units of the bounds."""
        half = float(self.mu_squared) / 2
        return 1 / math.sqrt(float(self.gram) ** 2 + half), 1 / math.sqrt(half)

    @property
    def _directions(self) -> Floats:
        return np.eye(self.design.entries) if self.basis is None else np.array(self.basis)

    def pays(self, gram: Cells, squares: float, centre: Fraction) -> bool:
        """Whether noise would add next to nothing, by what was released: X'X, y'y in squared bounds, and the mean."""
        own, basis = gram_floats(gram, self.design), self._directions
        values: Floats = np.linalg.eigvalsh(basis.T @ own @ basis).astype(np.float64)
        norm = math.sqrt(2 * len(values)) / float(self.gram)
        if values[0] < _CLEAR_EIGENVALUE * norm:
            return False
        values, spread = values - norm, self._spread(own, squares, centre)
        size = max(squares, 0.0) / float(values.min())  # no fitted line is larger than the targets
        added = self._noise(size) / values  # to the sum of all squared errors, by direction
        return bool(added.sum() <= _NEGLIGIBLE * spread and added.max() <= _UNSEEN * spread / max(self._rows(own), 1.0))

    def _noise(self, size: float) -> float:
        """The variance of what noise adds to an equation whose solution has such a squared length."""
        of_gram, of_cross = self._deviations
        return of_cross**2 + of_gram**2 * size / 2

    def _spread(self, gram: Floats, squares: float, centre: Fraction) -> float:
        """The squared distances of the targets from their mean, and no more than noise leaves certain."""
        sure = squares - _CLEAR / float(self.squares)
        if not self.design.row_map.constant:
            return sure
        part = float(centre / self.design.y_bound)
        return sure - part**2 * self._rows(gram) - 2 * _CLEAR * math.sqrt(2) / float(self.mean)

    def _rows(self, gram: Floats) -> float:
        """About how many there are, by the square of the constant; without one, if all are as long as they may be."""
        if not self.design.row_map.constant:
            return float(np.trace(gram))
        one = math.ldexp(1.0, 2 * self.design.row_map.bits) / self.design.row_map.limits.norm_squared
        return float(gram[-1, -1]) / one

    def draw(self, data: Secret[Rows], gram: Cells, centre: Fraction, noise: Noise) -> Fit:
        """Both sums, and the line that follows from them and from the first X'X."""
        design, units, basis, half = self.design, FitUnits.of(self.design), self._directions, self.mu_squared / 2
        again = gram_floats(noisy_gram(data, design, half, noise), design)  # 1
        right = cross_floats(noisy_cross(data, design, half, noise), design)  # 2
        first = float(self.gram) ** 2 / (float(self.gram) ** 2 + float(half))
        both = first * gram_floats(gram, design) + (1 - first) * again
        spectrum = NoisySpectrum.of(basis.T @ both @ basis)
        own = spectrum.solve(basis.T @ right, 0.0)  # 3
        variances = solution_noise(spectrum, 0.0, *self._deviations, float(np.linalg.norm(own)))
        deviations = np.sqrt((basis @ spectrum.vectors) ** 2 @ variances)
        counted = {"rows": self._rows(both)} if design.row_map.constant else {}
        details = {"lowest": spectrum.lowest * units.x**2, "centre": float(centre), **counted}
        return Fit(units.theta(basis @ own), deviations * units.y / units.x, details)

    def least_rows(self, size: float) -> int:
        """From how many rows on it pays, spread evenly over all directions; targets of such a size, in bounds."""
        d = self.design.entries
        noise = self._noise(d * size**2) / size**2
        return math.ceil(d * max(math.sqrt(noise / _NEGLIGIBLE), noise / _UNSEEN))

    def note(self, size: float) -> Note:
        """What a plan says of it, to two digits."""
        return Note("least-squares-with-many-rows", {"rows": int(float(f"{self.least_rows(size):.2g}"))})

    def forecast(self, rows: int, size: float) -> Accuracy:
        """For rows spread evenly, and targets of such a size, in bounds."""
        spectrum = even_spectrum(rows, self.design)
        length = size * math.sqrt(self.design.entries)
        return forecast_of(solution_noise(spectrum, 0.0, *self._deviations, length), self.design)
