"""Adapters for the vectors of sums, means and contributions of persons."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.persons.cap_draw import CapDraw
from snugdp.mechanisms.persons.contributions import gram_square, length_cut
from snugdp.propose.share import Share
from tests.accounting.atoms import exact

Adapter = Callable[..., Any]


def _mean_noise(half_width: float, offset: float, weight: float, mu: float, n: int) -> float:
    """The library's weight is fixed: w**2 = 1/3 (``mechanisms/statistics/moments.proof.md``, Lemma 2)."""
    h, m, w, size = exact(half_width), exact(offset), exact(weight), exact(mu) * n
    return math.sqrt((1 + w**2) * (h**2 + m**2 / w**2)) / float(size)


def _squared_norm(weight_count: float, weight_square: float) -> Fraction:
    w, v = exact(weight_count), exact(weight_square)
    return max(w**2 + t**2 + v**2 * (t**2 - Fraction(1, 2)) ** 2 for t in map(Fraction, (-1, 0, 1)))


def _caps(totals: list[int], caps: list[int], target: list[int], eps: list[int], tilt: list[int]) -> list[float]:
    share = Share(Fraction(*eps), Fraction(0), Neighbours.ADD_REMOVE)
    above = [sum(total > cap for total in totals) for cap in caps]
    draw = CapDraw(share, len(caps), Fraction(*target), Fraction(*tilt), Fraction(1, 2))  # the same on both sides
    logs = [float(score) for score in draw.scores(above)]
    whole = math.log(sum(map(math.exp, logs)))
    return [log - whole for log in logs]


def _kept(rows: list[list[int]], max_rows: int) -> dict[str, Any]:
    """By content. The library's order is that of a keyed hash (``tables/persons/persons.proof.md``, Theorem 1)."""
    whose: dict[int, list[int]] = defaultdict(list)
    for person, value in rows:
        whose[person].append(value)
    kept = [[person, value] for person in sorted(whose) for value in sorted(whose[person])[:max_rows]]
    return {"kept": kept, "sum": sum(value for _, value in kept)}


def _capped_sum(persons: list[list[int]], cap: int) -> list[int]:
    return [int(total) for total in length_cut(np.array(persons), cap).sum(axis=0)]


STATISTICS_SUMS: Mapping[str, Adapter] = {
    "mean_noise_std": _mean_noise,
    "mean_best_std": lambda half_width, offset, mu, n: (half_width + abs(offset)) / (n * mu),
    "mean_variance_squared_norm": _squared_norm,
    "cap_log_probabilities": _caps,
    "kept_rows": _kept,
    "l2_capped_sum": _capped_sum,
    "person_gram_norm_squared": gram_square,
}
