"""A released number with the interval that its noise leaves, what clipping may hide, and the rows behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A released number with its error. Its interval says nothing about people who are not in the table.

    Where numbers were clipped in private, the statistic of all rows may lie further out than the noise reaches:
    ``below`` and ``above`` say how far at most, and ``lower`` and ``upper`` have it in them.

    Parameters
    ----------
    value : float
        The number; also ``float(estimate)``.
    error : float
        In 19 of 20 cases the noise is smaller than this.
    count : float, optional
        The noisy number of rows behind it, where that was released too.
    below, above : float, optional
        How much less, or more, the number would be at most without clipping; more than that in fewer than 1 of 1,000
        cases. None where that is not known: beyond bounds that were found in private, rows may lie anywhere.

    Examples
    --------
    >>> estimate = Estimate(41.5, 0.25, 1003.0)
    >>> estimate.lower, estimate.upper, float(estimate)
    (41.25, 41.75, 41.5)
    >>> print(estimate, Estimate(41.5, 0.25, above=1.5), sep="; ")
    41.50 ± 0.25 (95 %); 41.50 ± 0.25 (95 %), and up to 1.50 more where numbers were clipped
    """

    value: float
    error: float
    count: float | None = None
    below: float | None = 0.0
    above: float | None = 0.0

    @property
    def lower(self) -> float:
        """The lower end of the interval that covers the number without noise or clipping, in 19 of 20 cases."""
        return -math.inf if self.below is None else self.value - self.error - self.below

    @property
    def upper(self) -> float:
        """The upper end of that interval."""
        return math.inf if self.above is None else self.value + self.error + self.above

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        words = f"{with_digits(self.value, self.error)} ± {with_digits(self.error, self.error)} (95 %)"
        if None in (self.below, self.above):
            return f"{words}, without what lies beyond the bounds that were found"
        sides = ((self.below, "less"), (self.above, "more"))
        hidden = [f"{with_digits(far, self.error)} {side}" for far, side in sides if far]
        return f"{words}, and up to {' or '.join(hidden)} where numbers were clipped" if hidden else words


def with_digits(value: float, error: float) -> str:
    """A number with the digits that its error leaves, and one more.

    >>> with_digits(37759.3, 236), with_digits(0.123456, 0.0021), with_digits(3e20, 1e15)
    ('37,759', '0.1235', '3e+20')
    """
    if not 1e-6 < error < 1e12 or abs(value) >= 1e15:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 1 - math.floor(math.log10(error)))}f}"
