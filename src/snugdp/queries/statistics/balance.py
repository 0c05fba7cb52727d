"""Counts that were released with noise column by column, made to agree: every column has the same number of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from snugdp.queries.estimate import Estimate


@dataclass(frozen=True)
class NoisyEntries:
    """The noisy number of rows with an entry in a column, and of those without one, with the variances of their noise.

    ``missing``: None where the number of rows is public, and the rest of it is missing.
    """

    entries: float
    variance: float
    missing: float | None = None
    missing_variance: float = 0.0

    @property
    def total(self) -> float:
        """The rows of this column, with the noise of both."""
        return self.entries + (self.missing or 0.0)

    @property
    def doubt(self) -> float:
        """The variance of that; never quite 0."""
        return max(self.variance + self.missing_variance, 1e-12)


def balanced(
    columns: Sequence[NoisyEntries], tail: float, rows: int | None = None
) -> tuple[Estimate, list[tuple[Estimate, Estimate]]]:
    """The rows of a table, and of every column those with an entry and those without: least squares.

    ``tail``: standard deviations that noise stays below in 19 of 20 cases. ``rows``: their number, where it is public.

    >>> total, ((entries, missing), _) = balanced([NoisyEntries(90, 1, 20, 1), NoisyEntries(100, 2, 0, 2)], 2.0)
    >>> round(total.value, 3), round(entries.value + missing.value, 3), round(total.error, 3)
    (106.667, 106.667, 2.309)
    """
    variance = 0.0 if rows is not None else 1 / sum(1 / one.doubt for one in columns)
    total = float(rows) if rows is not None else sum(one.total / one.doubt for one in columns) * variance
    split = [_split(one, max(total, 0.0), variance, tail) for one in columns]
    return Estimate(max(total, 0.0), tail * math.sqrt(variance)), split


def _split(one: NoisyEntries, total: float, variance: float, tail: float) -> tuple[Estimate, Estimate]:
    """What the total leaves goes to both by their variances; neither is negative."""
    if one.missing is None:
        missing, errors = total - one.entries, [tail * math.sqrt(one.variance)] * 2
    else:
        part = one.variance / one.doubt
        shared = one.variance * one.missing_variance / one.doubt
        missing = one.missing + (1 - part) * (total - one.total)
        errors = [tail * math.sqrt(shared + weight**2 * variance) for weight in (part, 1 - part)]
    missing = min(max(missing, 0.0), total)
    return Estimate(total - missing, errors[0]), Estimate(missing, errors[1])
