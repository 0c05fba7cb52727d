"""The levels of categories that nobody listed: those whose noisy counts reach a public threshold."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.bounds.looks.grid import share_missing
from snugdp.mechanisms.keys.selection import KeySelection
from snugdp.mechanisms.keys.threshold import shared_selection
from snugdp.tables.found import Flag, FoundLevels
from snugdp.tables.passes.counts.groups import GroupPass
from snugdp.tables.passes.counts.keys import KeyColumn, KeyKind

Shown: TypeAlias = Sequence[tuple[Any, int]]


def level_pass(name: str) -> GroupPass:
    """How many rows have each label, read as a listed category is read; what has none is missing."""
    return GroupPass((KeyColumn(name, KeyKind.LABEL),))


def level_selection(
    mu_squared: Fraction, failure: Fraction, neighbours: Neighbours, categories: int, columns: int
) -> KeySelection:
    """Noise and threshold for categories among all columns of a look, which have noise of the same size.

    Guarantee: a level that one row alone has is shown with probability at most ``failure / categories``
    (``looks.proof.md``, Theorem 1).
    """
    return shared_selection(mu_squared * Fraction(categories, columns), failure, neighbours, categories)


def found_levels(name: str, shown: Shown, missing: int, rows: float, sigma: float) -> FoundLevels:
    """The levels in their order, whole numbers first, with their shares of about so many rows."""
    column = level_pass(name).keys[0]
    by_level = {column.decoded(key[0]): count for key, count in shown}
    values = sorted(by_level, key=lambda level: (isinstance(level, str), level))
    shares = tuple(min(by_level[value] / max(rows, by_level[value]), 1.0) for value in values)
    flag = Flag.FOUND if values else Flag.NOT_FOUND
    return FoundLevels(tuple(values), shares, flag, float(share_missing(missing, rows, sigma)))


def rows_of_levels(shown: Sequence[Shown], missing: NDArray[np.float64]) -> float:
    """At least about so many rows there are: those of shown levels and without any, in one of the categories."""
    return max((sum(n for _, n in one) + lacking for one, lacking in zip(shown, missing, strict=True)), default=0.0)
