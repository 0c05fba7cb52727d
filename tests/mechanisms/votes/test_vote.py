"""The two-candidate vote: its formulas against integration and enumeration, its tables, its whole law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.mechanisms.votes import inverse, vote
from tests.mechanisms.exact_laws import passing

RELATIONS: tuple[vote.Relation, ...] = ("add_remove", "replace")
noise_epsilons = st.floats(0.02, 30)
deltas = st.sampled_from([1e-30, 1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.499, 0.5, 0.7])
relations = st.sampled_from(RELATIONS)


def p(u: float) -> float:
    tail = (2 + abs(u)) * math.exp(-abs(u)) / 4
    return tail if u >= 0 else 1 - tail


def as_written(eps: float, gap: int, delta: float, relation: vote.Relation) -> float:
    """epsilon_at exactly as the definition reads, in 80 digits where a probability is close to 0 or 1."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 80

        def lose(t: int) -> Decimal:
            u = abs(Decimal(eps) * t)
            tail = (2 + u) * (-u).exp() / 4
            return tail if t >= 0 else 1 - tail

        best, d = Decimal(0), Decimal(delta)
        for move in (vote.step(relation), -vote.step(relation)):
            a, b = lose(gap), lose(gap + move)
            for x, y in ((a, b), (b, a), (1 - a, 1 - b), (1 - b, 1 - a)):
                if x > d:
                    best = max(best, ((x - d) / y).ln())
        return float(best)


def test_losing_probability_is_the_integral() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for u in (0.0, 0.3, 2.0, 7.5):
        edges = np.linspace(u, u + 60, 61)
        z = (edges[:-1, None] + edges[1:, None]) / 2 + nodes / 2
        total = float(((1 + z) * np.exp(-z) / 4 @ weights).sum() / 2)
        assert vote.losing_probability(u) == pytest.approx(total, rel=1e-13)
        assert vote.losing_probability(-u) == pytest.approx(1 - total, rel=1e-13)


def test_logarithms_in_the_tails() -> None:
    for u in (-1e6, -40.0, -1.0, 0.0, 1e-9, 1.0, 500.0):
        if p(u) > 0:
            assert vote.log_losing_probability(u) == pytest.approx(math.log(p(u)), rel=1e-12, abs=1e-15)
    assert vote.log_losing_probability(1e6) == pytest.approx(math.log((2 + 1e6) / 4) - 1e6, rel=1e-15)
    assert vote.log_losing_probability(-50.0) == pytest.approx(-13 * math.exp(-50), rel=1e-12)


def test_printed_pure_epsilons() -> None:
    values = [vote.pure_epsilon(10, gap) for gap in (0, 1, 5, 20)]
    assert [round(v, 4) for v in values] == [8.2082, 9.3939, 9.8241, 9.9517]
    assert values == sorted(values)
    for gap in (0, 1, 5, 20):
        assert vote.pure_epsilon(10, gap) == pytest.approx(as_written(10, gap, 0, "add_remove"), rel=1e-12)


def test_printed_list_is_not_monotone() -> None:
    gaps = [0, 1, 2, 3, 5, 10, 12, 14, 15, 16]
    printed = [0.5945, 0.7123, 0.7768, 0.8177, 0.8664, 0.9126, 0.9073, 0.8099, 0.5818, 0]
    assert [round(vote.epsilon_at(1, gap, 1e-6, "add_remove"), 4) for gap in gaps] == printed
    replace = [vote.epsilon_at(1, gap, 1e-6, "replace") for gap in range(20)]
    assert replace[17] > 0 == replace[18] == replace[19]


@settings(max_examples=200, deadline=None)
@given(noise_epsilons, st.integers(0, 60), deltas, relations)
def test_epsilon_is_a_close_upper_value(eps: float, gap: int, delta: float, relation: vote.Relation) -> None:
    true = as_written(eps, gap, delta, relation)
    ours = vote.epsilon_at(eps, gap, delta, relation)
    assert ours >= true or ours == vote.step(relation) * eps
    assert ours <= true + 1e-7


@settings(max_examples=120, deadline=None)
@given(noise_epsilons, deltas, relations)
def test_envelope_is_the_running_maximum(eps: float, delta: float, relation: vote.Relation) -> None:
    size = vote.vanishing_gap(eps, delta, relation) + 3
    values = np.array([as_written(eps, gap, delta, relation) for gap in range(min(size, 60))])
    table = vote.envelope_table(eps, delta, relation)
    assert table[-1] == 0 or table.size == 1
    for gap in (0, 1, 2, 3, size // 3, size // 2, size - 1):
        ours = vote.envelope(eps, gap, delta, relation)
        listed = table[gap] if gap < table.size else 0.0
        assert ours == pytest.approx(listed, rel=1e-9, abs=1e-12)
        assert ours >= values[gap:].max(initial=0.0) * (1 - 1e-15)
    assert vote.worst_case_epsilon(eps, delta, relation) <= vote.step(relation) * eps


def test_envelope_without_delta_is_pure() -> None:
    assert vote.envelope(0.7, 1000, 0, "add_remove") == 0.7
    assert vote.envelope(0.7, -3.5, 0, "replace") == 1.4
    with pytest.raises(ValueError, match="never vanishes"):
        vote.envelope_table(0.7, 0, "replace")


def test_envelope_of_very_small_noise_epsilons() -> None:
    assert vote.worst_case_epsilon(1e-9, 1e-6, "add_remove") == 0  # one row moves the answer by less than delta
    assert 0 < vote.worst_case_epsilon(1e-5, 1e-9, "replace") < 2e-5
    with pytest.raises(ValueError, match="entries"):
        vote.envelope_table(1e-9, 1e-6, "replace")


def test_worst_case_is_not_monotone_in_the_noise() -> None:
    """So that an inverse found by bisection alone would prove nothing."""
    assert as_written(15.0, 0, 1e-6, "add_remove") < as_written(14.5, 1, 1e-6, "add_remove")
    assert vote.worst_case_epsilon(15.0, 1e-6, "add_remove") < vote.worst_case_epsilon(14.5, 1e-6, "add_remove") - 0.3


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 20), st.sampled_from([0, 1e-12, 1e-6, 1e-3, 0.1, 0.49]), relations)
def test_noise_for_a_guarantee_keeps_it(epsilon: float, delta: float, relation: vote.Relation) -> None:
    noise = inverse.noise_epsilon_for(epsilon, delta, relation)
    assert noise >= epsilon / vote.step(relation)
    assert vote.worst_case_epsilon(noise, delta, relation) <= epsilon
    grid = np.linspace(noise, 1.5 * noise + 2, 300)[1:]
    larger = [x for x in grid if vote.worst_case_epsilon(float(x), delta, relation) <= epsilon - 1e-6]
    assert all(x <= noise * 1.02 + 0.05 for x in larger)  # nothing much larger was missed


@settings(max_examples=100, deadline=None)
@given(st.floats(0.05, 20), st.floats(0, 2), deltas, relations)
def test_least_gap(noise: float, epsilon: float, delta: float, relation: vote.Relation) -> None:
    gap = inverse.least_gap(noise, epsilon, delta, relation)
    assert vote.envelope(noise, gap, delta, relation) <= epsilon
    assert gap == 0 or vote.envelope(noise, gap - 1, delta, relation) > epsilon
    assert inverse.least_gap(noise, noise / 2, 0, relation) == math.inf


TABLE = {
    1e-1: (0.0240, 0.0208, 0.1418),
    1e-2: (0.0519, 0.0457, 0.1651),
    1e-3: (0.0780, 0.0691, 0.1883),
    1e-5: (0.1282, 0.1143, 0.2348),
    1e-8: (0.2013, 0.1804, 0.3046),
    1e-12: (0.2970, 0.2674, 0.3976),
    1e-20: (0.4859, 0.4399, 0.5837),
    1e-34: (0.8132, 0.7405, 0.9093),
}


@pytest.mark.parametrize("error", TABLE)
def test_printed_error_table(error: float) -> None:
    noise = inverse.noise_epsilon_for_error(100, error)
    row = (
        noise,
        vote.worst_case_epsilon(noise, 1e-6, "add_remove"),
        inverse.classic_epsilon_for_error(100, 99, error, 1e-6),
    )
    assert tuple(round(v, 4) for v in row) == TABLE[error]
    assert vote.log_losing_probability(noise * 100) <= math.log(error) <= vote.log_losing_probability(noise * 99.99)


def fail_log10(gap: int, test_epsilon: float, least: float, delta: float) -> float:
    """log10 of half the chance that ceil(gap + Laplace - margin) stays below ``least``."""
    x = test_epsilon * (least - 1 - gap) - math.log(2 * delta)
    return (x - math.log(4)) / math.log(10) if x <= 0 else math.log10((1 - math.exp(-x) / 2) / 2)


SPLIT = {
    0.02: (-2168.4, -1069.8, -1069.8, -1082.9),
    0.1: (-431.9, -207.7, -209.9, -215.0),
    0.2: (-215.0, -99.1, -102.4, -106.8),
    0.3: (-142.8, -63.7, -66.6, -70.8),
    0.5: (-85.2, -34.9, -37.9, -42.0),
    2: (-20.6, -2.6, -5.7, -10.0),
}


@pytest.mark.parametrize("b", SPLIT)
def test_printed_split_table(b: float) -> None:
    total = 1 / (2 * b)
    least = inverse.least_gap(1 / b, 0, 1e-6, "add_remove")
    row = (
        vote.log_losing_probability(100 / b) / math.log(10),
        fail_log10(100, total, least, 1e-6),
        (-math.log(2e-6) - total * 99 - math.log(4)) / math.log(10),
        vote.log_losing_probability(100 * total) / math.log(10),
    )
    assert tuple(round(v, 1) for v in row) == SPLIT[b]


@pytest.mark.parametrize("error", [1e-1, 1e-8])
def test_no_test_beats_plain_noise_on_a_grid(error: float) -> None:
    plain = vote.worst_case_epsilon(inverse.noise_epsilon_for_error(100, error), 1e-6, "add_remove")
    for noise in np.geomspace(plain / 2, plain * 8, 12):
        for epsilon in np.linspace(0, plain, 6):
            least = inverse.least_gap(float(noise), float(epsilon), 1e-6, "add_remove")
            for test in np.linspace(0.1, 1, 6) * (plain - epsilon) * 0.999:
                if least > 0 and test > 0:
                    wrong = 10 ** fail_log10(100, test, least, 1e-6)
                    assert wrong + vote.losing_probability(100 * noise) > error


@pytest.mark.parametrize("relation", RELATIONS)
def test_distance_is_lipschitz_in_the_votes(relation: vote.Relation) -> None:
    moves = [(1, 0), (-1, 0), (0, 1), (0, -1)] + ([(1, -1), (-1, 1)] if relation == "replace" else [])
    for least in (0, 1, 2, 5):
        for a in range(12):
            for b in range(12):
                here = vote.distance(abs(a - b), least, relation)
                assert (here == 0) == (abs(a - b) < least)
                for i, j in moves:
                    there = vote.distance(abs(a + i - b - j), least, relation)
                    assert here == there or abs(here - there) <= 1


def worst_law(relation: vote.Relation, noise: float, least: float, *, tau: int, ratio: Fraction, alpha: float) -> float:
    """The largest delta over every ordered pair of neighbouring votes, whole law: refused, first, second."""
    moves = [1, -1] if relation == "add_remove" else [1, -1, 2, -2]
    worst = 0.0

    def law(lead: int) -> tuple[float, float, float]:
        t = float(passing(vote.distance(abs(lead), least, relation), tau, ratio))
        return 1 - t, t * p(-noise * lead), t * p(noise * lead)

    for lead in range(-60, 61):
        for move in moves:
            pairs = zip(law(lead), law(lead + move), strict=True)
            worst = max(worst, sum(max(0.0, x - alpha * y) for x, y in pairs))
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("noise", "epsilon", "delta"), [(1.0, 0.3, 1e-3), (3.0, 0.5, 1e-2), (1.0, 0.0, 1e-2)])
def test_the_whole_law_of_test_and_vote(relation: vote.Relation, noise: float, epsilon: float, delta: float) -> None:
    ratio, tau = Fraction(1, 2), 5
    claim = max(delta, float(ratio**tau / (1 + ratio)))
    alpha = math.exp(epsilon) / float(ratio)
    least = inverse.least_gap(noise, epsilon, delta, relation)
    assert least > 0
    assert worst_law(relation, noise, least, tau=tau, ratio=ratio, alpha=alpha) <= claim * (1 + 1e-12)


def test_a_test_without_the_envelope_breaks_it() -> None:
    """At gap 0 the loss is 0.5945 only: who believes it and skips the test loses 0.9126 at gap 10."""
    ratio, delta, epsilon = Fraction(99, 100), 1e-6, 0.6
    tau, alpha = 1310, math.exp(epsilon) / float(ratio)
    assert float(ratio**tau / (1 + ratio)) <= delta
    assert vote.epsilon_at(1, 0, delta, "add_remove") < epsilon
    least = inverse.least_gap(1, epsilon, delta, "add_remove")
    assert worst_law("add_remove", 1, least, tau=tau, ratio=ratio, alpha=alpha) <= delta
    assert worst_law("add_remove", 1, 0, tau=tau, ratio=ratio, alpha=alpha) > delta
    assert worst_law("add_remove", 1, least, tau=1, ratio=ratio, alpha=alpha) > delta


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_lower_threshold_breaks_it(relation: vote.Relation) -> None:
    ratio, tau, noise, delta, epsilon = Fraction(1, 4), 5, 12.0, 1e-6, 0.5
    claim, alpha = float(ratio**tau / (1 + ratio)), math.exp(epsilon) / float(ratio)
    least = inverse.least_gap(noise, epsilon, delta, relation)
    assert worst_law(relation, noise, least, tau=tau, ratio=ratio, alpha=alpha) <= claim
    assert worst_law(relation, noise, least, tau=tau - 1, ratio=ratio, alpha=alpha) > claim


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.1])
def test_plain_vote_keeps_its_worst_case_and_no_better(relation: vote.Relation, delta: float) -> None:
    for noise in (0.3, 1.0, 4.0, 15.0):
        epsilon = vote.worst_case_epsilon(noise, delta, relation)
        inside = worst_law(relation, noise, 0, tau=0, ratio=Fraction(1, 2), alpha=math.exp(epsilon))
        assert inside <= delta * (1 + 1e-9)
        if epsilon > 0:
            beyond = worst_law(relation, noise, 0, tau=0, ratio=Fraction(1, 2), alpha=math.exp(epsilon * 0.999))
            assert beyond > delta
            assert (
                worst_law(relation, noise / 0.8, 0, tau=0, ratio=Fraction(1, 2), alpha=math.exp(epsilon)) > delta
                or noise > 10
            )


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="noise"):
        vote.envelope(0, 0, 1e-6, "replace")
    with pytest.raises(ValueError, match="delta"):
        vote.envelope(1, 0, 1, "replace")
    with pytest.raises(ValueError, match="gap"):
        inverse.noise_epsilon_for_error(0, 0.1)
    with pytest.raises(ValueError, match="epsilon"):
        inverse.noise_epsilon_for(0, 0.1, "replace")
    with pytest.raises(ValueError, match="distance"):
        inverse.classic_epsilon_for_error(10, 11, 0.1, 1e-6)
    assert inverse.noise_epsilon_for_error(3, 0.5) == 0
    assert inverse.classic_epsilon_for_error(10, 9, 0.4, 1e-6) > 0
