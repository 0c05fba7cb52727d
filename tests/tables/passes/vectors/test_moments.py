"""Exact moments: whole numbers, whatever the order, the partition, the blocks and the layout of the rows."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snugdp.tables.passes.base import Sums
from snugdp.tables.passes.vectors.moments import Moments, gram
from snugdp.tables.rowmap import RowLimits, RowMap
from tests.effort import often, repeated

STRANGE = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -2.5e-310, 0.0, -0.0]


def table(seed: int, n: int, d: int, scale: float = 0.3) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)) * scale, rng.standard_normal(n)
    strange = rng.random((n, d)) < 0.02
    X[strange] = rng.choice(STRANGE, strange.sum())
    few = rng.random(n) < 0.02
    y[few] = rng.choice(STRANGE, few.sum())
    return X, y


def gather(row_map: RowMap, X: NDArray[Any], y: NDArray[Any], rows: int | None = None, **room: int) -> Moments:
    moments = Moments(row_map.limits, **room)
    for V, w in row_map.blocks(X, y, rows):
        moments.add(V, V, w)
    return moments


def by_hand(row_map: RowMap, X: NDArray[Any], y: NDArray[Any]) -> tuple[Any, Any, Any]:
    rows, target = row_map.integers(X, y)
    T, w = rows.astype(object), target.astype(object)
    return (T.T @ T).tolist(), (T.T @ w).tolist(), w @ w


@pytest.mark.parametrize(("n", "d", "bits"), [(0, 3, None), (1, 1, None), (500, 7, None), (300, 20, 4), (64, 2, 25)])
def test_moments_are_the_sums_by_hand(n: int, d: int, bits: int | None) -> None:
    row_map = RowMap(d, 1, 1, bits)
    X, y = table(n + d, n, d)
    moments = gather(row_map, X, y)
    if n:
        assert (moments.gram(), moments.cross(), moments.square()) == by_hand(row_map, X, y)
    assert moments.count() == n


@repeated
@pytest.mark.parametrize("constant", [False, True])
def test_bit_identical_over_shuffles_partitions_blocks_and_layouts(constant: bool) -> None:
    """Shuffles, 1 to 64 partitions each, merged in random order, through bytes half of the time."""
    row_map = RowMap(6, 1, 1, constant=constant)
    X, y = table(3, 1200, 6)
    whole = gather(row_map, X, y)
    rng = np.random.default_rng(4)
    for shuffle in range(often(8, 24, 100)):
        order = rng.permutation(len(X))
        cuts = np.sort(rng.integers(0, len(X) + 1, int(rng.integers(0, 64))))
        parts = []
        for rows in np.split(order, cuts):
            part = np.asfortranarray(X[rows]) if rng.random() < 0.5 else X[rows]
            parts.append(gather(row_map, part, y[rows], int(rng.integers(1, 400)), room=int(rng.integers(400, 900))))
        total = Moments(row_map.limits)
        for place in rng.permutation(len(parts)).tolist():
            packed = Moments(row_map.limits).restored(parts[place].to_bytes())
            total = total.merge(packed if shuffle % 2 else parts[place])
        assert total.to_bytes() == whole.to_bytes()


def test_one_row_more_is_one_outer_product_more() -> None:
    row_map = RowMap(4, 1)
    X, y = table(9, 40, 4, scale=2.0)
    without = gather(row_map, X[1:], y[1:])
    rows, target = (part.astype(object) for part in row_map.integers(X[:1], y[:1]))
    change = np.array(gather(row_map, X, y).gram(), dtype=object) - np.array(without.gram(), dtype=object)
    assert np.array_equal(change, rows.T @ rows)
    assert (change**2).sum() <= row_map.limits.sensitivity("add_remove").gram_squared
    assert target[0] ** 2 <= row_map.limits.sensitivity("add_remove").square


def test_the_limb_spills_before_it_overflows() -> None:
    """A column of ones at the bound: 2**63 is passed after 8 388 607 rows. Here the same with the finest grid."""
    row_map = RowMap(1, 1, 1, bits=26)
    limits = row_map.limits
    assert (limits.rows_per_block, limits.rows_in_int64) == (2, 2047)
    moments = gather(row_map, np.ones((5000, 1)), np.full(5000, -1.0))
    assert moments.gram() == [[5000 << 52]]
    assert moments.cross() == [-(5000 << 52)]
    assert 5000 << 52 > 1 << 63
    assert Moments(limits).restored(moments.to_bytes()).values() == moments.values()


@pytest.mark.parametrize("room", [1, 2, 3, 10, 4096])
def test_a_small_limb_changes_nothing(room: int) -> None:
    row_map = RowMap(3, 1)
    X, y = table(11, 100, 3)
    assert gather(row_map, X, y, min(room, 7), room=room).values() == gather(row_map, X, y).values()


def test_merging_many_times_does_not_overflow() -> None:
    row_map = RowMap(1, 1)
    total, part = Moments(row_map.limits), gather(row_map, np.ones((8192, 1)), np.ones(8192))
    for _ in range(3000):
        total = total.merge(part)
    assert total.gram() == [[3000 * 8192 << 40]]
    assert total.count() == 3000 * 8192


def test_blocks_at_the_limit_of_exactness() -> None:
    """Full blocks of rows at the bound, the largest sums that floats hold, with odd last digits."""
    for d, bits in ((1, 20), (5, 20), (20, 23), (40, 21)):
        row_map = RowMap(d, 1, 1, bits)
        rng = np.random.default_rng(bits)
        signs = rng.choice([-1.0, 1.0], (row_map.limits.rows_per_block, d))
        X = signs * (1 / math.sqrt(d)) * (1 - rng.integers(0, 3, signs.shape) * 2.0**-bits)
        y = signs[:, 0]
        rows, target = row_map.integers(X, y)  # int64 sums below 2**53 are exact
        moments = gather(row_map, X, y, row_map.limits.rows_per_block)
        assert moments.gram() == (rows.T @ rows).tolist()
        assert moments.cross() == (rows.T @ target).tolist()


def test_a_block_too_large_to_be_exact_is_refused() -> None:
    limits = RowMap(1, 1, 1, bits=26).limits
    with pytest.raises(ValueError, match="too large"):
        Moments(limits).add(np.zeros((3, 1)), np.zeros((3, 1)), np.zeros(3))


def test_moments_show_nothing() -> None:
    row_map = RowMap(1, 1)
    for private in (gather(row_map, np.ones((3, 1)), np.ones(3)), Sums(3)):
        shown = f"{private} {private!r} {private:>5}"
        assert not any(character.isdigit() for character in shown)
        for leak in (pickle.dumps, copy.copy, copy.deepcopy, bool, len, list, lambda p: p == p, hash):  # noqa: PLR0124
            with pytest.raises(TypeError):
                leak(private)


def test_only_like_goes_with_like() -> None:
    fine, coarse = Moments(RowMap(2, 1).limits), Moments(RowMap(2, 1, 1, bits=4).limits)
    with pytest.raises(ValueError, match="different grids"):
        fine.merge(coarse)
    packed = fine.to_bytes()
    damaged = packed[:40] + bytes([packed[40] ^ 1]) + packed[41:]
    for broken in (packed[:-1], packed + b"0", b"", damaged, b"sums/2" + packed[6:], coarse.to_bytes()):
        with pytest.raises(ValueError, match="not statistics"):
            Moments(fine.limits).restored(broken)
    with pytest.raises(ValueError, match="different grids, sizes"):
        Sums(2).merge(Sums(3))
    for broken in (Sums(2).to_bytes(), Sums(3).to_bytes()[:-1], b""):
        with pytest.raises(ValueError, match="not statistics"):
            Sums(3).restored(broken)


def test_the_number_of_bytes_is_public() -> None:
    limits = RowLimits(2, 100, 10)
    full = Moments(limits)
    full.add(np.full((9, 2), -7.0), np.full((9, 2), 7.0), np.full(9, -10.0))
    assert len(full.to_bytes()) == len(Moments(limits).to_bytes())
    assert Moments(limits).restored(full.to_bytes()).values() == full.values()


@pytest.mark.parametrize("d", range(1, 24))
def test_narrow_products_are_made_in_parts(d: int) -> None:
    for n in (1, 5, 1024):
        Z = np.random.default_rng(d).integers(-(2**20), 2**20, (n, d)).astype(np.float64)
        want = (Z.astype(np.int64).T @ Z.astype(np.int64)).tolist()
        assert gram(np.asfortranarray(Z)).astype(np.int64).tolist() == want
        assert gram(Z).astype(np.int64).tolist() == want
