"""Intervals and tests from a noisy linear equation."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, stdtrit

from snugdp.inference.equation import NoisyEquation, matrix_noise_covariance
from tests.effort import often, repeated


def equation(matrix_noise: float = 3.0, score_noise: float = 5.0, d: int = 3) -> NoisyEquation:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(400, d))
    return NoisyEquation(
        rows.T @ rows, rng.normal(size=d), 2 * rows.T @ rows, 30.0, matrix_noise, score_noise, rng.normal(size=d)
    )


def test_the_ends_of_an_interval_have_its_level_as_p_value() -> None:
    for given in (equation(), equation(0.0, 0.0), equation(30.0)):
        for weights in ([1, 0, 0], [1, -1, 0], [0.2, 3, -1]):
            found = given.contrast(weights, 0.1)
            for end in (found.lower, found.upper):
                assert given.contrast(weights, null=end).p_value == pytest.approx(0.1, rel=1e-6)
            assert found.lower < found.estimate < found.upper
            assert given.contrast(weights, null=found.estimate).p_value == pytest.approx(1.0)


def test_without_noise_it_is_walds_interval() -> None:
    given = equation(0.0, 0.0)
    inverse = np.linalg.inv(given.matrix)
    covariance = inverse @ (given.scores + 30 * np.eye(3)) @ inverse
    found = given.contrast([1, 2, -1])
    error = math.sqrt(np.array([1, 2, -1]) @ covariance @ np.array([1, 2, -1]))
    assert found.standard_error == pytest.approx(error)
    assert found.upper - found.lower == pytest.approx(2 * 1.959964 * error, rel=1e-5)
    assert found.z == pytest.approx(found.estimate / error)


def test_a_matrix_that_is_hardly_more_than_its_noise_says_nothing() -> None:
    given = equation(1e4)
    found = given.contrast([1, 0, 0])
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert not found.is_bounded
    assert found.p_value > 0.05
    assert given.joint_test([[1, 0, 0], [0, 1, 0]]) == (0.0, 2, 1.0)


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan)])
def test_a_matrix_without_an_inverse(matrix: np.ndarray) -> None:
    given = NoisyEquation(matrix, np.ones(2), np.eye(2), 1.0, 1.0, 1.0, np.array([3.0, 4.0]))
    found = given.contrast([1, 1])
    assert (found.estimate, found.lower, found.upper, found.p_value) == (7.0, -math.inf, math.inf, 1.0)
    assert given.solution.tolist() == [3.0, 4.0]


def test_a_joint_test_of_one_is_that_of_the_contrast() -> None:
    given = equation(0.0, 0.0)
    statistic, degrees, p = given.joint_test([[1, 0, 0]])
    assert degrees == 1
    assert p == pytest.approx(given.contrast([1, 0, 0]).p_value, rel=1e-6)
    assert statistic == pytest.approx(given.contrast([1, 0, 0]).z ** 2)
    with pytest.raises(ValueError, match="follow from the others"):
        given.joint_test([[1, 0, 0], [2, 0, 0]])


def drawn(rng: np.random.Generator, d: int, deviation: float) -> np.ndarray:
    """Symmetric noise with this deviation on its diagonal."""
    upper = np.triu(rng.normal(size=(d, d)), 1) / math.sqrt(2)
    return deviation * (upper + upper.T + np.diag(rng.normal(size=d)))


def noisy(rng: np.random.Generator, u: np.ndarray, score_noise: float) -> NoisyEquation:
    """An equation that holds at u, in which the covariance of the scores is known up to much noise."""
    d = len(u)
    G, S = np.diag(np.linspace(300.0, 500.0, d)), np.linspace(400.0, 800.0, d)
    vector = G @ u + rng.normal(size=d) * np.sqrt(S + 100.0)
    scores = np.diag(S) + drawn(rng, d, score_noise)
    return NoisyEquation(G + drawn(rng, d, 20.0), vector, scores, 100.0, 20.0, score_noise, np.zeros(d))


@pytest.mark.parametrize("score_noise", [60.0, 250.0, 900.0])
def test_joint_tests_hold_their_level_where_the_covariance_is_noisy(score_noise: float) -> None:
    """By the chi-square law the last would be rejected five times as often. Off by five deviations at most."""
    rng, d, runs = np.random.default_rng(5), 4, 120
    u = np.array([0.3, -0.2, 0.1, 0.5])
    rejected = sum(noisy(rng, u, score_noise).joint_test(np.eye(d), u)[2] < 0.05 for _ in range(runs))
    assert rejected / runs < 0.05 + 5 * math.sqrt(0.05 * 0.95 / runs)
    assert rejected or score_noise > 300, "noise that is less than the variance leaves something to reject"


def coverage(public: float, sampled: float, alpha: float) -> float:
    """Of Student's intervals, exactly: the variance of sampling is seen with normal noise of deviation 1."""
    noise = np.linspace(-6, 6, 601)
    weights = np.exp(-(noise**2) / 2) / np.exp(-(noise**2) / 2).sum()
    seen = np.maximum(sampled + noise, 0.0) + public
    reach = -stdtrit(np.array([NoisyEquation.degrees(each) for each in seen]), alpha / 2) * np.sqrt(seen)
    return float(weights @ (1 - 2 * ndtr(-reach / math.sqrt(public + sampled))))


@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.01])
def test_intervals_of_a_noisy_variance_cover_whatever_its_parts_are(alpha: float) -> None:
    """With Satterthwaite's degrees, at least 3, 95 % intervals cover in 82 % of these at the least."""
    parts = [(public, sampled) for public in (0.02, 0.3, 0.5, 1.0, 3.0, 10.0) for sampled in (0.0, 0.5, 1, 2, 3, 5, 20)]
    covered = {each: coverage(*each, alpha) for each in parts}
    assert min(covered.values()) > 1 - alpha - 0.0012
    assert covered[0.5, 2] < 1 - alpha + 0.02, "nor is the law much wider than it has to be"


def test_noise_in_the_covariance_makes_no_interval_the_whole_line() -> None:
    """A covariance that is not positive is no reason: the matrix is well above its noise."""
    rng, u = np.random.default_rng(6), np.array([0.3, -0.2, 0.1, 0.5])
    for _ in range(10):
        given = noisy(rng, u, 2000.0)
        assert all(given.contrast(row).is_bounded for row in np.eye(4))


@repeated
def test_intervals_cover_where_the_equation_holds() -> None:
    """Also where the noise of the matrix is most of the error: off by four deviations at most."""
    rng, d, runs = np.random.default_rng(11), 3, often(1000, 3000, 10_000)
    truth, G = np.array([1.0, -2.0, 0.5]), np.diag([400.0, 300.0, 250.0])
    covered: list[bool] = []
    for _ in range(runs):
        noise = rng.normal(size=(d, d)) * 40 / math.sqrt(2)
        W = np.triu(noise, 1) + np.triu(noise, 1).T + np.diag(rng.normal(size=d) * 40)
        vector = G @ truth + rng.normal(size=d) * 25
        found = NoisyEquation(G + W, vector, np.zeros((d, d)), 625.0, 40.0, 0.0, np.zeros(d)).contrast([1, 1, -1])
        covered.append(bool(found.lower <= truth @ [1, 1, -1] <= found.upper))
    assert abs(sum(covered) / runs - 0.95) < 4 * math.sqrt(0.95 * 0.05 / runs)


def test_the_covariance_of_a_noisy_product() -> None:
    rng, u = np.random.default_rng(3), np.array([1.0, -2.0])
    noise = rng.normal(size=(200_000, 2, 2)) * 3 / math.sqrt(2)
    W = np.triu(noise, 1) + np.swapaxes(np.triu(noise, 1), 1, 2)
    W[:, 0, 0], W[:, 1, 1] = rng.normal(size=(2, 200_000)) * 3
    assert np.cov((W @ u).T) == pytest.approx(matrix_noise_covariance(u, 3.0), rel=0.03)


def test_the_dispersion_is_a_ratio_of_traces_and_none_where_it_is_noise() -> None:
    G, S = np.diag([100.0, 300.0]), np.diag([150.0, 450.0])
    found = NoisyEquation(G, np.zeros(2), S, 1.0, 1.0, 2.0, np.zeros(2)).dispersion
    assert found is not None
    assert found[0] == pytest.approx(1.5)
    assert found[1] == pytest.approx(1.96 * math.sqrt(2) * math.hypot(2.0, 1.5) / 400, rel=1e-3)
    assert NoisyEquation(G, np.zeros(2), S, 1.0, 100.0, 2.0, np.zeros(2)).dispersion is None
