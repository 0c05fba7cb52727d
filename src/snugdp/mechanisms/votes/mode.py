"""The most frequent of a public list of categories, released exactly when it is stable."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[np.int64]
Relation: TypeAlias = Literal["add_remove", "replace"]


def winner(counts: Counts) -> int:
    """The category with the most rows; of equals, the one listed first.

    >>> winner(np.array([2, 5, 5]))
    1
    """
    _check(counts)
    return int(counts.argmax())


def distance(counts: Counts, relation: Relation) -> int | float:
    """How many rows must change before one more change can move the mode.

    Formal guarantee: 1-Lipschitz, and 0 exactly where one change of a row can move the mode, also when
    some rows belong to no listed category (mode.proof.md, Theorem 1).

    >>> distance(np.array([14, 31, 8, 2]), "add_remove"), distance(np.array([14, 31, 8, 2]), "replace")
    (16, 8)
    """
    best = winner(counts)  # 1
    if counts.size == 1:
        return math.inf  # 2
    need = (counts[best] - counts).astype(np.int64)  # 3
    need[best + 1 :] += 1
    need[best] = np.iinfo(np.int64).max
    fewest = int(need.min())
    if relation == "replace":
        return (fewest + 1) // 2 - 1  # 4
    return fewest - 1


def _check(counts: Counts) -> None:
    if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu":
        raise ValueError("counts must be one whole number for each listed category")
