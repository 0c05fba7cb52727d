"""Smooth sensitivity of the labels' loss, and the test built on it: all small histograms, and the whole law."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr

from snugdp.mechanisms.teachers import smooth_test as smooth
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.smooth_test import SmoothTest, smooth_plan
from snugdp.noise import Exact, Simulation
from snugdp.secrecy.secret import Secret
from tests.effort import sampled
from tests.mechanisms.noisy_votes import histograms, joint, largest_loss, log_probabilities, moved

Floats = NDArray[np.float64]
Votes = tuple[tuple[int, ...], ...]

SETTINGS = [(2.0, 3.0), (2.0, 12.0), (5.0, 4.0), (5.0, 22.0), (13.8, 43.0), (30.0, 22.0)]


def each(rows: list[tuple[int, ...]], sigma: float, order: float, teachers: int, raw: bool = False) -> Floats:
    """Row by row what one teacher can change within d moves; ``raw``: without the envelope."""
    table = smooth.envelope(sigma, order, teachers, len(rows[0]))
    if raw:
        values, reach, at = table.loss, table.reach, np.arange(len(table.loss))
        up = values[np.minimum(at + reach, at[-1])] - values
        table = replace(table, most=np.maximum(up, values - values[np.maximum(at - reach, 0)]))
    leads, moves = gaps(np.array(rows)), np.arange(teachers + 1)
    origin = table.position(log_miss(leads, sigma))
    return table.local(table.position(log_miss(leads, sigma, moves), moves), origin, moves).T


def steepest(
    rows: list[tuple[int, ...]], noise: tuple[float, float], beta: float, teachers: int, raw: bool = False
) -> tuple[float, float]:
    """The largest |ln S/S'| / beta and |f - f'| / S over all rows and their neighbours among them."""
    sigma, order = noise
    place = {row: i for i, row in enumerate(rows)}
    sums = each(rows, sigma, order, teachers, raw)
    found = np.array([float(smooth.smooth_sensitivity(row, beta)) for row in sums])
    table = smooth.envelope(sigma, order, teachers, len(rows[0]))
    losses = table.loss[table.position(log_miss(gaps(np.array(rows)), sigma))]
    pairs = np.array([(i, place[other]) for row, i in place.items() for other in moved(row) if other in place])
    here, there = pairs.T
    logs = np.log(np.maximum(found, 1e-300))
    ratio = np.abs(logs[here] - logs[there]).max() / beta
    return float(ratio), float((np.abs(losses[here] - losses[there]) / np.maximum(found[here], 1e-300)).max())


@sampled(4)
@pytest.mark.parametrize(("sigma", "order"), SETTINGS)
@pytest.mark.parametrize(("teachers", "classes"), [(40, 2), (12, 3), (8, 4)])
def test_the_sensitivity_is_smooth_and_bounds_every_change(
    teachers: int, classes: int, sigma: float, order: float
) -> None:
    rows = [row for total in range(teachers - 2, teachers + 1) for row in histograms(total, classes)]
    for beta in (0.005, 0.05, 0.4):
        ratio, change = steepest(rows, (sigma, order), beta, teachers)
        assert ratio <= 1 + 1e-9
        assert change <= 1 + 1e-9


def test_without_the_envelope_it_is_not_smooth() -> None:
    rows: list[tuple[int, ...]] = [(400 - n, n) for n in range(401)]
    for sigma, order, at_least in ((13.79, 42.96, 20.0), (13.79, 22.0, 5.0), (30.29, 42.96, 5.0)):
        raw, _ = steepest(rows, (sigma, order), 0.2 / order, 400, raw=True)
        kept, _ = steepest(rows, (sigma, order), 0.2 / order, 400)
        assert raw > at_least
        assert kept <= 1 + 1e-9


def test_several_queries_at_once() -> None:
    generator = np.random.default_rng(5)
    rows = list(histograms(12, 3))
    table = each(rows, 4.0, 9.0, 12)
    place = {row: i for i, row in enumerate(rows)}
    for _ in range(300):
        here = [rows[i] for i in generator.integers(0, len(rows), 3)]
        there = [sorted(moved(row, abstain=False))[generator.integers(0, 3)] for row in here]
        sums = [table[[place[row] for row in side]].sum(axis=0) for side in (here, there)]
        assert np.array_equal(sums[0], smooth.local_sums(np.array(here), 4.0, 9.0, 12))
        first, second = (float(smooth.smooth_sensitivity(part, 0.03)) for part in sums)
        assert abs(math.log(first / second)) <= 0.03 * (1 + 1e-9)
        losses = [smooth.total_loss(np.array(side), 4.0, 9.0, 12) for side in (here, there)]
        assert abs(losses[0] - losses[1]) <= first * (1 + 1e-9)


def test_the_loss_is_at_least_the_exact_one() -> None:
    for votes in ((20, 0, 0), (11, 9, 0), (7, 7, 6), (15, 3, 2)):
        for sigma, order in SETTINGS:
            assert smooth.total_loss(np.array([votes]), sigma, order, 20) >= largest_loss(votes, sigma, order)[0]


def law(test: SmoothTest, votes: Votes) -> tuple[float, float, Floats]:
    """The loss, its smooth sensitivity, and the law of the labels."""
    rows = np.array(votes)
    labels = joint(np.exp(log_probabilities(row, float(test.sigma))) for row in votes)
    return test.loss(rows), test.sensitivity(rows), labels


def hockey(
    test: SmoothTest, here: tuple[float, float, Floats], there: tuple[float, float, Floats], limit: float | None = None
) -> float:
    """The exact delta at the test's epsilon of (noisy ln S, noisy loss, labels or nothing), by integration."""
    k = float(-np.asarray(_quantile(float(test.failure) / 2)))
    width, spread = float(test.beta * test.sigma_scale), float(test.sigma_loss)
    z = np.linspace(-7, 7, 401)
    logs = math.log(here[1]) + width * z  # noisy ln S
    noisy = here[0] + here[1] * spread * z  # noisy loss
    bound = noisy[None, :] + spread * k * np.exp(logs + width * k)[:, None]

    def density(side: tuple[float, float, Floats]) -> Floats:
        first = _normal(logs, math.log(side[1]), width)
        return np.asarray(first[:, None] * _normal(noisy, side[0], side[1] * spread)[None, :])

    allowed = float(test.limit) if limit is None else limit
    p, q, grow = density(here), density(there), math.exp(test.epsilon)
    passing = np.maximum(p[..., None] * here[2] - grow * q[..., None] * there[2], 0.0).sum(axis=-1)
    area = (logs[1] - logs[0]) * (noisy[1] - noisy[0])
    return float(np.where(bound <= allowed, passing, np.maximum(p - grow * q, 0.0)).sum() * area)


def _quantile(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))


def _normal(x: Floats, mean: float, sd: float) -> Floats:
    return np.asarray(np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi)))


def chance(test: SmoothTest, side: tuple[float, float, Floats]) -> float:
    """The probability to pass, by integration."""
    z = np.linspace(-8, 8, 801)
    k = -_quantile(float(test.failure) / 2)
    width = float(test.beta * test.sigma_scale)
    room = (float(test.limit) - side[0]) / (side[1] * float(test.sigma_loss)) - k * np.exp(width * (z + k))
    return float((np.exp(log_ndtr(room)) * _normal(z, 0.0, 1.0)).sum() * (z[1] - z[0]))


def small_test(**changes: Fraction | int) -> SmoothTest:
    test = SmoothTest(
        sigma=Fraction(3),
        order=Fraction(3),
        beta=Fraction(1, 20),
        sigma_loss=Fraction(2),
        sigma_scale=Fraction(2),
        limit=Fraction(3, 10),
        delta=Fraction(1, 20),
        failure=Fraction(1, 100),
        teachers=24,
        queries=2,
        classes=2,
    )
    return replace(test, **changes)  # type: ignore[arg-type]


def pairs(seed: int, count: int) -> list[tuple[Votes, Votes]]:
    generator = np.random.default_rng(seed)
    found: list[tuple[Votes, Votes]] = []
    for _ in range(count):
        here = tuple((24 - int(n), int(n)) for n in generator.integers(0, 10, 2))
        there = tuple(sorted(moved(row))[int(generator.integers(0, len(moved(row))))] for row in here)
        found.append((here, there))
    return found


@pytest.mark.slow
def test_the_whole_release_by_integration() -> None:
    passed = 0
    for order, beta, limit in ((3, "0.05", "0.6"), (5, "0.03", "0.8"), (2, "0.1", "0.7")):
        test = small_test(order=Fraction(order), beta=Fraction(beta), limit=Fraction(limit))
        for here, there in pairs(order, 16):
            sides = law(test, here), law(test, there)
            passed += chance(test, sides[0]) > 0.01
            for first, second in (sides, sides[::-1]):
                assert hockey(test, first, second) <= float(test.delta)
    assert passed > 10


def test_a_limit_that_is_not_kept_is_noticed() -> None:
    test = small_test(sigma=Fraction(3, 10), queries=4)
    sides = law(test, ((13, 11),) * 4), law(test, ((12, 12),) * 4)
    assert hockey(test, *sides) <= float(test.delta)
    assert hockey(test, *sides, limit=math.inf) > float(test.delta)


@pytest.mark.slow
def test_the_plan_passes_as_often_as_it_says() -> None:
    profile = np.tile([[190, 6, 4], [150, 30, 20]], (30, 1))
    test = smooth_plan(profile, sigma=12, delta="1e-4", teachers=200)
    share = chance(test, (test.loss(profile), test.sensitivity(profile), np.ones(1)))
    assert 0.895 < share < 0.93
    assert test.cost.epsilon == Fraction(repr(test.epsilon))
    drawn = sum(test.passes(Secret(profile), Simulation(n)) for n in range(200))
    assert 160 <= drawn <= 198
    assert isinstance(test.passes(Secret(profile), Exact()), bool)
    hopeless = np.tile([[70, 65, 65]], (60, 1))
    assert not any(test.passes(Secret(hopeless), Simulation(n)) for n in range(20))


def test_bad_tests_are_refused() -> None:
    for changes in ({"beta": Fraction(1)}, {"failure": Fraction(1, 2)}, {"limit": Fraction(0)}):
        with pytest.raises(ValueError, match=r"order|failure|limit"):
            small_test(**changes)
    with pytest.raises(ValueError, match="two classes"):
        replace(small_test(), classes=1)
    with pytest.raises(ValueError, match="too small for this limit"):
        small_test(sigma=Fraction(1, 50), limit=Fraction(2049))
    assert small_test(sigma=Fraction(1, 50)).limit < 1  # such losses are above the limit, by however much
