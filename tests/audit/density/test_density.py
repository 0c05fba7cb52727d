"""Layer D: exact densities. Tight claims pass, a fifth less noise fails, and a check that would not see it says so."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import snugdp
from snugdp.audit.density.density import Measured, density, levels, measure
from snugdp.audit.density.tail import deltas, hockey, independent_end, stick
from snugdp.audit.finding import Case
from snugdp.audit.replay import path
from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.linear.ridge import OutputPerturbation
from snugdp.noise import Gaussian, Noise
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.vectors.moments import Moments
from tests.audit.toys import PAIRS, Rows, case, checked_sum, clipped, gaussian_sum, laplace_sum, peeked
from tests.mechanisms.linear import ridge_audit

ONE, TWO = PAIRS[0]


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [-1.5, 0.0, 0.7, 3.0])
def test_the_hockey_stick_of_two_normal_laws(mu: float, epsilon: float) -> None:
    def gap(x: float) -> float:
        return max(0.0, float(stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x)))

    edge = epsilon / mu + mu / 2
    known, _ = integrate.quad(gap, edge, edge + 30, limit=200)
    assert hockey(mu, np.array([epsilon]))[0] == pytest.approx(known, abs=1e-8)


def test_what_is_no_number_or_infinite_gives_all_away() -> None:
    for loss in (math.nan, math.inf):
        assert stick(loss, np.array([0.0, 5.0])).tolist() == [1.0, 1.0]
    values = np.full((60, 1), 1.0)
    assert Measured("x", values).refutes(np.array([0.3]), 1e-7)
    assert stick(-math.inf, np.array([0.0])).tolist() == [0.0]


def test_a_tight_gaussian_passes_in_closed_form_and_less_noise_does_not() -> None:
    (found,) = density(case(gaussian_sum(2), Cost(mu=0.5)))
    assert found.passed, found
    assert "closed form; noise 20% smaller is seen" in found.detail
    curve = found.curve
    assert curve is not None
    assert curve.measured == pytest.approx(curve.claimed, rel=1e-6)
    (found,) = density(case(gaussian_sum(2), Cost(mu=0.49)))
    assert not found.passed


@pytest.mark.slow
def test_a_tight_laplace_passes_and_less_noise_does_not() -> None:
    sharp = laplace_sum(1)
    (found,) = density(case(sharp, Cost(epsilon=1)), runs=300)
    assert found.passed, found
    assert "is seen" in found.detail
    assert not density(case(sharp, Cost(epsilon=0.9)), runs=300)[0].passed


def test_slack_that_hides_less_noise_is_said() -> None:
    (found,) = density(case(gaussian_sum(2), Cost(mu=0.8)))
    assert not found.passed
    assert "too weak" in found.detail
    assert density(case(gaussian_sum(2), Cost(mu=0.8), tight=False))[0].passed


def test_a_budget_is_audited_in_place_of_the_cost() -> None:
    audited = case(gaussian_sum(1), Cost(mu=0.1), budget=Budget(1, 0.13), tight=False)
    assert density(audited)[0].passed
    assert levels(audited)[-1] == 1
    assert not density(case(gaussian_sum(1), Cost(mu=0.1), budget=Budget(1, 0.12)))[0].passed


@pytest.mark.slow
def test_a_test_before_the_release_is_sampled() -> None:
    claim = Cost(mu=1, epsilon=1)
    (found, apart) = density(case(checked_sum(), claim, tight=False), runs=150, random=80)
    assert found.passed, found
    assert apart.passed, apart
    unpaid = Cost(mu=1)  # the test was forgotten
    pairs: list[tuple[Rows, Rows]] = [([1.0] * 3, [1.0] * 2)]
    assert not density(case(checked_sum(9), unpaid, worst=lambda: pairs), runs=150)[0].passed


def reused(data: Secret[Rows], noise: Noise) -> tuple[float, float]:
    """The second sum looks at the answer of the first."""
    first = noise.add_integers(data.map(lambda rows: [clipped(rows)]), Gaussian(4096))[0]
    second = data.map(lambda rows: [clipped(rows) + (first > 4096) * len(rows)])
    return float(first), float(noise.add_integers(second, Gaussian(4096))[0])


def separate(data: Secret[Rows], noise: Noise) -> list[float]:
    sums = data.map(lambda rows: Fraction(clipped(rows), 1024))
    return [float(noise.add(sums, Gaussian(scale), grid=-12)) for scale in (1, 2, 3)]


def test_the_end_of_a_walk_is_one_vector_only_if_no_answer_decides_another() -> None:
    assert independent_end(case(reused, Cost(mu=1)), ONE, 3) == 1
    assert independent_end(case(separate, Cost(mu=2)), ONE, 3) == 3
    found = measure(case(separate, Cost(mu=2)), ONE, TWO, np.array([0.5]), runs=9)
    assert found.exact
    assert found.mean[0] == pytest.approx(hockey(math.sqrt(1 + 1 / 4 + 1 / 9), np.array([0.5]))[0], rel=1e-9)


def stops_low(data: Secret[Rows], noise: Noise) -> float | None:
    """The answer itself decides whether it is released."""
    noisy = gaussian_sum(1)(data, noise)
    return noisy if noisy > 4096 else None


@pytest.mark.slow
def test_an_answer_that_decides_the_release_is_not_integrated() -> None:
    assert independent_end(case(stops_low, Cost(mu=1)), ONE, 3) == 0
    (found,) = density(case(stops_low, Cost(mu=1), tight=False), runs=300)
    assert found.passed, found


def test_integrating_the_end_leaves_the_mean_as_it_is() -> None:
    at, audited = np.array([0.0, 0.5]), case(checked_sum(), Cost(mu=1, epsilon=1))
    walks = [path(audited, ONE, TWO, seed) for seed in range(300)]
    plain = np.array([deltas(walk, at, 0) for walk in walks])
    smooth = np.array([deltas(walk, at, 1) for walk in walks])
    assert np.all(smooth.std(axis=0) < plain.std(axis=0))
    assert np.all(np.abs(plain.mean(axis=0) - smooth.mean(axis=0)) < 6 * plain.std(axis=0) / math.sqrt(300))


def test_a_leak_beside_the_noise_fails_at_once() -> None:
    (found,) = density(case(lambda data, noise: (gaussian_sum(2)(data, noise), peeked(data)), Cost(mu=0.5)), runs=60)
    assert not found.passed
    assert "the outcome differs" in found.detail


def test_random_neighbours_fail_together() -> None:
    wrong = case(laplace_sum(1), Cost(epsilon=0.2), worst=lambda: [([0.0, 0.0], [0.0])], tight=False)
    first, second = density(wrong, runs=20, random=200)
    assert first.passed
    assert not second.passed


def fitted(method: str) -> Case[Any]:
    X = np.append(np.linspace(-0.1, 0.1, 20), 1.0).reshape(-1, 1)

    def run(rows: Any, noise: Noise) -> Any:
        model = snugdp.LinearRegression(1, 0.05, method=method, x_norm=1, y_bound=1, fit_intercept=False, noise=noise)
        return model.fit(rows, rows[:, 0]).outcome_

    cost = run(X, snugdp.Simulation(1)).cost
    return Case(method, run, cost, lambda: [(X, X[:-1])])


def test_noisy_sums_of_a_regression_are_exactly_tight() -> None:
    (found,) = density(fitted("adassp"))
    assert found.passed, found
    assert found.curve is not None
    assert found.curve.measured == pytest.approx(found.curve.claimed, rel=1e-4)


@pytest.mark.slow
def test_a_perturbed_objective_is_below_its_claim_and_less_noise_is_not() -> None:
    (found,) = density(fitted("objective"))
    assert found.passed, found
    assert "closed form; noise 20% smaller is seen" in found.detail


def test_posterior_draws_integrate_to_the_same_mean() -> None:
    audited = fitted("posterior")
    ((one, two),) = audited.worst()
    walk = path(audited, one, two, 1)
    assert walk.here.sites[-1].method == "posterior"
    found = deltas(walk, np.array([-30.0, 30.0]), 1)
    assert found[0] == pytest.approx(1, abs=1e-6)
    assert found[1] == 0


@pytest.mark.slow
def test_output_perturbation_agrees_with_quadrature() -> None:
    method = OutputPerturbation(ridge_audit.DESIGN, Budget(1, 0.05))
    rows = [(x, x) for x in np.linspace(-0.3, 0.3, 40).tolist()]
    one, two = ridge_audit.moments([*rows, (1.0, 1.0)]), ridge_audit.moments(rows)

    def run(data: Moments, noise: Noise) -> Any:
        return certify_and_release(method.plan(), method._test, method._mechanism, Secret(data), ReleaseContext(noise))

    audited = Case("output", run, method.plan().cost, lambda: [(one, two)])
    found = measure(audited, one, two, np.array([0.0]), runs=100)
    error = float(found.values.std()) / 10
    assert abs(found.mean[0] - ridge_audit.audit(method, one, two, 0.0, points=61)) < 6 * error
