"""Adapters for the vectors of statistics, by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp.accounting.bounded_range import mu_squared, range_at
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.order_statistics.rank_draw import (
    BaseMeasure,
    Points,
    RankDraw,
    RankTarget,
    levels_of,
)
from snugdp.mechanisms.order_statistics.several import halvings
from snugdp.tables.passes.counts.value_counts import ValueCounts
from tests.vectors.statistics_keys import KEYS
from tests.vectors.statistics_sums import STATISTICS_SUMS

Rows = list[int]


def _cells(x: Rows, lo: int, step: int) -> Any:
    return np.array([(value - lo) // step for value in x], dtype=np.int64)


def _levels(target: RankTarget, x: Rows, lo: int, hi: int, step: int) -> list[int]:
    _, count, level = levels_of(_cells(x, lo, step), target, (0, (hi - lo) // step))
    return [int(one) for one in np.repeat(level, count)]


def _groups(x: Rows, lo: int, hi: int, step: int, q: Rows) -> list[list[int]]:
    found = levels_of(_cells(x, lo, step), RankTarget.quantile(Fraction(*q)), (0, (hi - lo) // step))
    return [list(map(int, one)) for one in zip(*found, strict=True)]


def _logs(
    target: RankTarget, relation: str, eps: Rows, base: BaseMeasure, *, x: Rows, lo: int, hi: int, step: int
) -> list[float]:
    """Logarithms of the probabilities of all points, from the groups of the draw and its rate."""
    draw = RankDraw(target, Points(0, (hi - lo) // step, base), Fraction(*eps), Neighbours.of(relation))
    groups, rate = draw.groups(_cells(x, lo, step)).whole(), float(draw.rate)
    logs = math.log(2) * groups.weight - rate * groups.level
    total = np.logaddexp.reduce(logs + np.log(groups.count))
    order = np.argsort(groups.first)
    return [float(one) for one in np.repeat((logs - total)[order], groups.count[order])]


def _persons(*, persons: list[Rows], lo: int, hi: int, step: int, q: Rows, unit: int, cap: int) -> list[int]:
    """Rows count with weights: what a tally holds in place of numbers of rows."""
    weights: dict[int, int] = {}
    for rows in persons:
        weight = unit * min(len(rows), cap) // len(rows)
        for value in rows:
            weights[(value - lo) // step] = weights.get((value - lo) // step, 0) + weight
    tally = ValueCounts(np.array(sorted(weights)), np.array([weights[value] for value in sorted(weights)]))
    _, count, level = levels_of(tally, RankTarget.quantile(Fraction(*q)), (0, (hi - lo) // step))
    return [int(one) for one in np.repeat(level, count)]


def _plan(q: list[Rows]) -> list[list[int]]:
    return [[one.place, one.depth, one.q.numerator, one.q.denominator] for one in halvings([Fraction(*p) for p in q])]


STATISTICS: Mapping[str, Callable[..., Any]] = {
    "quantile_levels": lambda q, **data: _levels(RankTarget.quantile(Fraction(*q)), **data),
    "quantile_levels_replace": lambda rank, **data: _levels(RankTarget.rank(rank), **data),
    "quantile_offset_levels": lambda offset, **data: _levels(RankTarget.offset(offset), **data),
    "quantile_groups": _groups,
    "quantile_log_probabilities": lambda q, eps, relation, **data: _logs(
        RankTarget.quantile(Fraction(*q)), relation, eps, BaseMeasure.UNIFORM, **data
    ),
    "quantile_log_probabilities_replace": lambda rank, eps, **data: _logs(
        RankTarget.rank(rank), "replace", eps, BaseMeasure.UNIFORM, **data
    ),
    "quantile_log_probabilities_dyadic": lambda q, eps, **data: _logs(
        RankTarget.quantile(Fraction(*q)), "add_remove", eps, BaseMeasure.DYADIC, **data
    ),
    "bounded_range_mu": lambda range: math.sqrt(mu_squared(Fraction(range))),
    "mu_bounded_range": lambda mu: float(range_at(Fraction(mu) ** 2)),
    "recursive_plan": _plan,
    "person_weighted_levels": _persons,
    **KEYS,
    **STATISTICS_SUMS,
}
