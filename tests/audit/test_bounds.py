"""Intervals miss no more often than they say, and what is no number counts against the claim."""

import math

import numpy as np
import pytest
from scipy import stats

from snugdp.audit import bounds
from tests.effort import sampled


@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (3, 10), (10, 10), (500, 20000)])
def test_clopper_pearson_is_the_exact_binomial_test(hits: int, runs: int) -> None:
    low, high = bounds.clopper_pearson(hits, runs, 0.02)
    assert low == 0 if not hits else stats.binom.sf(hits - 1, runs, low) == pytest.approx(0.01, rel=1e-6)
    assert high == 1 if hits == runs else stats.binom.cdf(hits, runs, high) == pytest.approx(0.01, rel=1e-6)


@sampled(4)
@pytest.mark.parametrize("law", ["coin", "loss", "rare"])
def test_means_are_missed_seldom_enough(law: str) -> None:
    generator = np.random.default_rng(11)
    mean = {"coin": 0.3, "loss": 0.3829249, "rare": 0.01}[law]
    missed = 0
    for _ in range(120):
        if law == "loss":
            values = np.maximum(0.0, -np.expm1(-generator.normal(0.5, 1, 200)))
        else:
            values = (generator.random(200) < mean).astype(float)
        low, high = bounds.mean_interval(values, 0.1)
        missed += not low <= mean <= high
    assert missed <= stats.binom.isf(1e-9, 120, 0.1)


def test_betting_finds_a_fifth_less_noise() -> None:
    losses = np.random.default_rng(1).normal(1.25**2 / 2, 1.25, 1200)
    values = np.maximum(0.0, -np.expm1(-losses))
    assert bounds.lowest_mean(values, 1e-7) > 0.3829249


def test_capital_falls_with_the_mean_and_zero_means_never() -> None:
    values = np.array([0.2, 0.9, 0.0, 0.4])
    capital = [bounds.won(values, mean) for mean in (0.05, 0.2, 0.5, 1.0)]
    assert capital == sorted(capital, reverse=True)
    assert bounds.won(values, 0.0) == math.inf
    assert bounds.won(np.zeros(4), 0.0) == 0.0


def test_what_is_no_number_counts_as_one() -> None:
    bad = np.full(50, np.nan)
    assert bounds.lowest_mean(bad) > 0.5
    assert bounds.won(bad, 0.1) > math.log(1e7)


def test_bounds_from_rates() -> None:
    assert bounds.epsilon_bound(0.05, 0.1, 0.05) == -math.inf
    assert bounds.epsilon_bound(0.5, 0.0, 0.05) == math.inf
    assert bounds.gaussian_bound(0.5, 0.5) == pytest.approx(0)


def test_bounds_from_scores_are_below_the_truth_and_near_it() -> None:
    generator = np.random.default_rng(3)
    first, second = generator.normal(2, 1, 20_000), generator.normal(0, 1, 20_000)
    assert 1.7 < bounds.mu_from_scores(first, second) < 2
    t = np.linspace(-2, 4, 4000)
    best = float(np.max(np.log(np.maximum(stats.norm.sf(t - 2) - 0.05, 1e-9) / stats.norm.sf(t))))
    assert 0.6 * best < bounds.epsilon_from_scores(first, second, 0.05) < best


def test_bad_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        bounds.mean_interval([0.1], 0)
    with pytest.raises(ValueError, match="hits"):
        bounds.clopper_pearson(3, 2)
