"""The distance test with Renyi losses, attacked by enumeration: every histogram, every neighbour, the whole law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from scipy.special import ndtr

from snugdp.accounting import renyi as certified
from snugdp.mechanisms.teachers import confident, exact, tails
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.distance_test import RenyiProfile
from snugdp.mechanisms.teachers.renyi import (
    ORDERS,
    LabelLosses,
    RenyiDistance,
    needed,
    reached,
    renyi_distance,
    threshold_for,
)
from snugdp.mechanisms.teachers.table import STEP, UNIT, loss_table
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Simulation
from snugdp.numerics import balls
from snugdp.secrecy.secret import Secret
from tests.mechanisms.teachers.test_loss import histograms, moved

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Row = tuple[int, ...]
Setting = tuple[float, float, float, float, int, int, int]

FEW = (1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 25.0)


class Enumeration:
    """All laws of a tested release over a set of histograms: the attack."""

    def __init__(self, test: RenyiDistance, sigma: float, rows: Sequence[Row], shift: int = 0) -> None:
        self.test, self.sigma, self.shift = test, sigma, shift
        self.labels = {row: np.exp(exact.log_probabilities(row, sigma)) for row in rows}
        self.known = tails.tails(test.law, test.threshold, test.most + shift)

    def law(self, queries: tuple[Row, ...]) -> tuple[int, Floats]:
        """The distance, and the law of the output: nothing first, then every combination of labels."""
        distance = self.test.distance(np.array(queries)) + self.shift
        passing = math.exp(self.known.log_pass[distance])
        joint = np.ones(1)
        for row in queries:
            joint = np.outer(joint, self.labels[row]).ravel()
        return distance, np.append(1 - passing, passing * joint)

    def worst(self, pairs: list[tuple[tuple[Row, ...], tuple[Row, ...]]]) -> tuple[float, int, int]:
        """The largest delta over delta allowed, the largest step of the distance, and how many distances occur."""
        seen = {queries: self.law(queries) for pair in pairs for queries in pair}
        grow, ratio, step = math.exp(self.test.cost.epsilon), 0.0, 0
        for here, there in pairs:
            (d, p), (e, q) = seen[here], seen[there]
            ratio = max(ratio, float(np.maximum(p - grow * q, 0.0).sum()) / float(self.test.cost.delta))
            step = max(step, abs(d - e))
        return ratio, step, len({d for d, _ in seen.values()})


def build(setting: Setting) -> RenyiDistance:
    sigma, epsilon, delta, scale, teachers, _, queries = setting
    law = DiscreteGaussian(Fraction(repr(scale)) ** 2) if scale < 5 else DiscreteLaplace(Fraction(repr(scale - 4)))
    return renyi_distance(
        sigma=sigma, epsilon=epsilon, delta=delta, law=law, teachers=teachers, queries=queries, orders=FEW
    )


def pairs_of(rows: list[Row], queries: int, count: int, seed: int) -> list[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """All neighbouring pairs of one query; of several, random ones that move a vote in every query, and diagonals."""
    known = set(rows)
    near = {row: sorted(other for other in moved(row) if other in known) for row in rows}
    if queries == 1:
        return [((row,), (other,)) for row in rows for other in near[row]]
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        here = tuple(rows[i] for i in generator.integers(0, len(rows), queries))
        if generator.random() < 0.5:
            here = (here[0],) * queries
        found.append((here, tuple(near[row][int(generator.integers(0, len(near[row])))] for row in here)))
    for row in rows:
        found.extend(((row,) * queries, (other,) * queries) for other in near[row])
    return found + [(there, here) for here, there in found]


SETTINGS: list[Setting] = [  # sigma, epsilon, delta, scale of the noise (Laplace from 5 on), teachers, classes, queries
    (1.0, 1.5, 0.02, 1.5, 30, 2, 1),
    (1.0, 3.0, 0.02, 1.5, 30, 2, 1),
    (1.0, 2.0, 0.01, 1.5, 24, 2, 2),
    (2.5, 2.5, 0.05, 1.0, 30, 2, 3),
    (1.5, 1.5, 0.03, 5.5, 24, 2, 1),
    (1.2, 3.0, 0.02, 5.0, 10, 3, 1),
    (0.7, 3.5, 0.05, 1.2, 11, 3, 2),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_pair_of_neighbours_exceeds_the_cost(setting: Setting) -> None:
    sigma, _, _, _, teachers, classes, queries = setting
    rows = [row for total in (teachers - 1, teachers) for row in histograms(total, classes)]  # one may abstain
    attack = Enumeration(build(setting), sigma, rows)
    ratio, step, distances = attack.worst(pairs_of(rows, queries, 150, 3))
    assert ratio <= 1
    assert step <= 1
    assert distances >= 4  # the test is not trivial


def test_the_same_enumeration_reports_a_loss_of_half_and_a_distance_of_two_more() -> None:
    rows = [row for total in (29, 30) for row in histograms(total, 2)]
    pairs = pairs_of(rows, 1, 0, 3)
    first, second = (build(setting) for setting in SETTINGS[:2])
    half = replace(second, totals=lambda votes, moves: second.totals(votes, moves) // 2)
    assert Enumeration(first, 1.0, rows, shift=2).worst(pairs)[0] > 1
    assert Enumeration(half, 1.0, rows).worst(pairs)[0] > 1


def test_totals_are_nested_over_neighbours_and_moves() -> None:
    generator = np.random.default_rng(8)
    rows = list(histograms(14, 4))
    plain = LabelLosses(loss_table(3.0, FEW))
    joint = confident.confident_losses(3, 9, 2, 14, FEW)
    for _ in range(150):
        here = [rows[i] for i in generator.integers(0, len(rows), 3)]
        there = [sorted(moved(row))[int(generator.integers(0, 6))] for row in here]
        d = int(generator.integers(0, 6))
        for losses in (plain, joint):
            assert (losses.of(np.array(here), d) <= losses.of(np.array(there), d + 1)).all()
            assert (losses.of(np.array(here), d) <= losses.of(np.array(here), d + 1)).all()
            assert (losses.of(np.array(here), d) <= losses.largest(3)).all()


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


def both(law: DiscreteGaussian | DiscreteLaplace, short: int) -> tuple[arb, arb]:
    """The probabilities of Z >= short and of the contrary, each without cancellation."""
    if short > 0:
        return reached(law, short), 1 - reached(law, short)
    return 1 - reached(law, 1 - short), reached(law, 1 - short)


def test_tails_agree_with_arb() -> None:
    laws: list[DiscreteGaussian | DiscreteLaplace] = [
        DiscreteGaussian(36), DiscreteGaussian(Fraction("0.3")), DiscreteLaplace(Fraction("2.5"))
    ]  # fmt: skip
    for law in laws:
        at = threshold_for(law, "0.5", "1e-5")
        known = tails.tails(law, at, 60)
        with balls.precision(400):
            for distance in range(61):
                ends = zip((known.log_pass, known.log_fail), both(law, at - distance), strict=True)
                for found, true in ((logs[distance], end) for logs, end in ends):
                    assert abs(arb(float(found)) - true.log()) < 2.0**-49 * max(1.0, abs(float(found)))
        assert balls.at_most(lambda law=law, at=at: reached(law, at), Fraction("1e-5"))  # type: ignore[misc]
        assert not balls.at_most(lambda law=law, at=at: reached(law, at - 1), Fraction("1e-5"))  # type: ignore[misc]


def test_thresholds_are_raised_where_the_second_condition_asks_for_it() -> None:
    law = DiscreteLaplace(1)
    usual, raised = threshold_for(law, 1, "0.01"), threshold_for(law, "0.001", "0.01")
    assert raised > usual
    assert balls.at_most(lambda: reached(law, raised - 1), 1 - Fraction(999001, 10**6))


def test_the_tested_divergence_looks_at_every_distance_and_agrees_with_arb() -> None:
    law = DiscreteGaussian(25)
    at = threshold_for(law, 1, "1e-5")
    known, cut = tails.tails(law, at, 401), tails.tails(law, at, at + 45)
    assert float(tails.tested(100.0, 0.0, known)) > 1.3 * float(tails.tested(100.0, 0.0, cut))
    for order, total in ((3.0, 0.1), (22.0, 0.02), (100.0, 0.0), (1000.0, 0.01)):
        with balls.precision(400):
            ends = [both(law, at - d) for d in range(402)]
            best = arb(0)
            for d in range(1, 402):
                for e in (d - 1, d, min(d + 1, 401)):
                    pairs = zip(ends[d], ends[e], strict=True)
                    moments = [here ** arb(order) * there ** arb(1 - order) for here, there in pairs]
                    moment = moments[1] + moments[0] * ((order - 1) * arb(total)).exp()
                    best = moment if moment > best else best
            true = best.log() / arb(order - 1)
            assert abs(arb(float(tails.tested(order, total, known))) - true) < 2.0**-32


def test_conversion_agrees_with_the_certified_one() -> None:
    for order in (1.5, 4.0, 20.0, 46.0):
        assert float(tails.conversion(order, 1e-5)) == pytest.approx(certified.epsilon(order, 0, "1e-5"), rel=1e-12)


def test_what_is_needed_is_what_passes() -> None:
    profile = np.tile([[180, 12, 8], [150, 30, 20]], (50, 1))
    law, sigma = DiscreteGaussian(16), 12.0
    losses = LabelLosses(loss_table(sigma, ORDERS))
    at = threshold_for(law, 1, "1e-5")
    epsilon = needed(losses.of, profile, law=law, threshold=at, teachers=200, delta=1e-5)
    given: dict[str, Any] = {"sigma": sigma, "delta": "1e-5", "law": law, "teachers": 200, "queries": 100}
    test = renyi_distance(epsilon=epsilon, **given)
    assert 0.9 <= test.chance(profile) < 0.95
    assert renyi_distance(epsilon=epsilon * 0.999, **given).chance(profile) < 0.9
    assert 160 <= sum(test.passes(Secret(profile), Simulation(n)) for n in range(200)) <= 199
    assert isinstance(test.passes(Secret(profile), Exact()), bool)
    assert test.cost.epsilon == Fraction(repr(epsilon))
    level = tails.epsilons(losses.of(profile, 0) * UNIT, ORDERS, tails.tails(law, at, 201), 1e-5)
    assert float(level) <= epsilon
    assert tails.tails(Gaussian(4), float(at), 201).distance_for(0.9) >= at
    assert needed(losses.of, profile, law=law, threshold=500, teachers=200, delta=1e-5) == math.inf


def answers(row: Row, sigma: float, threshold: float, spread: float) -> Floats:
    """The exact law of "no answer" and labels."""
    away = (max(row) - threshold) / spread
    share, none = float(ndtr(away)), float(ndtr(-away))
    law: Floats = np.append(none, share * np.exp(exact.log_probabilities(row, sigma)))
    return np.maximum(law, 1e-290)


def test_the_joint_loss_is_above_the_exact_one() -> None:
    generator = np.random.default_rng(4)
    for _ in range(30):
        sigma, spread = float(np.exp(generator.uniform(0.2, 2.5))), float(np.exp(generator.uniform(0, 2)))
        row = tuple(int(n) for n in generator.multinomial(25, generator.dirichlet(np.full(3, 0.6))))
        at = float(generator.uniform(5, 25))
        curve = confident.confident_curve(
            np.array([row]), sigma=sigma, threshold=at, threshold_sigma=spread, teachers=26, orders=FEW
        )
        here = np.log(answers(row, sigma, at, spread))
        for other in moved(row):
            there = np.log(answers(other, sigma, at, spread))
            for order, bound in zip(FEW, curve, strict=True):
                assert exact.divergence(here, there, order) <= bound


def test_confident_labels_keep_their_cost() -> None:
    sigma, at, spread, teachers = 1.0, 12.0, 4.0, 30
    test = confident.confident_distance(
        sigma=sigma, threshold=12, threshold_sigma=4, epsilon=3, delta="0.03", law=DiscreteGaussian(1),
        teachers=teachers, queries=1, orders=FEW,
    )  # fmt: skip
    known = tails.tails(test.law, test.threshold, test.most)
    rows = [row for total in (teachers - 1, teachers) for row in histograms(total, 2)]
    found = {}
    for row in rows:
        passing = math.exp(known.log_pass[test.distance(np.array([row]))])
        found[row] = np.append(1 - passing, passing * answers(row, sigma, at, spread))
    grow = math.exp(3)
    worst = max(
        float(np.maximum(found[row] - grow * found[other], 0.0).sum())
        for row, other in itertools.product(rows, rows)
        if other in moved(row)
    )
    assert worst <= 0.03
    assert len({test.distance(np.array([row])) for row in rows}) > 2


def test_the_profile_is_the_certified_conversion() -> None:
    curve = np.array([0.05, 0.1, 0.3])
    found = RenyiProfile(curve, np.array([2.0, 4.0, 10.0])).delta
    for level in (-0.5, 0.0, 0.4, 1.5, 6.0):
        true = min(certified.delta(order, rho, repr(level)) for order, rho in zip((2, 4, 10), curve, strict=True))
        assert true * (1 - 1e-9) <= float(found(np.array(level))) <= true * (1 + 1e-9)


def test_bad_tests_are_refused() -> None:
    given: dict[str, Any] = {"sigma": 2, "epsilon": 1, "delta": "1e-3", "teachers": 5, "queries": 3}
    given["law"] = DiscreteGaussian(1)
    for change in ({"epsilon": 0}, {"delta": 0}, {"delta": 1}, {"teachers": 0}, {"queries": 10**12}):
        with pytest.raises(ValueError, match=r"distance test|do not fit"):
            renyi_distance(**{**given, **change})
    for numbers in ((2, 3, "0.5", 5), (2, "-1e200", 1, 5), (2, "1e300", 1, 5)):
        with pytest.raises(ValueError, match="threshold_sigma"):
            confident.confident_losses(*numbers)


@pytest.mark.parametrize("sigma", ["0.06", "1e-3", "1e-5"])
def test_a_noise_of_which_losses_do_not_fit_is_refused(sigma: str) -> None:
    """Whole numbers that ran over were negative, and a tie was as sure as sure can be."""
    with pytest.raises(ValueError, match="sigma of at least"):
        renyi_distance(
            sigma=sigma, epsilon=1, delta="1e-5", law=DiscreteGaussian(4), teachers=50, queries=1, orders=FEW
        )


def log_normal(x: arb) -> arb:
    return ((-x / arb(2).sqrt()).erfc() / 2).log()


@pytest.mark.parametrize(("threshold", "spread"), [("1500", "1"), ("2600.123", "1"), ("700.7", "1.37")])
def test_joint_losses_are_above_the_exact_ones_at_high_orders(threshold: str, spread: str) -> None:
    """Far from the threshold the logarithms are in the millions: 64 units were less than their rounding."""
    orders = (1.05, 20.0, 170.0, 500.0, 1000.0)
    at, width = Fraction(threshold), Fraction(spread)
    losses = confident.confident_losses(40, at, width, 5000, orders)
    tops = np.array(sorted({int(at) + shift for shift in range(-1200, 1200, 29) if int(at) + shift >= 0}))
    units = losses._units(tops, np.zeros(len(tops), dtype=np.int64), 0)
    with balls.precision(300):
        away = {v: (v - balls.ball(at)) / balls.ball(width) for top in tops.tolist() for v in (top - 1, top, top + 1)}
        answer, none = ({v: log_normal(side * x) for v, x in away.items()} for side in (1, -1))
        for top, found in zip(tops.tolist(), units.tolist(), strict=True):
            for column, order in enumerate(orders):
                label = (order - 1) * arb(int(losses.table.steps[0, column])) * arb((1, -40))
                for near in (top - 1, top + 1):
                    fail, passing = ((order * logs[top] + (1 - order) * logs[near]).exp() for logs in (none, answer))
                    joint = (fail + passing * label.exp()).log() / (order - 1)
                    assert arb(found[column] - 64) * arb((1, -40)) >= joint
