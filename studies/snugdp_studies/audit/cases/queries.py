"""Median, quantile, trimmed mean, mode, vote and bounds: one number or one label about a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

import snugdp
from snugdp.audit.finding import Case
from snugdp.certify.distance import DistanceTest, integer_laplace
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.order_statistics import median as _median
from snugdp.mechanisms.order_statistics import quantile as _quantile
from snugdp.mechanisms.order_statistics import trimmed_mean as _trimmed
from snugdp.noise import Noise
from snugdp_studies.audit.cases.tables import ODD, Generator, near, one_of

Rows: TypeAlias = list[Any]
Pair: TypeAlias = tuple[Rows, Rows]
EPSILON, DELTA = 1, 0.01
HIGH, BETA = 4, 1  # bounds are (0, HIGH); one row may move the answer by BETA
ROWS = 41  # where their number is public
BOUNDS, AROUND = (0, HIGH), (-1, HIGH - 1)
_RELATIONS = ("add_remove", "replace")


def cases() -> Iterator[Case[Rows]]:
    """All of them."""
    yield from _medians()
    yield from _by_rank()
    yield from _trimmed_means()


def _threshold(epsilon: float) -> int:
    """Where the test of a distance passes in about every second case."""
    test: DistanceTest[Any] = integer_laplace(lambda _: 0, epsilon=epsilon, delta=DELTA, neighbours=Neighbours.REPLACE)
    return int(test.threshold)


def _border(
    pairs: Iterable[Pair],
    distance: Callable[[Any], int | float],
    value: Callable[[Any], int],
    *,
    threshold: int,
    beta: int = BETA,
) -> list[Pair]:
    """Pairs that a test and a release tell apart as well as they may: at the threshold, and where the test must fail.

    One where both the distance and the value move as far as they can with the distance at its threshold, and one of
    distance 0 whose value moves farther than was proposed: it is released with the test's failure probability.
    """
    found: dict[tuple[int, int, int], Pair] = {}
    for first, second in pairs:
        one, other = (np.sort(np.array(rows, dtype=np.int64)) for rows in (first, second))
        low, high = sorted((distance(one), distance(other)))
        moved = abs(value(one) - value(other))
        if low >= 1 and math.isfinite(high):
            found.setdefault((-(high == threshold), -int(high - low), -min(moved, beta)), (first, second))
        if moved > beta and math.isfinite(high):  # whatever its distance is said to be: 0 is true
            found.setdefault((-2, -int(high), -moved), (first, second))
    best = [min((key for key in found if (key[0] == -2) is failing), default=None) for failing in (False, True)]
    return [found[key] for key in best if key is not None]


def _few_values(n: int, most: int) -> Iterator[Rows]:
    """Multisets of the values 0, BETA and HIGH, of the last at most so many."""
    for low in range(n + 1):
        for high in range(min(most, n - low) + 1):
            yield [0] * low + [BETA] * (n - low - high) + [HIGH] * high


def _added(sizes: Iterable[int]) -> Iterator[Pair]:
    for rows in (rows for n in sizes for rows in _few_values(n, 3)):
        for extra in (0, BETA, HIGH):
            yield [*rows, extra], rows


def _replaced(n: int) -> Iterator[Pair]:
    for rows in _few_values(n - 1, n - 1):
        for one, other in ((0, BETA), (0, HIGH), (BETA, HIGH)):
            yield [*rows, one], [*rows, other]


def _random(relation: str, rows: int | None = None) -> Callable[[Generator], Pair]:
    def cell(generator: Generator) -> Any:
        return one_of(generator, (0, BETA, HIGH, round(float(generator.uniform(0, HIGH)), 1)))

    def odd(generator: Generator) -> Any:
        return one_of(generator, (*ODD, None, "word", True, -1, HIGH + 1, BETA + 2.0**-40))

    def pair(generator: Generator) -> Pair:
        least, most = (1, 45) if rows is None else (rows - 1, rows - 1)
        return near(generator, cell, odd, relation=relation, least=least, most=most)

    return pair


def _medians() -> Iterator[Case[Rows]]:
    budget: dict[str, Any] = {"bounds": BOUNDS, "epsilon": EPSILON, "delta": DELTA}
    for name, beta, share in (("median", BETA, 0.5), ("median: as it is", 0, 1.0)):
        query = snugdp.Median(beta=beta, **budget)
        yield Case(
            name=name,
            group="queries",
            run=_released(query),
            cost=query.plan().cost,
            worst=partial(_median_pairs, beta, share),
            random=_random("add_remove"),
        )
    rank = (ROWS + 1) // 2
    yield _ranked("median: replace", snugdp.Median(beta=BETA, rows=ROWS, neighbours="replace", **budget), rank)


def _by_rank() -> Iterator[Case[Rows]]:
    query = snugdp.Quantile(q=0.6, bounds=BOUNDS, epsilon=EPSILON, delta=DELTA, beta=BETA, rows=ROWS)
    yield _ranked("quantile", query, math.ceil(0.6 * ROWS))

    def by_function(rows: Rows, noise: Noise) -> Any:
        return snugdp.quantile(rows, 0.6, bounds=BOUNDS, epsilon=EPSILON, delta=DELTA, beta=BETA, noise=noise)

    def median_by_function(rows: Rows, noise: Noise) -> Any:
        return snugdp.median(rows, bounds=AROUND, epsilon=EPSILON, delta=DELTA, beta=HIGH, noise=noise)

    def at(rank: int) -> Callable[[], list[Pair]]:
        return lambda: _rank_pairs(rank)

    yield Case(
        name="quantile: in one call",
        group="queries",
        run=by_function,
        cost=query.plan().cost,
        worst=at(math.ceil(0.6 * ROWS)),
        random=_random("replace", ROWS),
    )
    bounded = snugdp.Median(bounds=AROUND, epsilon=EPSILON, delta=DELTA, beta=HIGH)
    low, high = AROUND
    yield Case(
        name="median: in one call, without a test",
        group="queries",
        run=median_by_function,
        cost=bounded.plan().cost,
        worst=lambda: [([low] * 5 + [high] * 6, [low] * 5 + [high] * 5), ([high], [])],
        random=_random("add_remove"),
    )


def _released(query: snugdp.Median | snugdp.Quantile | snugdp.TrimmedMean) -> Callable[[Rows, Noise], Any]:
    return lambda rows, noise: query.release(rows, noise=noise)


@cache
def _median_pairs(beta: int, share: float) -> list[Pair]:
    return _border(
        _added(range(3, 25)),
        lambda rows: _median.distance(rows, 0, HIGH, beta),
        lambda rows: int(_median.value(rows, 0)),
        threshold=_threshold(EPSILON * share),
        beta=beta,
    )


@cache
def _rank_pairs(rank: int) -> list[Pair]:
    return _border(
        _replaced(ROWS),
        lambda rows: _quantile.distance(rows, rank, 0, HIGH, BETA),
        lambda rows: int(_quantile.value(rows, rank, 0)),
        threshold=_threshold(EPSILON / 2),
    )


def _ranked(name: str, query: snugdp.Median | snugdp.Quantile, rank: int) -> Case[Rows]:
    return Case(
        name=name,
        group="queries",
        run=lambda rows, noise: query.release(rows, noise=noise),
        cost=query.plan().cost,
        worst=lambda: _rank_pairs(rank),
        random=_random("replace", ROWS),
    )


def _trimmed_means() -> Iterator[Case[Rows]]:
    trim, share = 12, 0.3
    kept = ROWS - 2 * trim
    query = snugdp.TrimmedMean(
        trim=share, bounds=BOUNDS, epsilon=EPSILON, delta=DELTA, beta=(BETA + 2.0**-20) / kept, rows=ROWS
    )
    yield Case(
        name="trimmed mean",
        group="queries",
        run=lambda rows, noise: query.release(rows, noise=noise),
        cost=query.plan().cost,
        worst=lambda: _border(
            _replaced(ROWS),
            lambda rows: _trimmed.distance(rows, trim, 0, HIGH, (BETA + 2.0**-20) / kept),
            lambda rows: _trimmed.total(rows, trim),
            threshold=_threshold(EPSILON / 2),
        ),
        random=_random("replace", ROWS),
    )

    def everywhere(rows: Rows, noise: Noise) -> Any:
        return snugdp.trimmed_mean(rows, trim=share, bounds=AROUND, epsilon=EPSILON, noise=noise)

    plain = snugdp.TrimmedMean(trim=share, bounds=AROUND, epsilon=EPSILON, rows=ROWS)
    low, high = AROUND
    missing = [math.nan] * (ROWS - 3)
    yield Case(
        name="trimmed mean: without a test",
        group="queries",
        run=everywhere,
        cost=plain.plan().cost,
        worst=lambda: [
            ([low] * 12 + [high] * 29, [low] * 13 + [high] * 28),
            ([low, high, high, *missing], [low, low, high, *missing]),
        ],
        random=_random("replace", ROWS),
    )
