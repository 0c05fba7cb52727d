"""Evidence for the errata V1..V7 (binary vote)."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from .numerics import laplace_tail, lose, root, vote_loss

DELTA = 1e-6
GAP = 100


def _envelope(eps: float, step: int = 1) -> list[float]:
    """Envelope of the data-dependent loss for gaps 0.. until the answer is deterministic up to delta."""
    t = 0
    while lose(eps * (t - step)) > DELTA:
        t += 1
    loss = [vote_loss(k, eps, DELTA, step) for k in range(t + 1)]
    return [max(loss[k:]) for k in range(t + 1)]


def _printed(u: float) -> float:
    return (2 + u) / (4 * math.exp(u))


def test_v1_losing_probability_only_for_nonnegative_gaps() -> None:
    for u in (-3.0, -1.0, 0.0, 0.7, 4.0):
        exact = 0.5 - integrate.quad(lambda z: (1 + abs(z)) * math.exp(-abs(z)) / 4, 0, u)[0]
        assert lose(u) == pytest.approx(exact, abs=1e-12)
        assert (abs(_printed(u) - exact) < 1e-12) == (u >= 0)
    # a tie (t=0) has the neighbour t=-1
    assert _printed(-1.0) == pytest.approx(0.6796, abs=5e-5)
    assert lose(-1.0) == pytest.approx(0.7241, abs=5e-5)
    assert _printed(-3.0) == pytest.approx(-5.02, abs=5e-3)


def test_v2_displayed_bound_is_negative() -> None:
    eps, t = 10.0, 0
    printed = eps * math.log((2 + eps * t) / (2 + eps * (t + 1)))
    true = math.log(lose(eps * t) / lose(eps * (t + 1)))
    assert printed == pytest.approx(-17.92, abs=5e-3)
    assert true == pytest.approx(8.2082, abs=5e-5)
    for e in (0.1, 1.0, 10.0):
        for gap in (0, 1, 7, 30):
            u = e * gap
            corrected = e + math.log((2 + u) / (2 + u + e))
            assert math.log(lose(u) / lose(u + e)) == pytest.approx(corrected, abs=1e-9)
            assert e * math.log((2 + u) / (2 + u + e)) < 0 < corrected


def test_v3_pure_loss_grows_with_the_gap() -> None:
    values = [vote_loss(t, 10.0, 0.0) for t in (0, 1, 5, 20)]
    assert values == pytest.approx([8.2082, 9.3939, 9.8241, 9.9517], abs=5e-5)
    series = [vote_loss(t, 10.0, 0.0) for t in range(60)]
    assert all(a < b < 10 for a, b in itertools.pairwise(series))
    for t in range(60):
        assert series[t] == pytest.approx(10 - math.log1p(10 / (2 + 10 * t)), rel=1e-9)
    # with delta > 0 the loss vanishes only where the answer is already deterministic up to delta
    t0 = next(t for t in range(100) if vote_loss(t, 10.0, DELTA) == 0)
    assert lose(10.0 * (t0 - 1)) - lose(10.0 * t0) <= DELTA


def test_v4_plugging_in_a_lower_bound_needs_the_envelope() -> None:
    gaps = (0, 1, 2, 3, 5, 10, 12, 14, 15, 16)
    values = [vote_loss(t, 1.0, DELTA) for t in gaps]
    assert values == pytest.approx(
        [0.5945, 0.7123, 0.7768, 0.8177, 0.8664, 0.9126, 0.9073, 0.8099, 0.5818, 0.0], abs=5e-5
    )
    # private lower bound 0, true gap 10: the plugged-in value is too small by a third
    assert vote_loss(0, 1.0, DELTA) < 0.66 * vote_loss(10, 1.0, DELTA)
    # test with eps~ = 1 and budget .6: it passes on the gap 10 (loss .91) about 1e4 times too often
    margin = math.log(1 / DELTA)
    near_tie = laplace_tail(margin - 10.5, 1.0) - laplace_tail(margin - 9.5, 1.0)  # private bound rounds to 0
    assert vote_loss(0, 1.0, DELTA) < 0.6 < vote_loss(10, 1.0, DELTA)
    assert near_tie == pytest.approx(0.0115, abs=5e-5)
    env = _envelope(1.0)
    assert all(env[low] >= vote_loss(t, 1.0, DELTA) for t in range(17) for low in range(min(t + 1, len(env))))
    assert vote_loss(17, 1.0, DELTA, 2) > 0 == vote_loss(18, 1.0, DELTA, 2)


def _log_coin_error(eps: float, need: float) -> float:
    """log error when the test t + Lap(1/eps) - margin > need fails into a fair coin."""
    x = need + math.log(1 / (2 * DELTA)) / eps - GAP
    fail = math.log(0.5) + eps * x if x < 0 else math.log1p(-0.5 * math.exp(-eps * x))
    return math.log(0.5) + fail


def _log_laplace_error(eps: float) -> float:
    u = eps * GAP
    return math.log((2 + u) / 4) - u


def test_v5_no_test_beats_plain_laplace_at_equal_privacy() -> None:
    table = {
        1e-1: (0.0240, 0.0208, 0.1418),
        1e-3: (0.0780, 0.0691, 0.1883),
        1e-5: (0.1282, 0.1143, 0.2348),
        1e-8: (0.2013, 0.1804, 0.3046),
        1e-12: (0.2970, 0.2674, 0.3976),
        1e-34: (0.8132, 0.7405, 0.9093),
    }
    for error, (pure, approx, classic) in table.items():
        target = math.log(error)
        eps = root(lambda e, y=target: _log_laplace_error(e) - y, 1e-4, 5.0)  # type: ignore[misc]
        assert eps == pytest.approx(pure, abs=5e-5)
        assert _envelope(eps)[0] == pytest.approx(approx, abs=5e-5)
        ptr = root(lambda e, y=target: _log_coin_error(e, 1.0) - y, 0.02, 5.0)  # type: ignore[misc]
        assert ptr == pytest.approx(classic, abs=5e-5)
        assert _envelope(eps)[0] < eps < ptr
    # the paper's split, test 1/(2b), release 0: log10 of the error at the same total
    rows = {0.02: (-1069.8, -1069.8, -1082.9), 0.1: (-207.7, -209.9, -215.0), 0.5: (-34.9, -37.9, -42.0)}
    for b, (gen, classic, laplace) in rows.items():
        total = 1 / (2 * b)
        env = _envelope(1 / b)
        t_min = next(t for t in range(len(env)) if env[t] == 0)
        gen_error = float(np.logaddexp(_log_coin_error(total, t_min - 1.0), _log_laplace_error(1 / b)))
        assert gen_error / math.log(10) == pytest.approx(gen, abs=0.06)
        assert _log_coin_error(total, 1.0) / math.log(10) == pytest.approx(classic, abs=0.06)
        assert _log_laplace_error(total) / math.log(10) == pytest.approx(laplace, abs=0.06)
        assert laplace < classic <= gen


def test_v6_margin_and_distance_can_be_sharper() -> None:
    eps = 0.5
    paper, tight = math.log(1 / DELTA) / eps, math.log(1 / (2 * DELTA)) / eps
    assert paper - tight == pytest.approx(math.log(2) / eps)
    assert laplace_tail(paper, eps) == pytest.approx(DELTA / 2)
    assert laplace_tail(tight, eps) == pytest.approx(DELTA)

    # exact distance to a data set whose majority one voter can change, ties to label 0, by search
    def majority(a: int, b: int) -> int:
        return 0 if a >= b else 1

    def near(a: int, b: int) -> list[tuple[int, int]]:
        return [(x, y) for x, y in ((a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)) if min(x, y) >= 0]

    def bad(a: int, b: int) -> bool:
        return any(majority(x, y) != majority(a, b) for x, y in near(a, b))

    size = 14
    bads = [(a, b) for a in range(2 * size) for b in range(2 * size) if bad(a, b)]
    gain = 0
    for a in range(size):
        for b in range(size):
            exact = min(abs(a - x) + abs(b - y) for x, y in bads)
            need = a - b + 1 if a >= b else b - a
            assert exact == need - 1
            paper_distance = max(abs(a - b) - 1, 0)
            assert 0 <= exact - paper_distance <= 1
            gain = max(gain, exact - paper_distance)
    assert gain == 1


def test_v7_laplace_vote_is_better_than_stated() -> None:
    # (eps, 0) holds, so (eps, delta) says nothing; with delta = 1e-6 the vote at eps = 1 costs 0.9126
    assert max(vote_loss(t, 1.0, 0.0) for t in range(300)) < 1.0
    assert _envelope(1.0)[0] == pytest.approx(0.9126, abs=5e-5)
    # and it is not even (eps, delta) under the replace relation of the preliminaries
    assert _envelope(1.0, 2)[0] == pytest.approx(1.8385, abs=5e-5)
