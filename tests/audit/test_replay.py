"""Losses of whole walks: exact where the law is known, infinite where a neighbour cannot have walked the same way."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.audit.finding import Case
from snugdp.audit.replay import losses, path, realised_by
from snugdp.core.guarantee import Cost
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from tests.audit.toys import PAIRS, Rows, Walk, case, checked_sum, clipped, gaussian_sum, laplace_sum, peeked
from tests.effort import sampled

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


def noisy(data: Secret[Rows], noise: Noise, more: int = 0) -> int:
    return noise.add_integers(data.map(lambda rows: [clipped(rows)]), Gaussian(10**9 + more))[0]


def fails(data: Secret[Rows], noise: Noise) -> int:
    answer = noisy(data, noise)
    data.map(lambda rows: 1 / (len(rows) - 4))
    return answer


def one_draw_a_row(data: Secret[Rows], noise: Noise) -> int:
    for _ in range(peeked(data)):
        noise.choice(5)
    return 1


@pytest.mark.parametrize(
    ("walk", "reason"),
    [
        (lambda data, noise: (noisy(data, noise), peeked(data)), "the outcome differs though all answers are the same"),
        (lambda data, noise: noisy(data, noise, peeked(data)), "the walk differs"),
        (fails, "an error on one side"),
        (one_draw_a_row, "the walk ends early"),
    ],
)
def test_what_a_neighbour_cannot_have_done_is_an_infinite_loss(walk: Walk, reason: str) -> None:
    one = path(case(walk, Cost(mu=1)), ONE, TWO, 3)
    assert one.reason == reason
    assert one.loss == math.inf


def test_more_draws_than_before_are_another_walk() -> None:
    assert path(case(one_draw_a_row, Cost(mu=1)), TWO, ONE, 3).reason == "the walk differs"


def test_what_is_realised_is_exact() -> None:
    found = realised_by(path(case(checked_sum(0), Cost(mu=1, epsilon=1)), ONE, TWO, 1))
    assert found.mu_squared == 1
    assert found.epsilon == Fraction(1)
    assert found.other == ()
    assert [step.method for step in found.steps] == ["at_least", "add_integers"]


@sampled(8)
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
