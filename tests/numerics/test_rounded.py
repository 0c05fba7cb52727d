"""What is clear of rounded noise, by the exact probabilities of its sums: nothing is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from mpmath import mp  # type: ignore[import-untyped]

from snugdp.numerics.rounded import all_clear, clear, exceeded

PHI = NormalDist().cdf


def _law(sigma: float) -> dict[int, Fraction]:
    """P[round(sigma Z) = k], to 40 digits."""
    mp.dps = 40
    reach = math.ceil(9 * sigma) + 1
    at_least = [mp.ncdf(-(mp.mpf(k) - 0.5) / mp.mpf(sigma)) for k in range(reach + 2)]
    tail = {k: Fraction(str(at_least[k] - at_least[k + 1])) for k in range(1, reach + 1)}
    return {0: 1 - 2 * sum(tail.values(), Fraction(0))} | tail | {-k: chance for k, chance in tail.items()}


def _sum_of(law: dict[int, Fraction], cells: int) -> dict[int, Fraction]:
    total = {0: Fraction(1)}
    for _ in range(cells):
        longer: dict[int, Fraction] = {}
        for k, chance in total.items():
            for j, other in law.items():
                longer[k + j] = longer.get(k + j, Fraction(0)) + chance * other
        total = longer
    return total


@pytest.mark.parametrize("sigma", [0.1, 0.23, 0.49, 0.9])
@pytest.mark.parametrize("cells", [1, 2, 4])
def test_sums_by_exact_arithmetic(cells: int, sigma: float) -> None:
    law = _sum_of(_law(sigma), cells)
    for rows in range(6):
        exact = float(sum(chance for k, chance in law.items() if k > rows))
        assert exceeded(cells, sigma, rows) == pytest.approx(exact, rel=1e-9, abs=1e-25)


@pytest.mark.parametrize("sigma", [0.05, 0.15, 0.2, 0.3, 0.49, 0.7, 1.0, 1.9, 2.0, 2.7, 5.0, 11.0])
def test_noise_is_above_what_is_clear_no_more_often_than_that(sigma: float) -> None:
    """For every deviation that looks use, and where a normal law takes the place of the exact one as well."""
    for cells in (1, 2, 3, 4, 8, 16, 31):
        for deviations in (1.8, 2.0, 2.5, 3.0, 4.37, 5.0, 6.33):
            least = clear(cells, sigma, deviations)
            assert exceeded(cells, sigma, least) <= PHI(-deviations)
            if sigma < 2 and least:  # and no lower number would do
                assert exceeded(cells, sigma, least - 1) > PHI(-deviations)


def test_deviations_alone_would_be_too_low() -> None:
    """The first row is 2.5 deviations of this noise away, and 4.4 deviations of it are less than a row."""
    assert 4.4 * 0.2 < 1
    assert exceeded(1, 0.2, 4.4 * 0.2) == pytest.approx(PHI(-2.5), rel=1e-9)
    assert exceeded(1, 0.2, clear(1, 0.2, 4.4)) < 1e-13


def test_a_row_for_each_deviation() -> None:
    table = all_clear(np.array([1.0, 4.0, 1.0]), np.array([0.2, 45.0]), 3.0)
    assert table.shape == (2, 3)
    assert table[0].tolist() == [clear(1, 0.2, 3.0), clear(4, 0.2, 3.0), clear(1, 0.2, 3.0)]
    assert table[1, 1] == clear(4, 45.0, 3.0)
    assert all_clear(1, 0.2, 3.0).shape == (1, 1)
