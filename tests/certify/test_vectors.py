"""The statements that costs rest on, attacked with random finite instances: tests, certificates, thresholds."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from snugdp.accounting import composition, pairs
from snugdp.numerics.rationals import rational
from tests.accounting.hockey import Array, hockey_stick, pure_pair

Integers = npt.NDArray[np.int64]


def _close(rng: np.random.Generator, epsilon: float, delta: float, size: int) -> tuple[Array, Array]:
    """A pair that is (epsilon, delta)-close in both orders: a pure pair with some mass that one side never sees."""
    p, q = pure_pair(rng, epsilon, size)
    return np.concatenate([p * (1 - delta), [delta, 0]]), np.concatenate([q * (1 - delta), [0, delta]])


def _release(passing: float, output: Array) -> Array:
    return np.append(passing * output, 1 - passing)


def test_refusing_form_pays_the_maximum() -> None:
    """Theorem A1: X or its neighbour certified, both orders close, or neither passes often."""
    rng = np.random.default_rng(5)
    closest = 0.0
    for _ in range(3000):
        e_test, d_test, e, d, failure = 0.3, rng.choice([0, 0.03]), 0.5, rng.choice([0, 0.04]), 0.05
        if rng.random() < 0.5:
            t, t2 = (x[::2].sum() for x in _close(rng, e_test, d_test, 4))
            m, m2 = _close(rng, e, d, 4)
        else:
            t, t2 = rng.uniform(0, failure), rng.uniform(0, failure)
            m, m2 = rng.dirichlet(np.ones(5) / 4), rng.dirichlet(np.ones(5) / 4)
        exact = hockey_stick(_release(t, m), _release(t2, m2), e + e_test)
        bound = max(d + d_test, failure)
        assert exact <= bound + 1e-12
        closest = max(closest, exact / bound)
    assert closest > 0.6


def test_one_sided_certificates_do_not_pay_the_maximum() -> None:
    """The neighbour is certified with itself first; in the other order the outputs are not close."""
    level, failure, seen = math.log(2), 0.05, 0.5
    m, m2 = np.array([seen, 1 - seen]), np.array([0.0, 1.0])
    assert hockey_stick(m2, m, level) == 0  # the neighbour first: certified, and it always passes
    assert hockey_stick(m, m2, level) == seen  # this data set first: not certified, and it passes rarely
    t, t2, d_test = failure, 1.0, 1 - failure  # so the test is (0, d_test)-close
    exact = hockey_stick(_release(t, m), _release(t2, m2), level)
    assert exact > max(failure, d_test) + 0.02
    assert exact <= failure + d_test + 1e-12


def test_calibrating_form_pays_the_sum_and_needs_it() -> None:
    """Theorem A2: a released statistic that is good except with some probability, then a calibrated release."""
    rng = np.random.default_rng(6)
    closest = 0.0
    for _ in range(300):
        e_release, e, failure = rng.uniform(0.1, 1), rng.uniform(0.1, 1), 0.05
        p, q = pure_pair(rng, e_release, 4)
        bad = rng.integers(4) if rng.random() < 0.5 else -1
        if bad >= 0 and p[bad] > failure:
            continue
        joint_p, joint_q = [], []
        for s in range(4):
            inner = (np.array([1.0, 0.0]), np.array([0.0, 1.0])) if s == bad else pure_pair(rng, e, 3)
            joint_p.append(p[s] * inner[0])
            joint_q.append(q[s] * inner[1])
        for epsilon in (0.0, 0.5, 1.0):
            exact = hockey_stick(np.concatenate(joint_p), np.concatenate(joint_q), epsilon)
            bound = composition.delta(
                mu_squared=rational(0, ""),
                pure=rational(e_release, "") + rational(e, ""),
                failure=rational(failure, "") if bad >= 0 else rational(0, ""),
                variation=rational(0, ""),
                atoms=(),
                epsilon=rational(epsilon, ""),
            )
            assert exact <= bound + 1e-12
            if bound > 1e-6:
                closest = max(closest, exact / bound)
    assert closest > 0.7


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_propose_test_release_threshold(epsilon: float) -> None:
    """Laplace noise on the distance, threshold ln(1/(2 delta))/epsilon: (2 epsilon, delta), and no lower one."""
    delta = 1e-3

    def passing(distance: int, tau: float) -> float:
        gap = epsilon * (distance - tau)
        return 1 - math.exp(-gap) / 2 if gap > 0 else math.exp(gap) / 2

    def worst(tau: float) -> float:
        values = [passing(0, tau)]  # two bad neighbours with outputs far apart
        for d in range(60):
            for near in {d, d + 1, max(d - 1, 0)} - ({0} if d == 0 else set()):
                t, t2 = passing(d, tau), passing(near, tau)
                inner = t * pairs.laplace(epsilon, 2 * epsilon + math.log(t2 / t))
                values.append(max(0, 1 - t - math.exp(2 * epsilon) * (1 - t2)) + inner)
        return max(values)

    tau = math.log(1 / (2 * delta)) / epsilon
    assert worst(tau) == pytest.approx(delta, rel=1e-9)
    assert worst(0.95 * tau) > 1.3 * delta


def test_distance_to_a_set_is_lipschitz_and_a_lower_bound_need_not_be() -> None:
    rng = np.random.default_rng(7)
    points = rng.integers(0, 12, size=(40, 3))
    for _ in range(20):
        bad = points[rng.choice(40, 5, replace=False)]

        def distance(x: Integers, bad: Integers = bad) -> int:
            return int(np.abs(bad - x).sum(axis=1).min())

        for x in points:
            for step in np.vstack([np.eye(3, dtype=int), -np.eye(3, dtype=int)]):
                assert abs(distance(x) - distance(x + step)) <= 1
    lower = {0: 0, 1: 0, 2: 2}  # below the distance to {0}, but jumps by two
    assert all(lower[x] <= x for x in lower)
    assert abs(lower[2] - lower[1]) > 1
