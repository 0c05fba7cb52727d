"""Intervals from sums with discrete Laplace noise cover as often as they say, about the sample as well."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from snugdp.mechanisms.scores.curves import ScoreBins
from snugdp.mechanisms.scores.images import CELLS
from snugdp.mechanisms.scores.intervals import ALPHA, LAPLACE, NoisyMean, NoisyRatio, at_kurtosis, proportion_interval
from snugdp.mechanisms.scores.result import ModelScores

DRAWS = 3000
LEAST, MOST = 0.94, 0.968  # three deviations around 95 to 95.5 %


def laplace(size: tuple[int, ...], epsilon: float, seed: int = 3) -> np.ndarray:
    """Discrete Laplace noise: the difference of two geometric numbers."""
    rng = np.random.default_rng(seed)
    p = 1 - math.exp(-epsilon)
    return rng.geometric(p, size) - rng.geometric(p, size)


def variance(epsilon: float) -> float:
    q = math.exp(-epsilon)
    return 2 * q / (1 - q) ** 2


def covered(ends: Callable[[np.ndarray], tuple[float, float]], noise: np.ndarray, truth: float) -> float:
    found = (ends(line) for line in noise)
    return sum(low <= truth <= high for low, high in found) / len(noise)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_proportions_of_the_sample(share: float) -> None:
    yes, no, v = 1000 * share, 1000 * (1 - share), variance(0.5)

    def ends(e: np.ndarray, kurtosis: float = LAPLACE) -> tuple[float, float]:
        tails = (kurtosis, kurtosis)
        return proportion_interval(yes + e[0], no + e[1], (v, v), sampling=False, kurtosis=tails)

    noise = laplace((DRAWS, 2), 0.5)
    assert LEAST < covered(ends, noise, share) < MOST
    if share == 0.1:
        assert covered(lambda e: ends(e, 0.0), noise, share) < 0.945, "normal quantiles are too short"


def test_a_small_mean_of_the_sample_is_all_laplace() -> None:
    """As of the log-loss: a tenth of its largest value, so that one of both sums has all of the noise."""

    def ends(e: np.ndarray) -> tuple[float, float]:
        return NoisyMean(110 + e[0], 890 + e[1], 0.0, math.sqrt(variance(0.5)), 0.5, LAPLACE).interval(sampling=False)

    assert LEAST < covered(ends, laplace((DRAWS, 2), 0.5), 0.11) < MOST


def test_ratios_and_areas() -> None:
    v = variance(0.5)
    noise = laplace((DRAWS, 30), 0.5)
    fourth = LAPLACE * v**2 * (1 + 0.4**4)

    def ratio(e: np.ndarray) -> tuple[float, float]:
        return NoisyRatio(400 + e[0], 1000 + e[1], v, v, 0.0, fourth).interval()

    assert LEAST < covered(ratio, noise, 0.4) < MOST
    rng = np.random.default_rng(1)
    P, Q = (np.bincount(np.clip(rng.normal(m, 3, 4000), 0, 14.99).astype(int), minlength=15) for m in (9, 6))
    exact = ScoreBins(tuple(P), tuple(Q), v).area()

    def area(e: np.ndarray) -> tuple[float, float]:
        return ScoreBins(tuple(P + e[:15]), tuple(Q + e[15:]), v, (), LAPLACE).area_interval(sampling=False)

    assert covered(area, noise, exact) > LEAST


def test_normal_noise_has_normal_quantiles() -> None:
    assert at_kurtosis(ALPHA, 0.0, 1.0) == ALPHA
    assert at_kurtosis(ALPHA, LAPLACE, 0.0) == ALPHA, "nothing is known: nothing is corrected"
    sums = {"log_loss": (100 * CELLS, 900 * CELLS, 10 * CELLS**2)}
    pure, other = (
        ModelScores("two", ("log_loss",), sums, {"log_loss": 2.0 * CELLS}, pure, 0, (0, 1))["log_loss"]
        for pure in (True, False)
    )
    wide, narrow = (each.sample_upper - each.sample_lower for each in (pure, other))
    assert 1.05 < wide / narrow < 1.12
