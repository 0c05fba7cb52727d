"""The distance test by Renyi divergences, which studies compare with: its tails and divergences against Arb."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from snugdp.accounting import renyi as certified
from snugdp.mechanisms.teachers.confident import ORDERS
from snugdp.mechanisms.teachers.smooth_test import conversion
from snugdp.mechanisms.teachers.table import UNIT, loss_table
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian
from snugdp.numerics import balls
from snugdp_studies.paper.pate.renyi import (
    LabelLosses,
    divergence_behind_test,
    epsilons,
    needed,
    reached,
    tails,
    threshold_for,
)


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
        known = tails(law, at, 60)
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


def test_the_divergence_behind_test_looks_at_every_distance_and_agrees_with_arb() -> None:
    law = DiscreteGaussian(25)
    at = threshold_for(law, 1, "1e-5")
    known, cut = tails(law, at, 401), tails(law, at, at + 45)
    assert float(divergence_behind_test(100.0, 0.0, known)) > 1.3 * float(divergence_behind_test(100.0, 0.0, cut))
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
            assert abs(arb(float(divergence_behind_test(order, total, known))) - true) < 2.0**-32


def test_conversion_agrees_with_the_certified_one() -> None:
    for order in (1.5, 4.0, 20.0, 46.0):
        assert float(conversion(order, 1e-5)) == pytest.approx(certified.epsilon(order, 0, "1e-5"), rel=1e-12)


def test_what_is_needed_is_the_epsilon_at_the_distance_that_passes() -> None:
    profile = np.tile([[180, 12, 8], [150, 30, 20]], (50, 1))
    law, losses = DiscreteGaussian(16), LabelLosses(loss_table(12.0, ORDERS))
    at = threshold_for(law, 1, "1e-5")
    epsilon = needed(losses.of, profile, law=law, threshold=at, teachers=200, delta=1e-5)
    known = tails(law, at, 201)
    far = known.distance_for(0.9)
    assert known.log_pass[far - 1] < math.log(0.9) <= known.log_pass[far]
    levels = [float(epsilons(losses.of(profile, moves) * UNIT, ORDERS, known, 1e-5)) for moves in (0, far - 1, far)]
    assert levels[0] < levels[1] < epsilon < min(levels[1] + 1e-7, levels[2])
    assert tails(Gaussian(4), float(at), 201).distance_for(0.9) >= at
    assert needed(losses.of, profile, law=law, threshold=500, teachers=200, delta=1e-5) == math.inf
