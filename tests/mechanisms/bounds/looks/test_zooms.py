"""What a zoom tells: as it is written, for whatever counts there are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl

from snugdp import Simulation
from snugdp.mechanisms.bounds.looks.grid import BesideZeros, bin_sets
from snugdp.mechanisms.bounds.looks.looks import Looks
from snugdp.mechanisms.bounds.looks.zooms import Ranges, Reading
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import Flag, FoundNumber
from snugdp.tables.opened import OpenedTable
from snugdp.tables.sources import open_source
from tests.mechanisms.bounds.looks.test_grid import all_sets, hull_by_hand

SETS = all_sets(32, (1, 2, 4, 8), False)


def test_readings_are_those_of_the_formulas() -> None:
    generator = np.random.default_rng(8)
    counts = generator.normal(0, 10, (200, 32)).round()
    centres, spreads = generator.uniform(0, 31, (180, 1)), generator.choice([0.2, 1, 4], (180, 1))
    heights = generator.integers(50, 900, (180, 1))
    counts[20:] += np.round(heights * np.exp(-(((np.arange(32) - centres) / spreads) ** 2)))
    lower = generator.normal(0, 1e3, 200)
    upper = lower + generator.lognormal(0, 5, 200)
    z = bin_sets().threshold(11)
    reading = Reading.of_bins(counts, Ranges(lower, upper), 10.0, bin_sets().clear(10.0, z), tails=None)
    for i, row in enumerate(counts.tolist()):
        first, last = hull_by_hand(row, SETS, 10.0, z)
        assert reading.found[i] == (first >= 0)
        if first < 0:
            continue
        w = (upper[i] - lower[i]) / 32
        low, high = lower[i] + first * w, lower[i] + (last + 1) * w
        held = {lower[i] + (j + 0.5) * w: row[j] for j in range(first, last + 1)}
        total = max(sum(held.values()), 10.0)
        centre = min(max(sum(n * x for x, n in held.items()) / total, low), high)
        square = max(0.0, sum(n * (x - centre) ** 2 for x, n in held.items()) / total) + w * w / 12
        expected = (low + high) / 2 - (high - low), (low + high) / 2 + (high - low), centre
        found = reading.bounds.lower[i], reading.bounds.upper[i], reading.centre[i]
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-9 * abs(lower[i]))
        assert math.isclose(reading.scale[i], min(math.sqrt(square), (high - low) / 2), rel_tol=1e-6)
        assert reading.narrow[i] == (last - first < 2)
        assert np.allclose((reading.next.lower[i], reading.next.upper[i]), (low - w, high + w))


def test_a_closer_look_replaces_what_it_found_and_nothing_else() -> None:
    before = Reading.of_doublings(Ranges(np.array([0.0, 4.0, 8.0]), np.array([2.0, 8.0, 16.0])))
    asked = np.array([True, False, True])
    counts = np.zeros((2, 32))
    counts[1, 7] = 1000.0
    zoom = Reading.of_bins(counts, before.next.at(asked), 10.0, bin_sets().clear(10.0, 4.0))
    after = before.closer(asked, zoom)
    assert after.bounds.lower[:2].tolist() == before.bounds.lower[:2].tolist()
    assert (after.centre[2], after.narrow.tolist()) == (zoom.centre[1], [False, False, True])
    assert after.scale[2] == zoom.scale[1] < before.scale[2]


def test_ranges_next_to_public_ends() -> None:
    inf = math.inf
    ranges = Ranges(np.array([0.0, 0.0, 0.0, 5.0, 0.0]), np.array([4.0, 4.0, 4.0, 6.0, 4.0]))
    limits = Ranges(np.array([-inf, 1.0, 1e290, -inf, -inf]), np.array([inf, inf, inf, -3.0, 0.25]))
    cut = ranges.cut(limits)
    assert cut.lower.tolist() == [0.0, 1.0, 1e290, -6.0, 0.0]
    assert cut.upper.tolist() == [4.0, 4.0, 2e290, -3.0, 0.25]


def test_between_two_public_ends_ranges_stay_between_them() -> None:
    below, above = np.array([-9.0, -9.0, 5.0, 5.0]), np.array([-6.0, -6.0, 9.0, 9.0])
    limits = Ranges(np.array([-4.0, 1.0, -4.0, 1.0]), np.array([-1.0, 1.5, -1.0, 1.5]))
    cut = Ranges(below, above).cut(limits)
    assert cut.lower.tolist() == [-4.0, 1.0, -2.0, 1.0]
    assert cut.upper.tolist() == [-1.0, 1.5, -1.0, 1.5]


def test_numbers_far_out_are_found_between_public_ends() -> None:
    far = {"a": (2.0**70, 2.0**71), "b": (-(2.0**71), -(2.0**70)), "c": (-(2.0**71), -(2.0**70))}
    rows = {name: np.full(2000, ends[name == "c"]) for name, ends in far.items()}
    looks = Looks(tuple(far), (), Fraction(1), Fraction(0), known=far)
    glance = looks.draw(Secret(OpenedTable(open_source(pl.DataFrame(rows)))), Simulation(1))
    for name, (least, most) in far.items():
        found = glance.columns[name]
        assert isinstance(found, FoundNumber)
        assert found.hull is not None
        assert found.flag in (Flag.FOUND, Flag.CONSTANT)
        assert least <= found.lower <= found.centre <= found.upper <= most
        assert least <= found.hull[0] < found.hull[1] <= most


def test_a_narrow_column_is_not_lost_in_noise_beside_it() -> None:
    """Tails are sought in so many places that noise looks like one now and then; a heap of zeros is left alone."""
    generator, sigma = np.random.default_rng(3), 45.0
    counts = generator.normal(0, sigma, (4000, 32))
    counts[:, 20] += 2000
    ranges, least = Ranges(np.full(4000, 1e5), np.full(4000, 2e5)), bin_sets().least(sigma, 10)
    wide, narrow = (Reading.of_bins(counts, ranges, sigma, least, doubted=doubted) for doubted in (False, True))
    assert 0.03 < 1 - wide.narrow.mean() < 0.3
    assert narrow.narrow.mean() > 0.999
    lower, upper = narrow.hull.lower[narrow.narrow], narrow.hull.upper[narrow.narrow]
    assert np.all((lower < 1.64e5) & (upper > 1.64e5))
    zeros = Ranges(ranges.lower - 1.64e5, ranges.upper - 1.64e5)
    at_zero = [Reading.of_bins(counts, zeros, sigma, least, doubted=doubted).narrow for doubted in (False, True)]
    assert np.array_equal(at_zero[0], at_zero[1])


def test_a_heap_is_zoomed_while_bounds_stay_where_a_few_rows_beside_it_are_believed() -> None:
    generator, sigma = np.random.default_rng(3), 45.0
    counts = generator.normal(0, sigma, (1000, 32))
    counts[:, 20] += 2000
    ranges, least = Ranges(np.full(1000, 1e5), np.full(1000, 2e5)), bin_sets().least(sigma, 10)
    plain, heaped = (Reading.of_bins(counts, ranges, sigma, least, heaped=heaped) for heaped in (False, True))
    stretched = ~plain.narrow
    assert stretched.any()
    assert heaped.narrow.mean() > 0.999, "a centre and a scale from noise are as good as none"
    assert np.array_equal(heaped.hull.lower, plain.hull.lower), "what lies beside the heap may be rows"
    assert np.array_equal(heaped.bounds.upper, plain.bounds.upper)
    assert np.all(heaped.next.upper - heaped.next.lower <= 4.001 * 1e5 / 32)
    assert np.array_equal(heaped.heaps, stretched & heaped.narrow)
    counts[:, 20], counts[:, 21] = 0.0, 2000.0
    closer = heaped.closer(
        heaped.narrow, Reading.of_bins(counts[heaped.narrow], heaped.next.at(heaped.narrow), sigma, least, heaped=True)
    )
    seen = stretched & heaped.narrow & (closer.scale < heaped.bulk[1])
    assert seen.sum() > 0.9 * stretched.sum()
    nearest = np.maximum(plain.bounds.lower, closer.centre - 64 * closer.scale)
    kept = closer.bounds.lower[seen]
    assert np.all(kept <= nearest[seen])
    assert np.mean(kept == nearest[seen]) > 0.8, "what is far away for this scale is not believed"


def test_rows_that_are_surely_there_are_no_noise() -> None:
    counts = np.zeros((1, 32))
    counts[0, 3], counts[0, 4:14] = 2000.0, 80.0
    reading = Reading.of_bins(
        counts, Ranges(np.array([10.0]), np.array([42.0])), 20.0, bin_sets().clear(20.0, 4.0), doubted=True
    )
    assert (reading.hull.lower[0], reading.hull.upper[0], reading.narrow[0]) == (13.0, 24.0, False)


def test_the_side_of_zero_on_which_a_column_lies() -> None:
    ranges = Ranges(np.array([0.0, -4.0, -8.0]), np.array([2.0, 4.0, 0.0]))
    zoomed = ranges.doubled().cut(ranges.side)
    assert (zoomed.lower.tolist(), zoomed.upper.tolist()) == ([0.0, -8.0, -12.0], [3.0, 8.0, 0.0])


def test_thinner_tails_are_seen_where_that_is_asked_for() -> None:
    counts, range_ = np.array([[900.0, *[25.0] * 4, *[0.0] * 27]]), Ranges(np.array([0.0]), np.array([32.0]))
    least = bin_sets().clear(20.0, 4.0)
    ends = [Reading.of_bins(counts, range_, 20.0, least, tails=tails).hull.upper[0] for tails in (None, 2.5, 1.8)]
    assert ends == [1.0, 1.0, 3.0]


def test_a_second_mode_that_the_first_look_saw_is_no_noise() -> None:
    """Seven of ten rows near 10, the others near 100, each of which noise alone could be in a zoom."""
    rng = np.random.default_rng(3)
    modes = np.where(rng.random((2000, 11)) < 0.3, rng.normal(100, 5, (2000, 11)), rng.normal(10, 2, (2000, 11)))
    data = pl.DataFrame({f"x{at}": column for at, column in enumerate(modes.T)})
    looks = Looks(tuple(data.columns), (), Fraction(24, 100) * Fraction(".2291") ** 2)
    columns = looks.draw(Secret(OpenedTable(open_source(data), progress=False)), Simulation(1)).columns
    found = [one for one in columns.values() if isinstance(one, FoundNumber)]
    assert all(one.flag is Flag.FOUND and one.upper > 100 and 30 < one.scale < 55 for one in found)


def test_values_beside_zeros_that_the_first_look_saw_are_no_noise() -> None:
    """Eight of ten cells are 0 and the others spread over the bins of a zoom, in each of which noise hides them."""
    rng = np.random.default_rng(5)
    values = np.where(rng.random((2000, 11)) < 0.8, 0.0, rng.uniform(0, 100, (2000, 11)))
    data = pl.DataFrame({f"x{at}": column for at, column in enumerate(values.T)})
    looks = Looks(tuple(data.columns), (), Fraction(24, 100) * Fraction(".2291") ** 2)
    columns = looks.draw(Secret(OpenedTable(open_source(data), progress=False)), Simulation(1)).columns
    found = [one for one in columns.values() if isinstance(one, FoundNumber) and one.upper > 1]
    assert len(found) >= 8
    assert all(one.upper >= 64 and 8 < one.scale < 60 for one in found)


def test_a_hull_reaches_as_far_as_values_beside_zeros() -> None:
    counts, ranges = np.zeros((3, 32)), Ranges(np.array([0.0, -16.0, 0.0]), np.array([32.0, 16.0, 32.0]))
    counts[0, 0] = counts[1, 16] = 2000.0
    inf = np.inf
    seen = BesideZeros(np.array([inf, -8.0, inf]), np.array([20.0, -inf, -inf]), np.array([5.0, 3.0, 0.0]))
    reading = Reading.of_bins(counts, ranges, 20.0, bin_sets().clear(20.0, 4.0), beside_zeros=seen)
    assert reading.found.tolist() == [True, True, False]  # what a zoom does not find stays so
    assert (reading.hull.lower[:2].tolist(), reading.hull.upper[:2].tolist()) == ([0.0, -8.0], [21.0, 1.0])
    assert reading.scale[:2].tolist() == [5.0, 3.0]
    assert not reading.narrow.any()
