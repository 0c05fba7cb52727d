"""Population intervals of means and proportions from noisy sums, and of differences of groups. Post-processing.

Released are the number n of rows and the sum a of numbers between 0 and 1, with normal noise or nearly so. The interval
is the set of all means t at which ``a - t n`` is no farther from 0 than sampling and noise explain: Wilson's interval
with the noise in it for proportions, Fieller's for means, whose variance is released as well. Where the number of rows
is hardly more than its noise the interval is everything there is. Coverage is asymptotic, and no privacy claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from snugdp.inference.equation import ContrastEstimate

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class SampledMean:
    """Noisy numbers of rows and sums of numbers in [0, 1], of one group or of many.

    ``variance``: of a number; None for zeros and ones, whose mean tells it. ``noise``: the variances of the noise of
    the number of rows and of the sum, and their covariance.
    """

    rows: ArrayLike
    total: ArrayLike
    variance: ArrayLike | None
    noise: tuple[float, float, float]

    @property
    def mean(self) -> Floats:
        """Between 0 and 1; 1/2 where there may be no rows."""
        n, a = self._sums
        with np.errstate(all="ignore"):
            found: Floats = np.where(n > 0, np.clip(a / n, 0.0, 1.0), 0.5)
        return found

    @property
    def _sums(self) -> tuple[Floats, Floats]:
        return np.asarray(self.rows, dtype=np.float64), np.asarray(self.total, dtype=np.float64)

    @property
    def standard_error(self) -> Floats:
        """Of sampling and of noise; infinite where there may be no rows."""
        (n, _), m, (rows, total, both) = self._sums, self.mean, self.noise
        spread = m * (1 - m) if self.variance is None else np.asarray(self.variance, dtype=np.float64)
        with np.errstate(all="ignore"):
            square = n * spread + total - 2 * m * both + m**2 * rows
            found: Floats = np.where(n > 0, np.sqrt(np.maximum(square, 0.0)) / n, math.inf)
        return found

    def interval(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Of the mean of the population; [0, 1] where the sums say nothing.

        >>> low, high = SampledMean(3189, 522, None, (26.28, 13.14, 13.14)).interval()
        >>> round(float(low), 4), round(float(high), 4)
        (0.1511, 0.1771)
        """
        (n, a), (rows, total, both) = self._sums, self.noise
        z2 = float(ndtri(alpha / 2)) ** 2
        fixed = np.zeros_like(n) if self.variance is None else n * np.asarray(self.variance, dtype=np.float64)
        free = n if self.variance is None else np.zeros_like(n)  # of t (1 - t)
        square = n**2 + z2 * (free - rows)
        half = a * n + z2 * (free / 2 - both)
        constant = a**2 - z2 * (fixed + total)
        root = half**2 - square * constant
        with np.errstate(all="ignore"):
            low, high = (half - np.sqrt(root)) / square, (half + np.sqrt(root)) / square
        told = (n > 0) & (square > 0) & (root >= 0) & (high >= 0) & (low <= 1)
        return np.where(told, np.maximum(low, 0.0), 0.0), np.where(told, np.minimum(high, 1.0), 1.0)


def normal_contrast(
    estimate: float, standard_error: float, *, null: float = 0.0, alpha: float = 0.05, hidden: tuple[float, float]
) -> ContrastEstimate:
    """An estimate with a normal law: interval, and test of ``null``.

    ``hidden``: how much less, or more, it may be for other reasons. The whole line where the error is not finite.

    >>> found = normal_contrast(2.0, 1.0, hidden=(0.0, 0.0))
    >>> round(found.lower, 3), round(found.p_value, 4)
    (0.04, 0.0455)
    """
    if not 0 < alpha < 1:
        raise ValueError("alpha must be greater than 0 and less than 1, such as 0.05")
    if not math.isfinite(standard_error):
        return ContrastEstimate(estimate, math.inf, -math.inf, math.inf, 1.0, math.inf)
    less, more = hidden
    reach = -float(ndtri(alpha / 2)) * standard_error
    apart = max(estimate - less - null, null - estimate - more, 0.0)
    p_value = 1.0 if not apart else 2 * float(ndtr(-apart / standard_error)) if standard_error else 0.0
    return ContrastEstimate(
        estimate, standard_error, estimate - reach - less, estimate + reach + more, p_value, math.inf
    )
