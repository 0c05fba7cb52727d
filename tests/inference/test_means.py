"""Intervals for the population, of means, proportions and differences."""

import math

import numpy as np
import pytest

from snugdp.inference.means import SampledMean, normal_contrast

NOISE = (50.0, 30.0, 20.0)  # of rows, of the sum, and together


def test_the_ends_are_where_sampling_and_noise_just_explain_the_distance() -> None:
    for variance in (None, 0.03):
        sums = SampledMean(400.0, 90.0, variance, NOISE)
        for alpha in (0.05, 0.3):
            z = {0.05: 1.959964, 0.3: 1.036433}[alpha]
            for t in map(float, sums.interval(alpha)):
                own = 400 * (t * (1 - t) if variance is None else variance) + 30 - 2 * t * 20 + t**2 * 50
                assert abs(90 - 400 * t) == pytest.approx(z * math.sqrt(own), rel=1e-5)


def test_where_rows_may_be_none_nothing_is_said() -> None:
    sums = SampledMean([-5.0, 0.0, 9.0, 1e6, 30.0], [3.0, 1.0, 4.0, 5e5, 9e9], 0.05, NOISE)
    low, high = sums.interval()
    assert low.tolist()[:3] == [0.0] * 3
    assert high.tolist()[:3] == [1.0] * 3
    assert 0.499 < low[3] < 0.5 < high[3] < 0.501
    assert (low[4], high[4]) == (0.0, 1.0), "a sum that numbers in [0, 1] cannot have"
    assert np.isinf(sums.standard_error[:2]).all()
    assert sums.mean.tolist()[:2] == [0.5, 0.5]


def test_intervals_cover_with_sampling_and_noise_of_one_size() -> None:
    rng, runs, n = np.random.default_rng(5), 20_000, 300
    x = rng.binomial(n, 0.3, runs) + rng.normal(0, 6, runs)
    rows = n + rng.normal(0, 6, runs)
    for variance in (None, 0.21):
        sums = SampledMean(rows, x, variance, (36.0, 36.0, 0.0))
        low, high = sums.interval()
        covered = np.mean((low <= 0.3) & (high >= 0.3))
        assert abs(covered - 0.95) < 0.007
        assert sums.standard_error.mean() == pytest.approx(np.std(x / rows), rel=0.02)


def test_a_contrast_is_as_far_from_its_null_as_clipping_leaves_it() -> None:
    found = normal_contrast(5.0, 1.0, null=1.0, hidden=(2.0, 0.0))
    assert found.p_value == pytest.approx(0.0455, abs=1e-4)
    assert (found.lower, found.upper) == pytest.approx((1.04, 6.96), abs=0.001)
    assert normal_contrast(5.0, 1.0, null=4.0, hidden=(2.0, 0.0)).p_value == 1.0
    nothing = normal_contrast(5.0, math.inf, hidden=(0.0, 0.0))
    assert (nothing.lower, nothing.upper, nothing.p_value) == (-math.inf, math.inf, 1.0)
    with pytest.raises(ValueError, match="alpha"):
        normal_contrast(1.0, 1.0, alpha=0.0, hidden=(0.0, 0.0))
