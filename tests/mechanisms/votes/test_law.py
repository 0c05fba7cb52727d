"""Noisy maximum over many candidates: the law, its worst cases and what breaks them."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from snugdp.mechanisms.votes import vote
from tests.accounting.atoms import gaussian_delta
from tests.effort import sampled
from tests.mechanisms.noisy_votes import Noise, Relation, largest_delta, probabilities

NOISES: tuple[Noise, ...] = ("laplace", "gaussian", "gumbel")
RELATIONS: tuple[Relation, ...] = ("add_remove", "replace")
SMALL = [np.array(c) for c in combinations_with_replacement(range(4), 3)]  # the candidates are alike


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", [0.05, 0.7, 4.0, 1000.0])
def test_probabilities_sum_to_one(noise: Noise, scale: float) -> None:
    for counts in ([0], [0, 0, 0], [5, 4, 3, 0], [100_000, 0, 3], [7] * 30, list(range(50))):
        law = probabilities(np.array(counts), noise, scale)
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert (law >= 0).all()
        assert np.all(np.diff(law[np.argsort(counts)]) >= -1e-15)


@pytest.mark.parametrize("gap", [0, 1, 3, 20])
def test_two_candidates_have_closed_forms(gap: int) -> None:
    counts, scale = np.array([gap, 0]), 1.7
    laplace = probabilities(counts, "laplace", scale)[1]
    assert laplace == pytest.approx(math.exp(vote.log_losing_probability(gap / scale)), rel=1e-11)
    gaussian = probabilities(counts, "gaussian", scale)[1]
    assert gaussian == pytest.approx(math.erfc(gap / scale / 2) / 2, rel=1e-9, abs=1e-20)
    gumbel = probabilities(counts, "gumbel", scale)[1]
    assert gumbel == pytest.approx(1 / (1 + math.exp(gap / scale)), rel=1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unlisted", [False, True])
def test_neighbours_by_enumeration(noise: Noise, relation: Relation, unlisted: bool) -> None:
    for counts in (np.array([2, 2, 0]), np.array([0, 0, 0]), np.array([3, 1, 1, 3]), np.array([1, 0])):
        here, worst = probabilities(counts, noise, 1.5), 0.0
        moves = [move for move in product((-1, 0, 1), repeat=counts.size) if any(move)]
        for move in moves:
            single, swap = sum(map(abs, move)) == 1, sum(map(abs, move)) == 2 and sum(move) == 0
            allowed = (single and (relation == "add_remove" or unlisted)) or (swap and relation == "replace")
            if allowed and (counts + move).min() >= 0:
                there = probabilities(counts + np.array(move), noise, 1.5)
                for a, b in ((here, there), (there, here)):
                    worst = max(worst, float(np.maximum(a - math.exp(0.1) * b, 0).sum()))
        ours = largest_delta(counts, noise, 1.5, 0.1, relation, unlisted=unlisted)
        assert ours == pytest.approx(worst, abs=1e-14)


@sampled(2)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", ["laplace", "gumbel"])
def test_pure_worst_case_over_all_small_counts(noise: Noise, relation: Relation) -> None:
    scale = 0.5
    epsilon = vote.step(relation) / scale  # vote.proof.md, Theorem 5

    def worst(true_scale: float) -> float:
        return max(largest_delta(c, noise, true_scale, epsilon, relation, unlisted=True) for c in SMALL)

    assert worst(scale) < 1e-12
    assert worst(0.8 * scale) > 1e-5


@sampled(2)
@pytest.mark.parametrize("relation", RELATIONS)
def test_gaussian_worst_case_over_all_small_counts(relation: Relation) -> None:
    scale = 1.5
    mu = math.sqrt(vote.step(relation)) / scale
    broken = False
    for epsilon in (0.0, 0.3, 1.0):
        claim = gaussian_delta(mu, epsilon)
        for counts in SMALL:
            law = largest_delta(counts, "gaussian", scale, epsilon, relation, unlisted=True)
            assert law <= claim + 1e-12
            broken |= largest_delta(counts, "gaussian", 0.7 * scale, epsilon, relation) > claim
    assert broken
