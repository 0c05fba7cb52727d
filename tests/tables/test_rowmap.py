"""The row map: total, within its limits as integers, and a function of the row alone. Float norms are not."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from snugdp.tables.rowmap import RowLimits, RowMap
from tests.effort import sampled

Floats = NDArray[np.float64]
STRANGE = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -2.5e-310, 1.0, -1.0, 0.1, 3.0]


def by_hand(row_map: RowMap, x: list[float], y: float) -> tuple[list[int], int]:
    """One row, one entry at a time, as the proof writes it; shares no code with the blocks."""

    def entry(value: float, limit: int) -> int:
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return int(math.copysign(limit, value))
        return max(-limit, min(limit, math.trunc(Fraction(value) * Fraction(2) ** row_map.bits)))

    t = [entry(value, row_map.entry_limit) for value in (x[:-1] if row_map.constant else x)]
    squares = sum(n * n for n in t)
    if squares > row_map.norm_squared:
        factor = math.sqrt(row_map.norm_squared) * (1 - 2.0**-40) / math.sqrt(squares)
        t = [math.trunc(n * factor) for n in t]
    return t + [2**row_map.bits] * row_map.constant, entry(y, row_map.target_limit)


def rows_and_targets(seed: int, n: int, d: int, scale: float) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)) * scale, rng.standard_normal(n) * 2
    strange = rng.random((n, d)) < 0.05
    X[strange] = rng.choice(STRANGE, strange.sum())
    y[rng.random(n) < 0.1] = math.nan
    return X, y


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("d", "bound", "bits"), [(1, 1, None), (5, "2.5", 8), (20, 1, None), (7, "0.3", 20), (3, 900, -2)]
)
def test_the_blocks_are_the_map_by_hand(d: int, bound: Any, bits: int | None, constant: bool) -> None:
    if constant and bits == -2:
        return
    row_map = RowMap(d + constant, bound, 1, bits, constant=constant)
    for seed, scale in enumerate((0.1, 0.5, 1.0, 100.0)):
        X, y = rows_and_targets(seed, 60, d + constant, scale * float(Fraction(bound)))
        rows, target = row_map.integers(X, y)
        expected = [by_hand(row_map, x, v) for x, v in zip(X.tolist(), y.tolist(), strict=True)]
        assert [(t, w) for t, w in zip(rows.tolist(), target.tolist(), strict=True)] == expected


@given(st.lists(st.floats(width=64), min_size=4, max_size=4), st.floats(), st.sampled_from([1, 4, 11, 24]))
def test_every_row_has_an_image_within_the_limits(x: list[float], y: float, bits: int) -> None:
    for constant in (False, True):
        row_map = RowMap(4, "1.5", "0.7", bits, constant=constant)
        rows, target = row_map.integers([x], [y])
        assert sum(n * n for n in rows[0].tolist()) <= row_map.limits.norm_squared
        assert abs(int(target[0])) <= row_map.limits.target
        assert not constant or rows[0, -1] == 2**bits


def test_rows_at_the_bound_stay_within_it() -> None:
    """Rows made so that their norm is as close above the bound as floats allow."""
    rng = np.random.default_rng(5)
    for d in (1, 2, 3, 20, 100):
        row_map = RowMap(d, 1)
        X = rng.standard_normal((2000, d))
        X /= np.sqrt((X * X).sum(axis=1))[:, None]
        for factor in (1 - 2.0**-53, 1.0, 1 + 2.0**-52, 1 + 2.0**-20, 1 + 2.0**-18, 1e3, 1e300):
            with np.errstate(over="ignore"):
                rows = row_map.integers(X * factor)[0].astype(object)
            assert int((rows * rows).sum(axis=1).max()) <= row_map.norm_squared


def test_the_last_line_of_defence_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a margin on the wrong side, shortened rows are still too long; then they become zero."""
    monkeypatch.setattr("snugdp.tables.rowmap._SAFE", 1.01)
    rows = RowMap(3, 1).integers([[0.1, 0.2, 0.3], [3.0, 4.0, 5.0], [math.inf, 0.0, 0.0]])[0]
    assert (rows[0] != 0).all()
    assert (rows[1:] == 0).all()


@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 2.0, 1e6, 1e200])
def test_very_long_rows_are_clipped_whoever_stands_beside_them(factor: float) -> None:
    """An entry just below or beyond where entries are clipped: alone, and beside a row that needs clipping anyway."""
    row_map = RowMap(20, 1)
    x = np.linspace(0.1, 1, 20)
    x[3] = factor * row_map.entry_limit * 2.0**-row_map.bits
    for other in (x, np.full(20, math.inf), np.full(20, math.nan), np.zeros(20)):
        image = row_map.integers([x, other])[0][0].tolist()
        assert image == by_hand(row_map, x.tolist(), 0.0)[0]


def test_in_bound_rows_move_by_less_than_a_cell() -> None:
    row_map = RowMap(5, 1)
    X = np.random.default_rng(6).uniform(-0.4, 0.4, (100, 5))
    assert np.abs(row_map.integers(X)[0] * 2.0**-row_map.bits - X).max() < 2.0**-row_map.bits


@pytest.mark.parametrize("scale", [0.1, 0.3, 5.0])  # no long rows, some, and nearly all
def test_a_row_has_one_image_wherever_it_stands(scale: float) -> None:
    rng = np.random.default_rng(7)
    row_map = RowMap(9, 1)
    X, y = rows_and_targets(8, 300, 9, scale)
    rows, target = row_map.integers(X, y)
    for _ in range(30):
        order = rng.permutation(len(X))[: int(rng.integers(1, 300))]
        some = X[order]
        wide = np.zeros((len(order), 18))
        wide[:, ::2] = some
        for layout in (some, np.asfortranarray(some), wide[:, ::2], some[::-1][::-1]):
            size = int(rng.integers(1, 50))
            found = [(V.copy(), w.copy()) for V, w in row_map.blocks(layout, y[order], size)]
            assert np.array_equal(np.concatenate([V for V, _ in found]), rows[order])
            assert np.array_equal(np.concatenate([w for _, w in found]), target[order])


@sampled(2)
@pytest.mark.parametrize("constant", [False, True])
def test_wide_rows_have_the_same_image_by_every_route(constant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    row_map = RowMap(70, 1, constant=constant)
    for scale in (0.05, 0.12, 3.0):
        X, y = rows_and_targets(9, 200, 70, scale)
        expected = [by_hand(row_map, x, v)[0] for x, v in zip(X.tolist(), y.tolist(), strict=True)]
        assert row_map.integers(X)[0].tolist() == expected
        assert row_map.integers(np.asfortranarray(X))[0].tolist() == expected
        with monkeypatch.context() as older:
            older.setattr("snugdp.tables.rowmap._vecdot", None)
            assert row_map.integers(X)[0].tolist() == expected


def naive(X: Floats, norms: Floats, bits: int) -> Floats:
    """What one would write first: shorten in floats, then truncate."""
    image: Floats = np.trunc(X * np.minimum(1.0, 1.0 / norms)[:, None] * 2.0**bits)
    return image


def float_norms(X: Floats) -> Floats:
    norms: Floats = np.sqrt((X * X).sum(axis=1))
    return norms


def kernel_norms(X: Floats) -> Floats:
    """A model of a BLAS kernel: full groups of four rows are summed in two lanes, the rows left over one by one."""
    squares, full = X * X, len(X) // 4 * 4
    lanes = np.add.accumulate(squares[:, ::2], axis=1)[:, -1] + np.add.accumulate(squares[:, 1::2], axis=1)[:, -1]
    norms: Floats = np.sqrt(np.where(np.arange(len(X)) < full, lanes, np.add.accumulate(squares, axis=1)[:, -1]))
    return norms


def crafted(seed: int, bits: int, d: int = 20) -> Floats:
    """Rows whose first entry, once shortened, lies on a whole number or a few last places from it."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(d) * 3
    goal = float(rng.integers(1, 2**bits // 4)) * 2.0**-bits
    for _ in range(60):  # x_0 / |x| = goal
        x[0] = goal * math.sqrt(float(x @ x))
    rows = np.tile(x, (9, 1))
    for i in range(9):
        rows[i, 0] += (i - 4) * np.spacing(x[0])
    return rows


def test_float_norms_depend_on_the_layout_and_ours_do_not() -> None:
    row_map, broken = RowMap(20, 1), 0
    for seed in range(300):
        X = crafted(seed, row_map.bits)
        F = np.asfortranarray(X)
        broken += not np.array_equal(naive(X, float_norms(X), row_map.bits), naive(F, float_norms(F), row_map.bits))
        assert np.array_equal(row_map.integers(X)[0], row_map.integers(F)[0])
    assert broken > 10, "the attack must work on the naive map"


def test_one_row_less_moves_other_rows_under_float_norms_and_not_under_ours() -> None:
    row_map, broken = RowMap(20, 1), 0
    for seed in range(300):
        X = crafted(seed, row_map.bits)[:8]
        for row in X:  # seven dull rows around the crafted one; then one of the dull ones leaves
            table = np.vstack([np.ones((7, 20)), row])
            before = naive(table, kernel_norms(table), row_map.bits)[-1]
            after = naive(table[1:], kernel_norms(table[1:]), row_map.bits)[-1]
            broken += not np.array_equal(before, after)
        table = np.vstack([np.ones((7, 20)), X])
        assert np.array_equal(row_map.integers(table)[0][1:], row_map.integers(table[1:])[0])
    assert broken > 10, "the attack must work on the naive map"


def test_other_types_are_widened_first() -> None:
    row_map = RowMap(2, 1e30)
    X = np.array([[3e29, 1e-40], [-1e38, 2.0]], dtype=np.float32)
    assert np.array_equal(row_map.integers(X)[0], row_map.integers(X.astype(np.float64))[0])
    found = [V.copy() for V, _ in row_map.blocks(X, None)]
    assert np.array_equal(found[0], row_map.integers(X)[0])
    small = RowMap(2, 10)
    for dtype in (np.int8, np.int64, np.uint16, np.bool_):
        whole = np.array([[1, 0], [1, 1]], dtype=dtype)
        assert np.array_equal(next(iter(small.blocks(whole, None)))[0], small.integers([[1, 0], [1, 1]])[0])


def test_default_grid() -> None:
    assert RowMap(3, 1).bits == 20
    assert RowMap(3, 2).bits == 19
    assert RowMap(3, "2.0001").bits == 18
    assert RowMap(3, "0.3").bits == 21
    assert RowMap(3, 1, constant=True).bits == 19
    assert RowMap(3, "0.001", 1).bits == 22  # the target has a say
    assert RowMap(3, "0.001", 0).bits == 29
    assert RowMap(3, 1, constant=True).limits == RowLimits(3, 2 * 4**19, 2**19)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"entries": 0, "feature_bound": 1}, "at least one entry"),
        ({"entries": 2, "feature_bound": 0}, "positive"),
        ({"entries": 2, "feature_bound": 1, "target_bound": -1}, "positive"),
        ({"entries": 2, "feature_bound": math.nan}, "finite"),
        ({"entries": 2, "feature_bound": 1, "bits": 27}, "fewer bits"),
        ({"entries": 2, "feature_bound": 1, "target_bound": 2**10, "bits": 20}, "fewer bits"),
        ({"entries": 10**5, "feature_bound": 1, "bits": 20}, "fewer bits"),
        ({"entries": 2, "feature_bound": 1, "bits": -3}, "more bits"),
        ({"entries": 2, "feature_bound": 1e9, "constant": True}, "intercept"),
        ({"entries": 2, "feature_bound": 1, "bits": 5000}, "between"),
    ],
)
def test_grids_that_do_not_fit_are_refused_in_public(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RowMap(**arguments)


def test_shapes_and_types_are_refused() -> None:
    row_map = RowMap(2, 1)
    with pytest.raises(ValueError, match="2 columns"):
        next(row_map.blocks(np.zeros((3, 3)), None))
    with pytest.raises(ValueError, match="one number per row"):
        next(row_map.blocks(np.zeros((3, 2)), np.zeros(2)))
    with pytest.raises(TypeError, match="arrays of numbers"):
        next(row_map.blocks(np.zeros((3, 2), dtype=object), None))
    assert row_map.integers(np.zeros((0, 2)))[0].shape == (0, 2)


def test_sensitivities_hold_and_are_reached() -> None:
    """All pairs of rows of a small grid, with and without replacement."""
    limits = RowMap(2, 1, 1, bits=2).limits
    side = range(-4, 5)
    rows = [(a, b, w) for a in side for b in side for w in side if a * a + b * b <= limits.norm_squared]
    v = np.array(rows)
    assert max(abs(v[:, 2])) == limits.target
    whole = v[:, :, None] * v[:, None, :]

    def largest(difference: NDArray[Any]) -> tuple[int, int, int, int]:
        squares = difference**2
        gram, cross = squares[:, :2, :2].sum(axis=(1, 2)), squares[:, :2, 2].sum(axis=1)
        return gram.max(), cross.max(), squares.sum(axis=(1, 2)).max(), abs(difference[:, 2, 2]).max()

    for neighbours, change in (("add_remove", [whole]), ("replace", [whole - one for one in whole])):
        found = tuple(max(column) for column in zip(*(largest(part) for part in change), strict=True))
        bound = limits.sensitivity(neighbours)
        assert found == (bound.gram_squared, bound.cross_squared, bound.whole_squared, bound.square)
        assert bound.count == (neighbours == "add_remove")
    with pytest.raises(ValueError, match="neighbours"):
        limits.sensitivity("near")


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_quick_look_at_the_entries_changes_no_image(
    constant: bool, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether all entries are small is found at once; blocks with one entry more, or with NaN, go the long way."""
    mapped = RowMap(5, 1, constant=constant)
    width = 5 - constant
    box = np.random.default_rng(1).uniform(-1, 1, (300, 5)) / width**0.5
    box[:, -1] = 1.0 if constant else box[:, -1]
    corner = np.where(np.arange(5) < width, width**-0.5, 1.0)
    tables = [box, np.tile(corner, (3, 1)), -np.tile(corner, (3, 1))]
    for strange in (np.nan, np.inf, -np.inf, -0.9, 1.5):
        other = box.copy()
        other[7, 1] = strange
        tables.append(other)
    quick = [mapped.integers(np.asarray(X, order=order))[0] for X in tables]
    monkeypatch.setattr(RowMap, "_all_small", lambda *_: False)
    slow = [mapped.integers(np.asarray(X, order=order))[0] for X in tables]
    assert all(np.array_equal(one, other) for one, other in zip(quick, slow, strict=True))
    assert all((image[:, :width] ** 2).sum(axis=1).max() <= mapped.norm_squared for image in quick)
