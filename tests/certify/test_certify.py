"""The three ways to build a test: failure probabilities are what they claim, and would be seen if they were not."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from snugdp import Budget, Cost, Neighbours, Simulation
from snugdp.certify.bound import BoundTest
from snugdp.certify.distance import DistanceTest, integer_gaussian, integer_laplace, laplace, normal
from snugdp.certify.smooth import SmoothBound, smooth_bound
from snugdp.certify.statistics import Statistic, gaussian_bounds
from snugdp.noise import tail
from snugdp.secrecy.secret import PrivateComputationError, Secret
from tests.effort import often, repeated, sampled

RELATION = Neighbours.ADD_REMOVE
RUNS = often(1500, 4000)


def too_often(failures: int, probability: float) -> bool:
    """More failures than a fair count shows once in a million."""
    return failures > RUNS * probability + 5 * math.sqrt(RUNS * probability) + 5


def distance_tests(delta: float) -> dict[str, DistanceTest[float]]:
    def identity(value: float) -> float:
        return value

    return {
        "integer laplace": integer_laplace(identity, epsilon=0.7, delta=delta, neighbours=RELATION),
        "laplace": laplace(identity, epsilon=0.7, delta=delta, neighbours=RELATION),
        "integer gaussian": integer_gaussian(identity, sigma=2.5, delta=delta, neighbours=RELATION),
        "gaussian": normal(identity, sigma=2.5, delta=delta, neighbours=RELATION),
    }


@pytest.mark.parametrize("name", distance_tests(0.1))
@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12])
def test_a_violation_passes_with_probability_delta_at_most(name: str, delta: float) -> None:
    test = distance_tests(delta)[name]
    assert tail(test.law, test.threshold) <= delta * (1 + 1e-12)
    assert tail(test.law, test.threshold - 1) > delta
    assert test.cost.delta == Fraction(repr(delta))


def test_distance_costs_are_those_of_one_noisy_number() -> None:
    tests = distance_tests(0.1)
    assert tests["integer laplace"].cost == tests["laplace"].cost == Cost(epsilon=0.7, delta=0.1)
    assert tests["gaussian"].cost == Cost(mu=0.4, delta=0.1)
    assert tests["integer gaussian"].cost.mu > 0.4, "the discrete Gaussian is not 1/sigma-Gaussian-DP"


def test_an_unreachable_violation_always_passes() -> None:
    for test in distance_tests(0.1).values():
        assert all(test.passes(Secret(math.inf), Simulation(seed)) for seed in range(50))


@pytest.mark.parametrize("delta", [0, 0.6, -0.1, math.nan])
def test_a_distance_test_needs_a_failure_probability(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        integer_laplace(lambda _: 0, epsilon=1, delta=delta, neighbours=RELATION)


def bounds(delta: float) -> Any:
    low = Statistic[Any]("rows", lambda d: d["rows"], 1, "lower", (0, 1e9))
    high = Statistic[Any]("norm", lambda d: d["norm"], 2.5, "upper", (0, 1e9))
    return gaussian_bounds((low, high), mu=0.8, delta=delta, neighbours=RELATION)


@pytest.mark.slow
@repeated
def test_bounds_hold_but_for_their_failure_probability() -> None:
    certifier, data, noise = bounds(0.2), Secret({"rows": 400, "norm": 30.0}), Simulation(11)
    drawn = [certifier.certify(data, noise) for _ in range(RUNS)]
    counted = {"rows": sum(b["rows"] > 400 for b in drawn), "norm": sum(b["norm"] < 30 for b in drawn)}
    for name, failures in counted.items():
        assert not too_often(failures, 0.1), name
        assert failures > RUNS * 0.1 / 2, "the margin is wider than it needs to be"
        assert too_often(2 * failures, 0.1), "twice the failures would be seen"


def test_bounds_cost_their_gaussian_parts_and_failures() -> None:
    cost = bounds(1e-6).cost
    assert cost.delta == Fraction(1, 10**6)
    assert 0.8 * (1 - 1e-12) < math.sqrt(cost.mu_squared) <= 0.8


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_counts_as_the_end_with_the_larger_loss(value: float) -> None:
    assert Statistic[float]("rows", lambda d: d, 1, "lower", (0, 100)).value(value) == 0
    assert Statistic[float]("norm", lambda d: d, 1, "upper", (0, 100)).value(value) == 100


def test_values_outside_the_range_are_clipped() -> None:
    statistic = Statistic[float]("x", lambda d: d, 1, "lower", (0, 100))
    assert [statistic.value(value) for value in (-5.0, 1e300, 7.5)] == [0, 100, 7.5]
    assert Statistic[float]("x", lambda d: d, 1, "lower", (0, math.inf)).value(1e300) == Fraction(1e300)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitivity": 0}, "sensitivity"),
        ({"side": "both"}, "side"),
        ({"between": (1, 0)}, "wrong way round"),
        ({"between": (-math.inf, 0)}, "finite"),
        ({"between": (0, math.inf), "side": "upper"}, "finite"),
    ],
)
def test_bad_statistics_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Statistic(**{"name": "x", "of": len, "sensitivity": 1, "side": "lower", "between": (0, 9), **arguments})


def test_names_must_differ() -> None:
    twice = (Statistic[Any]("x", len, 1, "lower", (0, 9)), Statistic[Any]("x", len, 1, "upper", (0, 9)))
    with pytest.raises(ValueError, match="name of its own"):
        gaussian_bounds(twice, mu=1, delta=0.1, neighbours=RELATION)


@sampled(2)
@pytest.mark.parametrize("delta", [0.1, 1e-6])
def test_a_distance_that_is_no_number_is_0(delta: float) -> None:
    for test in distance_tests(delta).values():
        zero = [test.passes(Secret(0), Simulation(seed)) for seed in range(100)]
        for nothing in (None, "many", math.nan, -math.inf, 1j, Decimal("sNaN"), [5], np.timedelta64(5)):
            assert [test.passes(Secret(nothing), Simulation(seed)) for seed in range(100)] == zero  # type: ignore[arg-type]
        assert test.passes(Secret(np.int64(500)), Simulation(1))  # type: ignore[arg-type]
        assert test.passes(Secret(10**400), Simulation(1))


def test_bounds_of_giant_statistics_are_floats_on_the_safe_side() -> None:
    """A whole number beyond the floats within a range without an upper end made the release fail."""
    giant = Statistic[int]("x", lambda d: d, 1, "lower", (0, math.inf))
    certified = gaussian_bounds((giant,), mu=1, delta=0.1, neighbours=RELATION).certify(Secret(10**400), Simulation(1))
    assert certified["x"] == sys.float_info.max
    exact = Statistic[int]("x", lambda d: d, 1, "upper", (Fraction(-1, 3), Fraction(1, 3)))  # type: ignore[arg-type]
    assert exact.released(Fraction(7)) >= Fraction(1, 3) > exact.released(Fraction(1, 4))


def test_ends_of_a_range_may_have_any_type() -> None:
    ends = (np.float32(0.5), Decimal(2)), (Fraction(1, 2), np.int8(2)), (0.5, 2)
    for between in ends:
        statistic = Statistic[float]("x", lambda d: d, 1, "lower", between)  # type: ignore[arg-type]
        assert [statistic.value(value) for value in (0.0, 1.0, 9.0)] == [Fraction(1, 2), 1, 2]
    with pytest.raises(ValueError, match="wrong way round"):
        Statistic[float]("x", lambda d: d, 1, "lower", (None, 1))  # type: ignore[arg-type]


def test_a_loss_that_fails_refuses() -> None:
    test = BoundTest(bounds(0.1), lambda b: 1 / 0, Fraction(1))
    with pytest.raises(PrivateComputationError, match="loss at the bounds"):
        test.passes(Secret({"rows": 1, "norm": 1}), Simulation(1))


@pytest.mark.slow
@repeated
def test_a_bound_test_passes_uncertified_data_rarely() -> None:
    test = BoundTest(bounds(0.1), lambda b: 100 / max(b["rows"], 1e-9), Fraction(1, 4))
    noise = Simulation(5)
    bad = sum(test.passes(Secret({"rows": 399, "norm": 0.0}), noise) for _ in range(RUNS))
    good = sum(test.passes(Secret({"rows": 420, "norm": 0.0}), noise) for _ in range(RUNS))
    assert not too_often(bad, 0.05)
    assert good > 0.99 * RUNS
    assert not BoundTest(bounds(0.1), lambda b: math.nan, Fraction(1)).passes(Secret({"rows": 1, "norm": 1}), noise)


def smooth(failure: float) -> SmoothBound[tuple[float, float]]:
    return SmoothBound(
        loss=lambda d: d[0],
        sensitivity=lambda d: d[1],
        beta=Fraction(1, 20),
        sigma=Fraction(8),
        sigma_scale=Fraction(10),
        order=Fraction(6),
        conversion=Fraction(1, 10**6),
        failure=Fraction(repr(failure)),
        floor=1e-6,
        ceiling=10.0,
        neighbours=RELATION,
    )


@repeated
def test_the_smooth_bound_holds_but_for_its_failure_probability() -> None:
    certifier, noise = smooth(0.2), Simulation(2)
    for loss, scale in ((0.5, 0.01), (3.0, 2.0)):
        failures = sum(certifier.certify(Secret((loss, scale)), noise) < loss for _ in range(RUNS // 4))
        assert failures <= RUNS / 4 * 0.2 + 5 * math.sqrt(RUNS / 4 * 0.16)


@pytest.mark.slow
def test_the_smooth_bound_is_blurred_as_declared() -> None:
    """ln S has noise beta sigma_scale, the loss has noise S sigma: both are seen in the spread of the bound."""
    certifier, noise = smooth(0.999999), Simulation(3)  # the margins are nearly 0: half of each bound fails
    drawn = np.array([certifier.certify(Secret((1.0, 0.1)), noise) for _ in range(2000)])
    for factor, agrees in ((1.0, True), (0.8, False), (1.25, False)):
        spread = 0.1 * 8 * factor
        z = 2000 * (drawn.std() / spread) ** 2
        assert bool(abs(z - 2000) < 5 * math.sqrt(2 * 2000)) is agrees


def test_the_smooth_cost_is_a_gaussian_part_and_one_conversion() -> None:
    cost = smooth(1e-6).cost
    assert cost.mu == pytest.approx(0.1)
    assert cost.delta == Fraction(2, 10**6)
    assert cost.fits(Budget(float(cost.epsilon) + 1, 3e-6))


def attack_smooth_release(epsilon: float, conversion: float) -> float:
    """The largest hockey stick, by quadrature, between neighbours of the smooth release at its worst ratio."""
    beta, sigma = 0.05, 8.0
    worst = 0.0
    for r, shift in ((math.exp(-beta), math.exp(-beta)), (math.exp(beta), 1.0)):
        x = np.linspace(-120, 120, 400_001)
        p = np.exp(-(x**2) / (2 * sigma**2)) / sigma
        q = np.exp(-((x - shift) ** 2) / (2 * (r * sigma) ** 2)) / (r * sigma)
        worst = max(worst, float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)) / math.sqrt(2 * math.pi))
    return worst - conversion


def test_the_smooth_conversion_is_an_upper_bound() -> None:
    epsilon = float(smooth(1e-6).cost.epsilon)
    assert attack_smooth_release(epsilon, 1e-6) <= 0
    assert attack_smooth_release(epsilon / 4, 1e-6) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": 0}, "beta"),
        ({"beta": "1e-9"}, "beta"),
        ({"order": 1}, "order"),
        ({"order": 50}, "order"),
        ({"between": (0, 1)}, "floor"),
        ({"between": (2, 1)}, "floor"),
        ({"delta": 2}, "less than 1"),
        ({"sigma": -1}, "sigma"),
    ],
)
def test_bad_smooth_bounds_are_refused(arguments: dict[str, Any], message: str) -> None:
    good = {"beta": 0.05, "sigma": 8, "sigma_scale": 10, "order": 6, "delta": 1e-6, "between": (1e-6, 10.0)}
    with pytest.raises(ValueError, match=message):
        smooth_bound(lambda d: d, lambda d: d, neighbours=RELATION, **{**good, **arguments})
