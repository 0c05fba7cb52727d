"""The weighted choice: its law, floats against balls on the same bits, and groups that are left to a second look."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from snugdp.noise import Exact, Noise, Simulation
from snugdp.noise.exact import entropy, weighted
from snugdp.noise.exact.refine import START, Bits
from snugdp.noise.exact.weighted import Groups, by_balls, by_floats, masses, weighted_choice
from snugdp.secrecy.secret import Secret
from tests.effort import sampled

SOURCES: list[Noise] = [Exact(), Simulation(7)]
sources = pytest.mark.parametrize("noise", SOURCES, ids=lambda noise: type(noise).__name__)


def groups(*rows: tuple[int, int, int, int]) -> Groups:
    """From (first, count, level, weight)."""
    return Groups(*np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy())


def chances(found: Groups, rate: Fraction) -> list[float]:
    """The probabilities of groups, from exact exponents."""
    whole = found.whole()
    least = int(whole.level.min())
    each = [
        n * 2.0**w * math.exp(-float(rate * (level - least)))
        for n, level, w in zip(whole.count.tolist(), whole.level.tolist(), whole.weight.tolist(), strict=True)
    ]
    return [one / math.fsum(each) for one in each]


LAWS = {
    "levels": (groups((0, 3, 4, 0), (3, 1, 0, 0), (4, 5, 1, 0), (9, 100, 9, 0)), Fraction(1, 2)),
    "weights": (groups((-7, 1, 3, 4), (-6, 2, 0, 0), (-4, 2, 2, 3)), Fraction(1, 3)),
    "giants": (groups((0, 2**61, 10**18 + 40, 0), (2**61, 1, 10**18, 0)), Fraction(1)),
    "tiny rate": (groups((0, 1, 0, 0), (1, 1, 10**12, 1)), Fraction(1, 10**12)),
    "overlap": (groups((0, 2, 0, 0), (1, 2, 0, 1)), Fraction(5)),
}


@sampled(12)
@sources
@pytest.mark.parametrize("name", LAWS)
def test_law(noise: Noise, name: str) -> None:
    found, rate = LAWS[name]
    n, probabilities = 3000, chances(found, rate)
    drawn = [noise.weighted_choice(Secret(found), rate) for _ in range(n)]
    assert all(type(one) is int for one in drawn)
    if name == "overlap":
        counts = [drawn.count(place) for place in range(3)]
        probabilities = [1 / 6, 1 / 2, 1 / 3]
    else:
        order = np.searchsorted(found.first, drawn, side="right") - 1
        counts = np.bincount(order, minlength=len(probabilities)).tolist()
    expected = [n * p for p in probabilities]
    kept = [(c, e) for c, e in zip(counts, expected, strict=True) if e > 1]
    assert chi2.sf(sum((c - e) ** 2 / e for c, e in kept), max(len(kept) - 1, 1)) > 1e-7
    wrong = chances(found, rate * Fraction(3, 2)) if name == "levels" else probabilities
    if wrong != probabilities:
        assert chi2.sf(sum((c - n * p) ** 2 / (n * p) for c, p in zip(counts, wrong, strict=True)), 3) < 1e-7


@pytest.mark.slow
@sampled(2)
@sources
def test_positions_inside_a_group_are_uniform(noise: Noise) -> None:
    drawn = [noise.weighted_choice(Secret(groups((5, 3, 0, 0))), Fraction(1)) for _ in range(3000)]
    counts = np.bincount(drawn, minlength=8)[5:]
    assert counts.sum() == 3000
    assert chi2.sf(float(((counts - 1000) ** 2 / 1000).sum()), 2) > 1e-7


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 2**40), st.integers(-(2**40), 2**40) | st.integers(-30, 30), st.integers(0, 20)),
        min_size=1,
        max_size=40,
    ),
    st.fractions(Fraction(1, 10**6), 30),
    st.integers(0, 2**64 - 1),
)
def test_floats_decide_as_balls_do(rows: list[tuple[int, int, int]], rate: Fraction, bits: int) -> None:
    found = groups(*((0, count, level, weight) for count, level, weight in rows))
    place = by_floats(found, rate, bits)
    assert place is None or place == by_balls(found, rate, Bits(bits, START))


@sampled(5)
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 1000), Fraction(1, 10**400), Fraction(10**400)])
@pytest.mark.parametrize("k", [1, 2, 1000, 5000])
def test_edges_are_left_open(k: int, rate: Fraction) -> None:
    """Bits next to an edge are not decided by floats, and a little farther off they are, as balls say."""
    rng = np.random.default_rng(k)
    found = Groups(np.arange(k), rng.integers(1, 9, k), rng.integers(0, 40, k), np.zeros(k, dtype=np.int64))
    edges = np.cumsum(chances(found, rate if rate < 10**9 else Fraction(10**6)))[:-1]
    for edge in edges[:: max(1, k // 7)][:7].tolist():
        if not 0.0 < edge < 1.0:
            continue
        at = int(Fraction(edge) * 2**64)
        assert by_floats(found, rate, at) is None
        for far in (-(1 << 30), 1 << 30):
            bits = min(max(at + far, 0), 2**64 - 1)
            place = by_floats(found, rate, bits)
            assert place is None or place == by_balls(found, rate, Bits(bits, START))


def test_most_draws_are_decided_by_floats() -> None:
    k = 2000
    found = Groups(np.arange(k), np.ones(k, dtype=np.int64), np.arange(k), np.zeros(k, dtype=np.int64))
    rng = np.random.default_rng(1)
    for bits in rng.integers(0, 2**63, 500).tolist():
        assert by_floats(found, Fraction(1, 100), 2 * bits + 1) is not None


def test_masses_are_as_near_as_proved() -> None:
    rng = np.random.default_rng(2)
    k = 3000
    found = Groups(np.zeros(k, np.int64), rng.integers(1, 2**62, k), rng.integers(0, 10**6, k), rng.integers(0, 64, k))
    for rate in (Fraction(1, 10**4), Fraction(1, 8334), Fraction(7, 10**5)):
        mass, slack = masses(found, rate)
        least, worst = int(found.level.min()), 0.0
        from snugdp.numerics.balls import ball, exact, precision

        with precision(200):
            for n, level, w, one in zip(
                found.count.tolist(), found.level.tolist(), found.weight.tolist(), mass.tolist(), strict=True
            ):
                true = exact((ball(Fraction(n << w)) * (-ball(rate * (level - least))).exp()).mid())
                worst = max(worst, abs(float(Fraction(one) / true - 1)) if one else 0.0)
                assert one or true <= Fraction(slack)
        assert worst < 2.0**-46


@pytest.mark.slow
def test_groups_that_were_left_out_are_drawn_as_often() -> None:
    """The same bits give the same group, whether other groups come at once or on demand."""
    near, far = groups((0, 3, 0, 0), (3, 1, 2, 0)), groups((10, 50, 4, 0), (60, 2, 3, 5))
    rate, asked = Fraction(1), []

    def others() -> Groups:
        asked.append(1)
        return far

    lazy = Groups(near.first, near.count, near.level, near.weight, others, 3, 114)
    whole = lazy.whole()
    for bits in np.random.default_rng(3).integers(0, 2**63, 400).tolist():
        place = by_floats(lazy, rate, bits)
        expected = by_balls(whole, rate, Bits(bits, START))
        assert place is None or place == expected
    asked.clear()
    counts = np.bincount([weighted_choice(lazy, rate) for _ in range(3000)], minlength=62)
    parts = [counts[:3].sum(), counts[3], counts[10:60].sum(), counts[60:].sum()]
    expected_counts = [3000 * p for p in chances(lazy, rate)]
    assert asked
    assert chi2.sf(sum((c - e) ** 2 / e for c, e in zip(parts, expected_counts, strict=True)), 3) > 1e-7


def test_far_groups_are_not_made() -> None:
    def others() -> Groups:
        raise AssertionError("not needed")

    near = groups((0, 3, 0, 0))
    lazy = Groups(near.first, near.count, near.level, near.weight, others, 100, 2**60)
    assert {weighted_choice(lazy, Fraction(1)) for _ in range(200)} == {0, 1, 2}


def test_groups_of_small_weight_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits at the very end reach what floats have left out: a group of weight exp(-200)."""
    found = groups((0, 1, 0, 0), (1, 1, 200, 0))
    assert by_floats(found, Fraction(1), 2**64 - 1) is None
    monkeypatch.setattr(entropy, "bits", lambda n: (1 << n) - 1 if n > 1 else 0)
    assert weighted_choice(found, Fraction(1)) == 1


@sources
def test_nothing_private_is_refused(noise: Noise) -> None:
    rate = Fraction(1)
    assert noise.weighted_choice(Secret(groups()), rate) == 0
    assert noise.weighted_choice(Secret(groups((4, 0, 0, 0), (9, -3, 0, 0))), rate) == 0
    assert noise.weighted_choice(Secret(groups((4, 0, -9, 0), (9, 1, 0, 500))), rate) == 9
    ends = groups((4, 1, -(2**63), 0), (9, 1, 2**63 - 1, 0))
    assert noise.weighted_choice(Secret(ends), rate) == 4


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), 1.0, 1])
def test_rates_are_fractions_above_0(rate: Fraction) -> None:
    with pytest.raises(ValueError, match="rate"):
        Exact().weighted_choice(Secret(groups((0, 1, 0, 0))), rate)


def test_below_is_uniform() -> None:
    counts = np.bincount([entropy.below(5) for _ in range(5000)], minlength=5)
    assert chi2.sf(float(((counts - 1000) ** 2 / 1000).sum()), 4) > 1e-7
    assert entropy.below(1) == 0


def test_weights_have_a_limit() -> None:
    assert weighted.MAX_WEIGHT == 64
