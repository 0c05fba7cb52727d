"""Gaussian thresholds: the exact law of rounded counts against the two formulas, in both relations."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from snugdp import Budget, Neighbours
from snugdp.mechanisms.keys import threshold
from snugdp.mechanisms.keys.threshold import best_selection, gaussian_selection, shared_selection
from snugdp.noise import Finite, Gaussian
from tests.effort import sampled

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
HALF = Fraction(1, 2)


def law(count: int, sigma: float, cut: int, width: int = 40) -> Any:
    """What is shown of one key: nothing, or its rounded count from the threshold on; the last cell is all beyond."""
    if count == 0:
        return np.eye(1, width + 1)[0]
    edges = np.concatenate([[-np.inf], cut - 0.5 + np.arange(width), [np.inf]])
    return np.diff(stats.norm.cdf(edges, count, sigma))


def worst(sigma: float, cut: int, keys: int, relation: Neighbours, epsilon: float) -> float:
    """The largest delta over small and typical counts, both ways; for replace, other keys fall as these rise."""
    width, counts, found = 40, (0, 1, cut - 3, cut, cut + 12), 0.0
    moves = [1] * keys if relation is ADD else [1] * keys + [-1] * keys
    for before in product(counts, repeat=len(moves)):
        after = [count + move for count, move in zip(before, moves, strict=True)]
        if min(after) < 0:
            continue
        one, two = np.ones(1), np.ones(1)
        for a, b in zip(before, after, strict=True):
            one = np.outer(one, law(a, sigma, cut, width)).ravel()
            two = np.outer(two, law(b, sigma, cut, width)).ravel()
        for p, q in ((one, two), (two, one)):
            found = max(found, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return found


@sampled(4)
@pytest.mark.parametrize(("keys", "relation"), [(1, ADD), (2, ADD), (3, ADD), (1, REPLACE)])
@pytest.mark.parametrize(("sigma", "cut", "epsilon"), [("4.3", 22, 1), ("2", 9, "1.5"), ("3", 12, "0.7")])
def test_the_exact_law_stays_below_the_formula(
    keys: int, relation: Neighbours, sigma: str, cut: int, epsilon: str
) -> None:
    wide, level = Fraction(sigma), Fraction(epsilon)
    claimed = threshold.delta(wide, cut - HALF, keys, relation, level)
    found = worst(float(wide), cut, keys, relation, float(level))
    assert 0.8 * claimed < found <= claimed * (1 + 1e-9)
    alone = threshold.triple(wide, cut - HALF, keys, relation).delta_at(level)
    assert claimed <= alone * (1 + 1e-9)


@pytest.mark.parametrize(("keys", "relation"), [(1, ADD), (2, ADD), (1, REPLACE)])
def test_a_calibrated_threshold_keeps_its_budget_and_less_of_it_does_not(keys: int, relation: Neighbours) -> None:
    budget = Budget(1, "1e-3", relation)
    made = gaussian_selection(budget, keys)
    assert isinstance(made.law, Gaussian)
    sigma, delta = float(made.law.sigma), float(budget.delta)
    assert worst(sigma, made.threshold, keys, relation, 1.0) <= delta
    assert worst(0.8 * sigma, made.threshold, keys, relation, 1.0) > delta
    assert worst(sigma, made.threshold - 1, keys, relation, 1.0) > delta  # without the owner's own presence
    assert made.cost == budget.cost


def test_one_owner_alone_is_seen_with_delta_at_most() -> None:
    for keys in (1, 4, 16):
        made = gaussian_selection(Budget(1, "1e-6"), keys)
        assert isinstance(made.law, Gaussian)
        assert keys * stats.norm.sf((made.threshold - 1.5) / float(made.law.sigma)) <= 1e-6
        assert keys * stats.norm.sf((made.threshold - 2.5) / float(made.law.sigma)) > 1e-6


def test_a_share_costs_what_it_says() -> None:
    for relation in (ADD, REPLACE):
        made = shared_selection(Fraction(1, 20), Fraction(1, 10**7), relation, 4)
        assert isinstance(made.law, Gaussian)
        cost = threshold.triple(made.law.sigma, made.threshold - HALF, 4, relation)
        assert cost.mu_squared <= made.cost.mu_squared == Fraction(1, 20)
        assert cost.delta <= made.cost.delta == Fraction(1, 10**7)


def test_the_better_form_follows_from_public_numbers() -> None:
    forms = {keys: best_selection(Budget(1, "1e-6"), keys).law for keys in (1, 2, 3, 4, 16)}
    assert [isinstance(law, Finite) for law in forms.values()] == [True, True, True, False, False]
    made = best_selection(Budget(1, "1e-6"), 16)
    assert made.chance(made.usual_count) >= 0.95 > made.chance(made.usual_count - 2)
    assert made.chance(0) == 0.0


def test_what_is_refused() -> None:
    for keys in (0, -1, True, 10**6, 2.0):
        with pytest.raises(ValueError, match="max_keys"):
            best_selection(Budget(1, "1e-6"), keys)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta > 0"):
        best_selection(Budget(1), 1)
