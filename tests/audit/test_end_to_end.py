"""Layer E: seen from outside. Right claims pass; what is grossly wrong does not."""

import numpy as np
import pytest

from snugdp.audit.density.tail import hockey
from snugdp.audit.end_to_end import end_to_end, learnt, lower_deltas
from snugdp.core.guarantee import Cost
from snugdp.noise import Gumbel, Noise
from snugdp.secrecy.secret import Secret
from tests.audit.toys import Rows, Walk, case, checked_sum, clipped, gaussian_sum, laplace_sum
from tests.effort import sampled


def winner(data: Secret[Rows], noise: Noise) -> str:
    """Which of two words; its chances change with the number of rows."""
    return ("few", "many")[noise.argmax(data.map(lambda rows: [5, len(rows)]), Gumbel(1))]


@sampled(6)
@pytest.mark.parametrize(
    ("walk", "cost"),
    [
        (gaussian_sum(1), Cost(mu=1)),
        (laplace_sum(1), Cost(epsilon=1)),
        (checked_sum(), Cost(mu=1, epsilon=1)),
        (winner, Cost(epsilon=1)),
    ],
)
def test_right_claims_pass(walk: Walk, cost: Cost) -> None:
    (found,) = end_to_end(case(walk, cost, tight=False), runs=600)
    assert found.passed, found


@pytest.mark.slow
def test_noise_five_times_too_small_is_seen() -> None:
    (found,) = end_to_end(case(gaussian_sum(1), Cost(mu=1)), runs=600)
    assert "80% smaller is seen" in found.detail
    assert not end_to_end(case(gaussian_sum(1), Cost(mu=0.2)), runs=1500)[0].passed


def plain(data: Secret[Rows], noise: Noise) -> float:
    return float(noise.reveal(data.map(clipped)))


def test_no_noise_is_seen_and_a_claim_that_hides_it_is_too_weak() -> None:
    assert not end_to_end(case(plain, Cost(epsilon=1)), runs=200)[0].passed
    (found,) = end_to_end(case(gaussian_sum(50), Cost(epsilon=1)), runs=200)
    assert not found.passed
    assert "too weak" in found.detail


def test_refusals_and_words_tell_too() -> None:
    def refuses(data: Secret[Rows], noise: Noise) -> str | None:
        return "yes" if noise.reveal(data.map(len)) > 4 else None

    def names(data: Secret[Rows], noise: Noise) -> str:
        return f"rows: {noise.reveal(data.map(len))}"

    for walk in (refuses, names):
        assert not end_to_end(case(walk, Cost(epsilon=1)), runs=200)[0].passed


def test_what_was_learnt_from_is_not_counted() -> None:
    noise = np.random.default_rng(5).normal(size=(2, 400, 30))
    first, second = ([list(row) for row in part] for part in noise)  # nothing to tell apart, much to learn by heart
    scores = learnt(first, second)
    trained = float((scores[0][::2] >= 0).mean() - (scores[1][::2] >= 0).mean())
    counted = float((scores[0][1::2] >= 0).mean() - (scores[1][1::2] >= 0).mean())
    assert trained > 0.2 > counted
    assert lower_deltas(*scores, np.array([0.0]))[0][0] == 0.0


def test_lower_deltas_are_below_the_truth() -> None:
    generator = np.random.default_rng(6)
    low, mean = lower_deltas(generator.normal(2, 1, 8000), generator.normal(0, 1, 8000), np.array([0.0, 1.0]))
    truth = hockey(2.0, np.array([0.0, 1.0]))
    assert np.all(0.7 * truth < low)
    assert np.all(low < truth)
    assert np.all(low < mean)
