"""Adapters for the vectors of sums, means and contributions of persons: formulas of the notes, in exact numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

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
    """The draw by distance from a target rank. The library's has no target (``clipping.proof.md``, Theorem 1)."""
    rate, aim, slope = Fraction(*eps) / 2, Fraction(*target), Fraction(*tilt)
    above = [sum(total > cap for total in totals) for cap in caps]
    logs = [float(-rate * abs(rows - aim) - slope * place) for place, rows in enumerate(above)]
    whole = math.log(sum(map(math.exp, logs)))
    return [log - whole for log in logs]


def _kept(rows: list[list[int]], max_rows: int) -> dict[str, Any]:
    whose: dict[int, list[int]] = defaultdict(list)
    for person, value in rows:
        whose[person].append(value)
    kept = [[person, value] for person in sorted(whose) for value in sorted(whose[person])[:max_rows]]
    return {"kept": kept, "sum": sum(value for _, value in kept)}


def _capped(vector: list[int], cap: int) -> list[int]:
    square = sum(entry**2 for entry in vector)
    if square <= cap**2:
        return vector
    length = math.isqrt((square << 64) - 1) + 1
    return [(abs(entry) * cap << 32) // length * (1 if entry > 0 else -1) for entry in vector]


def _capped_sum(persons: list[list[int]], cap: int) -> list[int]:
    return [sum(entries) for entries in zip(*(_capped(vector, cap) for vector in persons), strict=True)]


def _gram_norm(rows: list[list[int]]) -> int:
    return sum(sum(a * b for a, b in zip(x, y, strict=True)) ** 2 for x, y in product(rows, repeat=2))


STATISTICS_SUMS: Mapping[str, Adapter] = {
    "mean_noise_std": _mean_noise,
    "mean_best_std": lambda half_width, offset, mu, n: (half_width + abs(offset)) / (n * mu),
    "mean_variance_squared_norm": _squared_norm,
    "cap_log_probabilities": _caps,
    "kept_rows": _kept,
    "l2_capped_sum": _capped_sum,
    "person_gram_norm_squared": _gram_norm,
}
