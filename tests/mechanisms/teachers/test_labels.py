"""Noisy labels: their exact laws on all neighbours against the stated cost, and the draws against those laws."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from snugdp import Budget, Exact, Neighbours, Simulation
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.teachers.labels import NO_ANSWER, ConfidentLabels, NoisyLabels, gaussian_cost, sigma_for
from snugdp.noise import Noise
from snugdp.secrecy.secret import PrivateComputationError, Secret
from tests.accounting.hockey import hockey_stick
from tests.effort import sampled
from tests.mechanisms.noisy_votes import joint, moved, probabilities

Floats = NDArray[np.float64]
Votes = tuple[int, ...]
Tables = Sequence[tuple[Votes, ...]]

LEVELS = [-2.0, -0.5, 0.0, 0.1, 0.3, 0.7, 1.0, 1.5, 2.5, 4.0]
sources = pytest.mark.parametrize("noise", [Exact(), Simulation(11)], ids=lambda noise: type(noise).__name__)


def label_law(votes: Votes, sigma: float) -> Floats:
    """P(each class wins)."""
    return probabilities(votes, "gaussian", sigma)


def confident_law(votes: Votes, sigma: float, threshold: float, threshold_sigma: float) -> Floats:
    """The same with one output more, in the last place, for no answer."""
    answered = special.ndtr((max(votes) - threshold) / threshold_sigma)
    return np.append(answered * label_law(votes, sigma), 1 - answered)


def worst_excess(tables: Tables, law: Any, cost: Cost) -> float:
    """How far any pair of neighbours is above the stated delta, at any level; all queries change at once."""
    allowed = {level: cost.delta_at(level) for level in LEVELS}
    one = cache(law)

    worst = -1.0
    for table in tables:
        here = joint(map(one, table))
        for other in itertools.product(*(moved(votes) for votes in table)):
            there = joint(map(one, other))
            for level in LEVELS:
                for pair in ((here, there), (there, here)):
                    worst = max(worst, hockey_stick(*pair, level) - allowed[level])
    return worst


SINGLE = [(votes,) for votes in [*itertools.product(range(6), repeat=2), *itertools.product(range(4), repeat=3)]]
DOUBLE = [
    (a, b) for a in [(3, 0), (2, 1), (1, 1), (0, 0), (4, 1)] for b in [(3, 0, 0), (1, 1, 1), (2, 1, 0), (0, 3, 1)]
]


@sampled(2)
@pytest.mark.parametrize(("tables", "queries"), [(SINGLE, 1), (DOUBLE, 2)], ids=["one query", "two queries"])
@pytest.mark.parametrize("sigma", [1, 3])
def test_no_pair_of_neighbours_exceeds_the_cost(tables: Tables, queries: int, sigma: int) -> None:
    assert worst_excess(tables, lambda votes: label_law(votes, sigma), gaussian_cost(queries, sigma)) < 1e-12


@sampled(2)
@pytest.mark.parametrize("lowered", ["one move counts once", "less noise"])
def test_a_lower_cost_would_be_found_out(lowered: str) -> None:
    """Between two classes the label is an optimal event of the Gaussian pair, so there is no room at all."""
    claimed = gaussian_cost(1, 3) if lowered == "less noise" else Cost(mu_squared=Fraction(1, 9))
    used = 2.7 if lowered == "less noise" else 3
    assert worst_excess(SINGLE, lambda votes: label_law(votes, used), claimed) > 1e-3


@pytest.mark.slow
def test_two_classes_attain_the_cost() -> None:
    sigma, cost = 20, gaussian_cost(1, 20)
    for level in (0.02, 0.05, 0.1):
        found = max(
            hockey_stick(label_law((100 + g, 100), sigma), label_law((99 + g, 101), sigma), level)
            for g in range(-99, 100)
        )
        assert found == pytest.approx(cost.delta_at(level), rel=1e-3)


@sampled(3)
@pytest.mark.parametrize("sigmas", [(1, 1), (3, 2), (2, 5)], ids=str)
def test_the_confident_form_on_all_neighbours(sigmas: tuple[int, int]) -> None:
    sigma, threshold_sigma = sigmas
    for tables, queries in ((SINGLE, 1), (DOUBLE[::3], 2)):
        cost = gaussian_cost(queries, sigma, threshold_sigma)
        assert worst_excess(tables, lambda votes: confident_law(votes, sigma, 2.5, threshold_sigma), cost) < 1e-12


def test_a_threshold_for_free_would_be_found_out() -> None:
    law = lambda votes: confident_law(votes, 9, 2.5, 1)  # noqa: E731
    assert worst_excess(SINGLE, law, gaussian_cost(1, 9)) > 0.05


def chi2_p(seen: NDArray[Any], chances: Floats) -> float:
    return float(stats.chisquare(seen, chances * seen.sum()).pvalue)


@sources
def test_labels_have_their_law_and_no_other(noise: Noise) -> None:
    votes, n = (9, 7, 2), 20_000
    data = Secret(np.tile(votes, (n, 1)))
    for sigma in (3, Fraction(12, 5), Fraction(15, 4)):
        seen = np.bincount(NoisyLabels(Fraction(sigma)).draw(data, noise), minlength=3)
        assert (chi2_p(seen, label_law(votes, 3)) > 1e-7) == (sigma == 3)


@sources
def test_confident_labels_have_their_law_and_no_other(noise: Noise) -> None:
    votes, n = (9, 7, 2), 120_000
    data = Secret(np.tile(votes, (n, 1)))
    for scale, threshold in ((Fraction(1), 10), (Fraction(4, 5), 10), (Fraction(1), Fraction(21, 2))):
        labels = ConfidentLabels(Fraction(3), Fraction(threshold), 4 * scale).draw(data, noise)
        seen = np.bincount(np.where(labels == NO_ANSWER, 3, labels), minlength=4)
        assert (chi2_p(seen, confident_law(votes, 3, 10, 4)) > 1e-7) == (scale == 1 and threshold == 10)


@sources
def test_each_query_has_its_own_answer(noise: Noise) -> None:
    table = np.array([[0, 900, 0], [300, 299, 301], [900, 0, 0], [0, 0, 900]])
    assert NoisyLabels(Fraction(1, 10)).draw(Secret(table), noise).tolist() == [1, 2, 0, 2]
    confident = ConfidentLabels(Fraction(1, 10), Fraction(600), Fraction(10))
    assert confident.draw(Secret(table), noise).tolist() == [1, NO_ANSWER, 0, 2]
    assert confident.draw(Secret(table[:0]), noise).tolist() == []


def test_costs_are_exact() -> None:
    cost = gaussian_cost(7, 0.1, "1/3", Neighbours.REPLACE)
    assert cost.mu_squared == 7 * (200 + 9)
    assert cost.neighbours is Neighbours.REPLACE
    assert gaussian_cost(0, 5).mu_squared == 0
    assert gaussian_cost(3, 2) + gaussian_cost(4, 2) == gaussian_cost(7, 2)


@pytest.mark.parametrize("threshold_sigma", [None, 150])
@pytest.mark.parametrize("queries", [1, 200, 100_000])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-5), (20, 1e-3)])
def test_sigma_for_is_the_smallest_that_fits(
    epsilon: float, delta: float, queries: int, threshold_sigma: int | None
) -> None:
    budget = Budget(epsilon, delta, Neighbours.REPLACE)
    if threshold_sigma is not None and not gaussian_cost(queries, 10**9, threshold_sigma, "replace").fits(budget):
        with pytest.raises(ValueError, match="threshold_sigma"):
            sigma_for(budget, queries, threshold_sigma)
        return
    sigma = sigma_for(budget, queries, threshold_sigma)
    assert gaussian_cost(queries, sigma, threshold_sigma, "replace").fits(budget)
    assert not gaussian_cost(queries, sigma * Fraction(999_999, 1_000_000), threshold_sigma, "replace").fits(budget)


def test_public_mistakes_are_named() -> None:
    for bad in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="sigma"):
            NoisyLabels(bad)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="threshold_sigma"):
            ConfidentLabels(Fraction(1), Fraction(2), bad)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="sigma"):
            gaussian_cost(3, bad)
    with pytest.raises(ValueError, match="threshold"):
        ConfidentLabels(Fraction(1), math.inf, Fraction(1))  # type: ignore[arg-type]
    for queries in (-1, 1.5, True):
        with pytest.raises(ValueError, match="number of queries"):
            gaussian_cost(queries, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="number of queries"):
        sigma_for(Budget(1, 1e-6), 0)
    with pytest.raises(ValueError, match="delta above 0"):
        sigma_for(Budget(1), 5)
    assert NoisyLabels(0.1).sigma == Fraction(1, 10)  # type: ignore[arg-type]


def test_shapes_are_refused_in_public() -> None:
    for wrong in (np.zeros(3, dtype=np.int64), np.zeros((3, 0), dtype=np.int64)):
        for mechanism in (NoisyLabels(Fraction(1)), ConfidentLabels(Fraction(1), Fraction(1), Fraction(1))):
            with pytest.raises((ValueError, PrivateComputationError)):
                mechanism.draw(Secret(wrong), Exact())
