"""A released number with the interval that its noise leaves, what clipping may hide, and the rows behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from snugdp.inference.equation import ContrastEstimate
from snugdp.inference.means import normal_contrast


@dataclass(frozen=True)
class Estimate:
    """A released number with its error: about the rows of the table, and where that was asked for, about others.

    ``lower`` and ``upper`` are about the rows of the table. Whatever was asked for with ``inference=True`` also knows
    ``conf_int()``, a confidence interval for the population that the rows were drawn from.

    Where numbers were clipped privately, the statistic of all rows may lie further out than the noise reaches:
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
        cases. None where that is not known: beyond bounds that were found privately, rows may lie anywhere.
    standard_error : float, optional
        Of sampling and privacy noise together; infinite where the noise leaves nothing to say.
    population_lower, population_upper : float, optional
        The 95 % confidence interval for the population, but for what clipping hides.

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
    standard_error: float | None = None
    population_lower: float | None = None
    population_upper: float | None = None

    @property
    def lower(self) -> float:
        """The lower end of the interval that covers the number without noise or clipping, in 19 of 20 cases."""
        return -math.inf if self.below is None else self.value - self.error - self.below

    @property
    def upper(self) -> float:
        """The upper end of that interval."""
        return math.inf if self.above is None else self.value + self.error + self.above

    def conf_int(self, *, clipping: bool = True) -> tuple[float, float]:
        """The 95 % confidence interval for the population: of sampling, privacy noise, and what clipping may hide.

        Beyond bounds that were found privately nothing is known, and nothing is in it.

        Parameters
        ----------
        clipping : bool, default=True
            Whether it has in it what clipping hides at most, which is often much more than what it hides.

        >>> Estimate(0.5, 0.01, above=0.1, standard_error=0.02, population_lower=0.46, population_upper=0.54).conf_int()
        (0.46, 0.64)
        """
        if self.population_lower is None or self.population_upper is None:
            raise ValueError("intervals for the population are released with inference=True")
        if not clipping:
            return self.population_lower, self.population_upper
        return self.population_lower - (self.below or 0.0), self.population_upper + (self.above or 0.0)

    def difference(self, other: Estimate, *, null: float = 0.0, alpha: float = 0.05) -> ContrastEstimate:
        """How much larger it is than another one about other rows, such as those of another group: interval and test.

        Parameters
        ----------
        other : Estimate
            About rows none of which are behind this one; both were asked for with ``inference=True``.
        null : float, default=0.0
            The value that is tested.
        alpha : float, default=0.05
            One minus the confidence of the interval.

        >>> one, two = (Estimate(value, 0.1, standard_error=0.3) for value in (5.0, 4.0))
        >>> found = one.difference(two)
        >>> round(found.lower, 2), round(found.upper, 2), found.p_value < 0.05
        (0.17, 1.83, True)
        """
        if self.standard_error is None or other.standard_error is None:
            raise ValueError("standard errors are released with inference=True: ask for both estimates with it")
        hidden = (self.below or 0.0) + (other.above or 0.0), (self.above or 0.0) + (other.below or 0.0)
        error = math.hypot(self.standard_error, other.standard_error)
        return normal_contrast(self.value - other.value, error, null=null, alpha=alpha, hidden=hidden)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        words = f"{with_digits(self.value, self.error)} ± {with_digits(self.error, self.error)} (95 %)"
        if self.population_lower is not None:
            low, high = (with_digits(end, self.error) for end in self.conf_int(clipping=False))
            words = f"{words}; population {low} to {high}"
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
