"""The length of rows: from noisy counts of bins to a radius."""

import math
from fractions import Fraction

import numpy as np
import pytest

from snugdp import Cost, Simulation
from snugdp.mechanisms.bounds.lengths import BINS, RowLengths, longest
from snugdp.noise import Gaussian
from snugdp.secrecy.secret import Secret

LENGTHS = RowLengths(Fraction(1, 100), 0.1)


def in_bin(place: int, rows: int) -> list[int]:
    return [rows if k == place else 0 for k in range(BINS)]


def test_its_noise_is_what_it_pays_for() -> None:
    assert 0 <= LENGTHS.deviation**2 * LENGTHS.mu_squared - 1 < 1e-9
    assert LENGTHS.step.cost == Cost(mu_squared=Fraction(1, 100))
    noise = Simulation(1)
    drawn = np.array(
        [noise.at("length").add_integers(Secret([0] * BINS), Gaussian(LENGTHS.deviation)) for _ in range(400)]
    )
    assert drawn.std() == pytest.approx(float(LENGTHS.deviation), rel=0.05)


@pytest.mark.parametrize("entries", [1, 4, 1000])
def test_a_clear_bin_is_the_radius(entries: int) -> None:
    for place in range(BINS):
        radius, rows = LENGTHS.read(in_bin(place, 100_000), entries)
        assert radius == pytest.approx(longest(entries) * 2 ** (-place / 4))
        assert rows == 100_000


def test_without_clear_bins_rows_are_as_long_as_usual() -> None:
    """The guess is the root of the number of entries: that of standardised rows."""
    for counts in ([0] * BINS, [-50] * BINS, in_bin(3, 20)):
        radius, rows = LENGTHS.read(counts, 9)
        assert radius == pytest.approx(3.0)
        assert rows == float(LENGTHS.deviation)


def test_a_share_of_the_rows_may_be_longer() -> None:
    counts = [a + b for a, b in zip(in_bin(2, 900), in_bin(14, 10_000), strict=True)]
    assert LENGTHS.read(counts, 4)[0] == pytest.approx(longest(4) * 2 ** (-14 / 4))  # 8 % are longer
    counts = [a + b for a, b in zip(in_bin(2, 1200), in_bin(14, 10_000), strict=True)]
    assert LENGTHS.read(counts, 4)[0] == pytest.approx(longest(4) * 2 ** (-2 / 4))
    assert RowLengths(Fraction(1, 100), 0.5).read(counts, 4)[0] == pytest.approx(longest(4) * 2 ** (-14 / 4))


def test_all_radii_are_sane() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts = rng.integers(-(10**6), 10**6, BINS).tolist()
        radius, rows = LENGTHS.read(counts, 7)
        assert longest(7) / 2**8 < radius <= longest(7)
        assert 0 < rows < math.inf
