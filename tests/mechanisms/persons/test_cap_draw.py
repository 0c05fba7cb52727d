"""The draw of a cap: exact laws over all small tables of persons, in both relations; and what it is good for."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.mechanisms.persons.cap_draw import CapDraw, target_for, tilt_for
from snugdp.mechanisms.statistics.clipping import caps_up_to
from snugdp.noise import Exact, Simulation
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from tests.effort import sampled
from tests.mechanisms.statistics.universes import SHARES, name

CAPS = (1, 2, 4, 8)
Totals = tuple[int, ...]


def above(totals: Totals, caps: tuple[int, ...] = CAPS) -> list[int]:
    return [sum(total > cap for total in totals) for cap in caps]


def logs(draw: CapDraw, counts: list[int]) -> np.ndarray:
    scores = np.array([float(score) for score in draw.scores(counts)])
    found: np.ndarray = scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())
    return found


def pairs(relation: Neighbours) -> Iterator[tuple[Totals, Totals]]:
    for persons in range(5):
        for totals in combinations_with_replacement((0, 2, 3, 5, 8), persons):
            for new in (0, 2, 3, 5, 8):
                if relation is Neighbours.ADD_REMOVE:
                    yield totals, (*totals, new)
                elif totals:
                    yield totals, (*totals[1:], new)


@sampled(18)
@pytest.mark.parametrize("share", SHARES, ids=name)
@pytest.mark.parametrize("target", [0, Fraction(1, 2), 1, 2])
def test_the_range_is_what_is_charged(share: Share, target: Fraction) -> None:
    for below in (0, Fraction(1, 4), Fraction(1, 2)):
        draw = CapDraw(share, len(CAPS), Fraction(target), Fraction(1, 2), Fraction(below))
        ranges = [np.ptp(logs(draw, above(one)) - logs(draw, above(other))) for one, other in pairs(share.neighbours)]
        assert max(ranges) <= float(draw.range) * (1 + 1e-9)
        if target == 1:
            assert max(ranges) >= float(draw.range) * (1 - 1e-9)


@pytest.mark.slow
def test_the_draw_has_the_law_of_its_scores() -> None:
    draw, counts = CapDraw(Share.pure(Budget(1)), len(CAPS), Fraction(3, 2), Fraction(1, 2)), [4, 3, 1, 0]
    want = np.exp(logs(draw, counts))
    for noise, draws in ((Simulation(2), 3_000), (Exact(), 200)):
        drawn = [draw.draw(Secret(counts), noise) for _ in range(draws)]
        found = np.bincount(drawn, minlength=len(CAPS)) / draws
        assert np.all(np.abs(found - want) < 6 * np.sqrt(want / draws) + 1e-3)


def test_the_target_keeps_caps_that_are_too_large_away() -> None:
    """Nobody is above 40 of 48 caps: most of the weight is where persons are."""
    caps = caps_up_to(1 << 12, 12)
    totals = tuple(np.random.default_rng(3).geometric(1 / 6, 10_000).tolist())
    share = Share(Fraction(0), Fraction(1, 18), Neighbours.ADD_REMOVE).part(Fraction(1, 10))
    draw = CapDraw(share, len(caps), Fraction(0), tilt_for(10))
    target = target_for(draw.range, 10, math.sqrt(18))
    assert target >= 1 / draw.range
    chances = np.exp(logs(replace(draw, target=target), above(totals, caps)))
    assert chances @ np.array(caps) < 100
    assert chances[np.array(caps) > 256].sum() < 0.01
