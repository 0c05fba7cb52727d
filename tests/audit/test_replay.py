"""Losses of whole walks: exact where the law is known, infinite where a neighbour cannot have walked the same way."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.audit.finding import Case
from snugdp.audit.replay import losses, path, realised
from snugdp.core.guarantee import Cost
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from tests.audit.toys import PAIRS, Rows, case, checked_sum, clipped, gaussian_sum, laplace_sum

ONE, TWO = PAIRS[0]


def test_a_gaussian_walk_has_the_losses_of_its_mu() -> None:
    found = losses(case(gaussian_sum(2), Cost(mu=0.5)), ONE, TWO, 600, 1)
    assert abs(found.mean() - 0.125) < 6 * 0.5 / math.sqrt(600)
    assert abs(found.std() - 0.5) < 6 * 0.5 / math.sqrt(1200)


def test_a_laplace_walk_never_exceeds_its_epsilon() -> None:
    found = losses(case(laplace_sum(2), Cost(epsilon=0.5)), ONE, TWO, 500)
    assert np.abs(found).max() == pytest.approx(0.5, abs=1e-12)


def test_both_directions_agree_on_the_same_answers() -> None:
    one = path(case(checked_sum(), Cost(mu=1)), ONE, TWO, 3)
    assert one.loss == pytest.approx(sum(a - b for a, b in _logs(one)))
    assert not one.reason


def _logs(one: Any) -> list[tuple[float, float]]:
    from snugdp.audit.density.sites import log_probability

    return [(log_probability(a), log_probability(b)) for a, b in one.pairs]


def test_what_is_told_past_the_noise_is_an_infinite_loss() -> None:
    def walk(data: Secret[Rows], noise: Noise) -> tuple[int, int]:
        seen: list[int] = []
        data.map(lambda rows: seen.append(len(rows)))
        return noise.add_integers(data.map(lambda rows: [clipped(rows)]), Gaussian(10**9))[0], seen[0]

    one = path(case(walk, Cost(mu=1)), ONE, TWO, 3)
    assert one.reason == "the outcome differs though all answers are the same"
    assert one.loss == math.inf


def test_noise_that_follows_the_data_is_an_infinite_loss() -> None:
    def walk(data: Secret[Rows], noise: Noise) -> int:
        seen: list[int] = []
        data.map(lambda rows: seen.append(len(rows)))
        return noise.add_integers(data.map(lambda rows: [clipped(rows)]), Gaussian(10**9 + seen[0]))[0]

    assert path(case(walk, Cost(mu=1)), ONE, TWO, 3).reason == "the walk differs"


def test_an_error_on_one_side_is_an_infinite_loss() -> None:
    def walk(data: Secret[Rows], noise: Noise) -> int:
        answer = noise.add_integers(data.map(lambda rows: [clipped(rows)]), Gaussian(10**9))[0]
        data.map(lambda rows: 1 / (len(rows) - 4))
        return answer

    assert path(case(walk, Cost(mu=1)), ONE, TWO, 3).reason == "an error on one side"


def test_a_walk_that_ends_early_is_an_infinite_loss() -> None:
    def walk(data: Secret[Rows], noise: Noise) -> int:
        seen: list[int] = []
        data.map(lambda rows: seen.append(len(rows)))
        for _ in range(seen[0]):
            noise.choice(5)
        return 1

    assert path(case(walk, Cost(mu=1)), ONE, TWO, 3).reason == "the walk ends early"
    assert path(case(walk, Cost(mu=1)), TWO, ONE, 3).reason == "the walk differs"


def test_what_is_realised_is_exact() -> None:
    found = realised(case(checked_sum(0), Cost(mu=1, epsilon=1)), ONE, TWO, 1)
    assert found.mu_squared == 1
    assert found.epsilon == Fraction(1)
    assert found.other == ()
    assert [step.method for step in found.steps] == ["at_least", "add_integers"]


@pytest.mark.parametrize("method", ["auto", "adassp", "sufficient", "objective", "posterior", "output"])
def test_every_way_to_fit_a_line_can_be_replayed(method: str) -> None:
    X, y = np.array([[0.3], [-0.5], [0.8], [1.0]]), np.array([0.2, -0.4, 0.7, 1.0])

    def run(rows: tuple[Any, Any], noise: Noise) -> Any:
        model = snugdp.LinearRegression(1, 0.05, method=method, x_norm=1, y_bound=1, fit_intercept=False, noise=noise)
        return model.fit(*rows).outcome_

    line = Case[Any](method, run, Cost(mu=1), list)
    one, two = (X, y), (X[:-1], y[:-1])
    there, back = path(line, one, two, 5), path(line, two, one, 5)
    assert (there.reason, back.reason) == ("", "")
    assert 0 < abs(there.loss) < 10
    assert 0 < abs(back.loss) < 10
