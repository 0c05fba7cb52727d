"""Confident labels, attacked: joint losses against exact laws and Arb, and the whole law behind the distance test."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from scipy.special import ndtr

from snugdp.accounting import renyi as certified
from snugdp.core.guarantee import Budget
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.confident import MAX_LOSS, confident_losses
from snugdp.mechanisms.teachers.distance_test import RenyiProfile, SharpDistance, best_table, confident_profile
from snugdp.mechanisms.teachers.table import STEP, UNIT
from snugdp.numerics import balls
from tests.effort import often, repeated, sampled
from tests.mechanisms.noisy_votes import divergence, histograms, log_probabilities, moved, phi

Floats = NDArray[np.float64]
Row = tuple[int, ...]

FEW = (1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 25.0)


def test_totals_are_nested_over_neighbours_and_moves() -> None:
    generator = np.random.default_rng(8)
    rows = list(histograms(14, 4))
    losses = confident_losses(3, 9, 2, 14, FEW)
    for _ in range(150):
        here = [rows[i] for i in generator.integers(0, len(rows), 3)]
        there = [sorted(moved(row))[int(generator.integers(0, 6))] for row in here]
        d = int(generator.integers(0, 6))
        assert (losses.of(np.array(here), d) <= losses.of(np.array(there), d + 1)).all()
        assert (losses.of(np.array(here), d) <= losses.of(np.array(here), d + 1)).all()


def test_neighbours_are_nested_where_their_bounds_are_equal() -> None:
    """The same sum in another order: the room for rounding decides."""
    generator = np.random.default_rng(2)
    for _ in range(200):
        row = tuple(sorted(generator.integers(0, 40, 9).tolist()))
        top = (max(row) + 12, *row)
        leads = [gaps(np.array([side])) for side in (top, (top[0] - 1, top[1] + 1, *top[2:]))]
        for sigma in (7.3, 11.9):
            here, there = float(log_miss(leads[0], sigma, 1)[0]), float(log_miss(leads[1], sigma, 2)[0])
            assert here + 2 * STEP <= there + 3 * STEP


def answers(row: Row, sigma: float, threshold: float, spread: float) -> Floats:
    """The exact law of "no answer" and labels."""
    away = (max(row) - threshold) / spread
    share, none = float(ndtr(away)), float(ndtr(-away))
    law: Floats = np.append(none, share * np.exp(log_probabilities(row, sigma)))
    return np.maximum(law, 1e-290)


@repeated
def test_the_joint_loss_is_above_the_exact_one() -> None:
    generator = np.random.default_rng(4)
    for _ in range(often(5, 15, 30)):
        sigma, spread = float(np.exp(generator.uniform(0.2, 2.5))), float(np.exp(generator.uniform(0, 2)))
        row = tuple(int(n) for n in generator.multinomial(25, generator.dirichlet(np.full(3, 0.6))))
        at = float(generator.uniform(5, 25))
        curve = confident_losses(sigma, at, spread, 26, FEW).of(np.array([row]), 0) * UNIT
        here = np.log(answers(row, sigma, at, spread))
        for other in moved(row):
            there = np.log(answers(other, sigma, at, spread))
            for order, bound in zip(FEW, curve, strict=True):
                assert divergence(here, there, order) <= bound


@sampled(2)
@pytest.mark.parametrize(("sigma", "at", "spread", "teachers", "lead"), [(1, 12, 4, 30, 16), (2, 8, 2, 20, 12)])
def test_no_pair_of_neighbours_exceeds_the_cost(sigma: int, at: int, spread: int, teachers: int, lead: int) -> None:
    budget, losses = Budget(3, 0.03), confident_losses(sigma, at, spread, teachers, FEW)
    believed = RenyiProfile.of(losses, np.array([[(teachers + lead) // 2, (teachers - lead) // 2]]), 0)
    table = best_table(believed, 3.0, 0.03, teachers + 1)
    test = SharpDistance(confident_profile(losses), table, budget, teachers)
    rows = [row for total in (teachers - 1, teachers) for row in histograms(total, 2)]  # one may abstain
    distances = {row: test.distance(np.array([row])) for row in rows}
    laws = {}
    for row in rows:
        passing = float(table.at(distances[row]))
        laws[row] = np.append(1 - passing, passing * answers(row, sigma, at, spread))
    pairs = [(row, other) for row in rows for other in moved(row) if other in laws]
    worst = max(float(np.maximum(laws[row] - math.exp(3) * laws[other], 0.0).sum()) for row, other in pairs)
    assert 0.003 < worst <= 0.03  # not far from the edge
    assert max(abs(distances[row] - distances[other]) for row, other in pairs) == 1
    assert len(set(distances.values())) > 2  # the test is not trivial


@pytest.mark.parametrize("queries", [1_000, 20_000, 50_000])
def test_sums_that_do_not_fit_exceed_every_epsilon(queries: int) -> None:
    """They ran over and were negative: ties were as sure as sure can be, and passed."""
    losses = confident_losses("0.5", 2, 1, 10)
    totals = losses.of(np.tile([[5, 5]], (queries, 1)), 0)
    one = losses.of(np.array([[5, 5]]), 0)
    assert totals.tolist() == [min(queries * units, MAX_LOSS) for units in one.tolist()]
    assert RenyiProfile.of(losses, np.tile([[5, 5]], (queries, 1)), 0).delta(np.array([50.0])) == 1


def test_the_profile_is_the_certified_conversion() -> None:
    curve = np.array([0.05, 0.1, 0.3])
    found = RenyiProfile(curve, np.array([2.0, 4.0, 10.0])).delta
    for level in (-0.5, 0.0, 0.4, 1.5, 6.0):
        true = min(certified.delta(order, rho, repr(level)) for order, rho in zip((2, 4, 10), curve, strict=True))
        assert true * (1 - 1e-9) <= float(found(np.array(level))) <= true * (1 + 1e-9)


def test_absurd_thresholds_are_refused() -> None:
    for numbers in ((2, 3, "0.5", 5), (2, "-1e200", 1, 5), (2, "1e300", 1, 5)):
        with pytest.raises(ValueError, match="threshold_sigma"):
            confident_losses(*numbers)


@pytest.mark.parametrize(("threshold", "spread"), [("1500", "1"), ("2600.123", "1"), ("700.7", "1.37")])
def test_joint_losses_are_above_the_exact_ones_at_high_orders(threshold: str, spread: str) -> None:
    """Far from the threshold the logarithms are in the millions: 64 units were less than their rounding."""
    orders = (1.05, 20.0, 170.0, 500.0, 1000.0)
    at, width = Fraction(threshold), Fraction(spread)
    losses = confident_losses(40, at, width, 5000, orders)
    tops = np.array(sorted({int(at) + shift for shift in range(-1200, 1200, 29) if int(at) + shift >= 0}))
    units = losses._units(tops, np.zeros(len(tops), dtype=np.int64), 0)
    with balls.precision(300):
        away = {v: (v - balls.ball(at)) / balls.ball(width) for top in tops.tolist() for v in (top - 1, top, top + 1)}
        answer, none = ({v: phi(side * x).log() for v, x in away.items()} for side in (1, -1))
        for top, found in zip(tops.tolist(), units.tolist(), strict=True):
            for column, order in enumerate(orders):
                label = (order - 1) * arb(int(losses.table.steps[0, column])) * arb((1, -40))
                for near in (top - 1, top + 1):
                    fail, passing = ((order * logs[top] + (1 - order) * logs[near]).exp() for logs in (none, answer))
                    joint = (fail + passing * label.exp()).log() / (order - 1)
                    assert arb(found[column] - 64) * arb((1, -40)) >= joint
