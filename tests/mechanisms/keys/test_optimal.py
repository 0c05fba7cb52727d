"""Keys that nobody listed: the exact law of what is shown, over all neighbouring counts, at the claimed epsilon."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest

from snugdp import Neighbours
from snugdp.mechanisms.keys.optimal import KeyTable, key_table, optimal_selection, ratio_below
from snugdp.mechanisms.keys.selection import KeySelection
from snugdp.noise import Exact, Finite, Simulation
from snugdp.noise.recording import narrowed
from snugdp.secrecy.secret import Secret

PAIRS = [("1", "1e-6"), ("1/2", "1e-3"), ("2", "1e-2"), ("1/10", "1e-2"), ("1", "1/5"), ("3", "3/5"), ("30", "1e-9")]
pairs = pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
Law = dict[int | None, Fraction]


def shown(law: Finite, threshold: int, count: int) -> Law:
    """The law of what is shown of one key: its noisy count, or nothing."""
    if count == 0:
        return {None: Fraction(1)}
    found: Law = {}
    for i, weight in enumerate(law.weights):
        noisy = count + law.lowest + i
        at = noisy if noisy >= threshold else None
        found[at] = found.get(at, Fraction(0)) + Fraction(weight, law.total)
    return found


def beyond(one: Law, other: Law, ratio: Fraction) -> Fraction:
    zero = Fraction(0)
    return sum((max(zero, p - ratio * other.get(at, zero)) for at, p in one.items()), zero)


def worst(law: Finite, threshold: int, ratio: Fraction) -> Fraction:
    """The largest delta over all pairs of neighbouring counts, both ways."""
    laws = [shown(law, threshold, count) for count in range(2 * len(law.weights) + 4)]
    return max(max(beyond(a, b, ratio), beyond(b, a, ratio)) for a, b in pairwise(laws))


@pairs
def test_the_exact_law_reaches_delta_and_never_exceeds_it(epsilon: str, delta: str) -> None:
    table, ratio, goal = key_table(epsilon, delta), ratio_below(Fraction(epsilon)), Fraction(delta)
    with mp.workdps(60):
        top = mp.exp(mp.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        assert 0 <= top - mp.mpf(ratio.numerator) / ratio.denominator < mp.mpf(2) ** -120
    found = worst(table.law, table.threshold, ratio)
    assert goal * (1 - Fraction(1, 10**9)) < found <= goal


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS[:4])
def test_less_noise_or_a_lower_threshold_is_a_breach(epsilon: str, delta: str) -> None:
    table, ratio, goal = key_table(epsilon, delta), ratio_below(Fraction(epsilon)), Fraction(delta)
    assert worst(narrowed(table.law, Fraction(4, 5)), table.threshold, ratio) > 2 * goal
    assert worst(table.law, table.threshold - 1, ratio) > 2 * goal


@pairs
def test_a_key_is_shown_with_the_probability_of_the_table(epsilon: str, delta: str) -> None:
    table = key_table(epsilon, delta)
    for count in range(table.certain + 3):
        assert 1 - shown(table.law, table.threshold, count).get(None, 0) == table.chance(count)
    assert table.chance(table.certain - 1) < 1 == table.chance(table.certain)


@pairs
def test_no_table_shows_more(epsilon: str, delta: str) -> None:
    table, goal = key_table(epsilon, delta), Fraction(delta)
    ratio, best, upper = ratio_below(Fraction(epsilon)) * (1 + Fraction(1, 2**100)), Fraction(0), Fraction(10**-12)
    for count in range(1, table.certain + 1):
        best = min(ratio * best + goal, 1 - (1 - best - goal) / ratio, Fraction(1))
        best = Fraction(int(best * 2**400) + 1, 2**400)
        assert table.chance(count) <= best <= table.chance(count) * (1 + upper)


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("keys", [1, 2])
def test_the_whole_costs_what_it_says(relation: Neighbours, keys: int) -> None:
    """Several keys move at once: the product of their laws, over small counts, at the whole epsilon and delta."""
    epsilon, delta = Fraction(3), Fraction(1, 5)
    selection = optimal_selection(epsilon, delta, relation, keys)
    assert (selection.cost.epsilon, selection.cost.delta) == (epsilon, delta)
    moves = [1] * keys if relation is Neighbours.ADD_REMOVE else [1] * keys + [-1] * keys
    ratio, most = ratio_below(epsilon), Fraction(0)
    for counts in product(range(3), repeat=len(moves)):
        if any(count + move < 0 for count, move in zip(counts, moves, strict=True)):
            continue
        one = joint(selection, list(counts))
        two = joint(selection, [count + move for count, move in zip(counts, moves, strict=True)])
        zero = Fraction(0)
        for a, b in ((one, two), (two, one)):
            most = max(most, sum((max(zero, p - ratio * b.get(at, zero)) for at, p in a.items()), zero))
    assert delta / 3 < most <= delta


def joint(selection: KeySelection, counts: list[int]) -> dict[tuple[int | None, ...], Fraction]:
    assert isinstance(selection.law, Finite)
    found: dict[tuple[int | None, ...], Fraction] = {(): Fraction(1)}
    for count in counts:
        law = shown(selection.law, selection.threshold, count)
        found = {(*at, x): p * q for at, p in found.items() for x, q in law.items()}
    return found


def test_a_draw_shows_counts_without_bias() -> None:
    selection = optimal_selection(Fraction(1), Fraction(1, 10**6), Neighbours.ADD_REMOVE)
    n = 4000
    counts = Secret((list(range(n)), np.full(n, 100)))
    drawn = selection.draw(counts, Simulation(3))
    assert len(drawn) == n
    found = np.array([count for _, count in drawn])
    assert abs(found.mean() - 100) < 5 * selection.deviation / n**0.5
    assert abs(found.std() / selection.deviation - 1) < 0.1
    assert np.mean(np.abs(found - 100) <= selection.count_error) > 0.93
    few = selection.draw(Secret((list(range(n)), np.full(n, selection.usual_count))), Exact())
    assert len(few) > 0.93 * n
    assert selection.chance(selection.usual_count) >= 0.95 > selection.chance(selection.usual_count - 1)
    assert selection.draw(Secret(([], np.array([], dtype=np.int64))), Exact()) == []


@pytest.mark.slow
def test_what_is_refused_is_public() -> None:
    for epsilon, delta in ((0, 0.1), (1, 0), (1, 1), (-1, 0.1)):
        with pytest.raises(ValueError, match="delta"):
            key_table(epsilon, delta)
    with pytest.raises(ValueError, match="epsilon is too small"):
        key_table("1e-9", "1e-9")
    assert isinstance(key_table(1000, "1e-6"), KeyTable)
