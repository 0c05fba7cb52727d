"""Counts, sums and histograms: over all neighbours of small universes the loss is what is charged, and no less."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from snugdp.core.guarantee import Budget
from snugdp.mechanisms.statistics.joint import JointNoise, cell_noise, count_noise, deviation, total_noise
from snugdp.noise import DiscreteLaplace, Simulation, pmf
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from tests.mechanisms.statistics.universes import SHARES, moved, name, used

BOUNDS = [(0, 10), (-3, 10), (4, 10), (-10, -4)]


@pytest.mark.parametrize("share", SHARES, ids=name)
def test_a_count_loses_its_share_and_not_more(share: Share) -> None:
    noise = count_noise(share)
    assert max(used(noise, change) for change in moved([[1]], share)) in (1, pytest.approx(1, abs=1e-9))
    assert max(used(noise, change, Fraction(4, 5)) for change in moved([[1]], share)) > 1


@pytest.mark.parametrize("share", SHARES, ids=name)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_sum_loses_its_share_and_not_more(share: Share, bounds: tuple[int, int]) -> None:
    noise, rows = total_noise(share, *bounds), [[x] for x in range(bounds[0], bounds[1] + 1)]
    worst = max(used(noise, change) for change in moved(rows, share))
    assert 1 - 1e-9 < worst <= 1
    assert max(used(noise, change, Fraction(4, 5)) for change in moved(rows, share)) > 1


@pytest.mark.parametrize("share", SHARES, ids=name)
def test_a_histogram_loses_its_share_and_not_more(share: Share) -> None:
    noise, rows = cell_noise(share, 4), np.eye(4, dtype=int).tolist()
    worst = max(used(noise, change) for change in moved(rows, share))
    assert 1 - 1e-9 < worst <= 1
    assert max(used(noise, change, Fraction(4, 5)) for change in moved(rows, share)) > 1


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_exact_law_of_a_small_histogram(relation: str) -> None:
    """All outcomes in a box, all neighbours of all tables with two cells and up to three rows."""
    share = Share.pure(Budget(1, 0, relation))
    law = cell_noise(share, 2).laws[0]
    assert isinstance(law, DiscreteLaplace)
    chance = {z: pmf(law, z) for z in range(-12, 13)}
    tables = [(a, b) for a in range(4) for b in range(4 - a)]
    near = [(1, 0), (0, 1)] if relation == "add_remove" else [(1, -1), (-1, 1), (1, 0), (0, 1)]
    worst = 0.0
    for a, b in tables:
        for step in near:
            for x in range(-6, 7):
                for y in range(-6, 7):
                    here = chance[x - a] * chance[y - b]
                    there = chance[x - a - step[0]] * chance[y - b - step[1]]
                    worst = max(worst, abs(math.log(here / there)))
    assert 0.999 < worst <= 1 + 1e-9


def test_numbers_keep_their_order_and_their_own_noise() -> None:
    share = Share.pure(Budget(10**6))
    noise = JointNoise(share, (Fraction(1), Fraction(1), Fraction(10**9), Fraction(1)))
    drawn = noise.draw(Secret([10, 20, 30, 40]), Simulation(3))
    assert [drawn[0], drawn[1], drawn[3]] == [10, 20, 40]
    assert drawn[2] != 30
    (step,) = noise.steps()
    assert step.cost == share.cost


def test_deviations_and_errors_are_those_of_the_laws() -> None:
    law = DiscreteLaplace("3/2")
    spread = math.sqrt(sum(z * z * pmf(law, z) for z in range(-80, 81)))
    assert deviation(law) == pytest.approx(spread, rel=1e-9)
    for share in SHARES:
        noise = JointNoise(share, (Fraction(10**6),) * 8_000)
        drawn = np.array(noise.draw(Secret([0] * 8_000), Simulation(1)))
        assert np.std(drawn) == pytest.approx(noise.deviations[0], rel=0.06)
        assert np.mean(np.abs(drawn) <= noise.errors[0]) == pytest.approx(0.95, abs=0.015)
