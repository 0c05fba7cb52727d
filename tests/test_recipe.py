"""The researcher's entry point: the worked example of the documentation, its law and its mistakes."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import snugdp
from snugdp import Budget, MemoryLedger, Neighbours, Simulation, Statistic
from snugdp.certify.smooth import smooth_bound
from snugdp.noise import DiscreteLaplace, Laplace, Noise
from snugdp.noise.grid import grid_below
from snugdp.recipe import _root, _split
from snugdp.secrecy.secret import Secret
from tests.effort import sampled

BUDGET = Budget(1, 1e-6)
COUNT = Statistic[list[float]]("rows", len, 1, "lower", (0, 1e12))


def mean(rows: list[float]) -> Fraction:
    total = sum((Fraction(min(max(row, 0.0), 1.0)) for row in rows if not math.isnan(row)), Fraction(0))
    return total / len(rows) if rows else Fraction(1, 2)


def mean_with(scale: Fraction) -> Any:
    def draw(data: Secret[list[float]], noise: Noise) -> float:
        return float(noise.add(data.map(mean), Laplace(scale), grid=grid_below(scale)))

    return draw


def data_dependent_loss(scale: Fraction) -> Any:
    return lambda rows: math.inf if rows <= 1 else 1 / (float(scale) * (rows - 1))


def refusing(scale: Fraction, measure: Any = "epsilon") -> snugdp.PrivateAlgorithm[list[float], float]:
    return snugdp.from_statistics(
        loss=data_dependent_loss(scale), statistics=(COUNT,), draw=mean_with(scale), budget=BUDGET, measure=measure
    )


def test_the_local_sensitivity_of_the_example_is_a_bound() -> None:
    generator = np.random.default_rng(0)
    for _ in range(300):
        rows = [float(x) for x in generator.choice([0.0, 1.0, 0.3], generator.integers(2, 9))]
        limit = Fraction(1, len(rows) - 1)
        assert abs(mean(rows) - mean(rows[1:])) <= limit
        assert abs(mean(rows) - mean([*rows, 1.0])) <= limit


@pytest.mark.parametrize("measure", ["epsilon", "mu"])
@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget(0.1, 1e-9, "replace"), Budget(5, 0.01)])
def test_plans_fit_their_budget_and_waste_little(measure: Any, budget: Budget) -> None:
    algorithm = snugdp.from_statistics(
        loss=lambda rows: 0.0, statistics=(COUNT,), draw=mean_with(Fraction(1)), budget=budget, measure=measure
    )
    assert algorithm.plan.cost.fits(budget)
    larger = algorithm.plan.cost + snugdp.Cost(mu=budget.epsilon / 50, neighbours=budget.neighbours)
    assert not larger.fits(budget)


@pytest.mark.parametrize(
    "share",
    [Fraction(1, 2), Fraction(1, 3), Fraction(1, 10**20), 1 - Fraction(1, 10**20), 1 - Fraction(3, 2 * 10**16),
     1 - Fraction(1, 3**40), Fraction(1, 7**90), Fraction(1, 4)],
)  # fmt: skip
def test_the_parts_of_a_gaussian_budget_never_exceed_it(share: Fraction) -> None:
    """Roots by floats were off by a part of 1 - share, and by all of it near 1."""
    total, failure = _split(BUDGET, Fraction(1, 10**7), "mu", Fraction(1, 2))[0] ** 2 * 2, Fraction(1, 10**7)
    mu, limit = _split(BUDGET, failure, "mu", share)
    near = Fraction(1) + Fraction(1, 2**58)
    assert 0 < mu**2 <= share * total * near
    assert mu**2 * near >= share * total
    assert limit**2 * near >= (1 - share) * total
    assert mu**2 + limit**2 <= total * (1 + Fraction(1, 2**59))
    assert _root(share) ** 2 + _root(1 - share) ** 2 <= 1


def test_many_rows_are_released_and_few_refused() -> None:
    algorithm = refusing(Fraction(1, 500))
    ledger = MemoryLedger(3, 3e-6, composition="tight")
    many = algorithm([0.25] * 5000, ledger=ledger)
    assert isinstance(many, snugdp.Released)
    assert many.value == pytest.approx(0.25, abs=0.1)
    few = algorithm([0.25] * 50, ledger=ledger)
    assert isinstance(few, snugdp.Refused)
    assert ledger.spent == algorithm.plan.cost + algorithm.plan.cost
    assert "rows" in str(algorithm.plan)


def test_the_calibrated_form_scales_its_noise_with_the_bound() -> None:
    def draw(data: Secret[list[float]], bounds: Any, noise: Noise) -> float | None:
        if bounds["rows"] <= 1:
            return None
        scale = 1 / (Fraction(bounds["rows"]) - 1) / algorithm.limit
        return mean_with(scale)(data, noise)  # type: ignore[no-any-return]

    algorithm: snugdp.PrivateAlgorithm[list[float], float] = snugdp.calibrated(
        statistics=(COUNT,), draw=draw, budget=BUDGET
    )
    assert algorithm.plan.cost.fits(BUDGET)
    outcome = algorithm([0.75] * 3000, ledger=MemoryLedger(1, 1e-6, composition="tight"))
    assert isinstance(outcome, snugdp.Released)
    assert outcome.certificate["rows"] < 3000
    assert outcome.value == pytest.approx(0.75, abs=0.1)
    assert algorithm([], ledger=MemoryLedger(1, 1e-6, composition="tight")).refused
    assert algorithm([0.75] * 3000, noise=Simulation(1)) == algorithm([0.75] * 3000, noise=Simulation(1))


def test_the_distance_form() -> None:
    def gap(votes: list[int]) -> int:
        return max(abs(2 * sum(votes) - len(votes)) - 1, 0)

    def draw(data: Secret[list[int]], noise: Noise) -> bool:
        return bool(noise.reveal(data.map(lambda votes: 2 * sum(votes) > len(votes))))

    algorithm = snugdp.from_distance(distance=gap, draw=draw, budget=BUDGET)
    assert algorithm.limit == Fraction(1, 2)
    assert algorithm.plan.cost.fits(BUDGET)
    assert algorithm([1] * 90, ledger=MemoryLedger(1, 1e-6, composition="tight")).value is True
    assert algorithm([1, 0] * 45, ledger=MemoryLedger(1, 1e-6, composition="tight")).refused


def test_the_example_keeps_its_guarantee_at_the_edge() -> None:
    """One row apart, at every number of rows: test and release together, by their exact laws."""
    algorithm, scale = refusing(Fraction(1, 20)), 1 / 20
    epsilon, delta = float(BUDGET.epsilon), float(BUDGET.delta)
    sigma = 1 / math.sqrt(algorithm.plan.steps[0].cost.mu_squared)
    least = 1 + 1 / (scale * float(algorithm.limit))  # the bound on the rows must reach this
    margin = sigma * _quantile(float(algorithm.plan.steps[0].cost.delta))

    def passing(rows: int) -> float:
        return 0.5 * math.erfc((least + margin - rows) / (sigma * math.sqrt(2)))

    for rows in range(2, 200):
        t, s, loss = passing(rows), passing(rows + 1), 1 / (rows * scale)
        for one, two in ((t, s), (s, t)):
            assert _refusing_delta(one, two, loss, epsilon) <= delta * (1 + 1e-6)
    assert max(_refusing_delta(passing(n), passing(n + 1), 1 / (n * scale), epsilon / 4) for n in range(2, 200)) > delta


def _quantile(failure: float) -> float:
    low, high = 0.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if 0.5 * math.erfc(middle / math.sqrt(2)) > failure else (low, middle)
    return high


def _refusing_delta(t: float, s: float, loss: float, epsilon: float) -> float:
    a = math.exp(epsilon)
    if t <= 0:
        return max((1 - t) - a * (1 - s), 0)
    x = math.log(max(a * s / t, 1e-300))
    stick = 0.0 if x >= loss else 1 - math.exp((x - loss) / 2) if x > -loss else 1 - math.exp(x)
    return max((1 - t) - a * (1 - s), 0) + t * stick


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: snugdp.from_statistics(loss=lambda: 0, statistics=(), draw=mean_with(Fraction(1)), budget=BUDGET),
            "statistic",
        ),
        (
            lambda: snugdp.from_statistics(
                loss=lambda: 0, statistics=(COUNT,), draw=mean_with(Fraction(1)), budget=Budget(1)
            ),
            "delta > 0",
        ),
        (lambda: snugdp.from_distance(distance=len, draw=mean_with(Fraction(1)), budget=Budget(1)), "delta"),
        (
            lambda: snugdp.from_distance(distance=len, draw=mean_with(Fraction(1)), budget=BUDGET, test_share=1),
            "test_share",
        ),
        (lambda: refusing(Fraction(1, 500), "rho"), "measure"),
        (
            lambda: snugdp.from_statistics(
                loss=lambda n: 0.0, statistics=(COUNT,), draw=mean_with(Fraction(1)), budget=BUDGET
            ),
            "by name: rows",
        ),
    ],
)
def test_mistakes_are_explained(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_without_a_ledger_the_call_has_its_own_budget() -> None:
    outcome = refusing(Fraction(1, 500))([0.5] * 5000)
    assert isinstance(outcome, snugdp.Released)
    assert outcome.receipt.ledger == "this call"


def test_a_row_that_is_no_number_changes_nothing_but_itself() -> None:
    assert not refusing(Fraction(1, 500))([0.25] * 5000 + [math.nan]).refused


TYPES: dict[str, Any] = {
    "float": float,
    "float16": np.float16,
    "float32": np.float32,
    "longdouble": np.longdouble,
    "int": int,
    "int64": np.int64,
    "Decimal": Decimal,
    "Fraction": Fraction,
    "complex": complex,
    "array": np.array,
}


def by_statistics(of: Any, loss: Any = lambda rows: 1 / max(rows, 1e-9)) -> Any:
    statistic = Statistic[Any]("rows", of, 1, "lower", (0, 1000))
    return snugdp.from_statistics(loss=loss, statistics=(statistic,), draw=_one, budget=BUDGET)


def by_calibration(of: Any) -> Any:
    statistic = Statistic[Any]("rows", of, 1, "lower", (0, 1000))
    return snugdp.calibrated(statistics=(statistic,), draw=lambda data, bounds, noise: bounds["rows"], budget=BUDGET)


def by_distance(of: Any) -> Any:
    return snugdp.from_distance(distance=of, draw=_one, budget=BUDGET)


def by_smooth_bound(of: Any) -> Any:
    bound: Any = smooth_bound(
        of, of, beta=0.05, sigma=8, sigma_scale=10, order=6, delta=1e-6, between=(1e-6, 10.0),
        neighbours=Neighbours.ADD_REMOVE,
    )  # fmt: skip
    return snugdp.from_upper_bound(certifier=bound, draw=_one, limit=300, release=snugdp.Cost(epsilon=0.5))


def by_any_bound(of: Any) -> Any:
    @dataclass(frozen=True)
    class Bound:
        cost = snugdp.Cost(epsilon=1)

        def certify(self, data: Secret[Any], noise: Noise) -> Any:
            return of(float(noise.add(data, Laplace(1), grid=0)) % 4)

    return snugdp.from_upper_bound(certifier=Bound(), draw=_one, limit=2, release=snugdp.Cost(epsilon=0.5))


def _one(data: Secret[Any], noise: Noise) -> float:
    return float(noise.add(Secret(1), Laplace(1)))


WAYS = [by_statistics, by_calibration, by_distance, by_smooth_bound, by_any_bound]


def shown(outcome: Any) -> tuple[Any, ...]:
    return outcome.refused, outcome.value, str(outcome.certificate)


def test_the_type_of_a_statistic_is_no_release() -> None:
    """A numpy.float32 was refused for certain within the range, and its neighbour outside released: 0 and 40 of 40."""
    algorithm = by_statistics(np.float32)
    counts = [sum(not algorithm(value).refused for _ in range(40)) for value in (999.5, 1000.5)]
    assert counts == [40, 40]


@sampled(5)
@pytest.mark.parametrize("way", WAYS)
@given(value=st.integers(0, 100), seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_equal_numbers_of_all_types_have_one_law(way: Any, value: int, seed: int) -> None:
    seen = {str(shown(way(kind)(value, noise=Simulation(seed)))) for kind in TYPES.values()}
    assert len(seen) == 1


@pytest.mark.parametrize("way", WAYS)
def test_every_returned_value_has_an_outcome(way: Any) -> None:
    """In a rehearsal a failure raises, so that none of these does shows that they have an image."""
    nothing = (None, math.nan, "5", 1j, Decimal("sNaN"), [5], np.array([5.0]), np.timedelta64(5))
    seen = {str(shown(way(lambda _, value=value: value)(0, noise=Simulation(3)))) for value in nothing}
    assert len(seen) == 1
    for value in (10**400, -(10**400), Decimal("1e999999"), math.inf, -math.inf, True, np.float32("inf")):
        assert way(lambda _, value=value: value)(0, noise=Simulation(3)) is not None


def test_what_is_no_number_does_not_pass() -> None:
    for value in (None, math.nan, "5", Decimal("sNaN")):
        assert by_statistics(lambda _, value=value: value)(0).refused
        assert by_statistics(lambda _: 1000, lambda rows, value=value: value)(0).refused
        assert by_distance(lambda _, value=value: value)(0, noise=Simulation(1)).refused
        assert by_smooth_bound(lambda _, value=value: value)(0, noise=Simulation(1)).refused
        assert by_any_bound(lambda _, value=value: value)(0, noise=Simulation(1)).refused


def test_a_loss_that_fails_is_a_refusal_and_paid_for() -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    assert by_statistics(lambda _: 5, lambda rows: 1 / 0)(0, ledger=ledger).refused
    assert ledger.spent.epsilon > 0


def smooth_loss(scale: float) -> tuple[Any, Any]:
    """The loss 1/(scale (rows - 1)) of the example, capped at 10, and a smooth bound on its local sensitivity."""

    def at(rows: int) -> float:
        return min(10.0, 1 / (scale * max(rows - 1, 1e-9)))

    local = np.array([max(abs(at(k) - at(k + 1)), abs(at(k) - at(max(k - 1, 0)))) for k in range(1000)])

    def sensitivity(rows: list[float]) -> float:
        return float((np.exp(-0.05 * np.abs(np.arange(1000) - len(rows))) * local).max())

    return (lambda rows: at(len(rows))), sensitivity


def test_the_smooth_form() -> None:
    loss, sensitivity = smooth_loss(1 / 20)
    for rows in range(60):
        here, there = sensitivity([0.0] * rows), sensitivity([0.0] * (rows + 1))
        assert abs(loss([0.0] * rows) - loss([0.0] * (rows + 1))) <= min(here, there) * (1 + 1e-9)
        assert math.exp(-0.05) * (1 - 1e-9) <= here / there <= math.exp(0.05) * (1 + 1e-9)
    bound = smooth_bound(
        loss, sensitivity, beta=0.05, sigma=8, sigma_scale=10, order=6, delta=1e-6, between=(1e-6, 10.0),
        neighbours=Neighbours.ADD_REMOVE,
    )  # fmt: skip
    algorithm = snugdp.from_upper_bound(
        certifier=bound, draw=mean_with(Fraction(1, 20)), limit=0.5, release=snugdp.Cost(epsilon=0.5)
    )
    assert algorithm.plan.cost == bound.cost + snugdp.Cost(epsilon=0.5)
    outcomes = [algorithm([0.5] * 400, noise=Simulation(seed)).refused for seed in range(20)]
    assert outcomes.count(False) >= 18
    assert all(algorithm([0.5] * 5, noise=Simulation(seed)).refused for seed in range(20))


def test_the_relation_of_the_budget_is_carried() -> None:
    algorithm = snugdp.from_distance(distance=len, draw=mean_with(Fraction(1)), budget=Budget(1, 1e-6, "replace"))
    assert algorithm.plan.cost.neighbours is Neighbours.REPLACE
    with pytest.raises(snugdp.RelationMismatchError):
        algorithm([1.0], ledger=MemoryLedger(1, 1e-6, composition="tight"))


def test_discrete_noise_is_at_hand_too() -> None:
    assert snugdp.Exact().add(Secret(5), DiscreteLaplace(1)).denominator == 1
