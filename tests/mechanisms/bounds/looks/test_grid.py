"""Which cells are occupied: against brute force over all sets, and as often right as Lemma 3 says."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from snugdp.mechanisms.bounds.looks import grid
from snugdp.numerics.rounded import clear, exceeded
from snugdp.tables.passes.columns.looks import NEAR
from tests.effort import often, repeated

PHI = NormalDist().cdf


def all_sets(cells: int, lengths: tuple[int, ...], mirror: bool) -> list[frozenset[int]]:
    windows = [frozenset(range(i, i + length)) for length in lengths for i in range(cells - length + 1)]
    middle = cells // 2
    pairs = [
        frozenset(middle + sign * k for k in range(j, j + length) for sign in (-1, 1))
        for length in lengths
        for j in range(1, middle - length + 2)
    ]
    return windows + (pairs if mirror else [])


def hull_by_hand(counts: list[float], sets: list[frozenset[int]], sigma: float, z: float) -> tuple[int, int]:
    high = [one for one in sets if sum(counts[i] for i in one) > clear(len(one), sigma, z)]
    least = [one for one in high if not any(other < one for other in high)]
    if not least:
        return -1, -1
    low, top = min(map(min, least)), max(map(max, least))

    def grows(near: int, far: int) -> bool:
        if not 0 <= near < len(counts):
            return False
        two = counts[near] + counts[far] if 0 <= far < len(counts) else -math.inf
        return counts[near] > clear(1, sigma, 2) or two > clear(2, sigma, 2)

    while grows(low - 1, low - 2):
        low -= 1
    while grows(top + 1, top + 2):
        top += 1
    return low, top


@pytest.mark.parametrize(("cells", "lengths", "mirror"), [(163, (1, 2, 4), True), (32, (1, 2, 4, 8), False)])
def test_hulls_are_those_of_brute_force(cells: int, lengths: tuple[int, ...], mirror: bool) -> None:
    generator = np.random.default_rng(4)
    sets, made = all_sets(cells, lengths, mirror), grid.CellSets(cells, lengths, mirror)
    assert len(set(sets)) == len(made)
    counts = generator.normal(0, 10, (60, cells)).round()
    counts[5:] += generator.poisson(30, (55, cells)) * (generator.random((55, cells)) < 0.06)
    for row in counts[5:]:
        start = int(generator.integers(cells - 5))
        row[start : start + 5] += generator.integers(0, 40)
        row[[cells // 2 - 1, cells // 2 + 1]] += generator.integers(0, 45)
    first, last = made.hulls(counts, 10.0, made.clear(10.0, 4.0))
    for row, found in zip(counts.tolist(), zip(first.tolist(), last.tolist(), strict=True), strict=True):
        assert found == hull_by_hand(row, sets, 10.0, 4.0)
    assert (first == -1).any()
    assert (first >= 0).sum() > 30


@pytest.mark.slow
@repeated
def test_empty_cells_are_hardly_ever_occupied() -> None:
    """Lemma 3: in no column with probability .95. The union bound is nearly sharp for single cells alone."""
    generator, columns, looks = np.random.default_rng(5), 11, often(500, 1500)
    sets = grid.doubling_sets()
    counts = np.rint(generator.normal(0, 45, (looks * columns, sets.cells)))
    first, _ = sets.hulls(counts, 45.0, sets.least(45.0, columns))
    astray = (first.reshape(looks, columns) >= 0).any(axis=1).mean()
    assert 0.01 < astray < 0.05


def test_an_occupied_cell_is_seen_as_often_as_promised() -> None:
    """Lemma 3: (z + t) sigma rows in a cell are seen with probability Phi(t) at least."""
    generator, sets = np.random.default_rng(6), grid.doubling_sets()
    z = sets.threshold(11)
    for t in (-1.0, 0.0, 1.0, 2.0):
        counts = np.rint(generator.normal(0, 20, (3000, sets.cells)))
        counts[:, 102] += math.ceil((z + t) * 20)
        first, last = sets.hulls(counts, 20.0, sets.clear(20.0, z))
        seen = ((first <= 102) & (last >= 102)).mean()
        assert seen > PHI(t) - 4 * math.sqrt(PHI(t) * PHI(-t) / 3000)


def test_hulls_do_not_run_away() -> None:
    """One step into empty cells on a side with probability at most 2 Phi(-2), two steps far less."""
    counts = np.rint(np.random.default_rng(7).normal(0, 50, (20_000, 40)))
    counts[:, 20] = 1e6
    steps = grid.grown(counts, np.full(20_000, 20), 50.0) - 20
    assert 0.030 < (steps > 0).mean() < 2 * PHI(-2)
    assert (steps > 1).mean() < 0.012


def test_both_sides_of_zero_are_seen_together() -> None:
    """So many rows on both sides of zero are seen that neither side would be seen with alone."""
    sets, sigma = grid.doubling_sets(), 10.0
    z = sets.threshold(11)
    counts = np.zeros((2, sets.cells))
    counts[0, [61, 101]] = 0.8 * z * sigma
    counts[1, 61] = 0.8 * z * sigma
    first, last = sets.hulls(counts, sigma, sets.clear(sigma, z))
    assert (first.tolist(), last.tolist()) == ([61, -1], [101, -1])


def test_ends_of_hulls() -> None:
    first, last = np.array([102, 81, 70, 81, 60, 0, 162, -1]), np.array([102, 81, 81, 85, 102, 0, 162, -1])
    lower, upper = grid.ends((first, last))
    near, far = 2.0**-20, 2.0**60
    assert lower.tolist() == [1.0, -near, -(2.0**-9), 0.0, -2.0, -far, far, -1.0]
    assert upper.tolist() == [2.0, near, 0.0, 2.0**-16, 2.0, -far, far, 1.0]
    lower, upper = grid.opened((lower, upper))
    assert (lower < upper).all()
    assert (lower[5], upper[5], lower[6], upper[6]) == (-2 * far, -far, far, 2 * far)
    assert all(a <= b for a, b in pairwise(grid.EDGES.tolist()))


def test_about_how_many_rows_there_are() -> None:
    counts, missing = np.full((3, 163), 1000.0), np.array([50.0, 10.0, 99.0])
    hulls: Any = (np.array([3, 5, -1]), np.array([4, 6, -1]))
    assert grid.rows_of_hulls(counts, missing, hulls) == 2030.0
    nothing = (np.full(3, -1), np.full(3, -1))
    assert grid.rows_of_hulls(counts, missing, nothing) == 99.0
    assert grid.share_missing(np.array([29.0, 31.0, 400.0]), 310.0, 10.0).tolist() == [0.0, 0.1, 1.0]


def _guarded(counts: grid.Floats, sigma: grid.Floats) -> grid.Hulls:
    sets = grid.doubling_sets()
    return grid.guarded(sets, counts, sigma, sets.least(sigma, 10), sets.surer(sigma, 10))


def _zeros_and(rows: float, noise: grid.Floats) -> grid.Floats:
    """Ten columns of 2,000 rows: five in one cell, five with so many rows in four cells, and the others zero."""
    counts = noise.copy()
    counts[:5, 100] += 2000
    counts[5:, NEAR] += 2000 - rows
    counts[5:, 102:106] += rows / 4
    return counts


def test_where_rows_are_wanting_beside_zeros_less_is_enough_to_say_where_they_are() -> None:
    rng, sets, sigma = np.random.default_rng(7), grid.doubling_sets(), np.full(10, 45.0)
    seen = np.zeros(2)
    for _ in range(40):
        counts = _zeros_and(400.0, rng.normal(0, 45, (10, 163)))
        before = _guarded(counts, sigma)
        after = grid.faint(sets, counts, before, sigma, np.zeros(10))
        seen += [(before[1][5:] >= 104).mean(), (after[1][5:] >= 104).mean()]
        assert np.array_equal(before[1][:5], after[1][:5])
    assert seen[0] / 40 < 0.65
    assert seen[1] / 40 > 0.75


def test_where_no_rows_are_wanting_zeros_stay_alone() -> None:
    rng, sets, sigma = np.random.default_rng(8), grid.doubling_sets(), np.full(10, 45.0)
    alone = 0
    for _ in range(40):
        counts = _zeros_and(0.0, rng.normal(0, 45, (10, 163)))
        hulls = grid.faint(sets, counts, _guarded(counts, sigma), sigma, np.zeros(10))
        alone += int(((hulls[0][5:] >= NEAR - 2) & (hulls[1][5:] <= NEAR + 2)).sum())
    assert alone >= 190


def test_nothing_is_said_beside_zeros_of_other_columns() -> None:
    counts = np.zeros((4, 163))
    counts[0, [NEAR, 104]], counts[1, [NEAR, 104]], counts[2, NEAR] = (
        (400.0, 600.0),
        (600.0, 400.0),
        1000.0,
    )
    seen = grid.BesideZeros.of(counts, (np.array([81, 81, 81, -1]), np.array([104, 104, 81, -1])))
    assert seen.upper.tolist() == [-np.inf, 4.0, -np.inf, -np.inf]
    assert seen.lower.tolist() == [np.inf] * 4
    assert seen.scale.tolist() == [0.0, pytest.approx(0.7 * 4 * 0.24**0.5), 0.0, 0.0]


@pytest.mark.parametrize("sigma", [0.1, 0.2, 0.3, 0.5, 0.8, 1.3, 2.2, 4.0, 7.0, 20.0])
@pytest.mark.parametrize("columns", [1, 11, 300])
def test_empty_sets_are_taken_as_rarely_as_is_said(columns: int, sigma: float) -> None:
    """Lemma 3 by exact probabilities, added over all sets of all columns: one in a million where noise is little."""
    for sets in (grid.doubling_sets(), grid.bin_sets()):
        least, surer = sets.least(sigma, columns)[0], sets.surer(sigma, columns)[0]
        little = surer.max() <= grid.LITTLE
        assert columns * _taken(sets, sigma, least) <= (grid.HARDLY_EVER if little else grid.ASTRAY)
        assert columns * _taken(sets, sigma, surer) <= grid.HARDLY_EVER


def _taken(sets: grid.CellSets, sigma: float, least: grid.Floats) -> float:
    """How likely noise alone is to be above the least rows of a set, added over all sets."""
    pairs, number = np.unique(np.column_stack([sets.sizes, least]), axis=0, return_counts=True)
    return float(sum(n * exceeded(int(size), sigma, rows) for (size, rows), n in zip(pairs, number, strict=True)))


def test_a_row_of_noise_far_out_is_no_row() -> None:
    """With a deviation of a fifth of a row, noise of one row is in one of 160 empty cells: it was a bound of 1e17."""
    sets, sigma = grid.doubling_sets(), np.full(1, 0.2)
    counts = np.zeros((1, 163))
    counts[0, 102], counts[0, 158] = 500.0, 1.0
    hulls = grid.guarded(sets, counts, sigma, sets.least(sigma, 1), sets.surer(sigma, 1))
    assert [int(end[0]) for end in hulls] == [102, 102]
