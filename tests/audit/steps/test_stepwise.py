"""Every step of a plan pays for its own draws: what a step hides in the slack of others is found, and nothing else."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from snugdp.audit.density.final_draw import elected, normal_delta
from snugdp.audit.finding import Case
from snugdp.audit.replay import path
from snugdp.audit.steps.stepwise import Bill, Draw, Limit, grown, stepwise
from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Outcome
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Gumbel, Laplace, Noise
from snugdp.noise.boundary import BoundaryNoise
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome
from tests.audit.toys import PAIRS, Rows, clipped, neighbours
from tests.effort import sampled
from tests.plans import plan_of

UNIT = 1024
At = Callable[[int], Noise]


def toy(costs: list[Cost], draw: Any, *, early: bool = False, **more: Any) -> Case[Rows]:
    """Steps of these costs; ``draw(rows, at)`` returns what is released. ``early``: it pays afterwards.

    ``at(k)``: the noise of step k, or of the last one where there are fewer.
    """
    plan = plan_of("a toy", {f"step-{k}": cost for k, cost in enumerate(costs)})

    def run(rows: Rows, noise: Noise) -> Outcome[Any]:
        def drawn(source: Noise) -> Any:
            return draw(Secret(rows), lambda k: source.at(f"step-{min(k, len(costs) - 1)}"))

        before = [drawn(noise)] if early else []

        def walk(noise: Noise, _: object) -> StoredOutcome:
            value = before[0] if early else drawn(noise)
            return StoredOutcome(refused=value is None, value=value)

        return ReleaseContext(noise).pay(plan, walk)

    return Case("toy", run, plan.cost, **{"worst": lambda: PAIRS, "random": neighbours, **more})


def sums(*deviations: Fraction) -> Any:
    """Sums with noise, one after the other: a row moves each by 1."""

    def draw(rows: Secret[Rows], at: At) -> list[float]:
        total = rows.map(lambda inside: [clipped(inside)])
        return [float(at(k).add_integers(total, Gaussian(UNIT * one))[0]) for k, one in enumerate(deviations)]

    return draw


def behind_a_bound(margin: float, deviation: Fraction = Fraction(1)) -> Any:
    """A lower bound on the number of rows, which the second sum is then divided by; the margin is in deviations."""

    def draw(rows: Secret[Rows], at: At) -> float | None:
        bound = float(at(0).add(rows.map(lambda inside: Fraction(len(inside))), Gaussian(1), grid=-10)) - margin
        if bound <= 0:
            return None
        total = rows.map(lambda inside: Fraction(clipped(inside), UNIT) / max(len(inside), 1))
        return float(at(1).add(total, Gaussian(deviation / Fraction(bound)), grid=-20))

    return draw


HALF, PAID = Cost(mu=Fraction(1, 2)), Cost(mu=1, neighbours="replace")
TENTH: dict[str, Any] = {"worst": lambda: [([1.0] * 9 + [0.0], [1.0] * 10)], "random": None}  # the mean moves by 1/10


@pytest.mark.parametrize(("second", "right"), [(Fraction(2), True), (Fraction(8, 5), False), (Fraction(20), True)])
def test_slack_of_one_step_hides_no_other(second: Fraction, right: bool) -> None:
    found = stepwise(toy([HALF, HALF], sums(Fraction(20), second)))
    assert [one.passed for one in found] == [right], found[0]
    assert found[0].layer == "N"


@pytest.mark.parametrize(("deviation", "right"), [(Fraction(2), True), (Fraction(8, 5), False)])
def test_one_step_alone_pays_for_all(deviation: Fraction, right: bool) -> None:
    (found,) = stepwise(toy([HALF], sums(deviation)))
    assert found.passed is right
    assert stepwise(toy([HALF, HALF], sums(Fraction(2), Fraction(2)), transcript=False)) == []


def test_what_is_claimed_and_not_paid() -> None:
    (found,) = stepwise(replace(toy([Cost(mu="1/10")], sums(Fraction(2))), cost=HALF))
    assert not found.passed
    other = replace(toy([HALF], sums(Fraction(2))), cost=Cost(mu="1/2", neighbours="replace"))
    assert "other neighbours" in stepwise(other)[0].detail


def revealed(threshold: int, farther: int = 0) -> Any:
    """Textbook propose-test-release: whether there are rows, if that is far from changing."""

    def draw(rows: Secret[Rows], at: At) -> bool | None:
        far = rows.map(lambda inside: max(len(inside) - 1, 0) + farther)
        if not at(0).at_least(far, DiscreteLaplace(1), threshold):
            return None
        return bool(at(1).reveal(rows.map(lambda inside: len(inside) > 0)))

    return draw


@pytest.mark.parametrize(
    "costs",
    [
        [Cost(epsilon=1, delta="1/25")],
        [Cost(epsilon=1, delta="1/25"), Cost()],
        [Cost(epsilon=1), Cost(delta="1/25")],  # the failure is paid by the last step
    ],
)
def test_propose_test_release_however_its_failure_is_paid(costs: list[Cost]) -> None:
    """Of distance 0, 3 is reached with probability .0364."""
    pairs = [([1.0] * (rows + 1), [1.0] * rows) for rows in range(4)]
    more: dict[str, Any] = {"worst": lambda: pairs, "random": None}
    for draw, right in ((revealed(3), True), (revealed(2), False), (revealed(3, 1), False)):
        (found,) = stepwise(toy(costs, draw, **more))
        assert found.passed is right, found


def test_a_margin_in_one_step() -> None:
    failing = replace(PAID, delta=Fraction(1, 100))  # the number of rows does not move
    for margin, right in ((2.4, True), (1.5, False)):
        for costs in ([failing], [PAID, failing]):
            (found,) = stepwise(toy(costs, behind_a_bound(margin), **TENTH))
            assert found.passed is right, found


def test_steps_that_are_left_out() -> None:
    def draw(rows: Secret[Rows], at: At) -> list[float]:
        enough = at(0).at_least(rows.map(len), DiscreteLaplace(2), 3)
        total = rows.map(lambda inside: [clipped(inside)])
        return [float(at(1).add_integers(total, Gaussian(2 * UNIT))[0])] if enough else []

    (found,) = stepwise(toy([Cost(epsilon="1/2"), HALF], draw))
    assert found.passed, found


def test_gaussian_noise_that_is_paid_by_epsilon_and_delta() -> None:
    def draw(rows: Secret[Rows], at: At) -> list[float]:
        total = rows.map(lambda inside: [clipped(inside)])
        first = at(0).add_integers(total, Gaussian(4 * UNIT))[0]
        return [float(first), float(at(1).add(rows.map(lambda r: Fraction(len(r))), Laplace(2), grid=-10))]

    costs = [Cost(epsilon="1/2", delta="1/20"), Cost(epsilon="1/2")]
    assert all(one.passed for one in stepwise(toy(costs, draw, parts=False)))


def test_one_step_whose_cost_is_no_sum_of_parts() -> None:
    def draw(rows: Secret[Rows], at: At) -> int:
        counts = rows.map(lambda inside: [sum(not row for row in inside), sum(bool(row) for row in inside)])
        return int(at(0).argmax(counts, Gaussian(1)))

    cost = Cost(mu="0.7072")  # of one bit: 1 over root 2
    assert stepwise(toy([cost], draw, parts=False)) == []


def test_what_is_drawn_before_it_is_paid() -> None:
    (found,) = stepwise(toy([HALF, HALF], sums(Fraction(2), Fraction(2)), early=True))
    assert not found.passed
    assert "before it was paid" in found.detail


@pytest.mark.parametrize(
    ("failure", "margin", "right"),
    [
        ("1/100", 2.4, True),  # 2.33 deviations are exceeded with probability 1/100
        ("1/100", 1.5, False),  # a bound that fails more often than is paid for
        ("1/20", 1.7, True),
        (0, 2.4, False),  # nothing is paid for the failure
    ],
)
def test_what_follows_a_test_is_seen_at_its_luckiest(failure: Any, margin: float, right: bool) -> None:
    (found,) = stepwise(toy([replace(PAID, delta=Fraction(failure)), PAID], behind_a_bound(margin), **TENTH))
    assert found.passed is right, found


def test_a_release_behind_a_test_is_compared_with_its_step() -> None:
    costs = [replace(PAID, delta=Fraction(1, 100)), PAID]
    for deviation, right in ((Fraction(1), True), (Fraction(7, 10), False)):
        (found,) = stepwise(toy(costs, behind_a_bound(2.4, deviation), **TENTH))
        assert found.passed is right, found


def test_every_step_pays_for_its_own_draws() -> None:
    one, two = Draw("a", Fraction(1), Fraction(0)), Draw("b", Fraction(0), Fraction(1, 2))
    limits = {"a": Limit(Fraction(1), Fraction(0)), "b": Limit(Fraction(0), Fraction(1))}
    assert not Bill(limits, (one, two)).unpaid()
    assert not Bill(limits, (two, one)).unpaid()  # whatever their order
    assert not Bill(limits, (one,)).unpaid()
    assert Bill(limits, (replace(one, step="b"), two)).unpaid() == ["b"]
    assert Bill(limits, (one, one)).unpaid() == ["a"]
    assert not Bill(limits, (one, two, two)).unpaid()
    assert Bill(limits, (one, two, two, two)).unpaid() == ["b"]
    assert not Bill(limits, (one, two, two, two), tested=True).unpaid(boundary=False)
    assert Bill(limits, (grown(one, Fraction(5, 4)), two), tested=True).unpaid(boundary=False) == ["a"]
    assert not Bill({"a": Limit(Fraction(0), Fraction(0), open=True)}, (one, one)).unpaid()
    assert str(Bill(limits, (one, one, two))).startswith("step a: paid mu 1 epsilon 0; drawn mu 1")


def test_a_contest_may_be_paid_as_a_gaussian_part() -> None:
    contest = Draw("a", Fraction(0), Fraction(1, 2), Fraction(1, 10))
    assert Limit(Fraction(0), Fraction(1, 2)).allows([contest])
    assert Limit(Fraction(1, 10), Fraction(0)).allows([contest])
    assert not Limit(Fraction(1, 11), Fraction(0)).allows([contest])
    assert not Limit(Fraction(1, 11), Fraction(0)).allows([grown(contest, Fraction(2))])


@pytest.mark.parametrize("failure", [0.3, 0.05, 0.0025, 1e-6])
@pytest.mark.parametrize("size", [Fraction(1, 2), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_noise_at_the_boundary_is_just_inside(size: Fraction, failure: float) -> None:
    def drawn(law: Any) -> float:
        grid = 0 if isinstance(law, DiscreteLaplace | DiscreteGaussian) else -20
        return float(BoundaryNoise(0, failure, [1.0]).add(Secret(0), law, grid=grid))

    far = 4000
    whole = np.arange(-far, far + 1)
    for law, weights in (
        (DiscreteLaplace(size), np.exp(-np.abs(whole) / float(size))),
        (DiscreteGaussian(size**2), np.exp(-(whole**2) / (2 * float(size) ** 2))),
    ):
        tail = np.cumsum(weights[::-1])[::-1] / weights.sum()
        z = round(drawn(law))
        assert tail[far + z] > failure or z == 0
        assert tail[far + z + 1] <= failure * (1 + 1e-9)
    assert norm.sf(drawn(Gaussian(size)) / float(size)) == pytest.approx(failure, rel=0.05)
    assert drawn(Gaussian(size)) < float(size) * norm.isf(failure) + 1e-5
    assert math.exp(-drawn(Laplace(size)) / float(size)) / 2 >= failure * (1 - 1e-4)
    assert drawn(Gumbel(size)) == 0


@pytest.mark.parametrize("two", [(0.0, 1.0), (1.0, 1.0), (0.3, 2.0), (-2.0, 0.5), (0.0, 1.5), (0.0, 0.7)])
@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.4, 1.5])
def test_the_hockey_stick_of_two_normals(two: tuple[float, float], epsilon: float) -> None:
    x = np.linspace(-12, 12, 100_001)
    expected = np.trapezoid(np.maximum(norm.pdf(x) - math.exp(epsilon) * norm.pdf(x, *two), 0.0), x)
    assert normal_delta((0.0, 1.0), two, epsilon) == pytest.approx(expected, abs=1e-6)


def contested(strength: Any, least: int) -> Any:
    """A test that the lead of ones over zeros is at least so large, then who has more, with Laplace noise."""

    def draw(rows: Secret[Rows], at: At) -> int | None:
        lead = rows.map(lambda inside: abs(sum(1 if row else -1 for row in inside)))
        far = lead.map(lambda found: max(0, found - least + 1))
        if not at(0).at_least(far, DiscreteLaplace(2), 9):  # 0 reaches 9 with probability .0069
            return None
        counts = rows.map(lambda inside: [sum(not row for row in inside), sum(map(bool, inside))])
        return int(at(1).argmax(counts, Laplace(1 / Fraction(strength))))

    return draw


@sampled(2)
@pytest.mark.parametrize(
    ("strength", "least", "right"),
    [
        ("4/5", 6, True),  # at a lead of 6 and beyond, (.5, .005)
        ("4/5", 0, False),  # between, its loss is larger
        ("1/2", 0, True),
        (2, 2, False),
    ],
)
def test_a_winner_behind_a_test_is_paid_by_its_step(strength: Any, least: int, right: bool) -> None:
    costs = [Cost(epsilon="1/2", delta="1/100"), Cost(epsilon="1/2", delta="1/200")]
    pairs = [([1.0] * (3 + lead) + [0.0] * 3, [1.0] * (2 + lead) + [0.0] * 3) for lead in range(1, 20)]
    more: dict[str, Any] = {"worst": lambda: pairs, "random": None, "parts": False}
    (found,) = stepwise(toy(costs, contested(strength, least), **more))
    assert found.passed is right, found
    assert right or "the last draw has delta(0.5)" in found.detail


def test_two_bounds_are_at_the_boundary_together() -> None:
    """Neither alone is wrong enough: the noise of both steps that may fail is at its luckiest."""
    costs = [Cost(mu=1, delta="1/100"), Cost(mu=1, delta="1/100"), Cost(mu=1)]

    def draw(rows: Secret[Rows], at: At) -> list[float]:
        count = rows.map(lambda inside: Fraction(len(inside)))
        bounds = [float(at(k).add(count, Gaussian(1), grid=-10)) - 2.4 for k in range(2)]
        deviation = Fraction(1 / max(sum(bounds) / 2, 0.1))
        parts = rows.map(lambda inside: Fraction(len(inside) > 5, 5))
        return [
            float(at(2).add(value, Gaussian(deviation), grid=-20))
            for value in (parts.map(lambda _: Fraction(0)), parts)
        ]

    rows = [1.0] * 5
    more: dict[str, Any] = {"worst": lambda: [([*rows, 1.0], rows)], "random": None}
    (found,) = stepwise(toy(costs, draw, **more))
    assert found.passed is False, found  # a fifth moves, and the noise is for a sixth


def test_a_bound_from_the_noise_of_two_steps() -> None:
    """The mean of two counts, less 1.65 of their deviation .71: it fails with probability .0098, and is paid once."""
    costs = [Cost(mu=1), Cost(mu=1, delta="1/100"), Cost(mu=1)]

    def draw(rows: Secret[Rows], at: At) -> float:
        count = rows.map(lambda inside: Fraction(len(inside)))
        bound = sum(float(at(k).add(count, Gaussian(1), grid=-10)) for k in range(2)) / 2 - 1.65
        moved = rows.map(lambda inside: Fraction(len(inside) > 5, 6))
        return float(at(2).add(moved, Gaussian(Fraction(1 / max(bound, 0.1))), grid=-20))

    more: dict[str, Any] = {"worst": lambda: [([1.0] * 6, [1.0] * 5)], "random": None}
    (found,) = stepwise(toy(costs, draw, **more))
    assert found.passed, found


def test_a_last_step_that_is_free_is_paid_by_the_whole() -> None:
    whole, one, two = Cost(epsilon=1, delta="3/200"), [1.0] * 4 + [0.0] * 3, [1.0] * 5 + [0.0] * 3
    for strength, right in (("1/2", True), (3, False)):
        run = path(toy([whole, Cost()], contested(strength, 0)), one, two, 0, source=BoundaryNoise(0, 0.015, [1.0]))
        assert not run.refused
        assert (elected(run) == "") is right
