"""Means, variances, covariances, correlations: losses over all rows of small grids; estimates and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from snugdp.mechanisms.statistics import moments as module
from snugdp.mechanisms.statistics.moments import Found, JointMoments, NoisyMoments
from snugdp.noise import Simulation
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from tests.effort import often, repeated, sampled
from tests.mechanisms.statistics.universes import SHARES, moved, name, used

SHAPES = [(1, 1), (1, 2), (2, 1), (2, 2)]


def powers(rows: list[tuple[int, ...]], degree: int) -> list[int]:
    every = product(range(degree + 1), repeat=len(rows[0]))
    return [sum(math.prod(x**p for x, p in zip(row, which, strict=True)) for row in rows) for which in every]


@sampled(4)
@pytest.mark.parametrize("share", SHARES, ids=name)
@pytest.mark.parametrize(("columns", "degree"), SHAPES)
def test_moments_lose_their_share_and_not_more(share: Share, columns: int, degree: int) -> None:
    """Every row, and every pair of rows, of a grid of 13 points, or of 9 by 7."""
    widths = (12,) if columns == 1 else (8, 6)
    release = JointMoments(share, widths, degree)
    rows = [release.features(powers([row], degree)) for row in product(*(range(w + 1) for w in widths))]
    changes = list(moved(rows, share))
    assert 0.95 < max(used(release.noise, change) for change in changes) <= 1
    assert max(used(release.noise, change, Fraction(4, 5)) for change in changes) > 1


@sampled(6)
@pytest.mark.parametrize("share", SHARES, ids=name)
@pytest.mark.parametrize(("columns", "degree"), SHAPES)
def test_moves_hold_on_a_fine_grid(share: Share, columns: int, degree: int) -> None:
    """In floats, with points that no small grid has, and the corners."""
    rng = np.random.default_rng(7)
    release = JointMoments(share, (1,) * columns, degree)
    s = np.concatenate([rng.random((200_000, columns)), rng.integers(0, 2, (1000, columns)), np.zeros((1, columns))])
    one = {True: module._BERNSTEIN_POWERS, False: module._CHEBYSHEV_POWERS}[release.positive][degree]
    back = np.linalg.inv(np.array(one, dtype=float))  # from powers to polynomials
    each = [np.stack([s[:, c] ** p for p in range(degree + 1)]).T @ back.T for c in range(columns)]
    which = list(release._unit_moves)
    values = np.stack([math.prod(each[c][:, k[c]] for c in range(columns)) for k in which]).T
    moves = np.array([float(release._unit_moves[k]) for k in which])
    power = 1 if share.is_pure else 2
    if share.neighbours.value == "add_remove":
        changes = values
    else:
        changes = np.concatenate([values, values - rng.permutation(values), values - values[::-1]])
    assert (np.abs(changes) ** power / moves).sum(axis=1).max() <= 1 + 1e-9


@pytest.mark.parametrize(("columns", "degree"), SHAPES)
def test_features_and_moments_invert_each_other(columns: int, degree: int) -> None:
    rng = np.random.default_rng(3)
    widths = (40, 25)[:columns]
    rows = [tuple(int(x) for x in row) for row in rng.integers(0, np.array(widths) + 1, (30, columns))]
    for share in SHARES:
        release = JointMoments(share, widths, degree)
        sums = powers(rows, degree)
        found = release.moments(release.features(sums))
        for which, value in found.values.items():
            true = sum(math.prod((x / w) ** p for x, w, p in zip(row, widths, which, strict=True)) for row in rows)
            assert value == pytest.approx(true)


STATISTICS: list[tuple[int, int, Callable[[NoisyMoments], Found]]] = [
    (1, 1, NoisyMoments.mean),
    (1, 2, NoisyMoments.variance),
    (2, 1, NoisyMoments.covariance),
    (2, 2, NoisyMoments.correlation),
]


@sampled(3)
@repeated
@pytest.mark.parametrize("share", SHARES, ids=name)
@pytest.mark.parametrize(("columns", "degree", "statistic"), STATISTICS)
def test_intervals_cover_in_19_of_20_cases(
    share: Share, columns: int, degree: int, statistic: Callable[[NoisyMoments], Found]
) -> None:
    rng, widths = np.random.default_rng(1), (200, 100)[:columns]
    z = rng.normal(size=(2, 2000))
    pair = np.stack([0.4 + 0.15 * z[0], 0.55 + 0.12 * (0.7 * z[0] + 0.7 * z[1])][:columns]).T
    rows = [tuple(row) for row in np.rint(np.clip(pair, 0, 1) * np.array(widths)).astype(int).tolist()]
    release, sums = JointMoments(share, widths, degree), powers(rows, degree)
    truth = statistic(release.moments(release.features(sums))).value
    seeds = range(often(100, 300))
    drawn = [statistic(release.moments(release.draw(Secret(sums), Simulation(seed)))) for seed in seeds]
    inside = np.mean([abs(found.value - truth) <= found.error for found in drawn])
    assert inside > 0.91
    tight = np.sqrt(np.mean([(found.value - truth) ** 2 for found in drawn]))
    assert np.median([found.error for found in drawn]) < 3.2 * tight


@pytest.mark.parametrize("share", SHARES, ids=name)
def test_nothing_is_an_ordinary_answer(share: Share) -> None:
    for columns, degree, statistic in STATISTICS:
        release = JointMoments(share, (1 << 16,) * columns, degree)
        nothing = [0] * (degree + 1) ** columns
        for seed in range(20):
            found = statistic(release.moments(release.draw(Secret(nothing), Simulation(seed))))
            assert -1 <= found.value <= 1
            assert found.count >= 1


def test_the_mean_is_close_to_the_best_that_sums_allow() -> None:
    """Within 1.155 of (h + |m|)/(n mu) for Gaussian noise, and better than the best weight for pure noise."""
    pure, gaussian = (share for share in SHARES if share.neighbours.value == "add_remove")
    for y in np.linspace(0, 1, 11):  # the mean, in half widths from the middle
        at: dict[tuple[int, ...], float] = {(0,): 1e9, (1,): 1e9 * (1 + y) / 2}
        for share, least in ((gaussian, (1 + y) / math.sqrt(gaussian.mu_squared)), (pure, None)):
            release = JointMoments(share, (1 << 20,), 1)
            found = NoisyMoments(at, release._inverse[1], release._spread, 1.0).mean()
            deviation = 2 * found.error * 1e9
            if least is not None:
                assert least * 0.999 <= deviation <= least * 1.16
            else:
                assert deviation**2 == pytest.approx(4 * (1 + y * y) / float(pure.epsilon) ** 2, rel=1e-3)
                best = 2 * (1 + y ** (2 / 3)) ** 3 / float(pure.epsilon) ** 2
                assert deviation**2 < best or y < 0.35
