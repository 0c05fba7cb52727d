"""A released number with the interval that its noise leaves, and the noisy number of rows behind it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A released number. Its interval is for the noise alone.

    It says nothing about people who are not in the table, and nothing about what was clipped away, where numbers are
    clipped in private: of a column with a heavy tail that may be more than the noise.

    Parameters
    ----------
    value : float
        The number; also ``float(estimate)``.
    error : float
        In 19 of 20 cases the noise is smaller than this.
    count : float, optional
        The noisy number of rows behind it, where that was released too.

    Examples
    --------
    >>> estimate = Estimate(41.5, 0.25, 1003.0)
    >>> estimate.lower, estimate.upper, float(estimate)
    (41.25, 41.75, 41.5)
    """

    value: float
    error: float
    count: float | None = None

    @property
    def lower(self) -> float:
        """The lower end of the interval that covers the number without noise (after any clip) in 19 of 20 cases."""
        return self.value - self.error

    @property
    def upper(self) -> float:
        """The upper end of that interval."""
        return self.value + self.error

    def __float__(self) -> float:
        return self.value
