"""The two-candidate vote: its formulas against integration and enumeration, its tables, its whole law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.mechanisms.votes import vote
from tests.effort import often, repeated
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


def test_logarithms_in_the_tails() -> None:
    for u in (-1e6, -40.0, -1.0, 0.0, 1e-9, 1.0, 500.0):
        if p(u) > 0:
            assert vote.log_losing_probability(u) == pytest.approx(math.log(p(u)), rel=1e-12, abs=1e-15)
    assert vote.log_losing_probability(1e6) == pytest.approx(math.log((2 + 1e6) / 4) - 1e6, rel=1e-15)
    assert vote.log_losing_probability(-50.0) == pytest.approx(-13 * math.exp(-50), rel=1e-12)


def test_printed_list_is_not_monotone() -> None:
    gaps = [0, 1, 2, 3, 5, 10, 12, 14, 15, 16]
    printed = [0.5945, 0.7123, 0.7768, 0.8177, 0.8664, 0.9126, 0.9073, 0.8099, 0.5818, 0]
    assert [round(vote.epsilon_at(1, gap, 1e-6, "add_remove"), 4) for gap in gaps] == printed
    replace = [vote.epsilon_at(1, gap, 1e-6, "replace") for gap in range(20)]
    assert replace[17] > 0 == replace[18] == replace[19]


@repeated
@settings(max_examples=often(20, 60, 200), deadline=None)
@given(noise_epsilons, st.integers(0, 60), deltas, relations)
def test_epsilon_is_a_close_upper_value(eps: float, gap: int, delta: float, relation: vote.Relation) -> None:
    true = as_written(eps, gap, delta, relation)
    ours = vote.epsilon_at(eps, gap, delta, relation)
    assert ours >= true or ours == vote.step(relation) * eps
    assert ours <= true + 1e-7


@repeated
@settings(max_examples=often(15, 45, 120), deadline=None)
@given(noise_epsilons, deltas, relations)
def test_envelope_is_the_running_maximum(eps: float, delta: float, relation: vote.Relation) -> None:
    size = vote.vanishing_gap(eps, delta, relation) + 3
    values = np.array([as_written(eps, gap, delta, relation) for gap in range(min(size, 60))])
    losses = vote.epsilons_at(eps, np.arange(size, dtype=np.float64), delta, relation)
    for gap in (0, 1, 2, 3, size // 3, size // 2, size - 1):
        ours = vote.envelope(eps, gap, delta, relation)
        assert ours == pytest.approx(losses[gap:].max(), rel=1e-9, abs=1e-12)
        assert ours >= values[gap:].max(initial=0.0) * (1 - 1e-15)
    assert vote.worst_case_epsilon(eps, delta, relation) <= vote.step(relation) * eps


def test_envelope_without_delta_is_pure() -> None:
    assert vote.envelope(0.7, 1000, 0, "add_remove") == 0.7
    assert vote.envelope(0.7, -3.5, 0, "replace") == 1.4


def test_envelope_of_very_small_noise_epsilons() -> None:
    assert vote.worst_case_epsilon(1e-9, 1e-6, "add_remove") == 0  # one row moves the answer by less than delta
    assert 0 < vote.worst_case_epsilon(1e-5, 1e-9, "replace") < 2e-5


def test_worst_case_is_not_monotone_in_the_noise() -> None:
    """So that an inverse found by bisection alone would prove nothing."""
    assert as_written(15.0, 0, 1e-6, "add_remove") < as_written(14.5, 1, 1e-6, "add_remove")
    assert vote.worst_case_epsilon(15.0, 1e-6, "add_remove") < vote.worst_case_epsilon(14.5, 1e-6, "add_remove") - 0.3


@pytest.mark.slow
@repeated
@settings(max_examples=often(10, 40, 60), deadline=None)
@given(st.floats(1e-3, 20), st.sampled_from([0, 1e-12, 1e-6, 1e-3, 0.1, 0.49]), relations)
def test_noise_for_a_guarantee_keeps_it(epsilon: float, delta: float, relation: vote.Relation) -> None:
    noise = vote.noise_epsilon_for(epsilon, delta, relation)
    assert noise >= epsilon / vote.step(relation)
    assert vote.worst_case_epsilon(noise, delta, relation) <= epsilon
    grid = np.linspace(noise, 1.5 * noise + 2, 300)[1:]
    larger = [x for x in grid if vote.worst_case_epsilon(float(x), delta, relation) <= epsilon - 1e-6]
    assert all(x <= noise * 1.02 + 0.05 for x in larger)  # nothing much larger was missed


@repeated
@settings(max_examples=often(15, 45, 100), deadline=None)
@given(st.floats(0.05, 20), st.floats(0, 2), deltas, relations)
def test_least_gap(noise: float, epsilon: float, delta: float, relation: vote.Relation) -> None:
    gap = vote.least_gap(noise, epsilon, delta, relation)
    assert vote.envelope(noise, gap, delta, relation) <= epsilon
    assert gap == 0 or vote.envelope(noise, gap - 1, delta, relation) > epsilon
    assert vote.least_gap(noise, noise / 2, 0, relation) == math.inf


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
    least = vote.least_gap(noise, epsilon, delta, relation)
    assert least > 0
    assert worst_law(relation, noise, least, tau=tau, ratio=ratio, alpha=alpha) <= claim * (1 + 1e-12)


def test_a_test_without_the_envelope_breaks_it() -> None:
    """At gap 0 the loss is 0.5945 only: who believes it and skips the test loses 0.9126 at gap 10."""
    ratio, delta, epsilon = Fraction(99, 100), 1e-6, 0.6
    tau, alpha = 1310, math.exp(epsilon) / float(ratio)
    assert float(ratio**tau / (1 + ratio)) <= delta
    assert vote.epsilon_at(1, 0, delta, "add_remove") < epsilon
    least = vote.least_gap(1, epsilon, delta, "add_remove")
    assert worst_law("add_remove", 1, least, tau=tau, ratio=ratio, alpha=alpha) <= delta
    assert worst_law("add_remove", 1, 0, tau=tau, ratio=ratio, alpha=alpha) > delta
    assert worst_law("add_remove", 1, least, tau=1, ratio=ratio, alpha=alpha) > delta


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_lower_threshold_breaks_it(relation: vote.Relation) -> None:
    ratio, tau, noise, delta, epsilon = Fraction(1, 4), 5, 12.0, 1e-6, 0.5
    claim, alpha = float(ratio**tau / (1 + ratio)), math.exp(epsilon) / float(ratio)
    least = vote.least_gap(noise, epsilon, delta, relation)
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
    with pytest.raises(ValueError, match="epsilon"):
        vote.noise_epsilon_for(0, 0.1, "replace")
