"""Every distance against a walk through all small data sets, and against the formulas as written."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.mechanisms.order_statistics import median, quantile, trimmed_mean
from snugdp.mechanisms.order_statistics.windows import least
from tests.effort import often, repeated, sampled
from tests.mechanisms.queries_by_hand import (
    added_or_removed,
    all_rows,
    as_rows,
    median_two_pointers,
    quantile_two_pointers,
    replaced,
    sensitive,
    trimmed_by_definition,
    walked,
)

UNIVERSE = (0, 1, 3, 7)
BETAS = (0, 1, 2, 3.5, 5, 6, 7)


@sampled(4)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("beta", BETAS)
def test_quantile_is_the_exact_distance(size: int, beta: float) -> None:
    near, states = replaced(UNIVERSE), all_rows(UNIVERSE, [size])
    for rank in range(1, size + 1):
        bad = sensitive(lambda rows, rank=rank: rows[rank - 1], near, beta)  # type: ignore[misc]
        for rows, true in walked(states, near, bad).items():
            assert quantile.distance(as_rows(rows), rank, 0, 7, beta) == true
            assert quantile.value(as_rows(rows), rank, 0) == rows[rank - 1]


@pytest.mark.parametrize("beta", BETAS)
def test_median_is_the_exact_distance(beta: float) -> None:
    near, longest = added_or_removed(UNIVERSE), 8
    states = all_rows(UNIVERSE, range(longest + 1))

    def lower_median(rows: tuple[int, ...]) -> int:
        return rows[(len(rows) + 1) // 2 - 1] if rows else 0

    true = walked(states, near, sensitive(lower_median, near, beta))
    for rows in all_rows(UNIVERSE, range(longest // 2 + 1)):  # a shortest path adds at most n rows
        assert median.distance(as_rows(rows), 0, 7, beta) == true[rows]
        assert median.value(as_rows(rows), 0) == lower_median(rows)


@pytest.mark.parametrize(("size", "trim"), [(1, 0), (2, 0), (3, 0), (3, 1), (4, 1), (5, 0), (5, 1), (5, 2), (6, 2)])
def test_trimmed_mean_is_the_exact_distance(size: int, trim: int) -> None:
    near, states, kept = replaced(UNIVERSE), all_rows(UNIVERSE, [size]), size - 2 * trim

    def total(rows: tuple[int, ...]) -> int:
        return sum(rows[trim : size - trim])

    for width in BETAS:
        beta = Fraction(width) / kept
        for rows, true in walked(states, near, sensitive(total, near, width)).items():
            assert trimmed_mean.distance(as_rows(rows), trim, 0, 7, beta) == true
            assert trimmed_mean.total(as_rows(rows), trim) == total(rows)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_trimmed_to_one_row_is_the_median_rank(size: int) -> None:
    trim = size // 2
    for rows in all_rows(UNIVERSE, [size]):
        for beta in BETAS:
            narrow = trimmed_mean.distance(as_rows(rows), trim, 0, 7, beta)
            assert narrow == quantile.distance(as_rows(rows), trim + 1, 0, 7, beta)


rows_of_ints = st.lists(st.integers(-30, 30), min_size=1, max_size=40)
rows_of_floats = st.lists(st.floats(-3, 3), min_size=1, max_size=40)
betas_of_ints = st.one_of(st.integers(0, 61), st.floats(0, 61))


@repeated
@settings(max_examples=often(30, 90, 300), deadline=None)
@given(rows_of_ints, betas_of_ints, st.data())
def test_integers_agree_with_the_formulas(rows: list[int], beta: float, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, len(rows)))
    trim = data.draw(st.integers(0, (len(rows) - 1) // 2))
    shuffled = as_rows(data.draw(st.permutations(rows)))
    assert quantile.distance(shuffled, rank, -30, 30, beta) == quantile_two_pointers(rows, rank, -30, 30, beta)
    assert median.distance(shuffled, -30, 30, beta) == median_two_pointers(rows, -30, 30, beta)
    whole: list[Any] = [Fraction(x) for x in rows]
    exact: Any = Fraction(beta)
    assert trimmed_mean.distance(shuffled, trim, -30, 30, exact) == trimmed_by_definition(whole, trim, -30, 30, exact)


@repeated
@settings(max_examples=often(30, 90, 300), deadline=None)
@given(rows_of_floats, st.floats(0, 6), st.data())
def test_floats_agree_with_the_formulas(rows: list[float], beta: float, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, len(rows)))
    trim = data.draw(st.integers(0, (len(rows) - 1) // 2))
    ordered = as_rows(rows, np.float64)
    assert quantile.distance(ordered, rank, -3.0, 3.0, beta) == quantile_two_pointers(rows, rank, -3, 3, beta)
    assert median.distance(ordered, -3.0, 3.0, beta) == median_two_pointers(rows, -3, 3, beta)
    assert trimmed_mean.distance(ordered, trim, -3.0, 3.0, beta) == trimmed_by_definition(rows, trim, -3, 3, beta)


@repeated
@settings(max_examples=often(30, 90, 300), deadline=None)
@given(rows_of_ints, betas_of_ints, st.data())
def test_one_row_moves_a_distance_by_one(rows: list[int], beta: float, data: st.DataObject) -> None:
    where = data.draw(st.integers(0, len(rows) - 1))
    other = [*rows[:where], data.draw(st.integers(-30, 30)), *rows[where + 1 :]]
    fewer = rows[:where] + rows[where + 1 :]
    rank = data.draw(st.integers(1, len(rows)))
    trim = data.draw(st.integers(0, (len(rows) - 1) // 2))
    bounds = (-30, 30, beta)
    pairs = [
        [quantile.distance(as_rows(x), rank, *bounds) for x in (rows, other)],
        [trimmed_mean.distance(as_rows(x), trim, *bounds) for x in (rows, other)],
        [median.distance(as_rows(x), *bounds) for x in (rows, fewer)],
    ]
    assert all(a == b or abs(a - b) <= 1 for a, b in pairs)


def test_many_windows_cross_the_blocks() -> None:
    rng = np.random.default_rng(5)
    ordered = np.sort(rng.integers(0, 10**6, 200_001))
    for beta in (10**3, 3 * 10**5, 7 * 10**5):
        rows = ordered.tolist()
        assert quantile.distance(ordered, 90_000, 0, 10**6, beta) == quantile_two_pointers(rows, 90_000, 0, 10**6, beta)


def test_totals_do_not_overflow() -> None:
    ordered = np.full(5000, 2**62, dtype=np.int64)
    assert trimmed_mean.total(ordered, 3) == 4994 * 2**62
    assert trimmed_mean.total(-ordered, 0) == -5000 * 2**62
    assert trimmed_mean.total(np.array([-(2**53), -1, 2**53 - 1]), 0) == -2


def test_differences_are_exact_beyond_the_precision_of_floats() -> None:
    ordered = np.array([0, 2**60], dtype=np.int64)
    top = 2**60 + 1
    assert quantile.distance(ordered, 1, 0, top, 2**60) == 1  # only upper - lower is wider
    assert quantile.distance(ordered, 1, 0, top, 2**60 - 1) == 0
    assert trimmed_mean.distance(ordered, 0, 0, top, Fraction(2**60, 2)) == 0
    assert trimmed_mean.distance(ordered, 0, 0, top, Fraction(2**60 + 1, 2)) == math.inf


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 9, 16])
def test_least_finds_every_turning_point(most: int) -> None:
    for turn in range(most + 1):
        assert least(lambda k, turn=turn: k >= turn, most) == turn  # type: ignore[misc]


def test_empty_data() -> None:
    empty = np.array([], dtype=np.int64)
    assert quantile.value(empty, 1, -4) == median.value(empty, -4) == -4
    assert quantile.distance(empty, 1, 0, 7, 0) == math.inf  # no row to replace: no neighbour
    assert median.distance(empty, 0, 7, 6) == 0
    assert median.distance(empty, 0, 7, 7) == math.inf


def test_bad_arguments_are_refused() -> None:
    ordered = np.array([1, 2, 3])
    with pytest.raises(ValueError, match="rank"):
        quantile.distance(ordered, 4, 0, 7, 1)
    with pytest.raises(ValueError, match="beta"):
        median.distance(ordered, 0, 7, float("nan"))
    with pytest.raises(ValueError, match="trimmed"):
        trimmed_mean.total(ordered, 2)
    with pytest.raises(ValueError, match="overflow"):
        median.distance(ordered, -(2**63), 7, 1)
    with pytest.raises(ValueError, match="exceed"):
        median.distance(ordered, 9, 7, 1)
    with pytest.raises(TypeError, match="column"):
        median.distance(ordered.astype(np.int32), 0, 7, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="integer"):
        trimmed_mean.total(ordered.astype(np.float64), 0)
