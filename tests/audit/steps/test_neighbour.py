"""Layer N: exact changes. A right sensitivity passes on strange rows too; a wrong one is proved wrong by one run."""

import math
from fractions import Fraction

import pytest

from snugdp.audit.steps.neighbour import neighbour
from snugdp.core.guarantee import Cost
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from tests.audit.toys import Rows, Walk, case, checked_sum, clipped, gaussian_sum, laplace_sum


@pytest.mark.parametrize(
    ("walk", "cost"),
    [(gaussian_sum(2), Cost(mu=0.5)), (laplace_sum(4), Cost(epsilon=0.25)), (checked_sum(), Cost(mu=1, epsilon=1))],
)
def test_what_is_claimed_exactly_passes(walk: Walk, cost: Cost) -> None:
    (found,) = neighbour(case(walk, cost), runs=5, random=60)
    assert found.passed, found
    assert "0 of" in found.measured
    assert "is seen" in found.detail


@pytest.mark.parametrize(
    ("walk", "cost"),
    [
        (gaussian_sum(2), Cost(mu="0.499999999999")),
        (laplace_sum(4), Cost(epsilon="0.2499999999999")),
        (checked_sum(0), Cost(mu=1, epsilon="0.999")),
        (gaussian_sum(2, lambda rows: sum(round(1024 * row) for row in rows if abs(row) < 100)), Cost(mu=0.5)),
        (
            gaussian_sum(2, lambda rows: clipped(rows) + len([row for row in rows if math.isnan(row)])),
            Cost(mu="0.0001"),
        ),
        (gaussian_sum(2, lambda rows: clipped(sorted(rows)[:-1]) - clipped(rows[:3]) * len(rows)), Cost(mu=0.5)),
    ],
)
def test_a_little_less_than_the_truth_fails(walk: Walk, cost: Cost) -> None:
    (found,) = neighbour(case(walk, cost), runs=5, random=60)
    assert not found.passed, found


def leaky(chance: int) -> Walk:
    """Where a certificate fails, once in so many times, a value is shown as it is."""

    def walk(data: Secret[Rows], noise: Noise) -> float:
        if noise.chance(Secret(Fraction(1, chance))):
            return float(noise.reveal(data.map(clipped)))
        return float(noise.add_integers(data.map(lambda rows: [clipped(rows)]), Gaussian(2048))[0])

    return walk


@pytest.mark.slow
def test_failures_are_allowed_as_often_as_delta_says() -> None:
    assert neighbour(case(leaky(20), Cost(mu=0.5, delta=0.05)), runs=300, random=0)[0].passed
    (found,) = neighbour(case(leaky(4), Cost(mu=0.5, delta=0.05)), runs=300, random=0)
    assert not found.passed
    assert "shown" in found.detail
    assert not neighbour(case(leaky(4), Cost(mu=0.5)), runs=40, random=0)[0].passed


def test_without_parts_only_walks_are_compared() -> None:
    (found,) = neighbour(case(gaussian_sum(1), Cost(mu=0.5), parts=False), runs=3, random=5)
    assert found.passed
    assert found.claim == "the same walk on all neighbours"
